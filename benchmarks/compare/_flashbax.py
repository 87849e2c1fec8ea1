"""flashbax's buffers, on JAX's CPU device."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from _workloads import Workload

warnings.simplefilter("ignore")

import flashbax  # noqa: E402

_KEYS = 4096  # Split ahead: splitting is not what is measured.


def filled_item_buffer(
    workload: Workload, blocks: Iterable[dict[str, np.ndarray]]
) -> tuple[Any, Any]:
    """A buffer of items of shape [steps, ...], and its state with all items added."""
    blocks = list(blocks)
    count = len(next(iter(blocks[0].values())))
    buffer = flashbax.make_item_buffer(
        max_length=workload.items,
        min_length=1,
        sample_batch_size=workload.batch,
        add_batches=True,
    )
    state = buffer.init({name: values[0] for name, values in blocks[0].items()})
    add = jax.jit(buffer.add, donate_argnums=0)
    for block in blocks:
        state = add(state, block)
    assert len(blocks) * count == workload.items
    return buffer, jax.block_until_ready(state)


def jitted_sample(buffer: Any) -> Callable[[Any, Any], Any]:
    sample = jax.jit(buffer.sample)
    return lambda state, key: jax.block_until_ready(sample(state, key))


def keys() -> Iterator[Any]:
    """Random keys, over and over, without end."""
    split = list(jax.random.split(jax.random.PRNGKey(0), _KEYS))
    while True:
        yield from split


def prioritised_items(
    items: np.ndarray, priorities: np.ndarray, batch: int, alpha: float, beta: float
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any, Any], Any], Any]:
    """A filled buffer by priority: `sample(state, key)` -> indices, `update(...)` -> state, state.

    flashbax leaves importance weights to its user: `sample` computes them from the probabilities.
    `update(state, indices, priorities)` donates the state.
    """
    buffer = flashbax.make_prioritised_item_buffer(
        max_length=len(items),
        min_length=1,
        sample_batch_size=batch,
        add_batches=True,
        priority_exponent=alpha,
    )
    state = buffer.init({"x": items[0]})
    add = jax.jit(buffer.add, donate_argnums=0)
    block = len(items) // 100
    for begin in range(0, len(items), block):
        state = add(state, {"x": items[begin : begin + block]})
    update = jax.jit(buffer.set_priorities, donate_argnums=0)
    for begin in range(0, len(items), block):
        indices = np.arange(begin, begin + block)
        state = update(state, indices, priorities[begin : begin + block].astype(np.float32))

    @jax.jit
    def weighted_sample(state, key):
        drawn = buffer.sample(state, key)
        weights = (len(items) * drawn.probabilities) ** -beta
        return drawn.experience, weights / weights.max(), drawn.indices

    def sample(state, key):
        return jax.block_until_ready(weighted_sample(state, key))[2]

    return sample, lambda *args: jax.block_until_ready(update(*args)), state
