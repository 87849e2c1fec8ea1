#!/usr/bin/env bash
# make_import_envs.sh [NAME ...]: makes the environments in which tests/test_import_orders.py loads us
# beside other native libraries; by default both:
#
#   compat   .venv-compat   TensorFlow 2.15, dm-reverb, PyTorch, JAX   (CPython 3.11)
#   newest   .venv-newest   the newest TensorFlow, PyTorch, JAX
#
# They take about 3 GB each, and minutes to fetch; nothing is done when nothing changed. A library
# that cannot be had here is left out, and said so: the test then covers the others.
# Status 3: no CPython for it was found. Status 4: not enough room on the disk.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the wheels need while they are fetched and unpacked.
ROOM_GB=8
# Some indices have PyTorch for the CPU alone in this version; everywhere else the wheel brings
# gigabytes of CUDA along, and is taken only if GEAR_REVERB_TORCH_CUDA=1.
TORCH=torch==2.13.0

require_room() {
  local free
  free=$(df --output=avail -BG . | tail -1 | tr -dc 0-9)
  if [ "$free" -lt "$ROOM_GB" ]; then
    echo "Only $free GB are free, $ROOM_GB GB are needed." >&2
    exit 4
  fi
}

# Whether installing the requirements would bring CUDA's libraries along.
brings_cuda() {
  local python=$1 report
  shift
  report=$("$python" -m pip install --quiet --dry-run --report - "$@" 2>/dev/null) || return 1
  grep -q '"name": "nvidia-' <<<"$report"
}

# add PYTHON REQUIREMENT...: installs them without touching the versions of what is there.
add() {
  local python=$1 constraints
  shift
  constraints=$(mktemp)
  "$python" -m pip freeze --exclude-editable >"$constraints"
  if "$python" -m pip install --quiet --constraint "$constraints" "$@"; then
    rm -f "$constraints"
    return 0
  fi
  rm -f "$constraints"
  echo "Left out, cannot be installed here: $*" >&2
  return 1
}

add_torch() {
  local python=$1 wanted
  for wanted in "$TORCH" torch; do
    if [ "${GEAR_REVERB_TORCH_CUDA:-0}" != 1 ] && brings_cuda "$python" "$wanted"; then
      echo "Left out, it would bring CUDA along: $wanted (GEAR_REVERB_TORCH_CUDA=1 takes it)" >&2
      continue
    fi
    add "$python" "$wanted" && return 0
  done
  return 0
}

# complete DIR REQUIREMENT...: adds PyTorch and the requirements, once for this script's contents.
complete() {
  local directory=$1 python=$1/bin/python stamp=$1/.import-orders wanted
  shift
  wanted="$(sha256sum scripts/make_import_envs.sh) ${GEAR_REVERB_TORCH_CUDA:-0}"
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  require_room
  echo "Adding PyTorch and $* to $directory"
  add_torch "$python"
  local requirement
  for requirement in "$@"; do
    add "$python" "$requirement" || true
  done
  echo "$wanted" >"$stamp"
}

for name in "${@:-compat newest}"; do
  for environment in $name; do
    case $environment in
      compat)
        scripts/setup_compat.sh
        # The last JAX that takes the ml_dtypes of TensorFlow 2.15.
        complete .venv-compat 'jax<0.4.36'
        ;;
      newest)
        # 3.11 first: one build of the native module then serves both environments.
        scripts/setup_venv.sh .venv-newest test 3.11 3.12 3.13 3.10
        complete .venv-newest tensorflow jax
        ;;
      *)
        echo "No such environment: $environment (compat, newest)" >&2
        exit 2
        ;;
    esac
  done
done
