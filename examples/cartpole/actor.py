"""An actor's process: plays CartPole and writes what it sees to the replay table."""

import contextlib
import dataclasses

import gymnasium
import numpy as np
from config import Config
from network import QNetwork
from tables import REPLAY, Step, Transition, fetch
from workers import Link

import gear_reverb as reverb

# A constant well above most errors, so that a new item is soon sampled and gets its own.
_FIRST_PRIORITY = 2.0
_ITEMS_IN_FLIGHT = 32


@dataclasses.dataclass(frozen=True)
class Episode:
    """One finished episode; its return counts its steps."""

    actor: int
    total_return: float
    epsilon: float


def act(link: Link, config: Config, index: int, address: str) -> None:
    Actor(link, config, index, address).run()


class Actor:
    def __init__(self, link: Link, config: Config, index: int, address: str):
        self._link, self._config, self._index = link, config, index
        self._rng = np.random.default_rng([config.seed, index])
        self._environment = gymnasium.make("CartPole-v1")
        self._client = reverb.Client(address)
        self._scale = np.array(config.observation_scale, np.float32)
        self._network = QNetwork((4, *config.hidden_sizes, 2))
        self._steps = 0

    def run(self) -> None:
        seed = int(self._rng.integers(2**31))
        # Closed without a flush, which could wait for a learner that has stopped already.
        with contextlib.closing(self._client.trajectory_writer(self._config.n_step + 1)) as writer:
            while (total_return := self._play(writer, seed)) is not None:
                self._link.report(Episode(self._index, total_return, self._epsilon))
                seed = None  # Go on with the environment's own generator.

    @property
    def _epsilon(self) -> float:
        done = (self._steps - self._config.random_steps) / self._config.decay_steps
        return max(1.0 - max(done, 0.0), self._config.final_epsilons[self._index])

    def _play(self, writer: reverb.TrajectoryWriter, seed: int | None) -> float | None:
        """Plays an episode to its end, or to a stop; the return, or None if stopped."""
        observation, _ = self._environment.reset(seed=seed)
        observation = observation * self._scale
        total_return, over = 0.0, False
        while not over:
            if self._steps % self._config.refresh_steps == 0:
                self._network.parameters[:] = fetch(self._client)
            action = self._choose(observation)
            following, reward, terminated, truncated, _ = self._environment.step(action)
            self._append(writer, observation, action, reward, 0.0 if terminated else 1.0)
            if writer.episode_steps > self._config.n_step:
                self._create_item(writer, self._config.n_step)
            observation, over = following * self._scale, terminated or truncated
            total_return += float(reward)
            self._steps += 1
            if self._steps % 32 == 0 and not self._flush(writer, _ITEMS_IN_FLIGHT):
                return None
        # The last observation ends n-step transitions and ever shorter ones.
        self._append(writer, observation, 0, 0.0, 0.0)
        for length in range(min(self._config.n_step, writer.episode_steps - 1), 0, -1):
            self._create_item(writer, length)
        if not self._flush(writer, 0):
            return None
        writer.end_episode(clear_buffers=True)
        return total_return

    def _choose(self, observation: np.ndarray) -> int:
        if self._rng.random() < self._epsilon:
            return int(self._rng.integers(2))
        return int(np.argmax(self._network.values(observation)))

    def _append(self, writer, observation, action, reward, discount) -> None:
        writer.append(Step(observation, np.int32(action), np.float32(reward), np.float32(discount)))

    def _create_item(self, writer: reverb.TrajectoryWriter, length: int) -> None:
        """The transition of `length` rewards that ends at the newest step's observation."""
        history = writer.history
        writer.create_item(
            REPLAY,
            _FIRST_PRIORITY,
            Transition(
                observations=history.observation[[-length - 1, -1]],
                action=history.action[-length - 1],
                rewards=history.reward[-length - 1 : -1],
                discount=history.discount[-2],
            ),
        )

    def _flush(self, writer: reverb.TrajectoryWriter, in_flight: int) -> bool:
        """Waits while the limiter holds inserts back; False if told to stop."""
        while not self._link.stop_requested():
            try:
                writer.flush(block_until_num_items=in_flight, timeout_ms=500)
                return True
            except reverb.DeadlineExceededError:
                pass  # The learner is behind.
        return False
