"""Which steps a pattern takes, and which patterns, conditions and configs are refused."""

import numpy as np
import pytest

STEP = {"a": None, "b": None}

SLICES = {
    "last": (-1, [0, 1, 2, 3, 4]),
    "before_last": (-2, [0, 1, 2, 3]),
    "slice": (slice(-2, None), [[0, 1], [1, 2], [2, 3], [3, 4]]),
    "slice_of_one": (slice(-1, None), [[0], [1], [2], [3], [4]]),
    "without_the_last": (slice(-3, -1), [[0, 1], [1, 2], [2, 3]]),
    "up_to_zero": (slice(-3, 0), [[0, 1, 2], [1, 2, 3], [2, 3, 4]]),
    "every_other": (slice(-3, None, 2), [[0, 2], [1, 3], [2, 4]]),
    "every_other_of_an_even_number": (slice(-4, None, 2), [[0, 2], [1, 3]]),
    "every_third": (slice(-4, None, 3), [[0, 3], [1, 4]]),
    "stop_alone": (slice(None, -2), [0, 1, 2, 3]),
    "longer_than_the_episode": (slice(-6, None), []),
}

REFUSED_SLICES = {
    "all": slice(None),
    "first": 0,
    "positive": 1,
    "positive_start": slice(1, None),
    "positive_stop": slice(-3, 1),
    "backwards": slice(-1, -3),
    "empty": slice(-3, -3),
    "negative_step": slice(-3, None, -1),
    "zero_step": slice(-3, None, 0),
    "step_without_start": slice(None, -2, 2),
}


def one_config(lib, index, **options):
    pattern = lib.structured.pattern_from_transform(STEP, lambda step: {"x": step["a"][index]})
    return lib.structured.create_config(pattern, **{"table": "t", **options})


def items(client):
    size = client.size("t")
    samples = client.sample("t", size, emit_timesteps=False) if size else []
    return [[leaf.tolist() for leaf in sample.data] for sample in samples]


@pytest.fixture
def client(pair):
    return pair.serve(pair.server_lib.Table.queue("t", 1000))


@pytest.mark.parametrize("case", SLICES)
def test_steps_of_a_pattern(pair, client, case):
    index, expected = SLICES[case]
    writer = client.structured_writer([one_config(pair.client_lib, index)])
    for i in range(5):
        writer.append({"a": i, "b": 0})
    writer.end_episode()
    assert items(client) == [[steps] for steps in expected]


def test_columns_of_arrays(pair, client):
    structured = pair.client_lib.structured
    pattern = structured.pattern_from_transform(
        STEP, lambda step: {"one": step["a"][-1], "many": step["a"][-3::2], "b": [step["b"][-2:]]}
    )
    writer = client.structured_writer([structured.create_config(pattern, "t")])
    frames = np.arange(5 * 4, dtype=np.uint8).reshape(5, 2, 2)
    for i in range(5):
        writer.append({"a": frames[i], "b": f"step {i}"})
    writer.flush()
    [first, *_] = client.sample("t", 3, emit_timesteps=False)
    b, many, one = first.data  # In the order of tree.flatten.
    np.testing.assert_array_equal(many, frames[[0, 2]])
    np.testing.assert_array_equal(one, frames[2])
    assert one.dtype == np.uint8
    assert b.tolist() == [b"step 1", b"step 2"]


def test_items_of_several_configs_come_in_their_order(pair, client):
    lib = pair.client_lib
    writer = client.structured_writer([one_config(lib, slice(-2, None)), one_config(lib, -1)])
    for i in range(3):
        writer.append({"a": i, "b": 0})
    writer.flush()
    assert items(client) == [[0], [[0, 1]], [1], [[1, 2]], [2]]


def test_a_column_that_no_config_uses_may_hold_anything(pair, client):
    writer = client.structured_writer([one_config(pair.client_lib, -1)])
    writer.append({"a": 1, "b": 2})
    writer.append({"a": 2, "b": "two"})
    writer.append({"a": 3, "b": np.zeros([3])})
    writer.flush()
    assert items(client) == [[1], [2], [3]]


def test_a_pattern_may_be_a_single_column(pair, client):
    structured = pair.client_lib.structured
    pattern = structured.pattern_from_transform(STEP, lambda step: step["b"][-1])
    writer = client.structured_writer([structured.create_config(pattern, "t")])
    writer.append({"a": 1, "b": 2})
    writer.flush()
    assert items(client) == [[2]]


@pytest.mark.parametrize("case", REFUSED_SLICES)
def test_refused_patterns(pair, client, case):
    lib = pair.client_lib
    good, bad = one_config(lib, -1), one_config(lib, REFUSED_SLICES[case])
    with pytest.raises(ValueError, match="position 1.*`st"):
        client.structured_writer([good, bad])


@pytest.mark.parametrize("key", ["x", None, 1.5, (1, 2), np.int64(-1)])
def test_a_column_is_indexed_by_integers_and_slices(lib, key):
    step = lib.structured.create_reference_step(STEP)
    with pytest.raises(ValueError, match="int or slice"):
        step["a"][key]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"step_index": True}, "cmp"),
        ({"eq": 1}, "left"),
        ({"step_index": True, "mod_eq": {}}, "mod"),
        ({"step_index": True, "mod_eq": {"mod": -2}}, "mod"),
        ({"step_index": True, "mod_eq": {"mod": 2, "eq": -1}}, "eq"),
        ({"is_end_episode": True, "eq": 0}, "is_end_episode"),
        ({"is_end_episode": True, "ge": 1}, "is_end_episode"),
        ({"is_end_episode": True, "eq": 1, "inverse": True}, "is_end_episode"),
        ({"flat_source_index": -1, "eq": 1}, "flat_source_index"),
    ],
)
def test_refused_conditions(pair, client, fields, reason):
    condition = pair.client_lib.structured.ConditionProto(**fields)
    with pytest.raises(ValueError, match=f"position 0.*{reason}"):
        client.structured_writer([one_config(pair.client_lib, -1, conditions=[condition])])


def test_refused_configs(pair, client):
    lib = pair.client_lib
    with pytest.raises(ValueError, match="At least one config"):
        client.structured_writer([])
    with pytest.raises(ValueError, match="position 0.*`flat` must not be empty"):
        client.structured_writer([lib.structured.create_config({}, "t")])
    with pytest.raises(ValueError, match="position 0.*`table` must not be empty"):
        client.structured_writer([one_config(lib, -1, table="")])
    config = one_config(lib, -1)
    config.flat[0].flat_source_index = -1
    with pytest.raises(ValueError, match="position 0.*flat_source_index"):
        client.structured_writer([config])


def test_configs_are_not_changed(pair, client):
    config = one_config(pair.client_lib, slice(-3, None))
    before = config.SerializeToString(deterministic=True)
    client.structured_writer([config])
    assert config.SerializeToString(deterministic=True) == before
