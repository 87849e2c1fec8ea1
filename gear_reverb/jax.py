"""Batches of a table on a JAX device. Importing this module imports JAX.

For example:

    for batch in gear_reverb.jax.iterate(client, "replay", batch_size=256):
        state = update(state, batch.data)
        client.update_priorities("replay", batch.info.key, priorities)
"""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import jax

from gear_reverb._frameworks import jax_keeps
from gear_reverb.batch_sampler import check_sizes
from gear_reverb.client import Client
from gear_reverb.replay_sample import BATCH_EXTRAS, ReplaySample


def iterate(
    client_or_address: Client | str,
    table: str,
    batch_size: int,
    *,
    device: Any = None,
    prefetch: int = 2,
    timeout: float | None = None,
    ragged: str = "error",
    pad_to: int | None = None,
    beta: float | None = None,
    seed: int | None = None,
    max_batches: int | None = None,
) -> Iterator[ReplaySample]:
    """Draws batches with `Client.batch_sampler` and puts them on a device ahead of their use.

    `info` stays on the host as NumPy arrays: keys have 64 bits, which JAX would cut down. So do
    leaves of `data` of 64-bit numbers unless `jax_enable_x64` is set, and text. Everything else
    (data, `lengths`, `mask`, `cu_seqlens`, `weights`) is a `jax.Array` on the device.

    Args:
      client_or_address: A client, or "host:port".
      table: Name of the table.
      batch_size: Items per batch, B.
      device: A `jax.Device` or a `Sharding`; JAX's default if None.
      prefetch: Batches drawn, and sent to the device, before they are asked for, by a thread of
        their own. 0: each when it is asked for.
      timeout: Longest time to wait for a batch, in seconds; None for ever.
      ragged: What to do with items of different lengths: "error", "pad" or "pack".
      pad_to: With "pad", the T of all batches, so that what is compiled for one fits all.
      beta: If given, batches have importance weights.
      seed: Makes draws reproducible.
      max_batches: Batches to give; None for any number. No more than these are drawn.

    Returns:
      An iterator; closing it, which leaving a loop over it does sooner or later, stops the thread.

    Raises:
      ValueError: If a number is out of range. From `next`, the errors of `batch_sampler`, which
        end the iteration.
    """
    check_sizes(batch_size, prefetch, max_batches)
    client = client_or_address
    if not isinstance(client, Client):
        client = Client(client)
    # What is ahead is ahead on the device: the sampler itself draws when it is asked.
    options = {"timeout": timeout, "ragged": ragged, "pad_to": pad_to, "beta": beta}
    options |= {"seed": seed, "prefetch": 0}
    sampler = client.batch_sampler(table, batch_size, **options)
    if prefetch == 0:
        return _draw(sampler, device, max_batches)
    return _draw_ahead(sampler, device, max_batches, prefetch)


def _draw(sampler: Any, device: Any, limit: int | None) -> Iterator[ReplaySample]:
    with sampler:
        drawn = 0
        while limit is None or drawn < limit:
            yield _put(next(sampler), device)
            drawn += 1


def _draw_ahead(
    sampler: Any, device: Any, limit: int | None, prefetch: int
) -> Iterator[ReplaySample]:
    """Starts to draw with the first `next`, and not before."""
    ahead: queue.SimpleQueue = queue.SimpleQueue()
    permits = threading.Semaphore(prefetch)
    stopped = threading.Event()

    def work() -> None:
        drawn = 0
        try:
            while limit is None or drawn < limit:
                permits.acquire()
                if stopped.is_set():
                    return
                ahead.put(_put(next(sampler), device))
                drawn += 1
        except BaseException as error:  # The consumer's to handle.
            ahead.put(_Failure(error))

    thread = threading.Thread(target=work, name="gear_reverb.jax", daemon=True)
    thread.start()
    try:
        given = 0
        while limit is None or given < limit:
            batch = ahead.get()
            permits.release()
            if isinstance(batch, _Failure):
                raise batch.error
            yield batch
            given += 1
    finally:
        stopped.set()
        permits.release()
        sampler.close()  # Wakes a thread that waits for a batch.
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _put(sample: Any, device: Any) -> ReplaySample:
    """The batch with its arrays sent to the device; does not wait until they are there."""
    batch = type(sample)(sample.info, _put_arrays(sample.data, device))
    for name in BATCH_EXTRAS:
        if getattr(sample, name, None) is not None:
            setattr(batch, name, _put_arrays(getattr(sample, name), device))
    return batch


def _put_arrays(nest: Any, device: Any) -> Any:
    return jax.tree_util.tree_map(
        lambda array: jax.device_put(array, device) if jax_keeps(array) else array, nest
    )
