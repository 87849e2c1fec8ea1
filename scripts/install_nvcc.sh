#!/usr/bin/env bash
# Puts into .venv-cuda, from packages, what this machine lacks of CUDA's tools: the compiler, and the
# disassembler that the checks read kernels with. Does nothing where both are on the PATH. Status 3:
# they cannot be had; kernels are then left out of the build, and checks of them say so.
set -uo pipefail
cd "$(dirname "$0")/.."
version=13.0

packages=()
if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
  for package in nvcc crt runtime cccl; do packages+=("nvidia-cuda-$package==$version.*"); done
  packages+=("nvidia-nvvm==$version.*")
fi
# The disassembler came as a package later, and reads what an older compiler wrote.
command -v cuobjdump >/dev/null ||
  packages+=("nvidia-cuda-cuobjdump>=13.2" "nvidia-cuda-nvdisasm>=13.2")
[ ${#packages[@]} -gt 0 ] || exit 0

stamp=.venv-cuda/.installed
[ "$(cat "$stamp" 2>/dev/null)" != "${packages[*]}" ] || exit 0
echo "Installing into .venv-cuda: ${packages[*]}"
rm -rf .venv-cuda
base=$(scripts/find_python.sh 3.11 3.12 3.13 3.10) && "$base" -m venv .venv-cuda &&
  .venv-cuda/bin/python -m pip install --quiet --only-binary :all: "${packages[@]}" || {
  rm -rf .venv-cuda
  echo "CUDA's tools cannot be had here." >&2
  exit 3
}
# As CMake and nvcc look for the libraries of an installed toolkit.
for libraries in .venv-cuda/lib/python3*/site-packages/nvidia/cu*/lib; do
  [ ! -e "$libraries/libcudart_static.a" ] || ln -s lib "$(dirname "$libraries")/lib64"
  for library in "$libraries"/libcudart.so.*; do
    [ ! -e "$library" ] || ln -s "$(basename "$library")" "$libraries/libcudart.so"
  done
done
echo "${packages[*]}" >"$stamp"
