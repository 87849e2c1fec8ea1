"""Steps appended in parts."""

import numpy as np
import pytest


@pytest.fixture
def written(pair):
    client = pair.serve()
    writer = client.trajectory_writer(3)
    writer.append({"a": 0, "b": 0})
    yield client, writer
    writer.close()


def test_the_parts_are_one_step(written):
    client, writer = written
    writer.append({"a": 1}, partial_step=True)
    assert writer.episode_steps == 1
    writer.append({"b": 10})
    assert writer.episode_steps == 2
    writer.create_item("t", 1.0, {"a": writer.history["a"][:], "b": writer.history["b"][:]})
    writer.flush()
    [sample] = client.sample("t", emit_timesteps=False)
    assert [leaf.tolist() for leaf in sample.data] == [[0, 1], [0, 10]]


def test_a_part_can_be_used_at_once(written):
    client, writer = written
    writer.append({"a": 1}, partial_step=True)
    assert writer.history["a"][-1].numpy() == 1
    writer.create_item("t", 1.0, {"a": writer.history["a"][:]})
    writer.flush()
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [0, 1]


def test_a_column_can_be_set_once_a_step(written):
    _, writer = written
    writer.append({"a": 1}, partial_step=True)
    with pytest.raises(ValueError, match="already been set"):
        writer.append({"a": 2}, partial_step=True)
    writer.append({"b": 10})
    assert writer.history["a"][-1].numpy() == 1
    assert writer.history["b"][-1].numpy() == 10


def test_a_column_left_out_has_no_value(written):
    _, writer = written
    writer.append({"a": 1}, partial_step=True)
    writer.append({"a": None})
    assert writer.episode_steps == 2
    assert writer.history["a"][-1].numpy() == 1
    with pytest.raises(ValueError, match="None"):
        writer.history["b"][-1]


def test_every_column_may_have_its_own_part(written):
    client, writer = written
    writer.append({"c": np.float32(1)}, partial_step=True)
    writer.append({"b": 1}, partial_step=True)
    writer.append({"a": 1}, partial_step=False)
    history = writer.history
    assert [history[k][-1].numpy() for k in "abc"] == [1, 1, 1.0]
    writer.create_item("t", 1.0, {k: history[k][-1:] for k in "abc"})
    writer.flush()
    [[step]] = client.sample("t")
    assert [leaf.item() for leaf in step.data] == [1, 1, 1.0]


def test_ending_the_episode_ends_the_step(our_client):
    with our_client.serve().trajectory_writer(3) as writer:
        writer.append({"a": 1}, partial_step=True)
        writer.end_episode()
        assert writer.episode_steps == 0
        writer.append({"a": 2, "b": 2})
        assert writer.episode_steps == 1
