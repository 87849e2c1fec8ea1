"""Deterministic selectors: the exact order, ties and updates included."""

import pytest

PRIORITIES = [2, 5, 5, 1, 1, 5, 2, 2, 1]
ORDER = {
    "Fifo": [0, 1, 2, 3, 4, 5, 6, 7, 8],
    "Lifo": [8, 7, 6, 5, 4, 3, 2, 1, 0],
    "MaxHeap": [1, 2, 5, 0, 6, 7, 3, 4, 8],  # Of equals, the oldest.
    "MinHeap": [3, 4, 8, 0, 6, 7, 1, 2, 5],
}


@pytest.fixture
def filled(pair):
    def make(selector, priorities, times=0):
        sampler = getattr(pair.selectors, selector)()
        client = pair.serve(pair.table(sampler=sampler, max_times_sampled=times))
        for i, priority in enumerate(priorities):
            client.insert([i], {"t": float(priority)})
        return client

    return make


@pytest.mark.parametrize("selector", ORDER)
def test_order(filled, selector):
    client = filled(selector, PRIORITIES, times=1)
    assert client.values("t", len(PRIORITIES)) == ORDER[selector]


@pytest.mark.parametrize("selector", ORDER)
def test_the_same_item_as_long_as_nothing_changes(filled, selector):
    client = filled(selector, PRIORITIES)
    assert client.values("t", 5) == ORDER[selector][:1] * 5


@pytest.mark.parametrize("selector,expected", [("Fifo", 0), ("Lifo", 2), ("MaxHeap", 1)])
def test_after_an_update_of_the_first_choice(filled, selector, expected):
    client = filled(selector, [1, 1, 1])
    [[step]] = client.sample("t")
    client.mutate_priorities("t", {step.info.key: 0.5})
    assert client.values("t", 1) == [expected]


def test_an_updated_item_is_the_youngest_of_its_equals_in_a_heap(filled):
    client = filled("MaxHeap", [1, 1, 1])
    [[step]] = client.sample("t")
    assert step.data[0].item() == 0
    client.mutate_priorities("t", {step.info.key: 1.0})
    assert client.values("t", 1) == [1]


def test_heaps_follow_updates_both_ways(filled):
    client = filled("MaxHeap", [3, 2, 1])
    [[step]] = client.sample("t")
    client.mutate_priorities("t", {step.info.key: 1.5})
    assert client.values("t", 1) == [1]
    client.mutate_priorities("t", {step.info.key: 2.5})
    assert client.values("t", 1) == [0]


@pytest.mark.parametrize("selector", ["MaxHeap", "MinHeap"])
def test_heaps_order_zero_and_extreme_priorities(filled, selector):
    client = filled(selector, [1e300, 0.0, 1e-300, 1.0], times=1)
    ascending = [1, 2, 3, 0]
    expected = ascending if selector == "MinHeap" else ascending[::-1]
    assert client.values("t", 4) == expected
