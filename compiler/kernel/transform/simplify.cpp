// One walk over the construct tree that folds expressions, merges equal ones, and takes constructs
// apart whose course is known. Blocks are rebuilt as lists; an instruction that stays keeps its id.
//
// Constants and undefined values move to the start of the body, one of each, so that they are
// visible everywhere.
#include <algorithm>
#include <array>
#include <cassert>
#include <unordered_map>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/transform/bounds.h"
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/simplifier.h"

namespace fornax::kernel {

using namespace ir;

ValueId Simplifier::Const(Type type, uint64_t bits) {
    assert(BitWidth(type) != 0);
    bits &= ~uint64_t{0} >> (64 - BitWidth(type));
    ValueId& value = consts_[static_cast<size_t>(type)][bits];
    if (!value.valid()) {
        prologue_.push_back(kernel_.NewInst(Op::kConst, {}, {&type, 1}));
        Instruction& inst = kernel_.inst(prologue_.back());
        inst.imm = bits;
        value = inst.results[0];
    }
    return value;
}

ValueId Simplifier::UndefOf(Type type) {
    ValueId& value = undefs_[static_cast<size_t>(type)];
    if (!value.valid()) {
        prologue_.push_back(kernel_.NewInst(Op::kUndef, {}, {&type, 1}));
        value = kernel_.inst(prologue_.back()).results[0];
    }
    return value;
}

InstId Simplifier::NewTerminator(Op op) {
    return kernel_.NewInst(op, {}, {});
}

// Finds the expression's value or adds an instruction for it: `reuse` if that is valid.
ValueId Simplifier::Place(Expression expression, InstId reuse) {
    ValueId folded = FoldExpression(*this, expression);
    if (folded.valid()) {
        return folded;
    }
    ValueTable::Key key{expression.op,         expression.flags, expression.imm,
                        expression.Operands(), expression.type,  1};
    InstId found = table_.Find(key);
    if (found.valid()) {
        return kernel_.inst(found).results[0];
    }
    InstId id = reuse;
    if (!id.valid()) {
        id = kernel_.NewInst(expression.op, expression.Operands(), {&expression.type, 1});
    }
    Instruction& inst = kernel_.inst(id);
    inst.op = expression.op;
    inst.operands.assign(expression.Operands().begin(), expression.Operands().end());
    inst.imm = expression.imm;
    inst.flags = expression.flags;
    if (!reuse.valid()) {
        inst.origin = origin_;
    }
    out_->push_back(id);
    table_.Add(key, id);
    return inst.results[0];
}

void Simplifier::MapResults(InstId from, std::span<const ValueId> to) {
    for (size_t i = 0; i < to.size(); ++i) {
        Map(kernel_.inst(from).results[i], Resolve(to[i]));
    }
}

// Drops the instruction for an equal one before it, or keeps it as it is.
void Simplifier::MergeOrKeep(InstId id, uint64_t epoch) {
    const Instruction& inst = kernel_.inst(id);
    ValueTable::Key key{inst.op,
                        inst.flags,
                        inst.imm,
                        inst.operands,
                        kernel_.type(inst.results[0]),
                        static_cast<uint32_t>(inst.results.size()),
                        epoch};
    InstId found = table_.Find(key);
    if (found.valid()) {
        MapResults(id, kernel_.inst(found).results);
        return;
    }
    table_.Add(key, id);
    out_->push_back(id);
}

// load_constant from a known place of the table.
bool Simplifier::FoldTableLoad(InstId id) {
    const Instruction& inst = kernel_.inst(id);
    uint64_t offset = 0;
    if (inst.op != Op::kLoadConstant || !kernel_.IsConst(inst.operands[0], &offset)) {
        return false;
    }
    std::vector<ValueId> results = inst.results;
    Type type = kernel_.type(results[0]);
    uint32_t size = ByteSize(type);
    uint64_t available = kernel_.constant_data.size();
    if (offset > available || (available - offset) / size < results.size()) {
        return false;
    }
    for (ValueId result : results) {
        uint64_t bits = 0;
        for (uint32_t i = 0; i < size; ++i) {
            bits |= uint64_t{kernel_.constant_data[offset + i]} << (8 * i);
        }
        Map(result, Const(type, type == Type::kBool ? bits != 0 : bits));
        offset += size;
    }
    return true;
}

// Inputs that the workgroup's size decides.
bool Simplifier::FoldBuiltin(const Instruction& inst) {
    auto builtin = static_cast<BuiltinId>(inst.imm);
    ValueId result = inst.results[0];
    uint64_t bound = UpperBound(kernel_, result);
    if (bound != 0 && builtin != BuiltinId::kNumSubgroups && builtin != BuiltinId::kSubgroupSize) {
        return false;
    }
    Map(result, Const(Type::kI32, bound));
    return true;
}

// A buffer made of another one's address and size is that buffer, which tells more of itself.
bool Simplifier::FoldBufferFrom(const Instruction& inst) {
    const Instruction* address = kernel_.Definition(inst.operands[0]);
    const Instruction* size = kernel_.Definition(inst.operands[1]);
    if (!address || !size || address->op != Op::kBufferAddress || size->op != Op::kBufferSize ||
        address->operands != size->operands) {
        return false;
    }
    const Instruction* buffer = kernel_.Definition(address->operands[0]);
    if (!buffer || buffer->op != Op::kBuffer || !kernel_.bindings[buffer->imm].writable) {
        return false;
    }
    Map(inst.results[0], address->operands[0]);
    return true;
}

void Simplifier::ProcessPure(InstId id) {
    const Instruction& inst = kernel_.inst(id);
    if (inst.op == Op::kBufferFrom && FoldBufferFrom(inst)) {
        return;
    }
    if (inst.results.size() == 1 && inst.operands.size() <= 4 && !inst.operands.empty()) {
        if (FoldTableLoad(id)) {
            return;
        }
        ValueId result = inst.results[0];
        Map(result, Place(Expression(kernel_, inst), id));
        return;
    }
    if (FoldTableLoad(id)) {
        return;
    }
    std::array<uint64_t, 2> in = {}, out = {};
    bool known = inst.results.size() == 2 && inst.operands.size() <= 2 && IsExact(kernel_, inst);
    for (size_t i = 0; known && i < inst.operands.size(); ++i) {
        known = kernel_.IsConst(inst.operands[i], &in[i]);
    }
    if (known && Evaluate(kernel_, inst, {in.data(), inst.operands.size()}, out)) {
        std::array<ValueId, 2> results = {inst.results[0], inst.results[1]};
        for (size_t i = 0; i < 2; ++i) {
            Map(results[i], Const(kernel_.type(results[i]), out[i]));
        }
        return;
    }
    MergeOrKeep(id, 0);
}

void Simplifier::CountWrites(Op op) {
    switch (op) {
        case Op::kStoreBuffer:
        case Op::kAtomicBuffer:
        case Op::kStoreGlobal:
        case Op::kAtomicGlobal:
            ++buffer_epoch_;
            break;
        case Op::kStoreShared:
        case Op::kAtomicShared:
            ++shared_epoch_;
            break;
        case Op::kStoreLocal:
            ++local_epoch_;
            break;
        default:
            ++buffer_epoch_;
            ++shared_epoch_;
            break;
    }
}

// An instruction that is neither a construct nor a terminator.
void Simplifier::ProcessPlain(InstId id) {
    const Instruction& inst = kernel_.inst(id);
    origin_ = inst.origin;
    if (inst.op == Op::kConst) {
        // The new constant may move the instructions.
        const ValueId result = inst.results[0];
        Map(result, Const(kernel_.type(result), inst.imm));
    } else if (inst.op == Op::kUndef) {
        const ValueId result = inst.results[0];
        Map(result, UndefOf(kernel_.type(result)));
    } else if (inst.op == Op::kBuiltin && FoldBuiltin(inst)) {
        // a constant now
    } else if (HasProperty(inst.op, kPure)) {
        ProcessPure(id);
    } else if (HasProperty(inst.op, kWritesMemory)) {
        CountWrites(inst.op);
        out_->push_back(id);
    } else if (HasProperty(inst.op, kReadsMemory) && !(inst.flags & kVolatile)) {
        const bool buffer = inst.op == Op::kLoadBuffer || inst.op == Op::kLoadGlobal;
        MergeOrKeep(id, buffer                       ? buffer_epoch_
                        : inst.op == Op::kLoadShared ? shared_epoch_
                                                     : local_epoch_);
    } else {
        out_->push_back(id);
    }
}

// Rewrites the block's instructions to the end of `out`. Gives the terminator, which it does not
// add: that of the block, or the one where control leaves before.
InstId Simplifier::ProcessInsts(BlockId block, Insts& out) {
    Insts* outer = std::exchange(out_, &out);
    Insts insts = std::move(kernel_.block(block).insts);
    InstId last;
    for (InstId id : insts) {
        for (ValueId& operand : kernel_.inst(id).operands) {
            operand = Resolve(operand);
        }
        Op op = kernel_.inst(id).op;
        if (HasProperty(op, kTerminator)) {
            last = id;
        } else if (HasProperty(op, kRegions)) {
            last = ProcessConstruct(id, out);
        } else {
            ProcessPlain(id);
        }
        if (last.valid()) {
            break;
        }
    }
    out_ = outer;
    return last;
}

// Notes that `value` is `known` until the end of the block that is being processed.
void Simplifier::AddFacts(ValueId value, ValueId known) {
    if (!value.valid() || kernel_.IsConst(value)) {
        return;
    }
    if (fact_of_.size() <= value.value()) {
        fact_of_.resize(kernel_.num_values());
    }
    if (fact_of_[value.value()].valid()) {
        return;
    }
    fact_of_[value.value()] = known;
    facts_.push_back(value);
    // A condition that holds tells about its operands.
    const Instruction* inst = kernel_.Definition(value);
    uint64_t holds = 0;
    if (!inst || kernel_.type(value) != Type::kBool || !kernel_.IsConst(known, &holds)) {
        return;
    }
    std::vector<ValueId> operands = inst->operands;
    if (inst->op == (holds ? Op::kIEq : Op::kINe) && kernel_.IsConst(operands[1])) {
        AddFacts(operands[0], operands[1]);
    } else if (inst->op == (holds ? Op::kAnd : Op::kOr)) {
        AddFacts(operands[0], known);
        AddFacts(operands[1], known);
    } else if (inst->op == Op::kULt || inst->op == Op::kULe) {
        AddBoundOf(*inst, holds != 0);
    }
}

// `value` is at most `bound` until the end of the block that is being processed.
void Simplifier::AddBound(ValueId value, uint64_t bound) {
    if (bound >= UpperBound(kernel_, value, bounds_)) {
        return;
    }
    if (bounds_.size() <= value.value()) {
        bounds_.resize(kernel_.num_values(), UINT64_MAX);
    }
    tightened_.emplace_back(value, bounds_[value.value()]);
    bounds_[value.value()] = bound;
}

// a < b or a <= b, or the opposite: the lower one is at most what the upper one is at most.
void Simplifier::AddBoundOf(const Instruction& order, bool holds) {
    const ValueId low = order.operands[holds ? 0 : 1], high = order.operands[holds ? 1 : 0];
    const bool differ = (order.op == Op::kULt) == holds;
    const uint64_t bound = UpperBound(kernel_, high, bounds_);
    if (bound != 0 || !differ) {
        AddBound(low, differ ? bound - 1 : bound);
    }
}

void Simplifier::ProcessBlock(BlockId block, ValueId value, ValueId known) {
    size_t values = table_.Mark();
    size_t facts = facts_.size();
    size_t tightened = tightened_.size();
    AddFacts(value, known);
    Insts out;
    InstId last = ProcessInsts(block, out);
    out.push_back(last);
    kernel_.block(block).insts = std::move(out);
    table_.Release(values);
    for (; facts_.size() > facts; facts_.pop_back()) {
        fact_of_[facts_.back().value()] = {};
    }
    for (; tightened_.size() > tightened; tightened_.pop_back()) {
        bounds_[tightened_.back().first.value()] = tightened_.back().second;
    }
}

void Simplify(Kernel& kernel) {
    bool changed = true;
    for (int round = 0; changed && round < 4; ++round) {
        changed = Simplifier(kernel).Run();
        ForwardSingleValues(kernel);
        EliminateDeadCode(kernel);
    }
}

}  // namespace fornax::kernel
