"""Checks that memory is not written again while JAX reads it, for gpu_check.py."""

import numpy as np
from gpu_tables import TABLE, client_of_none

ITEMS, WIDTH, BATCHES = 64, 1 << 16, 24


def memory_of_jax_is_kept(device: str, size: int = 1024) -> dict[str, int]:
    """Batches are dropped as soon as a program that reads them, after a while, has been started."""
    import jax

    @jax.jit
    def read_late(batch, busy):
        busy = jax.lax.fori_loop(0, 50, lambda _, x: x @ x / size, busy)
        # A number that is 0, which is known when the loop is over.
        index = (busy[0, 0] * 0).astype(int)
        return jax.lax.dynamic_slice_in_dim(batch, index, 1, axis=2)[:, 0, 0]

    busy = jax.device_put(np.ones((size, size), np.float32))
    with client_of_none(ITEMS) as client:
        values = np.repeat(np.arange(ITEMS, dtype=np.float32), WIDTH).reshape(ITEMS, 1, WIDTH)
        known = dict(zip(client.insert_batch(TABLE, [values], 1.0).tolist(), range(ITEMS)))
        read = []
        with client.batch_sampler(TABLE, 16, device=device, out="jax", prefetch=2) as sampler:
            for _ in range(BATCHES):
                batch = next(sampler)
                read.append((batch.info.key, read_late(batch.data[0], busy)))
                del batch
        for keys, firsts in read:
            expected = [known[key] for key in np.asarray(keys).tolist()]
            np.testing.assert_array_equal(np.asarray(firsts), expected)
    return {"batches": BATCHES}
