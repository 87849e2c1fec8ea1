"""A server that stops in the middle of a call: the call ends, and says that nothing came of it."""

import threading

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
    """Polls, so that a test waits no longer than it must; the test's timeout ends it."""
    pause = threading.Event()
    while not condition():
        pause.wait(0.005)


def test_while_sampling(our_client, bounded):
    # Reverb's client waits for ever for a server that has stopped to come back.
    server = our_client.start(our_client.table(rate_limiter=our_client.rate_limiters.MinSize(3)))
    client = our_client.connect(server)
    client.insert([1], {"t": 1.0})
    call = Call(client.sample, "t", 1)
    bounded(server.stop)
    assert isinstance(call.finish(), RuntimeError)


def test_while_flushing(our_client, bounded):
    server = our_client.start(our_client.server_lib.Table.queue("t", 1))
    client = our_client.connect(server)
    writer = client.trajectory_writer(1)
    for i in range(3):
        writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
    wait_until(lambda: client.size("t") == 1)
    call = Call(writer.flush)
    bounded(server.stop)
    assert isinstance(call.finish(), Exception)
    with pytest.raises(Exception):
        writer.flush(timeout_ms=2000)
    try:
        writer.close()
    except RuntimeError:
        pass  # It may say once more that items were lost; it must not hang.


def test_idle_connections_do_not_hold_up_stop(pair, bounded):
    server = pair.start(pair.table())
    client = pair.connect(server)
    client.insert([1], {"t": 1.0})
    client.values("t", 1)
    writer = client.trajectory_writer(1)
    writer.append([1])
    writer.flush()
    # Much less than any drain time: nothing is under way.
    bounded(server.stop, seconds=3)
    assert client.raw is not None and writer.raw is not None


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
