"""Batches of the datasets."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")


def dataset_of(pair, count, **options):
    address = numbered.serve(pair, count, max_times_sampled=1)
    return pair.client_lib.TrajectoryDataset.from_table_signature(
        address, "t", 8, max_samples=count, **options
    )


def test_the_last_batch_may_be_smaller(pair, bounded):
    batches = bounded(list, dataset_of(pair, 7).batch(3))
    assert numbered.first_steps(batches) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[0].data["x"].shape == (3, 2, 3)
    assert batches[0].info.priority.numpy().tolist() == [1.0, 2.0, 3.0]


def test_or_be_left_out(pair, bounded):
    batches = bounded(list, dataset_of(pair, 7).batch(3, drop_remainder=True))
    assert numbered.first_steps(batches) == [[0, 1, 2], [3, 4, 5]]


def test_a_batch_larger_than_what_is_in_flight(pair, bounded):
    batches = bounded(list, dataset_of(pair, 20).batch(20))
    assert numbered.first_steps(batches) == [list(range(20))]


def test_sizes_may_be_tensors(pair, bounded):
    batches = bounded(list, dataset_of(pair, 4).batch(tf.constant(3, tf.int64)))
    assert numbered.first_steps(batches) == [[0, 1, 2], [3]]


def test_batches_of_batches(pair, bounded):
    batches = bounded(list, dataset_of(pair, 6).batch(2, drop_remainder=True).batch(2))
    assert numbered.first_steps(batches) == [[[0, 1], [2, 3]], [[4, 5]]]


def test_after_a_map_and_with_parallel_calls(pair, bounded):
    dataset = dataset_of(pair, 4).map(lambda sample: sample.data["n"][0][0])
    batches = bounded(list, dataset.batch(2, num_parallel_calls=2).prefetch(1))
    assert [batch.numpy().tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_several_iterators_of_one_dataset(pair, bounded):
    address = numbered.serve(pair, 3)
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        address, "t", 2, max_samples=2
    ).batch(2)
    assert len(bounded(list, dataset)) == len(bounded(list, dataset)) == 1


def test_items_of_different_lengths_are_refused(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    client = pair.connect(server)
    for steps in (2, 2, 3):
        numbered.write(client, 1, steps=steps)
    dataset = pair.client_lib.TrajectoryDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([None, 3]), "n": [tf.TensorShape([None])]},
        10,
        max_samples=3,
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"element 2 had shape \[3"):
        bounded(list, dataset.batch(3))


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_items(pair, bounded, size):
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
        bounded(list, dataset_of(pair, 2).batch(size))


def test_steps_in_batches_of_items(pair, bounded):
    server = pair.start(pair.table(max_times_sampled=1))
    numbered.write(pair.connect(server), 3, steps=4)
    dataset = pair.client_lib.TimestepDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([3]), "n": [tf.TensorShape([])]},
        4,
        max_samples=3,
    )
    batches = bounded(list, dataset.batch(4))
    assert [batch.data["n"][0].numpy().tolist() for batch in batches] == [
        [0, 1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4, 5],
    ]


def ragged_dataset(pair, lengths, **options):
    """Items of these lengths, whose steps count from 0."""
    server = pair.start(pair.table(max_times_sampled=1))
    client = pair.connect(server)
    for steps in lengths:
        numbered.write(client, 1, steps=steps)
    return pair.client_lib.TrajectoryDataset(
        f"localhost:{server.port}",
        "t",
        {"x": tf.float32, "n": [tf.int64]},
        {"x": tf.TensorShape([None, 3]), "n": [tf.TensorShape([None])]},
        10,
        max_samples=len(lengths),
        **options,
    )


@pytest.mark.parametrize("drop", [False, True])
def test_shorter_items_are_padded(pair, bounded, drop):
    dataset = ragged_dataset(pair, [1, 3, 2, 2, 4]).padded_batch(2, drop_remainder=drop)
    assert dataset.element_spec.data["x"].shape.as_list() == [2 if drop else None, None, 3]
    batches = [batch.data["n"][0].numpy().tolist() for batch in bounded(list, dataset)]
    assert batches == [[[0, 0, 0], [0, 1, 2]], [[0, 1], [0, 1]], [[0, 1, 2, 3]]][: 2 if drop else 3]


def test_padded_to_a_shape_of_choice(pair, bounded):
    dataset = ragged_dataset(pair, [1, 2])
    shapes = tf.nest.map_structure(
        lambda spec: tf.TensorShape([5 if size is None else size for size in spec.shape]),
        dataset.element_spec,
    )
    [batch] = bounded(list, dataset.padded_batch(2, padded_shapes=shapes))
    assert batch.data["x"].shape == (2, 5, 3)
    assert batch.data["n"][0].numpy().tolist() == [[0, 0, 0, 0, 0], [0, 1, 0, 0, 0]]


def test_texts_are_padded_too(pair, bounded):
    signature = tf.TensorSpec([None], tf.string)
    server = pair.start(pair.table(signature=signature, max_times_sampled=1))
    client = pair.connect(server)
    with client.trajectory_writer(2) as writer:
        for length in (1, 2):
            for i in range(length):
                writer.append([f"{i}"])
            writer.create_item("t", 1.0, writer.history[0][-length:])
            writer.end_episode()
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        f"localhost:{server.port}", "t", 4, max_samples=2
    )
    [batch] = bounded(list, dataset.padded_batch(2))
    assert batch.data.numpy().tolist() == [[b"0", b""], [b"0", b"1"]]


@pytest.mark.parametrize("size", [2, 3, 100])
def test_batches_of_steps_span_items(pair, bounded, size):
    server = pair.start(pair.table(max_times_sampled=1))
    client = pair.connect(server)
    for steps in (1, 3, 2):
        numbered.write(client, 1, steps=steps)
    for drop in (False, True):
        dataset = pair.client_lib.TimestepDataset(
            f"localhost:{server.port}",
            "t",
            {"x": tf.float32, "n": [tf.int64]},
            {"x": tf.TensorShape([3]), "n": [tf.TensorShape([])]},
            4,
            max_samples=3,
        ).batch(size, drop_remainder=drop)
        assert dataset.element_spec.data["x"].shape.as_list() == [size if drop else None, 3]
        if not drop:
            steps = [0, 0, 1, 2, 0, 1]
            batches = [batch.data["n"][0].numpy().tolist() for batch in bounded(list, dataset)]
            assert batches == [steps[i : i + size] for i in range(0, 6, size)]


@pytest.mark.parametrize("by_tf_data", [False, True])
def test_squeezed_columns_of_different_shapes(our_client, bounded, by_tf_data):
    server = our_client.start(our_client.table(max_times_sampled=1))
    with our_client.connect(server).trajectory_writer(1) as writer:
        for width in (1, 2):
            writer.append({f"{width}": tf.ones([width]).numpy()})
            writer.create_item("t", 1.0, [writer.history[f"{width}"][-1]])
    dataset = our_client.client_lib.TrajectoryDataset(
        f"localhost:{server.port}", "t", [tf.float32], [tf.TensorShape([None])], 2, max_samples=2
    )
    if not by_tf_data:
        with pytest.raises(tf.errors.InvalidArgumentError):
            bounded(list, dataset.padded_batch(2))
        return
    shapes = tf.nest.map_structure(lambda spec: spec.shape, dataset.element_spec)
    [batch] = bounded(list, dataset.padded_batch(2, padded_shapes=shapes))
    assert batch.data[0].numpy().tolist() == [[1, 0], [1, 1]]
