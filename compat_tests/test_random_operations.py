"""Random operations on a table of each pair side by side, and on a model that fits on a screen.

After every operation all of them agree on the table's size and counts, on what may be inserted and
sampled next, and on every item drawn. The examples are the same in every run.
"""

import dataclasses

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

UNLIMITED = 1e300
LIMITERS = {
    ("MinSize", 1): (1.0, 1, -UNLIMITED, UNLIMITED),
    ("MinSize", 2): (1.0, 2, -UNLIMITED, UNLIMITED),
    ("SampleToInsertRatio", 1.0, 1, 3.0): (1.0, 1, -2.0, 4.0),
    ("SampleToInsertRatio", 2.0, 2, (-1.0, 7.0)): (2.0, 2, -1.0, 7.0),
    ("Queue", 3): (1.0, 1, 0.0, 3.0),
}
# The order in which each selector picks items.
ORDERS = {
    "Fifo": lambda item: item.inserted,
    "Lifo": lambda item: -item.inserted,
    "MaxHeap": lambda item: (-item.priority, item.updated),
    "MinHeap": lambda item: (item.priority, item.updated),
}


@dataclasses.dataclass(frozen=True)
class Options:
    sampler: str
    remover: str
    max_size: int
    max_times_sampled: int
    limiter: tuple


@dataclasses.dataclass
class Item:
    value: int
    priority: float
    inserted: int
    updated: int
    times_sampled: int = 0


class Model:
    """A table with deterministic selectors, as plain as it can be."""

    def __init__(self, options: Options):
        self.options = options
        self.ratio, self.min_size, self.min_diff, self.max_diff = LIMITERS[options.limiter]
        self.clock = 0
        self.reset()

    def reset(self):
        self.items: dict[int, Item] = {}
        self.inserts = self.samples = self.unique = self.deleted = 0

    def can_insert(self, n):
        fits = (self.inserts + n) * self.ratio - self.samples <= self.max_diff
        return len(self.items) + n <= self.min_size or fits

    def can_sample(self, n):
        fits = self.inserts * self.ratio - self.samples - n >= self.min_diff
        return len(self.items) >= self.min_size and fits

    def _pick(self, selector) -> Item:
        return min(self.items.values(), key=ORDERS[selector])

    def insert(self, value, priority):
        self.clock += 1
        self.items[value] = Item(value, priority, self.clock, self.clock)
        self.inserts += 1
        if len(self.items) > self.options.max_size:
            self.delete(self._pick(self.options.remover).value)

    def sample(self):
        """(value, priority, times sampled, size of the table)."""
        item = self._pick(self.options.sampler)
        self.unique += item.times_sampled == 0
        item.times_sampled += 1
        self.samples += 1
        size = len(self.items)
        if item.times_sampled == self.options.max_times_sampled:
            self.delete(item.value)
        return item.value, item.priority, item.times_sampled, size

    def update(self, value, priority):
        self.clock += 1
        if value in self.items:
            self.items[value].priority = priority
            self.items[value].updated = self.clock

    def delete(self, value):
        if self.items.pop(value, None):
            self.deleted += 1

    def state(self):
        """Every item is an episode of its own."""
        size = len(self.items)
        counts = (size, size, self.deleted, self.unique, self.inserts, self.samples)
        return counts, [(self.can_insert(n), self.can_sample(n)) for n in (1, 2, 3)]


class Real:
    """The same operations by a client; items are known by the key seen when they were sampled."""

    def __init__(self, pair, options: Options):
        def selector(name):
            return getattr(pair.selectors, name)()

        kind, *arguments = options.limiter
        self.table = pair.table(
            "t",
            selector(options.sampler),
            selector(options.remover),
            max_size=options.max_size,
            max_times_sampled=options.max_times_sampled,
            rate_limiter=getattr(pair.rate_limiters, kind)(*arguments),
        )
        self.client = pair.serve(self.table)
        self.keys: dict[int, int] = {}

    def insert(self, value, priority):
        self.client.insert([value], {"t": priority})

    def sample(self):
        [[step]] = self.client.sample("t")
        value = step.data[0].item()
        self.keys[value] = step.info.key
        return value, step.info.priority, step.info.times_sampled, step.info.table_size

    def update(self, value, priority):
        self.client.mutate_priorities("t", {self.keys[value]: priority})

    def delete(self, value):
        self.client.mutate_priorities("t", deletes=[self.keys[value]])

    def reset(self):
        self.client.reset("t")

    def state(self):
        info = self.client.server_info()["t"]
        stats = info.rate_limiter_info
        counts = (info.current_size, info.num_episodes, info.num_deleted_episodes)
        counts += (info.num_unique_samples,)
        counts += (stats.insert_stats.completed, stats.sample_stats.completed)
        return counts, [(self.table.can_insert(n), self.table.can_sample(n)) for n in (1, 2, 3)]


OPTIONS = st.builds(
    Options,
    sampler=st.sampled_from([*ORDERS, "MaxHeap", "MinHeap"]),
    remover=st.sampled_from(list(ORDERS)),
    max_size=st.integers(1, 4),
    max_times_sampled=st.sampled_from([0, 0, 1, 3]),
    limiter=st.sampled_from(list(LIMITERS)),
)
# Few, so that ties are common.
PRIORITIES = st.sampled_from([0.0, 1.0, 2.0])
OPERATION = st.one_of(
    st.tuples(st.just("insert"), PRIORITIES),
    st.tuples(st.just("insert"), PRIORITIES),
    st.tuples(st.just("sample")),
    st.tuples(st.just("sample")),
    st.tuples(st.just("update"), st.integers(0, 3), PRIORITIES),
    st.tuples(st.just("update"), st.integers(0, 3), PRIORITIES),
    st.tuples(st.just("delete"), st.integers(0, 3)),
    st.tuples(st.just("reset")),
)
OPERATIONS = st.lists(OPERATION, min_size=20, max_size=50)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(options=OPTIONS, operations=OPERATIONS)
# An update makes an item the youngest of its equals, for the sampler as for the remover.
@example(
    Options("MaxHeap", "MaxHeap", 3, 0, ("MinSize", 1)),
    [("insert", 1.0)] * 3 + [("sample",), ("update", 0, 1.0), ("sample",), ("insert", 1.0)] * 3,
)
@example(
    Options("MinHeap", "MinHeap", 3, 0, ("MinSize", 1)),
    [("insert", 1.0)] * 3 + [("sample",), ("update", 0, 1.0), ("sample",), ("insert", 1.0)] * 3,
)
def test_all_agree(all_pairs, options, operations):
    model = Model(options)
    pairs = all_pairs()
    tables = {}
    try:
        tables |= {pair.name: Real(pair, options) for pair in pairs}
        seen = []  # Values that were sampled, so that their keys are known.
        for i, (operation, *arguments) in enumerate(operations):
            if operation == "insert":
                if not model.can_insert(1):
                    continue
                arguments = [i, *arguments]
            elif operation == "sample":
                if not model.can_sample(1):
                    continue
            elif operation in ("update", "delete"):
                if not seen:
                    continue
                arguments[0] = seen[-1 - arguments[0] % len(seen)]
            expected = getattr(model, operation)(*arguments)
            actual = {name: getattr(t, operation)(*arguments) for name, t in tables.items()}
            assert actual == dict.fromkeys(tables, expected)
            if operation == "sample":
                seen.append(expected[0])
            expected = model.state()
            assert {n: t.state() for n, t in tables.items()} == dict.fromkeys(tables, expected)
    finally:
        tables.clear()  # Clients go before their servers.
        for pair in pairs:
            pair.stop()
