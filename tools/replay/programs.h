// Several programs at once on one described device: each has its own queues, all begin at once, and
// what they contend for is the replay's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/replay/profile.h"

namespace fornax::tool {

struct Program {
    std::string name;
    std::vector<npu::Record> records;
};

// The records of all, one program after the other. Of several, names of records begin with the
// program's, and queues have other numbers. Fails where there would be more than kMaxQueues.
Result<std::vector<npu::Record>> Together(std::span<const Program> programs);

// How long each takes alone and beside the others, for a profile of Together(); nothing of one
// program.
Result<std::vector<ProgramTime>> ProgramTimesOf(std::span<const Program> programs,
                                                const Profile& profile);

}  // namespace fornax::tool
