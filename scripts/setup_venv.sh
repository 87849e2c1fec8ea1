#!/usr/bin/env bash
# setup_venv.sh DIR EXTRAS VERSION...: makes the virtual environment DIR of the first CPython
# VERSION there is, with this package in editable form and its EXTRAS ("demo,test"), and builds the
# native module for it. Takes a second or two when nothing changed. Status 3: no such CPython.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1 extras=$2
shift 2
python="$directory/bin/python"

if ! "$python" -c 'import pip' 2>/dev/null; then
  base=$(scripts/find_python.sh "$@") || {
    echo "No CPython $* with venv and headers was found (Debian: python3-venv, python3-dev)." >&2
    exit 3
  }
  echo "Making $directory of $base"
  rm -rf "$directory"
  "$base" -m venv "$directory"
fi

# The stamp lies in the environment, so that it goes with it.
stamp="$directory/.installed-${extras//,/-}"
wanted=$(sha256sum pyproject.toml)
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
  "$python" setup.py --quiet build_ext --inplace
else
  mapfile -t build_requires < <("$python" - <<'PY'
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["build-system"]["requires"], sep="\n")
PY
  )
  "$python" -m pip install --quiet "${build_requires[@]}"
  # First by itself: pip would hide the compiler's output.
  "$python" setup.py --quiet build_ext --inplace
  "$python" -m pip install --quiet --no-build-isolation --editable ".[$extras]"
  echo "$wanted" >"$stamp"
fi
