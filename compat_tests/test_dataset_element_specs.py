"""What `element_spec` says of the datasets."""

import pytest

tf = pytest.importorskip("tensorflow")

INFO = [((), "uint64"), ((), "float64"), ((), "int64"), ((), "float64"), ((), "int32")]


def make(lib, name, dtypes, shapes):
    return getattr(lib, name)("localhost:1", "t", dtypes, shapes, 10)


def described(spec):
    shape = None if spec.shape.rank is None else tuple(spec.shape.as_list())
    return shape, spec.dtype.name


@pytest.mark.parametrize("name", ["TrajectoryDataset", "TimestepDataset"])
def test_info_is_scalar_and_data_is_as_told(lib, name):
    dtypes = {"a": tf.float32, "b": (tf.int64, tf.string)}
    shapes = {
        "a": tf.TensorShape([None, 2]),
        "b": (tf.TensorShape(None), tf.TensorShape([])),
    }
    spec = make(lib, name, dtypes, shapes).element_spec
    assert type(spec).__name__ == "ReplaySample" and type(spec.info).__name__ == "SampleInfo"
    assert [described(leaf) for leaf in spec.info] == INFO
    assert described(spec.data["a"]) == ((None, 2), "float32")
    assert [described(leaf) for leaf in spec.data["b"]] == [(None, "int64"), ((), "string")]


@pytest.mark.parametrize("name", ["TrajectoryDataset", "TimestepDataset"])
def test_lists_become_tuples(lib, name):
    spec = make(lib, name, [tf.int32, [tf.int32]], [tf.TensorShape([1]), [tf.TensorShape([2])]])
    data = spec.element_spec.data
    assert isinstance(data, tuple) and isinstance(data[1], tuple)


@pytest.mark.parametrize("name", ["TrajectoryDataset", "TimestepDataset"])
def test_a_single_tensor_is_a_structure(lib, name):
    spec = make(lib, name, tf.float64, tf.TensorShape([4])).element_spec
    assert described(spec.data) == ((4,), "float64")


@pytest.mark.parametrize("name", ["TrajectoryDataset", "TimestepDataset"])
def test_it_is_a_dataset(lib, name):
    dataset = make(lib, name, tf.float64, tf.TensorShape([4]))
    assert isinstance(dataset, tf.data.Dataset)
    assert isinstance(dataset, tf.compat.v1.data.Dataset)
    assert dataset._inputs() == []
    assert dataset._as_variant_tensor().dtype == tf.variant
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY


def test_batches_have_an_axis_more(lib):
    dataset = make(lib, "TrajectoryDataset", tf.float64, tf.TensorShape([None, 4]))
    spec = dataset.batch(5).element_spec
    assert described(spec.info.key) == ((None,), "uint64")
    assert described(spec.data) == ((None, None, 4), "float64")
    spec = dataset.batch(5, drop_remainder=True).element_spec
    assert described(spec.info.key) == ((5,), "uint64")
    assert described(spec.data) == ((5, None, 4), "float64")


def test_the_signature_gives_dtypes_and_shapes(pair):
    signature = {"a": tf.TensorSpec([None, 2], tf.float16), "b": [tf.TensorSpec([], tf.string)]}
    server = pair.start(pair.table(signature=signature))
    dataset = pair.client_lib.TrajectoryDataset.from_table_signature(
        f"localhost:{server.port}", "t", 10
    )
    spec = dataset.element_spec
    assert described(spec.data["a"]) == ((None, 2), "float16")
    assert isinstance(spec.data["b"], tuple)
    assert described(spec.data["b"][0]) == ((), "string")
