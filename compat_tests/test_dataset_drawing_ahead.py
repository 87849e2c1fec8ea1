"""When datasets of ours begin to draw."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")


def test_nothing_is_drawn_before_the_first_element_is_asked_for(our_client, bounded):
    server = our_client.start(our_client.table(signature=numbered.SIGNATURE))
    client = our_client.connect(server)
    numbered.write(client, 3)

    def drawn():
        return client.server_info()["t"].rate_limiter_info.sample_stats.completed

    dataset = our_client.client_lib.TrajectoryDataset.from_table_signature(
        f"localhost:{server.port}", "t", 4
    )
    iterator = iter(dataset)
    assert drawn() == 0
    bounded(next, iterator)
    assert drawn() > 0
