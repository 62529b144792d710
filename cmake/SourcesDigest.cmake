# Writes a header with a digest of source files, for cache keys: cmake -D ROOT=... -D OUTPUT=... -P SourcesDigest.cmake
#
# All sources of compiler/ below ROOT count but tests and the kernel compiler's, and the kernel templates of shaders/. The header is rewritten only
# when the digest changes.
file(GLOB_RECURSE sources RELATIVE ${ROOT}
     ${ROOT}/compiler/*.h ${ROOT}/compiler/*.cpp ${ROOT}/compiler/*.def ${ROOT}/compiler/*.fbs ${ROOT}/shaders/*.comp)
list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cpp$")
list(FILTER sources EXCLUDE REGEX "(^|/)testing/")
list(FILTER sources EXCLUDE REGEX "^compiler/kernel/")
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
    file(SHA256 ${ROOT}/${source} digest)
    string(APPEND all "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Generated from the graph compiler's sources.
#pragma once

#include <string_view>

namespace fornax::graph {

inline constexpr std::string_view kCompilerSources = "@digest@";

}  // namespace fornax::graph
]])
