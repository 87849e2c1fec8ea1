"""What is closed while another thread uses it."""

import subprocess
import sys
import threading

import pytest
from processes import wait_until

import gear_reverb


def test_closing_a_sampler_ends_a_call_of_another_thread(client):
    sampler = client._client.NewSampler("q", -1, 1, -1)
    errors = []

    def sample():
        try:
            sampler.GetNextTrajectory()
        except gear_reverb.ReverbError as error:
            errors.append(str(error))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    wait_until(lambda: client.server_info()["q"].waiting_samples == 1)
    sampler.Close()
    thread.join(20)
    assert errors == ["The sampler has been closed."]


IN_CALLS = """
import threading, time
import gear_reverb

server = gear_reverb.Server([gear_reverb.Table.queue("q", 9), gear_reverb.Table.stack("s", 9)])
client = server.localhost_client()

def insert_and_sample():
    while True:
        client.insert([1], {"q": 1.0})
        list(client.sample("q", 1))

for _ in range(3):
    threading.Thread(target=insert_and_sample, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("run", range(4))
def test_a_program_may_end_while_daemon_threads_are_in_calls(run):
    ended = subprocess.run(
        [sys.executable, "-c", IN_CALLS], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
