"""The package with an emulated GPU, where this was imported first, as by `pytest -p emulated_gpu`.

The extension is that of the CMake target `_native_emulated.<ABI>`, whose path GEAR_REVERB_EMULATED
has. `torch`, beside this, has the GPU's arrays.
"""

import ctypes
import importlib.util
import os
import sys

assert "gear_reverb" not in sys.modules, "gear_reverb must not have been imported yet"
PATH = os.environ["GEAR_REVERB_EMULATED"]
# The ways of gathering are not measured: that takes long without a GPU's threads.
os.environ["GEAR_REVERB_MEASURE"] = "0"

_spec = importlib.util.spec_from_file_location("gear_reverb._native", PATH)
_native = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_native)
sys.modules[_spec.name] = _native
_runtime = ctypes.CDLL(PATH)


def call(name: str, *arguments: object) -> None:
    """A call of the emulated CUDA runtime."""
    error = getattr(_runtime, name)(*arguments)
    if error:
        raise RuntimeError(f"{name}: error {error}")
