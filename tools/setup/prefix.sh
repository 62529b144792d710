#!/bin/bash
# Fills the prefix .deps/ with what the build needs newer than the distribution has it: Vulkan headers
# and vk.xml, volk, the SPIR-V headers and grammar, the programs glslang and spirv-{as,dis,val,opt}, and
# for the tests the Vulkan loader and the validation layers that know what the headers know. Also the
# headers of onnxruntime with its interface of plug-ins.
#
# Packages of a newer Debian suite are downloaded through a private apt configuration and unpacked;
# nothing is installed, root is not needed, and the system's apt state is not touched. The programs run
# through the prefix's own dynamic loader, because the suite's C library is newer than the machine's;
# for the same reason no library of the prefix may be linked; bin/with-prefix runs any program so. On a
# distribution that is new enough the prefix is only a set of links to the system's files.
#
# The prefix is filled under a temporary name and renamed, so an interrupted run leaves no half of one.
# FORNAX_DEPS names another place for it, FORNAX_DEPS_SUITE another suite.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup/common.sh
. "$here/common.sh"
# shellcheck source=tools/setup/debian_suite.sh
. "$here/debian_suite.sh"

readonly kLayoutVersion=3
readonly kSuite=${FORNAX_DEPS_SUITE:-forky}
readonly kMinVulkanHeader=350 # VK_HEADER_VERSION of Vulkan 1.4
readonly kMinGlslangMajor=16
readonly kPackages=(libvulkan-dev spirv-headers libvulkan-volk-dev glslang-tools spirv-tools
    libvulkan1 vulkan-validationlayers libonnxruntime-dev libc6 libstdc++6 libgcc-s1)
readonly kPrograms=(glslang spirv-as spirv-dis spirv-val spirv-opt)
# What a complete prefix holds; checked before the rename.
readonly kLayers=usr/share/vulkan/explicit_layer.d
readonly kExpected=("$kLayers/VkLayer_khronos_validation.json" usr/include/vulkan/vulkan_core.h
    usr/include/onnxruntime/onnxruntime_ep_c_api.h
    usr/include/vk_video usr/include/volk.h usr/include/volk.c usr/share/vulkan/registry/vk.xml usr/include/spirv/unified1/spirv.hpp11
    usr/include/spirv/unified1/spirv.core.grammar.json
    usr/include/spirv/unified1/extinst.glsl.std.450.grammar.json)

prefix=$(realpath -m "${FORNAX_DEPS:-$here/../../.deps}")
stamp="layout $kLayoutVersion suite $kSuite"

if [[ -f $prefix/stamp && $(head -n 1 "$prefix/stamp") == "$stamp" ]]; then
    Say "prefix: $prefix is complete"
    exit 0
fi
mkdir -p "$(dirname "$prefix")"

# Two set-ups at once would download twice and race for the name: the second waits and finds it done.
exec 8<"$(dirname "$prefix")"
flock 8
if [[ -f $prefix/stamp && $(head -n 1 "$prefix/stamp") == "$stamp" ]]; then
    Say "prefix: $prefix is complete"
    exit 0
fi

rm -rf "$prefix".new.*
fresh=$(mktemp -d "$prefix.new.XXXXXX")
chmod 755 "$fresh"
work=$(mktemp -d)
trap 'rm -rf "$fresh" "$work"' EXIT

SystemIsNewEnough() {
    local header major
    header=$(sed -nE 's/^#define VK_HEADER_VERSION ([0-9]+).*/\1/p' \
        /usr/include/vulkan/vulkan_core.h 2>/dev/null) || return 1
    [[ -n $header && $header -ge $kMinVulkanHeader ]] || return 1
    major=$(glslang --version 2>/dev/null | sed -nE 's/^Glslang Version: [0-9]*:?([0-9]+).*/\1/p')
    [[ -n $major && $major -ge $kMinGlslangMajor ]] || return 1
    local path
    for path in "${kExpected[@]}"; do [[ -e /$path ]] || return 1; done
    for path in "${kPrograms[@]}"; do command -v "$path" >/dev/null || return 1; done
}

FillFromSystem() {
    Say "prefix: this distribution's Vulkan packages are new enough; linking them into $prefix"
    mkdir -p "$fresh/bin"
    local path
    for path in "${kExpected[@]}" usr/include/spirv; do
        mkdir -p "$fresh/$(dirname "$path")"
        [[ -e $fresh/$path ]] || ln -s "/$path" "$fresh/$path"
    done
    for path in usr/include/vulkan usr/include/spirv usr/include/onnxruntime "$kLayers"; do
        rm -rf "${fresh:?}/$path"
        ln -s "/$path" "$fresh/$path"
    done
    for path in "${kPrograms[@]}"; do ln -s "$(command -v "$path")" "$fresh/bin/$path"; done
    printf '#!/bin/sh\nexec "$@"\n' >"$fresh/bin/with-prefix"
    chmod 755 "$fresh/bin/with-prefix"
}

FillFromSuite() {
    [[ $(. /etc/os-release && echo "${ID:-}") == debian ]] ||
        Fail "the Vulkan headers of this distribution are older than 1.4.$kMinVulkanHeader and it is not Debian, so there is no newer suite to take them from."
    Say "prefix: downloading ${#kPackages[@]} packages of Debian $kSuite into $prefix"
    OpenSuite "$work" "$kSuite"
    mkdir -p "$work/debs"
    (cd "$work/debs" && Quiet "$work/log" apt-get "${suite_options[@]}" download "${kPackages[@]/%//$kSuite}") ||
        Fail "apt could not download the packages of Debian $kSuite."
    local deb
    for deb in "$work"/debs/*.deb; do
        dpkg -x "$deb" "$fresh" || Fail "the package $(basename "$deb") could not be unpacked."
        basename "$deb" .deb >>"$work/versions"
    done

    local loader program
    loader=$(find "$fresh" -name 'ld-linux*.so.*' -not -type d | sort | head -n 1)
    [[ -n $loader ]] || Fail "the downloaded C library has no dynamic loader."
    local relative_loader=${loader#"$fresh"/}
    mkdir -p "$fresh/bin"
    cat >"$fresh/bin/with-prefix" <<WRAPPER
#!/bin/sh
# with-prefix PROGRAM [ARGUMENT...]: runs a program with the prefix's own loader and libraries.
self=\$(readlink -f "\$0")
root=\${self%/bin/*}
exec "\$root/$relative_loader" --library-path "\$root/$(dirname "$relative_loader")" "\$@"
WRAPPER
    chmod 755 "$fresh/bin/with-prefix"
    for program in "${kPrograms[@]}"; do
        cat >"$fresh/bin/$program" <<WRAPPER
#!/bin/sh
self=\$(readlink -f "\$0")
root=\${self%/bin/*}
exec "\$root/bin/with-prefix" "\$root/usr/bin/$program" "\$@"
WRAPPER
        chmod 755 "$fresh/bin/$program"
    done
}

versions=""
if SystemIsNewEnough; then
    FillFromSystem
else
    FillFromSuite
    versions=$(cat "$work/versions")
fi

for path in "${kExpected[@]}"; do
    [[ -e $fresh/$path ]] || Fail "the prefix lacks $path; the packages of $kSuite are laid out differently than expected."
done
for program in "${kPrograms[@]}"; do
    "$fresh/bin/$program" --version >"$work/log" 2>&1 || Fail "$program does not run: $(head -n 1 "$work/log")"
done
printf '%s\n%s\n' "$stamp" "$versions" >"$fresh/stamp"
rm -rf "$prefix"
mv "$fresh" "$prefix"
Say "prefix: done"
