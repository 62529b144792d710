// Files without names that hold what devices and processes share: memory, and the words of
// timelines. A file of this kind can never shrink, so a mapping of it never faults.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace fornax::hal {

// A new file of zeros whose size is fixed. `what` is seen in /proc only.
Result<UniqueFd> CreateSharedFile(const char* what, uint64_t size_bytes);

// kInvalidArgument unless `file` is one that CreateSharedFile made, of at least `size_bytes`.
Status CheckSharedFile(int file, uint64_t size_bytes);

// A second descriptor of the same file, which programs that are started do not inherit.
Result<UniqueFd> DuplicateFile(int file);

// The failure of a system call, with what errno says.
Error SystemError(ErrorCode code, const std::string& what);

}  // namespace fornax::hal
