// Variables of all storage classes, and the bindings that those of resources need.
#include "compiler/kernel/spirv/variables.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using Kind = BindingLayout::Kind;
using spv::Op;

namespace {

std::optional<ir::Type> BuiltinType(spv::BuiltIn builtin) {
    switch (builtin) {
        case spv::BuiltIn::NumWorkgroups:
        case spv::BuiltIn::WorkgroupId:
        case spv::BuiltIn::LocalInvocationId:
        case spv::BuiltIn::GlobalInvocationId:
        case spv::BuiltIn::LocalInvocationIndex:
        case spv::BuiltIn::WorkgroupSize:
        case spv::BuiltIn::SubgroupId:
        case spv::BuiltIn::SubgroupLocalInvocationId:
        case spv::BuiltIn::NumSubgroups:
        case spv::BuiltIn::SubgroupSize:
        case spv::BuiltIn::DeviceIndex:
        case spv::BuiltIn::SubgroupEqMask:
        case spv::BuiltIn::SubgroupGeMask:
        case spv::BuiltIn::SubgroupGtMask:
        case spv::BuiltIn::SubgroupLeMask:
        case spv::BuiltIn::SubgroupLtMask:
            return ir::Type::kI32;
        default:
            return std::nullopt;
    }
}

bool IsVolatile(const Module& module, uint32_t id) {
    return module.FindDecoration(id, spv::Decoration::Volatile) ||
           module.FindDecoration(id, spv::Decoration::Coherent);
}

}  // namespace

// Private variables of module scope, whose initialisers are stored first of all.
Status Variables::GlobalVariables() {
    for (const Inst& inst : module_.globals()) {
        if (inst.op == Op::OpVariable &&
            static_cast<spv::StorageClass>(inst[0]) == spv::StorageClass::Private) {
            FORNAX_RETURN_IF_ERROR(Variable(inst));
        }
    }
    return OkStatus();
}

Status Variables::Variable(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* pointer_type, TypeOf(inst, inst.type));
    if (pointer_type->kind != Type::Kind::kPointer) {
        return Invalid(inst, "does not have a pointer type");
    }
    const auto storage = static_cast<spv::StorageClass>(inst[0]);
    const Decoration* which = module_.FindDecoration(inst.result, spv::Decoration::BuiltIn);
    if (storage == spv::StorageClass::UniformConstant && which) {
        return heaps_.HeapVariable(inst, static_cast<spv::BuiltIn>(which->params[0]));
    }
    // An untyped variable names its type itself.
    const bool untyped = inst.op == Op::OpUntypedVariableKHR;
    if (untyped && inst.size() < 2) {
        return Unsupported(inst, "has no data type");
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type,
                            TypeOf(inst, untyped ? inst[1] : pointer_type->element));
    Pointer pointer;
    pointer.type = type->id;
    pointer.untyped = untyped;
    switch (storage) {
        case spv::StorageClass::StorageBuffer:
        case spv::StorageClass::Uniform:
            return BufferVariable(inst, *type);
        case spv::StorageClass::UniformConstant:
            return ImageVariable(inst, *type);
        case spv::StorageClass::Workgroup:
            return WorkgroupVariable(inst, *type);
        case spv::StorageClass::PushConstant:
            pointer.space = Pointer::Space::kPush;
            break;
        case spv::StorageClass::Private: {
            if (untyped) {
                return Invalid(inst, "is untyped and in a storage class that has no layout");
            }
            FORNAX_ASSIGN_OR_RETURN(pointer, PrivateVariable(inst, *type));
            break;
        }
        case spv::StorageClass::Input: {
            const Decoration* builtin =
                module_.FindDecoration(inst.result, spv::Decoration::BuiltIn);
            if (!builtin || !BuiltinType(static_cast<spv::BuiltIn>(builtin->params[0]))) {
                return Unsupported(inst, builtin
                                             ? "is the input " + BuiltInName(builtin->params[0]) +
                                                   ", which is not supported"
                                             : std::string("is an input that is no built-in"));
            }
            pointer.space = Pointer::Space::kBuiltin;
            pointer.builtin = static_cast<spv::BuiltIn>(builtin->params[0]);
            break;
        }
        default:
            return Unsupported(inst, "has the storage class " + StorageClassName(inst[0]) +
                                         ", which is not supported");
    }
    code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

// The binding that the variable is decorated with, as the pipeline layout has it.
Result<ir::Binding> Variables::FindBinding(const Inst& inst) {
    const Decoration* set = module_.FindDecoration(inst.result, spv::Decoration::DescriptorSet);
    const Decoration* binding = module_.FindDecoration(inst.result, spv::Decoration::Binding);
    if (!set || !binding) {
        return Invalid(inst, "has no DescriptorSet and Binding decorations");
    }
    ir::Binding entry;
    entry.set = set->params[0];
    entry.binding = binding->params[0];
    if (entry.set < request_.layout.sets.size()) {
        for (const BindingLayout& layout : request_.layout.sets[entry.set].bindings) {
            if (layout.binding == entry.binding && layout.count != 0) {
                entry.layout = layout;
                return entry;
            }
        }
    }
    return Invalid(inst, "is used at set " + std::to_string(entry.set) + ", binding " +
                             std::to_string(entry.binding) +
                             ", which the pipeline layout does not have");
}

Status Variables::BufferVariable(const Inst& inst, const Type& type) {
    const Type* block = &type;
    if (type.kind == Type::Kind::kArray || type.kind == Type::Kind::kRuntimeArray) {
        block = &types_.Get(type.element);
    }
    if (block->kind != Type::Kind::kStruct) {
        return Invalid(inst, "is no buffer block");
    }
    const bool is_uniform = static_cast<spv::StorageClass>(inst[0]) == spv::StorageClass::Uniform &&
                            !module_.FindDecoration(block->id, spv::Decoration::BufferBlock);
    const BindingLayout::Kind kind =
        is_uniform ? BindingLayout::Kind::kUniformBuffer : BindingLayout::Kind::kStorageBuffer;
    ir::Binding entry;
    if (!request_.layout.heaps) {
        FORNAX_ASSIGN_OR_RETURN(entry, FindBinding(inst));
    }
    if (entry.layout.kind == BindingLayout::Kind::kMutable || request_.layout.heaps) {
        entry.layout.kind = kind;
    }
    if (entry.layout.kind != kind) {
        return Invalid(inst, "is a " + std::string(is_uniform ? "uniform" : "storage") +
                                 " buffer, and the pipeline layout has another kind at set " +
                                 std::to_string(entry.set) + ", binding " +
                                 std::to_string(entry.binding));
    }
    // glslang decorates the members, others the variable.
    const bool variable_readonly =
        module_.FindDecoration(inst.result, spv::Decoration::NonWritable) != nullptr;
    bool members_readonly = !block->members.empty();
    for (uint32_t i = 0; i < block->members.size(); ++i) {
        members_readonly &=
            module_.FindDecoration(block->id, spv::Decoration::NonWritable, i) != nullptr;
    }
    entry.writable = !is_uniform && !variable_readonly && !members_readonly;
    Pointer pointer;
    pointer.space = Pointer::Space::kBuffer;
    pointer.type = type.id;
    pointer.untyped = inst.op == Op::OpUntypedVariableKHR;
    pointer.needs_element = block != &type;
    pointer.is_volatile = IsVolatile(module_, inst.result);
    if (request_.layout.heaps) {
        FORNAX_RETURN_IF_ERROR(heaps_.MapBuffer(inst, pointer, kind, entry.writable));
        code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
        return OkStatus();
    }
    pointer.binding = static_cast<uint32_t>(kernel_.bindings.size());
    kernel_.bindings.push_back(entry);
    code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

// The type of a variable in workgroup memory; null for anything else.
const Type* Variables::WorkgroupType(const Inst& inst) const {
    const bool untyped = inst.op == Op::OpUntypedVariableKHR;
    if ((!untyped && inst.op != Op::OpVariable) || inst.size() < (untyped ? 2 : 1) ||
        static_cast<spv::StorageClass>(inst[0]) != spv::StorageClass::Workgroup) {
        return nullptr;
    }
    const Inst* pointer = untyped ? nullptr : module_.Find(inst.type);
    if (!untyped && (!pointer || pointer->op != Op::OpTypePointer || pointer->size() < 2)) {
        return nullptr;
    }
    return types_.Find(untyped ? inst[1] : (*pointer)[1]);
}

// The bytes that the variables share which may alias each other, of all entry points.
uint64_t Variables::AliasedWorkgroupBytes() {
    uint64_t bytes = 0;
    for (const Inst& inst : module_.globals()) {
        const Type* type = WorkgroupType(inst);
        if (type && module_.FindDecoration(inst.result, spv::Decoration::Aliased)) {
            bytes = std::max(bytes, type->layout.size);
        }
    }
    return bytes;
}

// How far apart elements of the type lie in the arrays of workgroup memory, unless those are
// explicitly laid out, which blocks are (SPV_KHR_workgroup_memory_explicit_layout).
std::optional<uint64_t> Variables::WorkgroupStride(uint32_t element) {
    if (!workgroup_strides_) {
        workgroup_strides_.emplace();
        std::vector<const Type*> parts;
        std::unordered_set<uint32_t> seen;
        auto add = [&](const Type& type) {
            if (seen.insert(type.id).second) {
                parts.push_back(&type);
            }
        };
        for (const Inst& inst : module_.globals()) {
            const Type* type = WorkgroupType(inst);
            if (type && !module_.FindDecoration(type->id, spv::Decoration::Block)) {
                add(*type);
            }
        }
        for (size_t i = 0; i < parts.size(); ++i) {
            const Type& part = *parts[i];
            if (part.kind == Type::Kind::kArray) {
                workgroup_strides_->try_emplace(part.element, part.stride);
                add(types_.Get(part.element));
            }
            for (uint32_t member : part.members) {
                add(types_.Get(member));
            }
        }
    }
    const auto found = workgroup_strides_->find(element);
    return found == workgroup_strides_->end() ? std::nullopt : std::optional(found->second);
}

Status Variables::WorkgroupVariable(const Inst& inst, const Type& type) {
    uint64_t start = (uint64_t{kernel_.shared_bytes} + kMaxAlign - 1) / kMaxAlign * kMaxAlign;
    uint64_t end = start + type.layout.size;
    // Blocks that are decorated so begin at one place (SPV_KHR_workgroup_memory_explicit_layout);
    // untyped variables need not be (SPV_KHR_untyped_pointers), and then have their own.
    if (module_.FindDecoration(type.id, spv::Decoration::Block) &&
        module_.FindDecoration(inst.result, spv::Decoration::Aliased)) {
        if (!aliased_workgroup_start_) {
            aliased_workgroup_start_ = start;
            end = start + AliasedWorkgroupBytes();
        } else {
            start = *aliased_workgroup_start_;
            end = start + type.layout.size;
        }
    }
    if (type.layout.size == 0 && !type.empty) {
        return Invalid(inst, "has a type without a size");
    }
    if (end < start || end > kReaderLimits.shared_bytes) {
        return Unsupported(inst, "takes the workgroup's memory to " + std::to_string(end) +
                                     " bytes, and the limit is " +
                                     std::to_string(kReaderLimits.shared_bytes));
    }
    const size_t initializer = inst.op == Op::OpUntypedVariableKHR ? 2 : 1;
    if (inst.size() > initializer) {
        const Inst* initial = module_.Find(inst[initializer]);
        if (!initial || initial->op != Op::OpConstantNull) {
            return Unsupported(inst, "initialises workgroup memory with another value than null");
        }
        kernel_.zero_shared = true;
    }
    Pointer pointer;
    pointer.space = Pointer::Space::kShared;
    pointer.type = type.id;
    pointer.untyped = inst.op == Op::OpUntypedVariableKHR;
    pointer.const_offset = start;
    pointer.is_volatile = IsVolatile(module_, inst.result);
    kernel_.shared_bytes = std::max(kernel_.shared_bytes, static_cast<uint32_t>(end));
    code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

Result<Pointer> Variables::PrivateVariable(const Inst& inst, const Type& type) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, access_.PrivatePlace(inst, type));
    if (inst.size() > 1) {
        // "Logical Layout of a Module": what a declaration names comes before it. Two variables
        // that begin as each other's pointers would not end.
        const Inst* initializer = module_.Find(inst[1]);
        if (!initializer || initializer->offset >= inst.offset) {
            return Invalid(inst, "has an initialiser that is not declared before it");
        }
        FORNAX_ASSIGN_OR_RETURN(Tuple initial, values_.UseParts(inst, inst[1]));
        FORNAX_RETURN_IF_ERROR(access_.StoreTo(inst, pointer, initial));
    }
    return pointer;
}

Status Variables::FunctionVariable(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* pointer_type, TypeOf(inst, inst.type));
    if (pointer_type->kind != Type::Kind::kPointer ||
        static_cast<spv::StorageClass>(inst[0]) != spv::StorageClass::Function) {
        return Invalid(inst, "is in a function and not of its storage class");
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer_type->element));
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, PrivateVariable(inst, *type));
    return values_.DefinePointer(inst, std::move(pointer));
}

Status Variables::ImageVariable(const Inst& inst, const Type& type) {
    const bool array = type.kind == Type::Kind::kArray || type.kind == Type::Kind::kRuntimeArray;
    const Inst* declaration = module_.Find(array ? type.element : type.id);
    if (!declaration) {
        return Invalid(inst, "has no type");
    }
    const bool combined = declaration->op == Op::OpTypeSampledImage;
    const Inst* image = combined ? module_.Find((*declaration)[0]) : declaration;
    Kind kind = Kind::kSampler;
    if (declaration->op != Op::OpTypeSampler) {
        if (!image || image->op != Op::OpTypeImage) {
            return Unsupported(inst, "is neither an image nor a sampler");
        }
        kind = DescriptorKindOf(*image);
        if (combined && kind == Kind::kSampledImage) {
            kind = Kind::kCombinedImageSampler;
        }
    }
    Pointer pointer;
    pointer.space = Pointer::Space::kImage;
    pointer.type = type.id;
    pointer.needs_element = array;
    pointer.is_volatile = module_.FindDecoration(inst.result, spv::Decoration::Volatile) ||
                          module_.FindDecoration(inst.result, spv::Decoration::Coherent);
    if (request_.layout.heaps) {
        FORNAX_RETURN_IF_ERROR(heaps_.MapImage(inst, pointer, kind, combined));
        code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(ir::Binding entry, FindBinding(inst));
    // "OpTypeImage or OpTypeSampler of a combined image sampler's binding" may be used apart.
    const bool part_of_combined = entry.layout.kind == Kind::kCombinedImageSampler &&
                                  (kind == Kind::kSampledImage || kind == Kind::kSampler);
    if (entry.layout.kind == Kind::kMutable) {
        entry.layout.kind = kind;
    }
    if (entry.layout.kind != kind && !part_of_combined) {
        return Invalid(inst, std::string("is a ") + ir::BindingKindName(kind) +
                                 ", and the pipeline layout has a " +
                                 ir::BindingKindName(entry.layout.kind) + " at set " +
                                 std::to_string(entry.set) + ", binding " +
                                 std::to_string(entry.binding));
    }
    entry.writable = (kind == Kind::kStorageImage || kind == Kind::kStorageTexelBuffer) &&
                     !module_.FindDecoration(inst.result, spv::Decoration::NonWritable);
    pointer.binding = static_cast<uint32_t>(kernel_.bindings.size());
    if (combined) {
        pointer.has_sampler = true;
        pointer.sampler_binding = pointer.binding;
    }
    kernel_.bindings.push_back(entry);
    code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
