// Invocations that part between barriers: a barrier is met by all of a workgroup or by none
// (OpControlBarrier), so they may go different ways as long as they come together before the next.
#include <algorithm>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr ValueType kUint{Kind::kU32, 1, 1};
constexpr ValueType kBool{Kind::kBool, 1, 1};

}  // namespace

// Whose merge block a break goes to; null for none.
Generator::Around* Generator::InnermostTarget() {
    auto found = std::find_if(around_.rbegin(), around_.rend(),
                              [](const Around& around) { return around.merge != nullptr; });
    return found == around_.rend() ? nullptr : &*found;
}

Generator::Around* Generator::InnermostLoop() {
    auto found = std::ranges::find_if(around_.rbegin(), around_.rend(), &Around::is_loop);
    return found == around_.rend() ? nullptr : &*found;
}

void Generator::Return() {
    if (in_main_) {
        StoreDigest();
    }
    if (in_main_ || !returns_value_) {
        b_.EmitVoid(Op::OpReturn, {});
    } else {
        Id value = Value(result_, 2);
        b_.EmitVoid(Op::OpReturnValue, {value});
    }
    dead_ = true;
}

void Generator::Leave(Way way) {
    if (way == Way::kReturn) {
        Return();
    } else {
        Jump(way == Way::kBreak ? *InnermostTarget()->merge : *InnermostLoop()->continuing);
    }
}

// A barrier that no invocation meets, for a reason that is known when the module runs.
void Generator::NeverBarrier() {
    ValueType triple{Kind::kU32, 3, 1};
    Id groups = b_.Emit(Op::OpLoad, b_.Type(triple), {num_workgroups_});
    Id count = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {groups, Below(3)});
    Id never = Emit(Op::OpUGreaterThan, kBool, {count, b_.Uint(kMaxWorkgroups + Below(9))});
    const Id inside = b_.NewId();
    const Id behind = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
    b_.EmitVoid(Op::OpBranchConditional, {never, inside, behind});
    const size_t mark = pool_.size();
    StartBlock(inside);
    if (shared_.empty() || Chance(40)) {
        ControlBarrier();
    } else {
        Exchange();
    }
    b_.EmitVoid(Op::OpBranch, {behind});
    pool_.resize(mark);
    StartBlock(behind);
}

// In a branch that all take or none, some leave one way, and the others, without a barrier, another
// one: to the same place, or out of the only loop or switch, so that none comes back to a barrier.
void Generator::PartStatement(uint32_t budget, uint32_t depth) {
    const bool was_returned = returned_;
    Id condition = UniformCondition();
    const Id inside = b_.NewId();
    const Id behind = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
    b_.EmitVoid(Op::OpBranchConditional, {condition, inside, behind});
    const size_t mark = pool_.size();
    around_.push_back({});
    StartBlock(inside);
    if (Chance(50)) {
        Statements(Below(budget / 2 + 1), depth + 1);
    }
    if (!dead_) {
        Around* inner = InnermostTarget();
        Around* loop = InnermostLoop();
        Way some = Way::kReturn;
        if (inner && Chance(50)) {
            some = Way::kBreak;
        } else if (loop && loop->continuing && Chance(50)) {
            some = Way::kContinue;
        }
        Way others = some;
        const auto loops = std::ranges::count_if(
            around_, [&](const Around& around) { return around.is_loop && &around != inner; });
        if (some == Way::kReturn && inner && loops == 0 && Chance(60)) {
            others = Way::kBreak;
            inner->returned = true;
        }
        Id parting = Condition();
        uniform_ = false;
        const Id leaves = b_.NewId();
        const Id stays = b_.NewId();
        b_.EmitVoid(Op::OpSelectionMerge, {stays, 0});
        if (Chance(50)) {
            b_.EmitVoid(Op::OpBranchConditional, {parting, leaves, stays});
        } else {
            b_.EmitVoid(Op::OpBranchConditional, {parting, stays, leaves});
        }
        StartBlock(leaves);
        Leave(some);
        StartBlock(stays);
        Statements(Below(budget / 2 + 2), depth + 1);
        if (!dead_) {
            Leave(others);
        }
    }
    around_.pop_back();
    pool_.resize(mark);
    returned_ = was_returned;
    uniform_ = true;
    StartBlock(behind);
}

}  // namespace fornax::kernel::fuzz
