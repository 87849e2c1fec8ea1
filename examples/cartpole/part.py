"""One part of the CartPole example, for parts on machines or in containers of their own.

    python examples/cartpole/part.py server --port 8000
    python examples/cartpole/part.py learner --server HOST:8000
    python examples/cartpole/part.py actor --index 0 --server HOST:8000

Runs until SIGTERM or Ctrl-C, or for `--seconds`. The whole example in one command is main.py.
"""

import os

# One thread of linear algebra per process; matrices are small. Before NumPy is imported.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import collections  # noqa: E402
import dataclasses  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import actor  # noqa: E402
import learner  # noqa: E402
import server  # noqa: E402
from config import Config  # noqa: E402


class Console:
    """Stands in for a worker's `Link`: prints what is reported, stops at signals or in time."""

    def __init__(self, name: str, seconds: float | None, period_seconds: float = 2.0):
        self._name, self._period = name, period_seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._stop = threading.Event()
        self._printed = 0.0
        self._returns: collections.deque[float] = collections.deque(maxlen=20)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def report(self, message: Any) -> None:
        """Prints the message, or what came of many, every few seconds at most."""
        if isinstance(message, actor.Episode):
            self._returns.append(message.total_return)
        if time.monotonic() - self._printed < self._period:
            return
        self._printed = time.monotonic()
        match message:
            case actor.Episode(epsilon=epsilon):
                mean = sum(self._returns) / len(self._returns)
                text = f"mean return of {len(self._returns)} episodes {mean:.1f}, ε {epsilon:.2f}"
            case learner.Progress(updates, mean_error, _):
                text = f"{updates} updates, mean error {mean_error:.3f}"
            case server.Serving(port):
                text = f"serving on port {port}"
            case _:
                text = str(message)
        print(f"{self._name}: {text}", flush=True)

    def stop_requested(self, wait_seconds: float | None = 0.0) -> bool:
        """Whether to end; waits for it up to `wait_seconds`, without limit if None."""
        if self._deadline is not None:
            left = max(self._deadline - time.monotonic(), 0.0)
            if left == 0.0:
                return True
            if wait_seconds is None:
                return self._stop.wait(left) or True
            wait_seconds = min(wait_seconds, left)
        return self._stop.wait(wait_seconds)

    def _on_signal(self, *_) -> None:
        if self._stop.is_set():  # Once more: it hangs on a peer that does not answer.
            os._exit(1)
        self._stop.set()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["server", "learner", "actor"])
    parser.add_argument("--port", type=int, default=8000, help="of the server")
    parser.add_argument("--server", metavar="HOST:PORT", default="localhost:8000")
    parser.add_argument("--index", type=int, default=0, help="of the actor")
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--seconds", type=float, help="no limit by default")
    arguments = parser.parse_args()
    if not 0 <= arguments.index < Config.num_actors:
        parser.error(f"--index must be 0 to {Config.num_actors - 1}")
    return arguments


def main() -> int:
    arguments = _parse()
    config = dataclasses.replace(Config(), seed=arguments.seed)
    name = arguments.part + (f" {arguments.index}" if arguments.part == "actor" else "")
    console = Console(name, arguments.seconds)
    if arguments.part == "server":
        server.serve(console, config, arguments.port)
    elif arguments.part == "learner":
        learner.learn(console, config, arguments.server)
    else:
        actor.act(console, config, arguments.index, arguments.server)
    print(f"{name}: stopped", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
