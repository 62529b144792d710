#include "compiler/kernel/spirv/source_map.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// NonSemantic.Shader.DebugInfo, of any version.
constexpr uint32_t kDebugSource = 35;
constexpr uint32_t kDebugLine = 103;
constexpr uint32_t kDebugNoLine = 104;

const Inst* AtOrBefore(const Module& module, uint32_t word) {
    auto insts = module.insts();
    auto after = std::ranges::upper_bound(insts, word, {}, &Inst::offset);
    return after == insts.begin() ? nullptr : &*std::prev(after);
}

// What kind of descriptor a variable of `type`, array apart, is bound to.
BindingLayout::Kind DescriptorKind(const Module& module,
                                   spv::StorageClass storage_class,
                                   const Inst* type) {
    using Kind = BindingLayout::Kind;
    const Inst* image = type;
    if (type && type->op == Op::OpTypeSampler) {
        return Kind::kSampler;
    }
    if (type && type->op == Op::OpTypeSampledImage && type->size() >= 1) {
        image = module.Find((*type)[0]);
    }
    if (image && image->op == Op::OpTypeImage && image->size() >= 6) {
        const bool storage = (*image)[5] == 2;
        if (static_cast<spv::Dim>((*image)[1]) == spv::Dim::Buffer) {
            return storage ? Kind::kStorageTexelBuffer : Kind::kUniformTexelBuffer;
        }
        if (storage) {
            return Kind::kStorageImage;
        }
        return image == type ? Kind::kSampledImage : Kind::kCombinedImageSampler;
    }
    const bool old_storage =
        type && module.FindDecoration(type->result, spv::Decoration::BufferBlock);
    return storage_class == spv::StorageClass::Uniform && !old_storage ? Kind::kUniformBuffer
                                                                       : Kind::kStorageBuffer;
}

}  // namespace

SourceMap::SourceMap(const Module& module) : module_(module) {
    for (const Inst& inst : module.insts()) {
        if (inst.op == Op::OpLine) {
            lines_[inst.offset] = {inst[0], inst[1]};
        } else if (inst.op == Op::OpNoLine || inst.op == Op::OpFunctionEnd ||
                   inst.op == Op::OpLabel) {
            // A line ends with its block.
            lines_[inst.offset] = {};
        } else if (inst.op == Op::OpExtInst && inst.size() >= 2) {
            const Inst* set = module.Find(inst[0]);
            if (!set || set->op != Op::OpExtInstImport ||
                !LiteralString(set->operands).starts_with("NonSemantic.Shader.DebugInfo.")) {
                continue;
            }
            if (inst[1] == kDebugNoLine) {
                lines_[inst.offset] = {};
            } else if (inst[1] == kDebugLine && inst.size() >= 4) {
                const Inst* source = module.Find(inst[2]);
                const Inst* line = module.Find(inst[3]);
                if (source && line && source->op == Op::OpExtInst && source->size() >= 3 &&
                    (*source)[1] == kDebugSource && line->op == Op::OpConstant &&
                    line->size() >= 1) {
                    lines_[inst.offset] = {(*source)[2], (*line)[0]};
                }
            }
        }
    }
}

std::string SourceMap::Instruction(uint32_t word) const {
    const Inst* inst = word == 0 ? nullptr : AtOrBefore(module_, word);
    return inst && inst->offset == word ? OpcodeName(static_cast<uint32_t>(inst->op)) : "";
}

std::string SourceMap::Source(uint32_t word) const {
    if (word == 0) {
        return {};
    }
    auto after = lines_.upper_bound(word);
    if (after == lines_.begin()) {
        return {};
    }
    const Line& line = std::prev(after)->second;
    return line.line == 0 ? std::string() : FileName(line.file) + ":" + std::to_string(line.line);
}

std::string SourceMap::FileName(uint32_t id) const {
    const Inst* name = module_.Find(id);
    return name && name->op == Op::OpString ? LiteralString(name->operands) : "?";
}

ResourceLayout LayoutOf(const Module& module) {
    constexpr uint32_t kMaxSets = 32;
    ResourceLayout layout;
    layout.push_constant_bytes = hal::kPushConstantBytes;
    for (const Inst& inst : module.globals()) {
        const bool untyped = inst.op == Op::OpUntypedVariableKHR;
        if (inst.op != Op::OpVariable && !untyped) {
            continue;
        }
        const Decoration* set = module.FindDecoration(inst.result, spv::Decoration::DescriptorSet);
        const Decoration* number = module.FindDecoration(inst.result, spv::Decoration::Binding);
        const Inst* pointer = module.Find(inst.type);
        if (!set || !number || set->params[0] >= kMaxSets || !pointer ||
            (!untyped && pointer->op != Op::OpTypePointer)) {
            continue;
        }
        BindingLayout binding;
        binding.binding = number->params[0];
        const Inst* type = untyped ? (inst.size() >= 2 ? module.Find(inst[1]) : nullptr)
                                   : module.Find((*pointer)[1]);
        if (type && (type->op == Op::OpTypeArray || type->op == Op::OpTypeRuntimeArray)) {
            const Inst* length = type->op == Op::OpTypeArray ? module.Find((*type)[1]) : nullptr;
            binding.count = length && length->op == Op::OpConstant && length->size() == 1
                                ? std::min((*length)[0], 1u << 20)
                                : kAssumedArrayLength;
            type = module.Find((*type)[0]);
        }
        binding.kind = DescriptorKind(module, static_cast<spv::StorageClass>(inst[0]), type);
        layout.sets.resize(std::max<size_t>(layout.sets.size(), set->params[0] + 1));
        // One binding may have several variables, with types of their own. An image and a sampler
        // at one are the parts of a combined one.
        auto& bindings = layout.sets[set->params[0]].bindings;
        auto same = std::ranges::find(bindings, binding.binding, &BindingLayout::binding);
        if (same == bindings.end()) {
            bindings.push_back(binding);
            continue;
        }
        same->count = std::max(same->count, binding.count);
        const BindingLayout::Kind kinds[] = {same->kind, binding.kind};
        auto either = [&](BindingLayout::Kind kind) {
            return std::ranges::count(kinds, kind) != 0;
        };
        using Kind = BindingLayout::Kind;
        if (either(Kind::kCombinedImageSampler) ||
            (either(Kind::kSampledImage) && either(Kind::kSampler))) {
            same->kind = Kind::kCombinedImageSampler;
        }
    }
    for (SetLayout& set : layout.sets) {
        std::ranges::sort(set.bindings, {}, &BindingLayout::binding);
        uint32_t offset = 0;
        for (BindingLayout& binding : set.bindings) {
            binding.offset_bytes = offset;
            offset += binding.count * DescriptorBytes(binding.kind);
        }
    }
    return layout;
}

}  // namespace fornax::kernel::spirv
