// The plan: what the graph compiler hands to whoever runs it. Kernels with their parameters, a
// dispatch list, descriptor sets, and the place of every tensor in one region of device memory,
// with the weights.
//
// The region is [constants | arena]. Whoever runs a plan allocates region_bytes() once, writes
// `weights` at its beginning, makes one descriptor set per entry of `sets`, and records the
// dispatches in order with a memory barrier before those that ask for one. A plan is immutable once
// made and safe to share.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/legacy_graph/kernel_library.h"
#include "compiler/legacy_graph/types.h"

namespace fornax::legacy_graph {

// Tensors begin at multiples of this: Vulkan's greatest allowed minStorageBufferOffsetAlignment.
inline constexpr uint64_t kTensorAlignment = 256;

enum class TensorKind : uint8_t { kConstant, kInput, kIntermediate, kOutput };
inline constexpr TensorKind kLastTensorKind = TensorKind::kOutput;
std::string_view Name(TensorKind kind);

// A tensor with storage of its own. Values that only reshape another share its tensor.
struct PlanTensor {
    std::string name;
    TensorType type;
    TensorKind kind = TensorKind::kIntermediate;
    uint64_t offset_bytes = 0;  // in the region
    // In use from dispatch first_step to last_step. Inputs are written before step 0; outputs are
    // kept until the step behind the last dispatch.
    uint32_t first_step = 0;
    uint32_t last_step = 0;
};

// An input or output of the graph; its type may be a reshaped view of its tensor.
struct PlanPort {
    std::string name;
    TensorType type;
    uint32_t tensor = 0;
};

// One descriptor set: the tensors bound as storage buffers 0, 1, ... of set 0.
struct PlanSet {
    std::vector<uint32_t> tensors;
};

struct PlanDispatch {
    std::string name;  // of the graph's nodes that it computes
    KernelId kernel = KernelId::kUnary;
    std::vector<uint32_t> parameters;  // specialisation constants 0, 1, ...
    std::array<uint32_t, 3> grid = {1, 1, 1};
    uint32_t set = 0;
    bool barrier_before = false;
    uint64_t operations = 0;  // arithmetic, for tables
    uint64_t bytes_read = 0;
    uint64_t bytes_written = 0;
};

struct Plan {
    std::string name;        // of the graph
    std::string graph_hash;  // 32 hexadecimal digits; see graph_hash.h
    std::vector<PlanTensor> tensors;
    std::vector<PlanPort> inputs;
    std::vector<PlanPort> outputs;
    std::vector<PlanSet> sets;
    std::vector<PlanDispatch> dispatches;
    std::vector<uint8_t> weights;  // the constants, as they lie at the beginning of the region
    uint64_t arena_bytes = 0;      // behind the weights, rounded up to kTensorAlignment
    uint64_t peak_live_bytes = 0;  // what no arena can be smaller than

    uint64_t arena_offset() const {
        return (weights.size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    }
    uint64_t region_bytes() const { return arena_offset() + arena_bytes; }
    // The sum of all tensors that are not constants: what an arena without sharing would hold.
    uint64_t unshared_bytes() const;
};

// Sets the dispatch's operations and byte counts from its kernel and parameters; leaves them 0 when
// the parameters are not valid.
void FillCosts(PlanDispatch& dispatch);

// Proves that running the plan stays inside its region: every index, offset, shape, kernel
// parameter and grid is checked against the kernels' footprints. For plans from files; the
// compiler's own pass too.
Status ValidatePlan(const Plan& plan);

// The plan as readable text: the graph's ports, dispatches, sets and memory. What --explain prints.
std::string ToText(const Plan& plan);

}  // namespace fornax::legacy_graph
