"""Importing this lets dm-reverb take an argument that Acme 0.4 gives.

Acme's adders call `trajectory_writer(..., get_signature_timeout_ms=)`, which dm-reverb has dropped
before its first release for CPython 3.11: without this they do not run on it. gear_reverb takes,
and ignores, the argument itself; its client is left as it is.
"""

import functools
import inspect

import reverb

_given = reverb.Client.trajectory_writer


@functools.wraps(_given)
def _trajectory_writer(self, *args, get_signature_timeout_ms=None, **kwargs):
    del get_signature_timeout_ms
    return _given(self, *args, **kwargs)


if "get_signature_timeout_ms" not in inspect.signature(_given).parameters:
    reverb.Client.trajectory_writer = _trajectory_writer
