"""When a limiter lets items in and out: `can_insert` and `can_sample` against a plain model."""

import dataclasses

import pytest

COUNTS = [1, 2, 3, 5, 10]


@dataclasses.dataclass
class Model:
    """A limiter's definition, counted by hand."""

    samples_per_insert: float
    min_size: int
    min_diff: float
    max_diff: float
    inserts: int = 0
    samples: int = 0
    size: int = 0

    def can_insert(self, n):
        if self.size + n <= self.min_size:
            return True
        return (self.inserts + n) * self.samples_per_insert - self.samples <= self.max_diff

    def can_sample(self, n):
        if self.size < self.min_size:
            return False
        return self.inserts * self.samples_per_insert - self.samples - n >= self.min_diff


UNLIMITED = 1e300
LIMITERS = {
    "min_size_1": (("MinSize", 1), (1.0, 1, -UNLIMITED, UNLIMITED)),
    "min_size_3": (("MinSize", 3), (1.0, 3, -UNLIMITED, UNLIMITED)),
    "ratio_2_range": (("SampleToInsertRatio", 2.0, 2, (0.0, 6.0)), (2.0, 2, 0.0, 6.0)),
    "ratio_1_tight": (("SampleToInsertRatio", 1.0, 2, 1.0), (1.0, 2, 1.0, 3.0)),
    "ratio_1_wide": (("SampleToInsertRatio", 1.0, 1, 5.0), (1.0, 1, -4.0, 6.0)),
    "ratio_half": (("SampleToInsertRatio", 0.5, 2, 2.0), (0.5, 2, -1.0, 3.0)),
    "queue_3": (("Queue", 3), (1.0, 1, 0.0, 3.0)),
    "stack_3": (("Stack", 3), (1.0, 1, 0.0, 3.0)),
    "plain": (("RateLimiter", 1.5, 2, -2.0, 4.0), (1.5, 2, -2.0, 4.0)),
}
# i: insert, s: sample, d: sample and delete, r: reset. Those that would block are left out.
OPERATIONS = "iissisdiiissssdirisiss"


@pytest.mark.parametrize("name", LIMITERS)
def test_follows_the_model(pair, name):
    (kind, *arguments), options = LIMITERS[name]
    table = pair.table(rate_limiter=getattr(pair.rate_limiters, kind)(*arguments))
    client = pair.serve(table)
    model = Model(*options)

    def check(done):
        answers = [(n, table.can_insert(n), table.can_sample(n)) for n in COUNTS]
        assert answers == [(n, model.can_insert(n), model.can_sample(n)) for n in COUNTS], done
        info = client.server_info()["t"]
        stats = info.rate_limiter_info
        assert stats.insert_stats.completed == model.inserts, done
        assert stats.sample_stats.completed == model.samples, done
        assert info.current_size == model.size, done

    check("")
    for i, operation in enumerate(OPERATIONS):
        if operation == "i" and model.can_insert(1):
            client.insert([i], {"t": 1.0})
            model.inserts += 1
            model.size += 1
        elif operation in "sd" and model.can_sample(1):
            [[step]] = client.sample("t")
            model.samples += 1
            if operation == "d":
                client.mutate_priorities("t", deletes=[step.info.key])
                model.size -= 1
        elif operation == "r":
            client.reset("t")
            model.inserts = model.samples = model.size = 0
        check(OPERATIONS[: i + 1])


def test_eviction_counts_every_insert(pair):
    limiter = pair.rate_limiters.SampleToInsertRatio(1.0, 1, 5.0)
    table = pair.table(rate_limiter=limiter, max_size=2)
    client = pair.serve(table)
    for i in range(6):
        assert table.can_insert(1)
        client.insert([i], {"t": 1.0})
    assert not table.can_insert(1)
    assert client.size("t") == 2


@pytest.mark.parametrize("name", LIMITERS)
def test_info_gives_the_options(pair, name):
    (kind, *arguments), options = LIMITERS[name]
    client = pair.serve(pair.table(rate_limiter=getattr(pair.rate_limiters, kind)(*arguments)))
    info = client.server_info()["t"].rate_limiter_info
    bounds = [max(-UNLIMITED, info.min_diff), min(UNLIMITED, info.max_diff)]
    assert (info.samples_per_insert, info.min_size_to_sample, *bounds) == options
