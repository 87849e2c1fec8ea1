"""The server in its image, driven by a client outside of it."""

import pathlib
import threading
import time

import numpy as np
import pytest

import gear_reverb

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"

QUEUE = """
port: %d
tables {
  table_name: "queue" max_size: 10 max_times_sampled: 1
  sampler { fifo: true } remover { fifo: true }
  rate_limiter { samples_per_insert: 1 min_size_to_sample: 1 min_diff: 0 max_diff: 10 }
}"""


def connect(port, seconds=60):
    """A client of the server at `port`, once it serves."""
    deadline = time.monotonic() + seconds
    while True:
        client = gear_reverb.Client(f"localhost:{port}")
        try:
            client.server_info(timeout=1)
            return client
        except gear_reverb.DeadlineExceededError:
            if time.monotonic() > deadline:
                raise


@pytest.fixture
def server(image, start, port):
    command = [*image.config["Entrypoint"], f"--config={QUEUE % port}"]
    return start(*command, env={"GEAR_REVERB_PORT": port})


def test_a_client_outside_is_served(server, port):
    client = connect(port)
    sent = [np.arange(12, dtype=np.uint8).reshape(3, 4), np.float32(0.5), "text"]
    client.insert(sent, {"queue": 2.0})
    [sample] = client.sample("queue", 1, emit_timesteps=False)
    np.testing.assert_array_equal(sample.data[0][0], sent[0])
    assert (sample.data[1].item(), sample.data[2].item()) == (0.5, b"text")
    assert sample.info.priority == 2.0
    assert client.server_info()["queue"].max_size == 10


def test_it_does_not_run_as_root(image, server, port):
    connect(port)
    assert image.config["User"] == "reverb"
    assert server.uid() == 10001


def test_sigterm_ends_it_cleanly(server, port):
    client = connect(port)
    errors = []

    def wait_for_a_sample():
        try:
            list(client.sample("queue", 1))
        except gear_reverb.ReverbError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait_for_a_sample, daemon=True)
    waiting.start()
    while client.server_info()["queue"].current_size or not waiting.is_alive():
        time.sleep(0.01)
    server.terminate()
    status, output = server.wait()
    assert status == 0, output
    assert "Traceback" not in output
    waiting.join(90)
    assert errors, "The call in progress did not end."


def test_the_health_check_tells_serving_from_not(image, start, server, port):
    command = image.config["Healthcheck"]["Test"]
    assert command[0] == "CMD"

    def check():
        status, output = start(*command[1:], env={"GEAR_REVERB_PORT": port}).wait()
        return status, output

    connect(port)
    assert check()[0] == 0, check()
    server.terminate()
    server.wait()
    assert check()[0] != 0


def test_a_wrong_configuration_is_explained(image, start):
    status, output = start(*image.config["Entrypoint"], "--config=tables { max_size: }").wait()
    assert status != 0
    assert "max_size" in output or "config" in output.lower()


def test_build_tools_stay_outside(start):
    status, output = start("sh", "-c", "command -v g++ cmake ninja; ls /source; true").wait()
    assert "bin/" not in output, output
    assert status == 0


def test_kernels_are_built_where_they_were_asked_for(start):
    asked = "from gear_reverb import cuda; print(cuda.is_built(), cuda.why_not())"
    status, output = start("python3", "-c", asked).wait()
    assert status == 0, output
    assert output.startswith("True There is no CUDA driver"), output


def test_the_parts_of_the_example_learn_together(start, port):
    part = ["python3", "/examples/cartpole/part.py"]
    volumes = [f"{EXAMPLES}:/examples:ro"]
    server = start(*part, "server", "--port", str(port), volumes=volumes)
    client = connect(port)
    address = ["--server", f"localhost:{port}"]
    workers = [
        start(*part, name, *more, *address, volumes=volumes)
        for name, more in [
            ("learner", ["--seconds", "20"]),
            ("actor", ["--index", "0"]),
            ("actor", ["--index", "1"]),
        ]
    ]
    status, output = workers[0].wait(120)
    assert status == 0, output
    assert "learner: stopped" in output
    replay = client.server_info()["replay"].rate_limiter_info
    assert replay.insert_stats.completed >= 1000
    assert replay.sample_stats.completed >= 64
    for program in [*workers[1:], server]:
        program.terminate()
        status, output = program.wait()
        assert status == 0, output
