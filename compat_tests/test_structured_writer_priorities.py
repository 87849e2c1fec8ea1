"""Priorities of the items of a StructuredWriter."""

import numpy as np
import pytest

STEP = {"a": None, "td": None}


def run(pair, transform, priority, errors):
    """Priorities of the items, oldest first."""
    client = pair.serve(pair.server_lib.Table.queue("t", 100))
    structured = pair.client_lib.structured
    pattern = structured.pattern_from_transform(STEP, transform)
    writer = client.structured_writer([structured.create_config(pattern, "t", (), priority)])
    for error in errors:
        writer.append({"a": 0, "td": error})
    writer.flush()
    samples = client.sample("t", client.size("t"), emit_timesteps=False)
    return [float(sample.info.priority) for sample in samples]


def td_error(pair, weight):
    return pair.client_lib.structured.td_error(weight, STEP, lambda step: step["td"])


def last_three(step):
    return {"td": step["td"][-3:]}


def test_default_is_one(pair):
    assert run(pair, last_three, None, [1.0] * 3) == [1.0]


@pytest.mark.parametrize("value", [0.0, 0.25, 7.0])
def test_constant(pair, value):
    priority = pair.client_lib.structured.constant_priority_fn(value)
    assert run(pair, last_three, priority, [1.0] * 4) == [value, value]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_td_error_is_between_maximum_and_mean(pair, dtype):
    errors = [dtype(error) for error in [1, -2, 3, -10]]
    assert run(pair, last_three, td_error(pair, 0.5), errors) == [2.5, 7.5]
    assert run(pair, last_three, td_error(pair, 1.0), errors) == [3.0, 10.0]
    assert run(pair, last_three, td_error(pair, 0.0), errors) == [2.0, 5.0]


def test_td_error_counts_the_steps_of_the_item(pair):
    errors = [1.0, 100.0, 3.0]
    assert run(pair, lambda s: {"td": s["td"][-3::2]}, td_error(pair, 0.5), errors) == [2.5]
    assert run(pair, lambda s: {"td": s["td"][-1]}, td_error(pair, 1.0), errors) == errors


def test_td_error_of_the_last_of_several_columns(pair):
    def transform(step):
        return {"first": step["td"][-1], "last": step["td"][-2:]}

    assert run(pair, transform, td_error(pair, 1.0), [5.0, 1.0]) == [5.0]


def test_td_error_that_is_not_in_the_item_is_zero(pair):
    assert run(pair, lambda s: {"a": s["a"][-1]}, td_error(pair, 0.5), [5.0]) == [0.0]


@pytest.mark.parametrize(
    "error", [np.float16(1), True, "1", np.uint8(1), np.array([1.0, 2.0]), np.zeros([0])]
)
def test_td_errors_are_scalars_of_some_types(pair, error):
    with pytest.raises(ValueError, match="TD Error expects a"):
        run(pair, lambda s: {"td": s["td"][-1]}, td_error(pair, 0.5), [error])


def test_nan_is_refused(pair):
    with pytest.raises(ValueError, match="priority"):
        run(pair, last_three, td_error(pair, 0.5), [1.0, float("nan"), 2.0])


def test_a_config_without_priority_fails_when_it_is_applied(pair):
    client = pair.serve(pair.server_lib.Table.queue("t", 100))
    structured = pair.client_lib.structured
    pattern = structured.pattern_from_transform(STEP, lambda step: {"a": step["a"][-2]})
    config = structured.create_config(pattern, "t")
    config.ClearField("priority")
    writer = client.structured_writer([config])
    writer.append({"a": 0, "td": 0})
    with pytest.raises(ValueError, match=r"[Pp]riority function"):
        writer.append({"a": 0, "td": 0})
