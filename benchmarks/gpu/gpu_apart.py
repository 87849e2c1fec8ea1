"""Work of the GPU check in processes of their own: what it does to the GPU ends with them."""

import faulthandler
import functools
import inspect
import multiprocessing
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import IO, Any

PARTING_SECONDS = 5


class Skipped(Exception):
    """What the work needs is not there."""


class Failed(Exception):
    """Why, with a traceback; the last line says the most."""


class Hung(Failed):
    """It gave no answer."""


class Child:
    """A forked process that does one work after the other, as it is told to.

    To be made before this process uses the GPU, which a forked one could not use then.
    """

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        fork = multiprocessing.get_context("fork")
        self._pipe, theirs = fork.Pipe()
        self._traceback = tempfile.TemporaryFile()
        arguments = (works, theirs, self._pipe, self._traceback)
        self._process = fork.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join(PARTING_SECONDS)
        self._kill()
        self._traceback.close()

    def answers(self, patience: Callable[[], float]) -> Iterator[tuple[str, Any]]:
        """Of the next work: ("each", result) of a generator's, then ("done", the result of others).

        Waits `patience()` seconds for each. Raises Skipped or Failed, as the work does, Failed also
        where the process ends, and Hung where it does not answer, and is ended then.
        """
        kind = ""
        try:
            self._pipe.send("go on")
            while kind != "done":
                seconds = patience()
                if not self._pipe.poll(seconds):
                    raise Hung(self._end(f"no answer within {seconds:.0f} seconds"))
                kind, value = self._pipe.recv()
                if kind == "skipped":
                    raise Skipped(value)
                if kind == "failed":
                    raise Failed(value)
                yield kind, value
        except (EOFError, OSError):
            raise Failed(self._end("the process ended without an answer")) from None

    def _end(self, why: str) -> str:
        """Ends the process; `why`, after what it did then."""
        self._process.join(PARTING_SECONDS if "ended" in why else 0)
        if self._process.exitcode is None:
            os.kill(self._process.pid, signal.SIGABRT)  # For its traceback.
            self._process.join(PARTING_SECONDS)
        else:
            why += f" (status {self._process.exitcode})"
        self._kill()
        self._traceback.seek(0)
        return self._traceback.read().decode(errors="replace") + why

    def _kill(self) -> None:
        if self._process.is_alive():
            self._process.kill()
            self._process.join(PARTING_SECONDS)


def _serve(
    works: Sequence[Callable[[], Any]], pipe: Connection, other_end: Connection, log: IO[bytes]
) -> None:
    other_end.close()
    faulthandler.enable(log)
    try:
        for work in works:
            pipe.recv()
            _answer(work, lambda *answer: pipe.send(answer))
    except (EOFError, OSError):  # There is nothing more to do.
        pass


def _answer(work: Callable[[], Any], send: Callable[[str, Any], None]) -> None:
    try:
        result = work()
        if inspect.isgenerator(result):
            for each in result:
                send("each", each)
            result = []
    except (ImportError, Skipped) as error:
        send("skipped", str(error))
    except Exception:
        send("failed", traceback.format_exc())
    else:
        send("done", result)


def bound(step: Sequence[Any]) -> Callable[[], Any]:
    """The work of a step (name, work, arguments...)."""
    return functools.partial(*step[1:])
