#include "compiler/kernel/codegen/lane_map.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/access/lane_layout.h"
#include "compiler/kernel/analysis/pressure.h"

namespace fornax::kernel {

using ir::Op;

namespace {

// Accesses cheaper than this a lane, in vector operations, leave little to win.
constexpr double kCheapMemory = 0.25;
// Another map has to be this much cheaper: its estimate knows nothing of what rows give to the
// rest.
constexpr double kWorthTiling = 0.75;

// Nothing that one workgroup does can make another wait, and nothing but their number tells them
// apart. Lanes of a vector go through a loop's iterations together, so a workgroup that waits in a
// loop for its neighbour's write would wait for ever.
bool MayShareVector(const ir::Kernel& kernel) {
    if (kernel.shared_bytes != 0) {
        return false;
    }
    bool loops = false;
    bool communicates = false;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        loops |= inst.op == Op::kLoop;
        if (inst.op == Op::kBarrier) {
            return false;
        }
        communicates |= inst.op == Op::kAtomicBuffer || inst.op == Op::kAtomicGlobal ||
                        (inst.flags & ir::kVolatile) != 0;
    }
    return !(loops && communicates);
}

class Chooser {
  public:
    Chooser(const ir::Kernel& kernel,
            const EmitOptions& options,
            const std::vector<bool>& workgroup_level)
        : kernel_(kernel),
          options_(options),
          level_(workgroup_level),
          size_(kernel.workgroup_size),
          invocations_(size_[0] * size_[1] * size_[2]),
          native_(std::max(4u, options.vector_bits / 32)) {}

    LaneMap Choose() {
        if (SeesSubgroups(kernel_)) {
            return {.lanes = kernel_.subgroup_size};
        }
        const uint32_t wanted = options_.force_lanes != 0 ? options_.force_lanes : native_;
        if (invocations_ < wanted) {
            return Small(wanted);
        }
        if (options_.force_lanes != 0) {
            return Tiled({.lanes = wanted}, wanted, wanted);
        }
        const uint32_t limit = MostLanes({.lanes = native_});
        // A vector within one row of the workgroup has a uniform y and z, so that rows are
        // addressed by scalars. A divergent loop gains more from two independent chains.
        const bool one_row = size_[1] * size_[2] == 1;
        uint32_t lanes = native_;
        while (lanes * 2 <= limit && invocations_ % (lanes * 2) == 0 &&
               (one_row || divergent_loop_ || size_[0] % (lanes * 2) == 0)) {
            lanes *= 2;
        }
        return Tiled({.lanes = lanes}, native_, limit);
    }

  private:
    // While the live values fit three quarters of the registers.
    uint32_t MostLanes(const LaneMap& map) {
        const LaneAnalysis patterns(kernel_, map, level_);
        const RegisterPressure pressure = EstimatePressure(kernel_, patterns);
        divergent_loop_ = pressure.divergent_loop;
        const uint32_t registers = options_.vector_bits >= 512 ? 32 : 16;
        const uint32_t budget = registers * 3 / 4;
        const uint32_t two_lines = LanesOfTwoLines();
        const uint32_t limit = divergent_loop_ ? std::max(native_ * 2, two_lines) : kMaxLanes;
        uint32_t lanes = native_;
        while (lanes * 2 <= limit) {
            // For two lines, which memory gives together, all registers may be taken.
            const uint32_t most = divergent_loop_ && lanes * 2 <= two_lines ? registers : budget;
            if (pressure.live_values * (lanes * 2 / native_) > most) {
                break;
            }
            lanes *= 2;
        }
        return lanes;
    }

    // So many lanes of the widest access of loops to buffers lie in two lines, which memory gives
    // together. A loop over a row that takes less at once leaves gaps. 0 if there are no such
    // loads.
    uint32_t LanesOfTwoLines() const {
        constexpr uint32_t kBits = 2 * 64 * 8;
        const uint32_t bits = WidestLoad(kernel_.body, false);
        return bits == 0 ? 0 : std::bit_floor(std::min(kMaxLanes, kBits / bits));
    }

    uint32_t WidestLoad(ir::BlockId block, bool in_loop) const {
        uint32_t bits = 0;
        for (ir::InstId id : kernel_.block(block).insts) {
            const ir::Instruction& inst = kernel_.inst(id);
            if (in_loop && inst.op == Op::kLoadBuffer) {
                const uint32_t element = std::max(8u, ir::BitWidth(kernel_.type(inst.results[0])));
                bits = std::max(bits, element * static_cast<uint32_t>(inst.results.size()));
            }
            for (ir::BlockId child : inst.blocks) {
                bits = std::max(bits, WidestLoad(child, in_loop || inst.op == Op::kLoop));
            }
        }
        return bits;
    }

    LaneMap Small(uint32_t wanted) {
        if (!std::has_single_bit(invocations_) || !MayShareVector(kernel_)) {
            return {.lanes = std::bit_ceil(invocations_)};
        }
        if (options_.force_lanes == 0) {
            wanted = MostLanes({.lanes = native_, .workgroups = native_ / invocations_});
        }
        return {.lanes = wanted, .workgroups = wanted / invocations_};
    }

    double Cost(const LaneMap& map) const {
        return EstimateMemoryCost(kernel_, LaneAnalysis(kernel_, map, level_),
                                  options_.vector_bits / 8);
    }

    LaneMap Tiled(const LaneMap& rows, uint32_t least, uint32_t most) const {
        if (size_[1] == 1) {
            return rows;
        }
        double best_cost = Cost(rows) * kWorthTiling;
        if (best_cost < kCheapMemory) {
            return rows;
        }
        LaneMap best = rows;
        for (uint32_t lanes = least; lanes <= most; lanes *= 2) {
            for (uint32_t width = 1; width <= lanes; width *= 2) {
                if (size_[0] % width != 0 || size_[1] % (lanes / width) != 0) {
                    continue;
                }
                const LaneMap map = {.lanes = lanes, .tile_width = width};
                if (const double cost = Cost(map); cost < best_cost) {
                    best_cost = cost;
                    best = map;
                }
            }
        }
        return best;
    }

    const ir::Kernel& kernel_;
    const EmitOptions& options_;
    const std::vector<bool>& level_;
    const std::array<uint32_t, 3> size_;
    const uint32_t invocations_;
    const uint32_t native_;
    bool divergent_loop_ = false;
};

}  // namespace

bool SeesSubgroups(const ir::Kernel& kernel) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (ir::HasProperty(inst.op, ir::kSubgroup)) {
            return true;
        }
        if (inst.op == Op::kBuiltin) {
            auto builtin = static_cast<ir::BuiltinId>(inst.imm);
            if (builtin == ir::BuiltinId::kSubgroupId || builtin == ir::BuiltinId::kSubgroupLane ||
                builtin == ir::BuiltinId::kNumSubgroups) {
                return true;
            }
        }
    }
    return false;
}

LaneMap ChooseLaneMap(const ir::Kernel& kernel,
                      const EmitOptions& options,
                      const std::vector<bool>& workgroup_level) {
    return Chooser(kernel, options, workgroup_level).Choose();
}

}  // namespace fornax::kernel
