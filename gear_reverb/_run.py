"""`gear_reverb run`: runs a program written for dm-reverb, unmodified."""

import builtins
import io
import os
import pathlib
import runpy
import sys
import types
from collections.abc import Sequence

import gear_reverb

USAGE = """usage: gear-reverb run SCRIPT [ARGUMENT ...]
       gear-reverb run -m MODULE [ARGUMENT ...]

Runs a Python program in which `import reverb` gives gear_reverb."""


def run(arguments: Sequence[str]) -> None:
    """Runs the program as `python SCRIPT ...` or `python -m MODULE ...` would.

    Processes that it starts with Python see the alias, too. Exceptions of the program, SystemExit
    among them, pass through.
    """
    arguments = list(arguments)
    if arguments[:1] in ([], ["-h"], ["--help"]):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        raise SystemExit(0 if arguments else 2)
    is_module = arguments[0] == "-m"
    if is_module:
        del arguments[0]
    if not arguments or (arguments[0].startswith("-") and not os.path.exists(arguments[0])):
        raise SystemExit(f"{USAGE}\n\nA {'module' if is_module else 'script'} must be named.")

    gear_reverb.install_as_reverb()
    _alias_in_child_processes()
    sys.argv[:] = arguments
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif os.path.isdir(arguments[0]) or arguments[0].endswith(".zip"):
        del sys.path[0]  # run_path puts its own there.
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        _run_script(arguments[0])


def _run_script(path: str) -> None:
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise SystemExit(f"gear-reverb: can't open file {path!r}: {error.strerror}") from None
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    # A module of its own, which stays: threads of the program may outlive its last line.
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __spec__=None)
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec"), main.__dict__)


def _alias_in_child_processes() -> None:
    shim = str(pathlib.Path(__file__).with_name("_reverb_shim"))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if shim not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([shim, *paths])
    if shim not in sys.path:
        sys.path.insert(1, shim)  # What multiprocessing hands on.
