"""TFClient within `tf.function` and in sessions."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

v1 = tf.compat.v1


@pytest.fixture
def served(pair):
    server = pair.start(pair.table())
    client = pair.connect(server)
    client.insert([np.float32(1), np.int64(2)], {"t": 1.0})
    address = f"localhost:{server.port}"
    return client, lambda: pair.client_lib.TFClient(address)


def test_a_function_samples_updates_and_inserts(served, bounded):
    client, make = served
    tf_client = make()

    @tf.function
    def step(factor):
        sample = tf_client.sample("t", [tf.float32, tf.int64])
        keys = tf.reshape(sample.info.key, [1])
        tf_client.update_priorities("t", keys, tf.reshape(factor * sample.info.priority, [1]))
        tf_client.insert(
            [tf.zeros([]), tf.zeros([], tf.int64)],
            tf.constant(["t"]),
            tf.constant([1.0], tf.float64),
        )
        return sample.data

    for _ in range(3):
        data = bounded(step, tf.constant(2.0, tf.float64))
    assert data[0].numpy() == 1.0 and data[1].numpy() == 2
    assert client.size("t") == 4
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.info.priority == 8.0


def test_operations_of_a_session(served, bounded):
    client, make = served

    def run():
        with tf.Graph().as_default(), v1.Session() as session:
            tf_client = make()
            sample = tf_client.sample("t", {"a": tf.float32, "b": tf.int64})
            keys = v1.placeholder(tf.uint64, [None])
            update = tf_client.update_priorities("t", keys, tf.constant([5.0], tf.float64))
            insert = tf_client.insert(
                [tf.ones([]), tf.ones([], tf.int64)],
                tf.constant(["t"]),
                tf.constant([1.0], tf.float64),
            )
            assert isinstance(update, tf.Operation) and isinstance(insert, tf.Operation)
            first = session.run(sample)
            session.run(update, {keys: [first.info.key]})
            session.run(insert)
            return first, session.run(sample)

    first, second = bounded(run)
    assert first.data == {"a": 1.0, "b": 2} and first.info.key == second.info.key
    assert second.info.priority == 5.0 and second.info.table_size == 2
    assert client.size("t") == 2


def test_errors_come_when_the_operation_runs(served, bounded):
    _, make = served
    tf_client = make()

    @tf.function
    def sample(table):
        return tf_client.sample(table, [tf.float32]).data

    with pytest.raises(tf.errors.OpError, match="nope was not found"):
        bounded(sample, "nope")
    with pytest.raises(tf.errors.InvalidArgumentError):  # The item has a column more.
        bounded(sample, "t")
