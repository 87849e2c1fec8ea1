"""Processes that report to the main one, stop when told to, and never outlive it.

Each worker has one pipe to the main process. It sends messages; it is told to stop by one, or by
the end of the file there if the main process has died.
"""

import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

# Spawned, not forked: a fork would copy the threads' locks of a running client.
_context = multiprocessing.get_context("spawn")


class WorkerFailed(Exception):
    """A worker ended that should have run on."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """The last message of a worker that raised."""

    traceback: str


class Link:
    """A worker's end of its pipe. Not thread-safe."""

    def __init__(self, connection: multiprocessing.connection.Connection):
        self._connection = connection
        self._stopped = False

    def report(self, message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError:  # The main process is gone.
            self._stopped = True

    def stop_requested(self, wait_seconds: float | None = 0.0) -> bool:
        """Whether to end; waits for it up to `wait_seconds`, without limit if None."""
        self._stopped = self._stopped or self._connection.poll(wait_seconds)
        return self._stopped


def _outlive_by_seconds(seconds: float) -> None:
    """Ends this process soon after the main one, should it still wait on a peer then."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    time.sleep(seconds)
    os._exit(1)


def _run(work: Callable[..., None], connection: Any, args: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The main process tells us.
    threading.Thread(target=_outlive_by_seconds, args=(2.0,), daemon=True).start()
    link = Link(connection)
    try:
        work(link, *args)
    except Exception:
        link.report(Failure(traceback.format_exc()))
        os._exit(1)  # Threads of the client may be waiting on a peer that will not answer.


class Worker:
    """The main process's side of one worker."""

    def __init__(self, name: str, work: Callable[..., None], *args: Any):
        """Runs `work(link, *args)`; `work` is a function of an importable module."""
        self.name = name
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(target=_run, args=(work, theirs, args), name=name)
        self._process.start()
        theirs.close()
        self._open = True

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def messages(self, wait_seconds: float = 0.0) -> list[Any]:
        """What has arrived since the last call, waiting for the first up to `wait_seconds`.

        Raises:
          WorkerFailed: it raised, or died.
        """
        received: list[Any] = []
        try:
            while self._open and self._connection.poll(0.0 if received else wait_seconds):
                received.append(self._connection.recv())
                if isinstance(received[-1], Failure):
                    raise WorkerFailed(f"{self.name} failed:\n{received[-1].traceback}")
        except (EOFError, OSError):
            self._open = False
        if not received and not self._open:
            self._process.join(1.0)
            raise WorkerFailed(f"{self.name} ended with exit code {self._process.exitcode}")
        return received

    def tell_to_stop(self) -> None:
        try:
            self._connection.send(None)
        except OSError:
            pass  # Already gone.

    def join(self, timeout_seconds: float) -> str | None:
        """Waits for its end, dropping its messages; what was wrong with it, or None."""
        deadline = time.monotonic() + timeout_seconds
        while self._open and time.monotonic() < deadline and self.alive:
            try:
                if self._connection.poll(0.05):
                    self._connection.recv()
            except (EOFError, OSError):
                self._open = False
        self._process.join(max(deadline - time.monotonic(), 0.0))
        if self.alive:
            return f"{self.name} did not stop when told to"
        code = self._process.exitcode
        return f"{self.name} stopped with exit code {code}" if code else None

    def end(self) -> None:
        """Ends it, whatever it is doing."""
        if self.alive:
            self._process.terminate()
            self._process.join(1.0)
        if self.alive:
            self._process.kill()
            self._process.join()
