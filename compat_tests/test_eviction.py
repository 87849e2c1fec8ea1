"""Which item a full table removes: the remover's choice, the new item being a candidate too."""

import pytest

PRIORITIES = [2, 5, 5, 1, 1, 5, 2, 2, 1]
KEPT = {
    "Fifo": [6, 7, 8],
    "Lifo": [0, 1, 2],
    "MaxHeap": [3, 4, 8],
    "MinHeap": [1, 2, 5],
}


def drain(client, table="t"):
    """All items' values, in the order of the sampler."""
    values = []
    for _ in range(client.size(table)):
        [[step]] = client.sample(table)
        values.append(step.data[0].item())
        client.mutate_priorities(table, deletes=[step.info.key])
    return values


@pytest.mark.parametrize("remover", KEPT)
def test_deterministic_removers(pair, remover):
    client = pair.serve(pair.table(remover=getattr(pair.selectors, remover)(), max_size=3))
    for i, priority in enumerate(PRIORITIES):
        client.insert([i], {"t": float(priority)})
        assert client.size("t") == min(i + 1, 3)
    assert drain(client) == KEPT[remover]


@pytest.mark.parametrize("remover", ["Uniform", "Prioritized"])
def test_random_removers_keep_the_size(pair, remover):
    arguments = [1.0] if remover == "Prioritized" else []
    client = pair.serve(
        pair.table(remover=getattr(pair.selectors, remover)(*arguments), max_size=5)
    )
    for i in range(30):
        client.insert([i], {"t": 1.0})
    assert client.size("t") == 5
    kept = drain(client)
    assert kept == sorted(set(kept)) and len(kept) == 5


def test_a_prioritized_remover_spares_zero_priorities(pair):
    client = pair.serve(pair.table(remover=pair.selectors.Prioritized(1.0), max_size=2))
    for i, priority in enumerate([0.0, 0.0, 1.0, 1.0, 1.0]):
        client.insert([i], {"t": priority})
    assert drain(client) == [0, 1]


def test_evictions_are_not_samples(pair):
    client = pair.serve(pair.table(max_size=2))
    for i in range(5):
        client.insert([i], {"t": 1.0})
    info = client.server_info()["t"]
    assert info.rate_limiter_info.insert_stats.completed == 5
    assert info.rate_limiter_info.sample_stats.completed == 0
    assert info.num_unique_samples == 0


def test_an_update_changes_what_a_heap_removes(pair):
    client = pair.serve(pair.table(remover=pair.selectors.MinHeap(), max_size=3))
    for i in range(3):
        client.insert([i], {"t": 10.0 + i})
    [[first]] = client.sample("t")
    client.mutate_priorities("t", {first.info.key: 100.0})
    client.insert([3], {"t": 50.0})
    assert drain(client) == [0, 2, 3]
