#!/usr/bin/env bash
# test_pythons.sh REPORTS VERSION...: builds the package for each CPython VERSION and runs the quick
# tests, with the oldest NumPy that is supported where it has wheels for that CPython (up to 3.12),
# with the newest elsewhere. Leaves JUnit files in REPORTS, and a file `VERSION.missing` for a version
# that this machine lacks. The suite `python` has the newest NumPy.
set -uo pipefail
cd "$(dirname "$0")/.."
reports=$1
shift
status=0

for version in "$@"; do
  venv="build/pythons/$version"
  scripts/setup_venv.sh "$venv" test "$version"
  case $? in
    0) ;;
    3) echo "CPython $version is not on this machine" >"$reports/$version.missing"; continue ;;
    *) status=1; continue ;;
  esac
  case $version in
    3.10 | 3.11 | 3.12) numpy='==1.26.*' ;;
    *) numpy='>=2' ;;
  esac
  "$venv/bin/python" -m pip install --quiet --upgrade "numpy$numpy" || { status=1; continue; }
  "$venv/bin/python" -m pytest tests -q -m "not slow" --ignore-glob='tests/test_*_adapter.py' \
    --junitxml="$reports/$version.xml" || status=1
done
exit $status
