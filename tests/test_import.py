"""What `import gear_reverb` costs and brings."""

import importlib
import json
import subprocess
import sys

import pytest

import gear_reverb

_MEASURE = """
import json, sys, time
start = time.process_time()
import gear_reverb
seconds = time.process_time() - start
names = ["tensorflow", "torch", "jax", "google.protobuf", "grpc"]
print(json.dumps({"seconds": seconds, "loaded": [n for n in names if n in sys.modules]}))
"""


def measure():
    output = subprocess.run(
        [sys.executable, "-c", _MEASURE], check=True, capture_output=True, text=True
    )
    return json.loads(output.stdout)


def test_import_is_quick_and_brings_no_framework():
    runs = [measure() for _ in range(3)]
    assert all(run["loaded"] == [] for run in runs)
    assert min(run["seconds"] for run in runs) < 0.5  # Of the processor, however busy it is.


def test_all_names_exist_and_no_module_is_forgotten():
    for name in gear_reverb.__all__:
        assert getattr(gear_reverb, name) is not None
    assert gear_reverb.selectors is importlib.import_module("gear_reverb.item_selectors")


@pytest.mark.parametrize(
    "module",
    [
        "client",
        "server",
        "errors",
        "item_selectors",
        "rate_limiters",
        "reverb_types",
        "replay_sample",
        "trajectory_writer",
        "pybind",
        "platform.checkpointers_lib",
        "platform.default.checkpointers",
        "platform.default.server_main_command_line_args",
        "cc.checkpointing.checkpoint_pb2",
        "server_executable.reverb_config_pb2",
        "server_executable.server_from_proto",
        "server_executable.server_main",
        "structured_writer",
        "pattern_dataset",
        "cc.schema_pb2",
        "cc.patterns_pb2",
    ],
)
def test_reverbs_modules_are_there(module):
    importlib.import_module(f"gear_reverb.{module}")


def test_what_needs_tensorflow_is_there_but_not_imported():
    names = dir(gear_reverb)
    for name in ("TFClient", "TimestepDataset", "TrajectoryDataset", "tf_client"):
        assert name in names


WITHOUT_TENSORFLOW = """
import inspect, sys, unittest.mock
sys.modules["tensorflow"] = None
import gear_reverb

def message(get):
    try:
        get()
    except (AttributeError, ImportError) as error:
        return type(error).__name__, "tensorflow" in str(error)

def from_import():
    from gear_reverb import TrajectoryDataset

assert not hasattr(gear_reverb, "TrajectoryDataset")
assert message(lambda: gear_reverb.TrajectoryDataset) == ("AttributeError", True)
assert message(lambda: gear_reverb.tf_client) == ("AttributeError", True)
assert message(from_import) == ("ModuleNotFoundError", True)
members = dict(inspect.getmembers(gear_reverb))
assert "Client" in members and "TFClient" not in members
assert unittest.mock.create_autospec(gear_reverb).Client
"""


def test_without_tensorflow_what_needs_it_is_no_attribute():
    subprocess.run([sys.executable, "-c", WITHOUT_TENSORFLOW], check=True, timeout=60)


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = gear_reverb.nope


def test_errors_are_runtime_errors():
    assert issubclass(gear_reverb.DeadlineExceededError, gear_reverb.ReverbError)
    assert issubclass(gear_reverb.ReverbError, RuntimeError)


def test_version():
    from gear_reverb import _native

    assert _native.__version__ == gear_reverb.__version__
