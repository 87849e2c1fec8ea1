#!/usr/bin/env bash
# Builds the image of Dockerfile with docker, podman or buildah, whichever works here.
#
#   scripts/build_image.sh [--tag NAME] [--base IMAGE] [--bootstrap] [--cuda] [--extras LIST] [--tool TOOL]
#
#   --tag NAME     name of the image (gear-reverb)
#   --base IMAGE   the image to build on (Dockerfile's BASE_IMAGE)
#   --bootstrap    make the base with debootstrap instead of pulling one: for machines that reach a
#                  Debian mirror but no registry. As root. DEBOOTSTRAP_MIRROR overrides the mirror
#                  of this machine's apt.
#   --cuda         with kernels for GPUs; --base then wants an image for them
#   --extras LIST  extras of pyproject.toml to install too, such as "demo"
#   --tool TOOL    docker, podman or buildah
#
# This machine's settings for apt and pip and its certificate authorities are lent to the build; the
# image keeps none of them. Prints the tool and the image's name last. Status 3: no tool for it.
set -euo pipefail
cd "$(dirname "$0")/.."

tag=gear-reverb base= bootstrap= cuda= extras= tool=
while [ $# -gt 0 ]; do
  case "$1" in
    --tag | --base | --extras | --tool) declare "${1#--}=${2:?$1 needs a value}" && shift 2 ;;
    --bootstrap | --cuda) declare "${1#--}=1" && shift ;;
    *) echo "Unknown argument $1" >&2 && exit 2 ;;
  esac
done

works() {
  case "$1" in
    docker) docker info >/dev/null 2>&1 ;;
    podman) podman info >/dev/null 2>&1 ;;
    buildah) buildah version >/dev/null 2>&1 ;;
    *) return 1 ;;
  esac
}
if [ -z "$tool" ]; then
  for candidate in docker podman buildah; do
    if works "$candidate"; then tool=$candidate && break; fi
  done
  [ -n "$tool" ] || { echo "Neither docker, podman nor buildah works here." >&2 && exit 3; }
elif ! works "$tool"; then
  echo "$tool does not work here." >&2 && exit 3
fi

# Without these two, buildah needs kernel features that many containers do not have.
build=("$tool" build)
if [ "$tool" = buildah ]; then
  export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}
  # No layer is kept: with vfs every one is a full copy.
  # The other format has no health checks.
  build=(buildah build --layers=false --format docker)
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Makes the image $1 of a bare Debian.
make_base() {
  [ "$(id -u)" = 0 ] || { echo "--bootstrap needs root." >&2 && exit 3; }
  command -v debootstrap >/dev/null || { echo "--bootstrap needs debootstrap." >&2 && exit 3; }
  local mirror=${DEBOOTSTRAP_MIRROR:-}
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' | awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
  [ -n "$mirror" ] || { echo "No mirror of Debian 12 found; set DEBOOTSTRAP_MIRROR." >&2 && exit 3; }
  mkdir "$scratch/base"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$scratch/base/root" "$mirror"
  rm -rf "$scratch"/base/root/var/cache/apt/archives/*.deb "$scratch"/base/root/var/lib/apt/lists/*
  tar -C "$scratch/base/root" -cf "$scratch/base/root.tar" .
  rm -rf "$scratch/base/root"
  printf 'FROM scratch\nADD root.tar /\nCMD ["/bin/bash"]\n' >"$scratch/base/Dockerfile"
  "${build[@]}" --tag "$1" "$scratch/base"
}
if [ -n "$bootstrap" ]; then
  base=localhost/gear-reverb-debian:bookworm
  if [ -z "$("$tool" images --quiet "$base" 2>/dev/null)" ]; then make_base "$base"; fi
fi

# What apt and pip are told on this machine, but for what only has a meaning here: local paths.
secrets=()
lend() {
  [ -s "$2" ] && secrets+=(--secret "id=$1,src=$2")
}
if command -v apt-config >/dev/null; then
  apt-config dump | grep -E '^Acquire::[^ ]+ "[^"/]' >"$scratch/apt.conf" || true
  apt-config dump | grep -E '^Acquire::(http|https|ftp)::Proxy' >>"$scratch/apt.conf" || true
fi
for authorities in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt; do
  [ -s "$authorities" ] || continue
  echo 'Acquire::https::CAInfo "/run/build/ca.crt";' >>"$scratch/apt.conf"
  lend ca_certificates "$authorities"
  break
done
[ ! -e "$scratch/apt.conf" ] || lend apt_conf "$scratch/apt.conf"
if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
  {
    echo "[global]"
    python3 -m pip config list | sed -nE \
      "s/^[^=]*\.(index-url|extra-index-url|proxy|trusted-host|timeout|default-timeout)='(.*)'$/\1 = \2/p" |
      sed -E 's/^default-timeout/timeout/; s#file://[^ ]*##g' | grep -v '= *$' | sort -u -t= -k1,1 || true
  } >"$scratch/pip.conf"
  lend pip_conf "$scratch/pip.conf"
fi

arguments=(--build-arg "EXTRAS=$extras" --build-arg "CUDA=$cuda")
[ -z "$base" ] || arguments+=(--build-arg "BASE_IMAGE=$base")
"${build[@]}" "${arguments[@]}" "${secrets[@]}" --tag "$tag" .
echo "$tool $tag"
