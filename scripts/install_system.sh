#!/usr/bin/env bash
# Installs what is missing of scripts/system_packages.txt: by apt where there is apt, otherwise it
# says what to install. Does nothing, in well under a second, when nothing is missing.
set -euo pipefail
list="$(cd "$(dirname "$0")" && pwd)/system_packages.txt"

# Whether the command, <header> or (archive) of the list's second column can be found.
present() {
  case "$1" in
    \<*) echo "#include $1" | "${CXX:-g++}" -std=c++20 -x c++ -E - >/dev/null 2>&1 ;;
    \(*) local name="${1:1:-1}" && [ -e "$("${CXX:-g++}" -print-file-name="$name" 2>/dev/null)" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
while read -r package probe; do
  if command -v dpkg-query >/dev/null; then
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      missing+=("$package")
  else
    present "$probe" || missing+=("$package $probe")
  fi
done < <(grep -v '^#' "$list")
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "This system has no apt. Please install what these Debian packages hold, then try again:" >&2
  printf '  %s\n' "${missing[@]}" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Please run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing system packages: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "${missing[@]}")
# The package lists may be absent or old; fetch them only then.
"${install[@]}" || { "${as_root[@]}" apt-get update && "${install[@]}"; }
