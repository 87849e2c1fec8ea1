"""What `TrajectoryWriter.create_item` refuses; the writer goes on after it."""

import numpy as np
import pytest


@pytest.fixture
def written(pair):
    client = pair.serve()
    with client.trajectory_writer(2) as writer:
        writer.append({"x": 1, "y": 2.0})
        yield client, writer


@pytest.mark.parametrize("trajectory", [{}, [], {"x": []}], ids=str)
def test_no_columns(written, trajectory):
    client, writer = written
    with pytest.raises(ValueError, match="empty"):
        writer.create_item("t", 1.0, trajectory)


@pytest.mark.parametrize(
    "make",
    [
        lambda history: {"x": np.zeros(3)},
        lambda history: {"x": history["x"]},
        lambda history: {"x": history["x"][:], "y": 1},
        lambda history: 3,
    ],
    ids=["array", "history", "one_of_two", "number"],
)
def test_leaves_that_are_no_columns(written, make):
    client, writer = written
    with pytest.raises(TypeError, match="TrajectoryColumn"):
        writer.create_item("t", 1.0, make(writer.history))


def test_priorities(written):
    client, writer = written
    column = writer.history["x"][:]
    with pytest.raises(ValueError, match="priority"):
        writer.create_item("t", float("nan"), [column])
    with pytest.raises((TypeError, ValueError)):
        writer.create_item("t", "high", [column])
    for priority in [1, np.float32(0.5), 0.0, True]:
        writer.create_item("t", priority, [column])
    writer.flush()
    assert client.size("t") == 4


def test_tables(written):
    client, writer = written
    with pytest.raises(ValueError, match="'missing'"):
        writer.create_item("missing", 1.0, [writer.history["x"][:]])
    with pytest.raises(TypeError):
        writer.create_item(3, 1.0, [writer.history["x"][:]])


def test_the_writer_goes_on(written):
    client, writer = written
    for bad in [{}, {"x": 3}]:
        with pytest.raises((TypeError, ValueError)):
            writer.create_item("t", 1.0, bad)
    with pytest.raises(ValueError):
        writer.create_item("missing", 1.0, [writer.history["x"][:]])
    writer.append({"x": 2, "y": 3.0})
    writer.create_item("t", 1.0, [writer.history["x"][:]])
    writer.flush()
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [1, 2]
    assert client.size("t") == 1


def test_keyword_arguments_and_a_bare_column(written):
    client, writer = written
    writer.create_item(table="t", priority=2.0, trajectory=writer.history["y"][-1])
    writer.flush()
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.info.priority == 2.0
    assert [leaf.tolist() for leaf in sample.data] == [2.0]


def test_a_negative_priority_that_is_no_weight(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.MinHeap()))
    for i in (0, -3, 2):
        client.insert([i], {"t": float(i)})
    [[step]] = client.sample("t")
    assert (step.data[0].item(), step.info.priority) == (-3, -3.0)


def test_a_negative_weight(our_lib, bounded):
    server = our_lib.Server([our_lib.table(sampler=our_lib.selectors.Prioritized(1.0))])
    client = server.localhost_client()
    with pytest.raises(ValueError, match="negative"):
        bounded(client.insert, [1], {"t": -1.0})
    bounded(client.insert, [1], {"t": 1.0})
    assert client.server_info()["t"].current_size == 1
    bounded(server.stop)


def test_insert_errors(pair):
    client = pair.serve()
    with pytest.raises(ValueError, match="priorities"):
        client.insert([1], {})
    with pytest.raises(ValueError, match="priority"):
        client.insert([1], {"t": float("nan")})
    with pytest.raises((AttributeError, TypeError)):
        client.insert([1], ["t"])
    with pytest.raises((TypeError, ValueError)):
        client.insert([1], {"t": "x"})
    with pytest.raises((RuntimeError, ValueError)):
        client.insert([], {"t": 1.0})
    assert client.size("t") == 0
