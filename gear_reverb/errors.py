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


def raise_if_timeout(error: RuntimeError, call: str, timeout_ms: int | None) -> None:
    """Raises what the caller of `call` sees of a timeout, if `error` is one."""
    if timeout_ms is None:
        return
    if isinstance(error, DeadlineExceededError) or "Timeout exceeded" in str(error):
        timeout = datetime.timedelta(milliseconds=timeout_ms)
        raise DeadlineExceededError(
            f"{call} call did not complete within provided timeout of {timeout}"
        ) from error
