// A look at a module's variables without the reader, which is in the library that is opened late.
#include "compiler/kernel/interface/heap_mappings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

namespace fornax::kernel {
namespace {

struct Variable {
    uint32_t set = 0;
    uint32_t binding = 0;
    uint32_t resources = 0;  // bits of HeapMapping::resources that take it
    bool array = false;

    auto operator<=>(const Variable&) const = default;
};

// What an id's decorations say.
struct Decorations {
    std::optional<uint32_t> set;
    std::optional<uint32_t> binding;
    bool read_only = false;
    bool buffer_block = false;
    uint32_t read_only_members = 0;
};

class VariableFinder {
  public:
    // False for what this does not know to read, such as groups of decorations.
    bool Read(std::span<const uint32_t> spirv) {
        constexpr size_t kHeaderWords = 5;
        for (size_t at = kHeaderWords; at < spirv.size();) {
            const size_t count = spirv[at] >> 16;
            const auto op = static_cast<spv::Op>(spirv[at] & 0xffff);
            if (count == 0 || count > spirv.size() - at || op == spv::Op::OpDecorationGroup) {
                return false;
            }
            if (op == spv::Op::OpFunction) {
                break;
            }
            Add(op, spirv.subspan(at + 1, count - 1));
            at += count;
        }
        return true;
    }

    std::vector<Variable> Variables() const {
        std::vector<Variable> found;
        for (const auto& [id, words] : variables_) {
            const auto decorations = decorations_.find(id);
            if (decorations == decorations_.end() || !decorations->second.set ||
                !decorations->second.binding) {
                continue;
            }
            Variable variable{.set = *decorations->second.set,
                              .binding = *decorations->second.binding};
            uint32_t type = words.type;
            const Words* declaration = Type(type);
            while (declaration && (declaration->op == spv::Op::OpTypeArray ||
                                   declaration->op == spv::Op::OpTypeRuntimeArray)) {
                variable.array = true;
                type = declaration->Operand(1);
                declaration = Type(type);
            }
            if (!declaration) {
                continue;
            }
            variable.resources = Resources(words.storage, type, *declaration, decorations->second);
            if (variable.resources != 0) {
                found.push_back(variable);
            }
        }
        std::ranges::sort(found);
        const auto repeated = std::ranges::unique(found);
        found.erase(repeated.begin(), repeated.end());
        return found;
    }

  private:
    struct Words {
        spv::Op op;
        std::span<const uint32_t> operands;  // with the result id
        uint32_t Operand(size_t i) const { return i < operands.size() ? operands[i] : 0; }
    };
    struct Declared {
        spv::StorageClass storage;
        uint32_t type;
    };

    const Words* Type(uint32_t id) const {
        const auto found = types_.find(id);
        return found == types_.end() ? nullptr : &found->second;
    }

    void Add(spv::Op op, std::span<const uint32_t> operands) {
        const Words words{op, operands};
        switch (op) {
            case spv::Op::OpDecorate:
                Decorate(decorations_[words.Operand(0)], words);
                return;
            case spv::Op::OpMemberDecorate:
                if (static_cast<spv::Decoration>(words.Operand(2)) ==
                    spv::Decoration::NonWritable) {
                    ++decorations_[words.Operand(0)].read_only_members;
                }
                return;
            case spv::Op::OpVariable: {
                const Words* pointer = Type(words.Operand(0));
                if (pointer && pointer->op == spv::Op::OpTypePointer) {
                    variables_[words.Operand(1)] = {
                        static_cast<spv::StorageClass>(words.Operand(2)), pointer->Operand(2)};
                }
                return;
            }
            case spv::Op::OpUntypedVariableKHR:
                variables_[words.Operand(1)] = {static_cast<spv::StorageClass>(words.Operand(2)),
                                                words.Operand(3)};
                return;
            case spv::Op::OpTypePointer:
            case spv::Op::OpTypeArray:
            case spv::Op::OpTypeRuntimeArray:
            case spv::Op::OpTypeStruct:
            case spv::Op::OpTypeImage:
            case spv::Op::OpTypeSampler:
            case spv::Op::OpTypeSampledImage:
                types_[words.Operand(0)] = words;
                return;
            default:
                return;
        }
    }

    static void Decorate(Decorations& decorations, const Words& words) {
        switch (static_cast<spv::Decoration>(words.Operand(1))) {
            case spv::Decoration::DescriptorSet:
                decorations.set = words.Operand(2);
                return;
            case spv::Decoration::Binding:
                decorations.binding = words.Operand(2);
                return;
            case spv::Decoration::NonWritable:
                decorations.read_only = true;
                return;
            case spv::Decoration::BufferBlock:
                decorations.buffer_block = true;
                return;
            default:
                return;
        }
    }

    // As the reader's Translator::MapBuffer and MapImage have it.
    uint32_t Resources(spv::StorageClass storage,
                       uint32_t type,
                       const Words& declaration,
                       const Decorations& variable) const {
        switch (declaration.op) {
            case spv::Op::OpTypeSampler:
                return HeapMapping::kSampler;
            case spv::Op::OpTypeSampledImage:
                return HeapMapping::kCombinedImage;
            case spv::Op::OpTypeImage: {
                constexpr size_t kSampled = 6;
                if (declaration.Operand(kSampled) != 2) {
                    return HeapMapping::kSampledImage;
                }
                return variable.read_only ? HeapMapping::kReadOnlyImage
                                          : HeapMapping::kReadWriteImage;
            }
            case spv::Op::OpTypeStruct: {
                const auto found = decorations_.find(type);
                const Decorations block =
                    found == decorations_.end() ? Decorations() : found->second;
                if (storage == spv::StorageClass::Uniform && !block.buffer_block) {
                    return HeapMapping::kUniformBuffer;
                }
                if (variable.read_only) {
                    return HeapMapping::kReadOnlyBuffer;
                }
                const size_t members = declaration.operands.size() - 1;
                return members > 0 && block.read_only_members == members
                           ? HeapMapping::kReadOnlyBuffer | HeapMapping::kReadWriteBuffer
                           : HeapMapping::kReadWriteBuffer;
            }
            default:
                return 0;
        }
    }

    std::unordered_map<uint32_t, Decorations> decorations_;
    std::unordered_map<uint32_t, Words> types_;
    std::map<uint32_t, Declared> variables_;
};

// The mapping of `variable` alone, which `mapping` has.
HeapMapping Narrowed(HeapMapping mapping, const Variable& variable) {
    using Source = HeapMapping::Source;
    const uint32_t shift = variable.binding - mapping.first_binding;
    for (HeapMapping::Place* place : {&mapping.place, &mapping.sampler}) {
        if (mapping.source == Source::kIndirectIndexArray) {
            place->address_offset += shift * static_cast<uint32_t>(sizeof(uint32_t));
        } else {
            place->heap_offset += shift * place->array_stride;
        }
        if (!variable.array) {
            place->array_stride = 0;
        }
    }
    mapping.first_binding = variable.binding;
    mapping.binding_count = 1;
    mapping.resources = variable.resources;
    const bool combined = variable.resources == HeapMapping::kCombinedImage;
    if (!combined && variable.resources != HeapMapping::kSampler) {
        mapping.embedded_sampler = HeapMapping::kNoSampler;
    }
    if (!combined) {
        mapping.packed_index = 0;
    }
    if (!combined || mapping.embedded_sampler != HeapMapping::kNoSampler) {
        mapping.sampler = {};
    }
    if (mapping.packed_index != 0) {
        mapping.sampler.push_offset = mapping.sampler.address_offset = 0;
    }
    if (!combined && mapping.embedded_sampler != HeapMapping::kNoSampler) {
        mapping.source = Source::kConstantOffset;
        mapping.place = {};
    }
    return mapping;
}

}  // namespace

void KeepUsedMappings(std::span<const uint32_t> spirv, ResourceLayout& layout) {
    VariableFinder finder;
    if (!finder.Read(spirv)) {
        return;
    }
    std::vector<HeapMapping> kept;
    std::vector<hal::SamplerDescriptor> samplers;
    for (const Variable& variable : finder.Variables()) {
        const auto mapping = std::ranges::find_if(layout.mappings, [&](const HeapMapping& of) {
            return of.set == variable.set && (of.resources & variable.resources) != 0 &&
                   variable.binding >= of.first_binding &&
                   variable.binding - of.first_binding < of.binding_count;
        });
        if (mapping == layout.mappings.end()) {
            continue;
        }
        HeapMapping narrowed = Narrowed(*mapping, variable);
        if (narrowed.embedded_sampler != HeapMapping::kNoSampler) {
            samplers.push_back(layout.embedded_samplers[narrowed.embedded_sampler]);
            narrowed.embedded_sampler = static_cast<uint32_t>(samplers.size() - 1);
        }
        kept.push_back(narrowed);
    }
    layout.mappings = std::move(kept);
    layout.embedded_samplers = std::move(samplers);
}

}  // namespace fornax::kernel
