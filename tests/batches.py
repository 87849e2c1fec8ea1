"""Items for tests of batches."""

import numpy as np
from tables import make_table

from gear_reverb import rate_limiters


def queue(name="q"):
    """A table that gives each item once, in order of insertion."""
    return make_table(
        name, rate_limiter=rate_limiters.Queue(1000), max_times_sampled=1, max_size=1000
    )


def insert(client, steps_by_item, table="t", priority=1.0):
    """One item for each list of steps; a step is a dict of columns."""
    with client.trajectory_writer(num_keep_alive_refs=64) as writer:
        for i, item in enumerate(steps_by_item):
            for step in item:
                writer.append(step)
            columns = {name: writer.history[name][-len(item) :] for name in item[0]}
            value = priority[i] if isinstance(priority, list) else priority
            writer.create_item(table, value, columns)
            writer.end_episode()


LENGTH = 5


def alike(rng, count):
    """Items of three columns, all of LENGTH steps."""
    return [
        [
            {
                "a": rng.standard_normal(11, np.float32),
                "b": rng.integers(0, 256, (3, 5), np.uint8),
                "c": np.int64(rng.integers(2**40)),
            }
            for _ in range(LENGTH)
        ]
        for _ in range(count)
    ]


def steps(*values):
    return [{"x": np.int32(value)} for value in values]


def samples_done(client, table):
    return client.server_info()[table].rate_limiter_info.sample_stats.completed
