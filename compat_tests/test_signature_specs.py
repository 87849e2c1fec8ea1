"""What signatures may be made of: specs of plain tensors."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

COMPOSITE = {
    "ragged": lambda: tf.RaggedTensorSpec([None, None], tf.float32),
    "sparse": lambda: tf.SparseTensorSpec([3, None], tf.float32),
    "slices": lambda: tf.IndexedSlicesSpec([3], tf.float32),
    "tensor_array": lambda: tf.TensorArraySpec([], tf.float32),
    "dataset": lambda: tf.data.DatasetSpec(tf.TensorSpec([], tf.float32)),
}


@pytest.mark.parametrize("kind", COMPOSITE)
def test_specs_of_other_things_than_tensors_are_refused(lib, kind):
    with pytest.raises(ValueError, match="Unsupported signature spec"):
        lib.table(signature={"a": COMPOSITE[kind]()})


@pytest.mark.parametrize("value", [lambda: np.zeros(3), lambda: tf.zeros(3)])
def test_values_are_refused(lib, value):
    with pytest.raises(ValueError, match="Unsupported signature spec"):
        lib.table(signature={"a": value()})


def test_the_specs_of_an_environment(our_server, describe):
    specs = pytest.importorskip("dm_env.specs")
    signature = {
        "array": specs.Array((3,), np.float32, "image"),
        "bounded": specs.BoundedArray((2,), np.int32, 0, [5, 6]),
        "discrete": specs.DiscreteArray(4, np.int64),
        "text": specs.StringArray(()),
    }
    client = our_server.serve(our_server.table(signature=signature))
    told = client.server_info()["t"].signature
    assert describe(told) == {
        "array": ((3,), "float32"),
        "bounded": ((2,), "int32"),
        "discrete": ((), "int64"),
        "text": ((), "object"),
    }
    assert told["array"].name == "image"
    assert (told["bounded"].minimum.tolist(), told["bounded"].maximum.tolist()) == (0, [5, 6])
    step = {
        "array": np.zeros(3, np.float32),
        "bounded": np.zeros(2, np.int32),
        "discrete": np.int64(3),
        "text": "up",
    }
    client.insert(step, {"t": 1.0})
    with pytest.raises(ValueError, match="array"):
        client.insert({**step, "array": np.zeros(4, np.float32)}, {"t": 1.0})
    assert client.size("t") == 1
