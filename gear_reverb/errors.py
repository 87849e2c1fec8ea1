"""Exceptions of gear_reverb.

    RuntimeError
    └── ReverbError                 any status without a better Python exception
        └── DeadlineExceededError   a call that did not finish within its timeout

Bad arguments raise `ValueError` (or `TypeError`), exhausted resources `IndexError`, unsupported
calls `NotImplementedError`: see `gear_reverb._native`, which does the translation.
"""


class ReverbError(RuntimeError):
    """A call failed; the message names the status and what it concerned."""


class DeadlineExceededError(ReverbError):
    """A call did not complete within its timeout."""
