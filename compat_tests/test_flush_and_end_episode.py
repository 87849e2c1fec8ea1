"""When items become visible, and what an ended or closed writer still does."""

import pytest


def write(writer, value):
    writer.append([value])
    writer.create_item("t", 1.0, [writer.history[0][-1:]])


def test_items_are_there_after_flush(pair):
    client = pair.serve()
    with client.trajectory_writer(1) as writer:
        for i in range(10):
            write(writer, i)
        writer.flush()
        assert client.size("t") == 10


def test_items_are_there_after_end_episode(pair):
    client = pair.serve()
    with client.trajectory_writer(1) as writer:
        for i in range(10):
            write(writer, i)
        writer.end_episode()
        assert client.size("t") == 10


def test_items_are_there_after_the_with_block(pair):
    client = pair.serve()
    with client.trajectory_writer(1) as writer:
        for i in range(10):
            write(writer, i)
    assert client.size("t") == 10


def test_items_come_in_the_order_of_their_creation(pair):
    client = pair.serve(pair.table(max_size=200, max_times_sampled=1))
    with client.trajectory_writer(1) as writer:
        for i in range(100):
            write(writer, i)
    assert client.values("t", 100) == list(range(100))


def test_flushing_nothing(pair):
    with pair.serve().trajectory_writer(1) as writer:
        writer.flush()
        writer.append([1])
        writer.flush()
        writer.end_episode()
        writer.end_episode()


def test_a_negative_number_of_pending_items(pair):
    with pair.serve().trajectory_writer(1) as writer:
        with pytest.raises(ValueError, match="-1"):
            writer.flush(-1)


def test_steps_can_be_used_after_flush(pair):
    client = pair.serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            write(writer, i)
            writer.flush()
        writer.create_item("t", 1.0, [writer.history[0][:]])
    samples = client.sample("t", 1)
    assert client.size("t") == 4 and len(samples) == 1


def test_closing_twice(pair):
    writer = pair.serve().trajectory_writer(1)
    writer.append([1])
    writer.close()
    writer.close()


@pytest.mark.parametrize("call", ["append", "flush", "end_episode"])
def test_nothing_works_after_close(pair, call):
    writer = pair.serve().trajectory_writer(1)
    writer.append([1])
    writer.close()
    with pytest.raises(RuntimeError, match="[Cc]lose"):
        getattr(writer, call)(*([[1]] if call == "append" else []))


def test_a_writer_can_be_closed_unused(pair):
    pair.serve().trajectory_writer(1).close()


def test_an_exception_in_the_block_gets_out(pair):
    client = pair.serve()
    with pytest.raises(KeyError):
        with client.raw.trajectory_writer(1) as writer:
            write(writer, 1)
            raise KeyError
