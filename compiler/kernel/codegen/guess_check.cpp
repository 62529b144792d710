// One rule an operation: what the lanes share behind it, and when they differ as was guessed.
#include "compiler/kernel/codegen/guess_check.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;

namespace {

int64_t Lowest(const std::vector<int64_t>& lanes) {
    return *std::min_element(lanes.begin(), lanes.end());
}

int64_t Highest(const std::vector<int64_t>& lanes) {
    return *std::max_element(lanes.begin(), lanes.end());
}

llvm::Constant* Number(const Value* like, uint64_t value) {
    return llvm::ConstantInt::get(like->getType(), value);
}

}  // namespace

Value* GuessCheck::Base(ir::ValueId value) {
    const auto found = bases_.find(value.index);
    if (found != bases_.end())
        return found->second;
    Value* base = Compute(value);
    bases_[value.index] = base;
    return base;
}

Value* GuessCheck::Holds() {
    Value* all = b_.getTrue();
    for (Value* condition : conditions_)
        all = b_.CreateAnd(all, condition);
    return all;
}

Value* GuessCheck::Compute(ir::ValueId value) {
    const Shape& shape = shapes_.shape(value);
    if (shape.uniform() || shape.pattern())
        return source_.scalar(value);
    if (shape.has_rows()) {
        Value* base = source_.scalar(value);
        if (!source_.is_here(shape.stride))
            return Compare(value, *guesses_.Of(value));
        Value* stride = Base(shape.stride);
        if (shape.groups.empty()) {
            Require(b_.CreateICmpEQ(stride, Number(stride, 1)));
            return base;
        }
        // All lanes have the same multiple.
        Value* multiple = llvm::ConstantInt::getSigned(stride->getType(), shape.rows[0]);
        return b_.CreateAdd(base, b_.CreateMul(stride, multiple));
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    const bool pure = inst && ir::HasProperty(inst->op, ir::kPure) && inst->op != Op::kIf &&
                      std::ranges::all_of(inst->operands, [&](ir::ValueId operand) {
                          return source_.is_here(operand) && guesses_.Of(operand);
                      });
    if (pure) {
        if (Value* base = OfOperation(*inst, value))
            return base;
    }
    return Compare(value, *guesses_.Of(value));
}

// By the lanes' own values.
Value* GuessCheck::Compare(ir::ValueId value, const Lanes& lanes) {
    Value* vector = source_.vector(value);
    llvm::Type* type = vector->getType()->getScalarType();
    Value* base = b_.CreateSub(b_.CreateExtractElement(vector, uint64_t{0}),
                               llvm::ConstantInt::getSigned(type, lanes[0]));
    llvm::SmallVector<llvm::Constant*, 64> constants;
    for (int64_t lane : lanes)
        constants.push_back(llvm::ConstantInt::getSigned(type, lane));
    Value* wanted = b_.CreateAdd(b_.CreateVectorSplat(static_cast<unsigned>(lanes.size()), base),
                                 llvm::ConstantVector::get(constants));
    Value* bits = b_.CreateBitCast(b_.CreateICmpEQ(vector, wanted),
                                   b_.getIntNTy(static_cast<unsigned>(lanes.size())));
    Require(b_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType())));
    return base;
}

Value* GuessCheck::Lane(ir::ValueId value, size_t lane) {
    Value* base = Base(value);
    const int64_t more = (*guesses_.Of(value))[lane];
    return more == 0 ? base
                     : b_.CreateAdd(base, llvm::ConstantInt::getSigned(base->getType(), more));
}

// The operation on what the first lanes of the operands have.
Value* GuessCheck::Apply(const ir::Instruction& inst) {
    llvm::SmallVector<Value*, 3> operands;
    for (ir::ValueId operand : inst.operands)
        operands.push_back(Lane(operand, 0));
    return EmitPureOp(b_, kernel_, inst, operands)[0];
}

// base + lane wraps for no lane of the value. False if that cannot be said.
bool GuessCheck::NeedsNoWrap(ir::ValueId value, Value* base, bool is_signed) {
    const Lanes lanes = *guesses_.Of(value);
    if (Lowest(lanes) < 0)
        return false;
    const auto highest = static_cast<uint64_t>(Highest(lanes));
    const unsigned bits = base->getType()->getIntegerBitWidth();
    const uint64_t limit = llvm::maxUIntN(bits) >> (is_signed ? 1 : 0);
    if (highest >= limit)
        return false;
    // The base is a lane's value, which has a known bound.
    const uint64_t known = shapes_.shape(value).max;
    if (Lowest(lanes) != 0 || known > limit - highest)
        Require(b_.CreateICmpULE(base, Number(base, limit - highest)));
    return true;
}

// `rest`, which is the base modulo `size`, and what lanes add to it stay below `size`.
void GuessCheck::NeedsRoom(Value* base, Value* rest, uint64_t size, const Lanes& lanes) {
    uint64_t most = 0;
    for (int64_t lane : lanes)
        most = std::max(most, static_cast<uint64_t>(lane) % size);
    if (most != 0)
        Require(b_.CreateICmpULT(rest, Number(base, size - most)));
}

// Null where there is no rule.
Value* GuessCheck::OfOperation(const ir::Instruction& inst, ir::ValueId value) {
    const auto& in = inst.operands;
    if (std::ranges::all_of(in, [&](ir::ValueId operand) {
            const Lanes lanes = *guesses_.Of(operand);
            return Lowest(lanes) == Highest(lanes);
        }))
        return Apply(inst);
    if (inst.results.size() != 1 || !ir::IsInteger(kernel_.type(value)))
        return nullptr;
    const Lanes lanes = *guesses_.Of(in[0]);
    uint64_t bits = 0;
    const bool is_const = in.size() == 2 && kernel_.IsConst(in[1], &bits);
    switch (inst.op) {
        case Op::kIAdd:
            return b_.CreateAdd(Base(in[0]), Base(in[1]));
        case Op::kISub:
            return b_.CreateSub(Base(in[0]), Base(in[1]));
        case Op::kIMul:
            return is_const ? b_.CreateMul(Base(in[0]), Base(in[1])) : OfProduct(inst);
        case Op::kOr:
        case Op::kXor: {
            // Lanes differ in bits that neither base has.
            const bool first = guesses_.IsSame(in[1]);
            const Lanes own = *guesses_.Of(in[first ? 0 : 1]);
            if ((!first && !guesses_.IsSame(in[0])) || Lowest(own) < 0)
                return nullptr;
            Value* either = b_.CreateOr(Base(in[0]), Base(in[1]));
            const uint64_t low = std::bit_ceil(static_cast<uint64_t>(Highest(own)) + 1) - 1;
            Value* met = b_.CreateAnd(either, Number(either, low));
            Require(b_.CreateICmpEQ(met, Number(either, 0)));
            return inst.op == Op::kOr ? either : b_.CreateXor(Base(in[0]), Base(in[1]));
        }
        case Op::kShl:
            return is_const ? b_.CreateShl(Base(in[0]), bits) : nullptr;
        case Op::kLShr:
        case Op::kAShr: {
            if (!is_const || !NeedsNoWrap(in[0], Base(in[0]), inst.op == Op::kAShr))
                return nullptr;
            Value* base = Base(in[0]);
            const uint64_t size = uint64_t{1} << bits;
            NeedsRoom(base, b_.CreateAnd(base, Number(base, size - 1)), size, lanes);
            return b_.CreateLShr(base, bits);
        }
        case Op::kAnd: {
            const uint64_t size = bits + 1;
            if (!is_const || !std::has_single_bit(size) || Lowest(lanes) < 0)
                return nullptr;
            Value* rest = b_.CreateAnd(Base(in[0]), Number(Base(in[0]), bits));
            NeedsRoom(rest, rest, size, lanes);
            return rest;
        }
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
            return OfQuotient(inst);
        case Op::kZExt:
            return NeedsNoWrap(in[0], Base(in[0]), false)
                       ? b_.CreateZExt(Base(in[0]),
                                       ScalarType(b_.getContext(), kernel_.type(value)))
                       : nullptr;
        case Op::kSExt:
            return NeedsNoWrap(in[0], Base(in[0]), true)
                       ? b_.CreateZExt(Base(in[0]),
                                       ScalarType(b_.getContext(), kernel_.type(value)))
                       : nullptr;
        case Op::kTrunc:
            return b_.CreateTrunc(Base(in[0]), ScalarType(b_.getContext(), kernel_.type(value)));
        default:
            return nullptr;
    }
}

// By what was guessed to be 1.
Value* GuessCheck::OfProduct(const ir::Instruction& inst) {
    for (int one : {0, 1}) {
        const ir::ValueId factor = inst.operands[static_cast<size_t>(one)];
        const ir::ValueId other = inst.operands[static_cast<size_t>(1 - one)];
        if (!guesses_.IsSame(factor))
            continue;
        Require(b_.CreateICmpEQ(Base(factor), Number(Base(factor), 1)));
        return Base(other);
    }
    return nullptr;
}

Value* GuessCheck::OfQuotient(const ir::Instruction& inst) {
    const ir::ValueId dividend = inst.operands[0];
    const ir::ValueId divisor = inst.operands[1];
    const bool is_signed = inst.op == Op::kSDiv || inst.op == Op::kSRem;
    const bool divides = inst.op == Op::kSDiv || inst.op == Op::kUDiv;
    const Lanes lanes = *guesses_.Of(dividend);
    Value* base = Base(dividend);
    uint64_t size = 0;
    const bool is_const = kernel_.IsConst(divisor, &size);
    if (is_const ? size == 0 : is_signed || !guesses_.IsSame(divisor))
        return nullptr;
    if (!NeedsNoWrap(dividend, base, is_signed))
        return nullptr;
    if (is_const) {
        Value* rest = b_.CreateURem(base, Number(base, size));
        NeedsRoom(base, rest, size, lanes);
        return divides ? b_.CreateUDiv(base, Number(base, size)) : rest;
    }
    // A divisor of 0 leaves no room for anything; dividing by it would be a trap.
    Value* by = Base(divisor);
    Value* most = Number(base, static_cast<uint64_t>(Highest(lanes)));
    Require(b_.CreateICmpUGT(by, most));
    by = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, by, Number(base, 1));
    Value* quotient = b_.CreateUDiv(base, by);
    Value* rest = b_.CreateSub(base, b_.CreateMul(quotient, by));
    Require(b_.CreateICmpULT(rest, b_.CreateSub(by, most)));
    return divides ? quotient : rest;
}

}  // namespace fornax::kernel
