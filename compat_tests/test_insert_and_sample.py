"""What goes into a table comes out again, leaf by leaf."""

import collections

import numpy as np
import pytest


def test_leaves_come_back_in_the_order_of_the_nest(pair):
    client = pair.serve()
    client.insert({"b": 1, "a": [np.arange(3, dtype=np.int32), (np.float32(0.5),)]}, {"t": 1.0})
    [[step]] = client.sample("t")
    # Dictionaries are flattened by sorted keys.
    assert [leaf.dtype for leaf in step.data] == [np.int32, np.float32, np.int64]
    np.testing.assert_array_equal(step.data[0], [0, 1, 2])
    assert [leaf.item() for leaf in step.data[1:]] == [0.5, 1]


def test_named_tuples_are_nests(pair):
    transition = collections.namedtuple("transition", "z a")
    client = pair.serve()
    client.insert(transition(z=1, a=2), {"t": 1.0})
    [[step]] = client.sample("t")
    assert [leaf.item() for leaf in step.data] == [1, 2]


def test_a_bare_leaf_is_a_nest(pair):
    client = pair.serve()
    client.insert(np.arange(2), {"t": 1.0})
    [[step]] = client.sample("t")
    assert len(step.data) == 1
    np.testing.assert_array_equal(step.data[0], [0, 1])


def test_one_insert_makes_an_item_in_every_table(pair):
    client = pair.serve(pair.table("first"), pair.table("second"), pair.table("third"))
    client.insert([7], {"first": 2.0, "second": 3.0})
    [[first]] = client.sample("first")
    [[second]] = client.sample("second")
    assert (first.info.priority, second.info.priority) == (2.0, 3.0)
    assert first.info.key != second.info.key
    assert first.data[0].item() == second.data[0].item() == 7
    assert client.size("third") == 0


def test_trajectories_keep_the_time_axis(pair):
    client = pair.serve()
    client.insert([np.arange(3), 5], {"t": 1.0})
    [sample] = client.sample("t", emit_timesteps=False)
    assert [leaf.shape for leaf in sample.data] == [(1, 3), (1,)]


def three_steps(client, table="t"):
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append({"x": np.full([2], i, np.float32), "y": np.int32(i)})
        writer.create_item(table, 1.0, {"x": writer.history["x"][:], "y": writer.history["y"][:]})


def test_timesteps_split_the_time_axis(pair):
    client = pair.serve()
    three_steps(client)
    [steps] = client.sample("t", emit_timesteps=True)
    assert [step.data[1].item() for step in steps] == [0, 1, 2]
    assert [step.data[0].tolist() for step in steps] == [[0, 0], [1, 1], [2, 2]]
    assert len({step.info for step in steps}) == 1


@pytest.mark.parametrize("emit_timesteps", [True, False])
def test_without_a_signature_there_is_nothing_to_unpack_to(pair, emit_timesteps):
    client = pair.serve()
    three_steps(client)
    [sample] = client.sample("t", emit_timesteps=emit_timesteps, unpack_as_table_signature=True)
    data = sample[0].data if emit_timesteps else sample.data
    assert isinstance(data, list) and len(data) == 2


def test_samples_are_unpacked_as_the_signature(pair):
    spec = pair.server_lib.spec
    signature = {"x": spec([None, 2], np.float32), "y": spec([None], np.int32)}
    client = pair.serve(pair.table(signature=signature))
    three_steps(client)
    [sample] = client.sample("t", emit_timesteps=False, unpack_as_table_signature=True)
    assert sample.data["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert sample.data["y"].tolist() == [0, 1, 2]
    [steps] = client.sample("t", emit_timesteps=True, unpack_as_table_signature=True)
    assert [step.data["y"].item() for step in steps] == [0, 1, 2]
    assert [step.data["x"].tolist() for step in steps] == [[0, 0], [1, 1], [2, 2]]


def test_columns_of_different_lengths_are_no_timesteps(pair):
    client = pair.serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][:], writer.history[0][-1]])
    with pytest.raises((TypeError, ValueError)):
        client.sample("t", emit_timesteps=True)
    [sample] = client.sample("t", emit_timesteps=False)
    assert [leaf.tolist() for leaf in sample.data] == [[0, 1, 2], 2]


def test_samples_may_be_asked_for_one_by_one_or_many_at_once(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    for i in range(6):
        client.insert([i], {"t": 1.0})
    assert client.values("t", 1) + client.values("t", 1) + client.values("t", 4) == list(range(6))


def test_a_negative_number_of_samples_gives_none(pair):
    client = pair.serve()
    client.insert([1], {"t": 1.0})
    assert client.sample("t", -1) == []


def test_zero_samples_are_refused(pair):
    client = pair.serve()
    client.insert([1], {"t": 1.0})
    with pytest.raises(ValueError, match="0"):
        client.sample("t", 0)


def test_samples_own_their_memory(pair):
    client = pair.serve()
    client.insert([np.zeros(4)], {"t": 1.0})
    [first] = client.sample("t", emit_timesteps=False)
    first.data[0][:] = 7
    [second] = client.sample("t", emit_timesteps=False)
    assert second.data[0].tolist() == [[0, 0, 0, 0]]


def test_what_is_inserted_is_copied(pair):
    client = pair.serve()
    with client.trajectory_writer(2) as writer:
        step = np.zeros(2)
        for i in range(2):
            step[:] = i
            writer.append([step])
        step[:] = 9
        writer.create_item("t", 1.0, [writer.history[0][:]])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [[0, 0], [1, 1]]
