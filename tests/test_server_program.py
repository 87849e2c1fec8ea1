"""The program `reverb_server`."""

import re
import signal
import subprocess
import sys

import pytest

import gear_reverb

CONFIG = """
tables {
  table_name: "queue" max_size: 3 max_times_sampled: 1
  sampler { fifo: true } remover { fifo: true }
  rate_limiter { samples_per_insert: 1 min_size_to_sample: 1 min_diff: 0 max_diff: 3 }
}
"""


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "gear_reverb.server_executable.server_main", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def server():
    process = start(f"--config={CONFIG}", "--port=0")
    line = process.stderr.readline()
    port = int(re.search(r"Serving 1 tables at port (\d+): queue", line)[1])
    yield process, gear_reverb.Client(f"localhost:{port}")
    process.kill()
    process.communicate()


def test_it_serves_the_tables_of_its_configuration(server):
    _, client = server
    client.insert([3], {"queue": 1.0})
    info = client.server_info()["queue"]
    assert (info.max_size, info.current_size) == (3, 1)
    [sample] = client.sample("queue", 1, emit_timesteps=False)
    assert sample.data[0].tolist() == [3]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(server, number):
    process, client = server
    client.server_info()
    process.send_signal(number)
    assert process.wait(20) == 0
    assert "Stopped." in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--config"),
        (("--config=bogus: 3",), 'has no field named "bogus"'),
        (("--config=",), "At least one table must be provided"),
        (('--config=tables { table_name: "t" max_size: 1 }',), "Table 't': distribution=None"),
        ((f"--config={CONFIG.replace('max_size: 3', 'max_size: 0')}",), "Table 'queue': max_size"),
        ((f"--config={CONFIG}", "--port=x"), "--port"),
    ],
)
def test_what_it_refuses(arguments, message):
    process = start(*arguments)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0 and message in errors
    assert "Traceback" not in errors


def test_signatures_are_part_of_the_configuration():
    from gear_reverb import _signature
    from gear_reverb.cc import struct_pb2
    from gear_reverb.server_executable import reverb_config_pb2, server_from_proto

    spec = gear_reverb.TensorSpec([None, 2], "float32")
    config = reverb_config_pb2.ReverbServerConfig(
        tables=[
            {
                "table_name": "t",
                "max_size": 1,
                "sampler": {"uniform": True},
                "remover": {"fifo": True},
                "rate_limiter": {"samples_per_insert": 1, "min_size_to_sample": 1},
                "signature": struct_pb2.StructuredValue.FromString(_signature.encode({"a": spec})),
            }
        ]
    )
    [table] = server_from_proto.tables_from_proto(config.tables)
    assert table.signature == {"a": spec}
