"""The benchmarks of benchmarks/compare start, say what they do, and move what they say."""

import importlib
import json
import math
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gear_reverb

pytestmark = pytest.mark.slow  # Once is enough; and they need rich.

COMPARE = pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "compare"
SCRIPTS = sorted(
    path.stem
    for path in COMPARE.glob("[a-z]*.py")
    if path.stem != "pictures"  # Needs matplotlib.
)
MIB = 1 << 20


@pytest.fixture
def load(monkeypatch):
    """Imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(str(COMPARE))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(COMPARE.parent) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def child(load, tmp_path):
    """Starts a program as a side."""
    process = load("_process")
    sides = []

    def start(code):
        path = tmp_path / f"child{len(sides)}.py"
        found = f"import sys\nsys.path.insert(0, {str(COMPARE)!r})\n"
        path.write_text(found + textwrap.dedent(code))
        sides.append(process.Side(path))
        return sides[-1]

    yield start
    for side in sides:
        side.close()


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script):
    done = subprocess.run(
        [sys.executable, COMPARE / f"{script}.py", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "--quick" in done.stdout, done.stderr


def test_every_comparison_is_run(load):
    assert sorted(load("run").COMPARISONS) == sorted(set(SCRIPTS) - {"run"})


def test_a_quick_run_ends_in_time(load, monkeypatch, capsys):
    run = load("run")
    now, begun = 100.0, []

    def compare(command, timeout=None):
        nonlocal now
        begun.append(pathlib.Path(command[1]).stem)
        now += min(100, timeout or 0)
        if timeout is not None and timeout < 100:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "write", "latency", "memory"])
    monkeypatch.setattr(run.time, "monotonic", lambda: now)
    monkeypatch.setattr(run.subprocess, "run", compare)
    assert run.main() == 0
    assert begun == ["write", "latency", "pictures"] and now - 100 <= 180
    told = capsys.readouterr().err
    assert "latency: not done after 70 s" in told and "memory: left out" in told


@pytest.mark.parametrize(
    "name, item_bytes",
    [
        ("small", 2 * 4 * 4),
        ("64KiB", 64 << 10),
        ("1MiB", MIB),
        ("frames", 20 * 84 * 84 * 4),
        ("ragged", 1024 * 9),
    ],
)
def test_workloads(load, name, item_bytes):
    workload = load("_workloads").WORKLOADS[name]
    assert workload.item_bytes == item_bytes
    assert workload.batch_bytes == item_bytes * workload.batch
    signature = workload.signature(gear_reverb)
    for item in workload.pool():
        lengths = {len(values) for values in item.values()}
        assert len(lengths) == 1 and workload.min_steps <= min(lengths) <= workload.steps
        assert sum(values.nbytes for values in item.values()) == (
            workload.step_bytes * min(lengths)
        )
        for column, values in item.items():
            assert values.dtype == signature[column].dtype
            assert values.shape[1:] == tuple(signature[column].shape)[1:]
    if workload.ragged:
        assert len({len(item["tokens"]) for item in workload.pool()}) > 10


def test_pools_are_noise_and_the_same_each_time(load):
    workload = load("_workloads").KIB_64
    first, second = workload.pool(), workload.pool()
    np.testing.assert_array_equal(first[3]["x"], second[3]["x"])
    assert not np.array_equal(first[0]["x"], first[1]["x"])
    assert np.unique(first[0]["x"]).size > 1000


def test_tables_take_the_workload(load):
    tables, workload = load("_tables"), load("_workloads").SMALL
    server = gear_reverb.Server([tables.make_table(gear_reverb, workload)])
    client = server.localhost_client()
    tables.fill(client, workload, 300)
    assert client.server_info()[tables.TABLE].current_size == 300
    [sample] = client.sample(tables.TABLE, emit_timesteps=False)
    assert sample.data[0].nbytes == workload.item_bytes
    with pytest.raises(RuntimeError, match="not 'carrier pigeon'"):
        tables.require_plane(client, "carrier pigeon")
    server.stop()


def test_sides_answer_and_keep_stdout_clean(child):
    side = child("""
        import _process
        _process.claim_stdout()
        print("chatter")
        _process.answer(lambda request: [request, request * 2], ready="here")
    """)
    assert side.wait_ready().ready == "here"
    assert side.ask(4) == [4, 8]


def test_a_side_that_fails_says_why(child, load):
    with pytest.raises(load("_process").SideFailed, match="no such peer"):
        child("raise SystemExit('no such peer')").wait_ready()


def test_alternating_leaves_a_peer_out_that_fails(load, child, capsys):
    compare = load("_compare")
    good = "import _process\n_process.answer(lambda seconds: seconds)"
    options = compare.Options(quick=True, rounds=3, seconds=0.5, only=(), check=False)
    results = compare.alternate(
        {"gear_reverb": lambda: child(good), "peer": lambda: child("raise SystemExit('gone')")},
        options,
    )
    assert results == {"gear_reverb": [0.5] * 3}
    assert "left out: peer" in capsys.readouterr().err
    assert math.isnan(compare.ratio(results, "gear_reverb", "peer"))
    with pytest.raises(load("_process").SideFailed):
        compare.alternate({"gear_reverb": lambda: child("raise SystemExit(3)")}, options)


def test_a_report_writes_rounds_and_bars(load, tmp_path, monkeypatch, capsys):
    compare = load("_compare")
    monkeypatch.setattr(compare, "QUICK_RESULTS", tmp_path)
    monkeypatch.setattr(load("_harness"), "_ROOT", tmp_path)
    options = compare.Options(quick=True, rounds=3, seconds=0.5, only=(), check=True)
    report = compare.Report("question", "Title", options, ("case", "side", "MB/s", "/ peer"))
    results = {"gear_reverb": [2e6, 3e6, 4e6], "peer": [1e6, 1e6, 1e6]}
    report.add("case", results, unit="bytes/s", scale=1e-6, over=("peer",))
    report.bar("reached", compare.ratio(results, "gear_reverb", "peer"), 3)
    report.bar("missed", 2.0, 1.0, at_most=True)
    report.bar("without a peer", math.nan, 1.0)
    assert report.finish() == 1
    written = json.loads((tmp_path / "question.json").read_text())
    assert written["cases"]["case"]["rounds"] == results
    assert [bar["met"] for bar in written["bars"]] == [True, False, False]
    assert written["bars"][2]["measured"] is None
    out = capsys.readouterr().out
    assert "not met  missed: 2.00 (bar <= 1)" in out
    assert "not met  without a peer: not measured" in out


def test_rates_count_after_the_warm_up(load):
    calls = []
    rate = load("_process").rate(lambda: calls.append(1) or 3.0, 0.05)
    assert 0 < rate and len(calls) >= 4
