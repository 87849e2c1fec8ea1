"""Tables whose columns a device keeps: the same batches, with the CPU's twin as the device."""

import gc
import time

import numpy as np
import pytest
from batches import insert
from devices import ON_DEVICE
from forks import in_child
from tables import make_table
from test_device_batches import assert_same_batches, random_items

import gear_reverb
from gear_reverb import rate_limiters, selectors

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane


def device_table(device_bytes=None, name="t", max_size=1000, placement="device"):
    return gear_reverb.Table(
        name,
        selectors.Uniform(),
        selectors.Fifo(),
        max_size,
        rate_limiters.MinSize(1),
        placement=placement,
        device_bytes=device_bytes,
    )


def tier_of(sampler, known=0):
    """The newest tier, once it knows of so many bytes and has nothing more to copy."""
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        tier = [tier for tier in sampler.device_stats()["tiers"] if tier["table"] == "t"][-1]
        there = tier["resident_bytes"] + tier["overflow_bytes"]
        if tier["waiting_bytes"] == 0 and there >= known:
            return tier
        time.sleep(0.001)
    raise AssertionError(f"{tier} does not settle")


def settled(sampler, total):
    """The tier once it knows of `total` bytes of columns."""
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        tier = tier_of(sampler)
        if tier["resident_bytes"] + tier["overflow_bytes"] == total:
            return tier
        time.sleep(0.001)
    raise AssertionError(f"{tier} has not {total} bytes")


def insert_rows(client, count, first=0, steps=10, table="t"):
    """Items of 40 bytes and `steps` steps, each a chunk of its own."""
    with client.trajectory_writer(num_keep_alive_refs=steps) as writer:
        for i in range(first, first + count):
            for step in range(steps):
                writer.append(np.int32(1000 * i + step))
            writer.create_item(table, 1.0, writer.history[-steps:])
            writer.end_episode()


@pytest.mark.parametrize("device_bytes", [None, 3000, 1])
@pytest.mark.parametrize("ragged", ["pad", "pack"])
def test_batches_are_the_same(serve, ragged, device_bytes):
    client = serve(device_table(device_bytes))
    insert(client, random_items(np.random.default_rng(5), 30, equal=False))
    options = {"ragged": ragged, "seed": 3, "beta": 0.5}
    with (
        client.batch_sampler("t", 16, **options) as plain,
        client.batch_sampler("t", 16, **ON_DEVICE, **options) as twin,
    ):
        before = twin.device_stats()["device_bytes"]
        assert_same_batches(plain, twin, count=20)
        tier = tier_of(twin, known=1)
        assert_same_batches(plain, twin, count=4)
        stats = twin.device_stats()
        if device_bytes is None:
            assert tier["resident_bytes"] > 0 and tier["overflow_bytes"] == 0
            assert stats["device_bytes"] > before
        elif device_bytes == 1:
            assert tier["resident_bytes"] == 0 and tier["overflow_bytes"] > 0
        else:
            assert tier["resident_bytes"] > 0 and tier["overflow_bytes"] > 0
            assert tier["allocated_bytes"] <= 3000
        assert tier["failures"] == 0 and tier["last_error"] == ""


@pytest.mark.parametrize("device_bytes", [None, 1000])
def test_a_device_draws_what_it_keeps(serve, device_bytes):
    """The host's draws are of the same items, whose copies come and go."""
    client = serve(device_table(device_bytes, max_size=30))
    with client.batch_sampler("t", 8, **ON_DEVICE, draw="device", prefetch=0) as sampler:
        for first in range(0, 300, 10):
            insert_rows(client, 10, first)
            batch = next(sampler)
            rows = 1000 * np.arange(max(first - 20, 0), first + 10)
            assert set(batch.data[0][:, 0]) <= set(rows)
            np.testing.assert_array_equal(batch.data[0], batch.data[0][:, :1] + np.arange(10))
            if first % 30 == 0:
                settled(sampler, 40 * len(rows))
        assert sampler.device_stats()["why_host_draws"] == ""
        # What is gone has its copies until a draw after: there may be no room for others before.
        while tier_of(sampler)["resident_bytes"] == 0:
            next(sampler)


def test_a_table_of_the_host_has_no_tier(serve):
    client = serve(make_table("hosted"))
    insert_rows(client, 2, table="hosted")
    with client.batch_sampler("hosted", 2, **ON_DEVICE) as sampler:
        next(sampler)
        assert "hosted" not in [tier["table"] for tier in sampler.device_stats()["tiers"]]


def test_evictions_make_room(serve):
    client = serve(device_table(max_size=5))
    insert_rows(client, 5)
    with client.batch_sampler("t", 5, **ON_DEVICE) as sampler:
        next(sampler)
        assert settled(sampler, 200)["resident_bytes"] == 200
        insert_rows(client, 20, first=5)
        assert settled(sampler, 200)["resident_bytes"] == 200
        assert min(next(sampler).data[0].min() for _ in range(4)) >= 0
        client.reset("t")
        assert settled(sampler, 0)["resident_bytes"] == 0
        insert_rows(client, 1, first=77)
        for batch in sampler:
            if (batch.data[0] == 77_000 + np.arange(10)).all():
                break


def test_a_checkpoint_does_not_know_of_tiers(tmp_path):
    def start(**options):
        table = device_table(**options)
        checkpointer = gear_reverb.platform.checkpointers_lib.DefaultCheckpointer(str(tmp_path))
        server = gear_reverb.Server([table], checkpointer=checkpointer)
        return server, server.localhost_client()

    server, client = start()
    insert_rows(client, 4)
    with client.batch_sampler("t", 4, **ON_DEVICE) as sampler:
        next(sampler)
        settled(sampler, 160)
        client.checkpoint()
    server.stop()
    for placement in ("device", "host"):
        server, client = start(placement=placement)
        with client.batch_sampler("t", 64, **ON_DEVICE) as sampler:
            assert set(next(sampler).data[0][:, 0]) == {0, 1000, 2000, 3000}
            if placement == "device":
                settled(sampler, 160)
        server.stop()


def test_a_tier_goes_on_with_its_table_on_another_server():
    table = device_table()
    server = gear_reverb.Server([table])
    client = server.localhost_client()
    insert_rows(client, 3)
    with client.batch_sampler("t", 3, **ON_DEVICE) as sampler:
        next(sampler)
        settled(sampler, 120)
    server.stop()
    server = gear_reverb.Server([table])
    client = server.localhost_client()
    insert_rows(client, 3, first=3)
    with client.batch_sampler("t", 3, **ON_DEVICE) as sampler:
        next(sampler)
        settled(sampler, 240)
    server.stop()


def test_a_batch_sampler_may_stand_while_its_server_stops():
    server = gear_reverb.Server([device_table()])
    client = server.localhost_client()
    insert_rows(client, 3)
    with client.batch_sampler("t", 3, **ON_DEVICE) as sampler:
        batch = next(sampler)
        server.stop()
        del server
        assert set(batch.data[0][:, 0]) <= {0, 1000, 2000}


def test_the_tier_is_the_parents_after_a_fork(serve):
    client = serve(device_table())
    insert_rows(client, 3)
    with client.batch_sampler("t", 3, **ON_DEVICE) as sampler:
        next(sampler)
        settled(sampler, 120)
        assert in_child(gc.collect) == 0
        insert_rows(client, 3, first=3)
        settled(sampler, 240)


def test_a_table_may_end_in_a_child(serve):
    """The tier's thread is not there, and what it was doing is undone for ever."""
    tables = [device_table(name="forked")]
    server = gear_reverb.Server(tables)
    client = server.localhost_client()
    client.insert_batch("forked", [np.zeros((10, 5), np.float32)], 1.0)
    with client.batch_sampler("forked", 3, **ON_DEVICE) as sampler:
        next(sampler)
    server.stop()
    del server, client, sampler

    def end_table():
        tables.clear()
        gc.collect()

    assert in_child(end_table) == 0
    end_table()
    client = serve()
    with client.batch_sampler("t", 1, **ON_DEVICE) as sampler:
        names = [tier["table"] for tier in sampler.device_stats()["tiers"]]
    assert "forked" not in names  # It did end.


def test_a_client_over_grpc_has_no_tier(serve, monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_DATA_PLANE", "grpc")
    client = serve(device_table())
    insert_rows(client, 2)
    with client.batch_sampler("t", 4, **ON_DEVICE) as sampler:
        before = sampler.device_stats()["device_bytes"]
        assert set(next(sampler).data[0][:, 0]) <= {0, 1000}
        assert sampler.device_stats()["device_bytes"] == before


def test_a_replaced_table_is_placed_alike(serve):
    client = serve(device_table(device_bytes=3000).replace(max_size=7))
    insert_rows(client, 2)
    with client.batch_sampler("t", 2, **ON_DEVICE) as sampler:
        next(sampler)
        assert settled(sampler, 80)["limit_bytes"] == 3000


@pytest.mark.parametrize(
    "options, text",
    [
        ({"placement": "gpu"}, "'host' or 'device', but is 'gpu'"),
        ({"placement": "device", "device_bytes": 0}, r"device_bytes \(0\) must be >= 1"),
        ({"placement": "host", "device_bytes": 10}, "for placement 'device' alone"),
    ],
)
def test_wrong_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        device_table(**options)


def test_placement_is_by_keyword_alone():
    arguments = ["t", selectors.Fifo(), selectors.Fifo(), 1, rate_limiters.MinSize(1), 0, (), None]
    with pytest.raises(TypeError):
        gear_reverb.Table(*arguments, 1, "device")
