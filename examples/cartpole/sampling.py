"""Batches for the learner, drawn and stacked by threads while it computes."""

import queue
import threading
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from config import Config
from tables import transitions

import gear_reverb as reverb

_CLOSE_SECONDS = 5.0


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

    def close(self) -> bool:
        """Ends the threads; needs actors at work, as no stream is left within a draw."""
        self._closed.set()
        for thread in self._threads:
            thread.join(_CLOSE_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        try:
            stream = transitions(reverb.Client(self._address))
            while not self._closed.is_set():
                self._put(self._draw(stream))
            stream.close()
        except Exception as error:
            self._put(error)

    def _put(self, batch: Batch | Exception | None) -> None:
        while not self._closed.is_set():
            try:
                return self._ready.put(batch, timeout=0.2)
            except queue.Full:
                pass

    def _draw(self, stream: Generator[Any, None, None]) -> Batch | None:
        """None if closed meanwhile."""
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
            if self._closed.is_set():
                return None
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
