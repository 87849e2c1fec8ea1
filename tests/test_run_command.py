"""`gear-reverb run`: programs written for dm-reverb, unmodified."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import reverb

print(json.dumps({
    "argv": sys.argv,
    "file": __file__,
    "main_is_this": sys.modules["__main__"].__dict__ is globals(),
    "package": reverb.__name__,
    "path": sys.path[0],
}))
sys.exit(7)
"""

PARENT = """
import multiprocessing, subprocess, sys

def child():
    import reverb
    sys.exit(reverb.__name__ != "gear_reverb")

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
    code = "import reverb.client, sys; sys.exit(reverb.client.__name__ != 'gear_reverb.client')"
    sys.exit(process.exitcode or subprocess.run([sys.executable, "-c", code]).returncode)
"""


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "gear_reverb", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    package = tmp_path / "reverb"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('the other one')")
    return tmp_path


@pytest.mark.parametrize("how", [("program.py",), ("-m", "program")])
def test_a_program_is_run_as_python_would(directory, how):
    result = run("run", *how, "--option", "value", cwd=directory)
    assert result.returncode == 7, result.stderr
    seen = json.loads(result.stdout)
    assert seen["argv"][1:] == ["--option", "value"]
    assert seen["argv"][0].endswith("program.py") and seen["file"].endswith("program.py")
    assert seen["package"] == "gear_reverb"
    assert seen["main_is_this"]
    assert seen["path"] == str(directory)


def test_processes_that_it_starts_see_the_alias(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    result = run("run", "parent.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_exceptions_and_exit_codes_pass_through(tmp_path):
    (tmp_path / "fails.py").write_text("raise ValueError('out of the program')")
    result = run("run", "fails.py", cwd=tmp_path)
    assert result.returncode == 1
    assert "ValueError: out of the program" in result.stderr
    (tmp_path / "ends.py").write_text("import reverb")
    assert run("run", "ends.py", cwd=tmp_path).returncode == 0


def test_threads_may_outlive_the_last_line(tmp_path):
    (tmp_path / "threads.py").write_text(
        "import threading, time\n"
        "def later():\n    time.sleep(0.2)\n    print(value)\n"
        "value = 'kept'\nthreading.Thread(target=later).start()\n"
    )
    assert run("run", "threads.py", cwd=tmp_path).stdout == "kept\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 1, "usage: gear-reverb COMMAND"),
        (("bogus",), 1, "Unknown command 'bogus'"),
        (("run",), 2, "usage: gear-reverb run SCRIPT"),
        (("run", "-m"), 1, "A module must be named"),
        (("run", "--bogus"), 1, "A script must be named"),
        (("run", "nope.py"), 1, "can't open file 'nope.py'"),
    ],
)
def test_what_cannot_be_run(tmp_path, arguments, status, message):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == status and message in result.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help")])
def test_help(tmp_path, arguments):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 0 and "usage: gear-reverb" in result.stdout
