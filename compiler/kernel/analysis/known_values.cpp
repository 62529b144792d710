#include "compiler/kernel/analysis/known_values.h"

#include <array>
#include <span>

#include "compiler/kernel/index/upper_bound.h"
#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

namespace {

constexpr uint32_t kMaxDepth = 64;
constexpr size_t kMaxOperands = 4;
constexpr size_t kMaxResults = 2;

}  // namespace

std::optional<uint64_t> KnownValues::Evaluate(ir::ValueId value, uint32_t depth) {
    uint64_t bits = 0;
    if (kernel_.IsConst(value, &bits)) {
        return bits;
    }
    if (stamps_[value.value()] >> 1 != invocation_count_) {
        Set(value, Compute(value, depth));
    }
    return (stamps_[value.value()] & 1) != 0 ? std::optional(bits_[value.value()]) : std::nullopt;
}

std::optional<uint64_t> KnownValues::Compute(ir::ValueId value, uint32_t depth) {
    const ir::Instruction* inst = kernel_.Definition(value);
    if (inst && inst->op == ir::Op::kBuiltin && index_) {
        return ValueInInvocation(kernel_, static_cast<ir::BuiltinId>(inst->imm), *index_);
    }
    if (!inst || depth == kMaxDepth || !ir::IsExact(kernel_, *inst) ||
        inst->operands.size() > kMaxOperands || inst->results.size() > kMaxResults) {
        return std::nullopt;
    }
    std::array<uint64_t, kMaxOperands> in = {};
    for (size_t i = 0; i < inst->operands.size(); ++i) {
        const auto operand = Evaluate(inst->operands[i], depth + 1);
        if (!operand) {
            return std::nullopt;
        }
        in[i] = *operand;
    }
    std::array<uint64_t, kMaxResults> out = {};
    if (!ir::Evaluate(kernel_, *inst, std::span(in.data(), inst->operands.size()), out)) {
        return std::nullopt;
    }
    return out[kernel_.value(value).position];
}

}  // namespace fornax::kernel
