// A way past loops that no lane enters.
//
// Shaders that take four elements an iteration bring what is left by code behind the loop, two or
// one at a time. For short rows the loop runs not once, but what it carries counts as a value that
// nobody knows: the code behind it finds its addresses lane by lane. Where no lane of a subgroup
// enters the loop, what it carries is what it began with, often a pattern of lanes. That is one
// question before the loop; a copy of what follows runs where the answer is no.
#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMaxCopiedInstructions = 400;

// A loop that may not run once, and what decides that.
struct Entry {
    size_t test = 0;  // place of the branch in the body; pure code before it
    bool enters_if = true;
    InstId exit;
};

class Bypasser {
  public:
    explicit Bypasser(Kernel& kernel) : kernel_(kernel) {}

    bool Run() {
        const Structure structure(kernel_);
        // A kernel without operations of subgroups has no fixed lanes that could be asked.
        if (std::ranges::none_of(structure.preorder, [&](InstId id) {
                return HasProperty(kernel_.inst(id).op, kSubgroup);
            })) {
            return false;
        }
        bool any = false;
        for (InstId id : structure.preorder) {
            const BlockId block = structure.block_of[id.value()];
            if (kernel_.inst(id).op != Op::kLoop || IsInLoop(structure, block)) {
                continue;
            }
            const std::optional<Entry> entry = FindEntry(id);
            if (entry && MayCopyRest(id, block)) {
                Bypass(id, *entry, block);  // what follows it holds no loop
                any = true;
            }
        }
        return any;
    }

  private:
    bool IsInLoop(const Structure& structure, BlockId block) const {
        InstId around = kernel_.block(block).parent;
        while (around.valid() && kernel_.inst(around).op != Op::kLoop) {
            around = kernel_.block(structure.block_of[around.value()]).parent;
        }
        return around.valid();
    }

    // The loop is straight code whose first branch decides whether an iteration begins.
    std::optional<Entry> FindEntry(InstId id) const {
        const Instruction& loop = kernel_.inst(id);
        const std::vector<InstId>& insts = kernel_.block(loop.blocks[0]).insts;
        Entry entry;
        while (HasProperty(kernel_.inst(insts[entry.test]).op, kPure)) {
            ++entry.test;
        }
        const Instruction& test = kernel_.inst(insts[entry.test]);
        if (test.op != Op::kIf || !test.results.empty()) {
            return {};
        }
        for (size_t i = entry.test + 1; i < insts.size(); ++i) {
            if (!kernel_.inst(insts[i]).blocks.empty()) {
                return {};
            }
        }
        for (size_t side = 0; side < 2; ++side) {
            const std::vector<InstId>& leaves = kernel_.block(test.blocks[side]).insts;
            const std::vector<InstId>& stays = kernel_.block(test.blocks[1 - side]).insts;
            if (leaves.size() == 1 && stays.size() == 1 &&
                kernel_.inst(leaves[0]).op == Op::kExit && kernel_.inst(leaves[0]).target == id &&
                kernel_.inst(stays[0]).op == Op::kYield) {
                entry.enters_if = side == 1;
                entry.exit = leaves[0];
                return entry;
            }
        }
        return {};
    }

    // What follows the loop in its block accesses memory under a condition that the loop's results
    // decide, and is short code without loops.
    bool MayCopyRest(InstId id, BlockId block) const {
        const std::vector<InstId>& insts = kernel_.block(block).insts;
        std::vector<bool> depends(kernel_.num_values());
        for (ValueId result : kernel_.inst(id).results) {
            depends[result.value()] = true;
        }
        uint32_t size = 0;
        bool found = false;
        bool may = true;
        const auto visit = [&](auto& self, InstId inner, bool conditional) -> void {
            const Instruction& inst = kernel_.inst(inner);
            may &=
                ++size <= kMaxCopiedInstructions && inst.op != Op::kLoop && inst.op != Op::kBarrier;
            const bool uses = std::ranges::any_of(
                inst.operands, [&](ValueId operand) { return depends[operand.value()]; });
            for (ValueId result : inst.results) {
                depends[result.value()] = uses;
            }
            found |= conditional && HasProperty(inst.op, kReadsMemory);
            for (BlockId side : inst.blocks) {
                for (InstId in_side : kernel_.block(side).insts) {
                    self(self, in_side, conditional || (inst.op == Op::kIf && uses));
                }
            }
        };
        const auto at = std::ranges::find(insts, id);
        for (auto next = at + 1; next != insts.end(); ++next) {
            visit(visit, *next, false);
        }
        return may && found;
    }

    void Bypass(InstId id, const Entry& entry, BlockId block) {
        const std::vector<InstId>& insts = kernel_.block(block).insts;
        const auto place = static_cast<size_t>(std::ranges::find(insts, id) - insts.begin());
        std::vector<InstId> rest = TakeEnd(kernel_, block, place);

        // The first test, before the loop.
        const Instruction loop = kernel_.inst(id);
        const std::vector<InstId> body = kernel_.block(loop.blocks[0]).insts;
        Cloner cloner(kernel_);
        const std::vector<ValueId> params = kernel_.block(loop.blocks[0]).params;
        for (size_t i = 0; i < params.size(); ++i) {
            cloner.MapValue(params[i], loop.operands[i]);
        }
        for (size_t i = 0; i < entry.test; ++i) {
            cloner.CloneOne(body[i], block);
        }
        Builder builder(kernel_, block);
        ValueId enters = cloner.Value(kernel_.inst(body[entry.test]).operands[0]);
        if (!entry.enters_if) {
            enters = builder.Emit(Op::kNot, Type::kBool, {enters});
        }
        const ValueId lanes = builder.Emit(Op::kSubgroupBallot, Type::kI64, {enters});
        const ValueId zero = builder.Const(Type::kI64, 0);
        const ValueId some = builder.Emit(Op::kINe, Type::kBool, {lanes, zero});
        for (size_t i = 0; i < loop.results.size(); ++i) {
            cloner.MapValue(loop.results[i], cloner.Value(kernel_.inst(entry.exit).operands[i]));
        }
        AppendForms(kernel_, block, std::move(rest),
                    {.condition = some, .copy_if = false, .copied_from = 1}, cloner);
    }

    Kernel& kernel_;
};

}  // namespace

bool BypassLoops(Kernel& kernel) {
    return Bypasser(kernel).Run();
}

}  // namespace fornax::kernel
