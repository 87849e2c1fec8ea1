"""The client's calls against a real server in the same process."""

import collections
import pickle

import numpy as np
import pytest
from tables import make_table, sizes

import gear_reverb
from gear_reverb import rate_limiters, selectors

SECONDS = 30  # For threads that should end at once.


# Writing and sampling.


def test_an_inserted_item_comes_back(serve):
    client = serve(make_table("a"), make_table("b"))
    data = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": 7}
    client.insert(data, {"a": 1.5, "b": 2})
    for table, priority in [("a", 1.5), ("b", 2.0)]:
        [[step]] = client.sample(table)
        assert isinstance(step, gear_reverb.ReplaySample)
        np.testing.assert_array_equal(step.data[0], data["x"])
        assert (step.data[0].dtype, step.data[1].dtype) == (np.float32, np.int64)
        assert step.data[1] == 7
        info = step.info
        assert [type(value) for value in info] == [int, float, int, float, int]
        assert info[1:] == (1.0, 1, priority, 1)


def test_an_insert_without_time_axis_is_a_trajectory_of_one_step(serve):
    client = serve()
    client.insert([np.zeros(3)], {"t": 1.0})
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].shape == (1, 3)


def test_an_insert_with_a_deadline(serve):
    client = serve(gear_reverb.Table.queue("q", 1))
    client.insert({"x": [1, 2.0]}, {"q": 1.0}, timeout=SECONDS)
    with pytest.raises(gear_reverb.DeadlineExceededError):
        client.insert({"x": [3, 4.0]}, {"q": 1.0}, timeout=0.05)
    [[step]] = client.sample("q")
    assert [value.item() for value in step.data] == [1, 2.0]


@pytest.mark.parametrize("priority", ["x", None, float("nan"), float("inf")], ids=str)
@pytest.mark.parametrize("timeout", [None, SECONDS])
def test_an_insert_looks_at_all_priorities_first(serve, priority, timeout):
    client = serve(make_table("a"), make_table("b"))
    with pytest.raises((TypeError, ValueError), match=r"priorities\['b'\]"):
        client.insert([1], {"a": 1.0, "b": priority}, timeout=timeout)
    assert sizes(client) == {"a": 0, "b": 0}


def test_an_insert_needs_a_priority(serve):
    with pytest.raises(ValueError, match="priorities must contain at least one item"):
        serve().insert([1], {})


def test_trajectories_are_made_of_columns(serve):
    client = serve()
    with client.trajectory_writer(num_keep_alive_refs=4) as writer:
        for i in range(6):
            writer.append({"a": np.full(2, i, np.float32), "b": {"c": np.int64(i)}})
        history = writer.history
        writer.create_item(
            "t",
            2.0,
            {"last": history["a"][-1], "c": history["b"]["c"][-3:], "a": history["a"][2:4]},
        )
    [sample] = client.sample("t", emit_timesteps=False)
    a, c, last = sample.data
    np.testing.assert_array_equal(a, [[2, 2], [3, 3]])
    np.testing.assert_array_equal(c, [3, 4, 5])
    np.testing.assert_array_equal(last, [5, 5])
    assert sample.info.priority == 2.0


def test_trajectories_split_into_steps(serve):
    client = serve()
    with client.trajectory_writer(num_keep_alive_refs=4) as writer:
        for i in range(4):
            writer.append({"a": [i], "b": -i})
        writer.create_item(
            "t", 1.0, {"a": writer.history["a"][0][1:], "b": writer.history["b"][1:]}
        )
    [steps] = client.sample("t")
    assert [[value.item() for value in step.data] for step in steps] == [[1, -1], [2, -2], [3, -3]]
    assert len({step.info for step in steps}) == 1


def test_unequal_columns_do_not_split_into_steps(serve):
    client = serve()
    with client.trajectory_writer(num_keep_alive_refs=4) as writer:
        for i in range(4):
            writer.append([i, i])
        writer.create_item("t", 1.0, [writer.history[0][:], writer.history[1][-1]])
    with pytest.raises(ValueError):
        list(client.sample("t"))


Observation = collections.namedtuple("Observation", "image reward")


def test_samples_take_the_structure_of_the_signature(serve):
    signature = {
        "step": Observation(
            image=gear_reverb.TensorSpec([None, 2], np.float32),
            reward=gear_reverb.TensorSpec([None], np.float64),
        ),
        "action": [gear_reverb.TensorSpec([None], np.int32)],
    }
    client = serve(make_table(signature=signature), make_table("free"))
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        for i in range(2):
            writer.append(
                {
                    "step": Observation(np.full(2, i, np.float32), float(i)),
                    "action": [np.int32(i)],
                }
            )
        history = writer.history
        item = {
            "step": Observation(history["step"].image[:], history["step"].reward[:]),
            "action": [history["action"][0][:]],
        }
        writer.create_item("t", 1.0, item)
        writer.create_item("free", 1.0, item)
    [sample] = client.sample("t", emit_timesteps=False, unpack_as_table_signature=True)
    assert sample.data["step"].image.tolist() == [[0, 0], [1, 1]]
    assert sample.data["action"][0].tolist() == [0, 1]
    [steps] = client.sample("t", unpack_as_table_signature=True)
    assert [step.data["step"].reward for step in steps] == [0.0, 1.0]
    [flat] = client.sample("free", emit_timesteps=False, unpack_as_table_signature=True)
    assert isinstance(flat.data, list) and len(flat.data) == 3


def test_items_must_match_the_signature(serve):
    client = serve(make_table(signature=[gear_reverb.TensorSpec([None], np.float32)]))
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        writer.append([np.float64(1), np.float32(2)])
        for wrong in [writer.history[0][:], writer.history[1][0]]:
            with pytest.raises(ValueError, match="signature"):
                writer.create_item("t", 1.0, [wrong])
        writer.create_item("t", 1.0, [writer.history[1][:]])
    assert sizes(client) == {"t": 1}


@pytest.mark.parametrize(
    "value",
    [b"bytes", "text", np.array(["a", "bcd"]), np.array([b"", b"\0x"], dtype=object)],
    ids=repr,
)
def test_strings_come_back_as_bytes(serve, value):
    client = serve()
    client.insert([value], {"t": 1.0})
    [[step]] = client.sample("t")
    assert step.data[0].dtype == object
    expected = [v.encode() if isinstance(v, str) else v for v in np.asarray(value).ravel().tolist()]
    assert step.data[0].ravel().tolist() == expected


def test_writes_of_wrong_dtype_or_shape_name_the_path(serve):
    writer = serve().trajectory_writer(num_keep_alive_refs=2)
    writer.append({"a": 1, "b": {"c": np.zeros(2)}})
    for wrong in [np.zeros(3), np.zeros(2, np.int32), 0.0]:
        with pytest.raises(ValueError, match=r"\('b', 'c'\)"):
            writer.append({"a": 2, "b": {"c": wrong}})
    writer.append({"a": 2, "b": {"c": np.ones(2)}})
    assert writer.episode_steps == 2
    assert writer.history["b"]["c"][:].numpy().tolist() == [[0, 0], [1, 1]]
    writer.close()


def test_columns_show_their_data(serve):
    with serve().trajectory_writer(num_keep_alive_refs=2) as writer:
        for i in range(3):
            writer.append(np.full((2, 3), i, np.int16))
        column = writer.history[-2:]
        assert (column.shape, column.dtype) == ((2, 2, 3), np.int16)
        assert column.numpy()[:, 0, 0].tolist() == [1, 2]
        assert writer.history[-1].shape == (2, 3)
        writer.append(np.full((2, 3), 3, np.int16))
        with pytest.raises(RuntimeError, match="expired"):
            column.numpy()


def test_the_writer_of_sequences(serve):
    client = serve()
    with client.writer(max_sequence_length=3) as writer:
        writer.append([np.zeros(2), 0])
        writer.append_sequence([np.ones((2, 2)), np.array([1, 2])])
        writer.create_item("t", num_timesteps=2, priority=1.0)
        with pytest.raises(ValueError, match="num_timesteps"):
            writer.create_item("t", num_timesteps=0, priority=1.0)
        with pytest.raises(ValueError):
            writer.create_item("t", num_timesteps=4, priority=1.0)
        with pytest.raises(ValueError):
            writer.create_item("nowhere", num_timesteps=1, priority=1.0)
        writer.flush()
        assert sizes(client) == {"t": 1}
    [steps] = client.sample("t")
    assert [step.data[1].item() for step in steps] == [1, 2]
    with pytest.raises(ValueError, match="already been called"):
        writer.close()
    with pytest.raises(ValueError, match="Cannot reuse"):
        writer.__enter__()
    with pytest.raises(RuntimeError):
        writer.append([np.zeros(2), 0])


@pytest.mark.parametrize(
    "arguments,message",
    [
        ((0,), "max_sequence_length"),
        ((2, False, 3), "chunk_length"),
        ((2, False, 0), "chunk_length"),
        ((2, False, 1, 0), "max_in_flight_items"),
    ],
)
def test_writers_are_checked(serve, arguments, message):
    client = serve()
    with pytest.raises(ValueError, match=message):
        client.writer(*arguments)
    with pytest.raises(ValueError, match="num_keep_alive_refs"):
        client.trajectory_writer(0)
    with pytest.raises(ValueError, match="max_in_flight_bytes"):
        client.trajectory_writer(1, max_in_flight_bytes=0)


def test_sampling_is_checked(serve):
    client = serve()
    with pytest.raises(RuntimeError, match="nowhere"):
        list(client.sample("nowhere"))
    with pytest.raises(ValueError):
        list(client.sample("t", 0))


def test_sampling_waits_until_its_deadline(serve):
    client = serve()
    with pytest.raises(gear_reverb.DeadlineExceededError):
        list(client.sample("t", timeout=0.05))


def test_a_sampler_can_be_left_early(serve):
    client = serve()
    client.insert([1], {"t": 1.0})
    samples = client.sample("t", 1000)
    next(samples)
    samples.close()


# Administration.


def test_priorities_can_be_changed(serve):
    client = serve(make_table(sampler=selectors.MaxHeap()))
    for i in range(4):
        client.insert([i], {"t": 10.0 - i})
    keys = {}
    for _ in range(4):
        [[step]] = client.sample("t")
        keys[step.data[0].item()] = step.info.key
        client.mutate_priorities("t", {step.info.key: 0.0})
    assert set(keys) == {0, 1, 2, 3}
    client.update_priorities("t", np.array([keys[1], keys[2]], np.uint64), np.array([5.0, 7.0]))
    [[step]] = client.sample("t")
    assert (step.data[0], step.info.priority) == (2, 7.0)
    client.mutate_priorities("t", ([keys[3], 12345], [9.0, 1.0]), deletes=[keys[2], 678])
    [[step]] = client.sample("t")
    assert (step.data[0], step.info.priority) == (3, 9.0)
    assert sizes(client) == {"t": 3}
    client.mutate_priorities("t", deletes=np.array([keys[3], keys[1]], np.uint64))
    [[step]] = client.sample("t")
    assert step.data[0] == 0
    client.mutate_priorities("t")


@pytest.mark.parametrize(
    "updates,error",
    [
        ({-1: 1.0}, ValueError),
        ({2**64: 1.0}, ValueError),
        ({"a": 1.0}, TypeError),
        (([1.5], [1.0]), TypeError),
        ((np.array([1.5]), [1.0]), TypeError),
        ((np.array([-1]), [1.0]), ValueError),
        (([1, 2], [1.0]), ValueError),
        ({1: "x"}, ValueError),
    ],
    ids=repr,
)
def test_keys_and_priorities_are_checked(serve, updates, error):
    with pytest.raises(error):
        serve().mutate_priorities("t", updates)


def test_the_largest_keys_stay_exact(serve):
    client = serve()
    client.mutate_priorities("t", {2**64 - 1: 1.0, 2**53 + 1: 1.0}, [2**64 - 1])


def test_reset_empties_a_table(serve):
    client = serve()
    client.insert([1], {"t": 1.0})
    client.reset("t")
    assert sizes(client) == {"t": 0}
    for call in [client.reset, client.mutate_priorities]:
        with pytest.raises(RuntimeError, match="nowhere"):
            call("nowhere")


def test_server_info_tells_of_every_table(serve):
    prioritized = make_table(
        "p",
        sampler=selectors.Prioritized(0.5),
        remover=selectors.MinHeap(),
        rate_limiter=rate_limiters.SampleToInsertRatio(2.0, 10, 4.0),
        max_times_sampled=3,
        max_size=7,
        signature={"a": gear_reverb.TensorSpec([None], np.int32)},
    )
    client = serve(prioritized, make_table("t"))
    client.insert([1], {"t": 1.0})
    info = client.server_info(timeout=SECONDS)
    assert set(info) == {"p", "t"}
    p = info["p"]
    assert p.sampler_options.WhichOneof("distribution") == "prioritized"
    assert p.sampler_options.prioritized.priority_exponent == 0.5
    assert p.remover_options.heap.min_heap and p.remover_options.is_deterministic
    assert (p.max_size, p.max_times_sampled, p.current_size) == (7, 3, 0)
    limiter = p.rate_limiter_info
    assert (limiter.min_diff, limiter.max_diff, limiter.samples_per_insert) == (16, 24, 2)
    assert tuple(p.signature["a"].shape) == (None,)
    t = info["t"]
    assert (t.signature, t.current_size, t.num_episodes) == (None, 1, 1)
    assert t.rate_limiter_info.insert_stats.completed == 1


def test_server_info_has_a_deadline():
    client = gear_reverb.Client("localhost:1")
    with pytest.raises(gear_reverb.DeadlineExceededError, match="provided timeout of 1s"):
        client.server_info(timeout=1)


def test_flush_and_end_episode_have_deadlines(serve):
    client = serve(gear_reverb.Table.queue("q", 1))
    writer = client.trajectory_writer(num_keep_alive_refs=1)
    writer.append(1)
    for _ in range(2):
        writer.create_item("q", 1.0, writer.history[:])
    with pytest.raises(gear_reverb.DeadlineExceededError, match="Flush call did not complete"):
        writer.flush(timeout_ms=50)
    writer.flush(1, timeout_ms=SECONDS * 1000)
    with pytest.raises(gear_reverb.DeadlineExceededError, match="End episode call did not"):
        writer.end_episode(timeout_ms=50)
    assert len(writer.history) == 0
    list(client.sample("q"))
    writer.flush(timeout_ms=SECONDS * 1000)
    writer.close()


def test_clients_are_pickled_by_address(serve):
    client = serve()
    client.insert([1], {"t": 1.0})
    copy = pickle.loads(pickle.dumps(client))
    assert copy.server_address == client.server_address
    assert sizes(copy) == {"t": 1}
    assert repr(copy).startswith(f"Client, server_address={client.server_address}, data_plane=")


def test_a_checkpoint_is_restored(serve, tmp_path):
    checkpointers = gear_reverb.checkpointers
    client = serve(make_table(), checkpointer=checkpointers.DefaultCheckpointer(str(tmp_path)))
    client.insert([np.arange(3)], {"t": 4.0})
    path = client.checkpoint()
    assert path.startswith(str(tmp_path))
    client.reset("t")
    restored = serve(make_table(), checkpointer=checkpointers.DefaultCheckpointer(str(tmp_path)))
    [[step]] = restored.sample("t")
    assert (step.data[0].tolist(), step.info.priority) == ([0, 1, 2], 4.0)


def test_the_default_checkpointer_stores_somewhere(serve):
    assert serve().checkpoint()


def test_no_keys_may_be_of_any_dtype(client):
    client.mutate_priorities("q", deletes=np.array([]))
    client.update_priorities("q", np.array([]), np.array([]))
