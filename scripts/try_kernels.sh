#!/usr/bin/env bash
# try_kernels.sh [ARGUMENTS]: compiles the collection kernels by themselves, for this machine's GPU, and
# checks and times them (benchmarks/gpu_kernels.cu has the arguments). Needs nvcc and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
nvcc -std=c++17 -O3 -I. --expt-relaxed-constexpr -arch=native -o "$scratch/gpu_kernels" \
  benchmarks/gpu_kernels.cu native/cuda/gather_kernel.cu
"$scratch/gpu_kernels" "$@"
