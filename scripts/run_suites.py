#!/usr/bin/env python3
"""Runs the test suites one after another and prints, last of all, `N passed, N failed`.

Every suite runs (`image` only if named), whatever became of the ones before it; a suite that cannot
be built or run counts as one failure. The status is 0 only if nothing failed. Needs the standard
library alone.

    python scripts/run_suites.py [--pythons VERSION,...] [SUITE ...]
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import building_ahead
from suite_counts import Counts, read_junit

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
PROGRAM_TIMEOUT_SECONDS = 600
# What is tested beside a framework, in an environment that has it.
ADAPTERS = {"torch": "tests/test_torch_adapter.py", "jax": "tests/test_jax_adapter.py"}
# What is tested on the CPU's twin and on an emulated GPU.
ON_DEVICES = (
    "tests/test_gpu_arrays.py",
    "tests/test_gpu_check.py",
    "tests/test_cuda.py",
    "tests/test_device_batches.py",
    "tests/test_device_draws.py",
    "tests/test_device_padding.py",
    "tests/test_device_priorities.py",
    "tests/test_device_tier.py",
    "tests/test_fixed_batches.py",
)
# What is tested with each framework that is there.
FRAMEWORKS = (
    "tests/test_batch_frameworks.py",
    "tests/test_device_draws.py::test_casts_and_frameworks",
)

# Suites that run only where they are named.
ON_REQUEST = {"image"}

# The suites of native tests, each with its build, and what everything is built with there.
SANITIZERS = {"native": "", "asan": "address,undefined", "tsan": "thread"}
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": f"second_deadlock_stack=1:suppressions={ROOT}/scripts/tsan.supp",
}


def run(command: list, **env: str) -> int:
    """Runs a command with its output shown; the status."""
    command = [str(part) for part in command]
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}).returncode


def fresh_reports(name: str) -> pathlib.Path:
    directory = REPORTS / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


# ---- native ----


def without_address_randomization() -> list[str]:
    """The sanitizers of GCC 12 and 13 can fail to start where addresses are very random."""
    command = ["setarch", "--addr-no-randomize"]
    if (
        shutil.which("setarch")
        and not subprocess.run([*command, "true"], capture_output=True).returncode
    ):
        return command
    return []


def native(name: str) -> Counts:
    sanitized = bool(SANITIZERS[name])
    if sanitized:
        building_ahead.wait(name)  # What went wrong there comes out now.
    directory = ROOT / "build" / name
    reports = fresh_reports(name)
    if any(map(run, building_ahead.commands(name, SANITIZERS[name]))):
        return Counts().fail("the build failed")
    programs = reports / "ctest.xml"
    status = run(
        [*(without_address_randomization() if sanitized else [])]
        + ["ctest", "--test-dir", directory, "--output-on-failure", "--no-tests=error"]
        + ["--parallel", os.cpu_count(), "--timeout", PROGRAM_TIMEOUT_SECONDS]
        + ["--output-junit", programs],
        GTEST_OUTPUT=f"xml:{reports}/",
        **SANITIZER_OPTIONS,
    )
    counts = Counts()
    if programs.is_file():
        for program in ElementTree.parse(programs).getroot().iter("testcase"):
            cases = reports / (program.get("name") + ".xml")
            result = read_junit(cases) if cases.is_file() else Counts()
            if program.find("failure") is not None and not result.failed:
                result.fail(f"{program.get('name')} ended abnormally")
            counts.add(result)
    if status and not counts.failed:
        counts.fail(f"ctest ended with status {status}")
    return counts


# ---- Python ----


def setup_venv(directory: str, extras: str, *versions: str) -> int:
    return run(["scripts/setup_venv.sh", directory, extras, *versions])


def pytest(
    name: str, venv: str, tests: str, *arguments: str, env: dict[str, str] | None = None
) -> Counts:
    report = fresh_reports(name) / "pytest.xml"
    if not (ROOT / tests).is_file() and not any((ROOT / tests).rglob("test_*.py")):
        return Counts().fail(f"{tests}/ has no tests")
    command = [f"{venv}/bin/python", "-m", "pytest", tests, f"--junitxml={report}", *arguments]
    status = run(command, **(env or {}))
    counts = read_junit(report) if report.is_file() else Counts()
    if status and not counts.failed:
        counts.fail(f"pytest ended with status {status}")
    return counts


def python() -> Counts:
    if setup_venv(".venv", "demo,test,dev", "3.11", "3.12", "3.13", "3.10"):
        return Counts().fail("the virtual environment could not be made")
    # These have environments, and suites, of their own.
    others = ("tests/test_import_orders.py", *ADAPTERS.values())
    tests = ("tests", *(f"--ignore={path}" for path in others))
    counts = pytest("python", ".venv", *tests)
    # Once more with all data in shared memory, also to servers of the same process.
    forced = {"GEAR_REVERB_DATA_PLANE": "shared-memory"}
    counts.add(pytest("python-shared-memory", ".venv", *tests, "-m", "not other_plane", env=forced))
    return counts


def emulated() -> Counts:
    """The tests of devices, on a GPU that is emulated, with all that lies above it."""
    if setup_venv(".venv", "demo,test,dev", "3.11", "3.12", "3.13", "3.10"):
        return Counts().fail("the virtual environment could not be made")
    tell_abi = "import sysconfig; print(sysconfig.get_config_var('SOABI'))"
    abi = subprocess.check_output([ROOT / ".venv/bin/python", "-c", tell_abi], text=True).strip()
    commands = building_ahead.commands("native", "", f"_native_emulated.{abi}")
    if any(map(run, commands)):
        return Counts().fail("the build failed")
    extension = ROOT / "build" / "native" / "python" / abi / "emulated" / f"_native.{abi}.so"
    env = {
        "PYTHONPATH": f"{ROOT}/tests/emulated",
        "GEAR_REVERB_EMULATED": str(extension),
        "GEAR_REVERB_TEST_DEVICE": "cuda:0",
    }
    return pytest("emulated", ".venv", *ON_DEVICES, "-p", "emulated_gpu", env=env)


def compat() -> Counts:
    status = run(["scripts/setup_compat.sh"])
    if status == 3:
        note = "no CPython 3.11, which dm-reverb needs, was found or could be installed"
        return Counts(skipped=1, notes=[note])
    if status:
        return Counts().fail("the virtual environment could not be made")
    counts = pytest("compat", ".venv-compat", "compat_tests")
    # Here there is a TensorFlow to compare with.
    counts.add(pytest("compat-signature", ".venv-compat", "tests/test_signature.py"))
    return counts


def imports() -> Counts:
    status = run(["scripts/make_import_envs.sh"])
    if status in (3, 4):
        reason = {3: "no CPython for an environment", 4: "not enough room on the disk"}[status]
        return Counts(skipped=1, notes=[f"the import orders: {reason}"])
    if status:
        return Counts().fail("the environments could not be made")
    counts = pytest("imports", ".venv", "tests/test_import_orders.py")
    # The newest TensorFlow is here; the suite `compat` has the oldest that the datasets work with.
    newest = ("-k", "dataset or tf_client")
    counts.add(pytest("newest-tensorflow", ".venv-newest", "compat_tests", *newest))
    return counts


def adapters() -> Counts:
    """The tests of what needs a framework, where that framework is."""
    status = run(["scripts/make_import_envs.sh", "newest"])
    if status in (3, 4):
        reason = {3: "no CPython for the environment", 4: "not enough room on the disk"}[status]
        return Counts(skipped=1, notes=[f"the adapters: {reason}"])
    if status:
        return Counts().fail("the environment could not be made")
    counts = Counts()
    for framework, tests in ADAPTERS.items():
        if run([".venv-newest/bin/python", "-c", f"import {framework}"]):
            counts.add(Counts(skipped=1, notes=[f"{framework} could not be had: {tests}"]))
        else:
            counts.add(pytest(f"adapters-{framework}", ".venv-newest", tests))
    counts.add(pytest("adapters-all", ".venv-newest", *FRAMEWORKS))
    return counts


def pythons(versions: list[str]) -> Counts:
    reports = fresh_reports("pythons")
    status = run(["scripts/test_pythons.sh", reports, *versions])
    counts = Counts()
    for report in sorted(reports.glob("*.xml")):
        counts.add(read_junit(report))
    for missing in sorted(reports.glob("*.missing")):
        counts.add(Counts(skipped=1, notes=[missing.read_text().strip()]))
    if status and not counts.failed:
        counts.fail(f"test_pythons.sh ended with status {status}")
    return counts


# ---- scripts ----


def lines(command: list[str]) -> Counts:
    """What a program that prints lines `ok: …`, `FAILED: …` or `skipped: …` says of its parts."""
    counts = Counts()
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            counts.passed += line.startswith("ok: ")
            counts.failed += line.startswith("FAILED: ")
            if line.startswith("skipped: "):
                counts.add(Counts(skipped=1, notes=[line.removeprefix("skipped: ").strip()]))
    if process.returncode and not counts.failed:
        counts.fail(f"{command[-1]} ended with status {process.returncode}")
    return counts


def checks() -> Counts:
    return lines(["scripts/check.sh"])


def acme() -> Counts:
    """The tests of Acme's adders, which must pass on us where they pass on dm-reverb."""
    status = run(["scripts/setup_acme.sh", "adders"])
    if status == 3:
        return Counts(skipped=1, notes=["Acme's adders: no CPython 3.11, which dm-reverb needs"])
    if status:
        return Counts().fail("the virtual environment could not be made")
    return lines([".venv-compat/bin/python", "examples/acme/adders.py"])


def image() -> Counts:
    """Builds the Docker image, which takes minutes, and runs it."""
    if setup_venv(".venv", "demo,test,dev", "3.11", "3.12", "3.13", "3.10"):
        return Counts().fail("the virtual environment could not be made")
    return pytest("image", ".venv", "image_tests", "--timeout=3600")


def install() -> Counts:
    if run(["scripts/test_install.sh"]):
        return Counts().fail("pip install into a clean environment failed")
    return Counts(passed=1)


def main() -> int:
    suites: dict[str, Callable[[], Counts]] = {
        "native": lambda: native("native"),
        "python": python,
        "emulated": emulated,
        "compat": compat,
        "acme": acme,
        "imports": imports,
        "adapters": adapters,
        "asan": lambda: native("asan"),
        "tsan": lambda: native("tsan"),
        "pythons": lambda: pythons(options.pythons.split(",")),
        "install": install,
        "checks": checks,
        "image": image,
    }
    # What a shell runs in the background ignores it, and so would the tests' own processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(suites))
    parser.add_argument("--pythons", default="3.10,3.13", help="versions for the suite `pythons`")
    options = parser.parse_args()
    if unknown := set(options.suites) - set(suites):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")

    REPORTS.mkdir(parents=True, exist_ok=True)
    summary = REPORTS / "summary.txt"
    summary.unlink(missing_ok=True)
    total = Counts()
    table = [f"{'suite':<10}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    names = options.suites or [name for name in suites if name not in ON_REQUEST]
    later = {name: SANITIZERS[name] for name in names[1:] if SANITIZERS.get(name)}
    building_ahead.start(later, ROOT, REPORTS / "building_ahead.log")
    for name in names:
        print(f"\n==== {name} ====", flush=True)
        start = time.monotonic()
        try:
            counts = suites[name]()
        except Exception as error:  # Whatever it was, the other suites still run.
            traceback.print_exc()
            counts = Counts().fail(f"{type(error).__name__}: {error}")
        total.add(counts)
        row = f"{counts.passed:>8}{counts.failed:>8}{counts.skipped:>9}"
        table.append(f"{name:<10}{row}{time.monotonic() - start:>9.0f}")
        print(table[-1], flush=True)
        table += [f"{'':<10}  {note}" for note in counts.notes]
    print("\n" + "\n".join(table))
    closing = f"{total.passed} passed, {total.failed} failed"
    summary.write_text(closing + "\n")
    print(closing, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
