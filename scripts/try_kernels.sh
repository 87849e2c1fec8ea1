#!/usr/bin/env bash
# try_kernels.sh [ARGUMENTS]: compiles the collection kernels by themselves, for the architecture ARCH
# (sm_90), and checks and times them on this machine's GPU (benchmarks/gpu/gpu_kernels.cu has the
# arguments). Needs nvcc and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
nvcc -std=c++17 -O3 -I. --expt-relaxed-constexpr -arch="${ARCH:-sm_90}" \
  -o "$scratch/gpu_kernels" benchmarks/gpu/gpu_kernels.cu native/cuda/gather_kernel.cu
"$scratch/gpu_kernels" "$@"
