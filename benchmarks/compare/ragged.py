"""How fast are batches of items that differ in length drawn?

    python benchmarks/compare/ragged.py [--quick]

256 rollouts of a language model (tokens i32, logprob f32, mask u8, 64 to 1024 steps: W4) a batch,
from a server of another process, and of the same. Bytes are those of the items' payload: padding
does not count. Every side is a process of its own. What each does:

- gear_reverb, pad: `batch_sampler(..., ragged="pad")`: [B, longest, ...] with lengths and mask.
- gear_reverb, pack: `batch_sampler(..., ragged="pack")`: [sum of lengths, ...] with cu_seqlens.
- dm-reverb: `TrajectoryDataset` of an unknown number of steps, mapped to note the lengths, then
  `padded_batch(256)`: its user's only way to a batch.
- memcpy: one thread copies as many bytes as a batch of the longest items: the limit.
"""

import contextlib

import _compare
import _process
import _samplers
from _workloads import RAGGED

_PAD, _PACK = f"{_compare.OURS}, pad", f"{_compare.OURS}, pack"
_PEER, _COPY = "dm-reverb", "memcpy"
_NAMES = (_PAD, _PACK, _PEER, _COPY)


def side(name: str, port: str = "") -> None:
    server, address = None, f"localhost:{port}"
    if name == _COPY:
        draw = _samplers.memcpy(RAGGED)
    else:
        implementation = _compare.implementation_of(name)
        if not port:
            server, address = _samplers.server_in_process(implementation, RAGGED)
        if name == _PEER:
            draw = _samplers.dm_reverb(RAGGED, address)
        else:
            plane = "shared-memory" if port else "in-process"
            way = name.split(", ")[1]
            draw = _samplers.gear_reverb(RAGGED, address, plane, ragged=way)
    _process.answer(lambda seconds: _process.rate(draw, seconds))
    del server


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "ragged",
        "Batches of 256 rollouts of 64 to 1024 tokens",
        options,
        ("server", "side", "MB/s of payload", "/ memcpy", "/ dm-reverb"),
    )
    for where in options.pick(("another process", "the same process"), ("another process",)):
        with contextlib.ExitStack() as stack:
            ports = {}
            names = options.pick(_NAMES, (_PAD, _PACK, _COPY))
            if where == "another process":
                items = options.pick(RAGGED.items, RAGGED.items // 4)
                ports = _compare.serve(stack, RAGGED, names, options, items)
                names = _compare.served(names, ports)
            sides = {}
            for name in names:
                port = ports.get(_compare.implementation_of(name))
                sides[name] = _process.start_of(__file__, name, *([port] if port else []))
            results = _compare.alternate(sides, options)
        report.add(
            where, results, unit="bytes/s", scale=1e-6, over=(_COPY, _PEER), batch=RAGGED.batch
        )
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
