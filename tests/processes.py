"""Programs in processes of their own."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

SECONDS = 60  # For processes that should end at once; the machine may be busy.


def start(code, **environment):
    """A Python process that runs `code`, with pipes to it."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GEAR_REVERB_CONNECT_TIMEOUT": "2", **environment},
    )


def finish(process, text=None):
    """Its status and output, once it has ended."""
    out, err = process.communicate(text, timeout=SECONDS)
    return process.returncode, out, err


def stop(process):
    """Stops it until SIGCONT; its threads go on for a while after the signal was sent."""

    def state(task):
        try:
            return task.joinpath("stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:  # It has ended.
            return "T"

    process.send_signal(signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{process.pid}/task")
    while any(state(task) != "T" for task in tasks.iterdir()):
        time.sleep(0.001)
