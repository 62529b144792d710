// How much memory the control groups of Linux let this process have: a container's limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fornax::hal {

// The least of the limits of this process's own group and of every group above it that can be seen,
// in bytes; nothing where no group has a limit. Version 1, version 2 and both at once (a hybrid
// system, where one of them has the memory) are understood. A limit that throttles (memory.high)
// counts like one that kills (memory.max).
//
// Reads /proc/self/cgroup and /proc/self/mountinfo, and the files of the groups where these say
// that the groups are. All these paths begin with `root`, so that tests can have a tree of theirs.
std::optional<uint64_t> ControlGroupMemoryBytes(const std::string& root = "");

}  // namespace fornax::hal
