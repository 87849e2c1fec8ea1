"""Two actors and a learner play CartPole-v1 through a replay server, each in its own process.

    python examples/cartpole/main.py [--seconds 60] [--seed 1] [--record picture.svg]

Ends by itself, after about a minute. Exit status 0 only if the mean return of the last 20 episodes
is at least 100 and three times that of the first 20; 1 if not, or if a process failed; 130 if
interrupted.
"""

import os

# One thread of linear algebra per process; matrices are small. Before NumPy is imported.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import contextlib  # noqa: E402
import dataclasses  # noqa: E402
import pathlib  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Generator  # noqa: E402

import actor  # noqa: E402
import display  # noqa: E402
import learner  # noqa: E402
import server  # noqa: E402
from config import Config  # noqa: E402
from progress import RunProgress  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.live import Live  # noqa: E402
from workers import Worker, WorkerFailed  # noqa: E402

import gear_reverb as reverb  # noqa: E402

_START_SECONDS = 60.0  # For processes to import, connect and insert.
_STOP_SECONDS = 10.0


class Fleet:
    """All processes of the run. Use as a context: none outlives it."""

    def __init__(self, config: Config):
        self._config = config
        self.workers: list[Worker] = []

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_) -> None:
        for worker in reversed(self.workers):
            worker.end()

    def start(self) -> str:
        """Starts everything; the server's address."""
        self._server = self._add("server", server.serve, self._config)
        address = f"localhost:{_first(self._server, server.Serving).port}"
        self._learner = self._add("learner", learner.learn, self._config, address)
        self._actors = [
            self._add(f"actor {index}", actor.act, self._config, index, address)
            for index in range(self._config.num_actors)
        ]
        return address

    def stop(self) -> list[str]:
        """Stops all; what went wrong in that.

        The learner first: its streams end with their next sample, for which actors must be at
        work. Actors need no learner to stop.
        """
        faults = []
        for workers in ([self._learner], self._actors, [self._server]):
            for worker in workers:
                worker.tell_to_stop()
            faults += [worker.join(_STOP_SECONDS) for worker in workers]
        return [fault for fault in faults if fault]

    def _add(self, name, work, *args) -> Worker:
        self.workers.append(Worker(name, work, *args))
        return self.workers[-1]


def _first(worker: Worker, kind: type):
    """The first message of a kind; those before it are dropped."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for message in worker.messages(wait_seconds=0.5):
            if isinstance(message, kind):
                return message
    raise WorkerFailed(f"{worker.name} did not answer in {_START_SECONDS:.0f} s")


def _watch(
    fleet: Fleet, client: reverb.Client, progress: RunProgress
) -> Generator[None, None, str]:
    """Follows the run, once per yield, to its end."""
    deadline, next_info = time.monotonic() + _START_SECONDS, 0.0
    while (reason := progress.finished()) is None:
        for worker in fleet.workers:
            for message in worker.messages():
                match message:
                    case actor.Episode(index, total_return, epsilon):
                        progress.add_episode(index, total_return, epsilon)
                    case learner.Progress(updates, mean_error, mean_value):
                        progress.updates = updates
                        progress.mean_error, progress.mean_value = mean_error, mean_value
        if time.monotonic() >= next_info:
            next_info = time.monotonic() + 0.5
            _read_tables(fleet, client, progress)
        if progress.started is None and time.monotonic() > deadline:
            raise WorkerFailed(f"nothing was inserted in {_START_SECONDS:.0f} s")
        yield
    progress.ended = time.monotonic()
    return reason


def _read_tables(fleet: Fleet, client: reverb.Client, progress: RunProgress) -> None:
    try:
        tables = client.server_info(timeout=10)
    except Exception:
        time.sleep(1.0)
        for worker in fleet.workers:
            worker.messages()  # Says so if a dead server is the cause.
        raise
    for name, info in tables.items():
        progress.tables[name].add(info)
    if progress.started is None and progress.tables["replay"].newest.inserts > 0:
        progress.started = time.monotonic()


def _show(steps: Generator[None, None, str], progress: RunProgress, console: Console) -> str:
    """Draws until the run ends; why it ended."""
    with contextlib.ExitStack() as stack:
        live = None
        if console.is_terminal:
            live = stack.enter_context(
                Live(display.dashboard(progress), console=console, auto_refresh=False)
            )
        period, next_draw = (0.25, 0.0) if live else (5.0, time.monotonic() + 5.0)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                if live:
                    live.update(display.dashboard(progress), refresh=True)
                else:
                    console.print(display.line(progress), highlight=False, markup=False)
                return end.value
            if time.monotonic() >= next_draw:
                next_draw = time.monotonic() + period
                if live:
                    live.update(display.dashboard(progress), refresh=True)
                elif progress.started is not None:
                    console.print(display.line(progress), highlight=False, markup=False)
            time.sleep(0.05)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=Config.seconds, help="time budget")
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--record", metavar="SVG", help="save the last picture of the run")
    arguments = parser.parse_args()
    if not arguments.seconds > 0 or arguments.seed < 0:
        parser.error("--seconds must be positive and --seed not negative")
    return arguments


def main() -> int:
    arguments = _parse()
    config = dataclasses.replace(Config(), seconds=arguments.seconds, seed=arguments.seed)
    # A log's lines are not folded.
    console = Console(soft_wrap=not sys.stdout.isatty())
    progress = RunProgress(config)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Fleet(config) as fleet:
            console.print("Starting a replay server, a learner and two actors ...")
            client = reverb.Client(fleet.start())
            reason = _show(_watch(fleet, client, progress), progress, console)
            for fault in fleet.stop():
                console.print(f"Warning: {fault}", style="yellow", highlight=False)
    except WorkerFailed as failure:
        console.print(f"FAIL  {failure}", style="bold red", highlight=False, markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; all processes are stopped.")
        return 130
    console.print(display.summary(progress, reason))
    if arguments.record:
        pathlib.Path(arguments.record).parent.mkdir(parents=True, exist_ok=True)
        display.save_picture(progress, reason, arguments.record)
    return 0 if progress.verdict().passed else 1


if __name__ == "__main__":
    sys.exit(main())
