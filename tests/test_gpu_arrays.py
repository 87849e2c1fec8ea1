"""Arrays on a GPU, as they are handed over by DLPack; skipped without one."""

import gc
import sys

import numpy as np
import processes
import pytest
from batches import LENGTH, alike, insert, steps
from processes import wait_until
from tables import make_table

import gear_reverb
from gear_reverb import cuda

pytestmark = [
    pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU"),
    pytest.mark.other_plane,
]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_dlpack_names_the_device_and_what_it_cannot_do(serve, torch):
    client = serve(make_table())
    insert(client, [steps(1, 2, 3)])
    with client.batch_sampler("t", 4, device="cuda:0", out="dlpack") as sampler:
        array = next(sampler).data[0]
    assert array.__dlpack_device__() == (2, 0)
    assert tuple(array.shape) == (4, 3) and array.dtype == np.int32
    for stream in (0, -2):
        with pytest.raises(ValueError, match=f"stream must be .* but is {stream}"):
            array.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="on another device"):
        array.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="not copied"):
        array.__dlpack__(copy=True)
    # Every stream, and none; a capsule that nobody takes over.
    for stream in (None, -1, 1, 2):
        array.__dlpack__(stream=stream, dl_device=(2, 0), max_version=(1, 0), copy=False)
    assert torch.from_dlpack(array).cpu().tolist() == [[1, 2, 3]] * 4


def test_arrays_outlive_their_sampler_and_server(torch):
    server = gear_reverb.Server([make_table()])
    client = server.localhost_client()
    insert(client, [steps(5, 6)])
    with client.batch_sampler("t", 2, device="cuda:0", out="torch", prefetch=3) as sampler:
        batches = [next(sampler) for _ in range(3)]
    server.stop()
    del sampler, client, server
    gc.collect()
    assert [batch.data[0].cpu().tolist() for batch in batches] == [[[5, 6]] * 2] * 3


def test_what_the_host_keeps(serve):
    client = serve(make_table())
    insert(client, [[{"text": "a", "number": np.float32(i)} for i in range(3)]])
    with client.batch_sampler("t", 2, device="cuda:0", out="dlpack") as sampler:
        batch = next(sampler)
        assert batch.data[1].tolist() == [[b"a"] * 3] * 2
        assert isinstance(batch.info.key, np.ndarray)
    for out in ("numpy", "tensorflow"):
        with pytest.raises(ValueError, match=f"that is a GPU, but is '{out}'"):
            client.batch_sampler("t", 2, device="cuda:0", out=out)
    with pytest.raises(ValueError, match="There is no GPU cuda:99"):
        client.batch_sampler("t", 2, device="cuda:99", out="dlpack")


def test_a_graph_is_captured_while_another_sampler_prefetches(serve, torch):
    client = serve(make_table(max_size=100))
    rng = np.random.default_rng(3)
    insert(client, alike(rng, 30))
    on_gpu = {"device": "cuda:0", "out": "torch"}
    with (
        client.batch_sampler("t", 8, prefetch=3, **on_gpu) as other,
        client.fixed_batch_sampler("t", 8, seed=4, **on_gpu) as captured,
        client.fixed_batch_sampler("t", 8, seed=4, device="cpu") as twin,
    ):
        captured.prepare()
        twin.prepare()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = [next(other) for _ in range(3)]
            captured.enqueue()
            del kept  # While the stream is being captured.
        for round_ in range(5):
            if round_ > 0:
                insert(client, alike(rng, 4))
                captured.prepare()
                twin.prepare()
            graph.replay()
            twin.enqueue()
            np.testing.assert_array_equal(captured.batch.info.key.cpu(), twin.batch.info.key)
            assert captured.batch.data[0].shape == (8, LENGTH, 11)
            for a, b in zip(captured.batch.data, twin.batch.data):
                np.testing.assert_array_equal(a.cpu(), b)
            assert next(other).data[0].shape == (8, LENGTH, 11)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_what_xla_still_reads_is_not_written_again(serve, monkeypatch, prefetch):
    xla = pytest.importorskip("xla", reason="the GPU is not emulated")
    jax = xla.Jax()
    monkeypatch.setitem(sys.modules, "jax", jax)
    client = serve(make_table())
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 30, (40, LENGTH, 7), np.int32)
    keys = client.insert_batch("t", [values], 1.0)
    known = dict(zip(keys.tolist(), values))
    drawn = []
    options = {"device": "cuda:0", "out": "jax", "prefetch": prefetch}
    with client.batch_sampler("t", 8, **options) as sampler:
        for _ in range(20):
            batch = next(sampler)
            drawn.append((batch.info.key, jax.read_later(batch.data[0])))
            del batch
    jax.synchronize()
    for keys, data in drawn:
        for key, row in zip(keys, data):
            np.testing.assert_array_equal(row, known[int(key)])
    assert jax.fences > 10
    del sampler
    jax.close()


def test_a_client_in_another_process_reads_the_servers_memory(monkeypatch, torch):
    monkeypatch.delenv("GEAR_REVERB_DATA_PLANE", raising=False)
    with processes.serve("make_table(max_size=1000)") as (_, port):
        client = gear_reverb.Client(f"localhost:{port}")
        values = np.random.default_rng(6).integers(0, 1 << 30, (100, LENGTH, 7), np.int32)
        known = dict(zip(client.insert_batch("t", [values], 1.0).tolist(), values))
        with client.batch_sampler("t", 16, device="cuda:0", out="torch", prefetch=0) as sampler:

            def staged_bytes_of_a_batch():
                before = sampler.device_stats()["staged_bytes"]
                batch = next(sampler)
                for key, row in zip(batch.info.key, batch.data[0]):
                    np.testing.assert_array_equal(row, known[int(key)])
                return sampler.device_stats()["staged_bytes"] - before

            # From the mapping, which is read-only, once that is registered.
            wait_until(lambda: staged_bytes_of_a_batch() == 0)
            stats = sampler.device_stats()
            assert stats["registered_bytes"] > 0 and stats["registration_error"] == ""
        [table] = client.server_info().values()
        assert table.data_plane == "shared-memory"
