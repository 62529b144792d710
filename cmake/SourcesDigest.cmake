# Writes a header with a digest of source files, for cache keys: cmake -D FOLDER=... -D OUTPUT=... -P SourcesDigest.cmake
#
# All sources below FOLDER, that of the compilers, count but tests and the kernel compiler's. The header is rewritten only when the digest changes.
file(GLOB_RECURSE sources RELATIVE ${FOLDER} ${FOLDER}/*.h ${FOLDER}/*.cpp ${FOLDER}/*.def ${FOLDER}/*.fbs)
list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cpp$")
list(FILTER sources EXCLUDE REGEX "(^|/)testing/")
list(FILTER sources EXCLUDE REGEX "^kernel/")
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
    file(SHA256 ${FOLDER}/${source} digest)
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
