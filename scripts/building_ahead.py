"""Builds native tests, with the lowest priority, while suites run that mostly wait."""

import atexit
import os
import pathlib
import shlex
import signal
import subprocess

_process: subprocess.Popen | None = None


def commands(name: str, sanitize: str) -> list[list[str]]:
    """Those that build the native tests in build/`name`, with the given sanitizers."""
    options = ["-DGEAR_REVERB_TESTS=ON", f"-DGEAR_REVERB_SANITIZE={sanitize}"]
    return [
        ["cmake", "-S", ".", "-B", f"build/{name}", "-G", "Ninja", *options],
        ["cmake", "--build", f"build/{name}"],
    ]


def start(builds: dict[str, str], root: pathlib.Path, log: pathlib.Path) -> None:
    """Starts the builds, one after another; they end with this process."""
    global _process
    if not builds:
        return
    each = [" && ".join(map(shlex.join, commands(*build))) for build in builds.items()]
    with log.open("w") as output:
        _process = subprocess.Popen(
            ["nice", "-n", "19", "sh", "-c", "; ".join(each)],
            cwd=root,
            stdout=output,
            stderr=output,
            # A group, so that all of it can be ended; in this session, since Linux may share the
            # processor between sessions first, whatever the priorities of their processes.
            preexec_fn=os.setpgrp,
        )
    atexit.register(_end)


def wait() -> None:
    """Until all builds are done, or have failed."""
    if _process is not None:
        _process.wait()


def _end() -> None:
    if _process.poll() is None:
        os.killpg(_process.pid, signal.SIGTERM)
        _process.wait()
