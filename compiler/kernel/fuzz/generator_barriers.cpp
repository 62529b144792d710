// Invocations that part between barriers: a barrier is met by all of a workgroup or by none
// (OpControlBarrier), so they may go different ways as long as they come together before the next.
#include <algorithm>

#include "compiler/kernel/fuzz/generator_control.h"

namespace fornax::kernel::fuzz {

// Whose merge block a break goes to; null for none.
Around* StatementGenerator::InnermostTarget() {
    auto found = std::find_if(state_.around.rbegin(), state_.around.rend(),
                              [](const Around& around) { return around.merge != nullptr; });
    return found == state_.around.rend() ? nullptr : &*found;
}

Around* StatementGenerator::InnermostLoop() {
    auto found =
        std::ranges::find_if(state_.around.rbegin(), state_.around.rend(), &Around::is_loop);
    return found == state_.around.rend() ? nullptr : &*found;
}

void StatementGenerator::Return() {
    if (state_.in_main) {
        StoreDigest();
    }
    if (state_.in_main || !state_.returns_value) {
        b_.EmitVoid(Op::OpReturn, {});
    } else {
        Id value = values_.Value(state_.result, 2);
        b_.EmitVoid(Op::OpReturnValue, {value});
    }
    state_.dead = true;
}

void StatementGenerator::Leave(Way way) {
    if (way == Way::kReturn) {
        Return();
    } else {
        Jump(way == Way::kBreak ? *InnermostTarget()->merge : *InnermostLoop()->continuing);
    }
}

// A barrier that no invocation meets, for a reason that is known when the module runs.
void StatementGenerator::NeverBarrier() {
    ValueType triple{Kind::kU32, 3, 1};
    Id groups = b_.Emit(Op::OpLoad, b_.Type(triple), {state_.num_workgroups});
    Id count = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {groups, Below(3)});
    Id never = Emit(Op::OpUGreaterThan, kBool, {count, b_.Uint(kMaxWorkgroups + Below(9))});
    const Id inside = b_.NewId();
    const Id behind = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
    b_.EmitVoid(Op::OpBranchConditional, {never, inside, behind});
    const size_t mark = state_.pool.size();
    StartBlock(inside);
    if (state_.shared.empty() || Chance(40)) {
        ControlBarrier();
    } else {
        atomics_.Exchange();
    }
    b_.EmitVoid(Op::OpBranch, {behind});
    state_.pool.resize(mark);
    StartBlock(behind);
}

// In a branch that all take or none, some leave one way, and the others, without a barrier, another
// one: to the same place, or out of the only loop or switch, so that none comes back to a barrier.
void StatementGenerator::PartStatement(uint32_t budget, uint32_t depth) {
    const bool was_returned = state_.returned;
    Id condition = values_.UniformCondition();
    const Id inside = b_.NewId();
    const Id behind = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
    b_.EmitVoid(Op::OpBranchConditional, {condition, inside, behind});
    const size_t mark = state_.pool.size();
    state_.around.push_back({});
    StartBlock(inside);
    if (Chance(50)) {
        Statements(Below(budget / 2 + 1), depth + 1);
    }
    if (!state_.dead) {
        Around* inner = InnermostTarget();
        Around* loop = InnermostLoop();
        Way some = Way::kReturn;
        if (inner && Chance(50)) {
            some = Way::kBreak;
        } else if (loop && loop->continuing && Chance(50)) {
            some = Way::kContinue;
        }
        Way others = some;
        const auto loops = std::ranges::count_if(state_.around, [&](const Around& around) {
            return around.is_loop && &around != inner;
        });
        if (some == Way::kReturn && inner && loops == 0 && Chance(60)) {
            others = Way::kBreak;
            inner->returned = true;
        }
        Id parting = values_.Condition();
        state_.uniform = false;
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
        if (!state_.dead) {
            Leave(others);
        }
    }
    state_.around.pop_back();
    state_.pool.resize(mark);
    state_.returned = was_returned;
    state_.uniform = true;
    StartBlock(behind);
}

Id StatementGenerator::Call(const Function& function) {
    std::vector<uint32_t> operands = {function.id};
    for (ValueType type : function.params) {
        operands.push_back(values_.Value(type, Below(3)));
    }
    for (const MemoryType& type : function.pointers) {
        std::vector<Id> found;
        for (const Variable& local : state_.locals) {
            if (local.type.id == type.id && local.storage == spv::StorageClass::Function) {
                found.push_back(local.id);
            }
        }
        if (found.empty()) {
            state_.locals.push_back(NewLocal(type));
            found.push_back(state_.locals.back().id);
        }
        operands.push_back(found[Below(static_cast<uint32_t>(found.size()))]);
    }
    return b_.Emit(Op::OpFunctionCall, function.result_id, operands);
}

}  // namespace fornax::kernel::fuzz
