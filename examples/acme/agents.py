"""Three of Acme's agents, each with a small environment that it can learn within minutes."""

from collections.abc import Callable

import dm_env
import gym
import numpy as np
import reverb
import sonnet as snt
import tensorflow as tf
from acme import specs, wrappers
from acme.agents.agent import Agent
from acme.agents.tf import d4pg, dqn, r2d2
from acme.tf import networks
from acme.utils import loggers
from catch import Catch

Made = tuple[dm_env.Environment, Agent, reverb.Server]


def make_dqn(seed: int) -> Made:
    """N-step transitions, by priority, of CartPole."""
    environment = _gym("CartPole-v1", seed)
    spec = specs.make_environment_spec(environment)
    agent = dqn.DQN(
        spec,
        network=snt.Sequential([snt.Flatten(), snt.nets.MLP([64, 64, spec.actions.num_values])]),
        batch_size=64,
        samples_per_insert=32.0,
        min_replay_size=500,
        n_step=3,
        logger=loggers.NoOpLogger(),
        checkpoint=False,
    )
    return environment, agent, agent._server


def make_r2d2(seed: int) -> Made:
    """Overlapping sequences with the state of an LSTM, by priority, of Catch."""
    environment = wrappers.SinglePrecisionWrapper(Catch(seed))
    spec = specs.make_environment_spec(environment)
    agent = r2d2.R2D2(
        spec,
        network=_Recurrent(spec.actions.num_values),
        burn_in_length=2,
        trace_length=6,
        replay_period=4,
        batch_size=32,
        samples_per_insert=16.0,
        min_replay_size=50,
        epsilon=0.05,
        logger=loggers.NoOpLogger(),
        checkpoint=False,
    )
    return environment, agent, agent._server


def make_d4pg(seed: int) -> Made:
    """N-step transitions, drawn uniformly, of Pendulum."""
    environment = wrappers.CanonicalSpecWrapper(_gym("Pendulum-v1", seed), clip=True)
    spec = specs.make_environment_spec(environment)
    size = int(np.prod(spec.actions.shape))
    agent = d4pg.D4PG(
        spec,
        policy_network=snt.Sequential(
            [networks.LayerNormMLP([64, 64], activate_final=True), snt.Linear(size), tf.tanh]
        ),
        critic_network=snt.Sequential(
            [
                networks.CriticMultiplexer(),
                networks.LayerNormMLP([64, 64], activate_final=True),
                networks.DiscreteValuedHead(vmin=-1000.0, vmax=0.0, num_atoms=51),
            ]
        ),
        policy_optimizer=snt.optimizers.Adam(1e-3),
        critic_optimizer=snt.optimizers.Adam(1e-3),
        batch_size=64,
        samples_per_insert=64.0,
        min_replay_size=500,
        n_step=3,
        logger=loggers.NoOpLogger(),
        checkpoint=False,
    )
    return environment, agent, agent._replay_server


AGENTS: dict[str, Callable[[int], Made]] = {
    "DQN, CartPole": make_dqn,
    "R2D2, Catch": make_r2d2,
    "D4PG, Pendulum": make_d4pg,
}


class _Recurrent(networks.RNNCore):
    """Action values by an LSTM; R2D2 also unrolls it over whole sequences."""

    def __init__(self, num_actions: int):
        super().__init__(name="recurrent")
        layers = [snt.Flatten(), snt.Linear(32), tf.nn.relu, snt.LSTM(32), snt.Linear(num_actions)]
        self._core = snt.DeepRNN(layers)

    def __call__(self, inputs, state):
        return self._core(inputs, state)

    def initial_state(self, batch_size: int, **kwargs):
        return self._core.initial_state(batch_size, **kwargs)

    def unroll(self, inputs, state, sequence_length: int):
        return snt.static_unroll(self._core, inputs, state, sequence_length)


def _gym(name: str, seed: int) -> dm_env.Environment:
    environment = gym.make(name)
    environment.seed(seed)
    return wrappers.SinglePrecisionWrapper(wrappers.GymWrapper(environment))
