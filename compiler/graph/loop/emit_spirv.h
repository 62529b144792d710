// SPIR-V of a loop kernel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

// What code may use: the device's features, and the sizes that choose how it is written.
struct Target {
    uint32_t subgroup_size = 32;
    uint32_t max_workgroup_count = 65535;   // along each axis
    uint32_t max_workgroup_memory = 32768;  // bytes
    bool int64 = true;
    bool float64 = true;
    bool storage_8bit = true;
    bool storage_16bit = true;
    bool subgroup_arithmetic = true;  // and votes
    // Cooperative matrices of 16 x 16 x 16 f32 in subgroups of subgroup_size.
    bool matrices_f32 = false;
    bool integer_dot = false;   // shaderIntegerDotProduct
    bool bfloat16_dot = false;  // shaderMixedFloatDotProductBFloat16Acc
    // 8 x 32 sums of f32 and their operands are kept in registers: there are 32 of 512 bits.
    bool wide_registers = false;
    // shaderSignedZeroInfNanPreserveFloat32: without it NaN and infinities are at the device's
    // mercy.
    bool signed_zero_inf_nan_preserve = false;
};

// A module with the entry point "main": the kernel's buffers are bindings 0, 1, ... of set 0, the
// values of SizeSymbols() the push constants. The same kernel and target always give the same
// words.
struct Module {
    std::vector<uint32_t> words;
    // The workgroups to dispatch, over the kernel's size symbols; 0 where nothing is to be done.
    std::array<Expr, 3> workgroups;
    // Expressions of the size symbols that must be at most 2^31 - 1: elements of buffers and
    // indices. With greater ones the code may not be run.
    std::vector<Expr> limits;
    uint32_t local_size = 1;  // invocations in a workgroup
};

// kUnsupported, with a sentence, for what the target does not have, or what no code is written for;
// the caller then computes it on the host.
Result<Module> EmitSpirv(const Kernel& kernel, const Target& target);

}  // namespace fornax::graph::loop
