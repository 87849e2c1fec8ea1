#!/usr/bin/env bash
# Checks that need no test run: style, layers, exported symbols, leftovers. Every check runs and
# prints one line `ok: …`, `FAILED: …` or `skipped: …`; status 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
status=0

check() {  # check NAME COMMAND...
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok: $name"
  else
    printf '%s\n' "$output"
    echo "FAILED: $name"
    status=1
  fi
}

all_files() {  # The tree's own files, NUL-separated; also where it is no git checkout.
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
  else
    find . -name '.?*' -prune -o \( -name build -o -name '*.egg-info' -o -name __pycache__ \) -prune \
      -o -type f -not -name '*.so' -printf '%P\0'
  fi | while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done
}

sources() {  # Those whose names match a regular expression.
  all_files | grep -zE "$1"
}

clang_format_is_clean() {
  sources '^(native|benchmarks)/.*\.(h|cc|cu|cuh)$' | xargs -0 "$bin/clang-format" --dry-run -Werror
}

# The module must show nothing but its entry point, or it clashes with other copies of gRPC in the
# process.
only_entry_point_is_exported() {
  local module symbols found=1
  for module in gear_reverb/_native.*.so; do
    [ -e "$module" ] || { echo "There is no built module; run 'make build'."; return 1; }
    symbols=$(nm -D --defined-only "$module" | awk '{print $NF}')
    [ "$symbols" = PyInit__native ] || { echo "$module exports: $symbols"; found=0; }
  done
  [ $found = 1 ]
}

no_leftovers() {
  ! all_files | grep -zv '^scripts/check.sh$' | xargs -0 grep -nIE \
    '\b(TODO|FIXME|XXX|HACK)\b|(^|[^A-Za-z0-9_.])/(home|root|Users)/'
}

files_hold_one_idea() {  # By a coarse measure: 450 lines.
  local long
  long=$(sources '\.(py|cc|h|cu|cuh|sh)$' | xargs -0 wc -l | awk '$2 != "total" && $1 > 450')
  [ -z "$long" ] || { echo "$long"; return 1; }
}

shell_scripts_parse() {
  local script
  for script in scripts/*.sh .ci/run; do bash -n "$script" || return 1; done
}

check "ruff check" "$bin/ruff" check .
check "ruff format" "$bin/ruff" format --check .
if [ -x "$bin/clang-format" ]; then
  check "clang-format" clang_format_is_clean
else
  echo "skipped: clang-format is not installed"
fi
check "layers" "$bin/python" scripts/check_layers.py
check "links in documents" "$bin/python" scripts/check_links.py
check "exported symbols" only_entry_point_is_exported
check "no leftovers" no_leftovers
check "file sizes" files_hold_one_idea
check "shell syntax" shell_scripts_parse
kernels=(build/native/CMakeFiles/gr_*_kernels.dir/native/*/*.cu.o)
if [ ! -e "${kernels[0]}" ]; then
  echo "skipped: CUDA kernels: there is no nvcc here, and no package of it could be had"
else
  output=$("$bin/python" scripts/check_kernels.py "${kernels[@]}" 2>&1)
  case $? in
    0) echo "ok: CUDA kernels do not spill, and load 16 bytes at a time" ;;
    3) echo "skipped: CUDA kernels: $output" ;;
    *) printf '%s\nFAILED: CUDA kernels\n' "$output"; status=1 ;;
  esac
fi
exit $status
