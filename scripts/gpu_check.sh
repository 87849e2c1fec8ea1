#!/usr/bin/env bash
# gpu_check.sh [--cpu] [WHEELS]: checks and times everything about GPUs on this machine, in one call
# of nine minutes at most, and writes gpu.json to $OUT or benchmarks/results. Where $OUT is set, it
# also gets gpu.log (all that is printed), try_kernels.log and sanitizer.log.
#
# The machine needs python3 (3.12) with NumPy, ml_dtypes and protobuf, and no network: the package
# comes from WHEELS (dist/wheel), which scripts/build_wheel.sh fills beforehand. PyTorch, JAX, CuPy,
# nvcc and compute-sanitizer are used where they are. ARCH: the GPU's (sm_90). --cpu runs the same
# steps on the CPU's twin, to prove the script where there is no GPU; that result goes to build/.
set -uo pipefail
cd "$(dirname "$0")/.."
if [ -n "${OUT:-}" ] && [ -z "${GPU_CHECK_IS_LOGGED:-}" ]; then
  mkdir -p "$OUT"
  GPU_CHECK_IS_LOGGED=1 "scripts/$(basename "$0")" "$@" 2>&1 | tee "$OUT/gpu.log"
  exit "${PIPESTATUS[0]}"
fi
device=cuda:0
options=()
if [ "${1:-}" = --cpu ]; then
  device=cpu
  shift
fi
wheels=$(realpath "${1:-dist/wheel}")
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
root=$PWD
logs=${OUT:-$scratch}
export PATH=$PATH:/usr/local/cuda/bin PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1
export ARCH=${ARCH:-sm_90}
ulimit -c 0  # A process that is ended may have pinned most of the memory.

# Runs a command for so many seconds at most, and to the ninth minute.
limited() {
  local left=$((540 - SECONDS)) most=$1
  shift
  timeout -s ABRT -k 5 $((left < most ? (left > 0 ? left : 1) : most)) "$@"
}

"$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$scratch/site" \
  "$wheels"/*.whl || exit 1
export PYTHONPATH="$scratch/site${PYTHONPATH:+:$PYTHONPATH}"
if [ "$device" = cpu ]; then
  result=$root/build/gpu_check_cpu.json
  options=(--small)
  mkdir -p build
else
  result=${OUT:-$root/benchmarks/results}/gpu.json
  options=(--logs "$logs")
  # Half of the memory that there is would be the default; a machine may show less than it gives.
  export GEAR_REVERB_PINNED_BYTES=$((48 << 30))
fi

# JAX would take most of the GPU's memory for itself.
export XLA_PYTHON_CLIENT_PREALLOCATE=false

compile() {
  if limited 120 nvcc -std=c++17 -O3 -I. --expt-relaxed-constexpr -arch="$ARCH" -c "$1" \
    -o "$scratch/$(basename "$1").o"; then
    echo "ok: $1 compiles by itself"
  else
    echo "FAILED: $1 does not compile by itself"
    return 1
  fi
}

compilers=()
if command -v nvcc >/dev/null; then
  for source in native/cuda/*.cu; do
    compile "$source" &
    compilers+=($!)
  done
  if [ "$device" != cpu ]; then
    # From source, and not yet the wheel's: what a variant is compared with.
    limited 90 scripts/try_kernels.sh 32 256 --bytes 1000000000 2>&1 |
      tee "$logs/try_kernels.log" || {
      echo "FAILED: the kernels alone"
      status=1
    }
  fi
else
  echo "skipped: compiling kernels from source: there is no nvcc"
fi

# What runs at the end may run on for half a minute. In another directory: the installed package is
# to be used, not the tree's.
(
  cd "$scratch" &&
    limited 540 "$python" "$root/benchmarks/gpu/gpu_check.py" --device "$device" --result "$result" \
      --seconds $((500 - SECONDS)) "${options[@]}" \
      --commit "$(cat "$wheels/COMMIT" 2>/dev/null)"
) || status=1
for compiler in "${compilers[@]}"; do wait "$compiler" || status=1; done
exit $status
