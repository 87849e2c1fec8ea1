"""Where and how a server stores its tables."""

import abc
import os
import tempfile

from gear_reverb import pybind


class CheckpointerBase(metaclass=abc.ABCMeta):
    """What `Server` takes as its checkpointer."""

    @abc.abstractmethod
    def internal_checkpointer(self) -> pybind.Checkpointer:
        """The core's object that stores and loads checkpoints."""


class DefaultCheckpointer(CheckpointerBase):
    """Stores checkpoints below a root, one directory each (docs/formats/checkpoint.md)."""

    def __init__(
        self, path: str, group: str = "", fallback_checkpoint_path: str | None = None
    ) -> None:
        """A server restores the newest checkpoint below `path` when it starts.

        Checkpoints that dm-reverb wrote are restored too (docs/formats/dm_checkpoint.md).

        Args:
          path: Root of the checkpoints, or one of them, which is then restored.
          group: Name of a directory below `path` that holds them, for several servers of one root.
          fallback_checkpoint_path: One checkpoint or a root, restored if `path` has none: a way to
            start from another experiment's data.
        """
        self.path = os.fspath(path)
        self.group = group
        self.fallback_checkpoint_path = (
            None if fallback_checkpoint_path is None else os.fspath(fallback_checkpoint_path)
        )

    def internal_checkpointer(self) -> pybind.Checkpointer:
        """The core's object for this root."""
        return pybind.create_default_checkpointer(
            self.path, self.group, self.fallback_checkpoint_path
        )


class TempDirCheckpointer(DefaultCheckpointer):
    """Stores checkpoints in a new temporary directory, so nothing is restored from it."""

    def __init__(self) -> None:
        super().__init__(tempfile.mkdtemp())
