"""How fast does `insert_batch` load stacked items of 1 KiB to 1 MiB?

    python benchmarks/compare/insert_batch.py [--quick] [--only gear_reverb --only memcpy]

A call inserts 8 MiB, items of one step stacked [n, 1, floats], from a source of 128 MiB that is
read from its start to its end. Every side is a process of its own. What each does:

- gear_reverb, in process; ..., across processes: `Client.insert_batch` into a full table of 256
  MiB, which evicts as many items; the second into a server of another process, over shared
  memory.
- gear_reverb, growing: in process into a table that is never full, whose memory is new to it.
- memcpy: one thread copies the same bytes as one block to a destination that is reused: the limit.
- memcpy, to 256 MiB: the same to as much memory as the table has, which caches do not hold.
"""

import contextlib
import ctypes
import itertools

import _compare
import _process
import _tables
import numpy as np

_SIZES = {"1 KiB": 1 << 10, "16 KiB": 1 << 14, "64 KiB": 1 << 16, "1 MiB": 1 << 20}
_CALL_BYTES, _SOURCE_BYTES, _TABLE_BYTES = 8 << 20, 128 << 20, 256 << 20
_GROWING_BYTES = 4 << 30  # Then it is emptied, with the clock running.
_IN_PROCESS = f"{_compare.OURS}, in process"
_ACROSS = f"{_compare.OURS}, across processes"
_GROWING = f"{_compare.OURS}, growing"
_COPY = "memcpy"
_COPY_WIDE = "memcpy, to 256 MiB"


def _server(item_bytes: int):
    reverb = _tables.load("gear_reverb")

    def table(name: str, size_bytes: int):
        return reverb.Table(
            name,
            reverb.selectors.Uniform(),
            reverb.selectors.Fifo(),
            size_bytes // item_bytes,
            reverb.rate_limiters.MinSize(1),
        )

    return reverb.Server([table(_tables.TABLE, _TABLE_BYTES), table("growing", 1 << 40)])


def serve(item_bytes: str) -> None:
    server = _server(int(item_bytes))
    _process.answer(lambda request: None, ready=server.port, at_end=server.stop)


def side(name: str, item_bytes: str, port: str = "") -> None:
    if name == "serve":
        serve(item_bytes)
    items = _CALL_BYTES // int(item_bytes)
    source = np.random.default_rng(0).standard_normal(_SOURCE_BYTES // 4, np.float32)
    blocks = itertools.cycle(source.reshape(-1, items, 1, int(item_bytes) // 4))
    if name in (_COPY, _COPY_WIDE):
        target = np.ones(_CALL_BYTES if name == _COPY else _TABLE_BYTES, np.uint8)
        starts = itertools.cycle(range(0, _SOURCE_BYTES, _CALL_BYTES))
        places = itertools.cycle(range(0, target.nbytes, _CALL_BYTES))
        first, to = source.ctypes.data, target.ctypes.data

        def call() -> float:
            ctypes.memmove(to + next(places), first + next(starts), _CALL_BYTES)
            return _CALL_BYTES

    else:
        server = None if port else _server(int(item_bytes))
        client = _tables.load("gear_reverb").Client(f"localhost:{port or server.port}")
        _tables.require_plane(client, "shared-memory" if port else "in-process")
        table = "growing" if name == _GROWING else _tables.TABLE
        priorities, held = np.ones(items), 0
        if name != _GROWING:
            for _ in range(_TABLE_BYTES // _CALL_BYTES):
                client.insert_batch(table, [next(blocks)], priorities)

        def call() -> float:
            nonlocal held
            client.insert_batch(table, [next(blocks)], priorities)
            held += _CALL_BYTES
            if name == _GROWING and held >= _GROWING_BYTES:
                client.reset(table)
                held = 0
            return _CALL_BYTES

    _process.answer(lambda seconds: _process.rate(call, seconds))


def main() -> int:
    options = _compare.parse(__doc__, seconds=0.4)
    report = _compare.Report(
        "insert_batch", "Client.insert_batch", options, ("items", "side", "MB/s", "/ memcpy")
    )
    names = [_IN_PROCESS, _ACROSS, *options.pick([_GROWING], []), _COPY, _COPY_WIDE]
    for title in options.pick(_SIZES, ("1 KiB", "1 MiB")):
        size = _SIZES[title]
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(_process.start_of(__file__, "serve", size)())
            port = server.wait_ready().ready
            results = _compare.alternate(
                {
                    name: _process.start_of(
                        __file__, name, size, *([port] if name == _ACROSS else [])
                    )
                    for name in names
                },
                options,
            )
        report.add(title, results, unit="bytes/s", scale=1e-6, over=(_COPY,), item_bytes=size)
        for name in (_IN_PROCESS, _ACROSS):
            over_copy = _compare.ratio(results, name, _COPY)
            report.bar(f"items of {title}, {name.split(', ')[1]}: over memcpy", over_copy, 0.5)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
