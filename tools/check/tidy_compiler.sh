#!/bin/bash
# clang-tidy in a compiler's clothes, so that ccache keeps what it found: tidy.py calls it through ccache with a
# source's command line. A source without findings gives an object that says so, which ccache stores under the hash of the
# source and of all that it includes; findings are a failed compilation, which it never stores.
set -euo pipefail

object=""
source=""
options=()
while (($# != 0)); do
    case $1 in
        -E) preprocess=1 options+=("$1") ;;
        -o) object=$2 options+=("$1" "$2") && shift ;;
        *.cpp | *.c) source=$1 options+=("$1") ;;
        *) options+=("$1") ;;
    esac
    shift
done
if [[ -n ${preprocess:-} ]]; then
    exec clang++-19 "${options[@]}"
fi
# It counts what it left out on standard error; findings are on standard output.
if ! findings=$(clang-tidy-19 --quiet "$source" -- "${options[@]}" 2>&1); then
    sed -E '/^[0-9]+ warnings? (and [0-9]+ errors? )?generated/d; /^Suppressed /d' <<<"$findings" >&2
    exit 1
fi
echo "no findings" >"$object"
