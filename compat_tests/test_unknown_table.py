"""Every call that names a table that is not there says so."""

import pytest

NAME = "no_such_table"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.sample(NAME),
        lambda client: client.sample(NAME, emit_timesteps=False, unpack_as_table_signature=True),
        lambda client: client.reset(NAME),
        lambda client: client.mutate_priorities(NAME, {1: 1.0}),
        lambda client: client.mutate_priorities(NAME, deletes=[1]),
    ],
    ids=["sample", "sample_unpacked", "reset", "update", "delete"],
)
def test_reading_and_changing(pair, call):
    with pytest.raises((RuntimeError, ValueError), match=NAME):
        call(pair.serve())


def test_inserting(pair):
    client = pair.serve()
    with pytest.raises(ValueError, match=NAME):
        client.insert([1], {NAME: 1.0})
    assert client.size("t") == 0


def test_writing(pair):
    client = pair.serve()
    with client.trajectory_writer(1) as writer:
        writer.append([1])
        with pytest.raises(ValueError, match=NAME):
            writer.create_item(NAME, 1.0, [writer.history[0][:]])


def test_the_legacy_writer(pair):
    client = pair.serve()
    with client.writer(1) as writer:
        writer.append([1])
        with pytest.raises(ValueError, match=NAME):
            writer.create_item(NAME, 1, 1.0)
