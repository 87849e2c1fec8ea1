"""gear_reverb.jax: batches on a device ahead of their use."""

import os
import threading
import time

import numpy as np
import pytest

# Two devices to choose from. JAX reads this when it is first used.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="JAX is not installed")

from adapters import (  # noqa: E402
    ROOT,
    STEPS,
    assert_numbered,
    draws,
    insert_numbered,
    insert_ragged,
    numbered_table,
    run,
)
from processes import wait_until  # noqa: E402
from tables import make_table  # noqa: E402

import gear_reverb  # noqa: E402
from gear_reverb import jax as reverb_jax  # noqa: E402


@pytest.fixture
def client(serve):
    client = serve(numbered_table())
    insert_numbered(client)
    return client


def iterate(client, *args, **options):
    args = args or ("t", 4)
    return reverb_jax.iterate(client, *args, **{"timeout": 60, "max_batches": 5, **options})


def adapter_threads():
    return [thread for thread in threading.enumerate() if thread.name == "gear_reverb.jax"]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_batches_are_on_the_device(client, prefetch):
    batches = list(iterate(client, prefetch=prefetch, max_batches=20))
    assert len(batches) == 20
    for batch in batches:  # Kept all, so that none is overwritten by a later one.
        assert isinstance(batch.data["x"], jax.Array)
        assert batch.data["x"].shape == (4, STEPS, 2)
        assert_numbered(batch)


def test_a_device_can_be_chosen(client):
    device = jax.devices()[-1]
    [batch] = iterate(client, device=device, beta=0.5, max_batches=1)
    assert batch.data["x"].devices() == batch.weights.devices() == {device}


def test_numbers_of_64_bits_stay_on_the_host(client):
    [batch] = iterate(client, max_batches=1)
    assert isinstance(batch.data["wide"], np.ndarray) and batch.data["wide"].dtype == np.int64
    assert batch.info.key.dtype == np.uint64
    assert all(isinstance(field, np.ndarray) for field in batch.info)


def test_numbers_of_64_bits_go_along_if_jax_keeps_them(client):
    jax.config.update("jax_enable_x64", True)
    try:
        [batch] = iterate(client, max_batches=1)
        assert isinstance(batch.data["wide"], jax.Array)
        assert_numbered(batch)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_keys_update_priorities(client):
    [batch] = iterate(client, max_batches=1)
    client.update_priorities("t", batch.info.key, np.full(4, 99.0))
    drawn = {}
    for later in iterate(client, max_batches=50):
        drawn |= dict(zip(later.info.key.tolist(), later.info.priority.tolist()))
    assert all(drawn[key] == 99.0 for key in batch.info.key.tolist())


def test_takes_an_address(client):
    assert len(list(iterate(client.server_address, max_batches=2))) == 2


@pytest.mark.parametrize("ragged", ["pad", "pack"])
def test_ragged_items(serve, ragged):
    client = serve(make_table(max_times_sampled=1))  # Every item once.
    insert_ragged(client, [2, 5, 3])
    [batch] = iterate(client, "t", 3, ragged=ragged, max_batches=1)
    [x] = batch.data
    lengths = np.asarray(batch.lengths).tolist()
    assert sorted(lengths) == [2, 3, 5]
    if ragged == "pad":
        assert isinstance(batch.mask, jax.Array) and x.shape == batch.mask.shape == (3, 5)
        assert np.asarray(batch.mask).sum(axis=1).tolist() == lengths
    else:
        assert isinstance(batch.cu_seqlens, jax.Array) and x.shape == (10,)
        assert np.asarray(x).tolist() == [n for n in lengths for _ in range(n)]


def test_padding_to_one_length(serve):
    client = serve(make_table(max_times_sampled=1))
    insert_ragged(client, [2, 5, 3])
    [batch] = iterate(client, "t", 3, ragged="pad", pad_to=8, max_batches=1)
    assert batch.data[0].shape == batch.mask.shape == (3, 8)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_draws_as_far_ahead_as_it_says(client, prefetch):
    batches = iterate(client, prefetch=prefetch, max_batches=None)
    assert draws(client) == 0
    next(batches)
    wait_until(lambda: draws(client) >= 4 * (1 + prefetch))
    next(batches)
    wait_until(lambda: draws(client) >= 4 * (2 + prefetch))
    batches.close()
    assert draws(client) == 4 * (2 + prefetch)


@pytest.mark.parametrize("prefetch", [0, 5])
def test_draws_no_more_than_it_gives(client, prefetch):
    assert len(list(iterate(client, prefetch=prefetch, max_batches=3))) == 3
    assert draws(client) == 12


@pytest.mark.parametrize("prefetch", [0, 2])
def test_no_batches(client, prefetch):
    assert list(iterate(client, prefetch=prefetch, max_batches=0)) == []


def test_closing_wakes_a_thread_that_waits(serve):
    client = serve(numbered_table(max_times_sampled=1))
    insert_numbered(client, 8)
    batches = iterate(client, timeout=None, max_batches=None)
    next(batches)
    wait_until(lambda: draws(client) == 8)  # The table is empty now.
    start = time.monotonic()
    batches.close()
    assert time.monotonic() - start < 10
    assert not adapter_threads()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_errors_end_the_iteration(serve, prefetch):
    batches = iterate(serve(), timeout=0.05, prefetch=prefetch)
    with pytest.raises(gear_reverb.DeadlineExceededError):
        next(batches)
    assert next(batches, None) is None
    assert not adapter_threads()


def test_batches_before_an_error_are_given(serve):
    client = serve(numbered_table(max_times_sampled=1))
    insert_numbered(client, 8)
    batches = iterate(client, timeout=3, prefetch=4)
    assert len([next(batches), next(batches)]) == 2
    with pytest.raises(gear_reverb.DeadlineExceededError):
        next(batches)


@pytest.mark.parametrize("field", ["batch_size", "prefetch", "max_batches"])
def test_what_is_wrong_is_named(client, field):
    with pytest.raises(ValueError, match=field):
        reverb_jax.iterate(client, "t", **{"batch_size": 1, field: -1})


def test_the_package_does_not_import_jax():
    assert run("import sys, gear_reverb\nassert 'jax' not in sys.modules")[0] == 0


def test_example():
    status, output = run(str(ROOT / "examples" / "jax_regression" / "main.py"))
    assert status == 0 and output.splitlines()[-1].startswith("PASS"), output


def test_the_gpu_checks_step_that_reads_late(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "gpu"))
    import gpu_fences

    assert gpu_fences.memory_of_jax_is_kept("cpu", size=64)["batches"] > 0
