"""What a limiter's constructor takes, refuses and makes of it."""

import sys

import pytest

REFUSED = {
    "min_size_0": ("MinSize", [0], "min_size_to_sample"),
    "min_size_negative": ("MinSize", [-1], "min_size_to_sample"),
    "ratio_0": ("SampleToInsertRatio", [0.0, 1, 1.0], "samples_per_insert"),
    "ratio_negative": ("SampleToInsertRatio", [-1.0, 1, 1.0], "samples_per_insert"),
    "ratio_min_size_0": ("SampleToInsertRatio", [1.0, 0, 5.0], "min_size_to_sample"),
    "buffer_0": ("SampleToInsertRatio", [1.0, 1, 0.0], "error_buffer"),
    "buffer_below_1": ("SampleToInsertRatio", [0.5, 10, 0.5], "error_buffer"),
    "buffer_below_ratio": ("SampleToInsertRatio", [2.0, 10, 1.0], "error_buffer"),
    "range_upside_down": ("SampleToInsertRatio", [1.0, 10, (10.0, 5.0)], "error_buffer"),
    "range_below_twice_the_ratio": ("SampleToInsertRatio", [2.0, 10, (1, 2)], "error_buffer"),
}
ACCEPTED = {
    "min_size": ("MinSize", [3], (1.0, 3, -sys.float_info.max, sys.float_info.max)),
    "ratio": ("SampleToInsertRatio", [1.0, 10, 5.0], (1.0, 10, 5.0, 15.0)),
    "ratio_smallest_buffer": ("SampleToInsertRatio", [2.0, 10, 2.0], (2.0, 10, 18.0, 22.0)),
    "ratio_range": ("SampleToInsertRatio", [1.0, 10, (5.0, 10.0)], (1.0, 10, 5.0, 10.0)),
    "ratio_range_from_0": ("SampleToInsertRatio", [2.0, 10, (0, 100.0)], (2.0, 10, 0.0, 100.0)),
    "queue": ("Queue", [5], (1.0, 1, 0.0, 5.0)),
    "stack": ("Stack", [5], (1.0, 1, 0.0, 5.0)),
    "plain": ("RateLimiter", [2.0, 3, -4.0, 5.5], (2.0, 3, -4.0, 5.5)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(lib, case):
    kind, arguments, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        getattr(lib.rate_limiters, kind)(*arguments)


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(lib, case):
    kind, arguments, expected = ACCEPTED[case]
    limiter = getattr(lib.rate_limiters, kind)(*arguments)
    assert isinstance(limiter, lib.rate_limiters.RateLimiter)
    info = lib.table(rate_limiter=limiter).info.rate_limiter_info
    actual = (info.samples_per_insert, info.min_size_to_sample, info.min_diff, info.max_diff)
    assert actual == expected


def test_a_fractional_size_is_refused(lib):
    with pytest.raises(TypeError):
        lib.rate_limiters.MinSize(1.5)


def test_keyword_arguments(lib):
    lib.rate_limiters.MinSize(min_size_to_sample=2)
    lib.rate_limiters.SampleToInsertRatio(
        samples_per_insert=1.0, min_size_to_sample=2, error_buffer=3.0
    )
    lib.rate_limiters.Queue(size=2)
    lib.rate_limiters.Stack(size=2)
    lib.rate_limiters.RateLimiter(
        samples_per_insert=1.0, min_size_to_sample=2, min_diff=0.0, max_diff=3.0
    )


def test_its_text_names_the_options(lib):
    text = repr(lib.rate_limiters.SampleToInsertRatio(1.0, 10, 5.0))
    assert text.startswith("RateLimiter(") and "samples_per_insert=1" in text
    assert "min_size_to_sample=10" in text
