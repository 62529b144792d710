// Constructs whose course is known: taken apart, hoisted, flattened to selects, unwound.
#include "compiler/kernel/ir/divisions.h"
#include "compiler/kernel/transform/simplifier.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Branches of at most so many cheap operations become selects.
constexpr size_t kMaxFlattenedOperations = 6;

// Not much more than an addition on any host.
bool IsCheap(Op op) {
    if (!HasProperty(op, kPure) || InfoOf(op).results != 1 || IsDivision(op)) {
        return false;
    }
    switch (op) {
        case Op::kSqrt:
        case Op::kRSqrt:
        case Op::kBitReverse:
        case Op::kLdexp:
            return false;
        default:
            return op < Op::kExp;
    }
}

}  // namespace

// Gives the terminator if control never comes past the construct; then what follows is dead.
InstId Simplifier::ProcessConstruct(InstId id, Insts& out) {
    switch (kernel_.inst(id).op) {
        case Op::kIf:
            return ProcessIf(id, out);
        case Op::kSwitch:
            return ProcessSwitch(id, out);
        case Op::kLoop:
            return ProcessLoop(id, out);
        default:
            return ProcessScope(id, out);
    }
}

// The construct always runs this block.
InstId Simplifier::Take(InstId id, BlockId block, Insts& out) {
    Instruction& inst = kernel_.inst(id);
    inst.op = Op::kScope;
    inst.flags = 0;
    inst.operands.clear();
    inst.case_values.clear();
    inst.blocks = {block};
    changed_ = true;
    return ProcessScope(id, out);
}

// Puts the contents of a construct's block in the construct's place. Nothing may exit to it.
InstId Simplifier::Inline(InstId id, BlockId block, Insts& out) {
    changed_ = true;
    InstId last = ProcessInsts(block, out);
    if (kernel_.inst(last).op != Op::kYield) {
        return last;
    }
    std::vector<ValueId> values = kernel_.inst(last).operands;
    MapResults(id, values);
    return {};
}

InstId Simplifier::ProcessScope(InstId id, Insts& out) {
    BlockId block = kernel_.inst(id).blocks[0];
    if (!HasExits(id)) {
        return Inline(id, block, out);
    }
    ProcessBlock(block);
    out.push_back(id);
    return {};
}

// One branch of the if leaves it for good, so the other's contents may follow it: the nesting goes,
// and their values are visible to the rest.
InstId Simplifier::Hoist(InstId id, size_t leaving, Insts& out) {
    BlockId leaves = kernel_.inst(id).blocks[leaving];
    BlockId stays = kernel_.inst(id).blocks[1 - leaving];
    ValueId condition = kernel_.inst(id).operands[0];
    ProcessBlock(leaves, condition, Const(Type::kBool, leaving == 0));
    BlockId rest = kernel_.NewBlock(id);
    kernel_.block(rest).insts = {NewTerminator(Op::kYield)};
    Instruction& inst = kernel_.inst(id);
    inst.blocks[1 - leaving] = rest;
    std::vector<ValueId> results = std::exchange(inst.results, {});
    out.push_back(id);
    AddFacts(condition, Const(Type::kBool, leaving != 0));
    changed_ |= !OnlyYields(stays) || !results.empty();
    InstId last = ProcessInsts(stays, out);
    if (kernel_.inst(last).op != Op::kYield) {
        return last;
    }
    for (size_t i = 0; i < results.size(); ++i) {
        Map(results[i], Resolve(kernel_.inst(last).operands[i]));
    }
    return {};
}

// Runs both branches of an if and selects between their values, if they are short and pure.
bool Simplifier::FlattenToSelects(InstId id) {
    const Instruction& inst = kernel_.inst(id);
    if (HasExits(id) || (inst.flags & kDontFlattenHint) ||
        inst.results.size() > 2 * kMaxFlattenedOperations) {
        return false;
    }
    Insts moved;
    for (BlockId block : inst.blocks) {
        if (!Yields(block)) {
            return false;
        }
        const Insts& insts = kernel_.block(block).insts;
        moved.insert(moved.end(), insts.begin(), insts.end() - 1);
    }
    if (moved.size() > kMaxFlattenedOperations ||
        !std::ranges::all_of(moved, [&](InstId i) { return IsCheap(kernel_.inst(i).op); })) {
        return false;
    }
    changed_ = true;
    ValueId condition = inst.operands[0];
    std::vector<ValueId> results = inst.results;
    std::vector<ValueId> if_true =
        kernel_.inst(kernel_.block(inst.blocks[0]).insts.back()).operands;
    std::vector<ValueId> if_false =
        kernel_.inst(kernel_.block(inst.blocks[1]).insts.back()).operands;
    for (InstId i : moved) {
        for (ValueId& operand : kernel_.inst(i).operands) {
            operand = Resolve(operand);
        }
        ProcessPlain(i);
    }
    for (size_t i = 0; i < results.size(); ++i) {
        Map(results[i], Build({Op::kSelect,
                               kernel_.type(results[i]),
                               {condition, Resolve(if_true[i]), Resolve(if_false[i])}}));
    }
    return true;
}

InstId Simplifier::ProcessIf(InstId id, Insts& out) {
    uint64_t known = 0;
    if (kernel_.IsConst(kernel_.inst(id).operands[0], &known)) {
        return Take(id, kernel_.inst(id).blocks[known ? 0 : 1], out);
    }
    const Instruction* condition = kernel_.Definition(kernel_.inst(id).operands[0]);
    if (condition && condition->op == Op::kNot) {
        Instruction& inst = kernel_.inst(id);
        inst.operands[0] = condition->operands[0];
        std::swap(inst.blocks[0], inst.blocks[1]);
    }
    std::vector<BlockId> blocks = kernel_.inst(id).blocks;
    if (!HasExits(id) && !(Yields(blocks[0]) && Yields(blocks[1]))) {
        return Hoist(id, Yields(blocks[0]) ? 1 : 0, out);
    }
    ProcessBlock(blocks[0], kernel_.inst(id).operands[0], Const(Type::kBool, 1));
    ProcessBlock(blocks[1], kernel_.inst(id).operands[0], Const(Type::kBool, 0));
    if (!FlattenToSelects(id)) {
        out.push_back(id);
    }
    return {};
}

InstId Simplifier::ProcessSwitch(InstId id, Insts& out) {
    const Instruction& inst = kernel_.inst(id);
    ValueId selector = inst.operands[0];
    Type type = kernel_.type(selector);
    uint64_t known = 0;
    if (kernel_.IsConst(selector, &known)) {
        auto found = std::ranges::find(inst.case_values, known);
        bool matches = found != inst.case_values.end();
        return Take(id, inst.blocks[matches ? 1 + (found - inst.case_values.begin()) : 0], out);
    }
    if (inst.blocks.size() == 1) {
        return Take(id, inst.blocks[0], out);
    }
    if (inst.blocks.size() == 2) {
        uint64_t value = inst.case_values[0];
        ValueId condition = Build({Op::kIEq, Type::kBool, {selector, Const(type, value)}});
        Instruction& changed = kernel_.inst(id);
        changed.op = Op::kIf;
        changed.operands = {condition};
        std::swap(changed.blocks[0], changed.blocks[1]);
        changed.case_values.clear();
        return ProcessIf(id, out);
    }
    std::vector<BlockId> blocks = inst.blocks;
    std::vector<uint64_t> values = inst.case_values;
    ProcessBlock(blocks[0]);
    for (size_t i = 1; i < blocks.size(); ++i) {
        ProcessBlock(blocks[i], selector, Const(type, values[i - 1]));
    }
    out.push_back(id);
    bool comes_past =
        HasExits(id) || std::ranges::any_of(blocks, [&](BlockId block) { return Yields(block); });
    return comes_past ? InstId{} : NewTerminator(Op::kUnreachable);
}

// The loop's continuing block leaves it before its end, so the loop runs once:
//   scope { scope { body; a continue leaves this scope } continuing block }
void Simplifier::UnwindLoop(InstId id) {
    changed_ = true;
    BlockId body = kernel_.inst(id).blocks[0];
    BlockId rest = kernel_.inst(id).blocks[1];
    std::vector<ValueId> params = std::exchange(kernel_.block(body).params, {});
    std::vector<ValueId> carried = std::exchange(kernel_.block(rest).params, {});
    for (size_t i = 0; i < params.size(); ++i) {
        Map(params[i], kernel_.inst(id).operands[i]);
    }
    std::vector<Type> types;
    for (ValueId value : carried) {
        types.push_back(kernel_.type(value));
    }
    InstId inner = kernel_.NewInst(Op::kScope, {}, types);
    for (size_t i = 0; i < carried.size(); ++i) {
        Map(carried[i], kernel_.inst(inner).results[i]);
    }
    kernel_.inst(inner).blocks = {body};
    kernel_.block(body).parent = inner;
    RetargetContinues(body, id, inner);
    Insts& insts = kernel_.block(rest).insts;
    insts.insert(insts.begin(), inner);
    Instruction& loop = kernel_.inst(id);
    loop.op = Op::kScope;
    loop.flags = 0;
    loop.operands.clear();
    loop.blocks = {rest};
}

void Simplifier::RetargetContinues(BlockId block, InstId loop, InstId scope) {
    for (InstId id : kernel_.block(block).insts) {
        Instruction& inst = kernel_.inst(id);
        if (inst.op == Op::kContinue && inst.target == loop) {
            inst.op = Op::kExit;
            inst.target = scope;
        }
        for (BlockId inner : inst.blocks) {
            RetargetContinues(inner, loop, scope);
        }
    }
}

// Parameters that go on with the same value are one, if they begin with the same or one of them
// begins with any value.
void Simplifier::MergeLoopParams(InstId id) {
    const Instruction& loop = kernel_.inst(id);
    const Instruction& next = kernel_.inst(kernel_.block(loop.blocks[1]).insts.back());
    if (next.op != Op::kNext) {
        return;
    }
    const auto& params = kernel_.block(loop.blocks[0]).params;
    std::unordered_map<uint32_t, size_t> by_next;  // the parameter, by the value that follows
    for (size_t i = 0; i < params.size(); ++i) {
        const auto [found, added] = by_next.try_emplace(next.operands[i].value(), i);
        if (added || kernel_.type(params[i]) != kernel_.type(params[found->second])) {
            continue;
        }
        const ValueId first = Resolve(loop.operands[found->second]);
        const ValueId second = Resolve(loop.operands[i]);
        if (first == second || IsUndef(second)) {
            Map(params[i], params[found->second]);
        } else if (IsUndef(first)) {
            Map(params[found->second], params[i]);
            found->second = i;
        }
    }
}

bool Simplifier::IsUndef(ValueId value) const {
    const Instruction* inst = kernel_.Definition(value);
    return inst && inst->op == Op::kUndef;
}

InstId Simplifier::ProcessLoop(InstId id, Insts& out) {
    std::vector<BlockId> blocks = kernel_.inst(id).blocks;
    if (continues_to_[id.value()] == 0) {  // runs once
        const auto& params = kernel_.block(blocks[0]).params;
        for (size_t i = 0; i < params.size(); ++i) {
            Map(params[i], kernel_.inst(id).operands[i]);
        }
        kernel_.block(blocks[0]).params.clear();
        return Take(id, blocks[0], out);
    }
    // Writes of one iteration come before the loads of the next.
    ++buffer_epoch_;
    ++shared_epoch_;
    ++local_epoch_;
    MergeLoopParams(id);
    ProcessBlock(blocks[0]);
    ProcessBlock(blocks[1]);
    if (kernel_.inst(kernel_.block(blocks[1]).insts.back()).op != Op::kNext) {
        UnwindLoop(id);
    }
    out.push_back(id);
    return HasExits(id) ? InstId{} : NewTerminator(Op::kUnreachable);
}

}  // namespace fornax::kernel
