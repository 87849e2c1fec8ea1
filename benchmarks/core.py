"""Runs the benchmarks of the core: `core_draw.py`, then `core_writer.py`.

    python benchmarks/core.py [--writer-python .venv-compat/bin/python]

`core_draw.py` runs in this environment, `core_writer.py` in one that has dm-reverb too. Arguments
that are not this file's go to both.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys

_HERE = pathlib.Path(__file__).resolve().parent
_COMPAT = _HERE.parent / ".venv-compat" / "bin" / "python"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writer-python", default=str(_COMPAT))
    arguments, others = parser.parse_known_args()
    if importlib.util.find_spec("cpprb") is None:
        print(f"cpprb is missing: {sys.executable} -m pip install -e '.[bench]'", file=sys.stderr)
        return 2
    probe = "import gear_reverb, reverb, rich"
    if (
        not pathlib.Path(arguments.writer_python).exists()
        or subprocess.run([arguments.writer_python, "-c", probe], capture_output=True).returncode
    ):
        print(
            f"{arguments.writer_python} lacks gear_reverb, dm-reverb or rich: "
            "scripts/setup_compat.sh makes it; then .venv-compat/bin/pip install rich",
            file=sys.stderr,
        )
        return 2
    runs = ((sys.executable, "core_draw.py"), (arguments.writer_python, "core_writer.py"))
    codes = [
        subprocess.run([python, str(_HERE / name), *others]).returncode for python, name in runs
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
