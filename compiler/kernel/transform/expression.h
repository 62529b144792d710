// A pure one-result operation that may not be in the kernel yet, and who can put it there: the
// seam between the algebra (algebra.cpp) and the pass that walks the tree (simplify.cpp).
#pragma once

#include <array>
#include <initializer_list>

#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/transform/bounds.h"

namespace fornax::kernel {

struct Expression {
    Expression(ir::Op op,
               ir::Type type,
               std::initializer_list<ir::ValueId> values,
               uint64_t imm = 0,
               uint8_t flags = 0)
        : op(op), type(type), imm(imm), flags(flags) {
        for (ir::ValueId value : values) {
            operands[count++] = value;
        }
    }
    explicit Expression(const ir::Kernel& kernel, const ir::Instruction& inst)
        : op(inst.op), type(kernel.type(inst.results[0])), imm(inst.imm), flags(inst.flags) {
        for (ir::ValueId value : inst.operands) {
            operands[count++] = value;
        }
    }
    std::span<const ir::ValueId> Operands() const { return {operands.data(), count}; }

    ir::Op op;
    ir::Type type;
    std::array<ir::ValueId, 4> operands;
    uint8_t count = 0;
    uint64_t imm = 0;
    uint8_t flags = 0;
};

// a op b is b op a, whatever they are.
inline bool IsCommutative(ir::Op op) {
    switch (op) {
        case ir::Op::kIAdd:
        case ir::Op::kIMul:
        case ir::Op::kAnd:
        case ir::Op::kOr:
        case ir::Op::kXor:
        case ir::Op::kUMin:
        case ir::Op::kUMax:
        case ir::Op::kSMin:
        case ir::Op::kSMax:
        case ir::Op::kIEq:
        case ir::Op::kINe:
        case ir::Op::kFOEq:
        case ir::Op::kFONe:
        case ir::Op::kFUEq:
        case ir::Op::kFUNe:
        case ir::Op::kFAdd:
        case ir::Op::kFMul:
        case ir::Op::kFMin:
        case ir::Op::kFMax:
        case ir::Op::kNMin:
        case ir::Op::kNMax:
            return true;
        default:
            return false;
    }
}

// Where an expression's value comes from at the place that is being rewritten.
class ExpressionBuilder {
  public:
    virtual ~ExpressionBuilder() = default;
    virtual const ir::Kernel& kernel() const = 0;
    virtual ir::ValueId Const(ir::Type type, uint64_t bits) = 0;
    // What the conditions around that place say.
    virtual const KnownBounds& known_bounds() const = 0;
    // Simplifies the expression, finds an equal one that is visible, or adds an instruction.
    virtual ir::ValueId Build(Expression expression) = 0;
};

// Gives the value that the expression equals, if that is another; else an invalid id, with the
// expression perhaps brought into its canonical form:
//   - constants are the right operand; x - c is x + -c; x << c is x * 2^c
//   - constants of sums move outward: (x + c) + y is (x + y) + c, (x + c) * d is x * d + c * d
//   - unsigned division and remainder by 2^k are a shift and a mask
ir::ValueId FoldExpression(ExpressionBuilder& builder, Expression& expression);

}  // namespace fornax::kernel
