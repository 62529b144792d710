// Loops that bring tiles of matrices into workgroup memory and multiply them take several
// iterations at once, each with a copy of that memory: the matrix unit then loads and stores an
// accumulator once for all of them, and what an iteration reads of a row lies beside what the next
// one reads.
//
// An iteration is straight code: it writes tiles, a barrier follows, it reads them, and another
// barrier follows. It must not read anything that it has not written, which is known by computing
// where every invocation writes and reads. What is left over when their number is not divisible
// runs in the loop as it was. The last iteration of each group writes where all did, so the memory
// ends up as it would.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "compiler/kernel/analysis/known_values.h"
#include "compiler/kernel/analysis/matrix_accumulators.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"
#include "hal/device.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// MMAs of an accumulator that are made at once.
constexpr uint32_t kMmasAtOnce = 4;
constexpr uint32_t kAlign = 64;

class Joiner {
  public:
    Joiner(Kernel& kernel, JoinedMmas joined)
        : kernel_(kernel), joined_(joined), structure_(kernel) {}

    bool Run() {
        std::vector<Plan> plans;
        for (InstId id : structure_.preorder) {
            Plan plan;
            if (kernel_.inst(id).op == Op::kLoop && Match(id, plan)) {
                plans.push_back(std::move(plan));
            }
        }
        for (const Plan& plan : plans) {
            Join(plan);
        }
        return !plans.empty();
    }

  private:
    struct Plan {
        InstId loop;
        InstId test;
        bool stays_if = false;     // the condition that leads on
        std::vector<InstId> head;  // pure, and nothing but the loop's parameters goes in
        std::vector<InstId> writes;
        std::vector<InstId> reads;
        std::vector<InstId> counts;  // behind the test
        InstId barriers[2];
        uint32_t iterations = 0;
        uint32_t lowest = 0;  // byte that is written
        uint32_t bytes = 0;
    };

    bool Match(InstId id, Plan& plan) {
        const Instruction& loop = kernel_.inst(id);
        const std::vector<InstId>& insts = kernel_.block(loop.blocks[0]).insts;
        plan.loop = id;
        if (!loop.results.empty() || structure_.Exits(id).size() != 1 ||
            structure_.Continues(id).size() != 1 || structure_.Continues(id)[0] != insts.back() ||
            !Sort(insts, plan)) {
            return false;
        }
        const Block& continuing = kernel_.block(loop.blocks[1]);
        for (size_t i = 0; i + 1 < continuing.insts.size(); ++i) {
            const Op op = kernel_.inst(continuing.insts[i]).op;
            if (op == Op::kCount) {
                plan.counts.push_back(continuing.insts[i]);
            } else if (!HasProperty(op, kPure)) {
                return false;
            }
        }
        if (kernel_.inst(continuing.insts.back()).op != Op::kNext) {
            return false;
        }
        return ChooseIterations(plan) && ReadsOwn(plan);
    }

    // What comes before the first barrier, and between the two.
    bool Sort(const std::vector<InstId>& insts, Plan& plan) {
        known_.assign(kernel_.num_values(), true);
        size_t barriers = 0;
        for (size_t i = 0; i + 1 < insts.size(); ++i) {
            const Instruction& inst = kernel_.inst(insts[i]);
            const bool from_head =
                HasProperty(inst.op, kPure) &&
                std::all_of(inst.operands.begin(), inst.operands.end(),
                            [&](ValueId operand) { return known_[operand.value()]; });
            for (ValueId result : inst.results) {
                known_[result.value()] = from_head;
            }
            if (from_head) {
                plan.head.push_back(insts[i]);
            } else if (inst.op == Op::kCount && plan.test.valid()) {
                plan.counts.push_back(insts[i]);
            } else if (inst.op == Op::kBarrier) {
                if (barriers == 2) {
                    return false;
                }
                plan.barriers[barriers++] = insts[i];
            } else if (!plan.test.valid() && IsTest(insts[i], plan)) {
                if (barriers != 0 || !plan.writes.empty()) {
                    return false;
                }
                plan.test = insts[i];
            } else if (barriers == 0 && MayWrite(inst)) {
                plan.writes.push_back(insts[i]);
            } else if (barriers == 1 && MayRead(inst)) {
                plan.reads.push_back(insts[i]);
            } else {
                return false;
            }
        }
        const Instruction& loop = kernel_.inst(plan.loop);
        const std::vector<ValueId>& handed = kernel_.inst(insts.back()).operands;
        const Block& continuing = kernel_.block(loop.blocks[1]);
        auto known = [&](const std::vector<ValueId>& values) {
            return std::all_of(values.begin(), values.end(),
                               [&](ValueId value) { return known_[value.value()]; });
        };
        return barriers == 2 && plan.test.valid() && known(handed) &&
               std::all_of(continuing.insts.begin(), continuing.insts.end(),
                           [&](InstId inner) { return known(kernel_.inst(inner).operands); });
    }
    bool IsTest(InstId id, Plan& plan) const {
        const Instruction& inst = kernel_.inst(id);
        if (inst.op != Op::kIf || !inst.results.empty() || !known_[inst.operands[0].value()]) {
            return false;
        }
        for (BlockId block : inst.blocks) {
            if (kernel_.block(block).insts.size() != 1) {
                return false;
            }
        }
        const InstId first = kernel_.block(inst.blocks[0]).insts[0];
        const InstId second = kernel_.block(inst.blocks[1]).insts[0];
        plan.stays_if = kernel_.inst(first).op == Op::kYield;
        const Instruction& leaves = kernel_.inst(plan.stays_if ? second : first);
        return kernel_.inst(plan.stays_if ? first : second).op == Op::kYield &&
               leaves.op == Op::kExit && leaves.target == plan.loop;
    }
    bool MayWrite(const Instruction& inst) const {
        if (HasProperty(inst.op, kPure)) {
            return true;
        }
        return (inst.flags & kVolatile) == 0 &&
               (inst.op == Op::kLoadBuffer || inst.op == Op::kLoadGlobal ||
                inst.op == Op::kStoreShared || (inst.op == Op::kIf && OnlyLoads(inst)));
    }
    bool OnlyLoads(const Instruction& construct) const {
        for (BlockId block : construct.blocks) {
            for (InstId id : kernel_.block(block).insts) {
                const Instruction& inst = kernel_.inst(id);
                if (inst.op != Op::kYield && (inst.op == Op::kStoreShared || !MayWrite(inst))) {
                    return false;
                }
            }
        }
        return true;
    }
    static bool MayRead(const Instruction& inst) {
        return HasProperty(inst.op, kPure) || inst.op == Op::kMatrixMulAdd ||
               inst.op == Op::kMatrixTranspose ||
               ((inst.op == Op::kLoadShared || inst.op == Op::kLoadLocal ||
                 inst.op == Op::kStoreLocal) &&
                (inst.flags & kVolatile) == 0);
    }

    // By how many MMAs of an accumulator there are in an iteration.
    bool ChooseIterations(Plan& plan) {
        if (!accumulators_) {
            accumulators_ = FindMatrixAccumulators(kernel_);
        }
        std::map<std::pair<uint64_t, uint64_t>, uint32_t> mmas;
        for (InstId id : plan.reads) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kMatrixMulAdd) {
                continue;
            }
            const auto location = accumulators_->mmas.find(inst.results[0].value());
            if (location == accumulators_->mmas.end() || (inst.imm & kMatrixKeepsDenormals) != 0) {
                return false;
            }
            if (joined_ == JoinedMmas::kBFloat16 &&
                MatrixFormatOf(kernel_, inst) != hal::MatrixFormat::kBF16) {
                return false;
            }
            ++mmas[{location->second.local, location->second.first}];
        }
        uint32_t most = 0;
        for (const auto& [location, count] : mmas) {
            most = std::max(most, count);
        }
        if (most == 0 || most * 2 > kMmasAtOnce) {
            return false;
        }
        plan.iterations = kMmasAtOnce / most;
        return true;
    }

    bool ReadsOwn(Plan& plan) {
        std::vector<bool> written(kernel_.shared_bytes);
        KnownValues values(kernel_);
        const auto& size = kernel_.workgroup_size;
        for (const bool reads : {false, true}) {
            for (uint32_t i = 0; i < size[0] * size[1] * size[2]; ++i) {
                values.Begin(i);
                for (InstId id : reads ? plan.reads : plan.writes) {
                    const Instruction& inst = kernel_.inst(id);
                    if (inst.op != (reads ? Op::kLoadShared : Op::kStoreShared)) {
                        continue;
                    }
                    const auto offset = values.Evaluate(inst.operands[0]);
                    const ValueId first = reads ? inst.results[0] : inst.operands[1];
                    const size_t count = reads ? inst.results.size() : inst.operands.size() - 1;
                    const uint64_t bytes = count * std::max(1u, ByteSize(kernel_.type(first)));
                    if (!offset || *offset + bytes > written.size()) {
                        return false;
                    }
                    const auto begin = written.begin() + static_cast<std::ptrdiff_t>(*offset);
                    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
                    if (!reads) {
                        std::fill(begin, end, true);
                    } else if (std::find(begin, end, false) != end) {
                        return false;
                    }
                }
            }
        }
        const auto first = std::find(written.begin(), written.end(), true);
        if (first == written.end()) {
            return false;
        }
        const auto last = std::find(written.rbegin(), written.rend(), true);
        plan.lowest = static_cast<uint32_t>(first - written.begin()) / kAlign * kAlign;
        const auto end = static_cast<uint32_t>(written.rend() - last);
        plan.bytes = (end - plan.lowest + kAlign - 1) / kAlign * kAlign;
        while (plan.iterations > 1 && MemoryFor(plan) > hal::kMaxSharedBytes) {
            plan.iterations /= 2;
        }
        return plan.iterations > 1;
    }
    uint32_t Aligned() const { return (kernel_.shared_bytes + kAlign - 1) / kAlign * kAlign; }
    uint64_t MemoryFor(const Plan& plan) const {
        return Aligned() + uint64_t{plan.iterations - 1} * plan.bytes;
    }

    void Join(const Plan& plan) {
        if (MemoryFor(plan) > hal::kMaxSharedBytes) {
            return;  // another loop took it
        }
        const Instruction loop = kernel_.inst(plan.loop);
        const Block body = kernel_.block(loop.blocks[0]);
        const Block continuing = kernel_.block(loop.blocks[1]);
        std::vector<Type> types;
        for (ValueId param : body.params) {
            types.push_back(kernel_.type(param));
        }

        const InstId joined = kernel_.NewInst(Op::kLoop, loop.operands, types);
        const BlockId block = kernel_.NewBlock(joined);
        const BlockId next = kernel_.NewBlock(joined);
        kernel_.inst(joined).blocks = {block, next};
        kernel_.inst(joined).flags = loop.flags;
        kernel_.inst(joined).origin = loop.origin;
        std::vector<ValueId> begins;
        std::vector<ValueId> passed;
        for (Type type : types) {
            begins.push_back(kernel_.AddParam(block, type));
            passed.push_back(kernel_.AddParam(next, type));
        }
        Builder(kernel_, next).Append(Op::kNext, passed, {});

        // What follows from the counters, of all iterations, and whether all of them are to run.
        Builder b(kernel_, block);
        std::vector<Cloner> cloners(plan.iterations, Cloner(kernel_));
        std::vector<ValueId> values = begins;
        ValueId condition;
        for (Cloner& cloner : cloners) {
            for (size_t i = 0; i < values.size(); ++i) {
                cloner.MapValue(body.params[i], values[i]);
            }
            for (InstId id : plan.head) {
                cloner.CloneOne(id, block);
            }
            const ValueId stays = cloner.Value(kernel_.inst(plan.test).operands[0]);
            condition = condition.valid() ? b.Emit(plan.stays_if ? Op::kAnd : Op::kOr, Type::kBool,
                                                   {condition, stays})
                                          : stays;
            const std::vector<ValueId> handed = kernel_.inst(body.insts.back()).operands;
            for (size_t i = 0; i < handed.size(); ++i) {
                cloner.MapValue(continuing.params[i], cloner.Value(handed[i]));
            }
            for (size_t i = 0; i + 1 < continuing.insts.size(); ++i) {
                if (kernel_.inst(continuing.insts[i]).op != Op::kCount) {
                    cloner.CloneOne(continuing.insts[i], block);
                }
            }
            const std::vector<ValueId> last = kernel_.inst(continuing.insts.back()).operands;
            for (size_t i = 0; i < values.size(); ++i) {
                values[i] = cloner.Value(last[i]);
            }
        }
        const InstId test = kernel_.NewInst(Op::kIf, std::array{condition}, {});
        for (const bool first : {true, false}) {
            const BlockId side = kernel_.NewBlock(test);
            kernel_.inst(test).blocks.push_back(side);
            if (first == plan.stays_if) {
                Builder(kernel_, side).Append(Op::kYield, {}, {});
            } else {
                const InstId exit = Builder(kernel_, side).Append(Op::kExit, begins, {});
                kernel_.inst(exit).target = joined;
            }
        }
        kernel_.block(block).insts.push_back(test);

        // Instruction by instruction, so that a row's places are read one after the other.
        for (InstId id : plan.writes) {
            for (uint32_t iteration = 0; iteration < plan.iterations; ++iteration) {
                CloneAccess(plan, cloners[iteration], iteration, id, b);
            }
        }
        cloners[0].CloneOne(plan.barriers[0], block);
        for (uint32_t iteration = 0; iteration < plan.iterations; ++iteration) {
            for (InstId id : plan.reads) {
                CloneAccess(plan, cloners[iteration], iteration, id, b);
            }
        }
        for (InstId id : plan.counts) {
            for (Cloner& cloner : cloners) {
                cloner.CloneOne(id, block);
            }
        }
        cloners[0].CloneOne(plan.barriers[1], block);
        const InstId end = b.Append(Op::kContinue, values, {});
        kernel_.inst(end).target = joined;

        std::vector<InstId>& around = kernel_.block(structure_.block_of[plan.loop.value()]).insts;
        around.insert(std::find(around.begin(), around.end(), plan.loop), joined);
        kernel_.inst(plan.loop).operands = kernel_.inst(joined).results;
        kernel_.shared_bytes = static_cast<uint32_t>(MemoryFor(plan));
    }
    void CloneAccess(const Plan& plan, Cloner& cloner, uint32_t iteration, InstId id, Builder& b) {
        const Op op = kernel_.inst(id).op;
        const InstId copy = cloner.CloneOne(id, b.block());
        if (iteration + 1 == plan.iterations || (op != Op::kLoadShared && op != Op::kStoreShared)) {
            return;
        }
        std::vector<InstId>& insts = kernel_.block(b.block()).insts;
        insts.pop_back();
        const ValueId offset = kernel_.inst(copy).operands[0];
        const uint32_t moved = Aligned() + iteration * plan.bytes - plan.lowest;
        const ValueId by = b.Const(kernel_.type(offset), moved);
        const ValueId sum = b.Emit(Op::kIAdd, kernel_.type(offset), {offset, by});
        kernel_.inst(copy).operands[0] = sum;
        kernel_.block(b.block()).insts.push_back(copy);
    }

    Kernel& kernel_;
    const JoinedMmas joined_;
    const Structure structure_;
    std::vector<bool> known_;  // by value: it needs only the loop's parameters
    std::optional<MatrixAccumulators> accumulators_;
};

}  // namespace

bool JoinIterations(Kernel& kernel, JoinedMmas joined) {
    bool mmas = false;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        mmas |= kernel.inst(InstId{i}).op == Op::kMatrixMulAdd;
    }
    return mmas && Joiner(kernel, joined).Run();
}

}  // namespace fornax::kernel
