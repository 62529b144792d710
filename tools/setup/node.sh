#!/bin/bash
# Installs the JavaScript packages of the tests into .node/ in the source tree, with the npm of the
# Python environment: what tools/setup/node/package-lock.json names, and nothing of theirs is run.
# One that was cut off, or is of another list, is made anew.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/common.sh"

root=$(realpath -m "$here/../..")
modules=$root/.node
stamp=$(cat "$here"/node/package*.json | sha256sum)

exec 8<"$root"
flock 8
if [[ -f $modules/stamp && $(<"$modules/stamp") == "$stamp" ]]; then
    Say "node: $modules is complete"
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
Say "node: installing llama.cpp, its JavaScript interface and ECharts into $modules"
rm -rf "$modules"
mkdir "$modules"
cp "$here"/node/package*.json "$modules"
# Optional packages are those of other platforms, some of which no registry has; `npm ci` insists on them.
Quiet "$log" env PATH="$root/.venv/bin:$PATH" npm install --prefix "$modules" --ignore-scripts \
    --omit=optional --no-audit --no-fund ||
    Fail "npm could not install the packages of tools/setup/node/package-lock.json."
echo "$stamp" >"$modules/stamp"
Say "node: done"
