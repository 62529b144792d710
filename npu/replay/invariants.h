// What holds for every program on every machine, whatever the equations are.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "npu/replay/replay.h"

namespace fornax::npu {

// A program and its replay on a machine.
struct ReplayedProgram {
    const Description& machine;
    std::span<const Record> records;
    const ReplayResult& result;
    const Timeline& timeline;
};

struct Invariant {
    std::string_view name;
    // An error says where it does not hold (kInternal).
    Status (*check)(const ReplayedProgram& program);
};

std::span<const Invariant> Invariants();

// Replays the records and checks all of them. The error begins with the invariant's name; it is
// that of Replay() where the machine cannot run the records. Takes several replays.
Status CheckInvariants(const Description& machine, std::span<const Record> records);

}  // namespace fornax::npu
