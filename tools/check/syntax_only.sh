#!/bin/bash
# Runs a compiler without making code: the object that it names holds no code. ccache keeps it (an empty one it would not).
# usage: syntax_only.sh COMPILER OPTION...
set -euo pipefail

object=""
for ((at = 1; at < $#; ++at)); do
    if [[ ${!at} == -o ]]; then
        next=$((at + 1))
        object=${!next}
    fi
done
"$@" -fsyntax-only
echo "looked at" >"$object"
