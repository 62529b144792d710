// The operations of reductions and scans over the lanes of a subgroup, and how they are encoded in
// Instruction::imm.
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// `cluster` 0: all lanes.
inline uint64_t GroupImm(GroupOp op, uint32_t cluster = 0) {
    return static_cast<uint64_t>(op) | uint64_t{cluster} << 8;
}
inline GroupOp GroupOpOf(const Instruction& inst) {
    return static_cast<GroupOp>(inst.imm & 0xff);
}
inline uint32_t ClusterSizeOf(const Instruction& inst) {
    return static_cast<uint32_t>(inst.imm >> 8);
}

// The pure operation on two values.
Op CombineOp(GroupOp op);
// The bits of the value that changes nothing: what lanes that are not there count as.
uint64_t GroupIdentity(GroupOp op, Type type);

}  // namespace fornax::kernel::ir
