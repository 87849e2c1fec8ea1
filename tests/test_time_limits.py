"""Limits that are over, and those that are none, in calls that insert and sample items."""

import math

import numpy as np
import pytest

import gear_reverb
from gear_reverb import errors


@pytest.fixture
def full(serve):
    """A client of a queue of one item that is full."""
    client = serve(gear_reverb.Table.queue("q", 1))
    client.insert([1], {"q": 1.0})
    return client


@pytest.mark.parametrize("timeout", [0, -0.0001, -5])
def test_a_limit_that_is_over_ends_a_call_at_once(full, timeout):
    with pytest.raises(errors.DeadlineExceededError):
        full.insert([2], {"q": 1.0}, timeout=timeout)
    with pytest.raises(errors.DeadlineExceededError):
        full.insert_batch("q", [np.zeros(3)], 1.0, timeout=timeout)


def test_infinity_is_no_limit(full):
    list(full.sample("q", 1, timeout=math.inf))
    full.server_info(timeout=math.inf)
    full.insert([2], {"q": 1.0}, timeout=math.inf)
    list(full.sample("q", 1, timeout=1e30))
    full.insert_batch("q", [np.zeros(1)], 1.0, timeout=math.inf)


def test_a_limit_is_a_number(full):
    for call in (
        lambda: full.insert([2], {"q": 1.0}, timeout=math.nan),
        lambda: list(full.sample("q", 1, timeout=math.nan)),
        lambda: full.insert_batch("q", [np.zeros(1)], 1.0, timeout=math.nan),
    ):
        with pytest.raises(ValueError, match="timeout .nan. is not a number"):
            call()


@pytest.mark.parametrize("timeout_ms", [0, -3])
def test_writers_end_an_episode_at_once(full, timeout_ms):
    writer = full.trajectory_writer(1)
    writer.append([1])
    writer.create_item("q", 1.0, [writer.history[0][:]])
    with pytest.raises(errors.DeadlineExceededError):
        writer.end_episode(timeout_ms=timeout_ms)
    list(full.sample("q", 1))
    writer.close()
