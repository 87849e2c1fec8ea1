"""Many threads write, sample and update at once; nothing is lost or mixed up."""

import concurrent.futures

import numpy as np
import pytest

THREADS = 6
ITEMS = 40


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(THREADS) as executor:
        yield executor


def write(client, thread):
    with client.trajectory_writer(2) as writer:
        for i in range(ITEMS):
            writer.append({"who": thread, "x": np.full(8, thread * ITEMS + i)})
            history = writer.history
            writer.create_item("t", 1.0, {"who": history["who"][-1:], "x": history["x"][-1:]})
        writer.flush()


def test_writers(pair, pool):
    client = pair.serve(pair.table(max_size=1000, max_times_sampled=1))
    list(pool.map(lambda thread: write(client, thread), range(THREADS)))
    assert client.size("t") == THREADS * ITEMS
    assert client.server_info()["t"].num_episodes == THREADS
    seen = set()
    last = [-1] * THREADS
    for sample in client.sample("t", THREADS * ITEMS, emit_timesteps=False):
        who, x = int(sample.data[0][0]), sample.data[1][0]
        assert (x == x[0]).all() and x[0] // ITEMS == who
        assert x[0] > last[who]  # One writer's items stay in order.
        last[who] = x[0]
        seen.add(int(x[0]))
    assert seen == set(range(THREADS * ITEMS))


def test_writers_and_samplers_of_a_queue(pair, pool):
    client = pair.serve(pair.server_lib.Table.queue("t", 5))
    writers = [pool.submit(write, client, thread) for thread in range(3)]

    def take():
        samples = client.sample("t", ITEMS, emit_timesteps=False)
        return [int(sample.data[1][0, 0]) for sample in samples]

    takers = [pool.submit(take) for _ in range(3)]
    for writer in writers:
        writer.result()
    taken = [value for taker in takers for value in taker.result()]
    assert sorted(taken) == list(range(3 * ITEMS))


def test_updates_and_deletes_while_sampling(pair, pool):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0), max_size=1000))
    write(client, 1)

    def churn(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            keys = [s.info.key for s in client.sample("t", 4, emit_timesteps=False)]
            client.mutate_priorities("t", {key: float(rng.random()) + 0.1 for key in keys})

    list(pool.map(churn, range(THREADS)))
    assert client.size("t") == ITEMS
    assert client.server_info()["t"].rate_limiter_info.sample_stats.completed == THREADS * 80


def test_one_client_per_thread(pair, pool):
    server = pair.start(pair.table(max_size=1000))
    list(pool.map(lambda thread: write(pair.connect(server), thread), range(THREADS)))
    assert pair.connect(server).size("t") == THREADS * ITEMS
