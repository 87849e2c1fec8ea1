"""What the datasets give out."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")


def test_items_come_in_the_order_of_sampling(pair, bounded):
    address = numbered.serve(pair, 5, max_times_sampled=1)
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        address, "t", 10, max_samples=5
    )
    elements = bounded(list, dataset)
    assert numbered.first_steps(elements) == [0, 1, 2, 3, 4]
    for i, element in enumerate(elements):
        assert element.data["x"].numpy().tolist() == [[i] * 3, [i + 1] * 3]
        assert element.data["n"][0].numpy().tolist() == [i, i + 1]


def test_info_is_that_of_the_item(pair, bounded):
    address = numbered.serve(pair, 3)
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(address, "t", 1, max_samples=2)
    info = [element.info for element in bounded(list, dataset)]
    assert [int(i.times_sampled) for i in info] == [1, 2]
    assert [float(i.probability) for i in info] == [1.0, 1.0]
    assert [float(i.priority) for i in info] == [1.0, 1.0]
    assert [int(i.table_size) for i in info] == [3, 3]
    assert info[0].key == info[1].key and info[0].key.dtype == tf.uint64


def test_steps_come_one_by_one_with_their_items_info(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    numbered.write(pair.connect(server), 3)
    dataset = pair.client_lib.TimestepDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([3]), "n": [tf.TensorShape([])]},
        4,
        max_samples=3,
    )
    elements = bounded(list, dataset)
    assert [int(e.data["n"][0]) for e in elements] == [0, 1, 1, 2, 2, 3]
    assert elements[0].data["x"].shape == (3,)
    keys = [int(e.info.key) for e in elements]
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_items_of_different_lengths(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    client = pair.connect(server)
    for steps in (1, 3, 2, 2):
        numbered.write(client, 1, steps=steps)
    dataset = pair.client_lib.TrajectoryDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([None, 3]), "n": [tf.TensorShape(None)]},
        10,
        max_samples=4,
    )
    elements = bounded(list, dataset)
    assert [e.data["n"][0].numpy().tolist() for e in elements] == [[0], [0, 1, 2], [0, 1], [0, 1]]


DTYPES = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64"


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_every_dtype(pair, bounded, dtype):
    signature = tf.TensorSpec([None, 2], dtype)
    server = pair.start(pair.table(signature=signature))
    value = np.array([1, 0], dtype)
    pair.connect(server).insert(value, {"t": 1.0})
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        f"localhost:{server.port}", "t", 2, max_samples=3
    )
    for element in bounded(list, dataset):
        assert element.data.dtype.name == dtype
        assert element.data.numpy().tolist() == [value.tolist()]


def test_strings(pair, bounded):
    signature = {"s": tf.TensorSpec([None, 2], tf.string), "i": tf.TensorSpec([None], tf.int32)}
    server = pair.start(pair.table(signature=signature))
    texts = np.array([b"", b"nul \x00 and \xff"], object)
    pair.connect(server).insert({"s": texts, "i": np.int32(3)}, {"t": 1.0})
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        f"localhost:{server.port}", "t", 2, max_samples=3
    )
    for element in bounded(list, dataset):
        assert element.data["s"].numpy().tolist() == [texts.tolist()]
    [batch] = bounded(list, dataset.batch(3))
    assert batch.data["s"].numpy().tolist() == [[texts.tolist()]] * 3


def test_a_squeezed_column_has_no_axis_of_steps(pair, bounded):
    server = pair.start(pair.table())
    client = pair.connect(server)
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append([np.float32(i)])
        writer.create_item("t", 1.0, [writer.history[0][-1], writer.history[0][:]])
    dataset = pair.client_lib.TrajectoryDataset(
        f"localhost:{server.port}",
        "t",
        [tf.float32, tf.float32],
        [tf.TensorShape([]), tf.TensorShape([2])],
        2,
        max_samples=1,
    )
    [element] = bounded(list, dataset)
    assert float(element.data[0]) == 1.0 and element.data[1].numpy().tolist() == [0.0, 1.0]
