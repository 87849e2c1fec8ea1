"""Programs in processes of their own, and waiting."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

SECONDS = 60  # For what should happen at once; the machine may be busy.

_SERVER = """
    import sys
    {first}
    sys.path.insert(0, {here!r})
    import numpy as np
    import gear_reverb
    from batches import queue
    from gear_reverb import rate_limiters, selectors
    from tables import make_table
    server = gear_reverb.Server([{tables}], port={port})
    print(server.port, flush=True)
    server.wait()
    print("drained", flush=True)
"""


def wait_until(condition, pause=0.01):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(pause)


def start(code, **environment):
    """A Python process that runs `code`, with pipes to it."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


@contextlib.contextmanager
def serve(tables, port=None, first="", **environment):
    """Gives the process of a server and its port, and kills it at the end.

    Args:
      tables: Their source, with what the module `tables` has, and more, at hand.
      port: Where it serves; a free port if not given.
      first: What the program does before anything else.
      **environment: Variables besides those of this process.
    """
    here = os.path.dirname(__file__)
    process = start(_SERVER.format(first=first, here=here, tables=tables, port=port), **environment)
    try:
        line = process.stdout.readline()
        yield process, int(line or process.stderr.read())  # What went wrong, if it did.
    finally:
        process.kill()
        process.communicate()


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
    wait_until(lambda: all(state(task) == "T" for task in tasks.iterdir()))
