#!/bin/bash
# Installs the distribution's packages that the build and the tests need. Does nothing, quickly, when all
# are there. Needs root, or sudo that asks nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/common.sh"

# docs/dependencies.md says what each is for.
readonly kPackages=(
    # Tools
    cmake ninja-build ccache clang-19 clang-format-19 clang-tidy-19 lld-19 libclang-rt-19-dev g++ python3 python3-dev python3-venv
    # Linked into the driver
    llvm-19-dev libzstd-dev zlib1g-dev libxml2-dev libz3-dev libfmt-dev libxxhash-dev libsodium-dev
    # Linked into the command, tests and benchmarks
    libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libonnx-dev libprotobuf-dev protobuf-compiler
    libflatbuffers-dev flatbuffers-compiler libminizip-dev libpng-dev libturbojpeg0-dev libgtest-dev libgmock-dev libbenchmark-dev
    # Programs in C for RISC-V without an operating system, and the machine that runs them in the tests
    gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc
    # A browser, in which the tests look at pages
    chromium
    # Vulkan's loader, its validation layers, and lavapipe to compare with
    libvulkan1 vulkan-tools vulkan-validationlayers mesa-vulkan-drivers)

[[ -x /usr/bin/dpkg-query && -x /usr/bin/apt-get ]] ||
    Fail "this machine has no apt; install the equivalents of these packages by hand: ${kPackages[*]}"

missing=()
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' | sed -n 's/ installed$//p')
for package in "${kPackages[@]}"; do
    grep -qx "$package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
    Say "packages: all ${#kPackages[@]} are installed"
    exit 0
fi

as_root=()
if [[ $EUID -ne 0 ]]; then
    sudo -n true 2>/dev/null ||
        Fail "packages are missing and this is neither root nor an account with sudo; have an administrator run: apt-get install ${missing[*]}"
    as_root=(sudo -n)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
Say "packages: reading the package lists"
Quiet "$log" "${as_root[@]}" apt-get -q update ||
    Fail "apt could not read the package lists of this machine's sources."
Say "packages: installing ${missing[*]} and what they need"
Quiet "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install "${missing[@]}" ||
    Fail "apt could not install the packages above."
Say "packages: done"
