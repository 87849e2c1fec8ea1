"""When a dataset's sequence ends."""

import time

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")


def dataset_of(pair, address, in_flight=10, **options):
    return pair.client_lib.TrajectoryDataset.from_table_signature(
        address, "t", in_flight, **options
    )


@pytest.mark.parametrize("in_flight", [1, 3, 100])
def test_after_max_samples_and_no_more_are_drawn(pair, bounded, in_flight):
    server = pair.start(pair.table(signature=numbered.SIGNATURE))
    client = pair.connect(server)
    numbered.write(client, 3)
    dataset = dataset_of(pair, f"localhost:{server.port}", in_flight, max_samples=7)
    assert len(bounded(list, dataset)) == 7
    assert client.server_info()["t"].rate_limiter_info.sample_stats.completed == 7


def test_at_once_if_the_limiter_times_out_on_an_empty_table(pair, bounded):
    address = numbered.serve(pair, 0)
    start = time.monotonic()
    assert bounded(list, dataset_of(pair, address, rate_limiter_timeout_ms=100)) == []
    assert time.monotonic() - start >= 0.1


def test_a_timeout_of_zero_is_one(our_client, bounded):
    address = numbered.serve(our_client, 0)
    assert bounded(list, dataset_of(our_client, address, rate_limiter_timeout_ms=0)) == []


def test_when_a_queue_runs_dry_for_so_long(pair, bounded):
    address = numbered.serve(pair, 5, max_times_sampled=1)
    dataset = dataset_of(pair, address, rate_limiter_timeout_ms=300)
    assert numbered.first_steps(bounded(list, dataset)) == [0, 1, 2, 3, 4]


def test_with_the_rest_as_a_last_batch(pair, bounded):
    address = numbered.serve(pair, 5, max_times_sampled=1)
    dataset = dataset_of(pair, address, rate_limiter_timeout_ms=300)
    assert numbered.first_steps(bounded(list, dataset.batch(3))) == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("per_stream", [1, 2, 100])
def test_not_with_a_stream(pair, bounded, per_stream):
    address = numbered.serve(pair, 5, max_times_sampled=1)
    dataset = dataset_of(
        pair,
        address,
        2,
        max_samples=5,
        max_samples_per_stream=per_stream,
        num_workers_per_iterator=1,
    )
    assert numbered.first_steps(bounded(list, dataset)) == [0, 1, 2, 3, 4]


def test_with_several_workers(pair, bounded):
    address = numbered.serve(pair, 20)
    dataset = dataset_of(pair, address, 2, max_samples=11, num_workers_per_iterator=3)
    assert len(bounded(list, dataset)) == 11
