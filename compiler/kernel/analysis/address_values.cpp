#include "compiler/kernel/analysis/address_values.h"

namespace fornax::kernel {

using ir::Op;

namespace {

bool IsAddressArithmetic(Op op) {
    switch (op) {
        case Op::kIAdd:
        case Op::kISub:
        case Op::kIMul:
        case Op::kShl:
        case Op::kLShr:
        case Op::kAShr:
        case Op::kAnd:
        case Op::kOr:
        case Op::kXor:
        case Op::kUDiv:
        case Op::kURem:
        case Op::kZExt:
        case Op::kTrunc:
            return true;
        default:
            return false;
    }
}

bool IsOffset(Op op, size_t operand) {
    return (op == Op::kLoadBuffer || op == Op::kStoreBuffer) && operand == 1;
}

}  // namespace

std::vector<bool> FindAddressValues(const ir::Kernel& kernel) {
    std::vector<bool> address(kernel.num_values(), false);
    std::vector<bool> offset(kernel.num_values(), false);
    std::vector<bool> other(kernel.num_values(), false);
    // Users stand behind what they use, but for what loops carry, which terminators do.
    for (uint32_t i = kernel.num_insts(); i-- > 0;) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        bool for_address = false;
        if (IsAddressArithmetic(inst.op) && inst.results.size() == 1) {
            const uint32_t result = inst.results[0].value();
            for_address = offset[result] && !other[result];
            address[result] = for_address;
        }
        for (size_t k = 0; k < inst.operands.size(); ++k) {
            const bool is_offset = for_address || IsOffset(inst.op, k);
            (is_offset ? offset : other)[inst.operands[k].value()] = true;
        }
    }
    return address;
}

}  // namespace fornax::kernel
