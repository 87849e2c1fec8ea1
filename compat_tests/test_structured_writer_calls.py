"""append, flush and end_episode of a StructuredWriter: parts of steps, deadlines and errors."""

import gc

import numpy as np
import pytest

STEP = {"a": None, "b": None}


def config(lib, transform=lambda step: {"x": step["a"][-1]}, table="t", **options):
    pattern = lib.structured.pattern_from_transform(STEP, transform)
    return lib.structured.create_config(pattern, table, **options)


def both(step):
    return {"a": step["a"][-1], "b": step["b"][-1]}


@pytest.fixture
def client(pair):
    return pair.serve(pair.server_lib.Table.queue("t", 1000))


def items(client):
    size = client.size("t")
    samples = client.sample("t", size, emit_timesteps=False) if size else []
    return [[leaf.tolist() for leaf in sample.data] for sample in samples]


def test_an_item_is_made_as_soon_as_its_columns_are_there(pair, client):
    lib = pair.client_lib
    writer = client.structured_writer([config(lib), config(lib, both)])
    writer.append({"a": 1, "b": None}, partial_step=True)
    writer.flush()
    assert writer.step_is_open
    assert items(client) == [[1]]
    writer.append({"a": None, "b": 2})
    writer.flush()
    assert not writer.step_is_open
    assert items(client) == [[1, 2]]


def test_a_column_has_one_value_per_step(pair, client):
    writer = client.structured_writer([config(pair.client_lib)])
    writer.append({"a": 1, "b": None}, partial_step=True)
    with pytest.raises(RuntimeError, match="column 0"):
        writer.append({"a": 2, "b": None}, partial_step=True)
    assert writer.step_is_open
    writer.append({"a": None, "b": 1})
    writer.append({"a": 3, "b": 1})
    writer.flush()
    assert items(client) == [[1], [3]]


def test_ending_the_episode_ends_the_step(pair, client):
    writer = client.structured_writer([config(pair.client_lib)])
    writer.append({"a": 1, "b": None}, partial_step=True)
    writer.end_episode()
    assert not writer.step_is_open
    writer.append({"a": 2, "b": None}, partial_step=True)
    writer.flush()
    assert items(client) == [[1], [2]]


@pytest.mark.parametrize("step", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": [1, 2], "b": 2}])
def test_the_number_of_leaves_is_that_of_the_first_step(pair, client, step):
    writer = client.structured_writer([config(pair.client_lib)])
    writer.append({"a": 1, "b": 1})
    with pytest.raises(ValueError, match=r"got (1|3) but wanted 2"):
        writer.append(step)
    writer.append({"a": 2, "b": 1})
    writer.flush()
    assert items(client) == [[1], [2]]


@pytest.mark.parametrize(
    ("value", "reason"), [(1.5, "wrong dtype"), (np.zeros([2], int), "incompatible shape")]
)
def test_the_error_names_the_path(pair, client, value, reason):
    writer = client.structured_writer([config(pair.client_lib, both)])
    writer.append({"a": 1, "b": 1})
    with pytest.raises(ValueError, match=rf"{reason}.*column 1 \(path=\('b',\)\)"):
        writer.append({"a": 2, "b": value})
    writer.append({"a": 3, "b": 3})
    writer.flush()
    assert items(client) == [[1, 1], [3, 3]]


def test_an_unknown_table_is_reported(pair, client):
    writer = client.structured_writer([config(pair.client_lib, table="nowhere")])
    writer.append({"a": 1, "b": 1})
    with pytest.raises(RuntimeError, match="nowhere was not found"):
        writer.flush()


def test_items_are_not_checked_against_the_signature(pair):
    lib = pair.server_lib
    signature = {"x": lib.spec([None], np.int64)}
    client = pair.serve(lib.table(signature=signature))
    writer = client.structured_writer([config(pair.client_lib)])
    writer.append({"a": 1.5, "b": 1})
    writer.flush()
    assert client.size("t") == 1


def test_flush_takes_no_negative_number(pair, client):
    writer = client.structured_writer([config(pair.client_lib)])
    with pytest.raises(ValueError, match="-1"):
        writer.flush(-1)


@pytest.mark.parametrize("call", ["flush", "end_episode"])
def test_deadlines(our_client, call):
    client = our_client.serve(our_client.server_lib.Table.queue("t", 2))
    writer = client.structured_writer([config(our_client.client_lib)])
    for i in range(3):
        writer.append({"a": i, "b": 0})
    with pytest.raises(our_client.client_lib.DeadlineExceededError, match="0:00:00.1"):
        getattr(writer, call)(timeout_ms=100)
    assert items(client) == [[0], [1]]
    writer.flush(timeout_ms=10_000)
    assert items(client) == [[2]]


def test_what_was_not_flushed_is_inserted_when_the_writer_goes(pair, client):
    writer = client.structured_writer([config(pair.client_lib, lambda step: {"x": step["a"][-2:]})])
    for i in range(5):
        writer.append({"a": i, "b": 0})
    del writer
    gc.collect()
    assert items(client) == [[[i, i + 1]] for i in range(4)]


def test_many_steps_without_flush(pair, client):
    writer = client.structured_writer([config(pair.client_lib, lambda s: {"x": s["a"][-3:]})])
    for i in range(500):
        writer.append({"a": i, "b": 0})
    writer.flush()
    assert items(client) == [[[i, i + 1, i + 2]] for i in range(498)]


def test_a_writer_that_goes_while_its_items_cannot_be_inserted_gives_up(our_lib, bounded, capfd):
    server = our_lib.Server([our_lib.Table.queue("t", 1)])
    writers = [server.localhost_client().structured_writer([config(our_lib)])]
    for i in range(3):
        writers[0].append({"a": i, "b": 0})
    bounded(writers.clear)
    assert server.localhost_client().server_info()["t"].current_size == 1
    assert "inserted" in capfd.readouterr().err
    server.stop()
