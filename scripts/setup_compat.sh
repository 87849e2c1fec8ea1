#!/usr/bin/env bash
# Makes .venv-compat: dm-reverb, the TensorFlow it needs, and this package, on CPython 3.11, the
# last version that dm-reverb has wheels for. Status 3: there is no CPython 3.11 to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -x .venv-compat/bin/python ] && ! scripts/find_python.sh 3.11 >/dev/null; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  if command -v apt-get >/dev/null && command -v "${as_root[@]:-env}" >/dev/null; then
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends python3.11 python3.11-venv python3.11-dev || true
  fi
  if ! scripts/find_python.sh 3.11 >/dev/null && command -v uv >/dev/null; then
    uv python install 3.11 || true
  fi
fi
scripts/setup_venv.sh .venv-compat compat,demo,test 3.11
