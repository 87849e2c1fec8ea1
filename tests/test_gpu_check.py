"""The GPU check goes through all its steps: on the twin, and on a GPU where there is one."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from devices import DEVICE

from gear_reverb import cuda

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "gpu"
PROGRAM = """
import os, sys
if "GEAR_REVERB_EMULATED" in os.environ:
    import emulated_gpu
import gpu_check
sys.exit(gpu_check.main())
"""
OUT = "numpy" if DEVICE == "cpu" else "torch"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def values():
    """What a run has found in which all is well."""
    names, batches = ("W1", "W2", "W3", "W5"), (32, 256, 512, 1024)
    gathers = [
        {"workload": n, "batch": b, "way": way, "of_copy": rate}
        for n in names
        for b in batches
        for way, rate in (("lanes", 0.95), ("bulk", 0.93))
    ]
    classes = [{"piece_bytes_below": 1 << 64, "way": "bulk"}]
    draws = [
        {"items": items, f"draw {1 << 20} ms": 0.5, "update 4096 ms": 0.1}
        for items in (10**5, 10**6, 10**8)
    ]
    wholes = [{"workload": n, "batch": b, "bytes_per_second": 3.0} for n in names for b in batches]
    theirs = {"theirs": 1.0, "whole_step_of_theirs": 2.0}
    ours = {"ours": {"lanes": 3.0, "bulk": 2.5}, "ratio": 3.0, **theirs}
    checks = ("kernels are like their twins", "selection is like its twin")
    checks += ("batches are equal: torch", "draws are the twin's: torch, from the host")
    return {
        "failed": [],
        **dict.fromkeys(checks, {}),
        "the device": {"in_use": [{"choices": classes, "device_choices": classes}]},
        "gather from host": gathers,
        "gather from device": gathers,
        "whole batches": wholes,
        "tier": wholes,
        "index_select": [
            {"workload": n, "place": place, **ours} for n in names for place in ("host", "device")
        ],
        "selection": draws,
    }


def test_bars_need_all_that_they_are_about(values):
    import gpu_bars

    bars = gpu_bars.bars(values)
    assert all(bar["met"] for bar in bars)
    assert bars[0]["measured"] == 0.95 and bars[0]["as the library chose"] == 0.93
    index_select = bars[-3]
    assert index_select["as the library chose"] == 2.5 and index_select["whole steps"] == 1.5
    # Cut short, the most favourable rows may be there alone.
    for name, unknown in [
        ("gather from host", 2),
        ("gather from device", 1),
        ("whole batches", 1),
        ("index_select", 2),
        ("selection", 2),
    ]:
        for rows in ([], values[name][:2]):
            bars = gpu_bars.bars(values | {name: rows})
            assert sum(bar["measured"] is None for bar in bars) == unknown
            assert sum(bar["met"] for bar in bars) == len(bars) - unknown
    slow = [row | {"of_copy": 0.5} for row in values["gather from device"]]
    bars = gpu_bars.bars(values | {"gather from device": slow})
    assert [bar["met"] for bar in bars].count(False) == 1


def test_bars_are_not_met_without_the_checks_of_what_they_measure(values):
    import gpu_bars

    for check, about in [
        ("kernels are like their twins", 6),
        ("selection is like its twin", 2),
        ("draws are the twin's: torch, from the host", 1),
    ]:
        failed = values | {"failed": [check]}
        not_run = {name: value for name, value in values.items() if name != check}
        for found, why in ((failed, f"failed: {check}"), (not_run, f"not run: {check}")):
            bars = gpu_bars.bars(found)
            assert [bar["why"] for bar in bars if not bar["met"]] == [why] * about


def raises():
    raise RuntimeError("what went wrong")


def crashes():
    yield 1
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs():
    yield 2
    time.sleep(600)


def lacks():
    import no_such_module  # noqa: F401


@pytest.fixture
def report(monkeypatch, tmp_path):
    import gpu_report

    monkeypatch.setattr(gpu_report, "PATIENCE_SECONDS", 3)
    made = gpu_report.Report(DEVICE, tmp_path / "result.json", 100)
    made.read = lambda: json.loads((tmp_path / "result.json").read_text())
    return made


def test_a_step_that_fails_leaves_its_traceback_and_the_others(report, capfd):
    report.here("here", raises)
    report.apart(("first", os.getpid), ("apart", raises), ("last", os.getpid), ("other", os.getpid))
    found = report.read()
    assert found["failed"] == ["here", "apart"]
    for error in found["errors"].values():
        assert 'raise RuntimeError("what went wrong")' in error
    assert len({found[name] for name in ("first", "last")} | {os.getpid()}) == 3
    assert found["last"] == found["other"]  # After a failure comes another process.
    printed = capfd.readouterr().out
    assert "FAILED: apart: RuntimeError: what went wrong\n" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("work, end", [(crashes, "(status -11)"), (hangs, "no answer within 3 s")])
def test_a_process_that_crashes_or_hangs_leaves_what_was_there_and_the_others(report, work, end):
    report.apart(("one", work), ("another", lambda: 3))
    found = report.read()
    assert found["failed"] == ["one"] and found["another"] == 3
    assert found["one"] == [1 if work is crashes else 2]
    # Where it was, and how it ended.
    assert f"in {work.__name__}" in found["errors"]["one"] and end in found["errors"]["one"]


def test_what_runs_is_in_the_file(report):
    report.here("the file", lambda: report.read()["running"])
    assert report.read()["the file"] == "the file" and report.read()["running"] == ""


def test_steps_are_skipped_without_what_they_need_or_without_time(report):
    report.apart(("module", lacks), ("next", lambda: 1))
    report._end = time.monotonic()
    report.apart(("late", lambda: 1))
    found = report.read()
    assert found["next"] == 1 and not found["failed"]
    assert [line.partition(":")[0] for line in report.values["skipped"]] == ["module", "late"]


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
@pytest.mark.parametrize(
    "ends, outcome",
    [
        ("exit 0", "nothing was found"),
        ("exit 9", "see the log"),
        ("exit 3", "it ended with status 3"),
        ("sleep 60", "it did not end within 1 seconds"),
    ],
)
def test_what_compute_sanitizer_says_is_kept(monkeypatch, tmp_path, report, tool, ends, outcome):
    import gpu_sanitizer

    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\necho what it says of $2\n{ends}\n")
    program.chmod(0o755)
    monkeypatch.setitem(gpu_sanitizer.SECONDS, tool, 1)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    report.here("the step", gpu_sanitizer.watch, tool, 0, tmp_path, 100)
    says = f"what it says of {tool}"
    assert (tmp_path / "sanitizer.log").read_text() == says + "\n"
    if tool == "memcheck" and ends == "exit 9":
        assert says in report.read()["errors"]["the step"]
    else:
        found = report.read()["the step"]
        assert found["outcome"] == outcome and found["last"] == [says]


def test_no_usable_gpu_is_told(tmp_path):
    if cuda.is_available():
        pytest.skip("there is a GPU")
    found, printed = run(tmp_path, "cuda:0", 1)
    assert found["failed"] == ["a GPU that can be used"] and not found["complete"]
    assert found["why_not"] and f"FAILED: a GPU that can be used: {found['why_not']}" in printed


def run(tmp_path, device, status):
    """What a small run has found and printed. In a process that has used no GPU."""
    result = tmp_path / "result.json"
    arguments = ["--device", device, "--small", "--result", str(result), "--commit", "abc"]
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == status, done.stdout
    return json.loads(result.read_text()), done.stdout


def test_every_step_is_taken(tmp_path):
    found, printed = run(tmp_path, DEVICE, 0)
    assert "FAILED" not in printed and "\n0 failed; " in printed
    assert found["failed"] == [] and found["errors"] == {}
    assert found["complete"] and found["small"] and found["commit"] == "abc"
    steps = {"machine", "the device", "selection is like its twin", "selection"}
    steps |= {"draws' kernels are like their twins", "replays are the twin's"}
    steps |= {"rates of draws", "strategies", "whole batches", "whole batches of W4"}
    steps |= {"tier", "tier, drawn by the device"}
    steps |= {f"first items are the twin's: {OUT}", f"W4 is as without a device: {OUT}"}
    if DEVICE != "cpu":
        steps |= {"kernels are like their twins", "ceilings", "bars", "batches are equal: torch"}
        steps |= {"gather from host", "gather from device", "gather from host, more batches"}
    assert steps <= found.keys()
