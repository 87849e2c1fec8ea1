"""Datasets in graphs and sessions, as TensorFlow 1 has them."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")

v1 = tf.compat.v1


def elements(dataset, iterator_kind):
    iterator = getattr(v1.data, f"make_{iterator_kind}_iterator")(dataset)
    element = iterator.get_next()
    out = []
    with v1.Session() as session:
        if iterator_kind == "initializable":
            session.run(iterator.initializer)
        while True:
            try:
                out.append(session.run(element))
            except tf.errors.OutOfRangeError:
                return out


@pytest.mark.parametrize("iterator_kind", ["one_shot", "initializable"])
@pytest.mark.parametrize("kind", ["items", "batches", "interleaved"])
def test_iterators_of_sessions(pair, bounded, kind, iterator_kind):
    address = numbered.serve(pair, 4, max_times_sampled=1)

    def make(_=None):
        return pair.client_lib.TrajectoryDataset.from_table_signature(
            address, "t", 2, max_samples=4
        )

    def run():
        with tf.Graph().as_default():
            dataset = make()
            if kind == "batches":
                dataset = dataset.batch(2)
            elif kind == "interleaved":
                dataset = tf.data.Dataset.range(1).interleave(make)
            return elements(dataset, iterator_kind)

    found = numbered.first_steps(bounded(run))
    assert found == ([[0, 1], [2, 3]] if kind == "batches" else [0, 1, 2, 3])


def test_shapes_are_known_in_the_graph(pair):
    address = numbered.serve(pair, 0)
    with tf.Graph().as_default():
        dataset = pair.client_lib.TrajectoryDataset.from_table_signature(address, "t", 2)
        element = v1.data.make_one_shot_iterator(dataset).get_next()
        assert element.data["x"].shape.as_list() == [None, 3]
        batches = v1.data.make_one_shot_iterator(dataset.batch(5, drop_remainder=True))
        assert batches.get_next().data["x"].shape.as_list() == [5, None, 3]
