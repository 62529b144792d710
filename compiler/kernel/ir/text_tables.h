// What the printer and the parser of the kernel IR agree on.
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

struct FlagName {
    uint8_t bit;
    const char* text;
};
inline constexpr FlagName kFlagNames[] = {
    {kNoContraction, "no_contraction"}, {kVolatile, "volatile"},
    {kNonUniform, "nonuniform"},        {kUnrollHint, "unroll"},
    {kDontUnrollHint, "dont_unroll"},   {kDontFlattenHint, "dont_flatten"},
    {kNoLaneWrap, "no_lane_wrap"},      {kVote, "vote"},
};

// What Instruction::imm or target says, and so how it is written.
enum class ImmKind : uint8_t {
    kNone,
    kBits,
    kBuiltin,
    kAtomicOp,
    kGroupOp,    // and the size of clusters, if they are not all lanes
    kIndex,      // of a binding, local or counter, or flags
    kAlignment,  // after the operands
    kTarget,     // the construct that is left or continued
};

inline ImmKind ImmKindOf(Op op) {
    switch (op) {
        case Op::kConst:
            return ImmKind::kBits;
        case Op::kBuiltin:
            return ImmKind::kBuiltin;
        case Op::kAtomicBuffer:
        case Op::kAtomicGlobal:
        case Op::kAtomicShared:
            return ImmKind::kAtomicOp;
        case Op::kSubgroupReduce:
        case Op::kSubgroupInclusiveScan:
        case Op::kSubgroupExclusiveScan:
        case Op::kPartitionedReduce:
        case Op::kPartitionedInclusiveScan:
        case Op::kPartitionedExclusiveScan:
            return ImmKind::kGroupOp;
        case Op::kBuffer:
        case Op::kLoadDescriptor:
        case Op::kLoadLocal:
        case Op::kStoreLocal:
        case Op::kMatrixMulAdd:
        case Op::kCount:
            return ImmKind::kIndex;
        case Op::kMatrixLoad:
        case Op::kLoadBuffer:
        case Op::kStoreBuffer:
        case Op::kLoadGlobal:
        case Op::kStoreGlobal:
        case Op::kLoadShared:
        case Op::kStoreShared:
        case Op::kLoadPush:
        case Op::kLoadConstant:
            return ImmKind::kAlignment;
        case Op::kExit:
        case Op::kContinue:
            return ImmKind::kTarget;
        default:
            return ImmKind::kNone;
    }
}

}  // namespace fornax::kernel::ir
