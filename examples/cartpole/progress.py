"""What is known of a run: episodes, the learner's state, the tables' counters, the verdict."""

import collections
import dataclasses
import statistics
import time

from config import Config

import gear_reverb as reverb


@dataclasses.dataclass(frozen=True)
class Counters:
    """A table at one moment."""

    time: float
    inserts: int
    samples: int
    size: int
    max_size: int


class TableProgress:
    """One table's counters and their rates over the last seconds."""

    def __init__(self, horizon: int = 8):
        self._history: collections.deque[Counters] = collections.deque(maxlen=horizon)

    def add(self, info: reverb.reverb_types.TableInfo) -> None:
        limiter = info.rate_limiter_info
        self._history.append(
            Counters(
                time.monotonic(),
                limiter.insert_stats.completed,
                limiter.sample_stats.completed,
                info.current_size,
                info.max_size,
            )
        )

    @property
    def newest(self) -> Counters:
        return self._history[-1] if self._history else Counters(0.0, 0, 0, 0, 0)

    def rates(self) -> tuple[float, float]:
        """Inserts and samples per second."""
        if len(self._history) < 2:
            return 0.0, 0.0
        old, new = self._history[0], self._history[-1]
        seconds = max(new.time - old.time, 1e-9)
        return (new.inserts - old.inserts) / seconds, (new.samples - old.samples) / seconds


@dataclasses.dataclass
class ActorProgress:
    episodes: int = 0
    steps: int = 0
    last_return: float = 0.0
    epsilon: float = 1.0


@dataclasses.dataclass(frozen=True)
class Verdict:
    first: float  # Mean return of the first `window` episodes.
    last: float
    required: float

    @property
    def passed(self) -> bool:
        return self.last >= self.required


class RunProgress:
    """Everything that the display shows."""

    def __init__(self, config: Config):
        self.config = config
        self.started: float | None = None
        self.ended: float | None = None
        self.returns: list[float] = []
        self.actors = [ActorProgress() for _ in range(config.num_actors)]
        self.updates = 0
        self.mean_error = self.mean_value = 0.0
        self.tables: dict[str, TableProgress] = collections.defaultdict(TableProgress)

    def add_episode(self, actor: int, total_return: float, epsilon: float) -> None:
        self.returns.append(total_return)
        progress = self.actors[actor]
        progress.episodes += 1
        progress.steps += int(total_return)
        progress.last_return, progress.epsilon = total_return, epsilon

    @property
    def seconds(self) -> float:
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started

    @property
    def steps(self) -> int:
        return sum(actor.steps for actor in self.actors)

    def samples_per_insert(self) -> float:
        """Samples per insert since there were enough items to sample, as the limiter counts."""
        replay = self.tables["replay"].newest
        inserts = replay.inserts - self.config.min_replay_size
        return replay.samples / inserts if inserts > 0 and replay.samples else 0.0

    def recent_return(self) -> float:
        return statistics.fmean(self.returns[-self.config.window :] or [0.0])

    def verdict(self) -> Verdict:
        first = statistics.fmean(self.returns[: self.config.window] or [0.0])
        required = max(self.config.required_return, self.config.required_growth * first)
        # Windows must not overlap: too short a run proves nothing.
        enough = len(self.returns) >= 2 * self.config.window
        return Verdict(first, self.recent_return(), required if enough else float("inf"))

    def finished(self) -> str | None:
        """Why the run is over, or None."""
        enough = len(self.returns) >= 2 * self.config.window
        if enough and self.recent_return() >= self.config.solved_return:
            return "solved"
        if self.steps >= self.config.max_steps:
            return "all steps taken"
        if self.seconds >= self.config.seconds:
            return "time is up"
        return None
