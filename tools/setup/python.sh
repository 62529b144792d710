#!/bin/bash
# Makes the Python environment .venv in the source tree from requirements.txt. One that was cut off, or
# was made by another Python or for other requirements, is made anew.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/common.sh"

venv=$(realpath -m "$here/../../.venv")
requirements=$here/requirements.txt
stamp="$(python3 --version) $(sha256sum <"$requirements")"

exec 8<"$(dirname "$venv")"
flock 8
if [[ -f $venv/stamp && $(<"$venv/stamp") == "$stamp" ]]; then
    Say "python: $venv is complete"
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
Say "python: installing $(grep -vc '^#' "$requirements") packages into $venv"
rm -rf "$venv"
Quiet "$log" python3 -m venv "$venv" || Fail "python3 could not make a virtual environment."
Quiet "$log" "$venv/bin/python3" -m pip install --quiet --no-input --disable-pip-version-check \
    --requirement "$requirements" ||
    Fail "pip could not install the packages of tools/setup/requirements.txt."
echo "$stamp" >"$venv/stamp"
Say "python: done"
