"""What a table's constructor takes and refuses."""

import numpy as np
import pytest


def test_positional_arguments(lib):
    table = lib.Table(
        "name",
        lib.selectors.Uniform(),
        lib.selectors.Fifo(),
        10,
        lib.rate_limiters.MinSize(2),
        3,
        [],
        {"x": lib.spec([2], np.float32)},
    )
    info = table.info
    assert (table.name, info.name, info.max_size, info.max_times_sampled) == ("name", "name", 10, 3)


@pytest.mark.parametrize(
    "options,error,message",
    [
        ({"max_size": 0}, ValueError, "max_size"),
        ({"max_size": -1}, ValueError, "max_size"),
        ({"max_size": 2.5}, TypeError, ""),
        ({"max_size": "x"}, TypeError, ""),
        ({"max_times_sampled": 2.5}, TypeError, ""),
        ({"max_times_sampled": 2**40}, (TypeError, ValueError), ""),
        ({"name": ""}, ValueError, "name"),
        ({"name": 3}, TypeError, ""),
        ({"sampler": "fifo"}, TypeError, ""),
        ({"remover": "fifo"}, TypeError, ""),
        ({"rate_limiter": "queue"}, (AttributeError, TypeError), ""),
        ({"extensions": [3]}, (AttributeError, TypeError), ""),
        ({"signature": "abc"}, ValueError, ""),
    ],
    ids=str,
)
def test_refused(lib, options, error, message):
    with pytest.raises(error, match=message):
        lib.table(**options)


def test_numpy_numbers(lib):
    assert lib.table(max_size=np.int64(5)).info.max_size == 5


def test_no_limit_of_samples_is_told_as_it_was_given(lib):
    assert lib.table(max_times_sampled=-1).info.max_times_sampled == -1


@pytest.mark.parametrize("shape", [[], [3], [None], [2, None, 4]], ids=str)
def test_signature_shapes(lib, shape, describe):
    table = lib.table(signature=lib.spec(shape, np.float32))
    assert describe(table.info.signature) == (tuple(shape), "float32")


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint64", "bool", "complex64"]
)
def test_signature_dtypes(lib, dtype, describe):
    table = lib.table(signature=[lib.spec([1], np.dtype(dtype))])
    assert describe(table.info.signature) == [((1,), dtype)]


def test_its_text_names_what_it_is(lib):
    text = repr(lib.table("some_name", max_size=17))
    assert text.startswith("Table(")
    assert "some_name" in text and "17" in text


@pytest.mark.parametrize("name", ["Fifo", "Lifo", "Uniform", "MaxHeap", "MinHeap"])
def test_selectors_take_no_arguments(lib, name):
    getattr(lib.selectors, name)()
    with pytest.raises(TypeError):
        getattr(lib.selectors, name)(1.0, 2.0)


def test_prioritized_needs_its_exponent(lib):
    lib.selectors.Prioritized(priority_exponent=0.5)
    with pytest.raises(TypeError):
        lib.selectors.Prioritized()
    with pytest.raises(TypeError):
        lib.selectors.Prioritized("x")
