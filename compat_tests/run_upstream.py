#!/usr/bin/env python3
"""Runs Reverb's own Python tests against gear_reverb, and prints, last of all, how many passed.

    python compat_tests/run_upstream.py --reverb-src PATH [--timeout SECONDS] [--python PROGRAM]

PATH is a source tree of Reverb: a folder with a package `reverb` in it, or that package itself.
Every `*_test.py` below it runs in a process of its own, in which `import reverb` gives gear_reverb;
only modules that gear_reverb lacks, such as helpers of the tests, come from the tree. A file that
crashes, hangs or has no tests counts as one failure more. The last line is `N passed, N failed`,
the status 0 if nothing failed, and 2 if there is nothing to run.

The files run by .venv-compat's Python where it is there (scripts/setup_compat.sh), for most of them
need TensorFlow. Needs the standard library alone.
"""

import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
COMPAT_PYTHON = HERE.parent / ".venv-compat/bin/python"
SHOWN_LINES = 200


@dataclasses.dataclass
class Outcome:
    """What became of one file."""

    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failures: list[str] = dataclasses.field(default_factory=list)
    output: str = ""

    def fail(self, what: str) -> None:
        self.counts["failed"] += 1
        self.failures.append(what)


def package_of(source: pathlib.Path) -> pathlib.Path:
    """The folder of the package `reverb`.

    Raises:
      ValueError: If the tree has none, or no tests.
    """
    if not source.is_dir():
        raise ValueError(f"there is no folder {source}")
    package = source / "reverb" if (source / "reverb").is_dir() else source.resolve()
    if package.name != "reverb":
        raise ValueError(f"{source} has no folder reverb/")
    if next(package.rglob("*_test.py"), None) is None:
        raise ValueError(f"there is no *_test.py in {package}")
    return package


def _read(path: pathlib.Path, outcome: Outcome) -> str | None:
    """Counts what _upstream_file.py wrote; the test that had begun and not ended, if any."""
    results: dict[str, str] = {}
    for line in path.read_text().splitlines():
        result, _, test = line.partition("\t")
        # A test may fail in more than one of its parts, and after one that passed.
        if results.get(test) != "failed":
            results[test] = result
    for test, result in results.items():
        if result == "failed":
            outcome.fail(test)
        elif result != "began":
            outcome.counts[result] += 1
    return next((test for test, result in results.items() if result == "began"), None)


def run_file(python: str, package: pathlib.Path, file: pathlib.Path, timeout: float) -> Outcome:
    """Runs one file of tests; it and what it started have ended when this returns."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as directory:
        results, log = pathlib.Path(directory, "results"), pathlib.Path(directory, "log")
        results.touch()
        command = [python, "-m", "gear_reverb", "run", HERE / "_upstream_file.py"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*map(str, command), str(package), str(file), str(results)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ},
                start_new_session=True,
            )
            try:
                ended = f"ended with status {process.wait(timeout)}"
            except subprocess.TimeoutExpired:
                ended = f"did not end in {timeout:g} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
        running = _read(results, outcome)
        outcome.output = log.read_text(errors="replace")
    if running:
        ended += f" in {running}"
    if ended.startswith("did not") or running or status < 0:
        outcome.fail(ended)
    elif not outcome.counts:
        outcome.fail("no test ran" + (f", {ended}" if status else ""))
    elif status and not outcome.failures:
        outcome.fail(ended)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reverb-src", type=pathlib.Path, required=True, metavar="PATH")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each file")
    python = str(COMPAT_PYTHON) if COMPAT_PYTHON.exists() else sys.executable
    parser.add_argument("--python", default=python, help="what runs the files; %(default)s")
    options = parser.parse_args()
    try:
        package = package_of(options.reverb_src).resolve()
    except ValueError as error:
        parser.error(str(error))

    total: collections.Counter = collections.Counter()
    for file in sorted(package.rglob("*_test.py")):
        start = time.monotonic()
        outcome = run_file(options.python, package, file, options.timeout)
        total += outcome.counts
        counts = ", ".join(f"{outcome.counts[kind]} {kind}" for kind in ("passed", "failed"))
        if outcome.counts["skipped"]:
            counts += f", {outcome.counts['skipped']} skipped"
        name = file.relative_to(package.parent)
        print(f"{name}: {counts} ({time.monotonic() - start:.0f} s)", flush=True)
        if outcome.failures:
            print(*outcome.output.splitlines()[-SHOWN_LINES:], sep="\n    ", end="\n\n")
            print(*(f"  failed: {failure}" for failure in outcome.failures), sep="\n", flush=True)
    print(f"{total['passed']} passed, {total['failed']} failed")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
