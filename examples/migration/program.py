"""A program written for dm-reverb: fills a table, and reads batches of it through tf.data.

Run it by `python` for dm-reverb, and by `gear-reverb run` for gear_reverb; see docs/migration.md.
"""

import time

import numpy as np
import reverb
import tensorflow as tf

BATCH_SIZE = 256
SECONDS = 3.0


def make_server() -> reverb.Server:
    table = reverb.Table(
        name="replay",
        sampler=reverb.selectors.Prioritized(0.8),
        remover=reverb.selectors.Fifo(),
        max_size=10_000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={
            "observation": tf.TensorSpec([None, 4], tf.float32),
            "reward": tf.TensorSpec([None], tf.float32),
        },
    )
    return reverb.Server(tables=[table])


def write(client: reverb.Client, steps: int) -> None:
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        for step in range(steps):
            writer.append({"observation": np.full(4, step, np.float32), "reward": np.float32(step)})
            if step > 0:
                transition = {name: column[-2:] for name, column in writer.history.items()}
                writer.create_item("replay", 1.0, transition)


def main() -> None:
    server = make_server()
    write(server.localhost_client(), steps=5_000)
    dataset = reverb.TrajectoryDataset.from_table_signature(
        f"localhost:{server.port}", "replay", max_in_flight_samples_per_worker=2 * BATCH_SIZE
    )
    batches = iter(dataset.batch(BATCH_SIZE))
    first = next(batches)
    start, count = time.monotonic(), 0
    while time.monotonic() - start < SECONDS:
        next(batches)
        count += BATCH_SIZE
    rate = count / (time.monotonic() - start)
    print(f"{reverb.__name__}: observations {first.data['observation'].shape}, {rate:,.0f} items/s")


if __name__ == "__main__":
    main()
