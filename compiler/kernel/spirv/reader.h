// The SPIR-V reader: a module's entry point in, kernel IR out.
//
// Freezes specialisation constants first, then translates the entry point with every call inlined,
// every composite taken apart into scalars and every pointer resolved to a resource and a byte
// offset. Input is untrusted: anything malformed gives kInvalidArgument, anything not covered
// kUnsupported, both with a sentence that names the instruction and its word offset; time and
// memory are bounded by kReaderLimits.
#pragma once

#include "base/result.h"
#include "compiler/kernel/interface/compile_request.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct ReaderLimits {
    uint32_t module_words = 64u << 20;
    uint32_t ids = 4u << 20;
    uint32_t instructions = 2'000'000;  // of kernel IR, after inlining
    // SPIR-V instructions of blocks that are translated again, because several blocks lead to them
    // that they do not merge.
    uint32_t repeated_instructions = 200'000;
    uint32_t nesting = 256;  // of control flow, types and calls
    uint32_t workgroup_invocations = 1024;
    uint32_t shared_bytes = 64 * 1024;
    uint32_t composite_scalars = 65'536;  // in one value or private variable
    uint32_t vector_components = 1024;
};
inline constexpr ReaderLimits kReaderLimits;

Result<ir::Kernel> ReadSpirv(const CompileRequest& request);

// The numbers of the SPIR-V capabilities that a module may declare.
std::vector<uint32_t> AcceptedCapabilities();

}  // namespace fornax::kernel
