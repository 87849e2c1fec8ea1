"""Trains one of Acme's agents, whichever library `import reverb` gives; compare.py starts it twice.

    python train.py AGENT --seed 0 --blocks 50                                 with dm-reverb
    python -m gear_reverb run train.py AGENT --seed 0 --blocks 50              with gear_reverb

Training goes in blocks of learner steps. Before each, it waits for a line on stdin; after each, it
writes a line of JSON with what the block took to stdout, and after the last one what it learnt and
how its tables look. So two trainings can take turns on one machine.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).with_name("stand_ins")))

import acme  # noqa: E402
import numpy as np  # noqa: E402
import reverb  # noqa: E402
import signature_timeout  # noqa: E402, F401
import tensorflow as tf  # noqa: E402
import tree  # noqa: E402
from acme import datasets  # noqa: E402
from acme.utils import loggers  # noqa: E402
from agents import AGENTS  # noqa: E402


class Turns:
    """A learner that waits for its turn before every block of steps.

    A block's time is the wall's from the word to go on until its last step is done, with all the
    acting and writing that happened in between.
    """

    def __init__(self, learner: Any, block_steps: int, blocks: int, say):
        self._learner, self._say = learner, say
        self._block_steps, self._left = block_steps, block_steps * blocks
        self._wait()

    @property
    def over(self) -> bool:
        return not self._left

    def step(self) -> None:
        if self.over:
            return
        self._learner.step()
        self._left -= 1
        if self._left % self._block_steps == 0:
            seconds, cpu_seconds = time.perf_counter() - self._start, time.process_time()
            self._say({"seconds": seconds, "cpu_seconds": cpu_seconds - self._cpu_start})
            if not self.over:
                self._wait()

    def _wait(self) -> None:
        if not sys.stdin.readline():
            raise SystemExit("nobody waits for the training any more")
        self._start, self._cpu_start = time.perf_counter(), time.process_time()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)


def _leaves(nest: Any) -> dict[str, str]:
    """Path, dtype and shape of every leaf, tensors and specs alike."""
    return {
        "/".join(map(str, path)): f"{tf.as_dtype(leaf.dtype).name} {tuple(leaf.shape)}"
        for path, leaf in tree.flatten_with_path(nest)
    }


def _message(proto: Any) -> dict[str, str]:
    return {field.name: str(value).strip() for field, value in proto.ListFields()}


def describe(server: reverb.Server) -> dict[str, Any]:
    """How each table is set up, and what an item and a batch of it look like."""
    address = f"localhost:{server.port}"
    client = reverb.Client(address)
    described = {}
    for name, info in client.server_info(timeout=10).items():
        sample = next(iter(client.sample(name, 1, emit_timesteps=False)))
        limiter = info.rate_limiter_info
        described[name] = {
            "sampler": _message(info.sampler_options),
            "remover": _message(info.remover_options),
            "max_size": info.max_size,
            "max_times_sampled": info.max_times_sampled,
            "samples_per_insert": limiter.samples_per_insert,
            "min_size_to_sample": limiter.min_size_to_sample,
            "min_diff": limiter.min_diff,
            "max_diff": limiter.max_diff,
            "signature": _leaves(info.signature),
            "item": _leaves(sample.data),
            "batch": _leaves(datasets.make_reverb_dataset(address, batch_size=4).element_spec),
        }
    return described


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", choices=AGENTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--blocks", type=int, default=50)
    parser.add_argument("--block-steps", type=int, default=100)
    arguments = parser.parse_args()
    # What Acme prints goes to stderr.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(message: Any) -> None:
        print(json.dumps(message), file=answers, flush=True)

    random.seed(arguments.seed)
    np.random.seed(arguments.seed)
    tf.random.set_seed(arguments.seed)
    environment, agent, server = AGENTS[arguments.agent](arguments.seed)
    turns = agent._learner = Turns(agent._learner, arguments.block_steps, arguments.blocks, say)
    loop = acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger())
    curve, steps = [], 0
    while not turns.over:
        episode = loop.run_episode()
        steps += episode["episode_length"]
        curve.append([steps, float(episode["episode_return"])])
    say({"library": reverb.__name__, "curve": curve, "tables": describe(server)})
    os._exit(0)  # Nobody waits for pools and datasets to wind down.


if __name__ == "__main__":
    main()
