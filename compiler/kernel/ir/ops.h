// The operations of the kernel IR (ops.def), their properties and flags.
#pragma once

#include <cstdint>

namespace fornax::kernel::ir {

enum Properties : uint8_t {
    kNoProperties = 0,
    kPure = 1,
    kReadsMemory = 2,
    kWritesMemory = 4,
    kConvergent = 8,
    kRegions = 16,
    kTerminator = 32,
    kSubgroup = 64,
};

inline constexpr uint8_t kVariadic = 255;

// Constructs inside one another; Verify refuses more, so passes may recurse over the tree.
inline constexpr uint32_t kMaxNesting = 1024;
// Lanes of a subgroup: a set of them is an i64.
inline constexpr uint32_t kMaxSubgroupSize = 64;
// Counters of a kernel.
inline constexpr uint32_t kMaxCounters = 1 << 16;
// Bytes of all private arrays of one invocation.
inline constexpr uint64_t kMaxLocalBytes = uint64_t{1} << 24;

enum class Op : uint8_t {
#define FORNAX_OP(name, text, operands, results, properties) k##name,
#include "compiler/kernel/ir/ops.def"
#undef FORNAX_OP
};

struct OpInfo {
    const char* text;
    uint8_t operands;
    uint8_t results;
    uint8_t properties;
};
const OpInfo& InfoOf(Op op);
inline bool HasProperty(Op op, uint8_t property) {
    return (InfoOf(op).properties & property) != 0;
}

// Instruction::flags.
enum InstructionFlags : uint8_t {
    kNoContraction = 1,  // float arithmetic must not be fused or reassociated (SPIR-V decoration)
    kVolatile = 2,       // memory: Volatile, or Coherent without the Vulkan memory model
    kNonUniform = 4,     // Buffer: the array index may differ between lanes (a hint)
    kUnrollHint = 8,     // Loop: SPIR-V loop control Unroll
    kDontUnrollHint = 16,
    kDontFlattenHint = 32,  // If, Switch: keep the branch
    // SExt, ZExt of an index into memory: where lanes differ by known distances, the narrow values
    // of the active ones do not wrap against one another, nor does a sum of 32 bits with a small
    // constant wrap above. They are elements of one object.
    kNoLaneWrap = 64,
    // Barriers, shared memory, Ifs: by them the workgroup finds out whether its invocations part
    // (transform/barrier_branches.cpp). Nothing follows from such a barrier for the program.
    kVote = 128,
};

}  // namespace fornax::kernel::ir
