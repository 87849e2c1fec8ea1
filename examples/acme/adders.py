"""Runs the tests of Acme's adders, which its package brings along, on dm-reverb and on gear_reverb.

What passes on dm-reverb must pass on gear_reverb: prints one line `ok: …` or `FAILED: …` for each
such test, and what pytest said of gear_reverb's run if any failed. Status 1 if any did.

    python examples/acme/adders.py
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

STAND_INS = pathlib.Path(__file__).resolve().with_name("stand_ins")
TIMEOUT_SECONDS = 600


def passing(prefix: list[str]) -> tuple[set[str], str]:
    """The names of the tests that pass, and pytest's output.

    Args:
      prefix: What comes between `python` and `-m pytest`.
    """
    package = pathlib.Path(importlib.util.find_spec("acme").origin).parent
    tests = sorted((package / "adders" / "reverb").glob("*_test.py"))
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory, "report.xml")
        options = ["-q", "-p", "no:cacheprovider", "-p", "signature_timeout"]
        options.append(f"--junitxml={report}")
        result = subprocess.run(
            [sys.executable, *prefix, "-m", "pytest", *options, *map(str, tests)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            env={**os.environ, "PYTHONPATH": str(STAND_INS), "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
        # A case has an element inside if it failed or was skipped.
        names = {
            f"{case.get('classname').rpartition('site-packages.')[2]}.{case.get('name')}"
            for case in cases
            if all(child.tag in ("properties", "system-out", "system-err") for child in case)
        }
    return names, result.stdout


def main() -> int:
    expected, output = passing([])
    if not expected:
        print(f"{output}\nFAILED: none of the adders' tests passes on dm-reverb")
        return 1
    found, output = passing(["-m", "gear_reverb", "run"])
    if expected - found:
        print(output)
    for name in sorted(expected):
        print(f"{'ok' if name in found else 'FAILED'}: {name}")
    return 1 if expected - found else 0


if __name__ == "__main__":
    sys.exit(main())
