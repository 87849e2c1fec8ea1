"""Batches for the learner, drawn and stacked by threads while it computes."""

import queue
import threading
from typing import NamedTuple

import numpy as np
from config import Config
from tables import transitions

import gear_reverb as reverb


class Batch(NamedTuple):
    keys: np.ndarray  # u64[B]
    weights: np.ndarray  # f32[B]: importance weights, at most 1.
    first: np.ndarray  # f32[B, 4]
    actions: np.ndarray  # i32[B]
    returns: np.ndarray  # f32[B]: discounted rewards between the observations.
    discounts: np.ndarray  # f32[B]: of the value at `last`.
    last: np.ndarray  # f32[B, 4]


class Batches:
    """Threads that each hold one stream of samples open. `next` is for one thread."""

    def __init__(self, config: Config, address: str):
        self._config, self._address = config, address
        self._ready: queue.Queue[Batch | Exception] = queue.Queue(config.sampler_threads)
        self._closed = threading.Event()
        powers = config.discount ** np.arange(config.n_step + 1)
        self._powers = powers.astype(np.float32)
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(config.sampler_threads)
        ]
        for thread in self._threads:
            thread.start()

    def next(self, timeout_seconds: float) -> Batch | None:
        """None if the limiter let too few samples through in time."""
        try:
            batch = self._ready.get(timeout=timeout_seconds)
        except queue.Empty:
            return None
        if isinstance(batch, Exception):
            raise batch
        return batch

    def close(self) -> None:
        """Threads end at their next sample, or when the server ends their stream."""
        self._closed.set()

    def join(self, timeout_seconds: float) -> None:
        for thread in self._threads:
            thread.join(timeout_seconds)

    def _run(self) -> None:
        try:
            stream = transitions(reverb.Client(self._address))
            while not self._closed.is_set():
                batch = self._draw(stream)
                while not self._closed.is_set():
                    try:
                        self._ready.put(batch, timeout=0.2)
                        break
                    except queue.Full:
                        pass
        except Exception as error:
            if not self._closed.is_set():
                self._ready.put(error)

    def _draw(self, stream) -> Batch:
        size = self._config.batch_size
        batch = Batch(
            np.empty(size, np.uint64),
            np.empty(size, np.float32),
            np.empty((size, 4), np.float32),
            np.empty(size, np.int32),
            np.empty(size, np.float32),
            np.empty(size, np.float32),
            np.empty((size, 4), np.float32),
        )
        for row in range(size):
            info, transition = next(stream)
            length = len(transition.rewards)
            batch.keys[row] = info.key
            batch.weights[row] = info.probability * info.table_size
            batch.first[row], batch.last[row] = transition.observations
            batch.actions[row] = transition.action
            batch.returns[row] = self._powers[:length] @ transition.rewards
            batch.discounts[row] = self._powers[length] * transition.discount
        np.power(batch.weights, -self._config.importance_exponent, out=batch.weights)
        batch.weights[:] /= batch.weights.max()
        return batch
