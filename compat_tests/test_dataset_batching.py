"""Batches of the datasets."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")


def dataset_of(pair, count, **options):
    address = numbered.serve(pair, count, max_times_sampled=1)
    return pair.client_lib.TrajectoryDataset.from_table_signature(
        address, "t", 8, max_samples=count, **options
    )


def test_the_last_batch_may_be_smaller(pair, bounded):
    batches = bounded(list, dataset_of(pair, 7).batch(3))
    assert numbered.first_steps(batches) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[0].data["x"].shape == (3, 2, 3)
    assert batches[0].info.priority.numpy().tolist() == [1.0, 2.0, 3.0]


def test_or_be_left_out(pair, bounded):
    batches = bounded(list, dataset_of(pair, 7).batch(3, drop_remainder=True))
    assert numbered.first_steps(batches) == [[0, 1, 2], [3, 4, 5]]


def test_a_batch_larger_than_what_is_in_flight(pair, bounded):
    batches = bounded(list, dataset_of(pair, 20).batch(20))
    assert numbered.first_steps(batches) == [list(range(20))]


def test_sizes_may_be_tensors(pair, bounded):
    batches = bounded(list, dataset_of(pair, 4).batch(tf.constant(3, tf.int64)))
    assert numbered.first_steps(batches) == [[0, 1, 2], [3]]


def test_batches_of_batches(pair, bounded):
    batches = bounded(list, dataset_of(pair, 6).batch(2, drop_remainder=True).batch(2))
    assert numbered.first_steps(batches) == [[[0, 1], [2, 3]], [[4, 5]]]


def test_after_a_map_and_with_parallel_calls(pair, bounded):
    dataset = dataset_of(pair, 4).map(lambda sample: sample.data["n"][0][0])
    batches = bounded(list, dataset.batch(2, num_parallel_calls=2).prefetch(1))
    assert [batch.numpy().tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_several_iterators_of_one_dataset(pair, bounded):
    address = numbered.serve(pair, 3)
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        address, "t", 2, max_samples=2
    ).batch(2)
    assert len(bounded(list, dataset)) == len(bounded(list, dataset)) == 1


def test_items_of_different_lengths_are_refused(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    client = pair.connect(server)
    for steps in (2, 2, 3):
        numbered.write(client, 1, steps=steps)
    dataset = pair.client_lib.TrajectoryDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([None, 3]), "n": [tf.TensorShape([None])]},
        10,
        max_samples=3,
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"element 2 had shape \[3"):
        bounded(list, dataset.batch(3))


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_items(pair, bounded, size):
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
        bounded(list, dataset_of(pair, 2).batch(size))


def test_steps_in_batches_of_items(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    numbered.write(pair.connect(server), 3, steps=4)
    dataset = pair.client_lib.TimestepDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([3]), "n": [tf.TensorShape([])]},
        4,
        max_samples=3,
    )
    batches = bounded(list, dataset.batch(4))
    assert [batch.data["n"][0].numpy().tolist() for batch in batches] == [
        [0, 1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4, 5],
    ]
