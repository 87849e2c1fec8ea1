"""Items must fit their table's signature; the error says which column does not, and how."""

import numpy as np
import pytest


@pytest.fixture
def written(pair):
    """A client, and a writer with three steps of `x` (float32 [2]) and `y` (int32 [])."""
    spec = pair.server_lib.spec
    signature = {"a": spec([None, 2], np.float32), "b": spec([], np.int32)}
    client = pair.serve(pair.table(signature=signature), pair.table("free"))
    writer = client.trajectory_writer(3)
    for i in range(3):
        writer.append({"x": np.full(2, i, np.float32), "y": np.int32(i)})
    yield client, writer
    writer.close()


def test_what_fits_is_taken(written):
    client, writer = written
    history = writer.history
    for some in [slice(0, 1), slice(1, None), slice(None)]:
        writer.create_item("t", 1.0, {"a": history["x"][some], "b": history["y"][0]})
    writer.flush()
    assert client.size("t") == 3


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda x, y: {"a": x[:]}, "1 columns .* 2 columns"),
        (lambda x, y: {"a": x[:], "b": y[0], "c": y[0]}, "3 columns .* 2 columns"),
        (lambda x, y: {"a": x[0], "b": y[0]}, r"column 0 .*\[\?,2\].*\[2\]"),
        (lambda x, y: {"a": y[:], "b": y[0]}, "column 0 .*float.*int32"),
        (lambda x, y: {"a": x[:], "b": y[:]}, r"column 1 .*\[\].*\[3\]"),
        (lambda x, y: {"a": x[:], "b": x[0]}, "column 1 .*int32.*float"),
        (lambda x, y: {"a": y[0], "b": x[:]}, "column 0 "),
    ],
    ids=["missing", "extra", "squeezed", "dtype", "not_squeezed", "both", "swapped"],
)
def test_what_does_not_fit_is_refused(written, make, message):
    client, writer = written
    history = writer.history
    with pytest.raises(ValueError, match=message) as error:
        writer.create_item("t", 1.0, make(history["x"], history["y"]))
    assert "'t'" in str(error.value) and "signature" in str(error.value)
    # The writer goes on.
    writer.create_item("t", 1.0, {"a": history["x"][:], "b": history["y"][0]})
    writer.flush()
    assert client.size("t") == 1


def test_a_table_without_signature_takes_anything(written):
    client, writer = written
    writer.create_item("free", 1.0, {"q": [writer.history["y"][1], writer.history["x"][:2]]})
    writer.flush()
    assert client.size("free") == 1


def test_validation_can_be_left_out(pair):
    signature = [pair.server_lib.spec([None], np.float32)]
    client = pair.serve(pair.table(signature=signature))
    with client.trajectory_writer(1, validate_items=True) as writer:
        writer.append([np.int32(1)])
        with pytest.raises(ValueError):
            writer.create_item("t", 1.0, [writer.history[0][:]])
    with client.trajectory_writer(1, validate_items=False) as writer:
        writer.append([np.int32(1)])
        writer.create_item("t", 1.0, [writer.history[0][:]])
    assert client.size("t") == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_inserts_are_validated_too(pair, dtype):
    client = pair.serve(pair.table(signature=[pair.server_lib.spec([2], np.float32)]))
    client.insert([np.zeros(2, np.float32)], {"t": 1.0})
    with pytest.raises(ValueError, match="'t'"):
        client.insert([np.zeros(2, dtype)], {"t": 1.0})
    with pytest.raises(ValueError, match="'t'"):
        client.insert([np.zeros(2, np.float32), 1], {"t": 1.0})
    assert client.size("t") == 1
