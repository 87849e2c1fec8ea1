"""`_native.pyi` says what the core's module has, and by which names arguments go."""

import ast
import inspect
import pathlib
import re

import gear_reverb
from gear_reverb import _native


def stub():
    """Names of arguments, but `self`, by "function", "Class" and "Class.method"."""
    told = {}
    source = pathlib.Path(gear_reverb.__file__).with_name("_native.pyi").read_text()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            told[node.name] = arguments(node)
        elif isinstance(node, ast.ClassDef):
            told[node.name] = None
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    told[f"{node.name}.{member.name}"] = arguments(member)
                elif isinstance(member, ast.AnnAssign):
                    told[f"{node.name}.{member.target.id}"] = None
    return told


def arguments(function):
    given = function.args
    return [a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs] if a.arg != "self"]


def core():
    """The same of the module; None where it does not tell the arguments."""
    has = {}
    for name, value in vars(_native).items():
        if name.startswith("__"):
            continue
        has[name] = documented(value) if inspect.isroutine(value) else None
        if isinstance(value, type):
            for member, part in vars(value).items():
                if not member.startswith("_") or member == "__init__":
                    has[f"{name}.{member}"] = documented(part)
    return has


def documented(function):
    line = re.match(r"\w+\((.*)\) -> ", function.__doc__ or "")
    if line is None:
        return None
    text = re.sub(r"\[[^][]*\]", "", re.sub(r"\[[^][]*\]", "", line[1]))
    return re.findall(r"(?:^|, )(?!self)(\w+): ", text)


def test_names_and_arguments_are_those_of_the_core():
    told, has = stub(), core()
    assert [name for name in told if name not in has and "._" not in name] == []
    assert [name for name in has if name not in told and not name.endswith("__init__")] == []
    both = [name for name in told if told[name] is not None and has.get(name) is not None]
    assert len(both) > 40
    assert {name: has[name] for name in both if told[name] != has[name]} == {}
