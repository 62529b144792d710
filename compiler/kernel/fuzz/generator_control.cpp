// Statements and structured control flow (SPIR-V 2.11.2, Structured Control-Flow Constructs).
#include <algorithm>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr ValueType kUint{Kind::kU32, 1, 1};
constexpr ValueType kBool{Kind::kBool, 1, 1};
constexpr uint32_t kMaxDepth = 4;

uint64_t Mix(uint64_t a, uint64_t b) {
    return Random(a ^ (b + 1) * 0xd1342543de82ef95u).Next();
}

}  // namespace

// --- blocks and jumps

Generator::Target Generator::NewTarget(uint32_t max_phis) {
    Target target;
    target.label = b_.NewId();
    uint32_t count = max_phis ? Below(max_phis + 1) : 0;
    for (uint32_t i = 0; i < count; ++i) {
        target.phis.push_back(AnyType());
    }
    return target;
}

// Picked before the block ends; nothing is emitted.
std::vector<Id> Generator::PhiValues(const Target& target) {
    std::vector<Id> values;
    for (ValueType type : target.phis) {
        auto picked = Pick(type);
        values.push_back(picked && Chance(80) ? *picked : RandomConstant(type));
    }
    return values;
}

void Generator::Jump(Target& target) {
    target.incoming.push_back({block_, PhiValues(target)});
    b_.EmitVoid(Op::OpBranch, {target.label});
    dead_ = true;
}

void Generator::StartBlock(Id label) {
    b_.EmitVoid(Op::OpLabel, {label});
    block_ = label;
    dead_ = false;
}

void Generator::Begin(Target& target) {
    StartBlock(target.label);
    if (target.incoming.empty()) {
        b_.EmitVoid(Op::OpUnreachable, {});
        dead_ = true;
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
void Generator::BackToUniform(bool was_uniform) {
    uniform_ = was_uniform && !returned_;
    for (auto it = around_.rbegin(); it != around_.rend(); ++it) {
        uniform_ &= !it->left;
        if (it->is_loop) {
            break;
        }
    }
}

// --- statements

void Generator::Statements(uint32_t budget, uint32_t depth) {
    const uint64_t parent = statement_;
    for (uint32_t i = 0; budget > 0 && i < 40; ++i) {
        const uint32_t inner = 1 + Below(std::max(1u, budget / 2));
        budget -= std::min(budget, inner);
        const uint64_t number = Mix(parent, i);
        module_.statements.push_back(number);
        if (dead_ || options_.dropped.contains(number)) {
            continue;
        }
        Random outer = random_;
        random_ = Random(number);
        statement_ = number;
        Statement(inner, depth);
        random_ = outer;
    }
    statement_ = parent;
}

void Generator::Statement(uint32_t budget, uint32_t depth) {
    if (lane_variable_ && Chance(18)) {
        SubgroupStatement();
        return;
    }
    if (nevers_ && !uniform_ && Chance(7)) {
        NeverBarrier();
        return;
    }
    if (parts_ && uniform_ && has_barriers_ && depth < kMaxDepth && Chance(depth > 0 ? 12 : 4)) {
        PartStatement(budget, depth);
        return;
    }
    if (options_.wide && Chance(25)) {
        for (int tries = 0; tries < 4; ++tries) {
            if (WideStatement()) {
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
        StoreStatement();
    } else if (choice < 48) {
        LoadStatement();
    } else if (choice < 52) {
        CopyStatement();
    } else if (choice < 55) {
        OwnAtomic();
    } else if (choice < 57) {
        CounterAtomic();
    } else if (choice < 62) {
        CallStatement();
    } else if (choice < 66 && uniform_ && has_barriers_) {
        Chance(70) ? Exchange() : Tally();
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

void Generator::PureStatement() {
    ValueType type = AnyType();
    if (Chance(10)) {
        type.kind = Kind::kBool;
    } else if (IsFloat(type.kind) && type.rows > 1 && Chance(20)) {
        type.columns = static_cast<uint8_t>(2 + Below(3));
    }
    Id id = Value(type, 1 + Below(3));
    if (Chance(5)) {
        id = Emit(Op::OpCopyObject, type, {id});
    }
    // Outside of its range only what Small has been through is exact.
    if (type.columns == 1 || !exact_) {
        Add(type, id);
    }
}

void Generator::IfStatement(uint32_t budget, uint32_t depth) {
    const bool was_uniform = uniform_;
    const bool together = was_uniform && Chance(40);
    Id condition = together ? UniformCondition() : Condition();
    uniform_ = together;
    Target merge = NewTarget(2);
    const bool has_else = Chance(55) || !merge.phis.empty();
    Id then_label = b_.NewId();
    Id else_label = has_else ? b_.NewId() : merge.label;
    const size_t mark = pool_.size();
    const uint32_t hint = Below(4) < 3 ? 0 : 1 + Below(2);
    b_.EmitVoid(Op::OpSelectionMerge, {merge.label, hint});
    if (Chance(15)) {
        b_.EmitVoid(Op::OpBranchConditional, {condition, then_label, else_label, 1, 3});
    } else {
        b_.EmitVoid(Op::OpBranchConditional, {condition, then_label, else_label});
    }
    if (!has_else) {
        merge.incoming.push_back({block_, {}});
    }
    around_.push_back({});
    std::vector<Pooled> from_then;
    StartBlock(then_label);
    Statements(Below(budget + 1), depth + 1);
    const bool then_lives = !dead_;
    if (then_lives) {
        Jump(merge);
    }
    if (then_lives) {
        from_then.assign(pool_.begin() + static_cast<ptrdiff_t>(mark), pool_.end());
    }
    pool_.resize(mark);
    bool else_lives = !has_else;
    if (has_else) {
        uniform_ = together && !returned_;
        StartBlock(else_label);
        Statements(Below(budget + 1), depth + 1);
        else_lives = !dead_;
        if (else_lives) {
            Jump(merge);
        }
        // What one side made dominates what follows if the other one left.
        if (then_lives || !else_lives) {
            pool_.resize(mark);
        }
        if (then_lives && !else_lives) {
            pool_.insert(pool_.end(), from_then.begin(), from_then.end());
        }
    }
    const bool left = around_.back().left;
    around_.pop_back();
    if (left && !around_.empty()) {
        around_.back().left = true;
    }
    Begin(merge);
    BackToUniform(was_uniform);
}

void Generator::SwitchStatement(uint32_t budget, uint32_t depth) {
    const bool was_uniform = uniform_;
    const bool together = was_uniform && Chance(30);
    Kind kind = Chance(75) ? Kind::kU32 : AnyIntKind();
    if (together) {
        kind = Kind::kU32;
    }
    ValueType type{kind, 1, 1};
    Id selector = together     ? UniformWord()
                  : Chance(80) ? Emit(Op::OpBitwiseAnd, type, {Value(type, 1), b_.Splat(type, 7)})
                               : Value(type, 1);
    uniform_ = together;
    Target merge = NewTarget(2);
    const uint32_t cases = 1 + Below(4);
    const bool default_is_merge = Chance(35);
    std::vector<Target> targets;
    for (uint32_t i = 0; i < cases + (default_is_merge ? 0 : 1); ++i) {
        targets.push_back(NewTarget(1));
    }
    // The default's block comes last.
    Target& default_target = default_is_merge ? merge : targets.back();
    const size_t mark = pool_.size();
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
        target.incoming.push_back({block_, PhiValues(target)});
    }
    if (default_is_merge) {
        merge.incoming.push_back({block_, PhiValues(merge)});
    }
    b_.EmitVoid(Op::OpSelectionMerge, {merge.label, 0});
    b_.EmitVoid(Op::OpSwitch, operands);
    Around around;
    around.merge = &merge;
    around.must_stay = together;
    around_.push_back(around);
    for (size_t i = 0; i < targets.size(); ++i) {
        uniform_ = together && !returned_ && !around_.back().left;
        Begin(targets[i]);
        Statements(Below(budget / 2 + 2), depth + 1);
        if (!dead_) {
            const bool falls = i + 1 < cases && Chance(30);
            Jump(falls ? targets[i + 1] : merge);
        }
        pool_.resize(mark);
    }
    // Who left for the loop around is missing there too.
    const bool left = around_.back().left;
    returned_ |= around_.back().returned;
    around_.pop_back();
    if (left && !around_.empty()) {
        around_.back().left = true;
    }
    Begin(merge);
    BackToUniform(was_uniform);
}

bool Generator::CanLeave() const {
    if (around_.empty()) {
        return false;
    }
    for (auto it = around_.rbegin(); it != around_.rend(); ++it) {
        if (it->merge) {
            return !it->must_stay;
        }
    }
    return false;
}

// Breaks or continues on a condition, or at once.
void Generator::LeaveStatement() {
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
    Id condition = Chance(75) ? Condition() : 0;
    // Constructs between here and there are skipped by some.
    for (auto it = around_.rbegin(); it != around_.rend(); ++it) {
        it->left = true;
        if (&*it == (of_loop ? loop : inner)) {
            break;
        }
    }
    uniform_ = false;
    if (!condition) {
        Jump(*target);
        return;
    }
    Id stays = b_.NewId();
    target->incoming.push_back({block_, PhiValues(*target)});
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

void Generator::ReturnStatement() {
    for (const Around& around : around_) {
        if (around.must_stay) {
            return;
        }
    }
    // Where no barrier may follow.
    if (in_main_ && (uniform_ || Chance(70))) {
        return;
    }
    Id condition = Condition();
    Id leaves = b_.NewId();
    Id stays = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {stays, 0});
    b_.EmitVoid(Op::OpBranchConditional, {condition, leaves, stays});
    StartBlock(leaves);
    Return();
    StartBlock(stays);
    returned_ = true;
    uniform_ = false;
}

void Generator::CallStatement() {
    if (functions_.empty()) {
        return;
    }
    const Function& function = functions_[Below(static_cast<uint32_t>(functions_.size()))];
    if (function.has_barrier && (!uniform_ || !has_barriers_)) {
        return;
    }
    Id result = Call(function);
    Add(function.result, result);
}

// A counter bounds the loop; it counts in the continue construct, so that every way round makes
// progress.
void Generator::LoopStatement(uint32_t budget, uint32_t depth) {
    const bool was_uniform = uniform_;
    const bool together = was_uniform && Chance(45);
    Id limit = together     ? (Chance(60) ? b_.Uint(1 + Below(4))
                                          : Emit(Op::OpBitwiseAnd, kUint, {UniformWord(), b_.Uint(3)}))
               : Chance(50) ? b_.Uint(1 + Below(5))
                            : Masked(kUint, 3);
    Target merge = NewTarget(2);
    Target continuing = NewTarget(2);
    std::vector<ValueType> carried;
    for (uint32_t count = Below(3); count > 0; --count) {
        carried.push_back(AnyType());
    }
    const Id header = b_.NewId();
    const Id before = block_;
    std::vector<Id> first;
    for (ValueType type : carried) {
        auto picked = Pick(type);
        first.push_back(picked ? *picked : RandomConstant(type));
    }
    b_.EmitVoid(Op::OpBranch, {header});
    const size_t outer_mark = pool_.size();
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
        uniform_words_.push_back(counter);
    }
    uniform_ = together;
    Around around;
    around.merge = &merge;
    around.continuing = &continuing;
    around.is_loop = true;
    around.must_stay = together;
    around_.push_back(around);

    // Where the limit is tested: in the header, at the body's end, or in the continue construct.
    const uint32_t form = Below(3);
    static constexpr uint32_t kHints[] = {0, 0, 0, 1, 2};
    const uint32_t hint = kHints[Below(5)];
    Id body = b_.NewId();
    if (form == 0) {
        if (Chance(50)) {
            Add(kUint, Value(kUint, 1));
        }
        Id stays = Emit(Op::OpULessThan, kBool, {counter, limit});
        merge.incoming.push_back({block_, PhiValues(merge)});
        b_.EmitVoid(Op::OpLoopMerge, {merge.label, continuing.label, hint});
        b_.EmitVoid(Op::OpBranchConditional, {stays, body, merge.label});
    } else {
        b_.EmitVoid(Op::OpLoopMerge, {merge.label, continuing.label, hint});
        b_.EmitVoid(Op::OpBranch, {body});
    }
    // The header's values dominate the merge block.
    const size_t header_mark = pool_.size();
    StartBlock(body);
    Statements(1 + Below(budget + 1), depth + 1);
    if (!dead_ && form == 1) {
        Id following = Emit(Op::OpIAdd, kUint, {counter, b_.Uint(1)});
        Id leaves = Emit(Op::OpUGreaterThanEqual, kBool, {following, limit});
        merge.incoming.push_back({block_, PhiValues(merge)});
        continuing.incoming.push_back({block_, PhiValues(continuing)});
        b_.EmitVoid(Op::OpBranchConditional, {leaves, merge.label, continuing.label});
        dead_ = true;
    }
    if (!dead_) {
        Jump(continuing);
    }
    pool_.resize(header_mark);

    around_.back().continuing = nullptr;
    around_.back().merge = nullptr;  // its statements do not leave
    uniform_ = false;
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
        StoreStatement();
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
        merge.incoming.push_back({block_, PhiValues(merge)});
        b_.EmitVoid(Op::OpBranchConditional, {stays, header, merge.label});
    } else {
        b_.EmitVoid(Op::OpBranch, {header});
    }
    b_.SetLastPhiValue(counter_phi, following, block_);
    for (size_t i = 0; i < phis.size(); ++i) {
        b_.SetLastPhiValue(phis[i], next[i], block_);
    }
    returned_ |= around_.back().returned;
    around_.pop_back();
    if (together) {
        uniform_words_.pop_back();
    }
    pool_.resize(form == 0 ? header_mark : outer_mark);
    Begin(merge);
    BackToUniform(was_uniform);
}

}  // namespace fornax::kernel::fuzz
