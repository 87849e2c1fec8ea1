"""Serves a filled table from a process of its own: _serve.py IMPLEMENTATION WORKLOAD ITEMS.

Says its port once the table `table` holds so many items; beside it stand `empty`, which stays
empty, and `growing`, which is empty at first and never full. `table` is full with ITEMS of them.
"""

import sys

import _process
import _tables
from _workloads import WORKLOADS

UNLIMITED = 100_000_000


def main() -> None:
    _process.claim_stdout()
    implementation, workload, items = sys.argv[1], WORKLOADS[sys.argv[2]], int(sys.argv[3])
    reverb = _tables.load(implementation)
    server = reverb.Server(
        [
            _tables.make_table(reverb, workload, max_size=max(1, items)),
            _tables.make_table(reverb, workload, "empty"),
            _tables.make_table(reverb, workload, "growing", max_size=UNLIMITED),
        ]
    )
    if items:
        _tables.fill(reverb.Client(f"localhost:{server.port}"), workload, items)
    # dm-reverb's waits for its clients' connections, for long.
    at_end = server.stop if implementation == "gear_reverb" else None
    _process.answer(lambda request: None, ready=server.port, at_end=at_end)


if __name__ == "__main__":
    main()
