"""TrajectoryWriter.append_batch: the same as as many appends."""

import numpy as np
import pytest
from tables import make_table

import gear_reverb


@pytest.fixture
def client(serve):
    return serve(make_table(max_size=1000))


def steps(start, stop):
    count = stop - start
    return {
        "image": np.arange(start * 4, stop * 4, dtype=np.int32).reshape(count, 2, 2),
        "reward": np.arange(start, stop, dtype=np.float32),
        "text": np.array([str(i) * (i % 3) for i in range(start, stop)], object),
    }


def values(writer, start):
    return {name: column[start:].numpy().tolist() for name, column in writer.history.items()}


@pytest.mark.parametrize("cuts", [(0, 9), (0, 1, 2, 9), (0, 5, 5, 9)])
def test_history_is_that_of_single_appends(client, cuts):
    with (
        client.trajectory_writer(num_keep_alive_refs=4) as batched,
        client.trajectory_writer(num_keep_alive_refs=4) as single,
    ):
        for start, stop in zip(cuts, cuts[1:]):
            batched.append_batch(steps(start, stop))
        for i in range(9):
            single.append({name: leaf[0] for name, leaf in steps(i, i + 1).items()})
        assert batched.episode_steps == single.episode_steps == 9
        assert len(batched.history["reward"]) == 9
        assert values(batched, -4) == values(single, -4)
        with pytest.raises(ValueError):
            batched.history["reward"][-5:]


def test_long_batches_leave_the_newest_steps(client):
    with client.trajectory_writer(num_keep_alive_refs=3) as writer:
        writer.append_batch(steps(0, 1000))
        assert len(writer.history["reward"]) == 1000
        assert values(writer, -3)["reward"] == [997, 998, 999]
        writer.append_batch(steps(1000, 1001))
        assert values(writer, -3)["reward"] == [998, 999, 1000]


def test_items_of_appended_steps_arrive(client):
    with client.trajectory_writer(num_keep_alive_refs=10) as writer:
        writer.append_batch(steps(0, 10))
        for start in range(0, 10, 2):
            item = {n: column[start : start + 2] for n, column in writer.history.items()}
            writer.create_item("t", 1.0, item)
    samples = list(client.sample("t", 1, emit_timesteps=False))
    np.testing.assert_array_equal(samples[0].data[1], [0, 1])
    assert client.server_info()["t"].current_size == 5


def test_absent_leaves_and_mixed_calls(client):
    with client.trajectory_writer(num_keep_alive_refs=10) as writer:
        writer.append({"a": np.float32(0), "b": np.int32(0)})
        writer.append_batch({"a": np.arange(1, 4, dtype=np.float32), "b": None})
        writer.append_batch({"c": np.array([7, 8])})
        assert writer.history["a"][:4].numpy().tolist() == [0, 1, 2, 3]
        assert list(writer.history["b"])[1:4] == [None] * 3
        assert writer.history["c"][4:].numpy().tolist() == [7, 8]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": np.zeros(3), "b": np.zeros(2)}, r"\('b',\) has 2 steps, but leaf \('a',\) has 3"),
        ({"a": np.float32(1)}, r"\('a',\) is a scalar"),
        ({"a": None}, "no leaf"),
        ({"x": np.zeros(3, np.int64)}, r"column \('x',\)"),
        ({"x": np.zeros((3, 2), np.float32)}, r"column \('x',\)"),
    ],
)
def test_what_does_not_fit_is_refused_whole(client, data, message):
    with client.trajectory_writer(num_keep_alive_refs=5) as writer:
        writer.append({"x": np.float32(1)})
        with pytest.raises(ValueError, match=message):
            writer.append_batch(data)
        assert writer.episode_steps == 1
        assert len(writer.history["x"]) == 1


def test_a_partial_step_is_ended_first(client):
    with client.trajectory_writer(num_keep_alive_refs=5) as writer:
        writer.append({"x": np.float32(1)}, partial_step=True)
        with pytest.raises(ValueError, match="partial step"):
            writer.append_batch({"x": np.zeros(2, np.float32)})


def test_after_close_it_is_an_error(client):
    writer = client.trajectory_writer(num_keep_alive_refs=5)
    writer.append_batch({"x": np.zeros(2, np.float32)})
    writer.close()
    with pytest.raises(gear_reverb.errors.ReverbError):
        writer.append_batch({"x": np.zeros(2, np.float32)})
