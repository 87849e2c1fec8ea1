"""What there is of CUDA: kernels in this build, GPUs in this machine, and how they do.

Importing this module, and all of the package, needs neither a GPU nor a driver.
"""

from typing import Any

from gear_reverb import _native


def is_built() -> bool:
    """Whether this build has the kernels: whether there was an `nvcc` when it was built."""
    return _native.cuda_is_built()


def is_available() -> bool:
    """Whether `device='cuda:0'` can work here; `why_not` says why it cannot."""
    return not _native.cuda_why_not()


def why_not() -> str:
    """Why no GPU can be used: no kernels, no driver, one that is too old, no GPU. "" if one can."""
    return _native.cuda_why_not()


def stats() -> dict[str, Any]:
    """The state of everything about GPUs, as plain Python values.

    Returns:
      `built`, `available`, `why_not`; where GPUs are available also `driver` and `runtime` (CUDA
      versions as `(major, minor)`) and `gpus`, a list of what each of them is.
    """
    reason = why_not()
    stats: dict[str, Any] = {"built": is_built(), "available": not reason, "why_not": reason}
    if not reason:
        stats["driver"], stats["runtime"] = map(_version, _native.cuda_versions())
        stats["gpus"] = _native.cuda_gpus()
    return stats


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10
