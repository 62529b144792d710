// The rules of algebra.cpp and algebra_conversions.cpp for one expression.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "compiler/kernel/transform/bounds.h"
#include "compiler/kernel/transform/expression.h"

namespace fornax::kernel {

class Algebra {
  public:
    Algebra(ExpressionBuilder& builder, Expression& e)
        : builder_(builder), kernel_(builder.kernel()), e_(e) {}

    ir::ValueId Fold();

  private:
    static constexpr ir::ValueId kStays{};

    ir::ValueId A() const { return e_.operands[0]; }
    ir::ValueId B() const { return e_.operands[1]; }
    uint32_t Width() const { return ir::BitWidth(kernel_.type(A())); }
    uint64_t Ones() const { return ~uint64_t{0} >> (64 - Width()); }

    bool IsConst(ir::ValueId id, uint64_t* bits) const { return kernel_.IsConst(id, bits); }
    bool IsConst(ir::ValueId id) const { return kernel_.IsConst(id); }
    // The defining instruction, if it is of this operation.
    const ir::Instruction* As(ir::ValueId id, ir::Op op) const {
        const ir::Instruction* inst = kernel_.Definition(id);
        return inst && inst->op == op ? inst : nullptr;
    }
    // For a value of the form x op constant.
    bool AsWithConst(ir::ValueId id, ir::Op op, ir::ValueId* x, uint64_t* constant) const {
        const ir::Instruction* inst = As(id, op);
        if (!inst || !IsConst(inst->operands[1], constant)) {
            return false;
        }
        *x = inst->operands[0];
        return true;
    }
    // No value of the integer, read as unsigned, exceeds this.
    uint64_t Bound(ir::ValueId id) const {
        return UpperBound(kernel_, id, builder_.known_bounds());
    }
    bool IsNonNegative(ir::ValueId id) const {
        return Bound(id) >> (ir::BitWidth(kernel_.type(id)) - 1) == 0;
    }
    // For a value x + constant that does not wrap.
    bool AsSumWithConst(ir::ValueId id, ir::ValueId* x, uint64_t* constant) const {
        return AsWithConst(id, ir::Op::kIAdd, x, constant) && Bound(*x) <= Ones() &&
               *constant <= Ones() - Bound(*x);
    }
    ir::ValueId Const(uint64_t bits) { return builder_.Const(e_.type, bits); }
    ir::ValueId Const(ir::Type type, uint64_t bits) { return builder_.Const(type, bits); }
    ir::ValueId Build(ir::Op op, std::initializer_list<ir::ValueId> operands) {
        return builder_.Build({op, e_.type, operands});
    }
    // A wider integer of which is known what the expression's flags say.
    ir::ValueId BuildWide(ir::Op op, ir::ValueId x) {
        return builder_.Build({op, e_.type, {x}, 0, e_.flags});
    }
    ir::ValueId BuildNot(ir::ValueId condition) {
        return builder_.Build({ir::Op::kNot, ir::Type::kBool, {condition}});
    }

    ir::ValueId FoldConstants();
    void OrderOperands();
    ir::ValueId FoldAdd();
    ir::ValueId FoldSub();
    ir::ValueId FoldMul();
    ir::ValueId FoldDivision();
    ir::ValueId FoldShift();
    ir::ValueId FoldLogic();
    ir::ValueId FoldNot();
    ir::ValueId FoldEquality();
    ir::ValueId FoldExtreme();
    ir::ValueId FoldOrder();
    ir::ValueId FoldSelect();
    ir::ValueId FoldConversion();
    ir::ValueId FoldBitField();
    ir::ValueId FoldDivisionByPower();
    ir::ValueId FoldPow();
    bool IsSumOfSquares(ir::ValueId id, int depth) const;
    ir::ValueId FoldRootOrder();
    ir::ValueId FoldFloat();

    ExpressionBuilder& builder_;
    const ir::Kernel& kernel_;
    Expression& e_;
};

}  // namespace fornax::kernel
