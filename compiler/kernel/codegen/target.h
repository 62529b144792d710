// The machine that kernels are compiled for: which CPU and which vector registers. Everything that
// reads the host's CPU is here.
#pragma once

#include <string>

#include "base/result.h"
#include "compiler/kernel/interface/code_tier.h"
#include "compiler/kernel/interface/target_info.h"

namespace fornax::kernel {

// The host's CPU, or the LLVM CPU name `cpu_override` (FORNAX_CPU; "" for none) if the host has
// every feature of it. An unknown name, a CPU the host is not, and a host below x86-64-v2 are
// kUnsupported. Where there are tile registers, requests the process's permission to use them; if
// it is refused, the target has none.
Result<TargetInfo> DetectTarget(const std::string& cpu_override);

// Whether there are tile registers (AMX) for bfloat16 and for bytes, and the process may
// use them.
bool HasTiles(const TargetInfo& target);

// Whether products of two pairs of bfloat16 are one instruction for a vector (VDPBF16PS).
bool HasBFloatDot(const TargetInfo& target);

inline JoinedMmas JoinedMmasFor(const TargetInfo& target) {
    if (HasTiles(target)) {
        return JoinedMmas::kAll;
    }
    return HasBFloatDot(target) ? JoinedMmas::kBFloat16 : JoinedMmas::kNone;
}

// With AVX-512 all vectors have twice the registers.
inline uint32_t VectorRegisters(const TargetInfo& target) {
    return target.vector_bits >= 512 ? 32 : 16;
}

}  // namespace fornax::kernel
