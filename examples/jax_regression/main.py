"""Regression with JAX on sequences from a replay table.

    python examples/jax_regression/main.py [--updates 400] [--seed 1]

The table holds sequences of a noisy, damped oscillation; a small network learns to predict each
next value from the four before it, from batches that `gear_reverb.jax.iterate` puts on the device
ahead of their use. Exit status 0 if the loss fell to a tenth. Takes some seconds.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np

import gear_reverb as reverb
import gear_reverb.jax as reverb_jax

STEPS, WINDOW, SEQUENCES, BATCH, HIDDEN = 16, 4, 500, 64, 32
TABLE = "sequences"


def insert(client: reverb.Client, rng: np.random.Generator) -> None:
    """Sequences of one float a step, each its own oscillation."""
    with client.trajectory_writer(num_keep_alive_refs=STEPS) as writer:
        for _ in range(SEQUENCES):
            frequency, phase = rng.uniform(0.3, 0.9), rng.uniform(0, 2 * np.pi)
            for step in range(STEPS):
                value = np.exp(-0.05 * step) * np.sin(frequency * step + phase)
                writer.append({"value": np.float32(value + rng.normal(scale=0.01))})
            writer.create_item(TABLE, 1.0, {"value": writer.history["value"][-STEPS:]})
            writer.end_episode()


def initial(key: jax.Array) -> dict[str, jax.Array]:
    first, second = jax.random.split(key)
    return {
        "hidden": jax.random.normal(first, (WINDOW, HIDDEN)) / np.sqrt(WINDOW),
        "offset": jnp.zeros(HIDDEN),
        "out": jax.random.normal(second, (HIDDEN,)) / np.sqrt(HIDDEN),
    }


def loss_of(parameters: dict[str, jax.Array], values: jax.Array) -> jax.Array:
    """Mean square error over a batch `[B, STEPS]`."""
    windows = jnp.stack([values[:, i : i + STEPS - WINDOW] for i in range(WINDOW)], axis=-1)
    hidden = jnp.tanh(windows @ parameters["hidden"] + parameters["offset"])
    return jnp.mean((hidden @ parameters["out"] - values[:, WINDOW:]) ** 2)


@jax.jit
def update(parameters, momentum, values):
    """A step of gradient descent with momentum."""
    loss, gradient = jax.value_and_grad(loss_of)(parameters, values)
    momentum = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, momentum, gradient)
    parameters = jax.tree_util.tree_map(lambda p, m: p - 0.03 * m, parameters, momentum)
    return parameters, momentum, loss


def learn(client: reverb.Client, updates: int, seed: int) -> tuple[float, float]:
    """The mean losses of the first and the last ten updates."""
    parameters = initial(jax.random.PRNGKey(seed))
    momentum = jax.tree_util.tree_map(jnp.zeros_like, parameters)
    losses = []
    batches = reverb_jax.iterate(client, TABLE, BATCH, timeout=30, max_batches=updates)
    for number, batch in enumerate(batches):
        parameters, momentum, loss = update(parameters, momentum, batch.data["value"])
        losses.append(loss)
        if number % 100 == 0:
            print(f"update {number:4}: loss {loss:.5f}")
    return float(np.mean(losses[:10])), float(np.mean(losses[-10:]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    table = reverb.Table(
        TABLE,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=SEQUENCES,
        rate_limiter=reverb.rate_limiters.MinSize(BATCH),
        signature={"value": reverb.TensorSpec((STEPS,), np.float32)},
    )
    server = reverb.Server([table])
    try:
        client = server.localhost_client()
        insert(client, np.random.default_rng(arguments.seed))
        first, last = learn(client, arguments.updates, arguments.seed)
    finally:
        server.stop()
    passed = last < first / 10
    print(f"{'PASS' if passed else 'FAIL'}  loss {first:.4f} -> {last:.4f}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
