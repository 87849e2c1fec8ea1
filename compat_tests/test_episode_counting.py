"""`num_episodes` and `num_deleted_episodes` follow the episodes of live items."""

import pytest


def counts(client):
    info = client.server_info()["t"]
    return info.current_size, info.num_episodes, info.num_deleted_episodes


def write(client, episodes, items=2):
    with client.trajectory_writer(1) as writer:
        for episode in range(episodes):
            for _ in range(items):
                writer.append([episode])
                writer.create_item("t", 1.0, [writer.history[0][-1:]])
            writer.end_episode()


def test_episodes_with_items(pair):
    client = pair.serve()
    assert counts(client) == (0, 0, 0)
    write(client, 3)
    assert counts(client) == (6, 3, 0)


def test_an_episode_goes_with_its_last_item(pair):
    client = pair.serve()
    write(client, 2)
    for expected in [(3, 2, 0), (2, 1, 1), (1, 1, 1), (0, 0, 2)]:
        [[step]] = client.sample("t")
        client.mutate_priorities("t", deletes=[step.info.key])
        assert counts(client) == expected


def test_eviction_and_consumption_delete_too(pair):
    client = pair.serve(pair.table(max_size=3, max_times_sampled=1))
    write(client, 3)
    assert counts(client) == (3, 2, 1)
    client.values("t", 3)
    assert counts(client) == (0, 0, 3)


def test_steps_without_items_are_no_episode(pair):
    client = pair.serve()
    with client.trajectory_writer(1) as writer:
        writer.append([1])
        writer.end_episode()
        writer.append([1])
        writer.create_item("t", 1.0, [writer.history[0][:]])
    assert counts(client) == (1, 1, 0)


def test_every_insert_is_an_episode(pair):
    client = pair.serve()
    for i in range(3):
        client.insert([i], {"t": 1.0})
    assert counts(client) == (3, 3, 0)


@pytest.mark.parametrize("clear_buffers", [True, False])
def test_steps_of_the_episode(pair, clear_buffers):
    with pair.serve().trajectory_writer(2) as writer:
        assert writer.episode_steps == 0
        for i in range(3):
            writer.append([i])
            assert writer.episode_steps == i + 1
        writer.end_episode(clear_buffers=clear_buffers)
        assert writer.episode_steps == 0
        writer.append([0])
        assert writer.episode_steps == 1
