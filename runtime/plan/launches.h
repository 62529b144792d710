// A plan's dispatches for given sizes: what any player, on Vulkan or beside a device, carries out.
// Nothing here knows Vulkan.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::runtime {

// Where a block lies. Blocks of different regions share no bytes.
struct Place {
    uint32_t region = 0;
    uint64_t offset = 0;
    uint64_t size = 0;  // in bytes
};

// What a kernel's code needs to be dispatched.
struct KernelInterface {
    std::vector<graph::Expr> push_constants;  // u32 each
    std::array<graph::Expr, 3> workgroups;
    // Sizes that must be at most 2^31 - 1: the code's indices are of 32 bits.
    std::vector<graph::Expr> limits;
};

struct LaunchLimits {
    std::array<uint32_t, 3> max_workgroups;
    uint64_t max_binding_bytes = 0;
};

struct Launch {
    uint32_t step = 0;
    std::array<uint32_t, 3> workgroups = {};
    std::vector<uint32_t> push_constants;
    bool barrier_before = false;
};

// The dispatches of steps `first` to before `end`, all of which are dispatches. Those without
// workgroups, and those that would write tensors without elements only, are left out. `places` are
// by block. Before the first launch everything has to be visible. Fails if a size does not evaluate
// or is beyond the limits.
Result<std::vector<Launch>> PlanLaunches(const graph::Plan& plan,
                                         uint32_t first,
                                         uint32_t end,
                                         const graph::Bindings& bindings,
                                         std::span<const Place> places,
                                         std::span<const KernelInterface> kernels,
                                         const LaunchLimits& limits);

// Fails (kUnsupported) if a step of the plan runs on the host, so that no command buffer or stream
// holds the whole plan.
Status CheckRecordable(const graph::Plan& plan);

// The steps of a plan between which sizes become known: a stage ends with a host step that gives a
// symbol its value. There is at least one stage, and none ends with the last step but the last.
struct Stage {
    uint32_t first = 0;
    uint32_t end = 0;
};
std::vector<Stage> StagesOf(const graph::Plan& plan);

}  // namespace fornax::runtime
