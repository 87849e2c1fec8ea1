"""Updates and deletes by key."""

import numpy as np
import pytest


@pytest.fixture
def filled(pair):
    """A client of a table that gives the highest priority first, and its items' keys."""

    def make(priorities):
        client = pair.serve(pair.table(sampler=pair.selectors.MaxHeap()))
        keys = []
        for i, priority in reversed(list(enumerate(priorities))):
            client.insert([i], {"t": 1e9})  # First of all, so that its key can be seen.
            [[step]] = client.sample("t")
            assert step.data[0].item() == i
            client.mutate_priorities("t", {step.info.key: float(priority)})
            keys.insert(0, step.info.key)
        return client, keys

    return make


def order(client):
    """(value, priority) of all items, the highest priority first; empties the table."""
    found = []
    for _ in range(client.size("t")):
        [[step]] = client.sample("t")
        found.append((step.data[0].item(), step.info.priority))
        client.mutate_priorities("t", deletes=[step.info.key])
    return found


def test_updates(filled):
    client, keys = filled([1, 2, 3])
    client.mutate_priorities("t", updates={keys[0]: 10.0, keys[2]: 0.5})
    assert order(client) == [(0, 10.0), (1, 2.0), (2, 0.5)]


def test_deletes(filled):
    client, keys = filled([1, 2, 3])
    client.mutate_priorities("t", deletes=[keys[2], keys[0]])
    assert order(client) == [(1, 2.0)]


def test_updates_and_deletes_at_once(filled):
    client, keys = filled([1, 2, 3])
    client.mutate_priorities("t", {keys[0]: 5.0}, [keys[1]])
    assert order(client) == [(0, 5.0), (2, 3.0)]


def test_a_key_both_updated_and_deleted_is_gone(filled):
    client, keys = filled([1, 2])
    client.mutate_priorities("t", {keys[0]: 5.0}, [keys[0]])
    assert order(client) == [(1, 2.0)]


def test_unknown_keys_are_ignored(filled):
    client, keys = filled([1, 2])
    client.mutate_priorities("t", {keys[0] ^ 1: 9.0, keys[1]: 0.5}, [keys[1] ^ 1])
    assert order(client) == [(0, 1.0), (1, 0.5)]


def test_deleting_twice_is_no_error(filled):
    client, keys = filled([1, 2])
    client.mutate_priorities("t", deletes=[keys[0], keys[0]])
    client.mutate_priorities("t", deletes=[keys[0]])
    assert client.size("t") == 1


def test_nothing_to_do(filled):
    client, _ = filled([1, 2])
    client.mutate_priorities("t")
    client.mutate_priorities("t", {}, [])
    assert client.size("t") == 2


def test_numpy_keys_and_priorities(filled):
    client, keys = filled([1, 2, 3])
    client.mutate_priorities("t", {np.uint64(keys[0]): np.float32(7.5)})
    client.mutate_priorities("t", deletes=np.array([keys[1]], np.uint64))
    assert order(client) == [(0, 7.5), (2, 3.0)]


def test_integers_are_priorities(filled):
    client, keys = filled([1, 2])
    client.mutate_priorities("t", {keys[0]: 7})
    assert order(client)[0] == (0, 7.0)


@pytest.mark.parametrize("priority", [-1.0, float("nan")])
def test_bad_priorities_are_refused(pair, priority):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    client.insert([1], {"t": 2.0})
    [[step]] = client.sample("t")
    with pytest.raises(ValueError, match="[Pp]riority"):
        client.mutate_priorities("t", {step.info.key: priority})


@pytest.mark.parametrize("priority", [-1.0, float("nan"), float("inf")])
def test_bad_priorities_change_nothing(our_server, priority):
    # Wherever in the call. They are weights of the remover here.
    selectors = our_server.selectors
    table = our_server.table(sampler=selectors.Lifo(), remover=selectors.Prioritized(1.0))
    client = our_server.serve(table)
    keys = []
    for i in range(2):
        client.insert([i], {"t": 2.0})
        [[step]] = client.sample("t")
        keys.append(step.info.key)
    with pytest.raises(ValueError, match="[Pp]riority"):
        client.mutate_priorities("t", {keys[0]: priority})
    with pytest.raises(ValueError, match="[Pp]riority"):
        client.mutate_priorities("t", {keys[0]: 5.0, keys[1]: priority}, [keys[1]])
    for _ in range(2):
        [[step]] = client.sample("t")
        assert step.info.priority == 2.0
        client.mutate_priorities("t", deletes=[step.info.key])
    assert client.size("t") == 0


@pytest.mark.parametrize("key", [-1, 1 << 64, "a"])
def test_what_is_no_key_is_refused(filled, key):
    client, _ = filled([1])
    with pytest.raises((TypeError, ValueError, OverflowError)):
        client.mutate_priorities("t", {key: 1.0})
    with pytest.raises((TypeError, ValueError, OverflowError)):
        client.mutate_priorities("t", deletes=[key])


def test_updates_must_be_a_mapping(filled):
    client, _ = filled([1])
    with pytest.raises((AttributeError, TypeError)):
        client.mutate_priorities("t", "abc")


def test_counts_are_untouched(filled):
    client, keys = filled([1, 2])
    before = client.server_info()["t"].rate_limiter_info
    client.mutate_priorities("t", {keys[0]: 3.0}, [keys[1]])
    after = client.server_info()["t"].rate_limiter_info
    assert after.insert_stats.completed == before.insert_stats.completed == 2
    assert after.sample_stats.completed == before.sample_stats.completed == 2


def test_many_at_once(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Uniform(), max_size=500))
    for i in range(300):
        client.insert([i], {"t": 1.0})
    keys = list({steps[0].info.key for steps in client.sample("t", 1000)})
    client.mutate_priorities("t", dict.fromkeys(keys[:50], 2.0), keys[50:])
    assert client.size("t") == 300 - len(keys[50:])
    raised = {s[0].info.key for s in client.sample("t", 1000) if s[0].info.priority == 2.0}
    assert raised <= set(keys[:50]) and len(raised) > 25
