// What native code is cached under.
#pragma once

#include <string>
#include <string_view>

#include "base/hash.h"
#include "compiler/kernel/interface/compile_request.h"
#include "compiler/kernel/interface/target_info.h"

namespace fornax::kernel {

// Everything that the native code of a request depends on: the request, the target, the kernel ABI
// and `build`, which says what compiles it.
Hash128 HashRequest(const CompileRequest& request,
                    const TargetInfo& target,
                    std::string_view build);

// Identifies the library or program that this function is linked into: its build id, or the path,
// size and time of its file if it has none. Empty only if nothing could be found out; code made
// by such a build is not kept on disk.
const std::string& BuildIdentity();

// The same of a library's file that need not be loaded; empty if it cannot be read.
std::string FileBuildIdentity(const std::string& path);

}  // namespace fornax::kernel
