"""Every public name of dm-reverb is there, and takes the same arguments."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
import types
import typing

import pytest

# How dm-reverb is bound to TensorFlow, absl and pip; programs have no use for it.
INTERNAL = {
    "cc.ops": "TensorFlow's ops, which the datasets and TFClient of dm-reverb are made of",
    "libcheckpoint_cc_proto": "a shared library of messages, no Python module",
    "libpatterns_cc_proto": "a shared library of messages, no Python module",
    "libreverb_service_cc_proto": "a shared library of messages, no Python module",
    "libschema_cc_proto": "a shared library of messages, no Python module",
    "libpybind": "the module that `pybind` passes on",
    "pip_package": "what the wheel is built with",
    "platform.default.ensure_tf_install": "the check of TensorFlow's release",
    "platform.default.load_op_library": "the loader of those ops",
    "server_executable.server_main.FLAGS": "absl's flags",
}

# Of the native module, which the Python modules call: arguments that have another name here.
RENAMED = {"pybind.Client.__init__": {"server_name": "server_address"}}

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("reverb"), reason="compares with dm-reverb, which is not installed"
)


def modules():
    """All of dm-reverb's, by what is in its folder."""
    reverb = importlib.import_module("reverb")
    found = pkgutil.walk_packages(reverb.__path__, "reverb.")
    return [module.name.removeprefix("reverb.") for module in found]


def is_left_out(path):
    parts = path.split(".")
    prefixes = {".".join(parts[: i + 1]) for i in range(len(parts))}
    return bool(prefixes & INTERNAL.keys())


def is_its_own(module, name, value):
    """Whether it is of the library: not what a module happened to import from elsewhere."""
    if isinstance(value, types.ModuleType):
        is_part = value.__name__ == f"{module.__name__}.{name}"
        return is_part or (module.__name__ == "reverb" and value.__name__.startswith("reverb."))
    if hasattr(typing, name) or getattr(value, "__module__", "").startswith(("absl", "tensorflow")):
        return False
    return not type(value).__module__.startswith("__future__")


def public_names(root, path):
    module = importlib.import_module(f"{root}.{path}" if path else root)
    for name, value in vars(module).items():
        if not name.startswith("_") and (root != "reverb" or is_its_own(module, name, value)):
            yield (f"{path}.{name}" if path else name), value


def in_both():
    """Path, dm-reverb's object and ours of every name that both have; classes' members, too."""
    for path in ["", *modules()]:
        if is_left_out(path):
            continue
        for name, theirs in public_names("reverb", path):
            if is_left_out(name):
                continue
            ours = find(name)
            yield name, theirs, ours
            for member in members(theirs):
                if not is_left_out(f"{name}.{member}"):
                    path_of_member = f"{name}.{member}"
                    yield path_of_member, getattr(theirs, member), find(path_of_member)


PROTOCOLS = {"__enter__", "__exit__", "__getitem__", "__init__", "__iter__", "__len__"}


def members(cls):
    """What a class of dm-reverb defines; messages are compared by their descriptors."""
    if not inspect.isclass(cls) or not cls.__module__.startswith("reverb"):
        return []
    if hasattr(cls, "DESCRIPTOR"):
        return []
    return [name for name in list(vars(cls)) if not name.startswith("_") or name in PROTOCOLS]


MISSING = object()


def find(path):
    """Our object of that name; importing submodules, as a program would."""
    value = importlib.import_module("gear_reverb")
    module = "gear_reverb"
    for part in path.split("."):
        module = f"{module}.{part}"
        if isinstance(value, types.ModuleType) and importlib.util.find_spec(value.__name__):
            if hasattr(value, "__path__") and importlib.util.find_spec(module):
                importlib.import_module(module)
        value = getattr(value, part, MISSING)
        if value is MISSING:
            return MISSING
    return value


def parameters(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # Of the native modules: see `native_names`.
        return None


def native_names(function):
    """Names of a native function's arguments, if its documentation tells them."""
    told = re.match(r"\w+\((.*)\) -> ", getattr(function, "__doc__", None) or "")
    if told is None:
        return None
    names = re.findall(r"(?:^|, )(?!self)(\w+): ", re.sub(r"\[[^]]*\]", "", told[1]))
    return None if any(re.fullmatch(r"arg\d+", name) for name in names) else names


def difference(theirs, ours):
    """What keeps a call that dm-reverb takes from being taken by us, or empty."""
    for expected, own in zip(theirs, ours):
        if own.name != expected.name or own.kind != expected.kind:
            return f"{own} where {expected} is"
        if repr(own.default) != repr(expected.default):
            return f"{own.name} is {own.default!r}, not {expected.default!r}, by default"
    if len(ours) < len(theirs):
        return f"{theirs[len(ours)].name} is missing"
    for extra in ours[len(theirs) :]:
        if extra.kind is not extra.KEYWORD_ONLY or extra.default is extra.empty:
            return f"{extra.name} has been added, and is not optional and by keyword only"
    return ""


def test_no_name_is_missing():
    missing = [name for name, _, ours in in_both() if ours is MISSING]
    assert missing == []


def test_the_walk_finds_what_every_program_uses():
    names = {name for name, _, _ in in_both()}
    assert {
        "Client.sample",
        "Table.queue",
        "TrajectoryDataset.from_table_signature",
        "cc.schema_pb2.TableInfo",
        "platform.default.checkpointers.default_checkpointer",
        "rate_limiters.SampleToInsertRatio",
        "server_executable.server_from_proto.tables_from_proto",
    } <= names
    assert len(names) > 150


def test_signatures_are_equal_but_for_added_keyword_only_arguments():
    differing = {}
    compared = 0
    for name, theirs, ours in in_both():
        if not callable(theirs) or ours is MISSING or name.endswith("__exit__"):
            continue
        expected, own = parameters(theirs), parameters(ours)
        if expected is None or own is None:
            continue
        compared += 1
        if reason := difference(expected, own):
            differing[name] = reason
    assert differing == {}
    assert compared > 80


def test_native_functions_take_arguments_of_the_same_names():
    differing = {}
    compared = 0
    for name, theirs, ours in in_both():
        expected = native_names(theirs)
        if expected is None or ours is MISSING or parameters(theirs) is not None:
            continue
        compared += 1
        renamed = RENAMED.get(name, {})
        expected = [renamed.get(argument, argument) for argument in expected]
        own = native_names(ours) or []
        if own[: len(expected)] != expected:
            differing[name] = own
    assert differing == {}
    assert compared > 20


def test_what_is_left_out_exists():
    for path in INTERNAL:
        module, _, name = f"reverb.{path}".rpartition(".")
        assert hasattr(importlib.import_module(module), name) or importlib.util.find_spec(
            f"reverb.{path}"
        )


@pytest.mark.parametrize(
    "module",
    ["cc.schema_pb2", "cc.checkpointing.checkpoint_pb2", "server_executable.reverb_config_pb2"],
)
def test_messages_have_the_same_fields(module):
    theirs = importlib.import_module(f"reverb.{module}").DESCRIPTOR.message_types_by_name
    ours = importlib.import_module(f"gear_reverb.{module}").DESCRIPTOR.message_types_by_name
    for name, message in theirs.items():
        for field in message.fields:
            own = ours[name].fields_by_name[field.name]
            assert (own.number, own.type, own.label) == (field.number, field.type, field.label), (
                f"{name}.{field.name}"
            )
