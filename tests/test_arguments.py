"""Arguments of a wrong type are refused by their names."""

import numpy as np
import pytest
from tables import make_table

import gear_reverb
from gear_reverb import rate_limiters, selectors, structured

LIMITERS = {
    "min_size_to_sample": lambda: rate_limiters.MinSize(1.5),
    "samples_per_insert": lambda: rate_limiters.SampleToInsertRatio("x", 1, 1.0),
    "error_buffer": lambda: rate_limiters.SampleToInsertRatio(1.0, 1, "x"),
    "max_diff": lambda: rate_limiters.RateLimiter(1.0, 1, 0.0, None),
    "size": lambda: rate_limiters.Queue("x"),
    "priority_exponent": lambda: selectors.Prioritized("a"),
}
TABLES = {
    "name": 3,
    "sampler": "x",
    "remover": None,
    "max_size": 2.5,
    "max_times_sampled": 1.5,
    "rate_limiter": 3,
    "extensions": [3],
    "seed": "x",
}
SERVERS = {"port": "x", "checkpointer": "x", "tables": ["x"]}
CALLS = {
    "table": [
        lambda client: client.reset(3),
        lambda client: client.insert(1, {3: 1.0}),
        lambda client: client.mutate_priorities(3, {1: 1.0}),
        lambda client: client.batch_sampler(3, 4),
        lambda client: client.insert_batch(3, np.zeros(2), 1.0),
        lambda client: next(client.sample(3)),
    ],
    "num_samples": [lambda client: next(client.sample("t", 1.5))],
    "num_timesteps": [lambda client: step(client.writer(1)).create_item("t", 1.5, 1.0)],
    r"priorities\['t'\]": [
        lambda client: client.insert(1, {"t": "x"}),
        lambda client: client.insert(1, {"t": "x"}, timeout=9),
    ],
    "priority": [lambda client: step(client.writer(1)).create_item("t", 1, "x")],
    "max_sequence_length": [lambda client: client.writer(1.5), lambda client: client.writer("x")],
    "chunk_length": [lambda client: client.writer(3, chunk_length=1.5)],
    "max_in_flight_items": [lambda client: client.writer(3, max_in_flight_items="x")],
    "num_keep_alive_refs": [
        lambda client: client.trajectory_writer(1.5),
        lambda client: client.trajectory_writer(2).configure(
            (), num_keep_alive_refs="x", max_chunk_length=None
        ),
    ],
    "max_chunk_length": [
        lambda client: client.trajectory_writer(2).configure(
            (), num_keep_alive_refs=2, max_chunk_length=1.5
        )
    ],
    "max_in_flight_bytes": [lambda client: client.trajectory_writer(1, max_in_flight_bytes="x")],
    "validate_items": [lambda client: client.trajectory_writer(1, validate_items="x")],
    "block_until_num_items": [
        lambda client: client.trajectory_writer(1).flush(1.5),
        lambda client: structured_writer(client).flush("x"),
    ],
    "timeout_ms": [
        lambda client: client.trajectory_writer(1).flush(0, 1.5),
        lambda client: client.trajectory_writer(1).end_episode(timeout_ms="x"),
        lambda client: structured_writer(client).flush(0, "x"),
        lambda client: structured_writer(client).end_episode(True, "x"),
    ],
    "clear_buffers": [lambda client: client.trajectory_writer(1).end_episode("x")],
    "batch_size": [
        lambda client: client.batch_sampler("t", 4.0),
        lambda client: client.sample_batch("t", "x"),
        lambda client: client.fixed_batch_sampler("t", 4.0, device="cpu"),
    ],
    "prefetch": [lambda client: client.batch_sampler("t", 4, prefetch=1.5)],
    "ragged": [lambda client: client.batch_sampler("t", 4, ragged=3)],
    "max_bytes": [lambda client: client.batch_sampler("t", 4, max_bytes="x")],
    "timeout": [
        lambda client: client.sample_batch("t", 4, timeout="x"),
        lambda client: client.batch_sampler("t", 4, timeout="x"),
        lambda client: client.insert(1, {"t": 1.0}, timeout="x"),
        lambda client: client.insert_batch("t", np.zeros(2), 1.0, timeout="x"),
        lambda client: next(client.sample("t", timeout="x")),
        lambda client: client.reset("t", timeout="x"),
        lambda client: client.server_info("x"),
    ],
    "beta": [
        lambda client: client.sample_batch("t", 4, beta="x"),
        lambda client: next(client.batch_sampler("t", 4, beta="x")),
    ],
}


def step(writer):
    writer.append(1)
    return writer


def structured_writer(client):
    pattern = structured.pattern_from_transform(None, lambda s: s[-1])
    return client.structured_writer([structured.create_config(pattern, "t")])


def refused(name):
    return pytest.raises(TypeError, match=rf"\b{name} must (be|have) .*, but is ")


@pytest.mark.parametrize("name", LIMITERS)
def test_of_limiters_and_selectors(name):
    with refused(name):
        LIMITERS[name]()


@pytest.mark.parametrize("name", TABLES)
def test_of_tables(name):
    with refused(name):
        gear_reverb.Table(**{**table_arguments(), name: TABLES[name]})


def table_arguments():
    return {
        "name": "t",
        "sampler": selectors.Fifo(),
        "remover": selectors.Fifo(),
        "max_size": 9,
        "rate_limiter": rate_limiters.MinSize(1),
    }


def test_integers_that_are_too_large():
    with pytest.raises(TypeError, match=r"out of range: .*seed=-1\b"):
        gear_reverb.Table(**table_arguments(), seed=-1)


@pytest.mark.parametrize("name", SERVERS)
def test_of_servers(name):
    with refused(name):
        gear_reverb.Server(**{"tables": [make_table()], name: SERVERS[name]})


def test_of_clients():
    with refused("server_address"):
        gear_reverb.Client(3)


@pytest.mark.parametrize(
    ("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls]
)
def test_of_calls(serve, name, call):
    client = serve()
    with refused(name):
        call(client)
