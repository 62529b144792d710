// What happened when in a replay, for traces and pictures: intervals that the replay's sums
// (replay.h) are made of.
#pragma once

#include <vector>

#include "npu/units/cycles.h"

namespace fornax::npu {

enum class Unit : uint8_t;

// The driver has prepared a submission between `began` and `submitted`; its doorbell reaches the
// command processor at `available`.
struct SubmissionTime {
    uint32_t first_record = 0;
    Cycles began = 0;
    Cycles submitted = 0;
    Cycles available = 0;
};

// The command processor decodes a packet, or allocates for a dispatch.
struct ProcessorJobTime {
    uint32_t record = 0;
    bool allocates = false;
    Cycles began = 0;
    Cycles ended = 0;
};

// The cores of a record compute. Of units that are busy for a part of it, the replay does not know
// when.
struct ComputeTime {
    uint32_t record = 0;
    Cycles began = 0;
    Cycles ended = 0;
};

// Bytes of a record pass DRAM, the network or the host link.
struct FlowTime {
    uint32_t record = 0;
    Unit unit = {};
    uint64_t bytes = 0;
    Cycles began = 0;
    Cycles ended = 0;
};

// Each list in the order in which its entries began.
struct Timeline {
    std::vector<SubmissionTime> submissions;
    std::vector<ProcessorJobTime> jobs;
    std::vector<ComputeTime> computations;
    std::vector<FlowTime> flows;
};

}  // namespace fornax::npu
