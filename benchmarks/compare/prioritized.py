"""How long do drawing 256 of 10^6 items by priority and updating their priorities take?

    python benchmarks/compare/prioritized.py [--quick] [--only gear_reverb --only cpprb]

In one process; items are small transitions, 2 steps of 4 floats; exponent 0.6, beta 0.4. Every
side is a process of its own; a call gets the batch with its importance weights, then sets new
priorities for all of it. What each does:

- gear_reverb: `next` of a `batch_sampler(..., prefetch=0, beta=0.4)`, `Client.update_priorities`.
- cpprb: `PrioritizedReplayBuffer.sample(256, beta)`, `update_priorities`.
- torchrl: `TensorDictPrioritizedReplayBuffer.sample`, `update_tensordict_priority`.
- flashbax: a prioritised item buffer on JAX's CPU device; `sample` with the weights, and
  `set_priorities`, which donates the state, are jitted.
"""

import itertools

import _compare
import _process
import numpy as np

_ITEMS, _BATCH, _ALPHA, _BETA = 10**6, 256, 0.6, 0.4
_STEPS, _WIDTH = 2, 4
_PEERS = ("cpprb", "torchrl", "flashbax")


def _data() -> tuple[np.ndarray, np.ndarray]:
    """Items [n, steps, width], and priorities as temporal-difference errors spread."""
    rng = np.random.default_rng(0)
    items = rng.standard_normal((_ITEMS, _STEPS, _WIDTH), np.float32)
    return items, rng.exponential(size=_ITEMS) + 1e-3


def _new_priorities() -> np.ndarray:
    """Of several batches, [n, batch]."""
    return np.random.default_rng(1).exponential(size=(256, _BATCH)) + 1e-3


def gear_reverb():
    import gear_reverb as reverb

    table = reverb.Table(
        "table",
        reverb.selectors.Prioritized(_ALPHA),
        reverb.selectors.Fifo(),
        _ITEMS,
        reverb.rate_limiters.MinSize(1),
    )
    server = reverb.Server([table])
    client = server.localhost_client()
    items, priorities = _data()
    for begin in range(0, _ITEMS, 50_000):
        some = slice(begin, begin + 50_000)
        client.insert_batch("table", [items[some]], priorities[some])
    batches = client.batch_sampler("table", _BATCH, prefetch=0, beta=_BETA)
    new = itertools.cycle(_new_priorities())

    def call(_kept=server) -> float:
        batch = next(batches)
        assert batch.weights.shape == (_BATCH,)
        client.update_priorities("table", batch.info.key, next(new))
        return 1

    return call


def cpprb():
    import cpprb

    fields = {"x": {"shape": (_STEPS, _WIDTH), "dtype": np.float32}}
    buffer = cpprb.PrioritizedReplayBuffer(_ITEMS, fields, alpha=_ALPHA)
    items, priorities = _data()
    buffer.add(x=items, priorities=priorities)
    new = itertools.cycle(_new_priorities())

    def call() -> float:
        batch = buffer.sample(_BATCH, beta=_BETA)
        buffer.update_priorities(batch["indexes"], next(new))
        return 1

    return call


def torchrl():
    import _torchrl
    import torch

    buffer = _torchrl.prioritized_buffer(_ITEMS, _BATCH, _ALPHA, _BETA)
    items, priorities = _data()
    block = {"x": items, _torchrl.PRIORITY: priorities.astype(np.float32)}
    buffer.extend(_torchrl.as_tensordict(block))
    new = itertools.cycle(
        [torch.from_numpy(values.astype(np.float32)) for values in _new_priorities()]
    )

    def call() -> float:
        batch = buffer.sample()
        batch[_torchrl.PRIORITY] = next(new)
        buffer.update_tensordict_priority(batch)
        return 1

    return call


def flashbax():
    import _flashbax

    items, priorities = _data()
    sample, update, state = _flashbax.prioritised_items(items, priorities, _BATCH, _ALPHA, _BETA)
    keys, holder = _flashbax.keys(), [state]
    new = itertools.cycle(_new_priorities().astype(np.float32))

    def call() -> float:
        indices = sample(holder[0], next(keys))
        holder[0] = update(holder[0], indices, next(new))
        return 1

    return call


def side(name: str) -> None:
    call = globals()[name]()
    _process.answer(lambda seconds: 1e6 / _process.rate(call, seconds))


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "prioritized",
        "Draw 256 of 10^6 by priority and update them, one process",
        options,
        ("work", "side", "microseconds", "/ cpprb"),
    )
    names = (_compare.OURS, *options.pick(_PEERS, _PEERS[:1]))
    results = _compare.alternate(
        {name: _process.start_of(__file__, name) for name in names}, options
    )
    report.add("draw and update", results, unit="microseconds", form=",.1f", over=("cpprb",))
    report.bar(
        "time over cpprb's", _compare.ratio(results, _compare.OURS, "cpprb"), 0.5, at_most=True
    )
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
