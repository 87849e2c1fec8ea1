"""Batches that are too large: refused before they take memory, or interrupted."""

import os
import signal
import threading

import numpy as np
import pytest
from processes import finish, start
from tables import make_table

_REFUSALS = """
    import resource
    import gear_reverb as reverb

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    client = reverb.Client(f"localhost:{input()}")
    client.sample_batch("small", 1)
    client.sample_batch("large", 1)
    before = peak()
    for table, size, limit in [
        ("small", 10**12, 1 << 32), ("small", 3 * 10**6, 10**6), ("small", 2**62, 2**40),
        ("large", 512, 8 << 20),
    ]:
        try:
            client.sample_batch(table, size, max_bytes=limit)
        except ValueError as error:
            assert "max_bytes" in str(error), error
        else:
            raise AssertionError("it was not refused")
    print(peak() - before)
"""


@pytest.mark.parametrize("plane", ["grpc", "shared-memory"])
def test_a_batch_over_the_limit_takes_no_memory(serve, plane):
    tables = make_table("small"), make_table("large")
    client = serve(*tables)
    client.insert_batch("small", np.zeros((2, 1)), 1.0)
    client.insert_batch("large", np.zeros((2, 1 << 20)), 1.0)
    process = start(_REFUSALS, GEAR_REVERB_DATA_PLANE=plane)
    status, out, err = finish(process, f"{client.server_address.rpartition(':')[2]}\n")
    assert status == 0, err
    assert int(out) < 300 << 20
    large = client.server_info()["large"]
    drawn = large.rate_limiter_info.sample_stats.completed
    assert drawn < 100
    # Those of the one batch were used.
    assert drawn - 8 <= large.num_unused_samples < drawn


def test_a_large_batch_can_be_interrupted(serve):
    client = serve()
    client.insert_batch("t", np.zeros((2, 1)), 1.0)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        client.sample_batch("t", 10**7)
