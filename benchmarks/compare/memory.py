"""How many bytes of memory does an item of a small transition take beyond its payload?

    python benchmarks/compare/memory.py [--quick]

A process of its own holds the items; what counts is the growth of its resident memory from
holding none to holding all, over their number, less the payload. Servers get their items from
another process.

- gear_reverb, insert_batch: items of 2 steps of 4 floats, stacked.
- gear_reverb, writer: the same items by a TrajectoryWriter, every item with steps of its own.
- gear_reverb, stream: a TrajectoryWriter's items that overlap by a step, as transitions do; the
  payload is a step an item. Chunks of 10 steps.
- dm-reverb, writer; dm-reverb, stream: the same with dm-reverb.
- cpprb, flashbax, torchrl: their buffers of such items, stacked; preallocated arrays.

The table's own account of its payload (`TableInfo.num_bytes`) is written to the results beside it.
"""

import _compare
import _process
import _samplers
import _tables
import numpy as np
from _workloads import SMALL

_ITEMS, _QUICK_ITEMS, _PEER_ITEMS = 1_000_000, 200_000, 200_000
_OURS = [f"{_compare.OURS}, {way}" for way in ("insert_batch", "writer", "stream")]
_SERVERS = ["dm-reverb, writer", "dm-reverb, stream"]
_ARRAYS = ["cpprb", "flashbax", "torchrl"]
_STREAM_CHUNK = 10
_BAR_BYTES = 200


def serve(implementation: str, items: str) -> None:
    """Says its port, then answers [resident bytes, bytes of payload by the table's account]."""
    reverb = _tables.load(implementation)
    table = _tables.make_table(reverb, SMALL, max_size=int(items), signature=None)
    server = reverb.Server([table])
    _process.answer(
        lambda request: [_resident_bytes(), getattr(table.info, "num_bytes", 0)], ready=server.port
    )


def write(name: str, port: str) -> None:
    """Inserts as many items as it is asked to."""
    implementation, way = name.split(", ")
    client = _tables.load(implementation).Client(f"localhost:{port}")

    def insert(count: int) -> None:
        if way == "insert_batch":
            data = np.random.default_rng(0).standard_normal((count, 2, 4), np.float32)
            client.insert_batch(_tables.TABLE, [data], np.ones(count))
        elif way == "writer":
            _tables.fill(client, SMALL, count)
        else:
            _stream(client, count)

    def handle(count: int) -> None:
        for begin in range(0, count, 50_000):
            insert(min(50_000, count - begin))

    _process.answer(handle)


def _stream(client, count: int) -> None:
    steps = np.random.default_rng(0).standard_normal((64, 4), np.float32)
    with client.trajectory_writer(num_keep_alive_refs=_STREAM_CHUNK) as writer:
        writer.configure(("x",), num_keep_alive_refs=_STREAM_CHUNK, max_chunk_length=_STREAM_CHUNK)
        writer.append({"x": steps[0]})
        for index in range(count):
            writer.append({"x": steps[index % len(steps)]})
            writer.create_item(_tables.TABLE, 1.0, {"x": writer.history["x"][-2:]})
            if index % 200 == 199:
                writer.flush(block_until_num_items=200)


def hold(name: str, items: str) -> None:
    """A peer without a server: answers the growth of this process when its buffer is filled."""
    import dataclasses

    getattr(_samplers, name)(dataclasses.replace(SMALL, items=1000))()  # Imports, compiles.
    before = _resident_bytes()
    draw = getattr(_samplers, name)(dataclasses.replace(SMALL, items=int(items)))
    draw()
    _process.answer(lambda request: _resident_bytes() - before)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def side(role: str, *args: str) -> None:
    {"serve": serve, "write": write, "hold": hold}[role](*args)


def measure(name: str, items: int) -> tuple[float, float]:
    """Bytes an item beyond its payload, and the table's account of the payload of an item."""
    payload = 16 if name.endswith("stream") else SMALL.item_bytes
    if name in _ARRAYS:
        with _process.start_of(__file__, "hold", name, items)() as holder:
            return holder.wait_ready().ask(0) / items - payload, payload
    implementation = _compare.implementation_of(name)
    with _process.start_of(__file__, "serve", implementation, items)() as server:
        port = server.wait_ready().ready
        with _process.start_of(__file__, "write", name, port)() as writer:
            writer.wait_ready()
            before, _ = server.ask(0)
            writer.ask(items, timeout=300)
            after, accounted = server.ask(0)
    return (after - before) / items - payload, accounted / items


def main() -> int:
    options = _compare.parse(__doc__, rounds=2)
    report = _compare.Report(
        "memory", "Memory of small transitions", options, ("items", "side", "bytes beyond payload")
    )
    results: _compare.Values = {}
    accounts: dict[str, list[float]] = {}
    for name in options.pick([*_OURS, *_SERVERS, *_ARRAYS], _OURS[:2]):
        if not options.wants(name):
            continue
        count = options.pick(_PEER_ITEMS if name in _SERVERS else _ITEMS, _QUICK_ITEMS)
        rounds = options.rounds if name in _OURS and not options.quick else 1
        measured = [measure(name, count) for _ in range(rounds)]
        results[name] = [beyond for beyond, _ in measured]
        accounts[name] = [accounted for _, accounted in measured]
    report.add(
        "small transitions",
        results,
        unit="bytes",
        items={"dm-reverb": _PEER_ITEMS, "others": _ITEMS, "quick": _QUICK_ITEMS},
        accounted_payload=accounts,
    )
    for name in _OURS:
        if name in results:
            beyond = _compare.median(results, name)
            report.bar(f"{name}: bytes beyond payload", beyond, _BAR_BYTES, at_most=True)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
