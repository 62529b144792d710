// The head of a plan's file, for its writer, its reader and their tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::graph {

struct PlanFileHeader {
    char magic[8] = {'F', 'N', 'X', 'P', 'L', 'A', 'N', '\n'};
    uint32_t version = kPlanFormatVersion;
    uint32_t reserved = 0;
    uint64_t structure_bytes = 0;  // behind the header
    uint64_t weight_bytes = 0;     // at WeightsOffset(), to the file's end
    Hash128 checksum;              // of the structure
};
static_assert(sizeof(PlanFileHeader) == 48);  // keeps the structure aligned

// Pages, so that the weights of a mapped file can be given to a device as they are.
inline constexpr uint64_t kWeightsAlignment = 4096;
inline constexpr uint64_t kMaxStructureBytes = (uint64_t{1} << 31) - 1;

inline uint64_t WeightsOffset(const PlanFileHeader& header) {
    const uint64_t end = sizeof(PlanFileHeader) + header.structure_bytes;
    return header.weight_bytes == 0
               ? end
               : (end + kWeightsAlignment - 1) / kWeightsAlignment * kWeightsAlignment;
}

}  // namespace fornax::graph
