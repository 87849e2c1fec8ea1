"""When configs are applied. Random ones are in test_structured_writer_random.py."""

import numpy as np
import pytest

STEP = {"a": None, "b": None}


def config(lib, *conditions, index=-1, **options):
    pattern = lib.structured.pattern_from_transform(STEP, lambda step: {"x": step["a"][index]})
    return lib.structured.create_config(pattern, "t", conditions, **options)


@pytest.fixture
def client(pair):
    return pair.serve(pair.server_lib.Table.queue("t", 1000))


def values(client):
    size = client.size("t")
    return client.values("t", size) if size else []


def test_steps_since_applied_go_on_over_episodes(pair, client):
    condition = pair.client_lib.structured.Condition
    writer = client.structured_writer(
        [config(pair.client_lib, condition.steps_since_applied() >= 3)]
    )
    for i in range(8):
        writer.append({"a": i, "b": 0})
        if i % 2:
            writer.end_episode()
    writer.flush()
    assert values(client) == [2, 5]


def test_at_the_end_of_the_episode(pair, client):
    condition = pair.client_lib.structured.Condition
    writer = client.structured_writer([config(pair.client_lib, condition.is_end_episode())])
    writer.end_episode()
    for i in range(4):
        writer.append({"a": i, "b": 0})
        if i % 2:
            writer.end_episode()
            writer.end_episode()
    assert values(client) == [1, 3]


@pytest.mark.parametrize("clear_buffers", [True, False])
def test_history_over_episodes(pair, client, clear_buffers):
    writer = client.structured_writer([config(pair.client_lib, index=slice(-2, None))])
    for i in range(4):
        writer.append({"a": i, "b": 0})
        if i == 1:
            writer.end_episode(clear_buffers=clear_buffers)
    writer.end_episode()
    samples = client.sample("t", client.size("t"), emit_timesteps=False)
    between = [] if clear_buffers else [[1, 2]]
    assert [sample.data[0].tolist() for sample in samples] == [[0, 1], *between, [2, 3]]


@pytest.mark.parametrize("dtype", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split())
def test_on_integers_of_any_type(pair, client, dtype):
    condition = pair.client_lib.structured.Condition.data(STEP)["b"]
    writer = client.structured_writer([config(pair.client_lib, condition == 1)])
    for i, value in enumerate([1, 0, 1]):
        writer.append({"a": i, "b": np.array(value, dtype)})
    writer.flush()
    assert values(client) == [0, 2]


@pytest.mark.parametrize("value", [1.0, np.float32(1), b"1", "1", 1j, np.ones([2], int)])
def test_not_on_other_data(pair, client, value):
    condition = pair.client_lib.structured.Condition.data(STEP)["b"]
    writer = client.structured_writer(
        [config(pair.client_lib, condition == 1), config(pair.client_lib, condition != 1)]
    )
    writer.append({"a": 1, "b": value})
    writer.flush()
    assert values(client) == []


def test_remainders_truncate(pair, client):
    condition = pair.client_lib.structured.Condition.data(STEP)["b"]
    writer = client.structured_writer([config(pair.client_lib, condition % 3 == 1)])
    for i in range(-5, 5):
        writer.append({"a": i, "b": i})
    writer.flush()
    assert values(client) == [1, 4]


def test_columns_that_steps_do_not_have(pair, client):
    lib = pair.client_lib
    missing = lib.structured.ConditionProto(flat_source_index=9, eq=1, inverse=True)
    bad = config(lib)
    bad.flat[0].flat_source_index = 7
    writer = client.structured_writer([config(lib, missing), bad, config(lib)])
    writer.append({"a": 1, "b": 2})
    writer.flush()
    assert values(client) == [1]


def test_whole_numbers_beyond_32_bits(our_client):
    client = our_client.serve(our_client.server_lib.Table.queue("t", 100))
    data = our_client.client_lib.structured.Condition.data(STEP)["b"]
    writer = client.structured_writer(
        [config(our_client.client_lib, data == 3), config(our_client.client_lib, data >= 0)]
    )
    for i, value in enumerate([2**32 + 3, 2**31, -(2**40) + 5, 3]):
        writer.append({"a": i, "b": value})
    writer.flush()
    assert values(client) == [0, 1, 3, 3]


def test_a_pattern_waits_for_its_steps_whatever_the_buffer_length_may_be(our_client):
    client = our_client.serve(our_client.server_lib.Table.queue("t", 100))
    lib = our_client.client_lib
    short = lib.structured.ConditionProto(buffer_length=True, ge=3, inverse=True)
    writer = client.structured_writer([config(lib, short, index=slice(-2, None))])
    for i in range(3):
        writer.append({"a": i, "b": 0})
    writer.flush()
    samples = client.sample("t", client.size("t"), emit_timesteps=False)
    assert [sample.data[0].tolist() for sample in samples] == [[0, 1], [1, 2]]


def test_building_conditions(lib):
    condition = lib.structured.Condition
    index = condition.step_index()
    built = [
        index == 3, index != 3, index >= 3, index > 3, index < 3, index <= 3,
        index % 4 == 3, index % 4 != 3, condition.steps_since_applied() >= 2,
        condition.is_end_episode(), condition.data({"x": 0, "y": [1, 2]})["y"][1] == 1,
    ]  # fmt: skip
    assert [item.SerializeToString(deterministic=True).hex() for item in built] == [
        "08012803", "080128034001", "08013003", "08013004", "080130034001", "080130044001",
        "08013a0408041003", "08013a04080410034001", "10013002", "20012801", "28014802",
    ]  # fmt: skip
