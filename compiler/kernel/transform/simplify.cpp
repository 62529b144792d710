// One walk over the construct tree that folds expressions, merges equal ones, and takes constructs
// apart whose course is known. Blocks are rebuilt as lists; an instruction that stays keeps its id.
//
// Constants and undefined values move to the start of the body, one of each, so that they are
// visible everywhere.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/transform/bounds.h"
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/expression.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/value_table.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Branches of at most so many cheap operations become selects.
constexpr size_t kMaxFlattenedOperations = 6;

// Not much more than an addition on any host.
bool IsCheap(Op op) {
    if (!HasProperty(op, kPure) || InfoOf(op).results != 1)
        return false;
    switch (op) {
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
        case Op::kFDiv:
        case Op::kFRem:
        case Op::kFMod:
        case Op::kSqrt:
        case Op::kRSqrt:
        case Op::kBitReverse:
        case Op::kLdexp:
            return false;
        default:
            return op < Op::kExp;
    }
}

class Simplifier : public ExpressionBuilder {
  public:
    explicit Simplifier(Kernel& kernel)
        : kernel_(kernel),
          table_(kernel),
          exits_to_(kernel.num_insts()),
          continues_to_(kernel.num_insts()) {}

    // True if a construct was taken apart, so that another run may find more.
    bool Run() {
        CountExits(kernel_.body);
        Insts body;
        InstId last = ProcessInsts(kernel_.body, body);
        body.push_back(last);
        body.insert(body.begin(), prologue_.begin(), prologue_.end());
        kernel_.block(kernel_.body).insts = std::move(body);
        kernel_.ReplaceUses(map_);
        return changed_;
    }

    const Kernel& kernel() const override { return kernel_; }
    ValueId Const(Type type, uint64_t bits) override;
    ValueId Build(Expression expression) override { return Place(std::move(expression), {}); }

  private:
    using Insts = std::vector<InstId>;

    // An exit from a block's own end is a yield.
    void CountExits(BlockId block) {
        InstId parent = kernel_.block(block).parent;
        for (InstId id : kernel_.block(block).insts) {
            Instruction& inst = kernel_.inst(id);
            if (inst.op == Op::kExit && inst.target == parent &&
                kernel_.inst(parent).op != Op::kLoop) {
                inst.op = Op::kYield;
                inst.target = {};
            }
            if (inst.op == Op::kExit)
                ++exits_to_[inst.target.index];
            else if (inst.op == Op::kContinue)
                ++continues_to_[inst.target.index];
            for (BlockId inner : inst.blocks)
                CountExits(inner);
        }
    }
    bool HasExits(InstId id) const {
        return id.index < exits_to_.size() && exits_to_[id.index] != 0;
    }

    ValueId Resolve(ValueId id) const {
        while (id.index < map_.size() && map_[id.index].valid())
            id = map_[id.index];
        return id.index < fact_of_.size() && fact_of_[id.index].valid() ? fact_of_[id.index] : id;
    }
    void Map(ValueId from, ValueId to) {
        if (map_.size() <= from.index)
            map_.resize(kernel_.num_values());
        if (from != to)
            map_[from.index] = to;
    }

    ValueId UndefOf(Type type);
    ValueId Place(Expression expression, InstId reuse);
    void MapResults(InstId from, std::span<const ValueId> to);
    void ProcessPlain(InstId id);
    void ProcessPure(InstId id);
    void MergeOrKeep(InstId id, uint64_t epoch);
    bool FoldBuiltin(const Instruction& inst);
    bool FoldTableLoad(InstId id);
    void CountWrites(Op op);

    InstId ProcessInsts(BlockId block, Insts& out);
    void ProcessBlock(BlockId block, ValueId value = {}, ValueId known = {});
    InstId ProcessConstruct(InstId id, Insts& out);
    InstId ProcessIf(InstId id, Insts& out);
    InstId ProcessSwitch(InstId id, Insts& out);
    InstId ProcessScope(InstId id, Insts& out);
    InstId ProcessLoop(InstId id, Insts& out);
    void UnwindLoop(InstId id);
    void RetargetContinues(BlockId block, InstId loop, InstId scope);
    InstId Take(InstId id, BlockId block, Insts& out);
    InstId Inline(InstId id, BlockId block, Insts& out);
    InstId Hoist(InstId id, size_t leaving, Insts& out);
    bool FlattenToSelects(InstId id);
    void AddFacts(ValueId value, ValueId known);
    InstId NewTerminator(Op op);

    bool Yields(BlockId block) const {
        return kernel_.inst(kernel_.block(block).insts.back()).op == Op::kYield;
    }
    bool OnlyYields(BlockId block) const {
        return kernel_.block(block).insts.size() == 1 && Yields(block);
    }

    Kernel& kernel_;
    ValueTable table_;
    std::vector<uint32_t> exits_to_;      // by construct: exits, not yields
    std::vector<uint32_t> continues_to_;  // by loop
    std::vector<ValueId> map_;            // by value: what replaces it
    std::vector<ValueId> fact_of_;        // by value: what it is known to be here
    std::vector<ValueId> facts_;          // the values with one, innermost last
    Insts* out_ = nullptr;                // the list that Build adds to
    Insts prologue_;
    static constexpr size_t kNumTypes = static_cast<size_t>(Type::kBuffer) + 1;
    std::array<std::unordered_map<uint64_t, ValueId>, kNumTypes> consts_;
    std::array<ValueId, kNumTypes> undefs_;
    // Count the writes met so far; two loads between which none lies give the same.
    uint64_t buffer_epoch_ = 1;
    uint64_t shared_epoch_ = 1;
    uint64_t local_epoch_ = 1;
    uint32_t origin_ = 0;
    bool changed_ = false;
};

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
    if (folded.valid())
        return folded;
    ValueTable::Key key{expression.op,         expression.flags, expression.imm,
                        expression.Operands(), expression.type,  1};
    InstId found = table_.Find(key);
    if (found.valid())
        return kernel_.inst(found).results[0];
    InstId id = reuse;
    if (!id.valid())
        id = kernel_.NewInst(expression.op, expression.Operands(), {&expression.type, 1});
    Instruction& inst = kernel_.inst(id);
    inst.op = expression.op;
    inst.operands.assign(expression.Operands().begin(), expression.Operands().end());
    inst.imm = expression.imm;
    inst.flags = expression.flags;
    if (!reuse.valid())
        inst.origin = origin_;
    out_->push_back(id);
    table_.Add(key, id);
    return inst.results[0];
}

void Simplifier::MapResults(InstId from, std::span<const ValueId> to) {
    for (size_t i = 0; i < to.size(); ++i)
        Map(kernel_.inst(from).results[i], Resolve(to[i]));
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
    if (inst.op != Op::kLoadConstant || !kernel_.IsConst(inst.operands[0], &offset))
        return false;
    std::vector<ValueId> results = inst.results;
    Type type = kernel_.type(results[0]);
    uint32_t size = ByteSize(type);
    uint64_t available = kernel_.constant_data.size();
    if (offset > available || (available - offset) / size < results.size())
        return false;
    for (ValueId result : results) {
        uint64_t bits = 0;
        for (uint32_t i = 0; i < size; ++i)
            bits |= uint64_t{kernel_.constant_data[offset + i]} << (8 * i);
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
    if (bound != 0 && builtin != BuiltinId::kNumSubgroups && builtin != BuiltinId::kSubgroupSize)
        return false;
    Map(result, Const(Type::kI32, bound));
    return true;
}

void Simplifier::ProcessPure(InstId id) {
    const Instruction& inst = kernel_.inst(id);
    if (inst.results.size() == 1 && inst.operands.size() <= 4 && !inst.operands.empty()) {
        if (FoldTableLoad(id))
            return;
        ValueId result = inst.results[0];
        Map(result, Place(Expression(kernel_, inst), id));
        return;
    }
    if (FoldTableLoad(id))
        return;
    std::array<uint64_t, 2> in = {}, out = {};
    bool known = inst.results.size() == 2 && inst.operands.size() <= 2 && IsExact(kernel_, inst);
    for (size_t i = 0; known && i < inst.operands.size(); ++i)
        known = kernel_.IsConst(inst.operands[i], &in[i]);
    if (known && Evaluate(kernel_, inst, {in.data(), inst.operands.size()}, out)) {
        std::array<ValueId, 2> results = {inst.results[0], inst.results[1]};
        for (size_t i = 0; i < 2; ++i)
            Map(results[i], Const(kernel_.type(results[i]), out[i]));
        return;
    }
    MergeOrKeep(id, 0);
}

void Simplifier::CountWrites(Op op) {
    switch (op) {
        case Op::kStoreBuffer:
        case Op::kAtomicBuffer:
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
        Map(inst.results[0], Const(kernel_.type(inst.results[0]), inst.imm));
    } else if (inst.op == Op::kUndef) {
        Map(inst.results[0], UndefOf(kernel_.type(inst.results[0])));
    } else if (inst.op == Op::kBuiltin && FoldBuiltin(inst)) {
        // a constant now
    } else if (HasProperty(inst.op, kPure)) {
        ProcessPure(id);
    } else if (HasProperty(inst.op, kWritesMemory)) {
        CountWrites(inst.op);
        out_->push_back(id);
    } else if (HasProperty(inst.op, kReadsMemory) && !(inst.flags & kVolatile)) {
        MergeOrKeep(id, inst.op == Op::kLoadBuffer   ? buffer_epoch_
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
        for (ValueId& operand : kernel_.inst(id).operands)
            operand = Resolve(operand);
        Op op = kernel_.inst(id).op;
        if (HasProperty(op, kTerminator))
            last = id;
        else if (HasProperty(op, kRegions))
            last = ProcessConstruct(id, out);
        else
            ProcessPlain(id);
        if (last.valid())
            break;
    }
    out_ = outer;
    return last;
}

// Notes that `value` is `known` until the end of the block that is being processed.
void Simplifier::AddFacts(ValueId value, ValueId known) {
    if (!value.valid() || kernel_.IsConst(value))
        return;
    if (fact_of_.size() <= value.index)
        fact_of_.resize(kernel_.num_values());
    if (fact_of_[value.index].valid())
        return;
    fact_of_[value.index] = known;
    facts_.push_back(value);
    // A condition that holds tells about its operands.
    const Instruction* inst = kernel_.Definition(value);
    uint64_t holds = 0;
    if (!inst || kernel_.type(value) != Type::kBool || !kernel_.IsConst(known, &holds))
        return;
    std::vector<ValueId> operands = inst->operands;
    if (inst->op == (holds ? Op::kIEq : Op::kINe) && kernel_.IsConst(operands[1])) {
        AddFacts(operands[0], operands[1]);
    } else if (inst->op == (holds ? Op::kAnd : Op::kOr)) {
        AddFacts(operands[0], known);
        AddFacts(operands[1], known);
    }
}

void Simplifier::ProcessBlock(BlockId block, ValueId value, ValueId known) {
    size_t values = table_.Mark();
    size_t facts = facts_.size();
    AddFacts(value, known);
    Insts out;
    InstId last = ProcessInsts(block, out);
    out.push_back(last);
    kernel_.block(block).insts = std::move(out);
    table_.Release(values);
    for (; facts_.size() > facts; facts_.pop_back())
        fact_of_[facts_.back().index] = {};
}

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
    if (kernel_.inst(last).op != Op::kYield)
        return last;
    std::vector<ValueId> values = kernel_.inst(last).operands;
    MapResults(id, values);
    return {};
}

InstId Simplifier::ProcessScope(InstId id, Insts& out) {
    BlockId block = kernel_.inst(id).blocks[0];
    if (!HasExits(id))
        return Inline(id, block, out);
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
    if (kernel_.inst(last).op != Op::kYield)
        return last;
    for (size_t i = 0; i < results.size(); ++i)
        Map(results[i], Resolve(kernel_.inst(last).operands[i]));
    return {};
}

// Runs both branches of an if and selects between their values, if they are short and pure.
bool Simplifier::FlattenToSelects(InstId id) {
    const Instruction& inst = kernel_.inst(id);
    if (HasExits(id) || (inst.flags & kDontFlattenHint) ||
        inst.results.size() > 2 * kMaxFlattenedOperations)
        return false;
    Insts moved;
    for (BlockId block : inst.blocks) {
        if (!Yields(block))
            return false;
        const Insts& insts = kernel_.block(block).insts;
        moved.insert(moved.end(), insts.begin(), insts.end() - 1);
    }
    if (moved.size() > kMaxFlattenedOperations ||
        !std::ranges::all_of(moved, [&](InstId i) { return IsCheap(kernel_.inst(i).op); }))
        return false;
    changed_ = true;
    ValueId condition = inst.operands[0];
    std::vector<ValueId> results = inst.results;
    std::vector<ValueId> if_true =
        kernel_.inst(kernel_.block(inst.blocks[0]).insts.back()).operands;
    std::vector<ValueId> if_false =
        kernel_.inst(kernel_.block(inst.blocks[1]).insts.back()).operands;
    for (InstId i : moved) {
        for (ValueId& operand : kernel_.inst(i).operands)
            operand = Resolve(operand);
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
    if (kernel_.IsConst(kernel_.inst(id).operands[0], &known))
        return Take(id, kernel_.inst(id).blocks[known ? 0 : 1], out);
    const Instruction* condition = kernel_.Definition(kernel_.inst(id).operands[0]);
    if (condition && condition->op == Op::kNot) {
        Instruction& inst = kernel_.inst(id);
        inst.operands[0] = condition->operands[0];
        std::swap(inst.blocks[0], inst.blocks[1]);
    }
    std::vector<BlockId> blocks = kernel_.inst(id).blocks;
    if (!HasExits(id) && !(Yields(blocks[0]) && Yields(blocks[1])))
        return Hoist(id, Yields(blocks[0]) ? 1 : 0, out);
    ProcessBlock(blocks[0], kernel_.inst(id).operands[0], Const(Type::kBool, 1));
    ProcessBlock(blocks[1], kernel_.inst(id).operands[0], Const(Type::kBool, 0));
    if (!FlattenToSelects(id))
        out.push_back(id);
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
    if (inst.blocks.size() == 1)
        return Take(id, inst.blocks[0], out);
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
    for (size_t i = 1; i < blocks.size(); ++i)
        ProcessBlock(blocks[i], selector, Const(type, values[i - 1]));
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
    for (size_t i = 0; i < params.size(); ++i)
        Map(params[i], kernel_.inst(id).operands[i]);
    std::vector<Type> types;
    for (ValueId value : carried)
        types.push_back(kernel_.type(value));
    InstId inner = kernel_.NewInst(Op::kScope, {}, types);
    for (size_t i = 0; i < carried.size(); ++i)
        Map(carried[i], kernel_.inst(inner).results[i]);
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
        for (BlockId inner : inst.blocks)
            RetargetContinues(inner, loop, scope);
    }
}

InstId Simplifier::ProcessLoop(InstId id, Insts& out) {
    std::vector<BlockId> blocks = kernel_.inst(id).blocks;
    if (continues_to_[id.index] == 0) {  // runs once
        const auto& params = kernel_.block(blocks[0]).params;
        for (size_t i = 0; i < params.size(); ++i)
            Map(params[i], kernel_.inst(id).operands[i]);
        kernel_.block(blocks[0]).params.clear();
        return Take(id, blocks[0], out);
    }
    // Writes of one iteration come before the loads of the next.
    ++buffer_epoch_;
    ++shared_epoch_;
    ++local_epoch_;
    ProcessBlock(blocks[0]);
    ProcessBlock(blocks[1]);
    if (kernel_.inst(kernel_.block(blocks[1]).insts.back()).op != Op::kNext)
        UnwindLoop(id);
    out.push_back(id);
    return HasExits(id) ? InstId{} : NewTerminator(Op::kUnreachable);
}

}  // namespace

void Simplify(Kernel& kernel) {
    bool changed = true;
    for (int round = 0; changed && round < 4; ++round) {
        changed = Simplifier(kernel).Run();
        ForwardSingleValues(kernel);
        EliminateDeadCode(kernel);
    }
}

}  // namespace fornax::kernel
