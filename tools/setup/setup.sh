#!/bin/bash
# Everything the build and the tests need, in three steps; each says what it does and costs milliseconds
# once done. ./demo and ./check call this first.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/packages.sh"
"$here/prefix.sh"
"$here/python.sh"
