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

. scripts/pip_helpers.sh

# complete DIR REQUIREMENT...: adds PyTorch and the requirements, once for this script's contents.
complete() {
  local directory=$1 python=$1/bin/python stamp=$1/.import-orders wanted
  shift
  wanted="$(sha256sum scripts/make_import_envs.sh scripts/pip_helpers.sh) ${GEAR_REVERB_TORCH_CUDA:-0}"
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  require_room "$ROOM_GB"
  echo "Adding PyTorch and $* to $directory"
  add_torch "$python" "$TORCH" torch || true
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
