#!/usr/bin/env python3
"""Reads what the CUDA compiler made of the kernels, and checks what makes them fast.

No kernel may spill: none has a stack frame, local memory, or loads and stores of it. The gather
kernels load what they gather 16 bytes at a time. All kernels are there for all architectures.

    python scripts/check_kernels.py OBJECT...   # or an extension; exits with 3 without cuobjdump

`cuobjdump` is that of the PATH, of CUDA, or of .venv-cuda, where scripts/install_nvcc.sh puts one.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Part of a kernel's name → what its machine code must have, and why.
WANTED = {
    # Evict-first, as what is read once: the row lists are loaded otherwise.
    "GatherBy": (r"\bLDG\.E\.EF\.128\b", "16-byte loads of sources"),
    "4DrawEN|10ResumLevelI|3TopEN|11WriteLeaves": (r"\bLDG\.E\.[A-Z0-9_.]*128\b", "16-byte loads"),
    "GatherByBulk.*sm_(?:9|1)": (r"\bUBLKCP\b", "bulk copies"),
}
ARCHITECTURES = {"sm_80", "sm_90", "sm_100"}
LOCAL_MEMORY = re.compile(r"\b(?:LDL|STL)\b")


def find_cuobjdump() -> str | None:
    packaged = sorted(ROOT.glob(".venv-cuda/lib/python3*/site-packages/nvidia/cu*/bin/cuobjdump"))
    for candidate in ("cuobjdump", "/usr/local/cuda/bin/cuobjdump", *map(str, packaged)):
        if found := shutil.which(candidate):
            return found
    return None


def check_resources(report: str) -> Iterator[str]:
    """Of `cuobjdump --dump-resource-usage`."""
    for name, usage in re.findall(r"Function (\S+):\s*\n\s*(.*)", report):
        used = dict(re.findall(r"(STACK|LOCAL):(\d+)", usage))
        for kind in ("STACK", "LOCAL"):
            if used.get(kind) != "0":
                yield f"{name} has {kind} {used.get(kind)}: {usage}"


def kernels(sass: str) -> Iterator[tuple[str, str]]:
    """(name and architecture, machine code) of `cuobjdump --dump-sass`."""
    for part in re.split(r"(?m)^\s*code for ", sass)[1:]:
        architecture = part.split()[0]
        for function in re.split(r"(?m)^\s*Function : ", part)[1:]:
            name, _, code = function.partition("\n")
            yield f"{name.strip()} {architecture}", code


def check_code(sass: str) -> Iterator[str]:
    seen = set()
    architectures: dict[str, set[str]] = {}
    for name, code in kernels(sass):
        kernel, _, architecture = name.rpartition(" ")
        architectures.setdefault(kernel, set()).add(architecture)
        if LOCAL_MEMORY.search(code):
            yield f"{name} uses local memory"
        for pattern, (wanted, what) in WANTED.items():
            if re.search(pattern, name):
                seen.add(pattern)
                if not re.search(wanted, code):
                    yield f"{name} has no {what}"
    yield from (f"There is no kernel {pattern}" for pattern in WANTED.keys() - seen)
    for kernel, there in architectures.items():
        if missing := ARCHITECTURES - there:
            yield f"{kernel} is not there for {', '.join(sorted(missing))}"


def main() -> int:
    tool = find_cuobjdump()
    if tool is None:
        print("There is no cuobjdump.")
        return 3
    # Where the disassembler lies, which it calls.
    os.environ["PATH"] += os.pathsep + str(pathlib.Path(tool).parent)
    report = sass = ""
    for path in sys.argv[1:]:
        for option in ("--dump-resource-usage", "--dump-sass"):
            text = subprocess.run(
                [tool, option, path], check=True, capture_output=True, text=True
            ).stdout
            if option == "--dump-sass":
                sass += text
            else:
                report += text
    problems = [*check_resources(report), *check_code(sass)]
    names = sorted(name for name, _ in kernels(sass))
    print(*(problems or names), sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
