#include "compiler/kernel/analysis/invocation_values.h"

#include <array>
#include <span>

#include "compiler/kernel/index/upper_bound.h"
#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr uint32_t kMaxDepth = 64;
constexpr size_t kMaxOperands = 3;

}  // namespace

std::optional<uint64_t> InvocationValues::Evaluate(ir::ValueId value, uint32_t depth) {
    uint64_t bits = 0;
    if (kernel_.IsConst(value, &bits)) {
        return bits;
    }
    if (known_[value.index] == turn_) {
        return values_[value.index];
    }
    const std::optional<uint64_t> known = Known(value, depth);
    if (!known) {
        return std::nullopt;
    }
    known_[value.index] = turn_;
    values_[value.index] = *known;
    return known;
}

std::optional<uint64_t> InvocationValues::Known(ir::ValueId value, uint32_t depth) {
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst || depth == kMaxDepth || inst->results.size() != 1 ||
        !ir::HasProperty(inst->op, ir::kPure) || inst->operands.size() > kMaxOperands) {
        return std::nullopt;
    }
    if (inst->op == Op::kBuiltin) {
        return ValueInInvocation(kernel_, static_cast<ir::BuiltinId>(inst->imm), index_);
    }
    std::array<uint64_t, kMaxOperands> operands{};
    for (size_t i = 0; i < inst->operands.size(); ++i) {
        const auto operand = Evaluate(inst->operands[i], depth + 1);
        if (!operand) {
            return std::nullopt;
        }
        operands[i] = *operand;
    }
    uint64_t bits = 0;
    if (!ir::Evaluate(kernel_, *inst, std::span(operands.data(), inst->operands.size()),
                      std::span(&bits, 1))) {
        return std::nullopt;
    }
    return bits;
}

}  // namespace fornax::kernel
