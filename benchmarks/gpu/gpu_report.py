"""What the GPU check has found, step by step, whatever becomes of the next one."""

import json
import pathlib
import time
import traceback
from collections.abc import Callable
from typing import Any

from gpu_apart import Child, Failed, Hung, Skipped, bound

PATIENCE_SECONDS = 75  # For one result; half of it after a step that hung, and so on.
LEAST_PATIENCE_SECONDS = 20
OVERTIME_SECONDS = 25  # For a step that has begun.


class Report:
    """What was found; steps that fail are counted and do not stop the others.

    The file is complete JSON at any time: it has the step that is "running", and in the end says
    that it is "complete".
    """

    def __init__(self, device: str, path: pathlib.Path, seconds: float) -> None:
        self._start = time.monotonic()
        self._end = self._start + seconds
        self._path = path
        self._hung = 0
        self.failed: list[str] = []
        self.values: dict[str, Any] = {
            "device": device,
            "complete": False,
            "running": "",
            "failed": self.failed,
            "errors": {},
            "skipped": [],
            "cut short": [],
            "took": {},
        }

    def seconds_left(self) -> float:
        """For steps to begin in."""
        return self._end - time.monotonic()

    def write(self) -> None:
        self.values["seconds"] = time.monotonic() - self._start
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".part")
        unfinished.write_text(json.dumps(self.values, indent=1, default=str) + "\n")
        unfinished.replace(self._path)

    def here(self, name: str, work: Callable[..., Any], *arguments: Any) -> None:
        """Takes a step in this process, whatever the time is."""

        def done() -> None:
            try:
                self.values[name] = work(*arguments)
            except Skipped:
                raise
            except Exception:
                raise Failed(traceback.format_exc()) from None

        self._take(name, done)

    def apart(self, *steps: tuple) -> None:
        """Takes steps (name, work, arguments...) in another process, a new one after a failure.

        Of generators each result is kept, as long as there is time.
        """
        left = list(steps)
        while left and self.seconds_left() > 0:
            with Child([bound(step) for step in left]) as child:
                good = True
                while left and good and self.seconds_left() > 0:
                    name = left.pop(0)[0]
                    good = self._take(name, self._collect, name, child)
        for name, *_ in left:
            self._skip(name, "no time is left")

    def fail(self, name: str, error: str) -> None:
        self.failed.append(name)
        self.values["errors"][name] = error
        print(f"FAILED: {name}: {error.strip().splitlines()[-1][:300]}", flush=True)

    def _take(self, name: str, work: Callable[..., None], *arguments: Any) -> bool:
        """Whether another step can follow in the same process."""
        self.values["running"] = name
        self.write()
        start, good = time.monotonic(), True
        try:
            work(*arguments)
        except Skipped as error:
            self._skip(name, str(error))
        except Failed as error:
            good = False
            self._hung += isinstance(error, Hung)
            self.fail(name, str(error))
        else:
            good = name not in self.values["cut short"]
            print(f"ok: {name}", flush=True)
        self.values["took"][name] = time.monotonic() - start
        self.values["running"] = ""
        self.write()
        return good

    def _collect(self, name: str, child: Child) -> None:
        for kind, value in child.answers(self._patience):
            if kind == "done":
                self.values.setdefault(name, value)
                return
            self.values.setdefault(name, []).append(value)
            if self.seconds_left() <= 0:
                print(f"   {name} is cut short: no time is left", flush=True)
                self.values["cut short"].append(name)
                return
            self.write()

    def _skip(self, name: str, why: str) -> None:
        self.values["skipped"].append(f"{name}: {why}")
        print(f"skipped: {name}: {why}", flush=True)

    def _patience(self) -> float:
        most = max(PATIENCE_SECONDS / 2**self._hung, LEAST_PATIENCE_SECONDS)
        return max(1, min(PATIENCE_SECONDS, most, self.seconds_left() + OVERTIME_SECONDS))
