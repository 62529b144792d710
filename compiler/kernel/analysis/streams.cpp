#include "compiler/kernel/analysis/streams.h"
#include "compiler/kernel/analysis/access_limits.h"

#include <algorithm>

namespace fornax::kernel {

namespace {

using ir::Op;

// In 32-bit lanes of vector instructions per cache line loaded. Measured on an Emerald Rapids core:
// at 18 a prefetch gives a fifth more bandwidth from memory and costs 4 % in the caches; at 1 it
// gives nothing and costs 20 % there.
constexpr uint64_t kWorthPrefetching = 8;

class Walk {
  public:
    Walk(const ir::Kernel& kernel,
         const LaneAnalysis& patterns,
         const std::vector<bool>& workgroup_level)
        : kernel_(kernel), patterns_(patterns), workgroup_level_(workgroup_level) {
        Visit(kernel.body, /*in_barrier_loop=*/false);
    }

    bool MuchPerLine() const {
        // A tile that a loop loads between barriers is used many times: its lines are not what the
        // kernel waits for, and what lies behind them is not needed soon.
        const uint64_t operations = lane_operations_ * 4 / kCacheLineBytes;
        const uint64_t lines = (loaded_bytes_ + kCacheLineBytes - 1) / kCacheLineBytes;
        return !tiles_ && lines != 0 && operations >= kWorthPrefetching * lines;
    }

  private:
    void Visit(ir::BlockId block, bool in_barrier_loop) {
        for (ir::InstId id : kernel_.block(block).insts) {
            const ir::Instruction& inst = kernel_.inst(id);
            Count(inst, in_barrier_loop);
            const bool barrier_loop = inst.op == Op::kLoop && workgroup_level_[id.value()];
            for (ir::BlockId child : inst.blocks) {
                Visit(child, in_barrier_loop || barrier_loop);
            }
        }
    }

    void Count(const ir::Instruction& inst, bool in_barrier_loop) {
        if (inst.op == Op::kLoadBuffer || inst.op == Op::kLoadGlobal) {
            tiles_ |= in_barrier_loop;
            if (!patterns_.pattern(inst.operands.back()).constant_offsets()) {
                return;
            }
            for (ir::ValueId result : inst.results) {
                const uint32_t bits = std::max(8u, ir::BitWidth(kernel_.type(result)));
                loaded_bytes_ += patterns_.lanes() * bits / 8;
            }
        } else if (!inst.results.empty() && ir::HasProperty(inst.op, ir::kPure) &&
                   patterns_.pattern(inst.results[0]).varying()) {
            lane_operations_ += patterns_.lanes();
        }
    }

    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    const std::vector<bool>& workgroup_level_;
    uint64_t lane_operations_ = 0;
    uint64_t loaded_bytes_ = 0;
    bool tiles_ = false;
};

}  // namespace

// Waiting takes an atomic or a volatile access to memory that both see: whatever else a loop reads
// may be read once.
bool IndependentWorkgroups(const ir::Kernel& kernel) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        switch (inst.op) {
            case Op::kAtomicBuffer:
            case Op::kAtomicGlobal:
            case Op::kMemoryBarrier:
                return false;
            case Op::kLoadBuffer:
            case Op::kLoadGlobal:
            case Op::kStoreBuffer:
            case Op::kStoreGlobal:
                if ((inst.flags & ir::kVolatile) != 0) {
                    return false;
                }
                break;
            default:
                break;
        }
    }
    return true;
}

bool FetchesLoads(const ir::Kernel& kernel,
                  const LaneAnalysis& patterns,
                  const std::vector<bool>& workgroup_level) {
    return Walk(kernel, patterns, workgroup_level).MuchPerLine();
}

}  // namespace fornax::kernel
