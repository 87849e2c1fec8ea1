"""The GPU check goes through all its steps: on the twin, and on a GPU where there is one."""

import json
import pathlib
import sys

import pytest
from devices import DEVICE

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent / "benchmarks"


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
        assert not any(bar["met"] for bar in values["bars"] if bar["measured"] is None)
    assert steps <= values.keys()
