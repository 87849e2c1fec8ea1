"""Every public name of dm-reverb is there, and takes the same arguments."""

import importlib
import importlib.util
import inspect
import types
import typing

import pytest

MODULES = """
client errors item_selectors pattern_dataset pybind rate_limiters replay_sample reverb_types server
structured_writer tf_client timestep_dataset trajectory_dataset trajectory_writer
cc cc.schema_pb2 cc.patterns_pb2 cc.checkpointing cc.checkpointing.checkpoint_pb2
platform platform.checkpointers_lib platform.default platform.default.checkpointers
platform.default.server_main_command_line_args
server_executable server_executable.reverb_config_pb2 server_executable.server_from_proto
server_executable.server_main
""".split()

# How dm-reverb is bound to TensorFlow and absl; programs have no use for it.
INTERNAL = {
    "cc.ops",
    "libpybind",
    "platform.default.ensure_tf_install",
    "platform.default.load_op_library",
    "server_executable.server_main.FLAGS",
}

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("reverb"), reason="compares with dm-reverb, which is not installed"
)


def is_left_out(path):
    parts = path.split(".")
    prefixes = {".".join(parts[: i + 1]) for i in range(len(parts))}
    return bool(prefixes & INTERNAL)


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
    for path in ["", *MODULES]:
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
    except (TypeError, ValueError):  # Of the native modules, which do not tell.
        return None


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
