"""Tables from the text configuration of the server program."""

import pytest
from google.protobuf import text_format

CONFIG = """
port: 0
tables {
  table_name: "queue" max_size: 3 max_times_sampled: 1
  sampler { fifo: true } remover { lifo: true }
  rate_limiter { samples_per_insert: 1.5 min_size_to_sample: 2 min_diff: -4 max_diff: 5 }
}
tables {
  table_name: "replay" max_size: 10
  sampler { prioritized { priority_exponent: 0.5 } } remover { heap { min_heap: true } }
  rate_limiter { samples_per_insert: 1 min_size_to_sample: 1 min_diff: -10 max_diff: 10 }
}
"""


def parse(lib, text):
    config = lib.import_module("server_executable.reverb_config_pb2").ReverbServerConfig()
    text_format.Parse(text, config)
    return config


def test_tables_are_as_configured(lib):
    from_proto = lib.import_module("server_executable.server_from_proto")
    config = parse(lib, CONFIG)
    queue, replay = (table.info for table in from_proto.tables_from_proto(config.tables))
    assert (queue.name, queue.max_size, queue.max_times_sampled) == ("queue", 3, 1)
    assert queue.sampler_options.WhichOneof("distribution") == "fifo"
    assert queue.remover_options.WhichOneof("distribution") == "lifo"
    limiter = queue.rate_limiter_info
    assert (limiter.samples_per_insert, limiter.min_size_to_sample) == (1.5, 2)
    assert (limiter.min_diff, limiter.max_diff) == (-4, 5)
    assert replay.sampler_options.prioritized.priority_exponent == 0.5
    assert replay.remover_options.heap.min_heap


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("sampler { fifo: false }", ValueError, "distribution=fifo"),
        ("", NotImplementedError, "distribution=None"),
    ],
)
def test_a_selector_has_to_be_chosen(lib, options, error, message):
    from_proto = lib.import_module("server_executable.server_from_proto")
    config = parse(lib, f'tables {{ table_name: "t" max_size: 1 {options} }}')
    with pytest.raises(error, match=message):
        from_proto.tables_from_proto(config.tables)


def test_a_server_runs_with_them(pair):
    from_proto = pair.server_lib.import_module("server_executable.server_from_proto")
    config = parse(pair.server_lib, CONFIG)
    client = pair.connect(pair.start(*from_proto.tables_from_proto(config.tables)))
    client.insert([1], {"queue": 1.0})
    client.insert([2], {"queue": 1.0})
    assert client.values("queue", 1) == [1]
