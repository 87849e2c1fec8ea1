"""What rate limiters make of their arguments."""

import logging
import sys

import pytest

from gear_reverb import rate_limiters


def bounds(limiter):
    return (
        limiter._samples_per_insert,
        limiter._min_size_to_sample,
        limiter._min_diff,
        limiter._max_diff,
    )


def test_min_size_limits_nothing_else():
    big = sys.float_info.max
    assert bounds(rate_limiters.MinSize(3)) == (1.0, 3, -big, big)


@pytest.mark.parametrize("kind", [rate_limiters.Queue, rate_limiters.Stack])
def test_queue_and_stack_hold_their_size(kind):
    assert bounds(kind(4)) == (1.0, 1, 0.0, 4)


def test_a_number_is_slack_to_both_sides():
    limiter = rate_limiters.SampleToInsertRatio(2.0, 10, 4.0)
    assert bounds(limiter) == (2.0, 10, 16.0, 24.0)


def test_a_pair_is_the_range():
    limiter = rate_limiters.SampleToInsertRatio(2.0, 10, (3.0, 25.0))
    assert bounds(limiter) == (2.0, 10, 3.0, 25.0)


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_are_positive(size):
    message = rf"min_size_to_sample \({size}\) must be a positive integer"
    with pytest.raises(ValueError, match=message):
        rate_limiters.MinSize(size)
    with pytest.raises(ValueError, match=message):
        rate_limiters.SampleToInsertRatio(1.0, size, 5.0)
    with pytest.raises(ValueError, match=message):
        rate_limiters.RateLimiter(1.0, size, 0.0, 1.0)


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan"), float("inf")])
def test_ratios_are_positive(ratio):
    with pytest.raises(ValueError, match="samples_per_insert"):
        rate_limiters.SampleToInsertRatio(ratio, 1, 5.0)
    with pytest.raises(ValueError, match="samples_per_insert"):
        rate_limiters.RateLimiter(ratio, 1, 0.0, 1.0)


def test_differences_are_numbers():
    with pytest.raises(ValueError, match="min_diff"):
        rate_limiters.RateLimiter(1.0, 1, float("nan"), 1.0)


@pytest.mark.parametrize(
    "ratio,buffer",
    [(1.0, 0.5), (0.5, 0.99), (4.0, 3.9), (1.0, (5.0, 1.0)), (2.0, (0.0, 3.9)), (2.0, -3.0)],
)
def test_a_buffer_must_let_something_happen(ratio, buffer):
    with pytest.raises(ValueError, match="size of error_buffer"):
        rate_limiters.SampleToInsertRatio(ratio, 10, buffer)


@pytest.mark.parametrize("ratio,buffer", [(0.5, 1), (0.1, 1.0), (4.0, 4.0), (2.0, (16.0, 20.0))])
def test_the_smallest_buffers(ratio, buffer):
    rate_limiters.SampleToInsertRatio(ratio, 10, buffer)


def test_a_range_above_the_balance_is_a_deadlock():
    rate_limiters.SampleToInsertRatio(2.0, 10, (20.0, 30.0))
    with pytest.raises(ValueError, match="deadlock"):
        rate_limiters.SampleToInsertRatio(2.0, 10, (20.1, 30.0))


def test_a_range_below_the_balance_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        rate_limiters.SampleToInsertRatio(2.0, 10, (0.0, 20.0))
        assert not caplog.records
        rate_limiters.SampleToInsertRatio(2.0, 10, (0.0, 19.9))
    assert "deadlock" in caplog.text


def test_repr_shows_the_parameters():
    text = repr(rate_limiters.RateLimiter(1.5, 2, 0.0, 5.0))
    for part in ("samples_per_insert=1.5", "min_diff=0", "max_diff=5", "min_size_to_sample=2"):
        assert part in text
