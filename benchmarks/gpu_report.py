"""What the GPU check has found, step by step, whatever becomes of the next one."""

import inspect
import json
import multiprocessing
import pathlib
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

APART_SECONDS = 100


class Report:
    """What was found; steps that fail are counted and do not stop the others."""

    def __init__(self, device: str, path: pathlib.Path, seconds: float) -> None:
        self.start = time.monotonic()
        self._end = self.start + seconds
        self.failed: list[str] = []
        self.values: dict[str, Any] = {"device": device, "skipped": [], "cut short": []}
        self._path = path

    def write(self) -> None:
        """What there is so far, in case that the rest takes too long."""
        self.values["failed"] = self.failed
        self.values["seconds"] = time.monotonic() - self.start
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".part")
        unfinished.write_text(json.dumps(self.values, indent=1) + "\n")
        unfinished.replace(self._path)

    def step(
        self, name: str, work: Callable[..., Any], *arguments: Any, always: bool = False
    ) -> None:
        """Does `work`, whose result is kept; of a generator each, as long as there is time."""
        if not always and time.monotonic() > self._end:
            self._skip(name, "no time is left")
            return
        try:
            value = work(*arguments)
            if inspect.isgenerator(value):
                value = self._collect(name, value)
        except ImportError as error:
            self._skip(name, str(error))
        except Exception as error:
            traceback.print_exc()
            self.failed.append(name)
            print(f"FAILED: {name}: {error}", flush=True)
        else:
            self.values[name] = value
            print(f"ok: {name}", flush=True)
        self.write()

    def _skip(self, name: str, why: str) -> None:
        self.values["skipped"].append(f"{name}: {why}")
        print(f"skipped: {name}: {why}", flush=True)

    def _collect(self, name: str, results: Iterator[Any]) -> list[Any]:
        found = self.values[name] = []
        for result in results:
            found.append(result)
            if time.monotonic() > self._end:
                print(f"   {name} is cut short: no time is left", flush=True)
                self.values["cut short"].append(name)
                break
            self.write()
        return found


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `work` in a process of its own: what it does to the GPU ends with it.

    To be called before this process uses the GPU.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run() -> None:
        try:
            theirs.send((True, work(*arguments)))
        except BaseException as error:
            theirs.send((False, f"{type(error).__name__}: {error}"))

    process = context.Process(target=run)
    process.start()
    theirs.close()
    try:
        if not ours.poll(APART_SECONDS):
            raise TimeoutError(f"no answer within {APART_SECONDS} seconds")
        good, value = ours.recv()
    except EOFError:
        raise RuntimeError("the process ended without an answer") from None
    finally:
        process.kill()
        process.join()
    if not good:
        raise RuntimeError(value)
    return value
