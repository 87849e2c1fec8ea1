# Sourced by the scripts that make environments with PyTorch and its like.

# Some indices have PyTorch for the CPU alone in this version; everywhere else the wheel brings
# gigabytes of CUDA along, and is taken only if GEAR_REVERB_TORCH_CUDA=1.
TORCH=torch==2.13.0

# require_room GIGABYTES: status 4 if the disk has less room for an environment.
require_room() {
  local free
  free=$(df --output=avail -BG . | tail -1 | tr -dc 0-9)
  if [ "$free" -lt "$1" ]; then
    echo "Only $free GB are free, $1 GB are needed." >&2
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

# add_torch PYTHON VERSION...: the first of these versions that may be had; status 1 if none.
add_torch() {
  local python=$1 wanted
  shift
  for wanted in "$@"; do
    if [ "${GEAR_REVERB_TORCH_CUDA:-0}" != 1 ] && brings_cuda "$python" "$wanted"; then
      echo "Left out, it would bring CUDA along: $wanted (GEAR_REVERB_TORCH_CUDA=1 takes it)" >&2
      continue
    fi
    add "$python" "$wanted" && return 0
  done
  return 1
}
