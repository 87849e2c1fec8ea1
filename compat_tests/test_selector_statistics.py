"""Random selectors draw by their probabilities, and say them.

A chi-squared statistic over the counts is held against a quantile that a right implementation
exceeds once in a hundred million runs; a wrong weighting exceeds it by far.
"""

import collections

import numpy as np
import pytest

NUM_SAMPLES = 2000


def chi_squared_limit(degrees: int) -> float:
    """The 1 - 1e-8 quantile, by Wilson and Hilferty's approximation."""
    spread = 2 / (9 * degrees)
    return degrees * (1 - spread + 5.612 * np.sqrt(spread)) ** 3


def assert_drawn_by(client, expected):
    """`expected`: each item's probability, the item's value being its place."""
    expected = np.array(expected) / np.sum(expected)
    counts = collections.Counter()
    for sample in client.sample("t", NUM_SAMPLES, emit_timesteps=False):
        value = int(sample.data[0].item())
        counts[value] += 1
        assert sample.info.probability == pytest.approx(expected[value], rel=1e-6)
    possible = expected > 0
    drawn = np.array([counts[i] for i in range(len(expected))])
    assert not drawn[~possible].any()
    wanted = expected[possible] * NUM_SAMPLES
    statistic = np.sum((drawn[possible] - wanted) ** 2 / wanted)
    assert statistic < chi_squared_limit(max(1, possible.sum() - 1))


def fill(client, priorities):
    for i, priority in enumerate(priorities):
        client.insert([i], {"t": float(priority)})


def test_uniform(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Uniform()))
    fill(client, [0, 1, 10, 100, 5])
    assert_drawn_by(client, [1, 1, 1, 1, 1])


@pytest.mark.parametrize("exponent", [1.0, 0.5, 2.0])
def test_prioritized(pair, exponent):
    priorities = np.array([1.0, 2.0, 3.0, 4.0, 0.5])
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(exponent)))
    fill(client, priorities)
    assert_drawn_by(client, priorities**exponent)


def test_prioritized_after_updates_and_deletes(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    fill(client, [1, 1, 1, 1])
    keys = {}
    while len(keys) < 4:
        for sample in client.sample("t", 10, emit_timesteps=False):
            keys[int(sample.data[0].item())] = sample.info.key
    client.mutate_priorities("t", {keys[0]: 5.0, keys[2]: 3.0}, deletes=[keys[1]])
    assert_drawn_by(client, [5, 0, 3, 1])


def test_prioritized_over_a_wide_range(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    fill(client, [1e-6, 1e6, 2e6, 1e-6])
    assert_drawn_by(client, [1e-6, 1e6, 2e6, 1e-6])


def test_uniform_after_deletes(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Uniform(), max_size=6))
    fill(client, range(8))  # The first two are evicted.
    assert_drawn_by(client, [0, 0, 1, 1, 1, 1, 1, 1])
