"""The package under the name `reverb`."""

import subprocess
import sys
import textwrap

import pytest


def run_python(code, *, cwd):
    """Output of a fresh interpreter in a directory that may hold a stand-in for dm-reverb."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=cwd, capture_output=True, text=True
    )


def passes(code, cwd):
    result = run_python(code, cwd=cwd)
    assert result.returncode == 0, result.stderr


@pytest.fixture
def other_reverb(tmp_path):
    """A directory with another package of the name."""
    package = tmp_path / "reverb"
    package.mkdir()
    (package / "__init__.py").write_text("NAME = 'other'\n")
    (package / "client.py").write_text("NAME = 'other client'\n")
    return tmp_path


def test_package_and_submodules_are_the_same_objects(tmp_path):
    passes(
        """
        import gear_reverb
        gear_reverb.install_as_reverb()
        import reverb
        import reverb.platform.default.checkpointers
        from reverb import client, rate_limiters
        from reverb.cc import schema_pb2
        import gear_reverb.cc.schema_pb2
        assert reverb is gear_reverb and client is gear_reverb.client
        assert reverb.Client is gear_reverb.Client
        assert schema_pb2 is gear_reverb.cc.schema_pb2
        assert client.__name__ == client.__spec__.name == "gear_reverb.client"
        """,
        tmp_path,
    )


def test_it_stands_before_an_installed_package(other_reverb):
    passes(
        """
        import gear_reverb
        gear_reverb.install_as_reverb()
        import reverb, reverb.client
        assert reverb.Client.__module__ == reverb.client.__name__ == "gear_reverb.client"
        """,
        other_reverb,
    )


def test_it_may_be_called_again(tmp_path):
    passes(
        """
        import sys, gear_reverb
        for _ in range(2):
            gear_reverb.install_as_reverb()
            import reverb.client
        finders = [type(finder).__module__ for finder in sys.meta_path]
        assert finders.count("gear_reverb._alias") == 1
        """,
        tmp_path,
    )


def test_it_refuses_to_come_late(other_reverb):
    result = run_python(
        "import reverb, gear_reverb; gear_reverb.install_as_reverb()", cwd=other_reverb
    )
    assert result.returncode == 1
    assert "ImportError: reverb has already been imported from" in result.stderr


def test_unless_forced(other_reverb):
    passes(
        """
        import reverb, reverb.client, gear_reverb
        assert reverb.NAME == "other"
        gear_reverb.install_as_reverb(force=True)
        import reverb, reverb.client
        assert reverb is gear_reverb and reverb.client is gear_reverb.client
        """,
        other_reverb,
    )


def test_names_that_are_not_there_are_missing(tmp_path):
    result = run_python(
        "import gear_reverb; gear_reverb.install_as_reverb(); import reverb.nope", cwd=tmp_path
    )
    assert "ModuleNotFoundError: No module named 'reverb.nope'" in result.stderr


def test_private_modules_are_not_aliased(tmp_path):
    passes(
        """
        import sys, gear_reverb
        gear_reverb.install_as_reverb()
        private = [n for n in sys.modules if n.startswith("reverb._")]
        assert private == []
        """,
        tmp_path,
    )
