"""Builds `gear_reverb._native` by CMake; everything else about the package is in pyproject.toml.

All builds, whatever the CPython, share the build tree `build/native` (GEAR_REVERB_BUILD_DIR
overrides it), so that only what changed is compiled.
"""

import filecmp
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig

import setuptools
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
BUILD_TOOLS = {"cmake": "cmake>=3.22", "ninja": "ninja"}


def mirror(source: pathlib.Path, target: pathlib.Path) -> None:
    """Makes `target` equal to `source`, leaving equal files untouched (their times count)."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for path in sorted(wanted):
        copy = target / path
        if not copy.is_file() or not filecmp.cmp(source / path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, copy)
    for copy in list(target.rglob("*")):
        if copy.is_file() and copy.relative_to(target) not in wanted:
            copy.unlink()


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(command: list, hint: str = "") -> None:
    sys.stdout.flush()
    try:
        subprocess.run([str(part) for part in command], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{error}{hint}") from None


class CMakeBuild(build_ext):
    def build_extension(self, ext: setuptools.Extension) -> None:
        import pybind11

        build = pathlib.Path(os.environ.get("GEAR_REVERB_BUILD_DIR", ROOT / "build" / "native"))
        abi = sysconfig.get_config_var("SOABI")
        home = build.resolve() / "python" / abi
        # pip builds with a pybind11 in a directory of the moment; a copy has a lasting place.
        mirror(pathlib.Path(pybind11.get_include()), home / "include")
        includes = [home / "include", sysconfig.get_path("include")]
        write_if_changed(
            home / "python.cmake",
            f"set(GEAR_REVERB_PYTHON_INCLUDES {' '.join(f'[[{path}]]' for path in includes)})\n",
        )
        run(
            ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DGEAR_REVERB_PYTHON=ON"]
            + [f"-DGEAR_REVERB_VERSION={self.distribution.get_version()}"]
            + shlex.split(os.environ.get("GEAR_REVERB_CMAKE_ARGS", "")),
            "\nThe native build needs the packages of scripts/system_packages.txt; "
            "scripts/install_system.sh installs or names what is missing.",
        )
        jobs = ["-j", str(self.parallel)] if self.parallel else []
        run(["cmake", "--build", build, "--target", f"_native.{abi}", *jobs])

        built = home / f"_native.{abi}.so"
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or not filecmp.cmp(built, target, shallow=False):
            shutil.copy(built, target)


setuptools.setup(
    ext_modules=[setuptools.Extension("gear_reverb._native", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    # Asked of pip only where the system has no such tool.
    setup_requires=[need for tool, need in BUILD_TOOLS.items() if not shutil.which(tool)],
)
