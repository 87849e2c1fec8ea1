"""What the constructors of datasets refuse."""

import pytest

tf = pytest.importorskip("tensorflow")
numbered = pytest.importorskip("numbered")

NAMES = ["TrajectoryDataset", "TimestepDataset"]


def make(lib, name, **options):
    arguments = {
        "server_address": "localhost:1",
        "table": "t",
        "dtypes": {"a": tf.float32},
        "shapes": {"a": tf.TensorShape([2])},
        "max_in_flight_samples_per_worker": 1,
    }
    return getattr(lib, name)(**{**arguments, **options})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("max_in_flight_samples_per_worker", 0, r"\(0\) must be a positive integer"),
        ("max_in_flight_samples_per_worker", -1, r"\(-1\) must be a positive integer"),
        ("num_workers_per_iterator", 0, r"\(0\) must be a positive integer or -1"),
        ("num_workers_per_iterator", -2, r"\(-2\) must be a positive integer or -1"),
        ("max_samples_per_stream", 0, r"\(0\) must be a positive integer or -1"),
        ("max_samples_per_stream", -2, r"\(-2\) must be a positive integer or -1"),
        ("rate_limiter_timeout_ms", -2, r"\(-2\) must be an integer >= -1"),
        ("max_samples", 0, r"\(0\) must be a positive integer or -1"),
        ("max_samples", -2, r"\(-2\) must be a positive integer or -1"),
    ],
)
def test_numbers_out_of_range(lib, name, argument, value, message):
    with pytest.raises(ValueError, match=f"{argument} {message}"):
        make(lib, name, **{argument: value})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, "1"])
def test_no_numbers(lib, name, value):
    with pytest.raises(TypeError):
        make(lib, name, max_samples=value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("argument", ["server_address", "table"])
def test_no_text(lib, name, argument):
    with pytest.raises(TypeError, match=argument if lib.is_ours else "string"):
        make(lib, name, **{argument: 3})
    make(lib, name, **{argument: tf.constant("x")})


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_and_shapes_of_different_structure(lib, name):
    with pytest.raises(ValueError, match="same nested structure"):
        make(lib, name, shapes={"a": tf.TensorShape([2]), "b": tf.TensorShape([2])})
    with pytest.raises(ValueError, match="same nested structure"):
        make(lib, name, shapes={"a": [2]})


@pytest.mark.parametrize("name", NAMES)
def test_from_the_signature_of_an_unknown_table(pair, name):
    address = numbered.serve(pair, 0)
    cls = getattr(pair.client_lib, name)
    with pytest.raises(ValueError, match="does not contain any table named nope. Found: t."):
        cls.from_table_signature(address, "nope", 1)


@pytest.mark.parametrize("name", NAMES)
def test_from_a_table_without_signature(pair, name):
    server = pair.start(pair.table())
    cls = getattr(pair.client_lib, name)
    with pytest.raises(ValueError, match="Table t at localhost:.* does not have a signature"):
        cls.from_table_signature(f"localhost:{server.port}", "t", 1)


@pytest.mark.parametrize("name", NAMES)
def test_from_a_server_that_is_not_there(lib, name, bounded):
    cls = getattr(lib, name)
    with pytest.raises(lib.DeadlineExceededError, match="timeout of 1s"):
        bounded(cls.from_table_signature, "localhost:1", "t", 1, get_signature_timeout_secs=1)
