#!/usr/bin/env bash
# setup_acme.sh          makes .venv-acme: dm-reverb, Acme with what its agents need, and this package,
#                        on CPython 3.11. Takes 3 GB and minutes.
# setup_acme.sh adders   adds to .venv-compat Acme and what its adders need.
# Both take a second when nothing changed. Status 3: there is no CPython 3.11. Status 4: not enough
# room on the disk.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/pip_helpers.sh
pins=examples/acme/requirements.txt

case ${1:-agents} in
  agents)
    directory=.venv-acme
    [ -d "$directory" ] || require_room 6
    scripts/setup_venv.sh "$directory" compat,test 3.11
    mapfile -t wanted < <(grep -vE '^(#|$|dm-acme)' "$pins")
    ;;
  adders)
    directory=.venv-compat
    scripts/setup_compat.sh
    mapfile -t wanted < <(grep -E '^(dm-env|jax|jaxlib)==' "$pins")
    ;;
  *)
    echo "usage: $0 [agents|adders]" >&2
    exit 2
    ;;
esac

stamp="$directory/.acme"
state=$(cat scripts/setup_acme.sh scripts/pip_helpers.sh "$pins" | sha256sum)
[ "$(cat "$stamp" 2>/dev/null)" != "$state" ] || exit 0
add "$directory/bin/python" "${wanted[@]}"
"$directory/bin/python" -m pip install --quiet --no-deps "$(grep '^dm-acme' "$pins")"
echo "$state" >"$stamp"
