"""Items that share steps, within a table and across tables, are independent of each other."""

import numpy as np


def overlapping(client, tables, steps=8, length=3):
    with client.trajectory_writer(length) as writer:
        for i in range(steps):
            writer.append([np.full(4, i, np.int32)])
            if i >= length - 1:
                for table in tables:
                    writer.create_item(table, 1.0, [writer.history[0][-length:]])
        writer.end_episode()


def firsts(client, table, n):
    samples = client.sample(table, n, emit_timesteps=False)
    for sample in samples:
        start = sample.data[0][0, 0]
        expected = np.repeat(np.arange(start, start + len(sample.data[0])), 4).reshape(-1, 4)
        np.testing.assert_array_equal(sample.data[0], expected)
    return [int(sample.data[0][0, 0]) for sample in samples]


def test_overlapping_items(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    overlapping(client, ["t"])
    assert firsts(client, "t", 6) == [0, 1, 2, 3, 4, 5]


def test_deleting_items_leaves_their_neighbours(pair):
    client = pair.serve(pair.table(max_size=2, max_times_sampled=1))
    overlapping(client, ["t"])
    assert firsts(client, "t", 2) == [4, 5]


def test_tables_do_not_depend_on_each_other(pair):
    client = pair.serve(pair.table("a", max_times_sampled=1), pair.table("b", max_times_sampled=1))
    overlapping(client, ["a", "b"])
    assert firsts(client, "a", 6) == list(range(6))
    client.reset("a")
    assert firsts(client, "b", 6) == list(range(6))


def test_an_item_of_a_later_step_alone(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    with client.trajectory_writer(6) as writer:
        writer.configure((0,), num_keep_alive_refs=6, max_chunk_length=6)
        for i in range(6):
            writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][4]])
        writer.create_item("t", 1.0, [writer.history[0][1:3]])
    first, second = client.sample("t", 2, emit_timesteps=False)
    assert (first.data[0].tolist(), second.data[0].tolist()) == (4, [1, 2])


def test_items_of_several_writers(pair):
    client = pair.serve(pair.table(sampler=pair.selectors.Fifo(), max_times_sampled=1))
    with client.trajectory_writer(1) as one, client.trajectory_writer(1) as two:
        for i in range(5):
            for writer, sign in [(one, 1), (two, -1)]:
                writer.append([sign * (i + 1)])
                writer.create_item("t", 1.0, [writer.history[0][-1]])
                writer.flush()
    assert client.values("t", 10) == [1, -1, 2, -2, 3, -3, 4, -4, 5, -5]
