"""Iterators and sessions that end while they wait for an item."""

import threading
import time

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")

v1 = tf.compat.v1


def make(pair, address, kind):
    def items(_=None):
        return pair.client_lib.TrajectoryDataset.from_table_signature(address, "t", 4)

    def batches(_=None):
        return items().batch(2)

    return {
        "items": items,
        "batches": batches,
        "prefetched": lambda: batches().prefetch(2),
        "interleaved": lambda: tf.data.Dataset.range(2).interleave(
            batches, cycle_length=2, num_parallel_calls=2, deterministic=False
        ),
    }[kind]()


KINDS = ["items", "batches", "prefetched", "interleaved"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_closes_while_it_waits(our_client, bounded, kind):
    address = numbered.serve(our_client, 0)
    errors = []
    with tf.Graph().as_default():
        element = v1.data.make_one_shot_iterator(make(our_client, address, kind)).get_next()
        session = v1.Session()

        def run():
            try:
                session.run(element)
            except tf.errors.OpError as error:
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        time.sleep(0.5)  # That it waits is likely, not certain; either way it has to end.
        bounded(session.close)
        thread.join(20)
    assert not thread.is_alive()
    # What prefetches looks at its thread, which may have ended by then, as well as at itself.
    ends = (tf.errors.OutOfRangeError,) if kind == "prefetched" else ()
    assert isinstance(errors[0], (tf.errors.CancelledError, *ends))


@pytest.mark.parametrize("kind", KINDS)
def test_an_iterator_goes_away(our_client, bounded, kind):
    address = numbered.serve(our_client, 20)
    iterator = iter(make(our_client, address, kind))
    bounded(next, iterator)

    def forget():
        nonlocal iterator
        del iterator

    bounded(forget)


def test_the_server_stops(our_client, bounded, impatient):
    server = our_client.start(our_client.table(signature=numbered.SIGNATURE))
    dataset = make(our_client, f"localhost:{server.port}", "items")
    outcome = []

    def run():
        try:
            next(iter(dataset))
        except tf.errors.OpError as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(0.3)
    bounded(server.stop)
    thread.join(20)
    assert not thread.is_alive() and len(outcome) == 1
