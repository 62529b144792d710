#include "compiler/kernel/index/index_builder.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/index/upper_bound.h"
#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr uint32_t kMaxSteps = 64;  // sums from one iteration's value to the next one's
constexpr int kMaxRuns = 3;         // of ones in a mask

WideInteger SizeOf(uint32_t bits) {
    return WideInteger{1} << bits;
}

// Bounds of a number modulo 2^bits.
IndexRange Modulo(const IndexRange& range, uint32_t bits) {
    const WideInteger size = SizeOf(bits);
    const WideInteger below = range.low / size * size - (range.low % size < 0 ? size : 0);
    if (range.low <= -IndexRange::kLimit || range.high - below >= size) {
        return {.low = 0, .high = size - 1};
    }
    return {.low = range.low - below, .high = range.high - below};
}

// The axis that a workgroup's number counts along; kNoAxis for other builtins.
uint8_t WorkgroupAxis(ir::BuiltinId builtin) {
    switch (builtin) {
        case ir::BuiltinId::kWorkgroupIdX:
            return kWorkgroupXAxis;
        case ir::BuiltinId::kWorkgroupIdY:
            return kWorkgroupYAxis;
        case ir::BuiltinId::kWorkgroupIdZ:
            return kWorkgroupZAxis;
        default:
            return kNoAxis;
    }
}

}  // namespace

IndexExpr IndexBuilder::Of(ir::ValueId value) {
    // Chains of operations may be as long as the kernel.
    stack_.push_back(value);
    while (!stack_.empty()) {
        const ir::ValueId next = stack_.back();
        if (known_[next.value()].valid()) {
            stack_.pop_back();
        } else if (!PushOperands(next)) {
            known_[next.value()] = Compute(next);
            stack_.pop_back();
        }
    }
    return known_[value.value()];
}

// False if all that the value is made of is known.
bool IndexBuilder::PushOperands(ir::ValueId value) {
    const size_t before = stack_.size();
    auto push = [&](ir::ValueId operand) {
        if (!known_[operand.value()].valid()) {
            stack_.push_back(operand);
        }
    };
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst) {
        const ir::Value& param = kernel_.value(value);
        if (StepOf(value) || GrowsAlike(param)) {
            push(kernel_.inst(kernel_.block(param.block).parent).operands[param.position]);
        }
    } else if (!ir::HasProperty(inst->op, ir::kRegions)) {
        std::ranges::for_each(inst->operands, push);
    }
    return stack_.size() != before;
}

IndexExpr IndexBuilder::Compute(ir::ValueId value) {
    const ir::Instruction* inst = kernel_.Definition(value);
    IndexExpr expr;
    if (!inst) {
        expr = OfParameter(value);
    } else if (inst->op == Op::kBuiltin) {
        expr = OfBuiltin(static_cast<ir::BuiltinId>(inst->imm));
    } else if (ir::IsInteger(kernel_.type(value)) && ir::HasProperty(inst->op, ir::kPure)) {
        expr = algebra_.Reduce(OfInteger(*inst, value), Bits(value));
    }
    return expr.valid() ? expr : Symbol(value);
}

void IndexBuilder::Assume(ir::ValueId value, uint8_t axes) {
    known_[value.value()] = algebra_.Symbol(
        {.kind = IndexSymbol::Kind::kAssumed, .number = value.value(), .axes = axes});
}

IndexExpr IndexBuilder::Unsigned(ir::ValueId value) {
    return UnsignedOf(Of(value), Bits(value));
}

IndexRange IndexBuilder::UnsignedRange(ir::ValueId value) {
    Of(value);
    return RangeOf(value);
}

IndexRange IndexBuilder::RangeOf(ir::ValueId value) const {
    return Modulo(algebra_.range(known_[value.value()]), std::max(1u, Bits(value)));
}

IndexExpr IndexBuilder::UnsignedOf(IndexExpr expr, uint32_t bits) {
    return assumptions_.no_wrap ? expr : algebra_.LowBits(expr, bits);
}

IndexExpr IndexBuilder::SignedOf(IndexExpr expr, uint32_t bits) {
    return assumptions_.no_wrap ? expr : algebra_.SignedLowBits(expr, bits);
}

IndexExpr IndexBuilder::OfBuiltin(ir::BuiltinId builtin) {
    using ir::BuiltinId;
    if (assumptions_.invocation) {
        if (const auto known = ValueInInvocation(kernel_, builtin, *assumptions_.invocation)) {
            return algebra_.Constant(*known);
        }
    }
    IndexSymbol symbol{.kind = IndexSymbol::Kind::kBuiltin,
                       .number = static_cast<uint32_t>(builtin),
                       .max = UpperBoundOf(kernel_, builtin)};
    switch (builtin) {
        case BuiltinId::kNumSubgroups:
        case BuiltinId::kSubgroupSize:
            return algebra_.Constant(static_cast<int64_t>(symbol.max));
        case BuiltinId::kWorkgroupIdX:
        case BuiltinId::kWorkgroupIdY:
        case BuiltinId::kWorkgroupIdZ:
            symbol.axes = WorkgroupAxis(builtin);
            // There are UINT32_MAX of them at most.
            symbol.max = UINT32_MAX - 1;
            symbol.zeros = assumptions_.first_workgroups ? 0 : assumptions_.symbol_zeros;
            break;
        case BuiltinId::kNumWorkgroupsX:
        case BuiltinId::kNumWorkgroupsY:
        case BuiltinId::kNumWorkgroupsZ:
            symbol.zeros = assumptions_.symbol_zeros;
            break;
        default:
            symbol.axes = kLaneAxis;
            break;
    }
    return symbol.max == 0 ? algebra_.Constant(0) : algebra_.Symbol(symbol);
}

// A loop's counter begins with what goes into the loop.
IndexExpr IndexBuilder::OfParameter(ir::ValueId value) {
    const std::optional<int64_t> step = StepOf(value);
    const ir::Value& param = kernel_.value(value);
    if (!step && !GrowsAlike(param)) {
        return {};
    }
    const ir::InstId loop = kernel_.block(param.block).parent;
    const IndexExpr start = known_[kernel_.inst(loop).operands[param.position].value()];
    if (!step) {
        const uint8_t lanes = assumptions_.alike_lanes ? kNoAxis : kLaneAxis | kUnevenAxis;
        const uint8_t workgroups = assumptions_.alike_workgroups ? kNoAxis : kWorkgroupAxes;
        const auto axes = static_cast<uint8_t>(kIterationAxis | lanes | workgroups);
        return algebra_.Add(start, algebra_.Symbol({.number = value.value(),
                                                    .axes = axes,
                                                    .zeros = assumptions_.growth_zeros}));
    }
    const IndexExpr iteration = algebra_.Symbol({.kind = IndexSymbol::Kind::kIteration,
                                                 .number = loop.value(),
                                                 .axes = kIterationAxis,
                                                 .zeros = assumptions_.symbol_zeros});
    const uint32_t bits = Bits(value);
    const IndexExpr grown = algebra_.MultiplyModulo(iteration, algebra_.Constant(*step), bits);
    return algebra_.AddModulo(start, grown, bits);
}

// An integer that goes from one iteration of a loop to the next, and by as much for all that are
// taken to be alike.
bool IndexBuilder::GrowsAlike(const ir::Value& param) const {
    if (!assumptions_.alike_workgroups && !assumptions_.alike_lanes) {
        return false;
    }
    const ir::InstId parent = kernel_.block(param.block).parent;
    return parent.valid() && kernel_.inst(parent).op == Op::kLoop && ir::IsInteger(param.type) &&
           kernel_.inst(parent).blocks[0] == param.block;
}

std::optional<int64_t> IndexBuilder::StepOf(ir::ValueId param) {
    const ir::Value& definition = kernel_.value(param);
    const ir::InstId loop_id =
        definition.block.valid() ? kernel_.block(definition.block).parent : ir::InstId{};
    if (!loop_id.valid() || !ir::IsInteger(kernel_.type(param))) {
        return std::nullopt;
    }
    const ir::Instruction& loop = kernel_.inst(loop_id);
    const ir::Instruction& next = kernel_.inst(kernel_.block(loop.blocks[1]).insts.back());
    if (loop.op != Op::kLoop || loop.blocks[0] != definition.block || next.op != Op::kNext) {
        return std::nullopt;
    }
    if (!continues_) {
        continues_.emplace();
        for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
            if (kernel_.inst(ir::InstId{i}).op == Op::kContinue) {
                (*continues_)[kernel_.inst(ir::InstId{i}).target].push_back(ir::InstId{i});
            }
        }
    }
    ir::ValueId value = next.operands[definition.position];
    uint64_t step = 0;
    for (uint32_t steps = 0; value != param && steps < kMaxSteps; ++steps) {
        const ir::Value& at = kernel_.value(value);
        if (at.block.valid()) {
            // A parameter of the continuing block: what all that lead there agree on.
            const std::vector<ir::InstId>& edges = (*continues_)[loop_id];
            if (at.block != loop.blocks[1] || edges.empty()) {
                return std::nullopt;
            }
            value = kernel_.inst(edges[0]).operands[at.position];
            if (std::ranges::any_of(edges, [&](ir::InstId edge) {
                    return kernel_.inst(edge).operands[at.position] != value;
                })) {
                return std::nullopt;
            }
            continue;
        }
        const ir::Instruction& sum = kernel_.inst(at.inst);
        uint64_t more = 0;
        if ((sum.op != Op::kIAdd && sum.op != Op::kISub) ||
            !kernel_.IsConst(sum.operands[1], &more)) {
            return std::nullopt;
        }
        step += sum.op == Op::kIAdd ? more : 0 - more;
        value = sum.operands[0];
    }
    if (value != param) {
        return std::nullopt;
    }
    return ir::SignExtend(step, Bits(param));
}

IndexExpr IndexBuilder::OfInteger(const ir::Instruction& inst, ir::ValueId value) {
    const uint32_t bits = Bits(value);
    auto in = [&](size_t i) { return known_[inst.operands[i].value()]; };
    auto from_bits = [&] { return Bits(inst.operands[0]); };
    switch (inst.op) {
        case Op::kConst:
            return algebra_.Constant(static_cast<int64_t>(inst.imm));
        case Op::kIAdd:
            return algebra_.AddModulo(in(0), in(1), bits);
        case Op::kISub:
            return algebra_.SubtractModulo(in(0), in(1), bits);
        case Op::kIMul:
            return algebra_.MultiplyModulo(in(0), in(1), bits);
        case Op::kINeg:
            return algebra_.SubtractModulo(algebra_.Constant(0), in(0), bits);
        case Op::kNot:
            return algebra_.SubtractModulo(algebra_.Constant(-1), in(0), bits);
        case Op::kShl:
        case Op::kLShr:
        case Op::kAShr:
            return OfShift(inst, bits);
        case Op::kUDiv:
        case Op::kURem:
        case Op::kSDiv:
        case Op::kSRem:
        case Op::kSMod:
            return OfDivision(inst, bits);
        case Op::kAnd:
        case Op::kOr:
        case Op::kXor:
            return OfBits(inst, bits);
        case Op::kBitFieldUExtract: {
            const auto first = algebra_.AsConstant(in(1));
            const auto count = algebra_.AsConstant(in(2));
            if (!first || !count || *first < 0 || *count <= 0 || *first + *count > bits) {
                return {};
            }
            const IndexExpr shifted =
                algebra_.Quotient(UnsignedOf(in(0), bits), uint64_t{1} << *first);
            return algebra_.LowBits(shifted, static_cast<uint32_t>(*count));
        }
        case Op::kZExt:
            return UnsignedOf(in(0), from_bits());
        case Op::kSExt:
            return SignedOf(in(0), from_bits());
        case Op::kTrunc:
            return in(0);
        case Op::kBitcast:
            return ir::IsInteger(kernel_.type(inst.operands[0])) ? in(0) : IndexExpr{};
        case Op::kSelect:
            return in(1) == in(2) ? in(1) : IndexExpr{};
        case Op::kUMin:
        case Op::kUMax:
        case Op::kSMin:
        case Op::kSMax:
            return OfExtreme(inst);
        default:
            return {};
    }
}

IndexExpr IndexBuilder::OfShift(const ir::Instruction& inst, uint32_t bits) {
    const IndexExpr a = known_[inst.operands[0].value()];
    uint64_t amount = 0;
    if (!kernel_.IsConst(inst.operands[1], &amount) || amount >= bits) {
        return {};
    }
    const uint64_t power = uint64_t{1} << amount;
    if (inst.op == Op::kShl) {
        return algebra_.MultiplyModulo(a, algebra_.Constant(static_cast<int64_t>(power)), bits);
    }
    return algebra_.Quotient(inst.op == Op::kLShr ? UnsignedOf(a, bits) : SignedOf(a, bits), power);
}

IndexExpr IndexBuilder::OfDivision(const ir::Instruction& inst, uint32_t bits) {
    const bool is_unsigned = inst.op == Op::kUDiv || inst.op == Op::kURem;
    // Where no operand is negative, both readings are one.
    const WideInteger least_negative = SizeOf(bits - 1);
    if (!is_unsigned && !assumptions_.no_wrap &&
        (RangeOf(inst.operands[0]).high >= least_negative ||
         RangeOf(inst.operands[1]).high >= least_negative)) {
        return {};
    }
    const IndexExpr a = UnsignedOf(known_[inst.operands[0].value()], bits);
    const IndexExpr by = UnsignedOf(known_[inst.operands[1].value()], bits);
    const bool is_quotient = inst.op == Op::kUDiv || inst.op == Op::kSDiv;
    uint64_t divisor = 0;
    if (kernel_.IsConst(inst.operands[1], &divisor)) {
        return is_quotient ? algebra_.Quotient(a, divisor) : algebra_.Remainder(a, divisor);
    }
    const uint64_t max = ~uint64_t{0} >> (64 - bits);
    return is_quotient ? algebra_.Quotient(a, by, max) : algebra_.Remainder(a, by, max);
}

// The bits of a number that a mask leaves, run by run.
IndexExpr IndexBuilder::Masked(IndexExpr exact, uint64_t mask, uint32_t bits) {
    IndexExpr result = algebra_.Constant(0);
    int runs = 0;
    while (mask != 0) {
        const auto first = static_cast<uint32_t>(std::countr_zero(mask));
        const auto count = static_cast<uint32_t>(std::countr_one(mask >> first));
        if (++runs > kMaxRuns) {
            return {};
        }
        IndexExpr run = algebra_.Quotient(exact, uint64_t{1} << first);
        if (first + count < bits) {
            run = algebra_.LowBits(run, count);
        }
        const auto power = static_cast<int64_t>(uint64_t{1} << first);
        result = algebra_.AddModulo(
            result, algebra_.MultiplyModulo(run, algebra_.Constant(power), bits), bits);
        mask = first + count >= 64 ? 0 : mask >> (first + count) << (first + count);
    }
    return result;
}

IndexExpr IndexBuilder::OfBits(const ir::Instruction& inst, uint32_t bits) {
    const IndexExpr a = known_[inst.operands[0].value()];
    const IndexExpr b = known_[inst.operands[1].value()];
    uint64_t mask = 0;
    if (!kernel_.IsConst(inst.operands[1], &mask)) {
        // Bits that do not meet.
        auto below = [&](ir::ValueId low, IndexExpr high) {
            return RangeOf(low).high < SizeOf(algebra_.TrailingZeros(high));
        };
        const bool apart = below(inst.operands[0], b) || below(inst.operands[1], a);
        return apart && inst.op != Op::kAnd ? algebra_.AddModulo(a, b, bits) : IndexExpr{};
    }
    const IndexExpr both = Masked(UnsignedOf(a, bits), mask, bits);
    if (inst.op == Op::kAnd) {
        return both;
    }
    const IndexExpr either = algebra_.SubtractModulo(algebra_.AddModulo(a, b, bits), both, bits);
    return inst.op == Op::kOr ? either : algebra_.SubtractModulo(either, both, bits);
}

IndexExpr IndexBuilder::OfExtreme(const ir::Instruction& inst) {
    const IndexRange a = RangeOf(inst.operands[0]);
    const IndexRange b = RangeOf(inst.operands[1]);
    const WideInteger least_negative = SizeOf(Bits(inst.operands[0]) - 1);
    const bool is_signed = inst.op == Op::kSMin || inst.op == Op::kSMax;
    if (is_signed && (a.high >= least_negative || b.high >= least_negative)) {
        return {};
    }
    const bool least = inst.op == Op::kUMin || inst.op == Op::kSMin;
    if (a.high <= b.low) {
        return known_[inst.operands[least ? 0 : 1].value()];
    }
    return b.high <= a.low ? known_[inst.operands[least ? 1 : 0].value()] : IndexExpr{};
}

// What a value depends on that is not looked into.
// Each of a construct's results follows from the condition and from what leaves it as that result;
// a loop's parameters from what they begin with, because loops add the same in all workgroups.
void IndexBuilder::FindWorkgroupAxes(ir::BlockId block) {
    for (const ir::InstId id : kernel_.block(block).insts) {
        const ir::Instruction& inst = kernel_.inst(id);
        uint8_t axes = 0;
        if (inst.op == Op::kBuiltin) {
            axes = WorkgroupAxis(static_cast<ir::BuiltinId>(inst.imm));
        }
        if (inst.op == Op::kLoop) {
            const std::vector<ir::ValueId>& params = kernel_.block(inst.blocks[0]).params;
            for (size_t i = 0; i < params.size(); ++i) {
                workgroup_axes_[params[i].value()] = workgroup_axes_[inst.operands[i].value()];
            }
        } else {
            for (const ir::ValueId operand : inst.operands) {
                axes |= workgroup_axes_[operand.value()];
            }
        }
        for (const ir::ValueId result : inst.results) {
            workgroup_axes_[result.value()] = axes;
        }
        for (const ir::BlockId child : inst.blocks) {
            FindWorkgroupAxes(child);
            AddWorkgroupAxesLeaving(child, id, true);
        }
    }
}

// To the construct's results the axes of what the block, which is one of its own if `is_child`, and
// what is in it give it.
void IndexBuilder::AddWorkgroupAxesLeaving(ir::BlockId block, ir::InstId construct, bool is_child) {
    for (const ir::InstId id : kernel_.block(block).insts) {
        const ir::Instruction& inst = kernel_.inst(id);
        if ((inst.op == Op::kExit && inst.target == construct) ||
            (inst.op == Op::kYield && is_child)) {
            const std::vector<ir::ValueId>& results = kernel_.inst(construct).results;
            for (size_t i = 0; i < std::min(results.size(), inst.operands.size()); ++i) {
                workgroup_axes_[results[i].value()] |= workgroup_axes_[inst.operands[i].value()];
            }
        }
        for (const ir::BlockId child : inst.blocks) {
            AddWorkgroupAxesLeaving(child, construct, false);
        }
    }
}

uint8_t IndexBuilder::AxesOf(ir::ValueId value, const ir::Instruction* inst) {
    const bool reads = inst && ir::HasProperty(inst->op, ir::kReadsMemory) &&
                       !ir::HasProperty(inst->op, ir::kWritesMemory | ir::kConvergent) &&
                       inst->op != Op::kLoadLocal;
    const bool pure = inst && ir::HasProperty(inst->op, ir::kPure) && inst->op != Op::kUndef;
    if (inst && !inst->blocks.empty() && assumptions_.alike_workgroups) {
        if (workgroup_axes_.empty()) {
            workgroup_axes_.resize(kernel_.num_values());
            FindWorkgroupAxes(kernel_.body);
        }
        return (kAllAxes & ~kWorkgroupAxes) | workgroup_axes_[value.value()];
    }
    if (!reads && !pure) {
        return kAllAxes;
    }
    // What others write may come in between, but for lanes, which read at once.
    uint8_t axes =
        reads && !assumptions_.alike_workgroups ? kAllAxes & ~(kLaneAxis | kUnevenAxis) : kNoAxis;
    for (ir::ValueId operand : inst->operands) {
        axes |= algebra_.axes(known_[operand.value()]);
    }
    return axes;
}

uint32_t IndexBuilder::ZerosOf(const ir::Instruction* inst) {
    auto zeros = [&](size_t i) {
        return algebra_.TrailingZeros(known_[inst->operands[i].value()]);
    };
    switch (inst ? inst->op : Op::kUndef) {
        case Op::kAnd:
            return std::max(zeros(0), zeros(1));
        case Op::kOr:
        case Op::kXor:
        case Op::kUMin:
        case Op::kUMax:
        case Op::kSMin:
        case Op::kSMax:
            return std::min(zeros(0), zeros(1));
        case Op::kSelect:
            return std::min(zeros(1), zeros(2));
        default:
            return 0;
    }
}

IndexExpr IndexBuilder::Symbol(ir::ValueId value) {
    const ir::Instruction* inst = kernel_.Definition(value);
    IndexSymbol symbol{.number = value.value(), .axes = AxesOf(value, inst)};
    symbol.axes |= UnevenIf(symbol.axes);
    if (ir::IsInteger(kernel_.type(value))) {
        auto bound = [&](size_t i) -> uint64_t {
            return static_cast<uint64_t>(RangeOf(inst->operands[i]).high);
        };
        symbol.max = inst ? UpperBoundOfResult(kernel_, *inst, value, bound)
                          : ~uint64_t{0} >> (64 - Bits(value));
        const uint32_t zeros = std::max<uint32_t>(ZerosOf(inst), assumptions_.symbol_zeros);
        symbol.zeros = static_cast<uint8_t>(zeros);
    }
    return algebra_.Symbol(symbol);
}

std::optional<int64_t> IndexBuilder::Distance(ir::ValueId from, ir::ValueId to) {
    if (kernel_.type(from) != kernel_.type(to) || !ir::IsInteger(kernel_.type(from))) {
        return std::nullopt;
    }
    const IndexExpr first = Of(from);
    return algebra_.AsConstant(algebra_.SubtractModulo(Of(to), first, Bits(from)));
}

IndexExpr IndexBuilder::Between(ir::ValueId value,
                                const IndexAlgebra::Replacement& from,
                                const IndexAlgebra::Replacement& to) {
    const uint32_t bits = Bits(value);
    const IndexExpr expr = Of(value);
    const IndexExpr first = algebra_.Substitute(expr, bits, from);
    return algebra_.SubtractModulo(algebra_.Substitute(expr, bits, to), first, bits);
}

IndexExpr IndexBuilder::Along(ir::ValueId value,
                              IndexSymbol::Kind kind,
                              uint32_t number,
                              uint8_t axis) {
    auto here = [&](const IndexSymbol& symbol) { return algebra_.Symbol(symbol); };
    auto next = [&](const IndexSymbol& symbol) -> IndexExpr {
        if (symbol.kind == kind && symbol.number == number) {
            return algebra_.Add(algebra_.Symbol(symbol), algebra_.Constant(1));
        }
        // Other loops' iterations stay, but a value may depend on any loop's.
        const bool stays = (symbol.axes & axis) == 0 || symbol.kind == kind;
        return stays ? algebra_.Symbol(symbol) : IndexExpr{};
    };
    return Between(value, here, next);
}

IndexExpr IndexBuilder::AlongWorkgroupX(ir::ValueId value) {
    if (assumptions_.first_workgroups) {
        const auto in_workgroup = [&](int64_t number) {
            return [this, number](const IndexSymbol& symbol) -> IndexExpr {
                if ((symbol.axes & kWorkgroupXAxis) == 0) {
                    return algebra_.Symbol(symbol);
                }
                return symbol.kind == IndexSymbol::Kind::kBuiltin ? algebra_.Constant(number)
                                                                  : IndexExpr{};
            };
        };
        return Between(value, in_workgroup(0), in_workgroup(1));
    }
    return Along(value, IndexSymbol::Kind::kBuiltin,
                 static_cast<uint32_t>(ir::BuiltinId::kWorkgroupIdX), kWorkgroupXAxis);
}

IndexExpr IndexBuilder::AlongIteration(ir::ValueId value, ir::InstId loop) {
    return Along(value, IndexSymbol::Kind::kIteration, loop.value(), kIterationAxis);
}

}  // namespace fornax::kernel
