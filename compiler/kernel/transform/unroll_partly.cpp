// Loops that carry many values and run a known number of times take several iterations at once: a
// loop of sixteen short iterations ends before the processor has learnt how long it is, and each
// end that it does not foresee costs as much as two iterations.
//
// Only the first iteration of a group tests whether the loop ends, so groups divide the iterations.
#include <algorithm>
#include <optional>

#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/trip_count.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMaxTrips = 65;  // with the one that only tests
constexpr uint32_t kLeastIterations = 8;
constexpr size_t kMaxInstructions = 320;  // of the new body

class PartUnroller {
  public:
    explicit PartUnroller(Kernel& kernel)
        : kernel_(kernel), structure_(kernel), trips_(kernel, structure_) {}

    bool Run(size_t least_carried) {
        std::vector<std::pair<InstId, uint32_t>> found;
        for (InstId id : structure_.preorder) {
            if (kernel_.inst(id).op != Op::kLoop ||
                (kernel_.inst(id).flags & kDontUnrollHint) != 0 ||
                kernel_.block(kernel_.inst(id).blocks[0]).params.size() <= least_carried) {
                continue;
            }
            if (const uint32_t iterations = IterationsAtOnce(id)) {
                found.emplace_back(id, iterations);
            }
        }
        for (auto [id, iterations] : found) {
            Unroll(id, iterations);
        }
        return !found.empty();
    }

  private:
    // Straight code with one test that leaves, as it is found in the body's list.
    std::optional<InstId> FindTest(InstId id) const {
        const Instruction& loop = kernel_.inst(id);
        const std::vector<InstId>& insts = kernel_.block(loop.blocks[0]).insts;
        if (structure_.Exits(id).size() != 1 || structure_.Continues(id).size() != 1 ||
            structure_.Continues(id)[0] != insts.back()) {
            return std::nullopt;
        }
        std::optional<InstId> test;
        for (InstId inner : insts) {
            const Instruction& inst = kernel_.inst(inner);
            if (HasProperty(inst.op, kConvergent)) {
                return std::nullopt;
            }
            if (inst.blocks.empty()) {
                continue;
            }
            if (inst.op != Op::kIf || test || !inst.results.empty()) {
                return std::nullopt;
            }
            for (BlockId block : inst.blocks) {
                if (kernel_.block(block).insts.size() != 1) {
                    return std::nullopt;
                }
            }
            test = inner;
        }
        for (InstId inner : kernel_.block(loop.blocks[1]).insts) {
            if (!kernel_.inst(inner).blocks.empty() ||
                HasProperty(kernel_.inst(inner).op, kConvergent)) {
                return std::nullopt;
            }
        }
        const bool has_next =
            kernel_.inst(kernel_.block(loop.blocks[1]).insts.back()).op == Op::kNext;
        return has_next ? test : std::nullopt;
    }

    // 0: leave the loop alone.
    uint32_t IterationsAtOnce(InstId id) {
        if (!FindTest(id)) {
            return 0;
        }
        const Instruction& loop = kernel_.inst(id);
        const size_t size =
            kernel_.block(loop.blocks[0]).insts.size() + kernel_.block(loop.blocks[1]).insts.size();
        const std::optional<uint32_t> trips = trips_.Count(id, kMaxTrips);
        if (!trips || *trips <= kLeastIterations) {
            return 0;
        }
        for (uint32_t iterations : {4u, 2u}) {
            if ((*trips - 1) % iterations == 0 && size * iterations <= kMaxInstructions) {
                return iterations;
            }
        }
        return 0;
    }

    void Unroll(InstId id, uint32_t iterations) {
        const BlockId body = kernel_.inst(id).blocks[0];
        const BlockId continuing = kernel_.inst(id).blocks[1];
        const InstId test = *FindTest(id);
        const std::vector<InstId> insts = kernel_.block(body).insts;
        const InstId end = insts.back();
        const std::vector<InstId> rest = kernel_.block(continuing).insts;
        const std::vector<ValueId> params = kernel_.block(body).params;
        const std::vector<ValueId> continuing_params = kernel_.block(continuing).params;
        const std::vector<ValueId> handed = kernel_.inst(end).operands;
        const std::vector<ValueId> next = kernel_.inst(rest.back()).operands;

        Cloner cloner(kernel_);
        std::vector<InstId> all(insts.begin(), insts.end() - 1);
        std::vector<ValueId> values = handed;
        for (uint32_t iteration = 1; iteration < iterations; ++iteration) {
            for (size_t i = 0; i < continuing_params.size(); ++i) {
                cloner.MapValue(continuing_params[i], values[i]);
            }
            for (size_t i = 0; i + 1 < rest.size(); ++i) {
                all.push_back(cloner.Clone(rest[i]));
            }
            std::vector<ValueId> begins;
            for (ValueId value : next) {
                begins.push_back(cloner.Value(value));
            }
            for (size_t i = 0; i < params.size(); ++i) {
                cloner.MapValue(params[i], begins[i]);
            }
            for (size_t i = 0; i + 1 < insts.size(); ++i) {
                if (insts[i] != test) {
                    all.push_back(cloner.Clone(insts[i]));
                }
            }
            for (size_t i = 0; i < handed.size(); ++i) {
                values[i] = cloner.Value(handed[i]);
            }
        }
        all.push_back(end);
        kernel_.block(body).insts = all;
        kernel_.inst(end).operands = values;

        // The continuing block follows the last iteration: it sees that iteration's values.
        std::vector<ValueId> own = continuing_params;
        for (InstId inner : rest) {
            for (ValueId& operand : kernel_.inst(inner).operands) {
                if (std::find(own.begin(), own.end(), operand) == own.end()) {
                    operand = cloner.Value(operand);
                }
            }
            const std::vector<ValueId>& results = kernel_.inst(inner).results;
            own.insert(own.end(), results.begin(), results.end());
        }
    }

    Kernel& kernel_;
    const Structure structure_;
    TripCounter trips_;
};

}  // namespace

bool UnrollPartly(Kernel& kernel, uint32_t least_carried) {
    return PartUnroller(kernel).Run(least_carried);
}

}  // namespace fornax::kernel
