"""TFClient, eagerly."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")


def names(*tables):
    return tf.constant(tables)


def priorities(*values):
    return tf.constant(values, tf.float64)


@pytest.fixture
def served(pair):
    server = pair.start(pair.table(), pair.table("u"))
    address = f"localhost:{server.port}"
    return pair.connect(server), pair.client_lib.TFClient(address), address


def test_address(served):
    _, tf_client, address = served
    assert tf_client.server_address == tf_client._server_address == address


def test_what_is_inserted_is_sampled(served, bounded):
    client, tf_client, _ = served
    data = [tf.constant([1.0, 2.0]), tf.constant(3, tf.int64), tf.constant("text")]
    assert bounded(tf_client.insert, data, names("t", "u"), priorities(1.5, 2.5)) is None
    assert client.size("t") == client.size("u") == 1
    sample = bounded(tf_client.sample, "u", [tf.float32, tf.int64, tf.string])
    assert sample.data[0].numpy().tolist() == [1.0, 2.0]
    assert sample.data[1].numpy() == 3 and sample.data[2].numpy() == b"text"
    assert sample.info.priority.numpy() == 2.5
    assert [value.dtype.name for value in sample.info] == [
        *("uint64", "float64", "int64", "float64", "int32")
    ]


def test_data_is_nested_as_its_dtypes(served, bounded):
    client, tf_client, _ = served
    client.insert({"a": np.float32(1), "b": [np.int64(2)]}, {"t": 1.0})
    sample = bounded(tf_client.sample, "t", {"a": tf.float32, "b": [tf.int64]})
    assert sample.data["a"].numpy() == 1.0 and sample.data["b"][0].numpy() == 2


def test_of_an_item_of_several_steps_the_first_comes(served, bounded):
    client, tf_client, _ = served
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append([np.int64(i)])
        writer.create_item("t", 1.0, [writer.history[0][:]])
    assert bounded(tf_client.sample, "t", [tf.int64]).data[0].numpy() == 0


def test_priorities_are_updated_and_unknown_keys_ignored(served, bounded):
    client, tf_client, _ = served
    client.insert([1], {"t": 1.0})
    key = bounded(tf_client.sample, "t", [tf.int64]).info.key
    bounded(tf_client.update_priorities, "t", [int(key), 5], [7.0, 8.0])
    assert bounded(tf_client.sample, "t", [tf.int64]).info.priority.numpy() == 7.0
    bounded(tf_client.update_priorities, "t", tf.reshape(key, [1]), priorities(9.0))
    assert bounded(tf_client.sample, "t", [tf.int64]).info.priority.numpy() == 9.0


def test_inserting_into_no_table_does_nothing(served, bounded):
    client, tf_client, _ = served
    bounded(tf_client.insert, [tf.zeros(2)], tf.constant([], tf.string), priorities())
    assert client.size("t") == 0


@pytest.mark.parametrize(
    ("tables", "values", "message"),
    [
        (tf.constant("t"), priorities(1.0), "tables must be a string tensor of rank 1"),
        (tf.constant([1]), priorities(1.0), "tables must be a string tensor of rank 1"),
        (names("t"), tf.constant([1.0]), "priorities must be a float64 tensor of rank 1"),
        (names("t"), priorities(1.0, 2.0), "priorities and tables must have the same shape"),
    ],
)
def test_what_insert_refuses(served, tables, values, message):
    with pytest.raises(ValueError, match=message):
        served[1].insert([tf.zeros(2)], tables, values)


def test_wrong_data(served, bounded):
    client, tf_client, _ = served
    client.insert([np.float32(1)], {"t": 1.0})
    for dtypes in ([tf.float64], [tf.float32, tf.float32]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            bounded(tf_client.sample, "t", dtypes)


def test_wrong_keys_and_priorities(served, bounded):
    _, tf_client, _ = served
    with pytest.raises(ValueError, match="uint64"):
        tf_client.update_priorities("t", tf.constant([1], tf.int64), priorities(1.0))
    for keys, values in [([1], [1.0, 2.0]), (1, 1.0), ([[1]], [[1.0]])]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="`keys` and `priorities`"):
            bounded(tf_client.update_priorities, "t", keys, values)


def test_unknown_tables(served, bounded):
    _, tf_client, _ = served
    with pytest.raises(tf.errors.InvalidArgumentError, match="'nope'"):
        bounded(tf_client.insert, [tf.zeros(2)], names("nope"), priorities(1.0))
    with pytest.raises(tf.errors.NotFoundError, match="nope was not found"):
        bounded(tf_client.sample, "nope", [tf.float32])
    with pytest.raises(tf.errors.NotFoundError, match="nope was not found"):
        bounded(tf_client.update_priorities, "nope", [1], [1.0])


def test_a_priority_that_is_no_number(served, bounded):
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not be nan"):
        bounded(served[1].insert, [tf.zeros(2)], names("t"), priorities(float("nan")))
