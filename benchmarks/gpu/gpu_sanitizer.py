"""Has compute-sanitizer watch the kernels' checks on small cases, for gpu_check.py."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

from gpu_apart import Skipped

# By tool. Races are looked for in shared memory alone, where bulk copies may be taken for some.
SECONDS = {"memcheck": 65, "racecheck": 40, "synccheck": 40}
LEAST_SECONDS = 20
FOUND = 9
OUTCOMES = {0: "nothing was found", 1: "the kernels differ from their twins", FOUND: "see the log"}
CASE = """
import sys
from gear_reverb import _native as n
sys.exit(bool(n.cuda_self_test({gpu}, 1, 1, large=False) + n.cuda_check_selection({gpu}, 1, 2000)
              + n.cuda_check_draws({gpu}, 1, 2)))
"""


def watch(
    tool: str, gpu: int, logs: pathlib.Path, seconds_left: float
) -> dict[str, str | list[str]]:
    """What the tool says. What memcheck finds is a failure; the others inform."""
    if seconds_left < LEAST_SECONDS:
        raise Skipped("no time is left")
    if shutil.which("compute-sanitizer") is None:
        raise Skipped("compute-sanitizer is not installed")
    seconds = min(SECONDS[tool], int(seconds_left))
    sanitizer = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND)]
    command = ["timeout", "-k", "5", str(seconds), *sanitizer]
    environment = os.environ | {"GEAR_REVERB_MEASURE": "0"}
    with (logs / "sanitizer.log").open("a+", errors="replace") as log:
        begin, start = log.seek(0, os.SEEK_END), time.monotonic()
        status = subprocess.run(
            [*command, sys.executable, "-c", CASE.format(gpu=gpu)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        ).returncode
        log.seek(begin)
        lines = log.read().splitlines()
    if any("device not supported" in line.lower() for line in lines):
        raise Skipped("compute-sanitizer does not support this machine's device")
    if time.monotonic() - start >= seconds:
        outcome = f"it did not end within {seconds} seconds"
    else:
        outcome = OUTCOMES.get(status, f"it ended with status {status}")
    assert tool != "memcheck" or status != FOUND, "\n".join(lines[-20:])
    print(f"   {tool}: {outcome}")
    return {"outcome": outcome, "last": lines[-20:]}
