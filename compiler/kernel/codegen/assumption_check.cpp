// What the lanes share, by the operations of the kernel, and the code of what is assumed there.
#include "compiler/kernel/codegen/assumption_check.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;
using Rule = Speculation::Base;

namespace {

llvm::Constant* Number(const Value* like, uint64_t value) {
    return llvm::ConstantInt::get(like->getType(), value);
}

// Bases are not negative where this makes a difference.
Op Unsigned(Op op) {
    switch (op) {
        case Op::kAShr:
            return Op::kLShr;
        case Op::kSDiv:
            return Op::kUDiv;
        case Op::kSRem:
        case Op::kSMod:
            return Op::kURem;
        case Op::kSExt:
            return Op::kZExt;
        default:
            return op;
    }
}

}  // namespace

const AssumptionCheck::Common& AssumptionCheck::Shared(ir::ValueId value) {
    const auto found = shared_.find(value.value());
    if (found != shared_.end()) {
        return found->second;
    }
    const Common common = Compute(value);
    return shared_[value.value()] = common;
}

Value* AssumptionCheck::Holds() {
    Value* all = b_.getTrue();
    for (Value* condition : conditions_) {
        all = b_.CreateAnd(all, condition);
    }
    return all;
}

bool AssumptionCheck::OperandsAreHere(const Speculation& found, ir::ValueId value) const {
    if (found.base == Rule::kHeld) {
        const LanePattern& pattern = patterns_.pattern(value);
        return !pattern.has_rows() || source_.is_here(pattern.stride);
    }
    return std::ranges::all_of(kernel_.Definition(value)->operands,
                               [&](ir::ValueId operand) { return source_.is_here(operand); });
}

AssumptionCheck::Common AssumptionCheck::Compute(ir::ValueId value) {
    const Speculation& found = *lanes_.Of(value);
    if (found.base == Rule::kFromOwnLanes || !OperandsAreHere(found, value)) {
        return Compare(value, found.lanes);
    }
    for (const Assumption& assumed : found.assumptions) {
        Require(Condition(assumed));
    }
    switch (found.base) {
        case Rule::kHeld:
            return patterns_.pattern(value).has_rows() ? OfRows(value, found.lanes)
                                                       : Common{source_.scalar(value)};
        case Rule::kFirstLanes:
            return {OnFirstLanes(*kernel_.Definition(value), kernel_.value(value).position)};
        case Rule::kOperand:
            return Shared(found.operand);
        default:
            return OfOperation(*kernel_.Definition(value), found.lanes);
    }
}

// The value has rows, and their stride is here.
AssumptionCheck::Common AssumptionCheck::OfRows(ir::ValueId value, const LaneForm& lanes) {
    const LanePattern& pattern = patterns_.pattern(value);
    Value* base = source_.scalar(value);
    const auto times = [&](Value* stride, int64_t number) {
        return b_.CreateMul(stride, llvm::ConstantInt::getSigned(stride->getType(), number));
    };
    if (pattern.groups.empty()) {
        return {base, lanes.HasRows()
                          ? times(Base(pattern.stride), static_cast<int64_t>(lanes.times))
                          : nullptr};
    }
    // All lanes have the same multiple.
    const Common strides = Shared(pattern.stride);
    return {b_.CreateAdd(base, times(strides.base, pattern.rows[0])),
            strides.stride ? times(strides.stride, pattern.rows[0]) : nullptr};
}

AssumptionCheck::Common AssumptionCheck::OfOperation(const ir::Instruction& inst,
                                                     const LaneForm& lanes) {
    uint64_t bits = 0;
    const bool is_const = inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &bits);
    ir::Instruction on_bases = inst;
    on_bases.op = Unsigned(inst.op);
    const bool remainder = on_bases.op == Op::kURem;
    if (!is_const && (on_bases.op == Op::kUDiv || remainder)) {
        // The divisor is not 0 if the assumptions hold; dividing by it would be a trap.
        Value* base = Base(inst.operands[0]);
        Value* by = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, Base(inst.operands[1]),
                                             Number(base, 1));
        Value* quotient = b_.CreateUDiv(base, by);
        return {remainder ? b_.CreateSub(base, b_.CreateMul(quotient, by)) : quotient};
    }
    llvm::SmallVector<Value*, 2> bases;
    llvm::SmallVector<Value*, 2> strides;
    for (ir::ValueId operand : inst.operands) {
        const Common& common = Shared(operand);
        bases.push_back(common.base);
        if (common.stride) {
            strides.push_back(common.stride);
        }
    }
    const Common common{EmitPureOp(b_, kernel_, on_bases, bases)[0]};
    if (strides.empty() && lanes.HasRows()) {
        return {common.base, Base(lanes.stride)};  // a product by the stride
    }
    if (strides.empty() || remainder || inst.op == Op::kAnd) {
        return common;  // strides are multiples of the divisor
    }
    if (inst.op == Op::kIAdd || inst.op == Op::kISub) {
        if (strides.size() == 1) {
            return {common.base, strides[0]};
        }
        const LaneForm& first = lanes_.Of(inst.operands[0])->lanes;
        const LaneForm& second = lanes_.Of(inst.operands[1])->lanes;
        if (first.HasStrideOf(second)) {
            // Unless one has wrapped on its way.
            Require(b_.CreateICmpEQ(strides[0], strides[1]));
            return {common.base, strides[0]};
        }
        // One of the strides is of a value that is 1.
        const size_t kept = lanes.HasStrideOf(first) ? 0 : 1;
        const LaneForm& other = kept == 0 ? second : first;
        Require(b_.CreateICmpEQ(strides[1 - kept],
                                Number(common.base, static_cast<uint64_t>(other.UnitStride()))));
        return {common.base, strides[kept]};
    }
    for (size_t i = 0; i < bases.size(); ++i) {
        const Common& of_operand = Shared(inst.operands[i]);
        bases[i] = of_operand.stride ? of_operand.stride : of_operand.base;
    }
    return {common.base, EmitPureOp(b_, kernel_, on_bases, bases)[0]};
}

// By the lanes' own values.
AssumptionCheck::Common AssumptionCheck::Compare(ir::ValueId value, const LaneForm& lanes) {
    Value* vector = source_.vector(value);
    llvm::Type* own_type = vector->getType()->getScalarType();
    llvm::Type* type = own_type;
    if (own_type->isFloatingPointTy()) {
        // Floats that are asked for are equal in all lanes: so are their bits.
        type = b_.getIntNTy(own_type->getScalarSizeInBits());
        vector = b_.CreateBitCast(vector, vector->getType()->getWithNewType(type));
    }
    const auto count = static_cast<unsigned>(lanes.offsets.size());
    auto number = [&](int64_t bits) { return llvm::ConstantInt::getSigned(type, bits); };
    auto numbers = [&](const std::vector<int64_t>& by_lane) {
        llvm::SmallVector<llvm::Constant*, 64> constants;
        for (int64_t bits : by_lane) {
            constants.push_back(number(bits));
        }
        return llvm::ConstantVector::get(constants);
    };
    // The first lane need not count, but whatever it has, those that do are compared with it.
    auto without_offset = [&](size_t lane) {
        Value* own = b_.CreateExtractElement(vector, lane);
        return b_.CreateSub(source_.mask ? b_.CreateFreeze(own) : own, number(lanes.offsets[lane]));
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
    Value* equal = b_.CreateICmpEQ(vector, wanted);
    if (source_.mask) {
        equal = b_.CreateOr(b_.CreateFreeze(equal), b_.CreateNot(source_.mask));
    }
    Value* bits = b_.CreateBitCast(equal, b_.getIntNTy(count));
    Require(b_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType())));
    common.base = b_.CreateBitCast(common.base, own_type);
    return common;
}

// The operation's result on what the first lanes of the operands have.
Value* AssumptionCheck::OnFirstLanes(const ir::Instruction& inst, uint32_t result) {
    llvm::SmallVector<Value*, 3> operands;
    for (ir::ValueId operand : inst.operands) {
        Value* base = Base(operand);
        const int64_t more = lanes_.Of(operand)->lanes.offsets[0];
        operands.push_back(
            more == 0 ? base
                      : b_.CreateAdd(base, llvm::ConstantInt::getSigned(base->getType(), more)));
    }
    return EmitPureOp(b_, kernel_, inst, operands)[result];
}

Value* AssumptionCheck::Condition(const Assumption& assumed) {
    using Kind = Assumption::Kind;
    const Common common = Shared(assumed.value);
    Value* base = common.base;
    const auto number = [&](uint64_t bits) { return Number(base, bits); };
    switch (assumed.kind) {
        case Kind::kAtMost: {
            if (!common.stride) {
                return b_.CreateICmpULE(base, number(assumed.number));
            }
            llvm::Type* i64 = b_.getInt64Ty();
            const std::vector<int64_t>& rows = lanes_.Of(assumed.value)->lanes.rows;
            const auto last = static_cast<uint64_t>(*std::ranges::max_element(rows));
            Value* top = b_.CreateMul(b_.CreateZExt(common.stride, i64), b_.getInt64(last));
            top = b_.CreateAdd(top, b_.CreateZExt(base, i64));
            return b_.CreateICmpULE(top, b_.getInt64(assumed.number));
        }
        case Kind::kRoom: {
            Value* rest = std::has_single_bit(assumed.size)
                              ? b_.CreateAnd(base, number(assumed.size - 1))
                              : b_.CreateURem(base, number(assumed.size));
            return b_.CreateICmpULT(rest, number(assumed.size - assumed.number));
        }
        case Kind::kRoomBelow: {
            // A divisor of 0 leaves no room for anything.
            Value* by = Base(assumed.other);
            Value* most = number(assumed.number);
            Value* some = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, by, number(1));
            Value* rest = b_.CreateSub(base, b_.CreateMul(b_.CreateUDiv(base, some), some));
            return b_.CreateAnd(b_.CreateICmpUGT(by, most),
                                b_.CreateICmpULT(rest, b_.CreateSub(some, most)));
        }
        case Kind::kMultiple: {
            Value* rest = b_.CreateURem(common.stride, number(assumed.size));
            return b_.CreateICmpEQ(rest, number(0));
        }
        case Kind::kIsOne:
            return b_.CreateICmpEQ(base, number(1));
        case Kind::kNoCommonBits: {
            Value* either = b_.CreateOr(base, Base(assumed.other));
            return b_.CreateICmpEQ(b_.CreateAnd(either, number(assumed.number)), number(0));
        }
    }
    return b_.getFalse();
}

}  // namespace fornax::kernel
