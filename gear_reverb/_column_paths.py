"""Paths of fields in errors of the core, which knows columns by their numbers."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tree

_COLUMN = re.compile(r"\b(?:([Cc]olumn)|(at) index) (\d+)\b")


def paths_of(nest: Any) -> list[tuple]:
    """The path of each leaf, in the order of `tree.flatten`."""
    return [path for path, _ in tree.flatten_with_path(nest)]


def raise_with_paths(
    error: Exception, paths: Sequence[tuple], pattern: str = "{column} {path}"
) -> NoReturn:
    """Raises the error, with paths in place of the numbers of columns.

    Args:
      error: What the core raised.
      paths: The path of each column; numbers beyond them stay.
      pattern: What becomes of "column 3", of these parts: `column`, `number` and `path`.
    """

    def named(match: re.Match) -> str:
        column, number = match[1] or match[2], match[3]
        if int(number) >= len(paths):
            return match[0]
        return pattern.format(column=column, number=number, path=paths[int(number)])

    text = _COLUMN.sub(named, str(error))
    if text == str(error):
        raise error
    raise type(error)(text) from error


def with_paths(call: Callable[..., Any], paths: Callable[[], Sequence[tuple]], *args: Any) -> Any:
    """What `call(*args)` gives. Of errors about columns, the paths are asked for and told."""
    try:
        return call(*args)
    except (TypeError, ValueError, RuntimeError) as error:
        raise_with_paths(error, paths())
