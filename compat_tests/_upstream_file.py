"""Runs one file of Reverb's tests as the main program, for run_upstream.py, which starts it.

    python -m gear_reverb run _upstream_file.py PACKAGE FILE RESULTS

Writes to the file RESULTS, as they happen, lines `began|passed|failed|skipped<TAB>TEST`.
"""

import importlib.machinery
import pathlib
import runpy
import sys
import types
import unittest
from typing import TextIO


class TreeFinder:
    """Finds the modules that gear_reverb lacks in the source tree, as if they were its own.

    So the alias finds them too, and they are the same modules under both names.
    """

    def __init__(self, package: pathlib.Path):
        self._package = package

    def find_spec(self, fullname: str, path=None, target=None):
        root, _, rest = fullname.partition(".")
        if root != "gear_reverb" or not rest:
            return None
        folder = self._package.joinpath(*rest.split(".")[:-1])
        return importlib.machinery.PathFinder.find_spec(fullname, [str(folder)], target)


def record(results: TextIO) -> None:
    """Has every test's outcome written down, whichever runner and result classes it has."""

    def spy(method: str, outcome: str) -> None:
        given = getattr(unittest.TestResult, method)

        def with_note(self, test, *args):
            # Of a subtest's outcome, only failure says something about its test.
            if method != "addSubTest" or args[-1] is not None:
                print(outcome, test.id(), sep="\t", file=results, flush=True)
            return given(self, test, *args)

        setattr(unittest.TestResult, method, with_note)

    spy("startTest", "began")
    spy("addSuccess", "passed")
    spy("addExpectedFailure", "passed")
    spy("addSkip", "skipped")
    spy("addError", "failed")
    spy("addFailure", "failed")
    spy("addUnexpectedSuccess", "failed")
    spy("addSubTest", "failed")


def main() -> None:
    package, file, results = sys.argv[1:4]
    # Nothing of the tree's may be found beside `reverb`, least of all its folder `platform`.
    del sys.path[0]
    sys.meta_path.append(TreeFinder(pathlib.Path(package)))
    sys.argv[:] = [file]
    with open(results, "w") as stream:
        record(stream)
        names = runpy.run_path(file, run_name="__main__")
        # It did not run its tests itself, or SystemExit would have come out of it.
        module = types.ModuleType("__main__")
        module.__dict__.update(names)
        tests = unittest.defaultTestLoader.loadTestsFromModule(module)
        sys.exit(not unittest.TextTestRunner().run(tests).wasSuccessful())


if __name__ == "__main__":
    main()
