// What native code is cached under.
#pragma once

#include "base/hash.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {

// Everything that the native code of a request depends on: the request, the target, the kernel ABI
// and the build of this library.
Hash128 HashRequest(const CompileRequest& request, const TargetInfo& target);

// Identifies the library or program that this function is linked into: its build id, or the path,
// size and time of its file if it has none. Empty only if nothing could be found out; code made
// by such a build is not kept on disk.
const std::string& BuildIdentity();

}  // namespace fornax::kernel
