"""What `Client.writer` and its writer refuse."""

import numpy as np
import pytest


@pytest.mark.parametrize(
    "options,message",
    [
        ({"max_sequence_length": 0}, "max_sequence_length"),
        ({"max_sequence_length": -1}, "max_sequence_length"),
        ({"max_sequence_length": 3, "chunk_length": 4}, "chunk_length"),
        ({"max_sequence_length": 3, "chunk_length": 0}, "chunk_length"),
        ({"max_sequence_length": 3, "chunk_length": -1}, "chunk_length"),
        ({"max_sequence_length": 3, "max_in_flight_items": 0}, "max_in_flight_items"),
        ({"max_sequence_length": 3, "max_in_flight_items": -1}, "max_in_flight_items"),
    ],
    ids=str,
)
def test_options(pair, options, message):
    with pytest.raises(ValueError, match=message):
        pair.serve().writer(**options)


@pytest.fixture
def writer(pair):
    with pair.serve().writer(3) as writer:
        for i in range(4):
            writer.append([i, np.zeros(2, np.float32)])
        yield writer


@pytest.mark.parametrize("num_timesteps", [0, -1, 4])
def test_numbers_of_steps(writer, num_timesteps):
    with pytest.raises(ValueError, match="num_timesteps"):
        writer.create_item("t", num_timesteps, 1.0)


def test_more_steps_than_there_are(pair):
    with pair.serve().writer(3) as writer:
        with pytest.raises(ValueError, match="num_timesteps"):
            writer.create_item("t", 1, 1.0)
        writer.append([1])
        with pytest.raises(ValueError, match="num_timesteps"):
            writer.create_item("t", 2, 1.0)
        writer.create_item("t", 1, 1.0)


def test_priorities(writer):
    with pytest.raises(ValueError, match="priority"):
        writer.create_item("t", 1, float("nan"))
    with pytest.raises((TypeError, ValueError)):
        writer.create_item("t", 1, "x")


def test_another_number_of_columns(pair):
    with pair.serve().writer(3) as writer:
        writer.append([1, 2])
        with pytest.raises(ValueError):
            writer.append([1])


def test_sequences_of_different_lengths(writer):
    with pytest.raises(ValueError):
        writer.append_sequence([np.arange(4), np.zeros((3, 2), np.float32)])


def test_sequences_that_are_none(writer):
    with pytest.raises(ValueError, match="scalar"):
        writer.append_sequence([np.int64(1), np.float32(2)])


def test_closing_twice(pair):
    writer = pair.serve().writer(1)
    writer.close()
    with pytest.raises(ValueError, match="close"):
        writer.close()


@pytest.mark.parametrize("call", ["append", "create_item", "flush"])
def test_nothing_works_after_close(pair, call):
    writer = pair.serve().writer(1)
    writer.append([1])
    writer.close()
    arguments = {"append": [[1]], "create_item": ["t", 1, 1.0], "flush": []}[call]
    with pytest.raises(RuntimeError, match="[Cc]lose"):
        getattr(writer, call)(*arguments)


def test_signatures_are_held_against_each_step(pair):
    spec = pair.server_lib.spec
    client = pair.serve(pair.table(signature=[spec([None], np.int64)]))
    with client.writer(3) as writer:
        writer.append([np.float32(1)])
        with pytest.raises(ValueError, match="'t'"):
            writer.create_item("t", 1, 1.0)
    assert client.size("t") == 0
