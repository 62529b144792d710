#!/bin/bash
# Fills .clients/ with real programs to run on Fornax: llama.cpp's Vulkan backend with its operator tests,
# and the newest lavapipe as a peer, all of a newer Debian suite. Root is not needed and nothing is
# installed: packages are unpacked into a folder and run through that folder's own dynamic loader.
# FORNAX_CLIENTS names another place, FORNAX_CLIENTS_SUITE another suite.
#
# usage: tools/clients/setup.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/unpack_packages.sh" "${FORNAX_CLIENTS:-$here/../../.clients}" llama.cpp-tests llama.cpp-tools libggml0-backend-vulkan \
    mesa-vulkan-drivers libvulkan1 vulkan-tools
