"""Tables from their description in a configuration."""

from collections.abc import Sequence

from gear_reverb import _signature, item_selectors, rate_limiters, reverb_types
from gear_reverb.cc import schema_pb2
from gear_reverb.cc.checkpointing import checkpoint_pb2
from gear_reverb.server import Table

_SIMPLE_SELECTORS = {
    "fifo": item_selectors.Fifo,
    "lifo": item_selectors.Lifo,
    "uniform": item_selectors.Uniform,
}


def selector_from_proto(s: schema_pb2.KeyDistributionOptions) -> reverb_types.SelectorType:
    """The selector that the options describe.

    Raises:
      ValueError: If a selector without parameters is set to false.
      NotImplementedError: If no selector is set.
    """
    kind = s.WhichOneof("distribution")
    if kind in _SIMPLE_SELECTORS:
        if not getattr(s, kind):
            raise ValueError(f"distribution={kind} but the associated boolean value is false.")
        return _SIMPLE_SELECTORS[kind]()
    if kind == "heap":
        return item_selectors.MinHeap() if s.heap.min_heap else item_selectors.MaxHeap()
    if kind == "prioritized":
        return item_selectors.Prioritized(s.prioritized.priority_exponent)
    raise NotImplementedError(f"distribution={kind}")


def rate_limiter_from_proto(
    proto: checkpoint_pb2.RateLimiterCheckpoint,
) -> rate_limiters.RateLimiter:
    """The rate limiter with these parameters; counts are not part of it."""
    return rate_limiters.RateLimiter(
        samples_per_insert=proto.samples_per_insert,
        min_size_to_sample=proto.min_size_to_sample,
        min_diff=proto.min_diff,
        max_diff=proto.max_diff,
    )


def tables_from_proto(
    configs: Sequence[checkpoint_pb2.PriorityTableCheckpoint],
) -> Sequence[Table]:
    """New, empty tables, with signatures where the configuration has them.

    Raises:
      ValueError, NotImplementedError: If a table's configuration is incomplete or wrong; the
        message names the table.
    """
    return [_table(config) for config in configs]


def _table(config: checkpoint_pb2.PriorityTableCheckpoint) -> Table:
    try:
        signature = None
        if config.HasField("signature"):
            signature = _signature.decode_message(config.signature, use_tensorflow=False)
        return Table(
            name=config.table_name,
            sampler=selector_from_proto(config.sampler),
            remover=selector_from_proto(config.remover),
            max_size=config.max_size,
            rate_limiter=rate_limiter_from_proto(config.rate_limiter),
            max_times_sampled=config.max_times_sampled,
            signature=signature,
        )
    except (NotImplementedError, ValueError) as error:
        raise type(error)(f"Table '{config.table_name}': {error}") from error
