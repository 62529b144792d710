// Packed panels: operands A and B as the executors (matrix_executors.h) take them.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>

namespace fornax::kernel {

// What is made of 16 rows of 16 elements, one after the other, aligned to 64 bytes.
enum class OperandForm : uint8_t {
    // f16 and bfloat16 become f32.
    kFloatsOfHalves,
    kFloatsOfBFloats,
    // Bytes become i16: A as it is, B with the elements of two rows alternating.
    kShortsOfSigned,
    kShortsOfUnsigned,
    // bfloat16 stays: A as it is, B with the elements of two rows alternating.
    kPairsOfBFloats,
    // Bytes stay: A as it is, B with the elements of four rows alternating.
    kQuadsOfBytes,
    // f16 becomes the sum of two bfloat16, hi and lo, without any rounding. A: (lo, hi); B: (hi',
    // hi), then (lo, lo), whose products are all four there are. hi' is 0 for infinities and NaN,
    // whose lo is 0, so that a * inf is a.hi * inf alone. If there are any in A, a second panel of
    // it, (lo, hi'), is for the second one of B.
    kSplitHalves,
    // f32 stays as it is, in rows.
    kFloats,
};

// kSplitHalves: the second panel of B lies behind the first. How far behind the first panel of A
// the second lies (0 if they are the same) is an i64 at kSplitSecond.
inline constexpr uint64_t kSplitBytes = 1024;
inline constexpr uint64_t kSplitSecond = 2 * kSplitBytes;

// What a panel takes. It is no power of two, because loads wait for stores whose addresses have
// the same lowest twelve bits.
constexpr uint64_t OperandBytes(OperandForm form) {
    return form == OperandForm::kSplitHalves ? 2112 : 1088;
}

inline constexpr uint64_t kMaxOperandBytes = OperandBytes(OperandForm::kSplitHalves);

// void(ptr packed, ptr from, i64 stride): writes an operand in a form. Its rows, or its columns (of
// elements of 16 bits only), of 16 elements each begin `stride` bytes after one another.
llvm::Function* MatrixPackFunction(llvm::Module& module, OperandForm form, bool is_b, bool columns);

}  // namespace fornax::kernel
