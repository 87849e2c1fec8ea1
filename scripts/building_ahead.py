"""Builds native tests, with the lowest priority, while suites run that mostly wait."""

import atexit
import os
import pathlib
import signal
import subprocess
import threading
from typing import TextIO

_lock = threading.Lock()
_process: subprocess.Popen | None = None  # Of now.
_ended = False
_done: dict[str, threading.Event] = {}


def commands(name: str, sanitize: str, target: str = "all") -> list[list[str]]:
    """Those that build the native tests in build/`name`, or one target, with these sanitizers."""
    options = ["-DGEAR_REVERB_TESTS=ON", f"-DGEAR_REVERB_SANITIZE={sanitize}"]
    return [
        ["cmake", "-S", ".", "-B", f"build/{name}", "-G", "Ninja", *options],
        ["cmake", "--build", f"build/{name}", "--target", target],
    ]


def start(builds: dict[str, str], root: pathlib.Path, log: pathlib.Path) -> None:
    """Starts the builds (names, with sanitizers), one after another; they end with this process."""
    if not builds:
        return
    _done.update({name: threading.Event() for name in builds})

    def run() -> None:
        try:
            with log.open("w") as output:
                for name, sanitize in builds.items():
                    for command in commands(name, sanitize):
                        _run(["nice", "-n", "19", *command], root, output)
                    _done[name].set()
        finally:
            for done in _done.values():
                done.set()

    atexit.register(_end)
    threading.Thread(target=run, daemon=True).start()


def wait(name: str) -> None:
    """Until that build is done, or has failed; at once if it was not started."""
    if name in _done:
        _done[name].wait()


def _run(command: list[str], root: pathlib.Path, output: TextIO) -> None:
    global _process
    with _lock:
        if _ended:
            return
        _process = subprocess.Popen(
            command,
            cwd=root,
            stdout=output,
            stderr=output,
            # A group, so that all of it can be ended; in this session, since Linux may share the
            # processor between sessions first, whatever the priorities of their processes.
            preexec_fn=os.setpgrp,
        )
    _process.wait()


def _end() -> None:
    global _ended
    with _lock:
        _ended = True
        if _process is not None and _process.poll() is None:
            os.killpg(_process.pid, signal.SIGTERM)
            _process.wait()
