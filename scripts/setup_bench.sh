#!/usr/bin/env bash
# Makes .venv-bench: this package beside everything that `make bench` compares it with, on CPython
# 3.11, the last version that dm-reverb has wheels for. Takes 4 GB and minutes, and a second when
# nothing changed. Status 3: there is no CPython 3.11. Status 4: not enough room on the disk.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/pip_helpers.sh

scripts/setup_venv.sh .venv-bench compat,bench 3.11
python=.venv-bench/bin/python
stamp=.venv-bench/.peers
wanted="$(cat scripts/setup_bench.sh scripts/pip_helpers.sh scripts/bench_requirements.txt | sha256sum)"
wanted+=" ${GEAR_REVERB_TORCH_CUDA:-0}"
[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || exit 0

require_room 8
peers=(-r scripts/bench_requirements.txt)
if ! add_torch "$python" "$TORCH"; then
  without=$(mktemp)
  trap 'rm -f "$without"' EXIT
  grep -vE '^(tensordict|torchrl)' scripts/bench_requirements.txt >"$without"
  peers=(-r "$without")
  echo "Left out with PyTorch: TorchRL" >&2
fi
add "$python" "${peers[@]}"
echo "$wanted" >"$stamp"
