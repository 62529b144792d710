// What the kernel compiler is asked for: a SPIR-V compute entry point, its specialisation and the
// layout that it is compiled for. The SPIR-V reader takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "compiler/kernel/interface/resource_layout.h"

namespace fornax::kernel {

// One VkSpecializationMapEntry resolved to its bits. size_bytes is the application's (1, 2, 4 or
// 8).
struct SpecializationValue {
    uint32_t constant_id = 0;
    uint32_t size_bytes = 4;
    uint64_t bits = 0;
};

struct CompileOptions {
    // Storage and uniform buffer accesses outside the bound range read zero and discard writes.
    bool robust_buffer_access = false;
    // Offsets in buffers have 64 bits of range, as with the execution mode Shader64BitIndexingEXT.
    bool wide_indexing = false;
    // The SubgroupSize that the shader sees, a power of two.
    uint32_t subgroup_size = 32;
    // Where kernels leave what they print, and the words behind the header there
    // (compiler/kernel/interface/debug_printf.h). 0: they print nothing.
    uint64_t printf_address = 0;
    uint32_t printf_words = 0;
    // The kernel counts how often its regions run, and says what they do (kernel_cost.h).
    bool timed = false;
};

// What a request may do with the disk cache.
enum class DiskUse : uint8_t { kReadAndWrite, kRead, kNone };

struct CompileRequest {
    std::span<const uint32_t> spirv;  // in host byte order; untrusted
    // Where there is no SPIR-V: SpirvDigest of it, which is enough to look a kernel up.
    std::optional<Hash128> spirv_digest = std::nullopt;
    std::string entry_point = "main";
    std::vector<SpecializationValue> specialization;
    ResourceLayout layout;
    CompileOptions options;
    // What the kernel will find in its descriptors, of CompiledKernel::deciding_words. It may only
    // run where that is so.
    std::vector<DescriptorWord> known_words = {};
    DiskUse disk = DiskUse::kReadAndWrite;  // no part of the key
};

// What a module is known by. Two modules of one digest are taken for the same.
inline Hash128 SpirvDigest(std::span<const uint32_t> spirv) {
    return HashBytes(std::as_bytes(spirv));
}

}  // namespace fornax::kernel
