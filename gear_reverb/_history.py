"""References to appended steps: a writer's history, and columns of references from it.

What is done once per step or item lies in the core: the log of steps, the common indices of a
history (`ColumnView`), and what a column holds (`ColumnSteps`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import tree

from gear_reverb import _native

if TYPE_CHECKING:
    from gear_reverb import pybind


class ColumnHistory(_native.ColumnView):
    """The steps of one column in this episode; indexing gives a `TrajectoryColumn`.

    Indices are those of a list of all steps since the episode began, whether the steps are still
    kept or not. Steps that are not, or that have no data in this column, cannot be indexed.
    Iteration yields their place as None.
    """

    __slots__ = ("_column", "_log", "_path")

    def __init__(self, log: _native.StepLog, column: int, path: tuple) -> None:
        super().__init__(log, column)
        self._log = log
        self._column = column
        self._path = path

    def __len__(self) -> int:
        """Steps since the episode began."""
        return len(self._log)

    def __reversed__(self) -> Iterator[Optional["pybind.WeakCellRef"]]:
        return reversed(list(self))

    def __iter__(self) -> Iterator[Optional["pybind.WeakCellRef"]]:
        return iter([self._at(index) for index in range(len(self._log))])

    def _getitem(self, val: int | slice | list[int]) -> "TrajectoryColumn":
        """What `__getitem__` gives; called by it for all but the commonest indices.

        An int gives a squeezed column of that step; a slice or a list, a column of its steps.

        Raises:
          TypeError: If `val` is none of these.
          IndexError: If the episode has no such step yet.
          ValueError: If a step is before the episode's first, not kept, or without data; or if a
            slice begins where the episode has no step, unlike a list's, which would be short.
        """
        if isinstance(val, slice):
            references, squeeze = self._slice(val), False
        elif isinstance(val, int):
            references, squeeze = [self._at(val)], True
        elif isinstance(val, list):
            references, squeeze = [self._at(index) for index in val], False
        else:
            raise TypeError(
                f"history is indexed by an integer, a slice or a list of integers, not {type(val)}"
            )
        for reference in references:
            if reference is None:
                _raise_none(references, (*self._path, val))
        return _make_column(references, squeeze)

    def _slice(self, val: slice) -> list:
        start, stop = val.start, val.stop
        size = len(self._log)
        if val.step is not None and val.step < 0:
            return [self._at(index) for index in range(*val.indices(size))]
        if start is None:  # Up to an end counted from the back: what is kept.
            start = self._log.first_kept if stop is not None and stop < 0 else 0
        elif start < -size or (start >= size and (stop is None or stop > start)):
            raise ValueError(
                "TrajectoryColumns cannot contain any None data references: TrajectoryColumn at "
                f"path {(*self._path, val)} begins outside of the {size} steps there are"
            )
        return [self._at(index) for index in range(*slice(start, stop, val.step).indices(size))]

    def _at(self, index: int) -> Optional["pybind.WeakCellRef"]:
        if not isinstance(index, int):
            raise TypeError(f"history is indexed by lists of integers, got one of {type(index)}")
        log = self._log
        size = len(log)
        if index >= size:
            raise IndexError(f"Column {self._path} has {size} steps, no index {index}")
        return log.get(index + size if index < 0 else index, self._column)

    def __repr__(self) -> str:
        return f"ColumnHistory(path={self._path}, refs={list(self)})"


class TrajectoryColumn(_native.ColumnSteps):
    """Steps of one column, to be part of an item's trajectory.

    Attributes:
      is_squeezed: Whether the column is a single step without a time axis.
    """

    __slots__ = ()

    def __init__(
        self,
        data_references: Sequence["pybind.WeakCellRef"],
        *,
        squeeze: bool = False,
        path: tuple | None = None,
    ) -> None:
        """Refers to steps; they must be kept until the column's item has been created.

        Args:
          data_references: One per step.
          squeeze: Drop the time axis; there must be exactly one step then.
          path: Where the steps were taken from, for the error message.

        Raises:
          ValueError: If a reference is None, or `squeeze` is set for other than one.
        """
        references = list(data_references)
        if squeeze and len(references) != 1:
            raise ValueError(
                f"Columns must contain exactly one data reference when squeeze set, "
                f"got {len(references)}"
            )
        for reference in references:
            if reference is None:
                _raise_none(references, path)
        super().__init__(tuple(references), squeeze)

    def __reduce__(self) -> tuple:
        return _make_column, (self._references, self.is_squeezed)

    def __len__(self) -> int:
        """Number of steps."""
        return len(self._references)

    def __iter__(self) -> Iterator["pybind.WeakCellRef"]:
        return iter(self._references)

    def __getitem__(self, val: int | slice | list[int]) -> "TrajectoryColumn":
        """An int gives a squeezed column of that step; a slice or a list, a column of its steps.

        Raises:
          TypeError: If `val` is none of these.
          IndexError: If there is no such step.
        """
        if isinstance(val, slice):
            return _make_column(self._references[val], False)
        if isinstance(val, int):
            return _make_column([self._references[val]], True)
        if isinstance(val, list):
            return _make_column([self._references[index] for index in val], False)
        raise TypeError(f"TrajectoryColumn indices must be integers or slices, not {type(val)}")

    @property
    def shape(self) -> tuple:
        """`[steps, ...]`, or `[...]` if squeezed. IndexError if the column is empty."""
        shape = tuple(self._references[0].shape)
        return shape if self.is_squeezed else (len(self._references), *shape)

    @property
    def dtype(self) -> np.dtype:
        """The steps' dtype. IndexError if the column is empty."""
        return self._references[0].dtype

    def numpy(self) -> np.ndarray:
        """A copy of the data, shape `[steps, ...]`, or `[...]` if squeezed.

        Finished chunks may have to be decompressed for it.

        Raises:
          RuntimeError: If a step is no longer kept.
          ValueError: If the column is empty, or the steps have different shapes.
        """
        if any(reference.expired for reference in self._references):
            raise RuntimeError(
                "Cannot convert TrajectoryColumn with expired data references to numpy array."
            )
        if self.is_squeezed:
            return self._references[0].numpy()
        return np.stack([reference.numpy() for reference in self._references])


def _make_column(references: Sequence["pybind.WeakCellRef"], squeeze: bool) -> TrajectoryColumn:
    """A column of references known to be valid."""
    column = TrajectoryColumn.__new__(TrajectoryColumn)
    _native.ColumnSteps.__init__(column, tuple(references), squeeze)
    return column


def _raise_none(references: list, path: tuple | None) -> None:
    raise ValueError(
        "TrajectoryColumns cannot contain any None data references: "
        f"TrajectoryColumn at path {path} got {references}."
    )


def copier(nest: Any) -> Callable[[], Any]:
    """A function that copies a nest of histories; as little of it as can be changed."""
    if _is_constant(nest):
        return lambda: nest
    if type(nest) in (dict, list) and all(
        _is_constant(part) for part in (nest.values() if type(nest) is dict else nest)
    ):
        return nest.copy
    return lambda: tree.map_structure(lambda history: history, nest)


def _is_constant(nest: Any) -> bool:
    if isinstance(nest, tuple):
        return all(map(_is_constant, nest))
    return isinstance(nest, ColumnHistory)
