"""scripts/run_suites.py counts what the test programs report, and misses no failure."""

import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

GOOGLETEST = """<testsuites tests="4" failures="1"><testsuite name="A">
<testcase name="passes" status="run" result="completed"/>
<testcase name="fails" status="run" result="completed"><failure message="x"/></testcase>
<testcase name="DISABLED_is_off" status="notrun" result="suppressed"/>
<testcase name="skips" status="run" result="skipped"><skipped message="y"/></testcase>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest" tests="3">
<testcase classname="t" name="passes"/>
<testcase classname="t" name="breaks"><error message="fixture"/></testcase>
<testcase classname="t" name="skips"><skipped type="pytest.skip"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def run_suites(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("run_suites", ROOT / "scripts" / "run_suites.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "run_suites", module)
    monkeypatch.syspath_prepend(ROOT / "scripts")
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "REPORTS", tmp_path / "reports")
    return module


def run_main(run_suites, monkeypatch, capfd, *suites: str) -> tuple[int, str]:
    """The status, and the last line printed."""
    monkeypatch.setattr(sys, "argv", ["run_suites.py", *suites])
    status = run_suites.main()
    return status, capfd.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(("text", "counts"), [(GOOGLETEST, (1, 1, 2)), (PYTEST, (1, 1, 1))])
def test_cases_are_counted(run_suites, tmp_path, text, counts):
    path = tmp_path / "report.xml"
    path.write_text(text)
    result = run_suites.read_junit(path)
    assert (result.passed, result.failed, result.skipped) == counts


@pytest.mark.parametrize(
    ("status", "printed", "counts"),
    [
        (0, "ok: a\nok: b\nskipped: c\nnot ok: d", (2, 0, 1)),
        (1, "ok: a\nFAILED: b", (1, 1, 0)),
        (1, "ok: a", (1, 1, 0)),
    ],
)
def test_lines_are_counted(run_suites, status, printed, counts):
    program = f"print({printed!r}); raise SystemExit({status})"
    result = run_suites.lines([sys.executable, "-c", program])
    assert (result.passed, result.failed, result.skipped) == counts


def test_the_last_line_sums_the_suites(run_suites, monkeypatch, capfd):
    monkeypatch.setattr(run_suites, "python", lambda: run_suites.Counts(passed=3, skipped=1))
    monkeypatch.setattr(run_suites, "checks", lambda: run_suites.Counts(passed=2))
    result = run_main(run_suites, monkeypatch, capfd, "python", "checks")
    assert result == (0, "5 passed, 0 failed")
    assert (run_suites.REPORTS / "summary.txt").read_text() == "5 passed, 0 failed\n"


def test_one_failure_makes_the_status_bad(run_suites, monkeypatch, capfd):
    monkeypatch.setattr(run_suites, "python", lambda: run_suites.Counts(passed=3, failed=1))
    monkeypatch.setattr(run_suites, "checks", lambda: run_suites.Counts(passed=2))
    result = run_main(run_suites, monkeypatch, capfd, "python", "checks")
    assert result == (1, "5 passed, 1 failed")


@pytest.mark.parametrize(
    "suite", ["native", "python", "compat", "acme", "pythons", "install", "checks"]
)
def test_a_suite_that_cannot_run_is_a_failure(run_suites, monkeypatch, capfd, suite):
    """In a tree without any of the scripts, sources and tests."""
    status, last = run_main(run_suites, monkeypatch, capfd, suite)
    assert (status, last) == (1, "0 passed, 1 failed")


def test_no_tests_at_all_is_a_failure(run_suites, tmp_path):
    (tmp_path / "tests").mkdir()
    assert run_suites.pytest("python", ".venv", "tests").failed == 1
