"""Items leave after their last permitted sample."""

import pytest


@pytest.mark.parametrize("times", [1, 3])
def test_items_leave_after_so_many_samples(pair, times):
    client = pair.serve(pair.table(max_times_sampled=times))
    for i in range(3):
        client.insert([i], {"t": 1.0})
    assert client.values("t", 3 * times) == [i for i in range(3) for _ in range(times)]
    info = client.server_info()["t"]
    assert (info.current_size, info.num_unique_samples) == (0, 3)


@pytest.mark.parametrize("times", [0, -1])
def test_zero_or_less_is_no_limit(pair, times):
    client = pair.serve(pair.table(max_times_sampled=times))
    client.insert([5], {"t": 1.0})
    assert client.values("t", 20) == [5] * 20
    assert client.size("t") == 1


def test_updates_do_not_count(pair):
    client = pair.serve(pair.table(max_times_sampled=2))
    client.insert([5], {"t": 1.0})
    [[step]] = client.sample("t")
    for priority in range(5):
        client.mutate_priorities("t", {step.info.key: float(priority)})
    assert client.size("t") == 1
    [[step]] = client.sample("t")
    assert (step.info.times_sampled, step.info.priority) == (2, 4.0)
    assert client.size("t") == 0


def test_the_last_sample_is_complete(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][:]])
        writer.end_episode()
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [0, 1, 2]
