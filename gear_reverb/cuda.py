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
      versions as `(major, minor)`), `gpus`, a list of what each of them is, and `in_use`, a list
      with an entry for each GPU that samplers are using. That has `device`, its name; the link's
      `link_bytes_per_second`, measured when it was first used (0 if that failed, for the reason in
      `choices_error`); `choices`, the way of gathering rows for each class of the mean piece's
      bytes, with the rate that it had and that rate as a part of the link's (`of_link`); the number
      of `batches`, their `gathered_bytes`, and how many of these were `staged_bytes`, copied an
      additional time because they did not lie in registered memory; of that memory the
      `registered_bytes`, the `registered_limit_bytes` and the last `registration_error`, or "";
      `device_choices` and `copy_bytes_per_second`, as above for rows in the GPU's own memory
      (`of_copy`: as a part of a large copy's rate within it), and the `device_bytes` that batches
      read there; and `tiers`, a list of what it keeps of each `table` placed on devices:
      `limit_bytes`, `allocated_bytes`, columns' `resident_bytes`, `waiting_bytes` (to be copied)
      and `overflow_bytes` (left with the host), and `failures` of the GPU with the `last_error`.
    """
    reason = why_not()
    stats: dict[str, Any] = {"built": is_built(), "available": not reason, "why_not": reason}
    if not reason:
        stats["driver"], stats["runtime"] = map(_version, _native.cuda_versions())
        stats["gpus"] = _native.cuda_gpus()
        stats["in_use"] = _native.cuda_open_gpus()
    return stats


def self_test(gpu: int = 0, seed: int = 0, rounds: int = 5) -> list[str]:
    """Runs the kernels on random cases and compares with what must come out; takes seconds.

    Args:
      gpu: Number of the GPU.
      seed: Of the cases.
      rounds: Of random cases.

    Returns:
      What differed, one sentence each; empty if nothing did.

    Raises:
      RuntimeError: If the GPU cannot be used, or a call of CUDA fails.
    """
    return _native.cuda_self_test(gpu, seed, rounds)


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10
