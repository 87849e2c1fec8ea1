"""Data that is not what the dataset was told."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")

DTYPES = {"x": tf.float32, "n": [tf.int64]}
SHAPES = {"x": tf.TensorShape([2, 3]), "n": [tf.TensorShape([2])]}


def fails(pair, bounded, address, dtypes, shapes, message):
    def run():
        return next(iter(pair.client_lib.TrajectoryDataset(address, "t", dtypes, shapes, 2)))

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        bounded(run)


# Columns are counted in the order of the flattened structure: `n` is 0, `x` is 1.
CASES = [
    ({"x": tf.float64, "n": [tf.int64]}, SHAPES, r"index 1 from table 't'.*double, \[2,3\]"),
    (DTYPES, {**SHAPES, "x": tf.TensorShape([2, 4])}, r"index 1 from table 't'.*float, \[2,4\]"),
    (DTYPES, {**SHAPES, "x": tf.TensorShape([2])}, r"index 1 from table 't'.*float, \[2\]"),
    ({"n": [tf.int64]}, {"n": [tf.TensorShape([2])]}, "inconsistent number.*from table 't'"),
]


@pytest.mark.parametrize(("dtypes", "shapes", "message"), CASES)
def test_the_tables_signature_tells_before_there_is_data(pair, bounded, dtypes, shapes, message):
    address = numbered.serve(pair, 0)
    names = "(?=.*0: Tensor<name: 'n/0', dtype: int64, shape: [^>]*>, 1: Tensor<name: 'x')"
    fails(pair, bounded, address, dtypes, shapes, f"(?is)(?=.*requested){names}.*{message}")


@pytest.mark.parametrize(("dtypes", "shapes", "message"), CASES)
def test_without_a_signature_the_first_item_tells(pair, bounded, dtypes, shapes, message):
    server = pair.start(pair.table())
    numbered.write(pair.connect(server), 1)
    address = f"localhost:{server.port}"
    expected = "(?=.*table signature: 0: Tensor<name: '[?]', dtype: int64, shape: )"
    fails(pair, bounded, address, dtypes, shapes, f"(?is)(?=.*received){expected}.*{message}")


def test_a_length_that_the_signature_leaves_open(pair, bounded):
    shapes = {**SHAPES, "n": [tf.TensorShape([5])]}
    fails(pair, bounded, numbered.serve(pair, 1), DTYPES, shapes, r"\[5\].*\[2\]")


def test_steps_of_items_whose_columns_differ_in_length(our_client, bounded):
    server = our_client.start(our_client.table())
    client = our_client.connect(server)
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append([float(i)])
        writer.create_item("t", 1.0, [writer.history[0][:], writer.history[0][-1:]])
    shapes = [tf.TensorShape([])] * 2
    dataset = our_client.client_lib.TimestepDataset(
        f"localhost:{server.port}", "t", [tf.float64] * 2, shapes, 2
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be cut into timesteps"):
        bounded(list, dataset)


def test_an_unknown_table(pair, bounded):
    address = numbered.serve(pair, 0)
    dataset = pair.client_lib.TrajectoryDataset(address, "nope", DTYPES, SHAPES, 2)
    with pytest.raises(tf.errors.OpError, match="table nope was not found"):
        bounded(list, dataset)
