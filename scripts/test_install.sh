#!/usr/bin/env bash
# What a user does: `pip install` with pip's build isolation into a clean environment, then a round
# trip from outside the source tree.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$(scripts/find_python.sh 3.11 3.12 3.13 3.10)" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet "$root"
cd "$scratch"
venv/bin/python - <<'PY'
import pathlib
import sys

import gear_reverb
from gear_reverb import _native
from gear_reverb._version import __version__

assert _native.__version__ == __version__, (_native.__version__, __version__)
assert "site-packages" in pathlib.Path(gear_reverb.__file__).parts, gear_reverb.__file__
server = gear_reverb.Server([gear_reverb.Table.queue("queue", max_size=2)])
client = server.localhost_client()
client.insert([1, 2], {"queue": 1.0})
(sample,) = client.sample("queue", num_samples=1)
assert [int(x) for x in sample[0].data] == [1, 2], sample
server.stop()
print("Installed and used gear_reverb", __version__, "on CPython", sys.version.split()[0])
PY
