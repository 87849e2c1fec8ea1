"""Programs in processes of their own."""

import os
import subprocess
import sys
import textwrap

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
