// Branches that hold a barrier but may go different ways.
//
// Code generation runs a construct that holds a barrier once for the workgroup and takes its
// condition from any invocation. A shader may also branch there differently by invocation, as long
// as no invocation then meets a barrier (another branch inside decides that):
//   if %c { ...; if %d { ...; barrier; ... } ... }
// Where %c differs between invocations as far as shapes tell, the workgroup finds out:
//   %same, %first = do all invocations have the value of one of them (through workgroup memory)
//   if %same { if %first { as before } } else { if %c { the same without barriers } }
// Branches that leave an outer construct stay as they are, and all do where workgroup memory is
// full.
#include <algorithm>
#include <utility>

#include "compiler/kernel/analysis/regions.h"
#include "compiler/kernel/analysis/shapes.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
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

    void Run() {
        if (slot_ + 2 * kSlotBytes > hal::kMaxSharedBytes)
            return;
        // A branch that was split has a uniform condition, so each round finds another one.
        for (;;) {
            const std::vector<bool> level = FindWorkgroupLevel(kernel_);
            if (std::ranges::find(level, true) == level.end())
                return;
            const ShapeAnalysis shapes(kernel_, kLanes, level);
            level_ = &level;
            shapes_ = &shapes;
            const Place place = FindBranch(kernel_.body);
            if (!place.block.valid())
                return;
            Split(place);
        }
    }

  private:
    struct Place {
        BlockId block;
        size_t index = 0;
    };

    // The first branch to split in the order of the text: outer ones come before those inside.
    Place FindBranch(BlockId block) const {
        const std::vector<InstId>& insts = kernel_.block(block).insts;
        for (size_t i = 0; i < insts.size(); ++i) {
            const Instruction& inst = kernel_.inst(insts[i]);
            if (inst.blocks.empty() || !(*level_)[insts[i].index])
                continue;
            if (inst.op == Op::kIf || inst.op == Op::kSwitch) {
                const Shape& shape = shapes_->shape(inst.operands[0]);
                const bool uniform = shape.uniform() && shape.workgroup;
                if (!uniform && HoldsBarrier(insts[i]) && !Leaves(insts[i]))
                    return {block, i};
            }
            for (BlockId inner : inst.blocks) {
                const Place place = FindBranch(inner);
                if (place.block.valid())
                    return place;
            }
        }
        return {};
    }

    bool HoldsBarrier(InstId id) const {
        const Instruction& inst = kernel_.inst(id);
        return inst.op == Op::kBarrier || std::ranges::any_of(inst.blocks, [&](BlockId block) {
                   return std::ranges::any_of(kernel_.block(block).insts,
                                              [&](InstId inner) { return HoldsBarrier(inner); });
               });
    }

    // True if the construct holds an exit from or a `continue` of a construct around it.
    bool Leaves(InstId construct) const {
        std::vector<InstId> inside = {construct};
        auto visit = [&](auto& self, InstId id) -> bool {
            const Instruction& inst = kernel_.inst(id);
            if (inst.target.valid() && std::ranges::find(inside, inst.target) == inside.end())
                return true;
            if (!inst.blocks.empty())
                inside.push_back(id);
            return std::ranges::any_of(inst.blocks, [&](BlockId block) {
                return std::ranges::any_of(kernel_.block(block).insts,
                                           [&](InstId inner) { return self(self, inner); });
            });
        };
        return visit(visit, construct);
    }

    void RemoveBarriers(BlockId block) {
        for (InstId id : kernel_.block(block).insts) {
            if (kernel_.inst(id).op == Op::kBarrier)
                kernel_.inst(id).op = Op::kMemoryBarrier;
            for (BlockId inner : std::vector(kernel_.inst(id).blocks))
                RemoveBarriers(inner);
        }
    }

    void Split(Place place) {
        std::vector<InstId> insts = kernel_.block(place.block).insts;
        const InstId branch = insts[place.index];
        const std::vector<InstId> rest(insts.begin() + static_cast<ptrdiff_t>(place.index) + 1,
                                       insts.end());
        insts.resize(place.index);
        kernel_.block(place.block).insts = insts;

        Builder builder(kernel_, place.block);
        const ValueId value = kernel_.inst(branch).operands[0];
        const auto [same, first] = Agree(builder, value);

        std::vector<Type> types;
        for (ValueId result : kernel_.inst(branch).results)
            types.push_back(kernel_.type(result));
        const InstId chosen = builder.Append(Op::kIf, std::vector{same}, types);
        const BlockId together = kernel_.NewBlock(chosen);
        const BlockId apart = kernel_.NewBlock(chosen);
        kernel_.inst(chosen).blocks = {together, apart};

        // The copy, one branch in a block of its own, is made before the original changes.
        const BlockId alone = kernel_.NewBlock(InstId{});
        kernel_.block(alone).insts = {branch};
        Cloner(kernel_).CloneInto(alone, apart, true);
        RemoveBarriers(apart);
        const InstId copy = kernel_.block(apart).insts.back();
        Builder(kernel_, apart).Append(Op::kYield, std::vector(kernel_.inst(copy).results), {});

        kernel_.inst(branch).operands[0] = first;
        kernel_.block(together).insts = {branch};
        Builder(kernel_, together)
            .Append(Op::kYield, std::vector(kernel_.inst(branch).results), {});

        std::vector<ValueId> map(kernel_.num_values());
        for (size_t i = 0; i < types.size(); ++i)
            map[kernel_.inst(branch).results[i].index] = kernel_.inst(chosen).results[i];
        auto& all = kernel_.block(place.block).insts;
        for (InstId id : rest)
            all.push_back(id);
        ReplaceIn(rest, map);
    }

    // Replaces uses in the instructions and all that is inside of them.
    void ReplaceIn(const std::vector<InstId>& insts, const std::vector<ValueId>& map) {
        for (InstId id : insts) {
            for (ValueId& operand : kernel_.inst(id).operands) {
                if (operand.index < map.size() && map[operand.index].valid())
                    operand = map[operand.index];
            }
            for (BlockId block : kernel_.inst(id).blocks)
                ReplaceIn(kernel_.block(block).insts, map);
        }
    }

    // Whether the value is one for the workgroup, and it if so. The barriers between keep the
    // accesses apart, also from those of another time round a loop.
    std::pair<ValueId, ValueId> Agree(Builder& builder, ValueId value) {
        const bool is_bool = kernel_.type(value) == Type::kBool;
        const Type type = is_bool ? Type::kI32 : kernel_.type(value);
        kernel_.shared_bytes = slot_ + 2 * kSlotBytes;
        auto store = [&](ValueId offset, ValueId stored) {
            builder.Append(Op::kStoreShared, std::vector{offset, stored}, {}, kSlotBytes);
        };
        auto load = [&](ValueId offset, Type loaded) {
            return builder.Emit(Op::kLoadShared, loaded, {offset}, kSlotBytes);
        };
        auto barrier = [&] { builder.Append(Op::kBarrier, {}, {}); };
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
        const InstId mark = builder.Append(Op::kIf, std::vector{differs}, {});
        const BlockId then = kernel_.NewBlock(mark);
        const BlockId otherwise = kernel_.NewBlock(mark);
        kernel_.inst(mark).blocks = {then, otherwise};
        Builder inner(kernel_, then);
        inner.Append(Op::kStoreShared, std::vector{differs_slot, one}, {}, kSlotBytes);
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
    const uint32_t slot_;  // in workgroup memory: a value, then whether any differs from it
    const std::vector<bool>* level_ = nullptr;
    const ShapeAnalysis* shapes_ = nullptr;
};

}  // namespace

void SplitBarrierBranches(Kernel& kernel) {
    BranchSplitter(kernel).Run();
}

}  // namespace fornax::kernel
