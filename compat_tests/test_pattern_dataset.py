"""PatternDataset: the items of a StructuredWriter, of a dataset of steps and without a server."""

import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

tf = pytest.importorskip("tensorflow")

STEP = {"a": None, "b": None, "last": None}


def steps(num_steps=6, ends=(2,)):
    def step(i, last):
        return {"a": i, "b": tf.cast([i, -i], tf.float32), "last": last}

    is_last = [i in ends for i in range(num_steps)]
    dataset = tf.data.Dataset.from_tensor_slices(
        (np.arange(num_steps), np.array(is_last, dtype=bool))
    )
    return dataset.map(step)


def is_last(step):
    return step["last"]


def config(lib, transform, *conditions, **options):
    pattern = lib.structured.pattern_from_transform(STEP, transform)
    return lib.structured.create_config(pattern, "t", conditions, **options)


def last_two(step):
    return {"x": step["a"][-2:]}


def elements(lib, configs, respect_episode_boundaries=True, dataset=None):
    dataset = lib.PatternDataset(
        steps() if dataset is None else dataset, configs, respect_episode_boundaries, is_last
    )
    return [
        tf.nest.map_structure(lambda leaf: leaf.tolist(), e) for e in dataset.as_numpy_iterator()
    ]


def xs(lib, *args, **kwargs):
    return [element["x"] for element in elements(lib, *args, **kwargs)]


def test_within_episodes(lib):
    assert xs(lib, [config(lib, last_two)]) == [[0, 1], [1, 2], [3, 4], [4, 5]]


def test_over_episodes(lib):
    expected = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert xs(lib, [config(lib, last_two)], False) == expected


@pytest.mark.parametrize("respect_episode_boundaries", [True, False])
def test_at_the_end_of_the_episode(lib, respect_episode_boundaries):
    condition = lib.structured.Condition.is_end_episode()
    assert xs(lib, [config(lib, last_two, condition)], respect_episode_boundaries) == [[1, 2]]


@pytest.mark.parametrize("respect_episode_boundaries", [True, False])
def test_steps_are_counted_within_episodes(lib, respect_episode_boundaries):
    condition = lib.structured.Condition.step_index() == 1
    got = xs(lib, [config(lib, last_two, condition)], respect_episode_boundaries)
    assert got == [[0, 1], [3, 4]]


def test_a_config_waits_as_long_as_those_before_it(lib):
    def last_three(step):
        return {"x": step["a"][-3:]}

    two, three = config(lib, last_two), config(lib, last_three)
    assert xs(lib, [three, two]) == [[0, 1, 2], [1, 2], [3, 4, 5], [4, 5]]
    two, three = config(lib, last_two), config(lib, last_three)
    assert xs(lib, [two, three]) == [[0, 1], [1, 2], [0, 1, 2], [3, 4], [4, 5], [3, 4, 5]]


def test_the_structure_is_the_patterns(lib):
    def transform(step):
        return {"x": (step["a"][-1], {"y": step["b"][-2:]})}

    dataset = lib.PatternDataset(steps(), [config(lib, transform)], True, is_last)
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == {
        "x": (tf.TensorSpec([], tf.int64), {"y": tf.TensorSpec([2, 2], tf.float32)})
    }
    [first] = dataset.take(1).as_numpy_iterator()
    assert first["x"][0] == 1
    np.testing.assert_array_equal(first["x"][1]["y"], [[0, 0], [1, -1]])


def test_lengths_that_differ_are_unknown(lib):
    configs = [config(lib, last_two), config(lib, lambda step: {"x": step["a"][-3:]})]
    dataset = lib.PatternDataset(steps(), configs, True, is_last)
    assert dataset.element_spec == {"x": tf.TensorSpec([None], tf.int64)}


def test_in_graph_mode(lib):
    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for element in lib.PatternDataset(steps(), [config(lib, last_two)], True, is_last):
            result += tf.reduce_sum(element["x"])
        return result

    assert int(total()) == 20


def test_every_pass_begins_anew(lib):
    dataset = lib.PatternDataset(steps(), [config(lib, last_two)], True, is_last)
    first, second = list(dataset.as_numpy_iterator()), list(dataset.as_numpy_iterator())
    assert len(first) == len(second) == 4


def test_repeated(our_lib):
    dataset = our_lib.PatternDataset(steps(), [config(our_lib, last_two)], True, is_last)
    assert len(list(dataset.repeat(3))) == 12


def test_an_error_of_the_input_comes_after_the_items_before_it(lib):
    def step(step):
        checked = tf.debugging.check_numerics(1 / (4 - tf.cast(step["a"], tf.float32)), "bad")
        return {**step, "b": checked}

    dataset = lib.PatternDataset(
        steps().map(step), [config(lib, lambda s: {"x": s["b"][-2:]})], True, is_last
    )
    iterator = iter(dataset)
    for _ in range(2):
        next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
        next(iterator)


def test_the_end_is_a_scalar_bool(lib):
    with pytest.raises(ValueError, match="must return `bool`"):
        lib.PatternDataset(steps(), [config(lib, last_two)], True, lambda step: step["a"])


def test_configs_must_fit_together(lib):
    with pytest.raises(ValueError, match="At least one config"):
        lib.PatternDataset(steps(), [], True, is_last)
    other = config(lib, lambda step: {"y": step["a"][-1]})
    with pytest.raises(ValueError, match="pattern_structure"):
        lib.PatternDataset(steps(), [config(lib, last_two), other], True, is_last)


def test_with_info(lib):
    make = lib.import_module("pattern_dataset").pattern_dataset_with_info
    dataset = make(steps(), [config(lib, last_two)], True, is_last)
    [first] = dataset.take(1).as_numpy_iterator()
    assert type(first).__name__ == "ReplaySample"
    assert set(first.info) == {0}
    assert first.data["x"].tolist() == [0, 1]


def test_signature_of_the_constructor(libs):
    names = [list(inspect.signature(lib.PatternDataset).parameters) for lib in libs]
    assert all(each == names[0] for each in names)


COMPARISONS = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "ge": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "mod_eq": lambda left, right: left % 3 == right,
    "mod_ne": lambda left, right: left % 3 != right,
}


@st.composite
def cases(draw):
    configs = []
    for _ in range(draw(st.integers(1, 3))):
        start = -draw(st.integers(1, 4))
        conditions = []
        for _ in range(draw(st.integers(0, 2))):
            left = draw(st.sampled_from(["step_index", "steps_since_applied", "data"]))
            compare = draw(st.sampled_from(sorted(COMPARISONS)))
            conditions.append((left, compare, draw(st.integers(0, 4))))
        configs.append((start, conditions, draw(st.integers(0, 3)) == 0))
    num_steps = draw(st.integers(1, 12))
    ends = draw(st.sets(st.integers(0, num_steps - 1), max_size=4))
    return configs, num_steps, ends, draw(st.booleans())


def build(lib, start, conditions, at_end):
    condition, built = lib.structured.Condition, []
    for left, compare, value in conditions:
        builder = condition.data(STEP)["a"] if left == "data" else getattr(condition, left)()
        built.append(COMPARISONS[compare](builder, value))
    if at_end:
        built.append(condition.is_end_episode())
    return config(lib, lambda step: {"x": step["a"][start:], "y": step["b"][-1]}, *built)


def test_all_make_the_same_items(libs):
    made = 0

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def check(case):
        nonlocal made
        configs, num_steps, ends, respect = case
        dataset = steps(num_steps, ends)
        first, *others = [
            elements(lib, [build(lib, *each) for each in configs], respect, dataset) for lib in libs
        ]
        made += len(first)
        assert all(other == first for other in others)

    check()
    assert made > 50


def test_lists_of_patterns_become_tuples(our_lib):
    dataset = our_lib.PatternDataset(
        steps(), [config(our_lib, lambda step: [step["a"][-1]])], True, is_last
    )
    assert [x.tolist() for (x,) in dataset.as_numpy_iterator()] == [0, 1, 2, 3, 4, 5]


def test_slices_with_a_step(our_lib):
    transforms = [lambda step: {"x": step["a"][-3::2]}]
    assert xs(our_lib, [config(our_lib, each) for each in transforms]) == [[0, 2], [3, 5]]


def test_inside_interleave(our_lib):
    dataset = tf.data.Dataset.range(2).interleave(
        lambda _: our_lib.PatternDataset(steps(), [config(our_lib, last_two)], True, is_last)
    )
    assert len(list(dataset)) == 8


def test_configs_are_not_changed(our_lib):
    one = config(our_lib, last_two)
    before = one.SerializeToString(deterministic=True)
    our_lib.PatternDataset(steps(), [one], True, is_last)
    assert one.SerializeToString(deterministic=True) == before


def test_steps_of_different_shapes(our_lib):
    dataset = tf.data.Dataset.range(4).map(lambda i: (i, tf.range(i)))
    pattern = our_lib.structured.pattern_from_transform(
        (None, None), lambda step: {"x": step[0][-2:], "y": step[1][-1]}
    )
    items = our_lib.PatternDataset(
        dataset, [our_lib.structured.create_config(pattern, "t")], True, lambda *step: False
    )
    assert [len(item["y"]) for item in items] == [1, 2, 3]


@pytest.mark.parametrize("bad", ["pattern", "table", "condition"])
def test_bad_configs_do_not_end_the_process(our_lib, bad):
    structured = our_lib.structured
    one = config(our_lib, last_two)
    if bad == "pattern":
        one.flat[0].start = 3
    elif bad == "table":
        one.ClearField("table")
    else:
        one.conditions.append(structured.ConditionProto(step_index=True))
    with pytest.raises(ValueError, match="position 0"):
        our_lib.PatternDataset(steps(), [one], True, is_last)


def test_priorities_are_not_looked_at(our_lib):
    made = config(our_lib, last_two)
    made.ClearField("priority")
    assert xs(our_lib, [made]) == [[0, 1], [1, 2], [3, 4], [4, 5]]
