"""Columns of one step without a time axis."""

import numpy as np
import pytest


def test_in_an_item(pair):
    client = pair.serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append({"x": np.full(2, i, np.int32), "s": f"{i}"})
        history = writer.history
        writer.create_item(
            "t",
            1.0,
            {
                "a": history["x"][1],
                "b": history["x"][1:2],
                "c": history["s"][-1],
                "d": history["x"][:],
            },
        )
    [sample] = client.sample("t", emit_timesteps=False)
    a, b, c, d = sample.data
    assert (a.shape, b.shape, c.shape, d.shape) == ((2,), (1, 2), (), (3, 2))
    assert a.tolist() == [1, 1] and b.tolist() == [[1, 1]]
    assert c.item() == b"2"
    assert d.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_only_squeezed_columns(pair):
    client = pair.serve()
    with client.trajectory_writer(1) as writer:
        writer.append([np.float64(3), np.arange(2)])
        writer.create_item("t", 1.0, [writer.history[0][0], writer.history[1][0]])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].shape == () and sample.data[0] == 3
    assert sample.data[1].tolist() == [0, 1]


def test_columns_of_the_writer(pair):
    with pair.serve().trajectory_writer(2) as writer:
        writer.append([np.arange(3)])
        writer.append([np.arange(3) + 1])
        one, both = writer.history[0][-1], writer.history[0][:]
        assert (one.is_squeezed, both.is_squeezed) == (True, False)
        assert (len(one), len(both)) == (1, 2)
        assert (tuple(one.shape), tuple(both.shape)) == ((3,), (2, 3))
        assert one.numpy().tolist() == [1, 2, 3]
        assert both.numpy().tolist() == [[0, 1, 2], [1, 2, 3]]
        assert len(list(both)) == 2
        assert both[1:].numpy().tolist() == [[1, 2, 3]]
        assert both[0].numpy().tolist() == [0, 1, 2]


def test_a_column_is_not_kept_alive_by_itself(pair):
    with pair.serve().trajectory_writer(1) as writer:
        writer.append([np.arange(3)])
        column = writer.history[0][-1]
        writer.append([np.arange(3)])
        writer.end_episode()
        with pytest.raises(RuntimeError, match="expired"):
            column.numpy()
        with pytest.raises(RuntimeError, match="expired"):
            _ = column.shape
        with pytest.raises(ValueError, match="expired"):
            writer.create_item("t", 1.0, [column])


@pytest.mark.parametrize("all_squeezed", [True, False])
def test_an_item_of_one_step_in_timesteps(pair, bounded, all_squeezed):
    tf = pytest.importorskip("tensorflow")
    server = pair.start(pair.table())
    client = pair.connect(server)
    with client.trajectory_writer(1) as writer:
        writer.append([np.float64(3), np.arange(2)])
        last = writer.history[0][-1] if all_squeezed else writer.history[0][-1:]
        writer.create_item("t", 1.0, [last, writer.history[1][-1]])
    address = f"localhost:{server.port}"
    dataset = pair.client_lib.TimestepDataset(
        address, "t", [tf.float64, tf.int64], [tf.TensorShape([]), tf.TensorShape([2])], 1
    )
    [sample] = bounded(lambda: list(dataset.take(1)))
    assert [leaf.numpy().tolist() for leaf in sample.data] == [3, [0, 1]]
    sample = bounded(lambda: pair.client_lib.TFClient(address).sample("t", [tf.float64, tf.int64]))
    assert [leaf.numpy().tolist() for leaf in sample.data] == [3, [0, 1]]


@pytest.mark.parametrize("kind", ["tensor", "arrays of one key", "numpy"])
def test_keys_of_any_integer_kind(pair, kind):
    tf = pytest.importorskip("tensorflow")
    client = pair.serve()
    client.insert([1], {"t": 1.0})
    client.insert([2], {"t": 1.0})
    keys = np.array([sample.info.key for [sample] in client.sample("t", 2)], np.uint64)
    given = {
        "tensor": lambda: list(tf.constant(keys)),
        "arrays of one key": lambda: [np.array(key) for key in keys],
        "numpy": lambda: list(keys),
    }[kind]()
    client.mutate_priorities("t", deletes=given)
    assert client.server_info()["t"].current_size < 2
