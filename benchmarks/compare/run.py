"""Runs the comparisons one after another, then draws their pictures.

    python benchmarks/compare/run.py [--quick] [NAME ...]

NAME is that of a file without `.py`; by default all. A full run takes half an hour and
writes `benchmarks/results/` and `docs/images/bench_*.svg`; a quick one takes less than three
minutes, has fewer sizes, rounds and peers, and writes `build/bench/`; what a slow machine
has not begun by then is left out, with a word. The exit status is that of the worst file: a bar
that is missed is printed, and is no failure unless `--check` is given.
"""

import argparse
import pathlib
import subprocess
import sys
import time

_HERE = pathlib.Path(__file__).resolve().parent
COMPARISONS = (
    "sample_in_process",
    "sample_across_processes",
    "device_twin",
    "latency",
    "write",
    "insert_batch",
    "prioritized",
    "table_size",
    "scaling",
    "memory",
    "ragged",
    "datasets",
)
_LONGEST_SECONDS = 900
_QUICK_SECONDS = 170  # Of all files; the pictures follow.


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMPARISONS))
    parser.add_argument("--quick", action="store_true", help="end within three minutes")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a bar is not met")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(COMPARISONS):
        parser.error(f"no such comparison: {', '.join(sorted(unknown))}")

    start, status = time.monotonic(), 0
    flags = [f"--{flag}" for flag in ("quick", "check") if getattr(arguments, flag)]
    for name in arguments.names or COMPARISONS:
        seconds = _LONGEST_SECONDS
        if arguments.quick:
            seconds = _QUICK_SECONDS - (time.monotonic() - start)
        if seconds <= 0:
            print(f"{name}: left out, the {_QUICK_SECONDS} s are over", file=sys.stderr)
            continue
        command = [sys.executable, str(_HERE / f"{name}.py"), *flags]
        try:
            code = subprocess.run(command, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            print(f"{name}: not done after {seconds:.0f} s", file=sys.stderr)
            code = 0 if arguments.quick else 2
        status = max(status, abs(code))
    pictures = [sys.executable, str(_HERE / "pictures.py"), *flags[: int(arguments.quick)]]
    status = max(status, subprocess.run(pictures).returncode)
    print(f"{time.monotonic() - start:.0f} s in all", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
