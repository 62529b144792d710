#include "compiler/kernel/analysis/invocation_values.h"

#include <array>
#include <random>
#include <span>

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
    std::optional<uint64_t> known = Known(value, depth);
    if (!known && assumed_ != 0) {
        std::minstd_rand random(value.index * 8 + assumed_);
        random.discard(2);
        known = (1 + random() % 61) * 4096;
    }
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
        return Builtin(static_cast<ir::BuiltinId>(inst->imm));
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

std::optional<uint64_t> InvocationValues::Builtin(ir::BuiltinId builtin) const {
    const auto& size = kernel_.workgroup_size;
    const uint32_t subgroup = kernel_.subgroup_size;
    switch (builtin) {
        case ir::BuiltinId::kLocalIdX:
            return index_ % size[0];
        case ir::BuiltinId::kLocalIdY:
            return index_ / size[0] % size[1];
        case ir::BuiltinId::kLocalIdZ:
            return index_ / size[0] / size[1];
        case ir::BuiltinId::kLocalIndex:
            return index_;
        case ir::BuiltinId::kSubgroupId:
            return index_ / subgroup;
        case ir::BuiltinId::kSubgroupLane:
            return index_ % subgroup;
        case ir::BuiltinId::kNumSubgroups:
            return (size[0] * size[1] * size[2] + subgroup - 1) / subgroup;
        case ir::BuiltinId::kSubgroupSize:
            return subgroup;
        default:
            return std::nullopt;
    }
}

}  // namespace fornax::kernel
