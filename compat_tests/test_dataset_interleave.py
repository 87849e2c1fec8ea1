"""Datasets that are made within `Dataset.interleave`, as agents do."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")


def test_iterators_that_share_a_table(pair, bounded):
    address = numbered.serve(pair, 12, max_times_sampled=1)

    def make(_):
        dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
            address, "t", 2, rate_limiter_timeout_ms=500
        )
        return dataset.batch(2, drop_remainder=True)

    dataset = tf.data.Dataset.range(3).interleave(
        make, cycle_length=3, num_parallel_calls=3, deterministic=False
    )
    batches = bounded(list, dataset.prefetch(2))
    items = [item for batch in numbered.first_steps(batches) for item in batch]
    assert len(items) == len(set(items)) >= 8  # What is left makes no whole batch.
    assert dataset.element_spec.data["x"].shape.as_list() == [2, None, 3]


def test_addresses_and_tables_may_be_tensors(pair, bounded):
    addresses = [numbered.serve(pair, 2), numbered.serve(pair, 2)]

    def make(address):
        return pair.client_lib.TrajectoryDataset(
            address,
            tf.constant("t"),
            {"x": tf.float32, "n": [tf.int64]},
            {"x": tf.TensorShape([2, 3]), "n": [tf.TensorShape([2])]},
            2,
            max_samples=3,
        )

    dataset = tf.data.Dataset.from_tensor_slices(addresses).interleave(make, cycle_length=2)
    assert len(bounded(list, dataset)) == 6


def test_within_a_function(pair, bounded):
    address = numbered.serve(pair, 4, max_times_sampled=1)
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(address, "t", 2, max_samples=4)

    @tf.function
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for sample in dataset:
            result += sample.data["n"][0][0]
        return result

    assert bounded(total, dataset) == 0 + 1 + 2 + 3
