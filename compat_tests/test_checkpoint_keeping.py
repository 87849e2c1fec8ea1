"""What a checkpointer of ours keeps, and a server of ours of its own configuration."""

import pytest


@pytest.fixture
def start(our_server, tmp_path):
    """Makes a server with one table, and a client of it, over the test's directory."""

    def start(max_size, limiter):
        checkpointers = our_server.server_lib.import_module("platform.checkpointers_lib")
        table = our_server.table(max_size=max_size, rate_limiter=limiter)
        server = our_server.start(
            table, checkpointer=checkpointers.DefaultCheckpointer(str(tmp_path))
        )
        return server, our_server.connect(server)

    return start


def test_the_servers_configuration_holds(our_server, start, bounded, capfd):
    limiters = our_server.rate_limiters
    server, client = start(10, limiters.MinSize(1))
    for i in range(4):
        client.insert([i], {"t": float(i)})
    client.sample("t", 3)
    client.checkpoint()
    bounded(server.stop)
    capfd.readouterr()

    _, client = start(4, limiters.SampleToInsertRatio(3.0, 2, 100.0))
    info = client.server_info()["t"]
    limiter = info.rate_limiter_info
    assert (info.max_size, limiter.samples_per_insert, limiter.min_size_to_sample) == (4, 3.0, 2)
    assert (info.current_size, info.num_unique_samples) == (4, 1)
    assert limiter.insert_stats.completed == 4 and limiter.sample_stats.completed == 3
    log = capfd.readouterr().err
    assert "max_size is 4 (in the checkpoint: 10)" in log
    assert "samples_per_insert is 3 (in the checkpoint: 1)" in log
    client.insert([4], {"t": 1.0})
    assert sorted(client.values("t", 4)) == [1, 1, 1, 1]


def test_the_newest_two_are_kept(our_server, start, tmp_path):
    _, client = start(10, our_server.rate_limiters.MinSize(1))
    client.insert([1], {"t": 1.0})
    paths = [client.checkpoint() for _ in range(4)]
    assert len(set(paths)) == 4
    kept = {str(path) for path in tmp_path.iterdir() if path.is_dir()}
    assert kept == set(paths[-2:])
