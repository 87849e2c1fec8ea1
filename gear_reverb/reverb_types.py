"""Types that several modules share."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gear_reverb import pybind
from gear_reverb.tensor_spec import TensorSpec

if TYPE_CHECKING:  # protobuf is slow to import, and most programs never look at a TableInfo.
    from gear_reverb.cc import schema_pb2

Fifo = pybind.FifoSelector
Heap = pybind.HeapSelector
Lifo = pybind.LifoSelector
Prioritized = pybind.PrioritizedSelector
Uniform = pybind.UniformSelector

SelectorType = Fifo | Heap | Lifo | Prioritized | Uniform

SpecNest = TensorSpec | Iterable["SpecNest"] | Mapping[str, "SpecNest"] | Any
"""A nest of `gear_reverb.TensorSpec`, `tf.TensorSpec` or `dm_env.specs.Array`."""


_OURS = {"kw_only": True, "compare": False, "repr": False}


@dataclasses.dataclass
class TableInfo:
    """Configuration and state of a table at one moment.

    Attributes:
      name: Name of the table.
      sampler_options: The sampler: `WhichOneof("distribution")` is one of `fifo`, `lifo`,
        `uniform`, `prioritized` (with `priority_exponent`) and `heap` (with `min_heap`).
      remover_options: The remover, likewise.
      max_size: Items that the table can hold.
      max_times_sampled: Samples after which an item is removed; no limit below 1.
      rate_limiter_info: Parameters of the rate limiter, and completed inserts and samples.
      signature: Nest of specs, or None.
      current_size: Items in the table.
      num_episodes: Episodes that items in the table refer to.
      num_deleted_episodes: Episodes that only removed items referred to, since the last reset.
      num_unique_samples: Items in the table that were sampled at least once.
      table_worker_time: Milliseconds that the table's worker has spent in each of its states.

    What follows is 0 or empty if the server is Reverb's, and does not count in comparisons:

    Attributes:
      num_bytes: Payload of the distinct chunks that items in the table refer to.
      waiting_inserts: Inserts that wait for the rate limiter.
      waiting_samples: Samples that wait for it.
      blocked_insert: The inequality that the first waiting insert fails, and by how much.
      blocked_sample: Likewise for samples.
      num_unused_samples: Samples that batch samplers drew ahead of their use and that were never
        used, since the last reset; they are among the completed samples.
      data_plane: The way that data takes between this table and the client that asked, as
        `Client.data_plane`; empty for tables that were not asked over a client.
    """

    name: str
    sampler_options: "schema_pb2.KeyDistributionOptions"
    remover_options: "schema_pb2.KeyDistributionOptions"
    max_size: int
    max_times_sampled: int
    rate_limiter_info: "schema_pb2.RateLimiterInfo"
    signature: Any
    current_size: int
    num_episodes: int
    num_deleted_episodes: int
    num_unique_samples: int
    table_worker_time: "schema_pb2.TableWorkerTime"
    num_bytes: int = dataclasses.field(default=0, **_OURS)
    waiting_inserts: int = dataclasses.field(default=0, **_OURS)
    waiting_samples: int = dataclasses.field(default=0, **_OURS)
    blocked_insert: str = dataclasses.field(default="", **_OURS)
    blocked_sample: str = dataclasses.field(default="", **_OURS)
    num_unused_samples: int = dataclasses.field(default=0, **_OURS)
    data_plane: str = dataclasses.field(default="", **_OURS)

    @classmethod
    def from_serialized_proto(cls, proto_string: bytes) -> "TableInfo":
        """Parses a serialised `schema_pb2.TableInfo`.

        Raises:
          ValueError: If the signature is no nest of specs.
        """
        from gear_reverb import _signature
        from gear_reverb.cc import schema_pb2

        proto = schema_pb2.TableInfo.FromString(proto_string)
        has_signature = proto.HasField("signature")
        return cls(
            name=proto.name,
            sampler_options=proto.sampler_options,
            remover_options=proto.remover_options,
            max_size=proto.max_size,
            max_times_sampled=proto.max_times_sampled,
            rate_limiter_info=proto.rate_limiter_info,
            signature=_signature.decode_message(proto.signature) if has_signature else None,
            current_size=proto.current_size,
            num_episodes=proto.num_episodes,
            num_deleted_episodes=proto.num_deleted_episodes,
            num_unique_samples=proto.num_unique_samples,
            table_worker_time=proto.table_worker_time,
            num_bytes=proto.num_bytes,
            waiting_inserts=proto.waiting_inserts,
            waiting_samples=proto.waiting_samples,
            blocked_insert=proto.blocked_insert,
            blocked_sample=proto.blocked_sample,
            num_unused_samples=proto.num_unused_samples,
        )
