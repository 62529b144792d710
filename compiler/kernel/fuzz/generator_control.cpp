// Statements and structured control flow (SPIR-V 2.11.2, Structured Control-Flow Constructs).
#include "compiler/kernel/fuzz/generator_control.h"

#include <algorithm>

namespace fornax::kernel::fuzz {

namespace {

constexpr uint32_t kMaxDepth = 4;

uint64_t Mix(uint64_t a, uint64_t b) {
    return Random(a ^ (b + 1) * 0xd1342543de82ef95u).Next();
}

}  // namespace

Target StatementGenerator::NewTarget(uint32_t max_phis) {
    Target target;
    target.label = b_.NewId();
    uint32_t count = max_phis ? Below(max_phis + 1) : 0;
    for (uint32_t i = 0; i < count; ++i) {
        target.phis.push_back(AnyType());
    }
    return target;
}

// Picked before the block ends; nothing is emitted.
std::vector<Id> StatementGenerator::PhiValues(const Target& target) {
    std::vector<Id> values;
    for (ValueType type : target.phis) {
        auto picked = Pick(type);
        values.push_back(picked && Chance(80) ? *picked : RandomConstant(type));
    }
    return values;
}

void StatementGenerator::Jump(Target& target) {
    target.incoming.push_back({state_.block, PhiValues(target)});
    b_.EmitVoid(Op::OpBranch, {target.label});
    state_.dead = true;
}

void StatementGenerator::Begin(Target& target) {
    StartBlock(target.label);
    if (target.incoming.empty()) {
        b_.EmitVoid(Op::OpUnreachable, {});
        state_.dead = true;
        return;
    }
    for (size_t i = 0; i < target.phis.size(); ++i) {
        std::vector<uint32_t> operands;
        for (const Target::Incoming& incoming : target.incoming) {
            operands.push_back(incoming.values[i]);
            operands.push_back(incoming.from);
        }
        Add(target.phis[i], b_.Emit(Op::OpPhi, b_.Type(target.phis[i]), operands));
    }
}

// After a construct that was begun by all invocations together or not.
void StatementGenerator::BackToUniform(bool was_uniform) {
    state_.uniform = was_uniform && !state_.returned;
    for (auto it = state_.around.rbegin(); it != state_.around.rend(); ++it) {
        state_.uniform &= !it->left;
        if (it->is_loop) {
            break;
        }
    }
}

void StatementGenerator::Statements(uint32_t budget, uint32_t depth) {
    const uint64_t parent = state_.statement;
    for (uint32_t i = 0; budget > 0 && i < 40; ++i) {
        const uint32_t inner = 1 + Below(std::max(1u, budget / 2));
        budget -= std::min(budget, inner);
        const uint64_t number = Mix(parent, i);
        state_.module.statements.push_back(number);
        if (state_.dead || state_.options.dropped.contains(number)) {
            continue;
        }
        Random outer = state_.random;
        state_.random = Random(number);
        state_.statement = number;
        Statement(inner, depth);
        state_.random = outer;
    }
    state_.statement = parent;
}

void StatementGenerator::Statement(uint32_t budget, uint32_t depth) {
    if (state_.lane_variable && Chance(18)) {
        subgroups_.SubgroupStatement();
        return;
    }
    if (state_.nevers && !state_.uniform && Chance(7)) {
        NeverBarrier();
        return;
    }
    if (state_.parts && state_.uniform && state_.has_barriers && depth < kMaxDepth &&
        Chance(depth > 0 ? 12 : 4)) {
        PartStatement(budget, depth);
        return;
    }
    if (state_.options.wide && Chance(25)) {
        for (int tries = 0; tries < 4; ++tries) {
            if (wide_.WideStatement()) {
                return;
            }
        }
    }
    uint32_t choice = Below(100);
    if (depth >= kMaxDepth) {
        choice %= 72;
    }
    if (choice < 24) {
        PureStatement();
    } else if (choice < 38) {
        memory_.StoreStatement();
    } else if (choice < 48) {
        memory_.LoadStatement();
    } else if (choice < 52) {
        memory_.CopyStatement();
    } else if (choice < 55) {
        atomics_.OwnAtomic();
    } else if (choice < 57) {
        atomics_.CounterAtomic();
    } else if (choice < 62) {
        CallStatement();
    } else if (choice < 66 && state_.uniform && state_.has_barriers) {
        Chance(70) ? atomics_.Exchange() : atomics_.Tally();
    } else if (choice < 70 && CanLeave() && depth > 0) {
        LeaveStatement();
    } else if (choice < 72 && depth > 0) {
        ReturnStatement();
    } else if (choice < 84) {
        IfStatement(budget, depth);
    } else if (choice < 90 && depth < kMaxDepth) {
        SwitchStatement(budget, depth);
    } else if (depth < kMaxDepth) {
        LoopStatement(budget, depth);
    }
}

void StatementGenerator::PureStatement() {
    ValueType type = AnyType();
    if (Chance(10)) {
        type.kind = Kind::kBool;
    } else if (IsFloat(type.kind) && type.rows > 1 && Chance(20)) {
        type.columns = static_cast<uint8_t>(2 + Below(3));
    }
    Id id = values_.Value(type, 1 + Below(3));
    if (Chance(5)) {
        id = Emit(Op::OpCopyObject, type, {id});
    }
    // Outside of its range only what Small has been through is exact.
    if (type.columns == 1 || !state_.exact) {
        Add(type, id);
    }
}

void StatementGenerator::IfStatement(uint32_t budget, uint32_t depth) {
    const bool was_uniform = state_.uniform;
    const bool together = was_uniform && Chance(40);
    Id condition = together ? values_.UniformCondition() : values_.Condition();
    state_.uniform = together;
    Target merge = NewTarget(2);
    const bool has_else = Chance(55) || !merge.phis.empty();
    Id then_label = b_.NewId();
    Id else_label = has_else ? b_.NewId() : merge.label;
    const size_t mark = state_.pool.size();
    const uint32_t hint = Below(4) < 3 ? 0 : 1 + Below(2);
    b_.EmitVoid(Op::OpSelectionMerge, {merge.label, hint});
    if (Chance(15)) {
        b_.EmitVoid(Op::OpBranchConditional, {condition, then_label, else_label, 1, 3});
    } else {
        b_.EmitVoid(Op::OpBranchConditional, {condition, then_label, else_label});
    }
    if (!has_else) {
        merge.incoming.push_back({state_.block, {}});
    }
    state_.around.push_back({});
    std::vector<Pooled> from_then;
    StartBlock(then_label);
    Statements(Below(budget + 1), depth + 1);
    const bool then_lives = !state_.dead;
    if (then_lives) {
        Jump(merge);
    }
    if (then_lives) {
        from_then.assign(state_.pool.begin() + static_cast<ptrdiff_t>(mark), state_.pool.end());
    }
    state_.pool.resize(mark);
    bool else_lives = !has_else;
    if (has_else) {
        state_.uniform = together && !state_.returned;
        StartBlock(else_label);
        Statements(Below(budget + 1), depth + 1);
        else_lives = !state_.dead;
        if (else_lives) {
            Jump(merge);
        }
        // What one side made dominates what follows if the other one left.
        if (then_lives || !else_lives) {
            state_.pool.resize(mark);
        }
        if (then_lives && !else_lives) {
            state_.pool.insert(state_.pool.end(), from_then.begin(), from_then.end());
        }
    }
    const bool left = state_.around.back().left;
    state_.around.pop_back();
    if (left && !state_.around.empty()) {
        state_.around.back().left = true;
    }
    Begin(merge);
    BackToUniform(was_uniform);
}

void StatementGenerator::SwitchStatement(uint32_t budget, uint32_t depth) {
    const bool was_uniform = state_.uniform;
    const bool together = was_uniform && Chance(30);
    Kind kind = Chance(75) ? Kind::kU32 : AnyIntKind();
    if (together) {
        kind = Kind::kU32;
    }
    ValueType type{kind, 1, 1};
    Id selector = together ? values_.UniformWord()
                  : Chance(80)
                      ? Emit(Op::OpBitwiseAnd, type, {values_.Value(type, 1), b_.Splat(type, 7)})
                      : values_.Value(type, 1);
    state_.uniform = together;
    Target merge = NewTarget(2);
    const uint32_t cases = 1 + Below(4);
    const bool default_is_merge = Chance(35);
    std::vector<Target> targets;
    for (uint32_t i = 0; i < cases + (default_is_merge ? 0 : 1); ++i) {
        targets.push_back(NewTarget(1));
    }
    // The default's block comes last.
    Target& default_target = default_is_merge ? merge : targets.back();
    const size_t mark = state_.pool.size();
    std::vector<uint32_t> operands = {selector, default_target.label};
    uint32_t literal = Below(3);
    std::vector<Id> reached = {default_target.label};
    for (uint32_t i = 0; i < cases; ++i) {
        const uint32_t literals = 1 + (Chance(20) ? 1 : 0);
        for (uint32_t k = 0; k < literals; ++k) {
            operands.push_back(literal);
            if (BitsOf(kind) == 64) {
                operands.push_back(0);
            }
            operands.push_back(targets[i].label);
            literal += 1 + Below(2);
        }
    }
    for (Target& target : targets) {
        target.incoming.push_back({state_.block, PhiValues(target)});
    }
    if (default_is_merge) {
        merge.incoming.push_back({state_.block, PhiValues(merge)});
    }
    b_.EmitVoid(Op::OpSelectionMerge, {merge.label, 0});
    b_.EmitVoid(Op::OpSwitch, operands);
    Around around;
    around.merge = &merge;
    around.must_stay = together;
    state_.around.push_back(around);
    for (size_t i = 0; i < targets.size(); ++i) {
        state_.uniform = together && !state_.returned && !state_.around.back().left;
        Begin(targets[i]);
        Statements(Below(budget / 2 + 2), depth + 1);
        if (!state_.dead) {
            const bool falls = i + 1 < cases && Chance(30);
            Jump(falls ? targets[i + 1] : merge);
        }
        state_.pool.resize(mark);
    }
    // Who left for the loop around is missing there too.
    const bool left = state_.around.back().left;
    state_.returned |= state_.around.back().returned;
    state_.around.pop_back();
    if (left && !state_.around.empty()) {
        state_.around.back().left = true;
    }
    Begin(merge);
    BackToUniform(was_uniform);
}

bool StatementGenerator::CanLeave() const {
    if (state_.around.empty()) {
        return false;
    }
    for (auto it = state_.around.rbegin(); it != state_.around.rend(); ++it) {
        if (it->merge) {
            return !it->must_stay;
        }
    }
    return false;
}

// Breaks or continues on a condition, or at once.
void StatementGenerator::LeaveStatement() {
    Around* inner = InnermostTarget();
    Around* loop = InnermostLoop();
    if (!inner) {
        return;
    }
    Target* target = inner->merge;
    bool of_loop = inner->is_loop;
    if (loop && loop->continuing && Chance(50) && !loop->must_stay) {
        target = loop->continuing;
        of_loop = true;
    } else if (loop && loop != inner && Chance(30) && !loop->must_stay) {
        target = loop->merge;  // out of a switch
        of_loop = true;
    }
    Id condition = Chance(75) ? values_.Condition() : 0;
    // Constructs between here and there are skipped by some.
    for (auto it = state_.around.rbegin(); it != state_.around.rend(); ++it) {
        it->left = true;
        if (&*it == (of_loop ? loop : inner)) {
            break;
        }
    }
    state_.uniform = false;
    if (!condition) {
        Jump(*target);
        return;
    }
    Id stays = b_.NewId();
    target->incoming.push_back({state_.block, PhiValues(*target)});
    const bool inverted = Chance(40);
    std::vector<uint32_t> operands = {condition, inverted ? stays : target->label,
                                      inverted ? target->label : stays};
    // Without a merge instruction where the other side goes on (2.11.2: a selection needs none that
    // exits), or as a selection whose one side leaves.
    if (Chance(60)) {
        b_.EmitVoid(Op::OpBranchConditional, operands);
        StartBlock(stays);
        return;
    }
    Id leaves = b_.NewId();
    target->incoming.back().from = leaves;
    operands[inverted ? 2 : 1] = leaves;
    b_.EmitVoid(Op::OpSelectionMerge, {stays, 0});
    b_.EmitVoid(Op::OpBranchConditional, operands);
    StartBlock(leaves);
    b_.EmitVoid(Op::OpBranch, {target->label});
    StartBlock(stays);
}

void StatementGenerator::ReturnStatement() {
    for (const Around& around : state_.around) {
        if (around.must_stay) {
            return;
        }
    }
    // Where no barrier may follow.
    if (state_.in_main && (state_.uniform || Chance(70))) {
        return;
    }
    Id condition = values_.Condition();
    Id leaves = b_.NewId();
    Id stays = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {stays, 0});
    b_.EmitVoid(Op::OpBranchConditional, {condition, leaves, stays});
    StartBlock(leaves);
    Return();
    StartBlock(stays);
    state_.returned = true;
    state_.uniform = false;
}

void StatementGenerator::CallStatement() {
    if (state_.functions.empty()) {
        return;
    }
    const Function& function =
        state_.functions[Below(static_cast<uint32_t>(state_.functions.size()))];
    if (function.has_barrier && (!state_.uniform || !state_.has_barriers)) {
        return;
    }
    Id result = Call(function);
    Add(function.result, result);
}

// A counter bounds the loop; it counts in the continue construct, so that every way round makes
// progress.
void StatementGenerator::LoopStatement(uint32_t budget, uint32_t depth) {
    const bool was_uniform = state_.uniform;
    const bool together = was_uniform && Chance(45);
    Id limit =
        together     ? (Chance(60) ? b_.Uint(1 + Below(4))
                                   : Emit(Op::OpBitwiseAnd, kUint, {values_.UniformWord(), b_.Uint(3)}))
        : Chance(50) ? b_.Uint(1 + Below(5))
                     : values_.Masked(kUint, 3);
    Target merge = NewTarget(2);
    Target continuing = NewTarget(2);
    std::vector<ValueType> carried;
    for (uint32_t count = Below(3); count > 0; --count) {
        carried.push_back(AnyType());
    }
    const Id header = b_.NewId();
    const Id before = state_.block;
    std::vector<Id> first;
    for (ValueType type : carried) {
        auto picked = Pick(type);
        first.push_back(picked ? *picked : RandomConstant(type));
    }
    b_.EmitVoid(Op::OpBranch, {header});
    const size_t outer_mark = state_.pool.size();
    StartBlock(header);
    const Id counter = b_.NewId();
    const size_t counter_phi = b_.EmitOpenPhi(counter, b_.Type(kUint), b_.Uint(0), before);
    std::vector<size_t> phis;
    for (size_t i = 0; i < carried.size(); ++i) {
        Id id = b_.NewId();
        phis.push_back(b_.EmitOpenPhi(id, b_.Type(carried[i]), first[i], before));
        Add(carried[i], id);
    }
    Add(kUint, counter);
    if (together) {
        state_.uniform_words.push_back(counter);
    }
    state_.uniform = together;
    Around around;
    around.merge = &merge;
    around.continuing = &continuing;
    around.is_loop = true;
    around.must_stay = together;
    state_.around.push_back(around);

    // Where the limit is tested: in the header, at the body's end, or in the continue construct.
    const uint32_t form = Below(3);
    static constexpr uint32_t kHints[] = {0, 0, 0, 1, 2};
    const uint32_t hint = kHints[Below(5)];
    Id body = b_.NewId();
    if (form == 0) {
        if (Chance(50)) {
            Add(kUint, values_.Value(kUint, 1));
        }
        Id stays = Emit(Op::OpULessThan, kBool, {counter, limit});
        merge.incoming.push_back({state_.block, PhiValues(merge)});
        b_.EmitVoid(Op::OpLoopMerge, {merge.label, continuing.label, hint});
        b_.EmitVoid(Op::OpBranchConditional, {stays, body, merge.label});
    } else {
        b_.EmitVoid(Op::OpLoopMerge, {merge.label, continuing.label, hint});
        b_.EmitVoid(Op::OpBranch, {body});
    }
    // The header's values dominate the merge block.
    const size_t header_mark = state_.pool.size();
    StartBlock(body);
    Statements(1 + Below(budget + 1), depth + 1);
    if (!state_.dead && form == 1) {
        Id following = Emit(Op::OpIAdd, kUint, {counter, b_.Uint(1)});
        Id leaves = Emit(Op::OpUGreaterThanEqual, kBool, {following, limit});
        merge.incoming.push_back({state_.block, PhiValues(merge)});
        continuing.incoming.push_back({state_.block, PhiValues(continuing)});
        b_.EmitVoid(Op::OpBranchConditional, {leaves, merge.label, continuing.label});
        state_.dead = true;
    }
    if (!state_.dead) {
        Jump(continuing);
    }
    state_.pool.resize(header_mark);

    state_.around.back().continuing = nullptr;
    state_.around.back().merge = nullptr;  // its statements do not leave
    state_.uniform = false;
    // Without a way to it, the continue construct still goes back (2.11.1: a back edge).
    StartBlock(continuing.label);
    for (size_t i = 0; i < continuing.phis.size() && !continuing.incoming.empty(); ++i) {
        std::vector<uint32_t> operands;
        for (const Target::Incoming& incoming : continuing.incoming) {
            operands.push_back(incoming.values[i]);
            operands.push_back(incoming.from);
        }
        Add(continuing.phis[i], b_.Emit(Op::OpPhi, b_.Type(continuing.phis[i]), operands));
    }
    if (Chance(40)) {
        PureStatement();
    }
    if (Chance(30)) {
        memory_.StoreStatement();
    }
    Id following = Emit(Op::OpIAdd, kUint, {counter, b_.Uint(1)});
    std::vector<Id> next;
    for (ValueType type : carried) {
        auto picked = Pick(type);
        next.push_back(picked ? *picked : RandomConstant(type));
    }
    if (form != 0) {
        // Also where the body ends with the test: a continue may have skipped it.
        Id stays = Emit(Op::OpULessThan, kBool, {following, limit});
        merge.incoming.push_back({state_.block, PhiValues(merge)});
        b_.EmitVoid(Op::OpBranchConditional, {stays, header, merge.label});
    } else {
        b_.EmitVoid(Op::OpBranch, {header});
    }
    b_.SetLastPhiValue(counter_phi, following, state_.block);
    for (size_t i = 0; i < phis.size(); ++i) {
        b_.SetLastPhiValue(phis[i], next[i], state_.block);
    }
    state_.returned |= state_.around.back().returned;
    state_.around.pop_back();
    if (together) {
        state_.uniform_words.pop_back();
    }
    state_.pool.resize(form == 0 ? header_mark : outer_mark);
    Begin(merge);
    BackToUniform(was_uniform);
}

}  // namespace fornax::kernel::fuzz
