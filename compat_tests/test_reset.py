"""`Client.reset` makes a table as good as new."""


def fill(client):
    with client.trajectory_writer(2) as writer:
        for _ in range(3):
            for i in range(2):
                writer.append([i])
                writer.create_item("t", 1.0, [writer.history[0][-1:]])
            writer.end_episode()


def test_items_and_counts_go(pair):
    client = pair.serve()
    fill(client)
    [[step]] = client.sample("t")
    client.mutate_priorities("t", deletes=[step.info.key])
    client.reset("t")
    info = client.server_info()["t"]
    assert info.current_size == 0
    assert (info.num_episodes, info.num_deleted_episodes, info.num_unique_samples) == (0, 0, 0)
    assert info.rate_limiter_info.insert_stats.completed == 0
    assert info.rate_limiter_info.sample_stats.completed == 0


def test_options_stay(pair):
    table = pair.table(max_size=7, max_times_sampled=3, rate_limiter=pair.rate_limiters.MinSize(2))
    client = pair.serve(table)
    before = client.server_info()["t"]
    fill(client)
    client.reset("t")
    after = client.server_info()["t"]
    for field in ["name", "max_size", "max_times_sampled", "sampler_options", "remover_options"]:
        assert getattr(after, field) == getattr(before, field)
    assert after.rate_limiter_info.min_size_to_sample == 2


def test_it_can_be_filled_again(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    fill(client)
    client.reset("t")
    for i in range(3):
        client.insert([i], {"t": 1.0})
    assert client.values("t", 3) == [0, 1, 2]


def test_the_limiter_starts_anew(pair):
    table = pair.server_lib.Table.queue("t", 2)
    client = pair.serve(table)
    client.insert([1], {"t": 1.0})
    client.insert([2], {"t": 1.0})
    assert not table.can_insert(1)
    client.reset("t")
    assert table.can_insert(2) and not table.can_sample(1)


def test_other_tables_keep_their_items(pair):
    client = pair.serve(pair.table("t"), pair.table("other"))
    client.insert([1], {"t": 1.0, "other": 1.0})
    client.reset("t")
    assert (client.size("t"), client.size("other")) == (0, 1)
    assert client.values("other", 1) == [1]


def test_twice_and_when_empty(pair):
    client = pair.serve()
    client.reset("t")
    client.reset("t")
    assert client.size("t") == 0


def test_a_writer_goes_on_after_it(pair):
    client = pair.serve()
    with client.trajectory_writer(2) as writer:
        writer.append([1])
        writer.create_item("t", 1.0, [writer.history[0][:]])
        writer.flush()
        client.reset("t")
        writer.append([2])
        writer.create_item("t", 1.0, [writer.history[0][:]])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [1, 2]
    assert client.size("t") == 1
