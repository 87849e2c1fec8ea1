#!/usr/bin/env bash
# test_pythons.sh REPORTS VERSION...: builds the package for each CPython VERSION and runs the quick
# tests with the oldest NumPy that is supported, where it has wheels, and with the newest. Leaves
# JUnit files in REPORTS, and a file `VERSION.missing` for a version that this machine lacks.
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
  for numpy in '1.26.*' '>=2'; do
    # NumPy 1.26 has wheels up to CPython 3.12.
    [ "$numpy$version" != '1.26.*3.13' ] || continue
    "$venv/bin/python" -m pip install --quiet --upgrade "numpy${numpy/#1/==1}" || { status=1; continue; }
    "$venv/bin/python" -m pytest tests -q -m "not slow" --ignore-glob='tests/test_*_adapter.py' \
      --junitxml="$reports/$version-numpy${numpy//[^0-9]/}.xml" || status=1
  done
done
exit $status
