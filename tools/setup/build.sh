#!/bin/bash
# Configures and builds a preset; shows the compiler's output only as ninja does.
#
# usage: build.sh PRESET [TARGET...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/common.sh"
cd "$here/../.."

preset=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [[ ! -f build/$preset/build.ninja ]]; then
    Say "build: configuring build/$preset"
    Quiet "$log" cmake --preset "$preset" || Fail "CMake could not configure the preset $preset."
fi
Say "build: building build/$preset"
ninja -C "build/$preset" "$@" || Fail "the build of the preset $preset failed."
