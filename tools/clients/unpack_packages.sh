#!/bin/bash
# Unpacks packages of a newer Debian suite, with all that they need, into a folder whose programs run through the
# folder's own dynamic loader. Root is not needed and nothing is installed. A complete folder of the same packages stays as it is.
# FORNAX_CLIENTS_SUITE names another suite.
#
# usage: tools/clients/unpack_packages.sh FOLDER PACKAGE...
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/../setup/common.sh"
# shellcheck source=tools/setup/debian_suite.sh
. "$here/../setup/debian_suite.sh"

readonly kSuite=${FORNAX_CLIENTS_SUITE:-forky}
[[ $# -ge 2 ]] || Fail "unpack_packages.sh takes a folder and packages."
folder=$(realpath -m "$1")
shift
stamp="suite $kSuite $*"

# What compute_clients.py keeps in compute/ stays: a run that ended early may have left it beside the folder.
readonly old=$folder.old
BringBackClients() {
    if [[ -d $old/compute && ! -e $folder/compute ]]; then
        mkdir -p "$folder"
        mv "$old/compute" "$folder/" || return
    fi
    rm -rf "$old"
}
BringBackClients
if [[ -f $folder/stamp && $(head -n 1 "$folder/stamp") == "$stamp" ]]; then
    Say "clients: $folder is complete"
    exit 0
fi

mkdir -p "$(dirname "$folder")"
rm -rf "$folder".new.*
fresh=$(mktemp -d "$folder.new.XXXXXX")
chmod 755 "$fresh"
work=$(mktemp -d)
trap 'rm -rf "$fresh" "$work"; BringBackClients' EXIT

Say "clients: reading the package lists of Debian $kSuite"
OpenSuite "$work" "$kSuite"
Say "clients: downloading $* and what they need"
# With an empty list of installed packages apt names all that they need, the C library included.
: >"$work/status"
Quiet "$work/log" apt-get "${suite_options[@]}" -o "Dir::State::status=$work/status" -o Debug::NoLocking=1 \
    install --yes --download-only --no-install-recommends "$@" ||
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
if [[ -d $folder ]]; then mv "$folder" "$old"; fi
mv "$fresh" "$folder"
BringBackClients
Say "clients: done"
