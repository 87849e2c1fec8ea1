#!/usr/bin/env python3
"""Checks that dependencies point down only.

Native: a file of native/<layer>/ may include its own layer and those that the layer's
`gear_reverb_layer(… DEPENDS …)` line in CMakeLists.txt reaches; a library's headers are for the
layers that reach that library, and pybind11's for the bindings, which may include every layer.
Python: no module of gear_reverb/ imports a framework when it is itself imported, but for those that
are made for one (FRAMEWORK_SIDE); only these import each other so.

    python scripts/check_layers.py [ROOT]
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

BINDINGS = "bindings"
FRAMEWORKS = {"jax", "tensorflow", "tf_agents", "torch"}
# What is made for one framework, and has no use without it.
FRAMEWORK_SIDE = {
    "_pattern_graph",
    "_pattern_matcher",
    "_tf_dataset",
    "_tf_generator",
    "pattern_dataset",
    "jax",
    "tf_client",
    "timestep_dataset",
    "torch",
    "trajectory_dataset",
}
# Start of an include → the library of native/cmake/dependencies.cmake it belongs to.
LIBRARY_HEADERS = {
    "grpc/": "gear_reverb_grpc",
    "grpcpp/": "gear_reverb_grpc",
    "snappy": "gear_reverb_snappy",
    "zlib.h": "gear_reverb_zlib",
    "cuda": "gear_reverb_cudart",
    "pybind11/": BINDINGS,
    "Python.h": BINDINGS,
}

LAYER = re.compile(r"^\s*gear_reverb_layer\(\s*(\w+)(?:\s+DEPENDS\s+([^)]*))?\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def read_layers(cmake: str) -> dict[str, set[str]]:
    """Layer → everything it reaches: layers by their names, other libraries by their targets."""
    direct = {}
    for name, depends in LAYER.findall(re.sub(r"#.*", "", cmake)):
        direct[name] = {target.removeprefix("gr_") for target in depends.split()}
    reached: dict[str, set[str]] = {}

    def reach(name: str, path: tuple[str, ...]) -> set[str]:
        if name in path:
            raise ValueError(f"CMakeLists.txt: layers in a circle: {' → '.join((*path, name))}")
        if name not in reached:
            reached[name] = set(direct.get(name, ()))
            for other in direct.get(name, ()):
                reached[name] |= reach(other, (*path, name))
        return reached[name]

    return {name: reach(name, ()) for name in direct}


def check_native(root: pathlib.Path) -> Iterator[str]:
    layers = read_layers((root / "CMakeLists.txt").read_text())
    if not layers:
        yield "CMakeLists.txt: no gear_reverb_layer lines found"
    for path in sorted((root / "native").rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".cuh"}:
            continue
        layer = path.relative_to(root / "native").parts[0]
        if layer != BINDINGS and layer not in layers:
            yield f"{path.relative_to(root)}: {layer} is not a layer of CMakeLists.txt"
            continue
        for include in INCLUDE.finditer(text := path.read_text()):
            header = include[1]
            place = f"{path.relative_to(root)}:{text.count(chr(10), 0, include.start(1)) + 1}"
            if (root / "native" / layer / "include" / header).exists():
                continue  # The layer's own, in place of a library's.
            if header.startswith("native/"):
                needs = header.split("/")[1]
                if needs not in layers and needs != BINDINGS:
                    yield f"{place}: {header} is of no layer"
                    continue
            else:
                needs = next((v for k, v in LIBRARY_HEADERS.items() if header.startswith(k)), layer)
            if layer not in (needs, BINDINGS) and needs not in layers[layer]:
                yield f"{place}: {layer} must not include {header}"


def imported_at_once(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Line and name of what is imported by importing a module, not by calling its functions."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from ((statement.lineno, alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            if statement.level == 0:
                yield statement.lineno, statement.module
                for alias in statement.names:
                    yield statement.lineno, f"{statement.module}.{alias.name}"
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from imported_at_once(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from imported_at_once(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from imported_at_once(handler.body)


def check_python(root: pathlib.Path) -> Iterator[str]:
    for path in sorted((root / "gear_reverb").rglob("*.py")):
        if path.stem in FRAMEWORK_SIDE:
            continue
        named = set()
        for line, name in imported_at_once(ast.parse(path.read_text(), str(path)).body):
            package, _, rest = name.partition(".")
            lazy = package in FRAMEWORKS or (package == "gear_reverb" and rest in FRAMEWORK_SIDE)
            if lazy and line not in named:
                named.add(line)
                place = f"{path.relative_to(root)}:{line}"
                yield f"{place}: import {name} inside the function that uses it"


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    problems = [*check_native(root), *check_python(root)]
    print(*problems, sep="\n", end="\n" if problems else "")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
