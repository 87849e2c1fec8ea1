"""Checkpointers, and the one a server uses if it is given none."""

from gear_reverb.platform.checkpointers_lib import (
    CheckpointerBase,
    DefaultCheckpointer,
    TempDirCheckpointer,
)

__all__ = [
    "CheckpointerBase",
    "DefaultCheckpointer",
    "TempDirCheckpointer",
    "default_checkpointer",
]


def default_checkpointer(group: str | None = None) -> CheckpointerBase:
    """A `TempDirCheckpointer`; `group` is accepted as in Reverb and has no effect."""
    del group
    return TempDirCheckpointer()
