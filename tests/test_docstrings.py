"""Everything public says what it is."""

import importlib
import inspect
import pkgutil

import gear_reverb

# The documentation of the core's methods is in native/; Python's classes pass them on.
NATIVE = "gear_reverb._native"


def modules():
    for found in pkgutil.walk_packages(gear_reverb.__path__, "gear_reverb."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            try:
                yield importlib.import_module(found.name)
            except ImportError as error:
                # Of a framework that is not here, and of nothing of ours.
                assert error.name in ("tensorflow", "torch", "jax"), found.name
    yield gear_reverb


def public(owner):
    for name, value in list(vars(owner).items()):
        module = getattr(value, "__module__", None) or ""
        if not name.startswith("_") and (not module or module.startswith("gear_reverb")):
            yield name, value


def documented(value):
    lines = [line for line in (value.__doc__ or "").splitlines() if line]
    return bool(lines) and not (len(lines) == 1 and "->" in lines[0])  # pybind11's own line.


def undocumented(module):
    if not documented(module):
        yield module.__name__
    for name, value in public(module):
        if inspect.isclass(value) and hasattr(value, "DESCRIPTOR"):  # A message.
            continue
        if (inspect.isclass(value) or inspect.isroutine(value)) and not documented(value):
            yield f"{module.__name__}.{name}"
        if inspect.isclass(value) and value.__module__ != NATIVE:
            for member, part in public(value):
                part = getattr(part, "__func__", part)
                if (inspect.isfunction(part) or isinstance(part, property)) and not documented(
                    part
                ):
                    yield f"{module.__name__}.{name}.{member}"


def test_every_public_name_has_a_docstring():
    assert sorted({name for module in modules() for name in undocumented(module)}) == []


def test_what_lacks_one_is_found():
    class Bare:
        def method(self):
            pass

    Bare.__module__ = Bare.method.__module__ = "gear_reverb.bare"
    module = type(gear_reverb)("gear_reverb.bare")
    module.Bare = Bare
    assert list(undocumented(module)) == [
        "gear_reverb.bare",
        "gear_reverb.bare.Bare",
        "gear_reverb.bare.Bare.method",
    ]
