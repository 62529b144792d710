// Branches between barriers that may go different ways.
//
// Code generation runs a construct that holds a barrier, or an exit from such a construct, once for
// the workgroup, and takes its condition from any invocation. A shader may also branch there
// differently by invocation, as long as no invocation then meets a barrier before all come together
// again (other branches decide that):
//   if %c { ...; if %d { ...; barrier; ... } ... }
// Where %c differs between invocations as far as patterns tell, the workgroup finds out:
//   %same, %first = do all invocations have the value of one of them (through workgroup memory)
//   if %same { if %first { as before } } else { if %c { the same without barriers } }
// A branch that leaves a construct, such as an early return of an inlined function out of a loop,
// parts the invocations until that construct's end:
//   scope @0 { A; if %c { exit @0 } ...; B }
// becomes
//   %apart = scope @0 {
//     A; if %same {} else { exit @0 (true) }
//     if %first { exit @0 (false) } ...; B
//   }
//   if %apart { scope @1 { if %c { exit @1 } ...; B without barriers } }
// Ways that lead further out are taken behind that, by branches that are split in turn. A way to
// the end of the kernel is a return instead, which needs no copies: code generation leaves
// invocations out that returned, and counts them as arrived at all barriers. OpControlBarrier
// leaves open what those barriers do for the others; programs count on it, because processors do
// the same. Branches are left alone if invocations that go different ways would meet barriers
// (barrier_paths.h). Where the kernel would grow too long, none is split, and invocations carry
// with them where they are (barrier_states.h).
#include <algorithm>
#include <utility>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/ir/any_inside.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/transform/barrier_paths.h"
#include "compiler/kernel/transform/barrier_rest.h"
#include "compiler/kernel/transform/barrier_states.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"
#include "hal/device.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Any width tells values that differ by lane from those that do not.
constexpr uint32_t kLanes = 16;
constexpr uint32_t kSlotBytes = 8;
class BranchSplitter {
  public:
    explicit BranchSplitter(Kernel& kernel)
        : kernel_(kernel),
          slot_((kernel.shared_bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes) {}

    void Run(uint32_t max_growth) {
        if (slot_ + 2 * kSlotBytes > hal::kMaxSharedBytes) {
            return;  // more than a program may have
        }
        // Branches that were split have uniform conditions, so each round finds others.
        const uint32_t before = kernel_.num_insts();
        Kernel whole;  // as it was
        for (;;) {
            const std::vector<bool> level = FindWorkgroupLevel(kernel_);
            if (std::ranges::find(level, true) == level.end()) {
                return;
            }
            const LaneAnalysis patterns(kernel_, kLanes, level);
            const Structure structure(kernel_);
            BarrierPaths paths(kernel_, structure);
            level_ = &level;
            patterns_ = &patterns;
            ends_ = FindEnds(structure);
            std::vector<InstId> branches;
            FindBranches(kernel_.body, paths, branches);
            if (branches.empty()) {
                return;
            }
            bool returns = false;
            for (InstId branch : branches) {
                returns |= ReturnAtEnds(branch);
            }
            if (returns) {
                continue;
            }
            if (whole.num_insts() == 0) {
                whole = kernel_;
            }
            for (InstId branch : branches) {
                if (kernel_.num_insts() - before >= max_growth) {
                    kernel_ = std::move(whole);
                    CarryBarrierStates(kernel_, slot_);
                    return;
                }
                Split(branch);
            }
        }
    }

  private:
    // The branches to split that are not inside of one another.
    void FindBranches(BlockId block, BarrierPaths& paths, std::vector<InstId>& found) const {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.blocks.empty() || !(*level_)[id.value()]) {
                continue;
            }
            if (MayPart(id, paths)) {
                found.push_back(id);
                continue;
            }
            for (BlockId inner : inst.blocks) {
                FindBranches(inner, paths, found);
            }
        }
    }

    bool MayPart(InstId id, BarrierPaths& paths) const {
        const Instruction& inst = kernel_.inst(id);
        if (inst.op != Op::kIf && inst.op != Op::kSwitch) {
            return false;
        }
        const LanePattern& pattern = patterns_->pattern(inst.operands[0]);
        if (pattern.uniform() && pattern.workgroup) {
            return false;
        }
        const std::vector<SideWays> sides = paths.Sides(id);
        const bool leaves =
            std::ranges::any_of(sides, [](const SideWays& side) { return !side.leaves.empty(); });
        return leaves ? !paths.TakenTogether(id) || LeadsToAnEnd(id) : HoldsBarrier(kernel_, id);
    }

    // By instruction: the scopes and branches behind which nothing happens, at the kernel's end.
    std::vector<bool> FindEnds(const Structure& structure) const {
        std::vector<bool> ends(kernel_.num_insts());
        for (InstId id : structure.preorder) {
            const Op op = kernel_.inst(id).op;
            if (op != Op::kScope && op != Op::kIf && op != Op::kSwitch) {
                continue;
            }
            const BlockId block = structure.block_of[id.value()];
            const std::vector<InstId>& insts = kernel_.block(block).insts;
            const auto rest = insts.begin() + structure.position[id.value()] + 1;
            const Instruction& last = kernel_.inst(insts.back());
            const bool to_end =
                last.op == Op::kReturn ||
                (last.op == Op::kYield && ends[kernel_.block(block).parent.value()]) ||
                (last.op == Op::kExit && ends[last.target.value()]);
            ends[id.value()] = to_end && std::all_of(rest, insts.end() - 1, [&](InstId behind) {
                                   return HasProperty(kernel_.inst(behind).op, kPure);
                               });
        }
        return ends;
    }

    // True for a branch without barriers of which a way leads to the kernel's end.
    bool LeadsToAnEnd(InstId branch) const {
        auto leads = [&](const Instruction& inst) {
            return inst.op == Op::kExit && inst.target != branch && ends_[inst.target.value()];
        };
        return !HoldsBarrier(kernel_, branch) && AnyInside(kernel_, branch, leads);
    }

    // Such ways become returns. True if there are any.
    bool ReturnAtEnds(InstId branch) {
        if (!LeadsToAnEnd(branch)) {
            return false;
        }
        auto visit = [&](auto& self, InstId id) -> void {
            Instruction& inst = kernel_.inst(id);
            if (inst.op == Op::kExit && inst.target != branch && ends_[inst.target.value()]) {
                inst.op = Op::kReturn;
                inst.operands.clear();
                inst.target = {};
            }
            for (BlockId block : inst.blocks) {
                for (InstId inner : kernel_.block(block).insts) {
                    self(self, inner);
                }
            }
        };
        visit(visit, branch);
        return true;
    }

    void Split(InstId branch) {
        const Structure structure(kernel_);
        const BarrierPaths paths(kernel_, structure);
        const std::vector<SideWays> sides = paths.Sides(branch);
        std::vector<Way> leaves;
        for (const SideWays& side : sides) {
            leaves.insert(leaves.end(), side.leaves.begin(), side.leaves.end());
        }
        if (leaves.empty() || std::ranges::count(sides, true, &SideWays::falls) > 1) {
            SplitBranch(structure, branch);
            return;
        }
        const Way way = paths.Innermost(leaves);
        if (!way.continues) {
            SplitAround(structure, way.target, branch);
            return;
        }
        const InstId body = WrapBody(way.target);
        SplitAround(Structure(kernel_), body, branch);
    }

    // Takes out what the block holds from there on.
    std::vector<InstId> CutFrom(BlockId block, size_t index) {
        std::vector<InstId>& insts = kernel_.block(block).insts;
        const auto from = insts.begin() + static_cast<ptrdiff_t>(index);
        std::vector<InstId> rest(from, insts.end());
        insts.erase(from, insts.end());
        return rest;
    }

    void PutBack(BlockId block, const std::vector<InstId>& rest) {
        std::vector<InstId>& insts = kernel_.block(block).insts;
        insts.insert(insts.end(), rest.begin(), rest.end());
    }

    InstId AppendIf(BlockId block, ValueId condition, std::span<const Type> types) {
        const InstId branch =
            Builder(kernel_, block).Append(Op::kIf, std::vector{condition}, types);
        const BlockId then = kernel_.NewBlock(branch);
        const BlockId otherwise = kernel_.NewBlock(branch);
        kernel_.inst(branch).blocks = {then, otherwise};
        return branch;
    }

    std::vector<Type> ResultTypes(InstId id) const {
        std::vector<Type> types;
        for (ValueId result : kernel_.inst(id).results) {
            types.push_back(kernel_.type(result));
        }
        return types;
    }

    // The invocations come together again at the end of the branch itself.
    void SplitBranch(const Structure& structure, InstId branch) {
        const BlockId block = structure.block_of[branch.value()];
        BarrierRest copy(kernel_);
        copy.Copy(structure, branch, branch);

        const std::vector<InstId> rest = CutFrom(block, structure.position[branch.value()] + 1);
        kernel_.block(block).insts.pop_back();
        Builder builder(kernel_, block);
        const auto [same, first] = Agree(builder, kernel_.inst(branch).operands[0]);
        const InstId chosen = AppendIf(block, same, ResultTypes(branch));
        const BlockId together = kernel_.inst(chosen).blocks[0];
        const BlockId apart = kernel_.inst(chosen).blocks[1];

        Builder(kernel_, apart).Append(Op::kYield, copy.Append(apart), {});
        kernel_.inst(branch).operands[0] = first;
        kernel_.block(together).insts = {branch};
        Builder(kernel_, together)
            .Append(Op::kYield, std::vector(kernel_.inst(branch).results), {});
        PutBack(block, rest);
        ReplaceResults(branch, kernel_.inst(chosen).results, rest);
    }

    // They do at the end of a construct around it.
    void SplitAround(const Structure& structure, InstId around, InstId branch) {
        BarrierRest copy(kernel_);
        copy.Copy(structure, around, branch);
        const std::vector<Type> types = ResultTypes(around);
        const std::vector<ValueId> results = kernel_.inst(around).results;
        const ValueId parted = kernel_.AddResult(around, Type::kBool);
        for (InstId exit : structure.Exits(around)) {
            std::vector<InstId>& insts = kernel_.block(structure.block_of[exit.value()]).insts;
            insts.pop_back();
            Builder builder(kernel_, structure.block_of[exit.value()]);
            const ValueId stays = builder.ConstBool(false);
            kernel_.inst(exit).operands.push_back(stays);
            kernel_.block(builder.block()).insts.push_back(exit);
        }

        const BlockId block = structure.block_of[branch.value()];
        std::vector<InstId> rest = CutFrom(block, structure.position[branch.value()]);
        Builder builder(kernel_, block);
        const auto [same, first] = Agree(builder, kernel_.inst(branch).operands[0]);
        const InstId test = AppendIf(block, same, {});
        Builder(kernel_, kernel_.inst(test).blocks[0]).Append(Op::kYield, {}, {});
        const BlockId part = kernel_.inst(test).blocks[1];
        copy.Keep(part);
        Builder leaving(kernel_, part);
        std::vector<ValueId> values;
        for (Type type : types) {
            values.push_back(leaving.Emit(Op::kUndef, type, {}));
        }
        values.push_back(leaving.ConstBool(true));
        const InstId leave = leaving.Append(Op::kExit, values, {});
        kernel_.inst(leave).target = around;
        kernel_.inst(branch).operands[0] = first;
        PutBack(block, rest);

        const BlockId outer = structure.block_of[around.value()];
        const auto& insts = kernel_.block(outer).insts;
        const auto at = std::ranges::find(insts, around) - insts.begin();
        rest = CutFrom(outer, static_cast<size_t>(at) + 1);
        const InstId chosen = AppendIf(outer, parted, types);
        const BlockId apart = kernel_.inst(chosen).blocks[0];
        Builder(kernel_, apart).Append(Op::kYield, copy.Append(apart), {});
        Builder(kernel_, kernel_.inst(chosen).blocks[1]).Append(Op::kYield, results, {});
        PutBack(outer, rest);
        ReplaceResults(around, kernel_.inst(chosen).results, rest);
    }

    // Puts the body of a loop into a scope, whose exits take the place of the loop's continues.
    InstId WrapBody(InstId loop) {
        const BlockId body = kernel_.inst(loop).blocks[0];
        std::vector<Type> types;
        for (ValueId param : kernel_.block(kernel_.inst(loop).blocks[1]).params) {
            types.push_back(kernel_.type(param));
        }
        const InstId scope = kernel_.NewInst(Op::kScope, {}, types);
        const BlockId contents = kernel_.NewBlock(scope);
        kernel_.inst(scope).blocks = {contents};
        std::swap(kernel_.block(contents).insts, kernel_.block(body).insts);
        auto retarget = [&](auto& self, BlockId block) -> void {
            for (InstId id : kernel_.block(block).insts) {
                Instruction& inst = kernel_.inst(id);
                if (inst.op == Op::kContinue && inst.target == loop) {
                    inst.op = Op::kExit;
                    inst.target = scope;
                }
                for (BlockId inner : inst.blocks) {
                    self(self, inner);
                }
            }
        };
        retarget(retarget, contents);
        kernel_.block(body).insts = {scope};
        const InstId next =
            Builder(kernel_, body)
                .Append(Op::kContinue, std::vector(kernel_.inst(scope).results), {});
        kernel_.inst(next).target = loop;
        return scope;
    }

    void ReplaceResults(InstId from, std::span<const ValueId> to, const std::vector<InstId>& uses) {
        std::vector<ValueId> map(kernel_.num_values());
        for (size_t i = 0; i < to.size(); ++i) {
            map[kernel_.inst(from).results[i].value()] = to[i];
        }
        ReplaceIn(uses, map);
    }

    // Replaces uses in the instructions and all that is inside of them.
    void ReplaceIn(const std::vector<InstId>& insts, const std::vector<ValueId>& map) {
        for (InstId id : insts) {
            for (ValueId& operand : kernel_.inst(id).operands) {
                if (operand.value() < map.size() && map[operand.value()].valid()) {
                    operand = map[operand.value()];
                }
            }
            for (BlockId block : kernel_.inst(id).blocks) {
                ReplaceIn(kernel_.block(block).insts, map);
            }
        }
    }

    // Whether the value is one for the workgroup, and it if so. The barriers between keep the
    // accesses apart, also from those of another iteration.
    std::pair<ValueId, ValueId> Agree(Builder& builder, ValueId value) {
        const bool is_bool = kernel_.type(value) == Type::kBool;
        const Type type = is_bool ? Type::kI32 : kernel_.type(value);
        kernel_.shared_bytes = slot_ + 2 * kSlotBytes;
        auto store = [&](ValueId offset, ValueId stored) {
            builder.Append(Op::kStoreShared, std::vector{offset, stored}, {}, kSlotBytes, kVote);
        };
        auto load = [&](ValueId offset, Type loaded) {
            const InstId id = builder.Append(Op::kLoadShared, std::vector{offset}, {&loaded, 1},
                                             kSlotBytes, kVote);
            return kernel_.inst(id).results[0];
        };
        auto barrier = [&] { builder.Append(Op::kBarrier, {}, {}, 0, kVote); };
        const ValueId zero = builder.ConstI32(0);
        const ValueId one = builder.ConstI32(1);
        const ValueId value_slot = builder.ConstI32(slot_);
        const ValueId differs_slot = builder.ConstI32(slot_ + kSlotBytes);

        const ValueId mine = is_bool ? builder.Emit(Op::kSelect, type, {value, one, zero}) : value;
        store(value_slot, mine);  // of all that are stored, any one
        barrier();
        const ValueId theirs = load(value_slot, type);
        store(differs_slot, zero);
        barrier();
        const ValueId differs = builder.Emit(Op::kINe, Type::kBool, {theirs, mine});
        const InstId mark = builder.Append(Op::kIf, std::vector{differs}, {}, 0, kVote);
        const BlockId then = kernel_.NewBlock(mark);
        const BlockId otherwise = kernel_.NewBlock(mark);
        kernel_.inst(mark).blocks = {then, otherwise};
        Builder inner(kernel_, then);
        inner.Append(Op::kStoreShared, std::vector{differs_slot, one}, {}, kSlotBytes, kVote);
        inner.Append(Op::kYield, {}, {});
        Builder(kernel_, otherwise).Append(Op::kYield, {}, {});
        barrier();
        const ValueId marked = load(differs_slot, Type::kI32);
        const ValueId same = builder.Emit(Op::kIEq, Type::kBool, {marked, zero});
        const ValueId first =
            is_bool ? builder.Emit(Op::kINe, Type::kBool, {theirs, zero}) : theirs;
        return {same, first};
    }

    Kernel& kernel_;
    const uint32_t slot_;     // in workgroup memory: a value, then whether any differs from it
    std::vector<bool> ends_;  // FindEnds
    const std::vector<bool>* level_ = nullptr;
    const LaneAnalysis* patterns_ = nullptr;
};

}  // namespace

void SplitBarrierBranches(Kernel& kernel, uint32_t max_growth) {
    BranchSplitter(kernel).Run(max_growth);
}

void SplitBarrierBranches(Kernel& kernel) {
    // No branch is split once copies have made the kernel longer by this.
    constexpr uint32_t kMaxGrowth = 20'000;
    SplitBarrierBranches(kernel, kMaxGrowth);
}

}  // namespace fornax::kernel
