"""Names the argument that has the wrong type, where pybind11 would list signatures.

The core's functions say in the first line of their documentation what they take. `name_arguments`
wraps those that take numbers, text or the core's objects; what is called most takes none of these.
"""

import functools
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


def integer(name: str, value: Any) -> int:
    """The value as an integer.

    Raises:
      TypeError: If it is none; names the argument.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, but is {value!r}") from None


def number(name: str, value: Any) -> float:
    """The value as a float.

    Raises:
      TypeError: If it is no number; names the argument.
    """
    if not isinstance(value, (str, bytes)):
        try:
            return float(value)
        except TypeError:
            pass
    raise TypeError(f"{name} must be a number, but is {value!r}")


def name_arguments(module: Any) -> None:
    """Has a pybind11 module's functions, and its classes' methods, name arguments."""
    for name, value in list(vars(module).items()):
        if isinstance(value, type):
            for method_name, method in list(vars(value).items()):
                if type(method).__name__ == "instancemethod":
                    setattr(value, method_name, _naming(method))
        elif type(value).__name__ == "builtin_function_or_method":
            setattr(module, name, _naming(value))


class _Parameter(NamedTuple):
    name: str
    expected: str = ""  # In words; "" for what is left to pybind11.
    fits: Callable[[Any], bool] = lambda _: True


def _naming(call: Callable[..., Any]) -> Callable[..., Any]:
    signature = re.match(r"\w+\((.*)\) -> ", call.__doc__ or "")
    parameters = [_parse(text) for text in _split(signature[1])] if signature else []
    if not any(parameter.expected for parameter in parameters):
        return call

    @functools.wraps(call)
    def naming(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except TypeError as error:
            if "incompatible" not in str(error):  # Raised by what the core called.
                raise
            given = dict(zip((parameter.name for parameter in parameters), args)) | kwargs
            integers = []
            for name, expected, fits in parameters:
                if name not in given:
                    continue
                public_name, value = _PUBLIC_NAMES.get(name, name), given[name]
                if not fits(value):
                    text = f"{public_name} must be {expected}, but is {value!r}"
                    raise TypeError(text) from None
                if "integer" in expected:
                    integers.append(f"{public_name}={value}")
            if integers:
                raise TypeError(f"An integer is out of range: {', '.join(integers)}") from None
            raise

    return naming


# What the core calls otherwise than the public functions that pass it on.
_PUBLIC_NAMES = {
    "max_samples": "num_samples",
    "max_timesteps": "max_sequence_length",
    "ignore_last_num_items": "block_until_num_items",
    "priority_tables": "tables",
}


def _split(parameters: str) -> list[str]:
    """The parts of "a: int, b: Sequence[x, y] = 3"."""
    depth, parts = 0, [""]
    for character in parameters:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _parse(parameter: str) -> _Parameter:
    name, _, kind = parameter.strip().partition(": ")
    kind, *others = kind.partition(" = ")[0].split(" | ")
    if name == "self":
        return _Parameter(name)
    if kind.startswith("gear_reverb._native."):
        cls = kind.rpartition(".")[2]
        expected, fits = f"of the type {cls}", functools.partial(_has_base, cls)
    elif kind in _KINDS:
        expected, fits = _KINDS[kind]
    else:
        return _Parameter(name)
    if "None" not in others:
        return _Parameter(name, expected, fits)
    return _Parameter(name, f"{expected} or None", lambda value: value is None or fits(value))


def _has_base(name: str, value: Any) -> bool:
    return any(cls.__name__ == name for cls in type(value).__mro__)


def _is_number(value: Any) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(value, "__float__")


_KINDS = {
    "str": ("a str", lambda value: isinstance(value, (str, bytes))),
    "bool": ("a bool", lambda value: isinstance(value, (bool, np.bool_))),
    "typing.SupportsInt": ("an integer", lambda value: hasattr(value, "__index__")),
    "typing.SupportsFloat": ("a number", _is_number),
}
