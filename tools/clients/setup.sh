#!/bin/bash
# Fills .clients/ with real programs to run on Fornax: llama.cpp's Vulkan backend with its operator tests,
# and the newest lavapipe as a peer, all of a newer Debian suite. Root is not needed and nothing is
# installed: packages are unpacked into a folder and run through that folder's own dynamic loader.
# FORNAX_CLIENTS names another place, FORNAX_CLIENTS_SUITE another suite.
#
# usage: tools/clients/setup.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/../setup/common.sh"
# shellcheck source=tools/setup/debian_suite.sh
. "$here/../setup/debian_suite.sh"

readonly kSuite=${FORNAX_CLIENTS_SUITE:-forky}
readonly kPackages=(llama.cpp-tests llama.cpp-tools libggml0-backend-vulkan mesa-vulkan-drivers
    libvulkan1 vulkan-tools)

folder=$(realpath -m "${FORNAX_CLIENTS:-$here/../../.clients}")
stamp="suite $kSuite ${kPackages[*]}"
if [[ -f $folder/stamp && $(head -n 1 "$folder/stamp") == "$stamp" ]]; then
    Say "clients: $folder is complete"
    exit 0
fi

mkdir -p "$(dirname "$folder")"
rm -rf "$folder".new.*
fresh=$(mktemp -d "$folder.new.XXXXXX")
chmod 755 "$fresh"
work=$(mktemp -d)
trap 'rm -rf "$fresh" "$work"' EXIT

Say "clients: reading the package lists of Debian $kSuite"
OpenSuite "$work" "$kSuite"
Say "clients: downloading ${kPackages[*]} and what they need"
# With an empty list of installed packages apt names all that they need, the C library included.
: >"$work/status"
Quiet "$work/log" apt-get "${suite_options[@]}" -o "Dir::State::status=$work/status" -o Debug::NoLocking=1 \
    install --yes --download-only --no-install-recommends "${kPackages[@]}" ||
    Fail "apt could not download the packages of Debian $kSuite."
for deb in "$work"/cache/archives/*.deb; do
    dpkg -x "$deb" "$fresh" || Fail "the package $(basename "$deb") could not be unpacked."
    basename "$deb" .deb >>"$work/versions"
done
# Packages assume that lib is a link to usr/lib, as the suite has it.
for name in lib lib64; do
    if [[ -d $fresh/$name && ! -L $fresh/$name ]]; then
        mkdir -p "$fresh/usr/$name"
        cp -a "$fresh/$name/." "$fresh/usr/$name/"
        rm -rf "${fresh:?}/$name"
    fi
    ln -sfn "usr/$name" "$fresh/$name"
done
{ echo "$stamp"; cat "$work/versions"; } >"$fresh/stamp"
rm -rf "$folder"
mv "$fresh" "$folder"
Say "clients: done"
