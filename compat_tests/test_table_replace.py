"""`Table.replace` gives a new table with some options changed."""

import numpy as np
import pytest


@pytest.fixture
def table(lib):
    return lib.table(
        "original",
        sampler=lib.selectors.Prioritized(0.5),
        remover=lib.selectors.MinHeap(),
        max_size=9,
        rate_limiter=lib.rate_limiters.SampleToInsertRatio(2.0, 3, 10.0),
        max_times_sampled=4,
        signature=[lib.spec([2], np.float32)],
    )


def test_nothing(table):
    copy = table.replace()
    assert copy is not table
    expected, actual = vars(table.info), vars(copy.info)
    del expected["table_worker_time"], actual["table_worker_time"]
    assert actual == expected


@pytest.mark.parametrize(
    "option,value", [("name", "new"), ("max_size", 5), ("max_times_sampled", 0)]
)
def test_one_option(table, option, value):
    changed = table.replace(**{option: value}).info
    for field in ["name", "max_size", "max_times_sampled", "sampler_options", "remover_options"]:
        expected = value if field == option else getattr(table.info, field)
        assert getattr(changed, field) == expected
    assert changed.signature == table.info.signature
    assert str(changed.rate_limiter_info) == str(table.info.rate_limiter_info)


def test_selectors(lib, table):
    changed = table.replace(sampler=lib.selectors.MaxHeap(), remover=lib.selectors.Lifo()).info
    assert changed.sampler_options.WhichOneof("distribution") == "heap"
    assert changed.sampler_options.heap.min_heap is False
    assert changed.remover_options.WhichOneof("distribution") == "lifo"


def test_rate_limiter(lib, table):
    changed = table.replace(rate_limiter=lib.rate_limiters.MinSize(7)).info
    assert changed.rate_limiter_info.min_size_to_sample == 7


def test_signature(lib, table, describe):
    changed = table.replace(signature={"x": lib.spec([3], np.int32)}).info
    assert describe(changed.signature) == {"x": ((3,), "int32")}


def test_items_are_not_taken_along(pair):
    table = pair.table()
    pair.serve(table).insert([1], {"t": 1.0})
    client = pair.serve(table.replace())
    assert client.size("t") == 0
