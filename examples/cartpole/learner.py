"""The learner's process: double Q-learning with n-step returns from prioritized replay.

van Hasselt et al., 2016 (double Q-learning); Schaul et al., 2016 (prioritized replay); the
division into actors and a learner is that of Horgan et al., 2018 (Ape-X).
"""

import dataclasses
import time

import numpy as np
from config import Config
from network import Adam, QNetwork
from sampling import Batch, Batches
from tables import REPLAY, publish
from workers import Link

import gear_reverb as reverb

_SMALLEST_PRIORITY = 1e-3


@dataclasses.dataclass(frozen=True)
class Progress:
    updates: int
    mean_error: float  # Mean absolute error of the newest batch.
    mean_value: float


def learn(link: Link, config: Config, address: str) -> None:
    Learner(link, config, address).run()


class Learner:
    def __init__(self, link: Link, config: Config, address: str):
        self._link, self._config = link, config
        self._client = reverb.Client(address)
        sizes = (4, *config.hidden_sizes, 2)
        self._network = QNetwork(sizes, np.random.default_rng(config.seed))
        self._target = QNetwork(sizes)
        self._adam = Adam(self._network.parameters.size, config.learning_rate)
        self._batches = Batches(config, address)

    def run(self) -> None:
        config, updates, reported = self._config, 0, 0.0
        while not self._link.stop_requested():
            if updates % config.target_period == 0:
                self._target.parameters[:] = self._network.parameters
            if updates % config.publish_period == 0:
                publish(self._client, self._network.parameters)
            while (batch := self._batches.next(timeout_seconds=0.2)) is None:
                if self._link.stop_requested():
                    break
            else:
                errors, values = self._update(batch)
                updates += 1
                if time.monotonic() - reported > 0.2:
                    self._link.report(Progress(updates, errors, values))
                    reported = time.monotonic()
        if not self._batches.close():
            raise TimeoutError("a stream of samples did not end")

    def _update(self, batch: Batch) -> tuple[float, float]:
        """One step of Adam and the batch's new priorities; mean error and mean value."""
        rows = np.arange(len(batch.keys))
        choices = self._network.values(batch.last).argmax(axis=1)
        values = self._target.values(batch.last)[rows, choices]
        targets = batch.returns + batch.discounts * values
        gradient, errors = self._network.gradient(
            batch.first, batch.actions, targets, batch.weights
        )
        self._adam.update(self._network.parameters, gradient)
        errors = np.abs(errors)
        priorities = np.maximum(errors, _SMALLEST_PRIORITY)
        self._client.mutate_priorities(
            REPLAY, updates=dict(zip(batch.keys.tolist(), priorities.tolist(), strict=True))
        )
        return float(errors.mean()), float(targets.mean())
