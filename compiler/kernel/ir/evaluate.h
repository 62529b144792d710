// The value of a pure operation on known bits: what constant folding and the interpreter compute.
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// An integer of so many bits, 1 to 64, as a number with a sign.
constexpr int64_t SignExtend(uint64_t bits, uint32_t width) {
    return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

// Computes the results of `inst`, whose operands have the given bits (zero extended). False if the
// operation is not a function of its operands alone (constants, inputs, memory, control flow).
// Where ops.def says "any value" it picks one: x / 0 is all ones and x % 0 is x, shifts take their
// amount modulo the width, float-to-integer conversions saturate. NaN results are the canonical
// one.
bool Evaluate(const Kernel& kernel,
              const Instruction& inst,
              std::span<const uint64_t> operands,
              std::span<uint64_t> results);

// True if every correct implementation computes the bits that Evaluate does (NaN payloads and "any
// value" aside), so that the operation may be folded: integers, and floats as far as IEEE 754
// rounds them correctly.
bool IsExact(const Kernel& kernel, const Instruction& inst);

}  // namespace fornax::kernel::ir
