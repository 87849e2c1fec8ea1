"""How the leaves of appended nests become columns.

Every path to a leaf that was ever appended owns one column, for good; columns are numbered in the
order of first appearance, and within one nest in the order that `tree.flatten` has.

Most steps of a program look alike, so the way from a nest to its leaves is compiled once and tried
first (`compile_flatten`); only nests that look new are walked by `tree`.
"""

import collections.abc
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from gear_reverb import _native

Path = tuple

# Types of which no instance is a nest; grows as leaves of other types are met.
leaf_types: set[type] = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    np.ndarray,
    *np.sctypeDict.values(),
}
_MAX_PLANS = 8  # Distinct looks of steps that are remembered.


class ColumnMap:
    """Assigns leaves of nests to columns.

    Attributes:
      paths: The path of each column.
      structure: The union of all nests seen, its leaves without meaning; None before the first.
    """

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.structure: Any = None
        self._column_of: dict[Path, int] = {}
        self._inner: set[Path] = set()  # Paths of nests that hold columns.
        self._plans: list[Callable[[Any], list | None]] = []
        self._is_new = True

    def column(self, path: Path) -> int | None:
        """The column at `path`, or None if no leaf has been there."""
        return self._column_of.get(path)

    def flatten(self, data: Any) -> list:
        """One entry per column, None where `data` has no leaf. New leaves make new columns.

        Raises:
          ValueError: If `data` has a leaf where earlier nests had a nest, or the other way round,
            or another kind of container. Nothing changes then.
        """
        for plan in self._plans:
            row = plan(data)
            if row is not None:
                return row
        return self._flatten_by_path(data)

    def _flatten_by_path(self, data: Any) -> list:
        leaves = tree.flatten_with_path(data)
        added = [
            path
            for path, leaf in leaves
            if path not in self._column_of and not (leaf is None and path in self._inner)
        ]
        if self._is_new or added:
            self._extend(data, added)
        row: list = [None] * len(self.paths)
        order = []
        for path, leaf in leaves:
            if (column := self._column_of.get(path)) is not None:
                row[column] = leaf
                order.append(column)
                learn_leaf_type(leaf)
        if len(order) == len(leaves):
            self._add_plan(data, order)
        return row

    def _extend(self, data: Any, added: Sequence[Path]) -> None:
        blank = tree.map_structure(lambda _: None, data)
        structure = blank if self._is_new else _union(self.structure, data, ())
        self.structure = structure
        self._is_new = False
        for path in added:
            self._column_of[path] = len(self.paths)
            self.paths.append(path)
            self._inner.update(path[:length] for length in range(len(path)))
        self._plans.clear()  # Their rows are too short now.

    def _add_plan(self, data: Any, order: list[int]) -> None:
        flatten = compile_flatten(data, leaf_types, order, len(self.paths))
        if flatten is not None:
            self._plans.insert(0, flatten)
            del self._plans[_MAX_PLANS:]


def compile_flatten(
    example: Any, leaf_types: set[type], order: list[int] | None = None, width: int | None = None
) -> Callable[[Any], list | None] | None:
    """A fast `tree.flatten` for nests that look like `example`.

    Args:
      example: Nest of dicts (or other mappings), lists, tuples and named tuples.
      leaf_types: The exact types that leaves may have. The set may grow later, but not shrink.
      order: Where each leaf goes in the result; None for the order of `tree.flatten`.
      width: Length of the result, which is None where no leaf goes; None for as many as leaves.

    Returns:
      A function from a nest to its leaves, or to None if the nest does not look like `example`.
      None if `example` holds other things than said.
    """
    try:
        look = _look(example, leaf_types)
    except _NotCompilable:
        return None
    if order is None:
        order = list(range(len(tree.flatten(example))))
    width = len(order) if width is None else width
    return _native.make_flatten_plan(look, leaf_types, order, width).flatten


class _NotCompilable(Exception):
    """The example has a container that only `tree` knows."""


def _look(example: Any, leaf_types: set[type]) -> tuple | None:
    """`(type, sorted keys if a mapping, looks of the children)`; None for a leaf."""
    cls = type(example)
    if cls in leaf_types:
        return None
    if cls is dict or _is_plain_mapping(example):
        keys = sorted(example)
        return cls, keys, tuple(_look(example[key], leaf_types) for key in keys)
    if cls in (list, tuple) or (isinstance(example, tuple) and hasattr(example, "_fields")):
        return cls, None, tuple(_look(child, leaf_types) for child in example)
    raise _NotCompilable


def _is_plain_mapping(value: Any) -> bool:
    """Whether looking up a missing key has no side effect, and the type says what it is."""
    return (
        isinstance(value, collections.abc.Mapping)
        and value.__class__ is type(value)
        and not hasattr(type(value), "__missing__")
    )


def learn_leaf_type(leaf: Any) -> None:
    cls = type(leaf)
    if cls not in leaf_types and leaf.__class__ is cls:  # Proxies are leaves or not as they like.
        leaf_types.add(cls)


def _union(old: Any, new: Any, path: Path) -> Any:
    """A nest with the leaves of both, in containers of `old`'s types; leaves become None."""
    if not tree.is_nested(new):
        if tree.is_nested(old) and new is not None:
            raise ValueError(f"Field {path} was a nest before, and is a leaf now: {new!r}")
        return old
    if not tree.is_nested(old):
        raise ValueError(f"Field {path} was a leaf before, and is a nest now: {new!r}")
    for kind in (_mapping_items, _named_items):
        old_items, new_items = kind(old), kind(new)
        if old_items is None and new_items is None:
            continue
        if old_items is None or new_items is None:
            break
        merged = dict(old_items)
        for key, child in new_items.items():
            merged[key] = (
                _union(merged[key], child, (*path, key)) if key in merged else _blank(child)
            )
        if kind is _named_items:
            if merged.keys() != old_items.keys():
                break
            return type(old)(**merged)
        return merged if _has_default(old) else type(old)(merged)
    else:
        children = enumerate(itertools.zip_longest(old, new, fillvalue=_ABSENT))
        return type(old)([_union_child(a, b, (*path, index)) for index, (a, b) in children])
    raise ValueError(f"Field {path} was a {type(old).__name__}, and is a {type(new).__name__} now")


_ABSENT = object()


def _union_child(old: Any, new: Any, path: Path) -> Any:
    if old is _ABSENT:
        return _blank(new)
    return old if new is _ABSENT else _union(old, new, path)


def _blank(nest: Any) -> Any:
    return tree.map_structure(lambda _: None, nest)


def _has_default(mapping: Any) -> bool:
    return hasattr(type(mapping), "__missing__")


def _mapping_items(nest: Any) -> dict | None:
    return dict(nest) if isinstance(nest, collections.abc.Mapping) else None


def _named_items(nest: Any) -> dict | None:
    """Fields of a named tuple or an attrs object."""
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return dict(zip(nest._fields, nest))
    if hasattr(type(nest), "__attrs_attrs__"):
        return {field.name: getattr(nest, field.name) for field in type(nest).__attrs_attrs__}
    return None
