"""The GPU check goes through all its steps: on the twin, and on a GPU where there is one."""

import json
import pathlib
import sys

import pytest
from devices import DEVICE

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent / "benchmarks"


def test_bars_need_all_that_they_are_about(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu_gathers

    names, batches = ("W1", "W2", "W3", "W5"), (32, 256, 512, 1024)
    gathers = [{"workload": n, "batch": b, "of_copy": 0.95} for n in names for b in batches]
    wholes = [{"workload": n, "batch": b, "bytes_per_second": 1.0} for n in names for b in batches]
    compared = [
        {"workload": n, "place": place, "ratio": 3.0} for n in names for place in ("host", "device")
    ]
    draws = [
        {"items": items, f"draw {1 << 20} ms": 0.5, "update 4096 ms": 0.1}
        for items in (10**5, 10**6, 10**8)
    ]
    values = {
        "gather from host": gathers,
        "gather from device": gathers,
        "whole batches": wholes,
        "index_select": compared,
        "selection": draws,
    }
    assert all(bar["met"] for bar in gpu_gathers.bars(values))
    # Cut short, the most favourable rows may be there alone.
    for name, unknown in [
        ("gather from host", 2),
        ("gather from device", 1),
        ("whole batches", 1),
        ("index_select", 2),
        ("selection", 2),
    ]:
        for rows in ([], values[name][:2]):
            bars = gpu_gathers.bars(values | {name: rows})
            assert sum(bar["measured"] is None for bar in bars) == unknown
            assert sum(bar["met"] for bar in bars) == len(bars) - unknown
    slow = [row | {"of_copy": 0.5} for row in gathers]
    bars = gpu_gathers.bars(values | {"gather from device": slow})
    assert [bar["met"] for bar in bars].count(False) == 1


def test_every_step_is_taken(monkeypatch, tmp_path, capfd):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu_check

    result = tmp_path / "result.json"
    arguments = ["--device", DEVICE, "--small", "--result", str(result), "--commit", "abc"]
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", *arguments])
    assert gpu_check.main() == 0
    printed = capfd.readouterr().out
    assert "FAILED" not in printed and "\n0 failed; " in printed
    values = json.loads(result.read_text())
    assert values["failed"] == [] and values["small"] and values["commit"] == "abc"
    steps = {"selection is like its twin", "draws' kernels are like their twins", "selection"}
    steps |= {"replays are the twin's", "rates of draws", "strategies", "whole batches"}
    steps |= {"tier", "tier, drawn by the device"}
    steps.add(f"first items are the twin's: {'numpy' if DEVICE == 'cpu' else 'torch'}")
    if DEVICE != "cpu":
        steps |= {"kernels are like their twins", "ceilings", "bars", "batches are equal: torch"}
        steps |= {"gather from host", "gather from device"}
    assert steps <= values.keys()
