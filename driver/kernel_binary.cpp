// Writing and reading blocks of stages.
#include "driver/kernel_binary.h"

#include <cstring>
#include <type_traits>

#include "base/hash.h"
#include "compiler/kernel/kernel_compiler.h"
#include "driver/device.h"
#include "driver/heap_layout.h"
#include "driver/kernel_request.h"
#include "driver/pipeline_layout.h"

namespace fornax::driver {
namespace {

// Before the parts: SPIR-V, specialisation, entry point, key, native code, and of descriptor heaps
// the mappings and embedded samplers.
struct BinaryHeader {
    static constexpr uint32_t kMagic = 0x42584e46;  // "FNXB"
    uint32_t magic;
    uint32_t version;
    uint32_t stage;
    uint32_t subgroup_size;
    uint32_t wide_indexing;
    uint32_t specialization_count;
    uint32_t entry_point_bytes;
    uint32_t key_bytes;
    uint64_t spirv_words;
    uint64_t native_bytes;
    uint32_t uses_heaps;
    uint32_t reserved;
    uint32_t mapping_count;
    uint32_t sampler_count;
    Hash128 spirv_digest;  // where there are no words of it
    Hash128 digest;        // of the header with a digest of zeros, and the parts
};
static_assert(sizeof(BinaryHeader) == 96);
static_assert(std::has_unique_object_representations_v<kernel::HeapMapping>);

struct StoredSpecialization {
    uint32_t constant_id;
    uint32_t size_bytes;
    uint64_t bits;
};

void Append(std::vector<std::byte>& out, std::span<const std::byte> part) {
    out.insert(out.end(), part.begin(), part.end());
}

Hash128 DigestOf(BinaryHeader header, std::span<const std::byte> parts) {
    header.digest = {};
    return Hasher().AppendBytes(std::as_bytes(std::span(&header, 1))).AppendBytes(parts).Finish();
}

// Takes `count` elements from the front of `data`; false where it has fewer.
template <typename Container>
bool Take(std::span<const std::byte>& data, uint64_t count, Container& out) {
    using Element = typename Container::value_type;
    if (count > data.size() / sizeof(Element)) {
        return false;
    }
    out.resize(count);
    if (count > 0) {
        std::memcpy(out.data(), data.data(), count * sizeof(Element));
    }
    data = data.subspan(count * sizeof(Element));
    return true;
}

Error Unusable() {
    return {ErrorCode::kDataLoss,
            "The binary is damaged, or this version of the driver did not write it."};
}

}  // namespace

kernel::CompileRequest KernelSource::MakeRequest(const Device& device,
                                                 const PipelineLayout& layout,
                                                 bool bounds) const {
    kernel::CompileRequest request{.spirv = spirv,
                                   .spirv_digest = spirv_digest,
                                   .entry_point = entry_point,
                                   .specialization = specialization,
                                   .layout = layout.MakeResourceLayout(),
                                   .options = {.robust_buffer_access = bounds,
                                               .wide_indexing = wide_indexing,
                                               .subgroup_size = subgroup_size},
                                   .disk = DiskUseOf(device)};
    SetDeviceOptions(device, request);
    return request;
}

std::shared_ptr<const kernel::CompiledKernel> KernelBinary::Load(
    kernel::KernelCompiler& compiler,
    const kernel::CompileRequest& request) const {
    // Another machine, driver, layout or robustness makes another key.
    if (native.empty() || compiler.Key(request) != key) {
        return nullptr;
    }
    auto kernel = compiler.Load(key, native);
    return kernel ? compiler.Specialize(request, std::move(*kernel)) : nullptr;
}

std::vector<std::byte> WriteKernelBinary(const KernelSource& source,
                                         const std::string& key,
                                         const kernel::CompiledKernel* kernel) {
    std::span<const uint8_t> native;
    if (kernel && kernel->storable) {
        native = kernel->Serialized();
    }
    BinaryHeader header{
        .magic = BinaryHeader::kMagic,
        .version = kKernelBinaryVersion,
        .stage = static_cast<uint32_t>(source.stage),
        .subgroup_size = source.subgroup_size,
        .wide_indexing = source.wide_indexing,
        .specialization_count = static_cast<uint32_t>(source.specialization.size()),
        .entry_point_bytes = static_cast<uint32_t>(source.entry_point.size()),
        .key_bytes = native.empty() ? 0 : static_cast<uint32_t>(key.size()),
        .spirv_words = source.spirv.size(),
        .native_bytes = native.size(),
        .uses_heaps = source.heap != nullptr,
        .reserved = 0,
        .mapping_count = source.heap ? static_cast<uint32_t>(source.heap->mappings.size()) : 0,
        .sampler_count =
            source.heap ? static_cast<uint32_t>(source.heap->embedded_samplers.size()) : 0,
        .spirv_digest = source.spirv_digest.value_or(Hash128()),
        .digest = {},
    };
    std::vector<std::byte> block(sizeof(header));
    Append(block, std::as_bytes(std::span(source.spirv)));
    for (const auto& value : source.specialization) {
        const StoredSpecialization stored{value.constant_id, value.size_bytes, value.bits};
        Append(block, std::as_bytes(std::span(&stored, 1)));
    }
    Append(block, std::as_bytes(std::span(source.entry_point)));
    Append(block, std::as_bytes(std::span(key)).first(header.key_bytes));
    Append(block, std::as_bytes(native));
    if (source.heap) {
        Append(block, std::as_bytes(std::span(source.heap->mappings)));
        Append(block, std::as_bytes(std::span(source.heap->embedded_samplers)));
    }
    header.digest = DigestOf(header, std::span(block).subspan(sizeof(header)));
    std::memcpy(block.data(), &header, sizeof(header));
    return block;
}

Result<KernelBinary> ReadKernelBinary(std::span<const std::byte> data) {
    BinaryHeader header;
    if (data.size() < sizeof(header)) {
        return Unusable();
    }
    std::memcpy(&header, data.data(), sizeof(header));
    data = data.subspan(sizeof(header));
    if (header.magic != BinaryHeader::kMagic || header.version != kKernelBinaryVersion ||
        DigestOf(header, data) != header.digest) {
        return Unusable();
    }
    KernelBinary binary;
    binary.source.stage = static_cast<VkShaderStageFlagBits>(header.stage);
    binary.source.subgroup_size = header.subgroup_size;
    binary.source.wide_indexing = header.wide_indexing != 0;
    // Never beside SPIR-V: what is compiled is cached under the digest of what was compiled.
    if (header.spirv_words == 0) {
        binary.source.spirv_digest = header.spirv_digest;
    }
    std::vector<StoredSpecialization> specialization;
    auto heap = std::make_shared<kernel::ResourceLayout>(MakeHeapLayout());
    // The digest is no proof against someone who computes it, so sizes are checked all the same.
    if (!Take(data, header.spirv_words, binary.source.spirv) ||
        !Take(data, header.specialization_count, specialization) ||
        !Take(data, header.entry_point_bytes, binary.source.entry_point) ||
        !Take(data, header.key_bytes, binary.key) ||
        !Take(data, header.native_bytes, binary.native) ||
        !Take(data, header.mapping_count, heap->mappings) ||
        !Take(data, header.sampler_count, heap->embedded_samplers) || !data.empty()) {
        return Unusable();
    }
    if (header.uses_heaps) {
        if (!CheckHeapLayout(*heap).ok()) {
            return Unusable();
        }
        binary.source.heap = std::move(heap);
    }
    for (const StoredSpecialization& value : specialization) {
        binary.source.specialization.push_back({value.constant_id, value.size_bytes, value.bits});
    }
    return binary;
}

}  // namespace fornax::driver
