// Full unrolling of loops whose trip count is known.
//
// loop { body } continuing { rest } becomes
//   scope {
//     scope { body with the first values; a continue leaves this scope }
//     rest
//     scope { body with the next values } ...
//     unreachable
//   }
// where an exit of the loop leaves the outer scope. Simplify then takes the scopes apart where
// nothing exits from their middle. Partial unrolling is in unroll_partly.cpp.
#include <algorithm>

#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/trip_count.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Instructions that a loop may become, and trips it may have.
struct Limits {
    uint32_t instructions;
    uint32_t trips;
};
// The source asks for it, or private arrays can leave memory.
constexpr Limits kWorthwhile = {8192, 256};
constexpr Limits kSmall = {384, 32};
// For the baseline tier: what a loop costs anyway.
constexpr Limits kTiny = {24, 8};

class Unroller {
  public:
    Unroller(Kernel& kernel, uint32_t max_instructions, CodeTier tier)
        : kernel_(kernel),
          tier_(tier),
          structure_(kernel),
          trips_(kernel, structure_),
          cloner_(kernel) {
        auto now = static_cast<uint32_t>(structure_.preorder.size());
        budget_ = max_instructions > now ? max_instructions - now : 0;
    }

    bool Run() {
        VisitBlock(kernel_.body);
        return changed_;
    }

  private:
    struct Found {
        uint32_t instructions = 0;
        bool refused = false;  // an inner loop stays; copying it would repeat whole loops
        bool barrier = false;
    };

    // Inner loops first: their copies count for the outer ones. A block's list may change under
    // way only at the place that is visited.
    Found VisitBlock(BlockId block) {
        Found found;
        for (size_t i = 0; i < kernel_.block(block).insts.size(); ++i) {
            InstId id = kernel_.block(block).insts[i];
            Found inner;
            for (BlockId b : std::vector(kernel_.inst(id).blocks)) {
                Found contents = VisitBlock(b);
                inner.instructions += contents.instructions;
                inner.refused |= contents.refused;
                inner.barrier |= contents.barrier;
            }
            inner.barrier |= kernel_.inst(id).op == Op::kBarrier;
            if (kernel_.inst(id).op == Op::kLoop) {
                if (uint32_t trips = TripsToUnroll(id, inner)) {
                    Unroll(id, trips);
                    inner.instructions *= trips;
                } else {
                    inner.refused = true;
                }
            }
            found.instructions += 1 + inner.instructions;
            found.refused |= inner.refused;
            found.barrier |= inner.barrier;
        }
        return found;
    }

    // 0: leave the loop alone.
    uint32_t TripsToUnroll(InstId id, const Found& contents) {
        const Instruction& loop = kernel_.inst(id);
        if (loop.flags & kDontUnrollHint) {
            return 0;
        }
        bool worthwhile = (loop.flags & kUnrollHint) || IndexesLocals(id);
        if (contents.refused && !worthwhile) {
            return 0;
        }
        Limits limits = worthwhile ? kWorthwhile : kSmall;
        // Barriers at the top level of a kernel are cheaper than those in a loop.
        if (tier_ == CodeTier::kBaseline && !contents.barrier) {
            limits = kTiny;
        }
        uint32_t size = std::max(contents.instructions, 1u);
        uint32_t instructions = std::min(limits.instructions, budget_);
        auto trips = trips_.Count(id, std::min(limits.trips, instructions / size));
        if (!trips) {
            return 0;
        }
        budget_ -= std::min(budget_, *trips * size);
        return *trips;
    }

    // A private array is indexed by the loop's counter, so unrolling makes the index constant.
    bool IndexesLocals(InstId loop) const {
        for (BlockId block : kernel_.inst(loop).blocks) {
            if (IndexesLocalsIn(loop, block)) {
                return true;
            }
        }
        return false;
    }
    bool IndexesLocalsIn(InstId loop, BlockId block) const {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            bool access = inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal;
            if (access && trips_.DependsOnLoopOnly(loop, inst.operands[0])) {
                return true;
            }
            for (BlockId inner : inst.blocks) {
                if (IndexesLocalsIn(loop, inner)) {
                    return true;
                }
            }
        }
        return false;
    }

    void Unroll(InstId id, uint32_t trips) {
        changed_ = true;
        BlockId body = kernel_.inst(id).blocks[0];
        BlockId continuing = kernel_.inst(id).blocks[1];
        std::vector<ValueId> params = kernel_.block(body).params;
        std::vector<ValueId> continuing_params = kernel_.block(continuing).params;
        std::vector<ValueId> next = kernel_.inst(structure_.Next(id)).operands;
        std::vector<ValueId> values = kernel_.inst(id).operands;
        std::vector<Type> types;
        for (ValueId param : continuing_params) {
            types.push_back(kernel_.type(param));
        }

        // The loop itself becomes the outer scope, so its results and its uses stay.
        BlockId all = kernel_.NewBlock(id);
        for (uint32_t trip = 0; trip < trips; ++trip) {
            for (size_t i = 0; i < params.size(); ++i) {
                cloner_.MapValue(params[i], values[i]);
            }
            InstId iteration = kernel_.NewInst(Op::kScope, {}, types);
            BlockId block = kernel_.NewBlock(iteration);
            kernel_.inst(iteration).blocks = {block};
            kernel_.block(all).insts.push_back(iteration);
            cloner_.MapLoop(id, id, iteration);
            cloner_.CloneInto(body, block, true);
            for (size_t i = 0; i < continuing_params.size(); ++i) {
                cloner_.MapValue(continuing_params[i], kernel_.inst(iteration).results[i]);
            }
            cloner_.CloneInto(continuing, all, false);
            cloner_.UnmapLoop();
            for (size_t i = 0; i < values.size(); ++i) {
                values[i] = cloner_.Value(next[i]);
            }
        }
        kernel_.block(all).insts.push_back(kernel_.NewInst(Op::kUnreachable, {}, {}));
        Instruction& loop = kernel_.inst(id);
        loop.op = Op::kScope;
        loop.flags = 0;
        loop.operands.clear();
        loop.blocks = {all};
    }

    Kernel& kernel_;
    const CodeTier tier_;
    Structure structure_;
    TripCounter trips_;
    Cloner cloner_;
    uint32_t budget_;
    bool changed_ = false;
};

}  // namespace

bool UnrollLoops(Kernel& kernel, uint32_t max_instructions, CodeTier tier) {
    return Unroller(kernel, max_instructions, tier).Run();
}

}  // namespace fornax::kernel
