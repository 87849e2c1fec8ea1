"""Exceptions of gear_reverb.

    RuntimeError
    └── ReverbError                 any status without a better Python exception
        └── DeadlineExceededError   a call that did not finish within its timeout

Bad arguments raise `ValueError` (or `TypeError`), exhausted resources `IndexError`, unsupported
calls `NotImplementedError`: see `gear_reverb._native`, which does the translation.
"""

import datetime


class ReverbError(RuntimeError):
    """A call failed; the message names the status and what it concerned."""


class DeadlineExceededError(ReverbError):
    """A call did not complete within its timeout."""


def timed_out(call: str, timeout_ms: int | None) -> DeadlineExceededError:
    """What the caller of `call` sees of a timeout."""
    timeout = datetime.timedelta(milliseconds=timeout_ms or 0)
    return DeadlineExceededError(
        f"{call} call did not complete within provided timeout of {timeout}"
    )
