"""Element types that NumPy lacks, within a process and over the wire."""

import ml_dtypes
import numpy as np
import processes
import pytest
from tables import make_table

import gear_reverb

DTYPES = [
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e4m3b11fnuz,
    ml_dtypes.float8_e5m2fnuz,
]


@pytest.fixture(scope="module", params=["in-process", "grpc"])
def client(request):
    if request.param == "in-process":
        server = gear_reverb.Server([gear_reverb.Table.queue("t", 100)])
        yield server.localhost_client()
        server.stop()
        return
    with processes.serve("gear_reverb.Table.queue('t', 100)") as (_, port):
        yield gear_reverb.Client(f"localhost:{port}")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_ml_dtypes_come_back(client, dtype):
    values = np.array([[0.0, 0.5, -1.5], [2.0, -0.25, 1.0]], dtype)
    with client.trajectory_writer(2) as writer:
        for row in values:
            writer.append({"rows": row, "scalar": row[1]})
        writer.create_item(
            "t", 1.0, {"rows": writer.history["rows"][:], "last": writer.history["scalar"][-1]}
        )
    [sample] = client.sample("t", emit_timesteps=False)
    last, rows = sample.data
    assert (rows.dtype, last.dtype) == (dtype, dtype)
    assert (rows.shape, last.shape) == ((2, 3), ())
    # By bits, for these types know few operations.
    assert rows.tobytes() == values.tobytes()
    assert last.tobytes() == values[1, 1].tobytes()


def test_signatures_may_have_ml_dtypes(serve):
    signature = {"x": gear_reverb.TensorSpec([None, 3], ml_dtypes.bfloat16, "x")}
    client = serve(make_table(signature=signature))
    spec = client.server_info()["t"].signature["x"]
    assert np.dtype(getattr(spec.dtype, "as_numpy_dtype", spec.dtype)) == ml_dtypes.bfloat16
    with client.trajectory_writer(1) as writer:
        writer.append({"x": np.zeros(3, np.float16)})
        with pytest.raises(ValueError, match="bfloat16"):
            writer.create_item("t", 1.0, {"x": writer.history["x"][:]})


@pytest.mark.parametrize("dtype", [np.longdouble, "datetime64[s]", ml_dtypes.int4])
def test_other_types_are_refused_by_name(client, dtype):
    with client.trajectory_writer(1) as writer, pytest.raises(TypeError, match="dtype"):
        writer.append([np.zeros(2, dtype)])
