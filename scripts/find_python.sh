#!/usr/bin/env bash
# find_python.sh VERSION...: prints the path of the first CPython of one of these versions
# ("3.11") that can make a virtual environment and has its headers; status 1 if there is none.
set -uo pipefail

usable() {
  "$1" - "$2" 2>/dev/null <<'PY'
import os, platform, sys, sysconfig
import ensurepip, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
wanted = tuple(map(int, sys.argv[1].split(".")))
good = platform.python_implementation() == "CPython" and os.path.exists(header)
sys.exit(not (good and sys.version_info[:2] == wanted))
PY
}

for version in "$@"; do
  candidates=("python3" "python$version" "/usr/bin/python$version" "/usr/local/bin/python$version")
  if command -v pyenv >/dev/null; then
    candidates+=("$(pyenv root)"/versions/"$version"*/bin/python)
  fi
  if command -v uv >/dev/null; then
    candidates+=("$(uv python find --no-project "$version" 2>/dev/null || true)")
  fi
  for candidate in "${candidates[@]}"; do
    if [ -n "$candidate" ] && path=$(command -v "$candidate") && usable "$path" "$version"; then
      # Past the shims of version managers, which answer according to the working directory.
      "$path" -c 'import os, sys; print(os.path.realpath(sys.executable))'
      exit 0
    fi
  done
done
exit 1
