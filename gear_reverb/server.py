"""Tables and the server that hosts them."""

from __future__ import annotations

import abc
import collections
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from gear_reverb import client, item_selectors, pybind, rate_limiters, reverb_types
from gear_reverb._arguments import integer
from gear_reverb.platform.default import checkpointers


class TableExtensionBase(metaclass=abc.ABCMeta):
    """Something that observes a table's changes from within the core."""

    @abc.abstractmethod
    def build_internal_extensions(self, table_name: str) -> Sequence[pybind.TableExtension]:
        """The core's extensions for the table of this name."""


class Table:
    """A collection of items with one strategy to sample, one to evict, and a rate limiter.

    Items refer to steps and do not own them: items of several tables may share steps, which stay
    in memory until the last item that refers to them is gone. So prefer tables that share data
    over copies of it, and mind that tables whose removers differ share less.

    Attributes:
      internal_table: The core's object.
    """

    def __init__(
        self,
        name: str,
        sampler: reverb_types.SelectorType,
        remover: reverb_types.SelectorType,
        max_size: int,
        rate_limiter: rate_limiters.RateLimiter,
        max_times_sampled: int = 0,
        extensions: Sequence[TableExtensionBase] = (),
        signature: reverb_types.SpecNest | None = None,
        *,
        seed: int | None = None,
        placement: Literal["host", "device"] = "host",
        device_bytes: int | None = None,
    ) -> None:
        """An empty table.

        Args:
          name: Unique on its server.
          sampler: Selects the items to sample.
          remover: Selects the item to evict when an item is inserted into a full table.
          max_size: Items that the table can hold.
          rate_limiter: Says when inserting and sampling have to wait.
          max_times_sampled: Samples after which an item is removed; no limit below 1.
          extensions: Observers of the table.
          signature: Nest of specs that items must match; a column's shape includes its time axis.
            None, or an empty nest, for any items.
          seed: Makes selection reproducible; by default it differs from run to run.
          placement: With "device", a device that a batch sampler of this process gathers on keeps
            copies of the table's columns in its own memory, from the first such sampler on and for
            as long as the table lives. Batches are the same, gathered from there. Text stays with
            the host, and so does what there is no room for.
          device_bytes: Memory that each such device may use for it; half of what is free by
            default.

        Raises:
          ValueError: If the name is empty, `max_size` or `device_bytes` is below 1, there are
            `device_bytes` without a placement there, or a spec is unsupported.
        """
        if not name:
            raise ValueError("name must be nonempty")
        max_size = integer("max_size", max_size)
        if max_size < 1:
            raise ValueError(f"max_size ({max_size}) must be a positive integer")
        if placement not in ("host", "device"):
            raise ValueError(f"placement must be 'host' or 'device', but is {placement!r}")
        if device_bytes is not None and (placement == "host" or device_bytes < 1):
            raise ValueError(
                f"device_bytes ({device_bytes}) must be >= 1, for placement 'device' alone"
            )
        self._sampler = sampler
        self._remover = remover
        self._rate_limiter = rate_limiter
        self._extensions = tuple(extensions)
        self._signature = signature
        self._max_size = max_size
        self._max_times_sampled = max_times_sampled
        self._seed = seed
        self._placement = placement
        self._device_bytes = device_bytes
        internal_extensions = [
            internal
            for extension in self._extensions
            for internal in _part("extensions", extension, "build_internal_extensions")(name)
        ]
        self.internal_table = pybind.Table(
            name=name,
            sampler=sampler,
            remover=remover,
            max_size=max_size,
            max_times_sampled=max_times_sampled,
            rate_limiter=_part("rate_limiter", rate_limiter, "internal_limiter"),
            extensions=internal_extensions,
            signature=_encode_signature(signature),
            seed=seed,
            on_device=placement == "device",
            device_bytes=device_bytes or 0,
        )

    @classmethod
    def queue(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: reverb_types.SpecNest | None = None,
    ) -> Table:
        """A first-in, first-out queue: every item is sampled once, inserting waits when full."""
        selector, limiter = item_selectors.Fifo, rate_limiters.Queue
        return cls._once_each(name, selector, limiter, max_size, extensions, signature)

    @classmethod
    def stack(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: reverb_types.SpecNest | None = None,
    ) -> Table:
        """A last-in, first-out stack: every item is sampled once, inserting waits when full."""
        selector, limiter = item_selectors.Lifo, rate_limiters.Stack
        return cls._once_each(name, selector, limiter, max_size, extensions, signature)

    @classmethod
    def _once_each(cls, name, selector, limiter, max_size, extensions, signature) -> Table:
        return cls(
            name=name,
            sampler=selector(),
            remover=selector(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=limiter(max_size),
            extensions=extensions,
            signature=signature,
        )

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.internal_table.name()

    @property
    def info(self) -> reverb_types.TableInfo:
        """Configuration and state of the table now."""
        return reverb_types.TableInfo.from_serialized_proto(self.internal_table.info())

    @property
    def extensions(self) -> Sequence[TableExtensionBase]:
        """The extensions the table was made with."""
        return self._extensions

    @property
    def signature(self) -> reverb_types.SpecNest | None:
        """The signature the table was made with."""
        return self._signature

    def can_sample(self, num_samples: int) -> bool:
        """Whether the rate limiter lets `num_samples` items be sampled now."""
        return self.internal_table.can_sample(num_samples)

    def can_insert(self, num_inserts: int) -> bool:
        """Whether the rate limiter lets `num_inserts` items be inserted now."""
        return self.internal_table.can_insert(num_inserts)

    def replace(
        self,
        name: str | None = None,
        sampler: reverb_types.SelectorType | None = None,
        remover: reverb_types.SelectorType | None = None,
        max_size: int | None = None,
        rate_limiter: rate_limiters.RateLimiter | None = None,
        max_times_sampled: int | None = None,
        extensions: Sequence[TableExtensionBase] | None = None,
        signature: reverb_types.SpecNest | None = None,
    ) -> Table:
        """A new, empty table with this one's arguments where none are given here."""

        def pick(given: Any, own: Any) -> Any:
            return own if given is None else given

        return Table(
            name=pick(name, self.name),
            sampler=pick(sampler, self._sampler),
            remover=pick(remover, self._remover),
            max_size=pick(max_size, self._max_size),
            rate_limiter=pick(rate_limiter, self._rate_limiter),
            max_times_sampled=pick(max_times_sampled, self._max_times_sampled),
            extensions=pick(extensions, self._extensions),
            signature=pick(signature, self._signature),
            seed=self._seed,
            placement=self._placement,
            device_bytes=self._device_bytes,
        )

    def __repr__(self) -> str:
        return (
            f"Table(sampler={self._sampler}, remover={self._remover}, max_size={self._max_size}, "
            f"max_times_sampled={self._max_times_sampled}, name={self.name}, "
            f"rate_limiter={self._rate_limiter}, signature={self._signature})"
        )


class Server:
    """Hosts tables and serves `deepmind.reverb.ReverbService` over gRPC.

    A server runs in threads of the core. It stops when `stop` is called, or with the object; in a
    process that was forked from the server's, neither does anything.
    """

    def __init__(
        self,
        tables: Sequence[Table] | None = None,
        port: int | None = None,
        checkpointer: checkpointers.CheckpointerBase | None = None,
    ) -> None:
        """Starts serving; restores the checkpointer's newest checkpoint first, if there is one.

        Args:
          tables: The tables to host, at least one.
          port: Port to listen on; None for any free one.
          checkpointer: Where checkpoints are stored; by default a new temporary directory.

        Raises:
          ValueError: If there is no table, or two have the same name.
          ReverbError: If the port cannot be listened on, or the checkpoint cannot be restored.
        """
        if not tables:
            raise ValueError("At least one table must be provided")
        internal_tables = [_part("tables", table, "internal_table") for table in tables]
        names = collections.Counter(table.name for table in tables)
        duplicates = sorted(name for name, count in names.items() if count > 1)
        if duplicates:
            raise ValueError(
                f"Multiple items in tables have the same name: {', '.join(duplicates)}"
            )
        if checkpointer is None:
            checkpointer = checkpointers.default_checkpointer()
        self._tables = tuple(tables)
        self._server = pybind.Server(
            internal_tables,
            0 if port is None else port,
            _part("checkpointer", checkpointer, "internal_checkpointer")(),
        )

    @property
    def port(self) -> int:
        """The port that the server listens, or listened, on."""
        return self._server.port

    def stop(self) -> None:
        """Stops serving and returns when that is done; blocked calls of clients end in errors."""
        self._server.Stop()

    def wait(self) -> None:
        """Blocks until the server stops. SIGTERM and SIGINT (Ctrl-C) stop it.

        SIGTERM is heeded in the main thread of a program that has no handler of its own for it.

        Raises:
          KeyboardInterrupt: After SIGINT; the server has stopped.
        """
        try:
            with _sigterm_calls(self._server.Stop):
                self._server.Wait()
        except KeyboardInterrupt:
            self._server.Stop()
            raise

    def localhost_client(self) -> client.Client:
        """A client of this server."""
        return client.Client(f"localhost:{self.port}")

    def in_process_client(self) -> client.Client:
        """Same as `localhost_client`, whose calls stay within the process."""
        return self.localhost_client()

    def __del__(self) -> None:
        server = getattr(self, "_server", None)  # Missing if __init__ failed.
        if server is not None:
            server.Stop()

    def __repr__(self) -> str:
        return f"Server(port={self.port}, tables={list(self._tables)})"


@contextlib.contextmanager
def _sigterm_calls(stop: Callable[[], None]) -> Iterator[None]:
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _part(name: str, value: Any, attribute: str) -> Any:
    """An attribute of an argument; TypeError if there is none, and so it is another thing."""
    try:
        return getattr(value, attribute)
    except AttributeError:
        raise TypeError(f"{name} must have {attribute}, but is {value!r}") from None


def _encode_signature(signature: reverb_types.SpecNest | None) -> bytes | None:
    if signature is None or (isinstance(signature, (dict, list, tuple)) and not signature):
        return None
    from gear_reverb import _signature  # Brings protobuf with it, which is slow to import.

    return _signature.encode(signature)
