// The types of values in the kernel IR, and the enumerators that instructions carry.
#pragma once

#include <cstdint>

namespace fornax::kernel::ir {

enum class Type : uint8_t { kVoid, kBool, kI8, kI16, kI32, kI64, kF16, kF32, kF64, kBuffer };

// Bits of a value of the type; a bool has 1, a buffer 0.
uint32_t BitWidth(Type type);
const char* TypeName(Type type);
// Bytes of an element in memory; a bool is stored as i32, a buffer never.
uint32_t ByteSize(Type type);
bool IsInteger(Type type);  // not bool
bool IsFloat(Type type);
Type IntegerType(uint32_t bits);
Type FloatType(uint32_t bits);

enum class BuiltinId : uint8_t {
    kWorkgroupIdX,
    kWorkgroupIdY,
    kWorkgroupIdZ,
    kNumWorkgroupsX,
    kNumWorkgroupsY,
    kNumWorkgroupsZ,
    kLocalIdX,
    kLocalIdY,
    kLocalIdZ,
    kLocalIndex,
    kSubgroupId,
    kSubgroupLane,
    kNumSubgroups,
    kSubgroupSize,
};

enum class AtomicOp : uint8_t {
    kLoad,   // the value operand is ignored
    kStore,  // the result is unspecified
    kExchange,
    kCompareExchange,
    kAdd,
    kSub,
    kUMin,
    kUMax,
    kSMin,
    kSMax,
    kAnd,
    kOr,
    kXor,
    kFAdd,
    kFMin,  // a NaN operand gives either operand
    kFMax,
};

// What reductions and scans over the lanes of a subgroup combine values with (group.h).
enum class GroupOp : uint8_t {
    kIAdd,
    kIMul,
    kUMin,
    kUMax,
    kSMin,
    kSMax,
    kAnd,
    kOr,
    kXor,
    kFAdd,
    kFMul,
    kFMin,
    kFMax,
};

const char* BuiltinName(BuiltinId builtin);
const char* GroupOpName(GroupOp op);
inline constexpr uint32_t kNumGroupOps = 13;
const char* AtomicOpName(AtomicOp op);
inline constexpr uint32_t kNumBuiltins = 14;
inline constexpr uint32_t kNumAtomicOps = 16;

}  // namespace fornax::kernel::ir
