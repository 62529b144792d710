// Variables and access chains: every pointer becomes a place when it is made.
#include <algorithm>
#include <bit>

#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

constexpr uint32_t kMaxAlign = 16;

uint32_t AlignOf(uint64_t bytes) {
    return bytes == 0 ? kMaxAlign
                      : static_cast<uint32_t>(std::min<uint64_t>(kMaxAlign, bytes & -bytes));
}

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
Status Translator::GlobalVariables() {
    for (const Inst& inst : module_.globals()) {
        if (inst.op == Op::OpVariable &&
            static_cast<spv::StorageClass>(inst[0]) == spv::StorageClass::Private)
            FORNAX_RETURN_IF_ERROR(Variable(inst));
    }
    return OkStatus();
}

Status Translator::Variable(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* pointer_type, TypeOf(inst, inst.type));
    if (pointer_type->kind != Type::Kind::kPointer)
        return Invalid(inst, "does not have a pointer type");
    const auto storage = static_cast<spv::StorageClass>(inst[0]);
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer_type->element));
    Pointer pointer;
    pointer.type = type->id;
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
    globals_[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

// The binding that the variable is decorated with, as the pipeline layout has it.
Result<ir::Binding> Translator::FindBinding(const Inst& inst) {
    const Decoration* set = module_.FindDecoration(inst.result, spv::Decoration::DescriptorSet);
    const Decoration* binding = module_.FindDecoration(inst.result, spv::Decoration::Binding);
    if (!set || !binding)
        return Invalid(inst, "has no DescriptorSet and Binding decorations");
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

Status Translator::BufferVariable(const Inst& inst, const Type& type) {
    const Type* block = &type;
    if (type.kind == Type::Kind::kArray || type.kind == Type::Kind::kRuntimeArray)
        block = &types_.Get(type.element);
    if (block->kind != Type::Kind::kStruct) {
        return Invalid(inst, "is no buffer block");
    }
    FORNAX_ASSIGN_OR_RETURN(ir::Binding entry, FindBinding(inst));
    const bool is_uniform = static_cast<spv::StorageClass>(inst[0]) == spv::StorageClass::Uniform &&
                            !module_.FindDecoration(block->id, spv::Decoration::BufferBlock);
    const BindingLayout::Kind kind =
        is_uniform ? BindingLayout::Kind::kUniformBuffer : BindingLayout::Kind::kStorageBuffer;
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
    for (uint32_t i = 0; i < block->members.size(); ++i)
        members_readonly &=
            module_.FindDecoration(block->id, spv::Decoration::NonWritable, i) != nullptr;
    entry.writable = !is_uniform && !variable_readonly && !members_readonly;
    Pointer pointer;
    pointer.space = Pointer::Space::kBuffer;
    pointer.type = type.id;
    pointer.needs_element = block != &type;
    pointer.binding = static_cast<uint32_t>(kernel_.bindings.size());
    pointer.is_volatile = IsVolatile(module_, inst.result);
    kernel_.bindings.push_back(entry);
    globals_[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

Status Translator::WorkgroupVariable(const Inst& inst, const Type& type) {
    const uint64_t start = (uint64_t{kernel_.shared_bytes} + kMaxAlign - 1) / kMaxAlign * kMaxAlign;
    if (type.layout.size == 0)
        return Invalid(inst, "has a type without a size");
    if (start + type.layout.size > kReaderLimits.shared_bytes) {
        return Unsupported(
            inst, "takes the workgroup's memory to " + std::to_string(start + type.layout.size) +
                      " bytes, and the limit is " + std::to_string(kReaderLimits.shared_bytes));
    }
    if (inst.size() > 1) {
        const Inst* initial = module_.Find(inst[1]);
        if (!initial || initial->op != Op::OpConstantNull)
            return Unsupported(inst, "initialises workgroup memory with another value than null");
        kernel_.zero_shared = true;
    }
    Pointer pointer;
    pointer.space = Pointer::Space::kShared;
    pointer.type = type.id;
    pointer.const_offset = start;
    pointer.is_volatile = IsVolatile(module_, inst.result);
    kernel_.shared_bytes = static_cast<uint32_t>(start + type.layout.size);
    globals_[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

uint64_t Translator::SlotsOfLeaf(const Type& type, uint32_t leaf) const {
    switch (type.kind) {
        case Type::Kind::kVector:
        case Type::Kind::kMatrix:
        case Type::Kind::kArray:
            return type.count * SlotsOfLeaf(types_.Get(type.element), leaf);
        case Type::Kind::kStruct:
            for (uint32_t member : type.members) {
                const Type& part = types_.Get(member);
                if (leaf < part.leaves)
                    return SlotsOfLeaf(part, leaf);
                leaf -= part.leaves;
            }
            return 0;
        default:
            return 1;
    }
}

Result<Pointer> Translator::PrivateVariable(const Inst& inst, const Type& type) {
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, type));
    FORNAX_RETURN_IF_ERROR(Spend(inst, type.scalars));
    LocalVariable variable;
    auto visit = [&](auto& self, const Type& part, uint64_t count) -> void {
        switch (part.kind) {
            case Type::Kind::kScalar:
                variable.locals.push_back(NewLocal(part.scalar, static_cast<uint32_t>(count)));
                return;
            case Type::Kind::kStruct:
                for (uint32_t member : part.members)
                    self(self, types_.Get(member), count);
                return;
            default:
                self(self, types_.Get(part.element), count * part.count);
                return;
        }
    };
    visit(visit, type, 1);
    Pointer pointer;
    pointer.space = Pointer::Space::kLocal;
    pointer.type = type.id;
    pointer.variable = static_cast<uint32_t>(variables_.size());
    variables_.push_back(std::move(variable));
    if (inst.size() > 1) {
        FORNAX_ASSIGN_OR_RETURN(Tuple initial, UseTuple(inst, inst[1]));
        FORNAX_RETURN_IF_ERROR(StoreTo(inst, pointer, initial));
    }
    return pointer;
}

Status Translator::FunctionVariable(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* pointer_type, TypeOf(inst, inst.type));
    if (pointer_type->kind != Type::Kind::kPointer ||
        static_cast<spv::StorageClass>(inst[0]) != spv::StorageClass::Function) {
        return Invalid(inst, "is in a function and not of its storage class");
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer_type->element));
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, PrivateVariable(inst, *type));
    return DefinePointer(inst, std::move(pointer));
}

ir::ValueId Translator::ToI32(ir::ValueId value, bool is_signed) {
    const uint32_t bits = ir::BitWidth(kernel_.type(value));
    if (bits == 32)
        return value;
    const ir::Op op = bits > 32 ? ir::Op::kTrunc : is_signed ? ir::Op::kSExt : ir::Op::kZExt;
    return Emit(op, ir::Type::kI32, {value});
}

// Indices are signed ("Access Chain": "treated as a signed integer").
Status Translator::AddIndex(const Inst& inst,
                            Pointer& pointer,
                            uint32_t index_id,
                            uint64_t stride) {
    if (const Constant* constant = constants_.Find(index_id)) {
        if (constant->bits.size() != 1)
            return Invalid(inst, "has an index that is no scalar");
        const Type& type = types_.Get(constant->type);
        uint64_t index = constant->bits[0];
        const uint32_t bits = ir::BitWidth(type.scalar);
        if (bits < 64 && (index >> (bits - 1)) != 0)
            index |= ~((uint64_t{1} << bits) - 1);
        pointer.const_offset += index * stride;
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, UseScalar(inst, index_id));
    if (!ir::IsInteger(kernel_.type(index)))
        return Invalid(inst, "has an index that is no integer");
    ir::ValueId bytes = Emit(ir::Op::kIMul, ir::Type::kI32,
                             {ToI32(index, true), Int(static_cast<uint32_t>(stride))});
    pointer.align = std::min(pointer.align, AlignOf(stride));
    pointer.offset = pointer.offset.valid()
                         ? Emit(ir::Op::kIAdd, ir::Type::kI32, {pointer.offset, bytes})
                         : bytes;
    return OkStatus();
}

Status Translator::StepBytes(const Inst& inst,
                             Pointer& pointer,
                             const Type& type,
                             uint32_t index_id) {
    switch (type.kind) {
        case Type::Kind::kStruct: {
            FORNAX_ASSIGN_OR_RETURN(uint64_t member, constants_.Integer(inst, index_id));
            if (member >= type.members.size())
                return Invalid(inst, "names member " + std::to_string(member) +
                                         " of a structure of " +
                                         std::to_string(type.members.size()));
            const auto number = static_cast<uint32_t>(member);
            pointer.const_offset += type.offsets[number];
            pointer.type = type.members[number];
            const Decoration* stride =
                module_.FindDecoration(type.id, spv::Decoration::MatrixStride, number);
            pointer.matrix_stride = stride ? stride->params[0] : 0;
            pointer.row_major =
                module_.FindDecoration(type.id, spv::Decoration::RowMajor, number) != nullptr;
            for (spv::Decoration kind : {spv::Decoration::Volatile, spv::Decoration::Coherent})
                pointer.is_volatile |= module_.FindDecoration(type.id, kind, number) != nullptr;
            return OkStatus();
        }
        case Type::Kind::kArray:
        case Type::Kind::kRuntimeArray:
            pointer.type = type.element;
            return AddIndex(inst, pointer, index_id, type.stride);
        case Type::Kind::kMatrix: {
            const Type& column = types_.Get(type.element);
            const uint64_t element = types_.Get(column.element).layout.size;
            pointer.type = type.element;
            if (pointer.row_major) {
                pointer.component_stride = pointer.matrix_stride;
                return AddIndex(inst, pointer, index_id, element);
            }
            return AddIndex(inst, pointer, index_id,
                            pointer.matrix_stride ? pointer.matrix_stride : column.layout.size);
        }
        case Type::Kind::kVector: {
            const uint64_t element = types_.Get(type.element).layout.size;
            pointer.type = type.element;
            return AddIndex(inst, pointer, index_id,
                            pointer.component_stride ? pointer.component_stride : element);
        }
        default:
            return Invalid(inst, "has more indices than its base has levels");
    }
}

Status Translator::Step(const Inst& inst, Pointer& pointer, uint32_t index_id) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (pointer.space == Pointer::Space::kBuiltin) {
        if (type->kind != Type::Kind::kVector || pointer.component.valid())
            return Invalid(inst, "has more indices than its base has levels");
        FORNAX_ASSIGN_OR_RETURN(pointer.component, UseScalar(inst, index_id));
        pointer.type = type->element;
        return OkStatus();
    }
    if (pointer.space != Pointer::Space::kLocal) {
        if (pointer.needs_element) {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, UseScalar(inst, index_id));
            if (!ir::IsInteger(kernel_.type(index)))
                return Invalid(inst, "has an index that is no integer");
            pointer.element = ToI32(index, true);
            pointer.nonuniform |=
                module_.FindDecoration(index_id, spv::Decoration::NonUniform) != nullptr;
            pointer.needs_element = false;
            pointer.type = type->element;
            return OkStatus();
        }
        if (pointer.space == Pointer::Space::kImage)
            return Invalid(inst, "has more indices than its base has levels");
        return StepBytes(inst, pointer, *type, index_id);
    }
    if (type->kind == Type::Kind::kStruct) {
        FORNAX_ASSIGN_OR_RETURN(uint64_t member, constants_.Integer(inst, index_id));
        if (member >= type->members.size())
            return Invalid(inst, "names member " + std::to_string(member) + " of a structure of " +
                                     std::to_string(type->members.size()));
        for (uint64_t i = 0; i < member; ++i)
            pointer.leaf += types_.Get(type->members[i]).leaves;
        pointer.type = type->members[member];
        return OkStatus();
    }
    if (type->kind != Type::Kind::kArray && type->kind != Type::Kind::kMatrix &&
        type->kind != Type::Kind::kVector) {
        return Invalid(inst, "has more indices than its base has levels");
    }
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, UseScalar(inst, index_id));
    if (!ir::IsInteger(kernel_.type(index)))
        return Invalid(inst, "has an index that is no integer");
    pointer.terms.push_back({ToI32(index, true), type->element, pointer.leaf});
    pointer.type = type->element;
    return OkStatus();
}

Status Translator::AccessChain(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    for (size_t i = 1; i < inst.size(); ++i)
        FORNAX_RETURN_IF_ERROR(Step(inst, pointer, inst[i]));
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));
    if (result->kind != Type::Kind::kPointer || result->element != pointer.type)
        return Invalid(inst, "has a result type that is not what its indices lead to");
    pointer.nonuniform |=
        module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
    return DefinePointer(inst, std::move(pointer));
}

Status Translator::CopyObject(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Value value, Use(inst, inst[0]));
    if (value.pointer) {
        value.pointer->nonuniform |=
            module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
        return DefinePointer(inst, std::move(*value.pointer));
    }
    return Define(inst, std::move(value.scalars));
}

// (bound range - start of the array) / stride, rounded down; 0 where the range ends before the
// array.
Status Translator::ArrayLength(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (pointer.space != Pointer::Space::kBuffer || pointer.needs_element ||
        type->kind != Type::Kind::kStruct || inst[1] >= type->members.size()) {
        return Invalid(inst, "does not name a member of a buffer block");
    }
    const Type& array = types_.Get(type->members[inst[1]]);
    if (array.kind != Type::Kind::kRuntimeArray || array.stride == 0)
        return Invalid(inst, "does not name a run-time array");
    const uint64_t start = pointer.const_offset + type->offsets[inst[1]];
    const ir::Type i32 = ir::Type::kI32;
    ir::ValueId size = Emit(ir::Op::kBufferSize, i32, {BufferOf(pointer)});
    ir::ValueId first = Int(static_cast<uint32_t>(start));
    ir::ValueId rest = Emit(ir::Op::kISub, i32, {Emit(ir::Op::kUMax, i32, {size, first}), first});
    return Define(inst,
                  {Emit(ir::Op::kUDiv, i32, {rest, Int(static_cast<uint32_t>(array.stride))})});
}

}  // namespace fornax::kernel::spirv
