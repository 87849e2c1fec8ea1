"""What a sample says about its item."""

import pytest


def test_values_and_types(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Prioritized(1.0)))
    client.insert([0], {"t": 1.0})
    client.insert([1], {"t": 3.0})
    seen = {}
    for steps in client.sample("t", 50):
        info = steps[0].info
        assert info._fields == ("key", "probability", "table_size", "priority", "times_sampled")
        assert [type(value) for value in info] == [int, float, int, float, int]
        assert info.table_size == 2
        seen[steps[0].data[0].item()] = (info.probability, info.priority)
    assert seen == {0: (0.25, 1.0), 1: (0.75, 3.0)}


def test_times_sampled_counts_this_sample(pair):
    client = pair.serve()
    client.insert([1], {"t": 1.0})
    infos = [steps[0].info for steps in client.sample("t", 3)]
    assert [info.times_sampled for info in infos] == [1, 2, 3]
    assert len({info.key for info in infos}) == 1


def test_keys_are_distinct(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    for i in range(10):
        client.insert([i], {"t": 1.0})
    assert len({steps[0].info.key for steps in client.sample("t", 10)}) == 10


def test_keys_are_exact(pair):
    # Keys fill 64 bits: one that went through a float would miss its item.
    client = pair.serve()
    for left in reversed(range(10)):
        client.insert([left], {"t": 1.0})
    for left in reversed(range(10)):
        [[step]] = client.sample("t")
        client.mutate_priorities("t", deletes=[step.info.key])
        assert client.size("t") == left


def test_table_size_is_that_at_sampling(pair):
    client = pair.serve(pair.table(max_times_sampled=2))
    client.insert([1], {"t": 1.0})
    client.insert([2], {"t": 1.0})
    sizes = [steps[0].info.table_size for steps in client.sample("t", 4)]
    assert sizes == [2, 2, 1, 1]


@pytest.mark.parametrize("name,probability", [("Fifo", 1.0), ("MaxHeap", 1.0), ("Uniform", 0.25)])
def test_probability_of_each_selector(pair, name, probability):
    client = pair.serve(pair.table(sampler=getattr(pair.selectors, name)()))
    for i in range(4):
        client.insert([i], {"t": float(i)})
    [[step]] = client.sample("t")
    assert step.info.probability == probability


def test_sample_info_of_the_library(lib):
    info = lib.SampleInfo(key=1, probability=0.5, table_size=3, priority=2.0, times_sampled=4)
    sample = lib.ReplaySample(info=info, data=[1])
    assert tuple(info) == (1, 0.5, 3, 2.0, 4)
    assert sample == (info, [1])
