"""Calls that wait on a limiter go on when they may, and give up at their deadline."""

import threading

import pytest


def background(call, *args, **kwargs):
    """Runs the call in a thread; the result is appended to the returned list."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call(*args, **kwargs)), daemon=True)
    thread.start()
    return thread, results


def finish(thread):
    thread.join(30)
    assert not thread.is_alive()


def blocked_writer(client, value=3):
    """A writer whose only item cannot be inserted yet."""
    writer = client.trajectory_writer(1)
    writer.append([value])
    writer.create_item("t", 1.0, [writer.history[0][:]])
    return writer


@pytest.fixture
def full(pair):
    """A queue of two that holds 1 and 2."""
    client = pair.serve(pair.server_lib.Table.queue("t", 2))
    for value in [1, 2]:
        client.insert([value], {"t": 1.0})
    return client


def deadline(pair):
    return pair.client_lib.errors.DeadlineExceededError


def test_a_sample_waits_for_the_minimal_size(pair):
    client = pair.serve(pair.table(rate_limiter=pair.rate_limiters.MinSize(3)))
    thread, results = background(client.values, "t", 1)
    for value in range(3):
        assert thread.is_alive()
        client.insert([value], {"t": 1.0})
    finish(thread)
    assert results == [[0]]


def test_an_insert_waits_for_room(full):
    thread, _ = background(full.insert, [3], {"t": 1.0})
    assert full.values("t", 1) == [1]
    finish(thread)
    assert full.values("t", 2) == [2, 3]


def test_flush_gives_up_at_its_deadline_and_can_be_tried_again(pair, full):
    with blocked_writer(full) as writer:
        with pytest.raises(deadline(pair), match="[Ff]lush"):
            writer.flush(timeout_ms=50)
        assert full.size("t") == 2
        assert full.values("t", 1) == [1]
        writer.flush(timeout_ms=20_000)
        assert full.values("t", 2) == [2, 3]


def test_end_episode_gives_up_at_its_deadline(pair, full):
    with blocked_writer(full) as writer:
        with pytest.raises(deadline(pair), match="[Ee]nd.?[Ee]pisode"):
            writer.end_episode(timeout_ms=50)
        assert full.values("t", 1) == [1]
        writer.end_episode(timeout_ms=20_000)


def test_flush_may_leave_items_pending(full):
    writer = blocked_writer(full)
    writer.flush(block_until_num_items=1, timeout_ms=20_000)
    assert full.size("t") == 2
    assert full.values("t", 3) == [1, 2, 3]
    writer.close()


def test_closing_does_not_wait(full):
    blocked_writer(full).close()


@pytest.mark.parametrize("timeout_ms", [None, 0, -1])
def test_nothing_to_flush_needs_no_time(full, timeout_ms):
    with full.trajectory_writer(1) as writer:
        writer.flush(timeout_ms=timeout_ms)
        writer.append([1])
        writer.flush(timeout_ms=timeout_ms)


def test_a_deadline_is_a_reverb_error(lib):
    assert issubclass(lib.DeadlineExceededError, lib.ReverbError)
    assert lib.errors.DeadlineExceededError is lib.DeadlineExceededError
    assert lib.errors.ReverbError is lib.ReverbError


def test_a_sample_and_an_insert_release_each_other(pair):
    # Ratio 1 with the smallest buffer: neither side can run ahead.
    limiter = pair.rate_limiters.SampleToInsertRatio(1.0, 1, 1.0)
    client = pair.serve(pair.table(rate_limiter=limiter, max_times_sampled=1))

    def insert_all():
        for i in range(30):
            client.insert([i], {"t": 1.0})

    thread, _ = background(insert_all)
    assert client.values("t", 29) == list(range(29))
    finish(thread)


def test_a_blocked_insert_does_not_block_another_table(pair):
    client = pair.serve(pair.server_lib.Table.queue("t", 1), pair.table("free"))
    client.insert([1], {"t": 1.0})
    with blocked_writer(client):
        client.insert([5], {"free": 1.0})
        assert client.values("free", 1) == [5]
        assert client.values("t", 2) == [1, 3]
