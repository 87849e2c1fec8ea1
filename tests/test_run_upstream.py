"""compat_tests/run_upstream.py, on small trees of tests as Reverb's are made."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "compat_tests" / "run_upstream.py"

PASSES = """
    import platform, unittest
    import reverb
    import reverb.helpers as the_same_helpers
    from reverb import helpers
    from reverb.testing import numbers
    from absl.testing import absltest, parameterized

    class ServerTest(parameterized.TestCase):
        @parameterized.parameters(1, 2)
        def test_inserts(self, size):
            server = reverb.Server([helpers.table(reverb, size)])
            client = server.localhost_client()
            for value in range(size):
                client.insert([numbers.of(value)], {"t": 1.0})
            self.assertEqual(client.server_info()["t"].current_size, size)

        def test_is_ours(self):
            self.assertEqual(reverb.__name__, "gear_reverb")
            self.assertEqual(reverb.client.__name__, "gear_reverb.client")
            self.assertIs(helpers, the_same_helpers)
            self.assertTrue(platform.python_version())

        @unittest.skip("not here")
        def test_elsewhere(self):
            pass

    if __name__ == "__main__":
        absltest.main()
"""
FAILS = """
    import unittest

    class MixedTest(unittest.TestCase):
        def test_passes(self):
            for part in range(3):
                with self.subTest(part=part):
                    self.assertLess(part, 3)

        def test_fails_in_two_parts(self):
            for part in range(3):
                with self.subTest(part=part):
                    self.assertEqual(part, 1)

        def test_raises(self):
            raise OSError("the reason")

    class NeverTest(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            raise RuntimeError("cannot be set up")

        def test_never(self):
            pass

    if __name__ == "__main__":
        unittest.main()
"""
WITHOUT_MAIN = """
    import unittest

    VALUE = 3

    class PlainTest(unittest.TestCase):
        def test_passes(self):
            self.assertEqual(VALUE, 3)
"""
IN_MIDST = """
    import os, time, unittest

    class MidstTest(unittest.TestCase):
        def test_1_passes(self):
            pass

        def test_2_ends_here(self):
            {act}

    if __name__ == "__main__":
        unittest.main()
"""


@pytest.fixture
def tree(tmp_path):
    """Writes files of a source tree; `reverb` itself cannot be imported from it."""
    source = tmp_path / "source"

    def write(**files: str) -> pathlib.Path:
        package = source / "reverb"
        files |= {
            "__init__": "raise ImportError('the tree itself')",
            "client": "raise ImportError('the tree has its own client')",
            "platform/__init__": "",
            "helpers": """
                def table(reverb, size):
                    limiter = reverb.rate_limiters.MinSize(1)
                    fifo = reverb.selectors.Fifo()
                    return reverb.Table("t", fifo, fifo, size, limiter)
            """,
            "testing/numbers": "def of(value):\n    return float(value)",
        }
        for name, text in files.items():
            path = package / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return source

    return write


def run(source, *options):
    return subprocess.run(
        [sys.executable, SCRIPT, f"--reverb-src={source}", f"--python={sys.executable}", *options],
        capture_output=True,
        text=True,
        timeout=150,
    )


def test_files_of_the_tree_run_against_us(tree):
    result = run(tree(server_test=PASSES, **{"platform/plain_test": WITHOUT_MAIN}))
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stdout + result.stderr
    assert lines[0].startswith("reverb/platform/plain_test.py: 1 passed, 0 failed (")
    assert lines[1].startswith("reverb/server_test.py: 3 passed, 0 failed, 1 skipped (")
    assert lines[-1] == "4 passed, 0 failed"


def test_the_package_itself_may_be_named(tree):
    result = run(tree(plain_test=WITHOUT_MAIN) / "reverb")
    assert result.stdout.splitlines()[-1] == "1 passed, 0 failed", result.stdout + result.stderr


def test_each_test_that_fails_counts_once(tree):
    result = run(tree(mixed_test=FAILS))
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 3 failed"
    assert "failed: __main__.MixedTest.test_fails_in_two_parts" in result.stdout
    assert "OSError: the reason" in result.stdout and "cannot be set up" in result.stdout


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("time.sleep(600)", "did not end in 8 s in __main__.MidstTest.test_2_ends_here"),
        ("os.abort()", "ended with status -6 in __main__.MidstTest.test_2_ends_here"),
        ("os._exit(0)", "ended with status 0 in __main__.MidstTest.test_2_ends_here"),
    ],
)
def test_a_file_that_hangs_or_crashes_is_a_failure(tree, act, reason):
    source = tree(midst_test=IN_MIDST.format(act=act), plain_test=WITHOUT_MAIN)
    result = run(source, "--timeout=8")
    assert result.returncode == 1
    assert f"failed: {reason}" in result.stdout
    assert result.stdout.splitlines()[-1] == "2 passed, 1 failed", result.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import reverb", "no test ran"),
        ("import reverb.nowhere", "No module named 'reverb.nowhere'"),
    ],
)
def test_a_file_whose_tests_do_not_run_is_a_failure(tree, text, reason):
    result = run(tree(empty_test=text))
    assert result.returncode == 1 and reason in result.stdout
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_what_cannot_be_run(tree, tmp_path):
    for source, reason in (
        (tmp_path / "nowhere", "there is no folder"),
        (tmp_path, "has no folder reverb/"),
        (tree(), "there is no *_test.py in"),
    ):
        result = run(source)
        assert result.returncode == 2 and reason in result.stderr
        assert not result.stdout
