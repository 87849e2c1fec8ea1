"""Items whose data says which they are, for the tests of datasets."""

import numpy as np
import tensorflow as tf

# Of items of two steps each: item i has the steps i and i + 1.
SIGNATURE = {"x": tf.TensorSpec([None, 3], tf.float32), "n": [tf.TensorSpec([None], tf.int64)]}


def write(client, count, table="t", steps=2):
    """Items 0 to count - 1."""
    with client.trajectory_writer(steps) as writer:
        for i in range(count + steps - 1):
            writer.append({"x": np.full(3, i, np.float32), "n": [np.int64(i)]})
            if i >= steps - 1:
                history = writer.history
                writer.create_item(
                    table, i, {"x": history["x"][-steps:], "n": [history["n"][0][-steps:]]}
                )
        writer.flush()


def serve(pair, count, **options):
    """Address of a server with a first-in first-out table `t` of `count` items."""
    server = pair.start(pair.table(signature=SIGNATURE, **options))
    if count:
        write(pair.connect(server), count)
    return f"localhost:{server.port}"


def first_steps(elements):
    """Which items these elements, or batches, are."""
    return [np.asarray(element.data["n"][0])[..., 0].tolist() for element in elements]
