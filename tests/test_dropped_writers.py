"""Writers that nobody closes: `Client.writer`."""

import logging
import subprocess
import sys

import pytest
from forks import in_child
from tables import sizes

import gear_reverb
from gear_reverb import _writer


def write(client):
    writer = client.writer(3, chunk_length=3)
    writer.append([1])
    writer.create_item("t", 1, 1.0)
    return writer


def test_a_dropped_writer_inserts_its_items_and_says_so(serve, caplog):
    client = serve()
    writer = write(client)
    del writer
    assert sizes(client) == {"t": 1}
    assert [record.message for record in caplog.records] == [
        "Writer-object deleted without calling .close explicitly."
    ]


def test_a_closed_writer_is_dropped_silently(serve, caplog):
    client = serve()
    writer = write(client)
    writer.close()
    del writer
    assert caplog.records == []


@pytest.fixture
def blocked(serve, monkeypatch):
    """A client of a table that takes no more items."""
    client = serve(gear_reverb.Table.queue("t", 1))
    client.insert([1], {"t": 1.0})
    monkeypatch.setattr(_writer, "_LAST_CLOSE_SECONDS", 0.05)
    return client


def test_a_dropped_writer_gives_up_in_the_end(blocked, caplog):
    writer = write(blocked)
    del writer
    assert "Not all items of a Writer were inserted: Timeout" in caplog.records[-1].message


def test_a_dropped_writer_does_not_raise(serve, caplog):
    client = serve()
    writer = write(client)
    with caplog.at_level(logging.WARNING):
        client.reset("t")
        writer._writer.Close()
        del writer
    assert "Not all items of a Writer were inserted" in caplog.records[-1].message


def test_a_forked_child_leaves_its_parents_writer_alone(serve):
    client = serve()
    writer = write(client)

    def drop():
        nonlocal writer
        del writer

    assert in_child(drop) == 0
    assert sizes(client) == {"t": 0}
    writer.close()
    assert sizes(client) == {"t": 1}


@pytest.mark.parametrize("size", [1, 2], ids=["blocked", "open"])
def test_writers_are_closed_when_the_program_ends(serve, size):
    client = serve(gear_reverb.Table.queue("t", size))
    client.insert([1], {"t": 1.0})
    program = (
        "import sys, gear_reverb\n"
        "from gear_reverb import _writer\n"
        "_writer._LAST_CLOSE_SECONDS = 5.0 if sys.argv[2] == '2' else 0.2\n"
        "writer = gear_reverb.Client(sys.argv[1]).writer(2, chunk_length=2)\n"
        "writer.append([2])\n"
        "writer.create_item('t', 1, 1.0)\n"
    )
    arguments = [client.server_address, str(size)]
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, timeout=60)
    assert sizes(client) == {"t": size}


def test_a_writer_that_was_never_made_is_dropped_silently(caplog):
    _writer.Writer.__new__(_writer.Writer)
    assert caplog.records == []
