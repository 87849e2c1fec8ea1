"""A server that stops in the middle of a call: the call ends, and says that nothing came of it."""

import contextlib
import threading
import time

import pytest


class Call:
    """A call that runs in a thread of its own."""

    def __init__(self, call, *args):
        self.outcome = []
        self._thread = threading.Thread(target=self._run, args=(call, *args), daemon=True)
        self._thread.start()

    def _run(self, call, *args):
        try:
            self.outcome.append(call(*args))
        except Exception as error:
            self.outcome.append(error)

    def finish(self):
        self._thread.join(20)
        assert not self._thread.is_alive(), "the call hangs"
        return self.outcome[0]


def wait_until(condition):
    """Polls, so that a test waits no longer than it must."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


def seconds_to_stop(server, bounded):
    start = time.monotonic()
    bounded(server.stop)
    return time.monotonic() - start


def soon_at_least_once(pair, attempt):
    """Whether `attempt` takes much less than our drain time, though the machine may be busy."""
    limit = 3 if pair.server_lib.is_ours else float("inf")
    return any(attempt() < limit for _ in range(3))


def test_while_sampling(our_client, bounded, impatient):
    # Reverb's client waits for ever for a server that has stopped to come back.
    server = our_client.start(our_client.table(rate_limiter=our_client.rate_limiters.MinSize(3)))
    client = our_client.connect(server)
    client.insert([1], {"t": 1.0})
    call = Call(client.sample, "t", 1)
    bounded(server.stop)
    assert isinstance(call.finish(), RuntimeError)


def test_while_flushing(our_client, bounded, impatient):
    server = our_client.start(our_client.server_lib.Table.queue("t", 1))
    client = our_client.connect(server)
    writer = client.trajectory_writer(1)
    for i in range(3):
        writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
    wait_until(lambda: client.size("t") == 1)
    call = Call(writer.flush)
    bounded(server.stop)
    outcome = call.finish()
    if outcome is None and not our_client.server_lib.is_ours:
        return  # Reverb's server, while it stops, may confirm items that it never inserted.
    assert isinstance(outcome, RuntimeError)
    with pytest.raises((RuntimeError, our_client.client_lib.ReverbError)):
        writer.flush(timeout_ms=2000)
    with contextlib.suppress(RuntimeError):  # It may say once more that items were lost.
        writer.close()


def test_idle_writers_do_not_hold_up_stop(pair, bounded):
    def attempt():
        server = pair.start(pair.table())
        client = pair.connect(server)
        client.insert([1], {"t": 1.0})
        client.values("t", 1)
        writer = client.trajectory_writer(1)
        writer.append([1])
        writer.flush()
        seconds = seconds_to_stop(server, bounded)
        assert client.raw is not None and writer.raw is not None
        return seconds

    assert soon_at_least_once(pair, attempt)


def test_idle_clients_do_not_hold_up_stop(pair, bounded):
    def attempt():
        server = pair.start(pair.table())
        client = pair.connect(server)
        client.insert([1], {"t": 1.0})
        client.values("t", 1)
        seconds = seconds_to_stop(server, bounded)
        assert client.raw is not None
        return seconds

    assert soon_at_least_once(pair, attempt)


def test_a_sample_that_is_not_finished(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    client = pair.connect(server)
    for i in range(5):
        client.insert([i], {"t": 1.0})
    samples = client.raw.sample("t", 4)
    assert bounded(next, samples)[0].data[0].item() == 0
    bounded(samples.close)
    bounded(server.stop, seconds=20)


def test_closing_a_blocked_writer(pair, bounded):
    server = pair.start(pair.server_lib.Table.queue("t", 1))
    client = pair.connect(server)
    writer = client.trajectory_writer(1)
    for i in range(3):
        writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
    bounded(writer.raw.close, seconds=20)
    bounded(server.stop, seconds=20)
