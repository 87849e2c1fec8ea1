"""Writes trajectories, column by column, to tables."""

from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np
import tree

from gear_reverb import _insert_batch, _native, errors, pybind
from gear_reverb._arguments import integer, number
from gear_reverb._column_paths import raise_with_paths
from gear_reverb._columns import ColumnMap, compile_flatten
from gear_reverb._history import ColumnHistory, TrajectoryColumn, copier

__all__ = ["TrajectoryColumn", "TrajectoryWriter"]

_COLUMN_LEAF: set[type] = {TrajectoryColumn}


class TrajectoryWriter:
    """Appends steps, and creates items that refer to them. Not for use by several threads.

    Steps are nests; every leaf is a column. An item's trajectory is a nest, of any structure, of
    columns taken from `history`:

        with client.trajectory_writer(num_keep_alive_refs=5) as writer:
            for step in steps:
                writer.append({"observation": step.observation, "reward": step.reward})
                if writer.episode_steps >= 5:
                    writer.create_item(
                        table="replay",
                        priority=1.0,
                        trajectory={
                            "observations": writer.history["observation"][-5:],
                            "last_reward": writer.history["reward"][-1],
                        },
                    )
            writer.end_episode()

    Leaving the `with` block flushes the writer, unless a `ReverbError` leaves it.
    """

    def __init__(self, internal_writer: pybind.TrajectoryWriter) -> None:
        """Called by `Client.trajectory_writer`; takes over the core's writer."""
        self._writer = internal_writer
        self._columns = ColumnMap()
        self._log = _native.StepLog(TrajectoryColumn)
        self._width = 0  # Columns that the log and the core's writer know of.
        self._copy_of_history: Callable[[], Any] = dict
        self._has_appended = False
        self._step_is_open = False  # Whether the last append was a partial one.
        self._closed = False
        # Chunker options of columns that have not appeared yet.
        self._pending_options: MutableMapping[tuple, pybind.ChunkerOptions] = {}
        # By table: how to flatten trajectories like its last one.
        self._item_plans: dict[str, Callable[[Any], list | None]] = {}

    def __enter__(self) -> "TrajectoryWriter":
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> None:
        # Neither after an error of the writer's own nor after an interrupt is waited.
        if exc_type is None or (
            issubclass(exc_type, Exception) and not issubclass(exc_type, errors.ReverbError)
        ):
            self.flush()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):  # Missing if __init__ failed.
            self.close()

    @property
    def history(self) -> Any:
        """The episode's steps by column, in the union of all appended structures.

        Leaves have list semantics over the steps since the episode began: `[i]` is one step
        without time axis, `[a:b]` and `[[i, j]]` are several; each gives a `TrajectoryColumn`.
        All columns have the same length, so an index means the same step in each; a step without
        data in some column is None there.

        Raises:
          RuntimeError: If nothing has been appended yet.
        """
        if not self._has_appended:
            raise RuntimeError(
                "history cannot be accessed before `append` is called at least once."
            )
        return self._copy_of_history()

    @property
    def episode_steps(self) -> int:
        """Steps since the last `end_episode`; an open, partial step does not count."""
        return self._writer.episode_steps

    def configure(
        self,
        path: tuple[int | str, ...],
        *,
        num_keep_alive_refs: int,
        max_chunk_length: int | None,
    ) -> None:
        """Sets how one column is chunked; before or after the column first appears.

        Args:
          path: Path to the column in the structure of steps, as `tree.flatten_with_path` has it.
          num_keep_alive_refs: Steps of this column that items can refer to.
          max_chunk_length: Steps per chunk; None to tune it automatically.

        Raises:
          TypeError: If `path` is no tuple or list.
          ValueError: If `num_keep_alive_refs` is below 1, or `max_chunk_length` is not in
            `[1, num_keep_alive_refs]`, or the column has already been appended to the open chunk.
        """
        if not isinstance(path, (tuple, list)):
            raise TypeError(f"path must be a tuple, got {path!r}")
        num_keep_alive_refs = integer("num_keep_alive_refs", num_keep_alive_refs)
        if num_keep_alive_refs < 1:
            raise ValueError(
                f"num_keep_alive_refs ({num_keep_alive_refs}) must be a positive integer"
            )
        if max_chunk_length is not None:
            max_chunk_length = integer("max_chunk_length", max_chunk_length)
        if max_chunk_length is not None and not 1 <= max_chunk_length <= num_keep_alive_refs:
            raise ValueError(
                f"max_chunk_length ({max_chunk_length}) must be None or a positive integer <= "
                f"num_keep_alive_refs ({num_keep_alive_refs})"
            )
        if max_chunk_length is None:
            options = pybind.AutoTunedChunkerOptions(
                num_keep_alive_refs=num_keep_alive_refs, throughput_weight=1.0
            )
        else:
            options = pybind.ConstantChunkerOptions(
                num_keep_alive_refs=num_keep_alive_refs, max_chunk_length=max_chunk_length
            )
        column = self._columns.column(tuple(path))
        if column is None or column >= self._width:
            self._pending_options[tuple(path)] = options
            return
        self._writer.ConfigureChunker(column, options)
        self._log.capacity = self._writer.max_num_keep_alive_refs

    def append(self, data: Any, *, partial_step: bool = False) -> None:
        """Appends one step, or a part of one.

        Structures may differ from call to call: leaves never seen before become new columns, which
        read None in all earlier steps, and columns without a leaf read None in this step. A leaf
        that is None counts as absent.

        Args:
          data: Nest of arrays, or of anything that NumPy makes arrays of.
          partial_step: Whether later calls add more to the same step; the call that ends the step
            must not set it. Items can refer to the parts at once.

        Raises:
          TypeError: If a leaf's dtype is none that can be stored.
          ValueError: If a column is given twice within a step, a leaf's dtype or shape is not that
            of its column, or a leaf stands where a nest was, or the other way round.
        """
        row = self._columns.flatten(data)
        if len(row) != self._width or not self._has_appended:
            self._add_columns()
        if self._step_is_open:
            self._check_not_set(row)
        try:
            if partial_step:
                references = self._writer.AppendPartial(row)
            else:
                references = self._writer.Append(row)
        except (TypeError, ValueError) as error:
            raise_with_paths(error, self._columns.paths)
        if self._step_is_open:
            self._log.merge_into_last(references)
        else:
            self._log.add(references)
        self._step_is_open = partial_step

    def append_batch(self, data: Any) -> None:
        """Appends K consecutive steps in one call; history is as after K calls of `append`.

        Args:
          data: Nest of arrays `[K, ...]`: step k is the nest of the `leaf[k]`. A leaf that is None
            counts as absent from all K steps.

        Raises:
          ValueError: If leaves differ in K or are scalars, a partial step is open, or as in
            `append`; no step is appended then. (Other errors may come after some steps.)
        """
        if self._step_is_open:
            raise ValueError("append_batch cannot end a partial step: end it with append")
        if all(leaf is None for leaf in tree.flatten(data)):
            raise ValueError("data has no leaf")
        row = self._columns.flatten(data)
        stacked = [
            leaf if leaf is None or isinstance(leaf, np.ndarray) else np.asarray(leaf)
            for leaf in row
        ]
        present = [array for array in stacked if array is not None]
        _insert_batch.check_stacked(
            lambda: [p for p, array in zip(self._columns.paths, stacked) if array is not None],
            present,
            "steps",
        )
        if len(row) != self._width or not self._has_appended:
            self._add_columns()
        size, kept = len(present[0]), self._log.capacity
        before = self._writer.episode_steps
        try:
            steps = pybind.append_batch(self._writer, stacked, size, kept)
        except (TypeError, ValueError) as error:
            raise_with_paths(error, self._columns.paths)
        except BaseException:  # Out of memory, or interrupted while waiting.
            self._log.skip(self._writer.episode_steps - before)
            raise
        self._log.skip(size - len(steps))
        for references in steps:
            self._log.add(references)

    def create_item(self, table: str, priority: float, trajectory: Any) -> None:
        """Queues an item to be inserted; does not wait for that. See `flush`.

        Args:
          table: Name of the table.
          priority: The item's priority.
          trajectory: Nest of `TrajectoryColumn`s; stored flat, in the order of `tree.flatten`.

        Raises:
          TypeError: If a leaf is no `TrajectoryColumn`.
          ValueError: If the trajectory is empty, refers to steps that are no longer kept, mixes
            dtypes or shapes in a column, or does not match the table's signature.
        """
        plan = self._item_plans.get(table)
        columns = None if plan is None else plan(trajectory)
        if columns is None:
            columns = self._flatten_item(table, trajectory)
        try:
            self._writer.CreateItem(table, priority, columns)
        except TypeError:
            number("priority", priority)
            raise

    def flush(self, block_until_num_items: int = 0, timeout_ms: int | None = None) -> None:
        """Blocks until the server has inserted all items but the last few.

        Open chunks that those items refer to are finished and sent. How long it takes depends on
        the tables' rate limiters.

        Args:
          block_until_num_items: Items that may remain pending; their chunks stay open.
          timeout_ms: Longest time to block, in milliseconds; None for no limit. The items are
            inserted all the same.

        Raises:
          ValueError: If `block_until_num_items` is negative.
          DeadlineExceededError: If the time is up.
        """
        if integer("block_until_num_items", block_until_num_items) < 0:
            raise ValueError(f"block_until_num_items must be >= 0, got {block_until_num_items}")
        try:
            self._writer.Flush(block_until_num_items, -1 if timeout_ms is None else timeout_ms)
        except errors.DeadlineExceededError as error:
            raise errors.timed_out("Flush", timeout_ms) from error

    def end_episode(self, clear_buffers: bool = True, timeout_ms: int | None = None) -> None:
        """Flushes all items and begins a new episode; ends an open, partial step.

        Args:
          clear_buffers: Whether `history` is emptied; if not, items may span episodes.
          timeout_ms: Longest time to block, in milliseconds; None for no limit. The episode ends,
            and the items are inserted, all the same.

        Raises:
          DeadlineExceededError: If the time is up.
        """
        try:
            self._writer.EndEpisode(clear_buffers, timeout_ms)
        except errors.DeadlineExceededError as error:
            raise errors.timed_out("End episode", timeout_ms) from error
        finally:
            self._step_is_open = False
            if clear_buffers:
                self._log.clear()

    def close(self) -> None:
        """Ends the stream to the server; items that were not flushed may be lost."""
        self._closed = True
        self._writer.Close()

    def _add_columns(self) -> None:
        """Makes the columns that the last nest added known: to the core, the log, and history."""
        columns = self._columns
        self._has_appended = True
        for column in range(self._width, len(columns.paths)):
            options = self._pending_options.pop(columns.paths[column], None)
            if options is not None:
                self._writer.ConfigureChunker(column, options)
        self._width = len(columns.paths)
        self._log.capacity = self._writer.max_num_keep_alive_refs
        self._log.widen(self._width)
        history = tree.map_structure_with_path(
            lambda path, _: ColumnHistory(self._log, columns.column(path), path), columns.structure
        )
        # The caller may change its containers.
        self._copy_of_history = copier(history)

    def _check_not_set(self, row: list) -> None:
        last = len(self._log) - 1
        for column, value in enumerate(row):
            if value is not None and self._log.get(last, column) is not None:
                raise ValueError(
                    f"Field {self._columns.paths[column]} has already been set in the active step "
                    "by previous (partial) append call and thus must be omitted or set to None but "
                    f"got: {value}"
                )

    def _flatten_item(self, table: str, trajectory: Any) -> list:
        columns = tree.flatten(trajectory)
        for column in columns:
            if not isinstance(column, TrajectoryColumn):
                raise TypeError(
                    f"All leaves of `trajectory` must be `TrajectoryColumn` but got {trajectory}"
                )
        plan = compile_flatten(trajectory, _COLUMN_LEAF)
        if plan is not None:
            self._item_plans[table] = plan
        return columns
