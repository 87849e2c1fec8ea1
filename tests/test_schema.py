"""The protobuf messages: Reverb's fields under our names."""

import pickle

import pytest

from gear_reverb.cc import _proto, schema_pb2, struct_pb2
from gear_reverb.reverb_types import TableInfo

# Field numbers as they travel; names are what programs read.
FIELDS = {
    "ChunkData": {
        "chunk_key": 1,
        "sequence_range": 2,
        "deprecated_data": 3,
        "delta_encoded": 4,
        "data": 5,
        "data_tensors_len": 6,
        "data_uncompressed_size": 7,
    },
    "PrioritizedItem": {
        "key": 1,
        "table": 2,
        "deprecated_chunk_keys": 3,
        "deprecated_sequence_range": 4,
        "priority": 5,
        "times_sampled": 6,
        "inserted_at": 7,
        "flat_trajectory": 8,
    },
    "KeyDistributionOptions": {
        "fifo": 1,
        "uniform": 2,
        "prioritized": 3,
        "heap": 4,
        "lifo": 6,
        "is_deterministic": 7,
    },
    "RateLimiterInfo": {
        "samples_per_insert": 1,
        "min_diff": 2,
        "max_diff": 3,
        "min_size_to_sample": 4,
        "insert_stats": 5,
        "sample_stats": 6,
    },
    "RateLimiterCallStats": {"completed": 2},
    "TableInfo": {
        "sampler_options": 1,
        "remover_options": 2,
        "max_size": 3,
        "max_times_sampled": 4,
        "rate_limiter_info": 5,
        "signature": 6,
        "current_size": 7,
        "name": 8,
        "num_episodes": 9,
        "num_deleted_episodes": 10,
        "num_unique_samples": 11,
        "table_worker_time": 12,
    },
    "TableWorkerTime": {
        "running_ms": 1,
        "sampling_ms": 2,
        "inserting_ms": 3,
        "sleeping_ms": 4,
        "waiting_for_sampling_ms": 5,
        "waiting_for_inserts_ms": 6,
    },
    "SampleInfo": {"item": 1, "probability": 2, "table_size": 3, "rate_limited": 4},
    "SequenceRange": {"episode_id": 1, "start": 2, "end": 3, "sparse": 4},
    "Uint128": {"high": 1, "low": 2},
}


@pytest.mark.parametrize("message", FIELDS)
def test_fields(message):
    fields = getattr(schema_pb2, message).DESCRIPTOR.fields
    # Numbers above 1000 are our own additions, which Reverb skips.
    reverbs = {field.name: field.number for field in fields if field.number <= 1000}
    assert reverbs == FIELDS[message]


def test_names_collide_with_nobody():
    for module in (schema_pb2, struct_pb2):
        assert module.DESCRIPTOR.name.startswith("gear_reverb/")
        assert module.DESCRIPTOR.package.startswith("gear_reverb.")


def test_one_distribution_at_a_time():
    options = schema_pb2.KeyDistributionOptions(fifo=True)
    assert options.WhichOneof("distribution") == "fifo"
    options.heap.min_heap = True
    assert options.WhichOneof("distribution") == "heap"
    options.prioritized.priority_exponent = 0.5
    assert not options.heap.min_heap


def test_messages_can_be_pickled():
    info = schema_pb2.TableInfo(name="t", max_size=3)
    info.signature.dict_value.fields["a"].tensor_spec_value.dtype = 3
    assert pickle.loads(pickle.dumps(info)) == info


def test_table_info_has_all_fields():
    proto = schema_pb2.TableInfo(
        name="t",
        max_size=7,
        max_times_sampled=3,
        current_size=2,
        num_episodes=4,
        num_deleted_episodes=5,
        num_unique_samples=6,
    )
    proto.sampler_options.prioritized.priority_exponent = 0.5
    proto.remover_options.heap.min_heap = True
    proto.remover_options.is_deterministic = True
    proto.rate_limiter_info.samples_per_insert = 1.5
    proto.table_worker_time.running_ms = 8
    info = TableInfo.from_serialized_proto(proto.SerializeToString())
    assert info == TableInfo(
        name="t",
        sampler_options=proto.sampler_options,
        remover_options=proto.remover_options,
        max_size=7,
        max_times_sampled=3,
        rate_limiter_info=proto.rate_limiter_info,
        signature=None,
        current_size=2,
        num_episodes=4,
        num_deleted_episodes=5,
        num_unique_samples=6,
        table_worker_time=proto.table_worker_time,
    )


@pytest.mark.parametrize(
    "source",
    ["service X {}", "message X { int32 a 1; }", "message X { map<int32, int32> a = 1; }"],
)
def test_the_rest_of_proto3_is_not_understood(source):
    with pytest.raises(SyntaxError):
        _proto.define({"__name__": "x"}, "gear_reverb/test.proto", "gear_reverb.test", source)


def test_enums_and_comments_are_understood():
    module = {"__name__": __name__}
    source = """
        enum Color { RED = 0; BLUE = 2; }  // A comment.
        message Car { Color color = 1; map<string, Color> others = 2; }
    """
    _proto.define(module, "gear_reverb/test_enum.proto", "gear_reverb.test_enum", source)
    car = module["Car"](color=2, others={"x": 2})
    assert module["Car"].FromString(car.SerializeToString()) == car
    assert module["BLUE"] == 2
