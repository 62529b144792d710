// One rule an operation: what the lanes share behind it, and when they differ as was guessed.
#include "compiler/kernel/codegen/guess_check.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;

namespace {

int64_t Lowest(const LaneGuesses::Lanes& lanes) {
    return *std::ranges::min_element(lanes.offsets);
}

int64_t Highest(const LaneGuesses::Lanes& lanes) {
    return *std::ranges::max_element(lanes.offsets);
}

llvm::Constant* Number(const Value* like, uint64_t value) {
    return llvm::ConstantInt::get(like->getType(), value);
}

// What EmitPureOp() computes: loads of constants are as pure, but not of their operands alone.
bool IsArithmetic(const ir::Instruction& inst) {
    return ir::HasProperty(inst.op, ir::kPure) && inst.op != Op::kIf && !inst.operands.empty() &&
           inst.op != Op::kLoadDescriptor && inst.op != Op::kLoadPush &&
           inst.op != Op::kLoadConstant;
}

}  // namespace

const GuessCheck::Common& GuessCheck::Shared(ir::ValueId value) {
    const auto found = shared_.find(value.index);
    if (found != shared_.end()) {
        return found->second;
    }
    const Common common = Compute(value);
    return shared_[value.index] = common;
}

Value* GuessCheck::Holds() {
    Value* all = b_.getTrue();
    for (Value* condition : conditions_) {
        all = b_.CreateAnd(all, condition);
    }
    return all;
}

GuessCheck::Common GuessCheck::Compute(ir::ValueId value) {
    const Shape& shape = shapes_.shape(value);
    if (shape.uniform() || shape.pattern()) {
        return {source_.scalar(value)};
    }
    if (shape.has_rows()) {
        Value* base = source_.scalar(value);
        if (!source_.is_here(shape.stride)) {
            return Compare(value, *guesses_.Of(value));
        }
        const Common& strides = Shared(shape.stride);
        if (shape.groups.empty()) {
            if (const Lanes lanes = *guesses_.Of(value); lanes.HasRows()) {
                return {base, b_.CreateMul(strides.base, Number(strides.base, lanes.times))};
            }
            Require(b_.CreateICmpEQ(strides.base, Number(strides.base, 1)));
            return {base};
        }
        // All lanes have the same multiple.
        auto times = [&](Value* stride) {
            return b_.CreateMul(stride,
                                llvm::ConstantInt::getSigned(stride->getType(), shape.rows[0]));
        };
        return {b_.CreateAdd(base, times(strides.base)),
                strides.stride ? times(strides.stride) : nullptr};
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    const bool pure = inst && IsArithmetic(*inst) &&
                      std::ranges::all_of(inst->operands, [&](ir::ValueId operand) {
                          return source_.is_here(operand) && guesses_.Of(operand);
                      });
    if (pure) {
        if (const Common common = OfOperation(*inst, value); common.base) {
            return common;
        }
    }
    return Compare(value, *guesses_.Of(value));
}

// By the lanes' own values.
GuessCheck::Common GuessCheck::Compare(ir::ValueId value, const Lanes& lanes) {
    Value* vector = source_.vector(value);
    llvm::Type* type = vector->getType()->getScalarType();
    const auto count = static_cast<unsigned>(lanes.offsets.size());
    auto number = [&](int64_t bits) { return llvm::ConstantInt::getSigned(type, bits); };
    auto numbers = [&](const std::vector<int64_t>& by_lane) {
        llvm::SmallVector<llvm::Constant*, 64> constants;
        for (int64_t bits : by_lane) {
            constants.push_back(number(bits));
        }
        return llvm::ConstantVector::get(constants);
    };
    auto without_offset = [&](size_t lane) {
        return b_.CreateSub(b_.CreateExtractElement(vector, lane), number(lanes.offsets[lane]));
    };
    Common common{without_offset(0)};
    Value* wanted = numbers(lanes.offsets);
    if (lanes.HasRows()) {
        // Finds two rows that follow each other.
        size_t next = 0;
        while (next < count && lanes.rows[next] != lanes.rows[0] + 1) {
            ++next;
        }
        if (next == count) {
            Require(b_.getFalse());
            return {common.base, number(0)};
        }
        common.stride = b_.CreateSub(without_offset(next), common.base);
        common.base = b_.CreateSub(common.base, b_.CreateMul(common.stride, number(lanes.rows[0])));
        Value* strides = b_.CreateVectorSplat(count, common.stride);
        wanted = b_.CreateAdd(wanted, b_.CreateMul(strides, numbers(lanes.rows)));
    }
    wanted = b_.CreateAdd(b_.CreateVectorSplat(count, common.base), wanted);
    Value* bits = b_.CreateBitCast(b_.CreateICmpEQ(vector, wanted), b_.getIntNTy(count));
    Require(b_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType())));
    return common;
}

// The value of an operand of which all lanes have one.
Value* GuessCheck::Lane(ir::ValueId value, size_t lane) {
    Value* base = Base(value);
    const int64_t more = guesses_.Of(value)->offsets[lane];
    return more == 0 ? base
                     : b_.CreateAdd(base, llvm::ConstantInt::getSigned(base->getType(), more));
}

// The operation's result on what the first lanes of the operands have.
Value* GuessCheck::Apply(const ir::Instruction& inst, uint32_t result) {
    llvm::SmallVector<Value*, 3> operands;
    for (ir::ValueId operand : inst.operands) {
        operands.push_back(Lane(operand, 0));
    }
    return EmitPureOp(b_, kernel_, inst, operands)[result];
}

// No lane's value wraps. False if that cannot be said.
bool GuessCheck::NeedsNoWrap(ir::ValueId value, bool is_signed) {
    const Lanes lanes = *guesses_.Of(value);
    const Common common = Shared(value);
    if (Lowest(lanes) < 0) {
        return false;
    }
    const auto highest = static_cast<uint64_t>(Highest(lanes));
    const unsigned bits = common.base->getType()->getIntegerBitWidth();
    const uint64_t limit = llvm::maxUIntN(bits) >> (is_signed ? 1 : 0);
    if (highest >= limit) {
        return false;
    }
    if (common.stride) {
        if (bits > 32) {
            return false;
        }
        const auto rows = static_cast<uint64_t>(*std::ranges::max_element(lanes.rows));
        Value* last =
            b_.CreateMul(b_.CreateZExt(common.stride, b_.getInt64Ty()), b_.getInt64(rows));
        last = b_.CreateAdd(last, b_.CreateZExt(common.base, b_.getInt64Ty()));
        Require(b_.CreateICmpULE(last, b_.getInt64(limit - highest)));
        return true;
    }
    // The base is a lane's value, which has a known bound.
    const uint64_t known = shapes_.shape(value).max;
    if (Lowest(lanes) != 0 || known > limit - highest) {
        Require(b_.CreateICmpULE(common.base, Number(common.base, limit - highest)));
    }
    return true;
}

void GuessCheck::NeedsMultiple(Value* stride, uint64_t size) {
    if (stride) {
        Require(b_.CreateICmpEQ(b_.CreateURem(stride, Number(stride, size)), Number(stride, 0)));
    }
}

// `rest`, which is the base modulo `size`, and what lanes add to it stay below `size`.
void GuessCheck::NeedsRoom(Value* base, Value* rest, uint64_t size, const Lanes& lanes) {
    uint64_t most = 0;
    for (int64_t lane : lanes.offsets) {
        most = std::max(most, static_cast<uint64_t>(lane) % size);
    }
    if (most != 0) {
        Require(b_.CreateICmpULT(rest, Number(base, size - most)));
    }
}

template <typename Map>
GuessCheck::Common GuessCheck::Each(ir::ValueId value, Map&& map) {
    const Common common = Shared(value);
    return {map(common.base), common.stride ? map(common.stride) : nullptr};
}

// Nothing where there is no rule.
GuessCheck::Common GuessCheck::OfOperation(const ir::Instruction& inst, ir::ValueId value) {
    const auto& in = inst.operands;
    if (std::ranges::all_of(in,
                            [&](ir::ValueId operand) { return guesses_.Of(operand)->IsOne(); })) {
        return {Apply(inst, kernel_.value(value).index)};
    }
    if (inst.results.size() != 1 || !ir::IsInteger(kernel_.type(value))) {
        return {};
    }
    uint64_t bits = 0;
    const bool is_const = in.size() == 2 && kernel_.IsConst(in[1], &bits);
    llvm::Type* type = ScalarType(b_.getContext(), kernel_.type(value));
    switch (inst.op) {
        case Op::kIAdd:
        case Op::kISub:
            return OfSum(inst);
        case Op::kIMul:
            if (!is_const) {
                return OfProduct(inst);
            }
            return Each(in[0], [&](Value* part) { return b_.CreateMul(part, Number(part, bits)); });
        case Op::kOr:
        case Op::kXor: {
            // Lanes differ in bits that neither base has.
            const bool first = guesses_.IsSame(in[1]);
            const Lanes own = *guesses_.Of(in[first ? 0 : 1]);
            if ((!first && !guesses_.IsSame(in[0])) || Lowest(own) < 0) {
                return {};
            }
            Value* either = b_.CreateOr(Base(in[0]), Base(in[1]));
            const uint64_t low = std::bit_ceil(static_cast<uint64_t>(Highest(own)) + 1) - 1;
            Value* met = b_.CreateAnd(either, Number(either, low));
            Require(b_.CreateICmpEQ(met, Number(either, 0)));
            return {inst.op == Op::kOr ? either : b_.CreateXor(Base(in[0]), Base(in[1]))};
        }
        case Op::kShl:
            return is_const ? Each(in[0], [&](Value* part) { return b_.CreateShl(part, bits); })
                            : Common();
        case Op::kLShr:
        case Op::kAShr:
            return is_const ? OfQuotient(in[0], uint64_t{1} << bits, inst.op == Op::kAShr)
                            : Common();
        case Op::kAnd:
            return is_const && std::has_single_bit(bits + 1) ? OfRest(in[0], bits + 1) : Common();
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
            return OfQuotient(inst);
        case Op::kZExt:
        case Op::kSExt:
            return NeedsNoWrap(in[0], inst.op == Op::kSExt)
                       ? Each(in[0], [&](Value* part) { return b_.CreateZExt(part, type); })
                       : Common();
        case Op::kTrunc:
            return Each(in[0], [&](Value* part) { return b_.CreateTrunc(part, type); });
        default:
            return {};
    }
}

// Two rows have the same stride.
GuessCheck::Common GuessCheck::OfSum(const ir::Instruction& inst) {
    const Common first = Shared(inst.operands[0]);
    const Common second = Shared(inst.operands[1]);
    return {inst.op == Op::kIAdd ? b_.CreateAdd(first.base, second.base)
                                 : b_.CreateSub(first.base, second.base),
            first.stride ? first.stride : second.stride};
}

// By what was guessed to be 1.
GuessCheck::Common GuessCheck::OfProduct(const ir::Instruction& inst) {
    for (int one : {0, 1}) {
        const ir::ValueId factor = inst.operands[static_cast<size_t>(one)];
        if (!guesses_.IsSame(factor)) {
            continue;
        }
        Require(b_.CreateICmpEQ(Base(factor), Number(Base(factor), 1)));
        return Shared(inst.operands[static_cast<size_t>(1 - one)]);
    }
    return {};
}

GuessCheck::Common GuessCheck::OfQuotient(ir::ValueId dividend, uint64_t size, bool is_signed) {
    if (!NeedsNoWrap(dividend, is_signed)) {
        return {};
    }
    Value* base = Base(dividend);
    NeedsRoom(base, b_.CreateURem(base, Number(base, size)), size, *guesses_.Of(dividend));
    NeedsMultiple(Stride(dividend), size);
    return Each(dividend, [&](Value* part) { return b_.CreateUDiv(part, Number(part, size)); });
}

// The remainder by a power of two, whatever wraps.
GuessCheck::Common GuessCheck::OfRest(ir::ValueId dividend, uint64_t size) {
    const Lanes lanes = *guesses_.Of(dividend);
    if (Lowest(lanes) < 0) {
        return {};
    }
    Value* rest = b_.CreateAnd(Base(dividend), Number(Base(dividend), size - 1));
    NeedsRoom(rest, rest, size, lanes);
    NeedsMultiple(Stride(dividend), size);
    return {rest};
}

GuessCheck::Common GuessCheck::OfQuotient(const ir::Instruction& inst) {
    const ir::ValueId dividend = inst.operands[0];
    const ir::ValueId divisor = inst.operands[1];
    const bool is_signed = inst.op == Op::kSDiv || inst.op == Op::kSRem;
    const bool divides = inst.op == Op::kSDiv || inst.op == Op::kUDiv;
    uint64_t size = 0;
    const bool is_const = kernel_.IsConst(divisor, &size);
    if (is_const ? size == 0 : is_signed || !guesses_.IsSame(divisor)) {
        return {};
    }
    if (is_const) {
        const Common quotient = OfQuotient(dividend, size, is_signed);
        if (divides || !quotient.base) {
            return quotient;
        }
        return {b_.CreateURem(Base(dividend), Number(Base(dividend), size))};
    }
    if (Stride(dividend) || !NeedsNoWrap(dividend, is_signed)) {
        return {};
    }
    // A divisor of 0 leaves no room for anything; dividing by it would be a trap.
    Value* base = Base(dividend);
    Value* by = Base(divisor);
    Value* most = Number(base, static_cast<uint64_t>(Highest(*guesses_.Of(dividend))));
    Require(b_.CreateICmpUGT(by, most));
    by = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, by, Number(base, 1));
    Value* quotient = b_.CreateUDiv(base, by);
    Value* rest = b_.CreateSub(base, b_.CreateMul(quotient, by));
    Require(b_.CreateICmpULT(rest, b_.CreateSub(by, most)));
    return {divides ? quotient : rest};
}

}  // namespace fornax::kernel
