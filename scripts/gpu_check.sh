#!/usr/bin/env bash
# gpu_check.sh [--cpu] [WHEELS]: checks and times everything about GPUs on this machine, in one call
# of nine minutes at most, and writes one JSON file to $OUT or benchmarks/results.
#
# The machine needs python3 (3.12) with NumPy, ml_dtypes and protobuf, and no network: the package
# comes from WHEELS (dist/wheel), which scripts/build_wheel.sh fills beforehand. PyTorch, JAX, CuPy,
# nvcc and compute-sanitizer are used where they are. --cpu runs the same steps on the CPU's twin,
# to prove the script where there is no GPU; that result goes to build/.
set -uo pipefail
cd "$(dirname "$0")/.."
device=cuda:0
small=()
if [ "${1:-}" = --cpu ]; then
  device=cpu
  shift
fi
wheels=$(realpath "${1:-dist/wheel}")
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
export PATH=$PATH:/usr/local/cuda/bin PYTHONUNBUFFERED=1

# Runs a command for so many seconds at most, and to the ninth minute.
limited() {
  local left=$((540 - SECONDS)) most=$1
  shift
  timeout -k 5 $((left < most ? (left > 0 ? left : 1) : most)) "$@"
}

"$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$scratch/site" \
  "$wheels"/*.whl || exit 1
export PYTHONPATH="$scratch/site${PYTHONPATH:+:$PYTHONPATH}"
if [ "$device" = cpu ]; then
  result=$PWD/build/gpu_check_cpu.json
  small=(--small)
  mkdir -p build
else
  result=${OUT:-$PWD/benchmarks/results}/gpu.json
  # Half of the memory that there is would be the default; a machine may show less than it gives.
  export GEAR_REVERB_PINNED_BYTES=$((48 << 30))
fi

# JAX would take most of the GPU's memory for itself.
export XLA_PYTHON_CLIENT_PREALLOCATE=false

compile() {
  if limited 90 nvcc -std=c++17 -O3 -I. --expt-relaxed-constexpr -arch=sm_90 -c "$1" \
    -o "$scratch/$(basename "$1").o"; then
    echo "ok: $1 compiles by itself"
  else
    echo "FAILED: $1 does not compile by itself"
    return 1
  fi
}

if command -v nvcc >/dev/null; then
  compilers=()
  for source in native/cuda/*.cu; do
    compile "$source" &
    compilers+=($!)
  done
  for compiler in "${compilers[@]}"; do wait "$compiler" || status=1; done
  if [ "$device" != cpu ]; then
    # From source, and not yet the wheel's: what a variant is compared with.
    limited 90 scripts/try_kernels.sh 32 256 --bytes 1000000000 || {
      echo "FAILED: the kernels alone"
      status=1
    }
  fi
else
  echo "skipped: compiling kernels from source: there is no nvcc"
fi

# Below everything runs in another directory: the installed package is to be used, not the tree's.
root=$PWD
cd "$scratch" || exit 1

if [ "$device" = cpu ]; then
  echo "skipped: compute-sanitizer: no GPU is to be used"
elif command -v compute-sanitizer >/dev/null; then
  if GEAR_REVERB_MEASURE=0 limited 90 compute-sanitizer --error-exitcode 9 "$python" -c \
    'import sys; from gear_reverb import _native as n
sys.exit(bool(n.cuda_self_test(0, 1, 1, large=False) + n.cuda_check_selection(0, 1, 2000)
              + n.cuda_check_draws(0, 1, 2)))' \
    >"$scratch/sanitizer.log" 2>&1; then
    echo "ok: compute-sanitizer finds nothing"
  elif grep -qi "device not supported" "$scratch/sanitizer.log"; then
    echo "skipped: compute-sanitizer does not support this machine's device"
  else
    tail -20 "$scratch/sanitizer.log"
    echo "FAILED: compute-sanitizer"
    status=1
  fi
else
  echo "skipped: compute-sanitizer is not installed"
fi

# What it measures last may run on for half a minute.
limited 540 "$python" "$root/benchmarks/gpu_check.py" --device "$device" --result "$result" \
  --seconds $((500 - SECONDS)) "${small[@]}" --commit "$(cat "$wheels/COMMIT" 2>/dev/null)" || status=1
exit $status
