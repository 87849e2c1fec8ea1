"""Items of priority zero: never drawn by `Prioritized`, unless there are no others."""

import collections

import pytest


def draw(client, n=400):
    samples = client.sample("t", n, emit_timesteps=False)
    counts = collections.Counter(int(s.data[0].item()) for s in samples)
    return counts, {int(s.data[0].item()): s.info.probability for s in samples}


def test_beside_others_they_are_never_drawn(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    for i, priority in enumerate([0.0, 1.0, 0.0, 3.0]):
        client.insert([i], {"t": priority})
    counts, probabilities = draw(client)
    assert set(counts) == {1, 3}
    assert probabilities == {1: 0.25, 3: 0.75}


def test_among_themselves_they_are_drawn_evenly(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    for i in range(3):
        client.insert([i], {"t": 0.0})
    counts, probabilities = draw(client)
    assert min(counts[i] for i in range(3)) > 400 / 3 - 7 * (400 * 2 / 9) ** 0.5
    assert probabilities == {i: pytest.approx(1 / 3) for i in range(3)}


def test_an_exponent_of_zero_does_not_raise_them(pair):
    # 0 ** 0 is 1 elsewhere, not here.
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(0.0)))
    for i, priority in enumerate([0.0, 4.0, 9.0, 16.0]):
        client.insert([i], {"t": priority})
    counts, probabilities = draw(client)
    assert set(counts) == {1, 2, 3}
    assert probabilities == {i: pytest.approx(1 / 3) for i in [1, 2, 3]}


def test_updates_to_and_from_zero(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    client.insert([0], {"t": 1.0})
    [[zeroth]] = client.sample("t")
    client.insert([1], {"t": 1.0})
    client.mutate_priorities("t", {zeroth.info.key: 0.0})
    assert set(draw(client)[0]) == {1}
    client.mutate_priorities("t", {zeroth.info.key: 1e12})
    counts, _ = draw(client)
    assert counts[0] > 390


def test_deterministic_selectors_do_not_mind(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    for i, priority in enumerate([0.0, 1.0, 0.0]):
        client.insert([i], {"t": priority})
    assert client.values("t", 3) == [0, 1, 2]
