"""The two tables of the demo, and what their items hold."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from config import Config

import gear_reverb as reverb

REPLAY = "replay"
VARIABLES = "variables"


class Step(NamedTuple):
    """What an actor appends: an observation, and what followed the action taken there."""

    observation: np.ndarray  # f32[4]
    action: np.int32
    reward: np.float32
    discount: np.float32  # 0 if the pole fell, else 1: a time limit is no end of the task.


class Transition(NamedTuple):
    """One item of the replay table: up to `n_step` rewards between two observations."""

    observations: Any  # f32[2, 4]: the first and the last.
    action: Any  # i32: taken at the first.
    rewards: Any  # f32[k], 1 <= k <= n_step.
    discount: Any  # f32: 0 if the last observation is terminal.


def make_tables(config: Config) -> list[reverb.Table]:
    warm_up = config.min_replay_size * config.samples_per_insert
    return [
        reverb.Table(
            name=REPLAY,
            sampler=reverb.selectors.Prioritized(config.priority_exponent),
            remover=reverb.selectors.Fifo(),
            max_size=config.replay_size,
            rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
                samples_per_insert=config.samples_per_insert,
                min_size_to_sample=config.min_replay_size,
                error_buffer=0.5 * warm_up,
            ),
        ),
        reverb.Table(
            name=VARIABLES,
            sampler=reverb.selectors.Lifo(),
            remover=reverb.selectors.Fifo(),
            max_size=1,
            rate_limiter=reverb.rate_limiters.MinSize(1),
        ),
    ]


def publish(client: reverb.Client, parameters: np.ndarray) -> None:
    """Replaces the parameters that actors see."""
    client.insert([parameters], {VARIABLES: 1.0})


def fetch(client: reverb.Client) -> np.ndarray:
    """The newest parameters; waits for the first ones."""
    [sample] = client.sample(VARIABLES, 1, emit_timesteps=False)
    return sample.data[0][0]


def transitions(
    client: reverb.Client,
) -> Generator[tuple[reverb.SampleInfo, Transition], None, None]:
    """Draws from the replay table without end, over one stream."""
    for sample in client.sample(REPLAY, 2**62, emit_timesteps=False):
        yield sample.info, Transition(*sample.data)
