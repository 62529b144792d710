// The machine that kernels are compiled for, as the code generator knows it.
#pragma once

#include <cstdint>
#include <string>

namespace fornax::kernel {

// Facts about the machine that kernels are compiled for; FORNAX_CPU=<LLVM CPU name> replaces the
// host's.
struct TargetInfo {
    std::string cpu_name;
    std::string features;
    uint32_t vector_bits = 0;
};

}  // namespace fornax::kernel
