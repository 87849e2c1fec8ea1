"""Sides of a comparison, each in a process of its own that measures when it is told to.

A script starts itself once per side (`Side`); the child makes what it measures and then calls
`answer`. All sides stay alive through the rounds and wait in silence while another one's turn is
on.
"""

import functools
import json
import os
import pathlib
import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 240.0
_DRAIN_SECONDS = 15.0


class SideFailed(RuntimeError):
    """A side ended or fell silent; the message ends with what it wrote to stderr."""


class Side:
    """A child process: `python SCRIPT ARGS`, told to measure through a pipe."""

    def __init__(self, script: str | pathlib.Path, *args: Any, env: dict[str, str] | None = None):
        self._command = [sys.executable, str(HERE / script), *map(str, args)]
        quiet = {
            # None of the sides computes, and pools of threads disturb.
            "OMP_NUM_THREADS": "1",
            "JAX_PLATFORMS": "cpu",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            # Specs as NumPy's where ours are asked for: seconds of import less.
            "GEAR_REVERB_TENSORFLOW": "0",
        }
        logs = HERE.parent.parent / "build" / "bench"
        logs.mkdir(parents=True, exist_ok=True)
        self._log = logs / f"side-{os.getpid()}-{id(self):x}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **quiet, "PYTHONUNBUFFERED": "1", **(env or {})},
            )
        self._pending = b""
        self.ready: Any = None

    def wait_ready(self) -> "Side":
        """Waits until the child has set itself up; what it said is in `ready`."""
        self.ready = self._read(START_SECONDS)
        return self

    def ask(self, request: Any, timeout: float = 120.0) -> Any:
        """Sends a request, for a measurement its length in seconds; the child's answer."""
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise SideFailed(self._trouble("ended")) from None
        return self._read(timeout)

    def close(self) -> None:
        """Ends the child, by force if it does not end itself at the end of its input."""
        self._process.stdin.close()
        try:
            self._process.wait(_DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.unlink(missing_ok=True)

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise SideFailed(self._trouble(f"did not answer in {seconds:.0f} s"))
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise SideFailed(self._trouble("ended"))
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return json.loads(line)

    def _trouble(self, what: str) -> str:
        tail = self._log.read_text(errors="replace")[-1500:] if self._log.exists() else ""
        return f"{' '.join(self._command[1:])} {what}\n{tail}"


def start_of(script: str, *args: Any, **env: str) -> Callable[[], Side]:
    """What starts `script`, which ends with `run`, as the side `args`."""
    return lambda: Side(script, "--side", *args, env=env)


def answer(
    handle: Callable[[Any], Any], ready: Any = True, at_end: Callable[[], None] | None = None
) -> NoReturn:
    """The child's side: says `ready`, then answers requests until the end of its input.

    Then the process ends at once, after `at_end`: nobody waits for pools and datasets to wind down.
    """
    reply = os.fdopen(claim_stdout(), "w")
    for message in _replies(handle, ready):
        reply.write(json.dumps(message) + "\n")
        reply.flush()
    if at_end is not None:
        at_end()
    os._exit(0)


def _replies(handle, ready):
    yield ready
    for line in sys.stdin:
        yield handle(json.loads(line))


@functools.cache
def claim_stdout() -> int:
    """Keeps stdout for replies; what libraries print goes to stderr. Before they are imported."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def rate(call: Callable[[], float], seconds: float, warm_up: float = 0.25) -> float:
    """Calls for so long, after a warm-up of a part of it; the sum of what it returned, per second.

    The warm-up also uses up what a side has drawn ahead while it was not its turn.
    """
    _total(call, seconds * warm_up)
    total, elapsed = _total(call, seconds)
    return total / elapsed


def _total(call: Callable[[], float], seconds: float) -> tuple[float, float]:
    total, calls = 0.0, 0
    start = now = time.perf_counter()
    while now - start < seconds or calls < 2:
        total += call()
        calls += 1
        now = time.perf_counter()
    return total, now - start


def latencies(call: Callable[[], Any], seconds: float, at_most: int = 5000) -> list[float]:
    """Microseconds of each call made in a row for so long."""
    values: list[float] = []
    end = time.perf_counter() + seconds
    while len(values) < at_most:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        values.append((now - start) * 1e6)
        if now > end:
            break
    return values


def run(main: Callable[[], int], side: Callable[..., None]) -> NoReturn:
    """The script's own end: `main`, or in a child that `start_of` started `side(*args)`."""
    if sys.argv[1:2] == ["--side"]:
        claim_stdout()
        side(*sys.argv[2:])
    sys.exit(main())
