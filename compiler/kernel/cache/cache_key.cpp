#include "compiler/kernel/cache/cache_key.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace fornax::kernel {

namespace {

// The address that tells which loaded object is ours.
const void* OwnAddress() {
    return reinterpret_cast<const void*>(&OwnAddress);
}

// The GNU build id among the notes, in hexadecimal.
std::string FindBuildId(const char* notes, size_t size) {
    size_t at = 0;
    while (size - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes + at, sizeof(note));
        at += sizeof(note);
        size_t name_bytes = (size_t{note.n_namesz} + 3) & ~size_t{3};
        size_t text_bytes = (size_t{note.n_descsz} + 3) & ~size_t{3};
        if (name_bytes > size - at || text_bytes > size - at - name_bytes) {
            break;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(notes + at, "GNU", 4) == 0) {
            std::string id;
            for (size_t i = 0; i < note.n_descsz; ++i) {
                id += fmt::format("{:02x}", static_cast<uint8_t>(notes[at + name_bytes + i]));
            }
            return id;
        }
        at += name_bytes + text_bytes;
    }
    return {};
}

std::string FileIdentity(const char* path) {
    struct stat info;
    if (stat(*path ? path : "/proc/self/exe", &info) != 0) {
        return {};
    }
    return fmt::format("{} {} {}.{}", path, info.st_size, info.st_mtim.tv_sec,
                       info.st_mtim.tv_nsec);
}

int VisitObject(dl_phdr_info* info, size_t, void* result) {
    auto own = reinterpret_cast<ElfW(Addr)>(OwnAddress());
    bool is_own = false;
    std::string id;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        ElfW(Addr) start = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_LOAD && own >= start && own - start < header.p_memsz) {
            is_own = true;
        }
        if (header.p_type == PT_NOTE && id.empty()) {
            id = FindBuildId(reinterpret_cast<const char*>(start), header.p_memsz);
        }
    }
    if (!is_own) {
        return 0;
    }
    *static_cast<std::string*>(result) = id.empty() ? FileIdentity(info->dlpi_name) : id;
    return 1;
}

}  // namespace

const std::string& BuildIdentity() {
    // Never destroyed: other threads may be compiling when the process ends.
    static const auto* const identity = [] {
        auto* text = new std::string;
        dl_iterate_phdr(VisitObject, text);
        return text;
    }();
    return *identity;
}

std::string FileBuildIdentity(const std::string& path) {
    // Linkers put the notes into the first page.
    std::array<char, 4096> page = {};
    std::ifstream file(path, std::ios::binary);
    file.read(page.data(), page.size());
    const auto size = static_cast<size_t>(file.gcount());
    ElfW(Ehdr) header;
    if (size < sizeof(header)) {
        return {};
    }
    std::memcpy(&header, page.data(), sizeof(header));
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
        ElfW(Phdr) segment;
        const uint64_t at = header.e_phoff + i * sizeof(segment);
        if (at > size - sizeof(segment)) {
            break;
        }
        std::memcpy(&segment, page.data() + at, sizeof(segment));
        if (segment.p_type != PT_NOTE || segment.p_offset > size ||
            segment.p_filesz > size - segment.p_offset) {
            continue;
        }
        const std::string id = FindBuildId(page.data() + segment.p_offset, segment.p_filesz);
        if (!id.empty()) {
            return id;
        }
    }
    return FileIdentity(path.c_str());
}

Hash128 HashRequest(const CompileRequest& request,
                    const TargetInfo& target,
                    std::string_view build) {
    Hasher hasher;
    hasher.Append("fornax kernel").Append(hal::kKernelAbiVersion).Append(build);
    hasher.Append(target.cpu_name).Append(target.features).Append(target.vector_bits);
    const Hash128 spirv = request.spirv_digest.value_or(SpirvDigest(request.spirv));
    hasher.Append(spirv.high).Append(spirv.low).Append(request.entry_point);
    hasher.AppendListSize(request.specialization.size());
    for (const SpecializationValue& value : request.specialization) {
        hasher.Append(value.constant_id).Append(value.size_bytes).Append(value.bits);
    }
    hasher.AppendListSize(request.layout.sets.size());
    for (const SetLayout& set : request.layout.sets) {
        hasher.AppendListSize(set.bindings.size());
        for (const BindingLayout& binding : set.bindings) {
            hasher.Append(binding.binding)
                .Append(binding.kind)
                .Append(binding.count)
                .Append(binding.offset_bytes)
                .Append(binding.first_dynamic_offset)
                .Append(binding.variable_count)
                .Append(binding.stride_bytes)
                .Append(binding.inline_bytes);
        }
    }
    hasher.Append(request.layout.push_constant_bytes).Append(request.layout.heaps);
    hasher.AppendListSize(request.layout.mappings.size());
    for (const HeapMapping& mapping : request.layout.mappings) {
        hasher.Append(mapping.set).Append(mapping.first_binding).Append(mapping.binding_count);
        hasher.Append(mapping.resources).Append(mapping.source).Append(mapping.packed_index);
        hasher.Append(mapping.embedded_sampler);
        for (const HeapMapping::Place& place : {mapping.place, mapping.sampler}) {
            hasher.Append(place.heap_offset)
                .Append(place.push_offset)
                .Append(place.address_offset)
                .Append(place.index_stride)
                .Append(place.array_stride);
        }
    }
    // Kernels find them beside the dispatch, but binaries of pipelines carry them.
    hasher.AppendListSize(request.layout.embedded_samplers.size());
    for (const hal::SamplerDescriptor& sampler : request.layout.embedded_samplers) {
        hasher.AppendBytes(std::as_bytes(std::span(&sampler, 1)));
    }
    hasher.Append(request.options.robust_buffer_access).Append(request.options.wide_indexing);
    hasher.Append(request.options.subgroup_size);
    hasher.Append(request.options.printf_address).Append(request.options.printf_words);
    hasher.Append(request.options.timed);
    hasher.AppendListSize(request.known_words.size());
    for (const DescriptorWord& word : request.known_words) {
        hasher.Append(word.place.set).Append(word.place.offset_bytes).Append(word.value);
    }
    return hasher.Finish();
}

}  // namespace fornax::kernel
