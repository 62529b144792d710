// Type declarations, flattening and memory layout.
#include "compiler/kernel/spirv/types.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// Sizes saturate here; every real limit is far below.
constexpr uint64_t kHugeSize = uint64_t{1} << 48;

uint64_t AlignUp(uint64_t value, uint64_t align) {
    return (value + align - 1) / align * align;
}

}  // namespace

Status TypeTable::AddWithLength(const Inst& inst, uint64_t length) {
    Type type;
    type.id = inst.result;
    auto take_element = [&](uint32_t id, const char* role) -> Status {
        const Type* element = Find(id);
        if (!element) {
            return Invalid(inst, std::string("names id ") + std::to_string(id) + " as its " + role +
                                     ", which is no type declared before it");
        }
        type.element = id;
        type.depth = element->depth + 1;
        if (type.depth > kReaderLimits.nesting) {
            return Invalid(inst, "nests types deeper than the limit of " +
                                     std::to_string(kReaderLimits.nesting));
        }
        return OkStatus();
    };
    switch (inst.op) {
        case Op::OpTypeVoid:
            type.kind = Type::Kind::kVoid;
            break;
        case Op::OpTypeBool:
            type.kind = Type::Kind::kScalar;
            type.scalar = ir::Type::kBool;
            type.scalars = type.leaves = 1;
            break;
        case Op::OpTypeInt:
        case Op::OpTypeFloat: {
            const uint32_t bits = inst[0];
            const bool is_int = inst.op == Op::OpTypeInt;
            if (bits != 32 && bits != 64 && bits != 16 && !(is_int && bits == 8)) {
                return Unsupported(inst, "declares a width of " + std::to_string(bits) + " bits");
            }
            // SPV_KHR_bfloat16: only moved and converted, so its bits do.
            type.is_bfloat16 =
                !is_int && inst.size() > 1 && bits == 16 &&
                static_cast<spv::FPEncoding>(inst[1]) == spv::FPEncoding::BFloat16KHR;
            if (!is_int && inst.size() > 1 && !type.is_bfloat16) {
                return Unsupported(
                    inst, "declares another floating-point encoding than IEEE 754's and bfloat16");
            }
            type.kind = Type::Kind::kScalar;
            type.scalar = is_int || type.is_bfloat16 ? ir::IntegerType(bits) : ir::FloatType(bits);
            type.is_signed = is_int && inst[1] != 0;
            type.scalars = type.leaves = 1;
            break;
        }
        case Op::OpTypeVector:
        case Op::OpTypeVectorIdEXT:
        case Op::OpTypeMatrix: {
            FORNAX_RETURN_IF_ERROR(take_element(inst[0], "component type"));
            const bool vector = inst.op != Op::OpTypeMatrix;
            const Type& element = Get(inst[0]);
            type.kind = vector ? Type::Kind::kVector : Type::Kind::kMatrix;
            type.count = inst.op == Op::OpTypeVectorIdEXT
                             ? static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX))
                             : inst[1];
            // SPV_EXT_long_vector: any number of components, a matrix's columns excepted.
            const uint32_t least = vector ? 1 : 2;
            const uint32_t most = vector ? kReaderLimits.vector_components : 4;
            if (element.kind != (vector ? Type::Kind::kScalar : Type::Kind::kVector) ||
                type.count < least || type.count > most || (!vector && element.count > 4)) {
                return Invalid(inst, "has " + std::to_string(type.count) +
                                         " components of a type that cannot be one");
            }
            type.scalars = element.scalars * type.count;
            type.leaves = 1;
            break;
        }
        case Op::OpTypeArray: {
            FORNAX_RETURN_IF_ERROR(take_element(inst[0], "element type"));
            const Type& element = Get(inst[0]);
            type.kind = Type::Kind::kArray;
            if (length == 0 || length > UINT32_MAX) {
                return Invalid(inst, "has the length " + std::to_string(length));
            }
            type.count = static_cast<uint32_t>(length);
            // Saturates: the limit is checked where a value or variable of the type is made.
            type.scalars =
                element.scalars > (uint64_t{1} << 40) ? element.scalars : element.scalars * length;
            type.leaves = element.leaves;
            type.empty = element.empty;
            break;
        }
        case Op::OpTypeRuntimeArray:
            FORNAX_RETURN_IF_ERROR(take_element(inst[0], "element type"));
            type.kind = Type::Kind::kRuntimeArray;
            break;
        case Op::OpTypeStruct:
            type.kind = Type::Kind::kStruct;
            type.empty = true;
            for (uint32_t member : inst.operands) {
                FORNAX_RETURN_IF_ERROR(take_element(member, "member"));
                const Type& element = Get(member);
                type.members.push_back(member);
                type.scalars = std::min(type.scalars + element.scalars, uint64_t{1} << 41);
                if (type.leaves > kReaderLimits.composite_scalars) {
                    return Unsupported(inst, "has more scalar members than the limit of " +
                                                 std::to_string(kReaderLimits.composite_scalars));
                }
                type.leaves += element.leaves;
                type.empty &= element.empty;
            }
            type.element = 0;
            break;
        case Op::OpTypePointer:
            type.kind = Type::Kind::kPointer;
            type.storage = static_cast<spv::StorageClass>(inst[0]);
            type.element = inst[1];
            MakePointer(type);
            break;
        case Op::OpTypeUntypedPointerKHR:
            type.kind = Type::Kind::kPointer;
            type.storage = static_cast<spv::StorageClass>(inst[0]);
            MakePointer(type);
            break;
        case Op::OpTypeFunction:
            type.kind = Type::Kind::kFunction;
            break;
        default:
            break;
    }
    LayOut(type);
    types_.insert_or_assign(inst.result, std::move(type));
    return OkStatus();
}

void TypeTable::MakePointer(Type& type) const {
    switch (type.storage) {
        case spv::StorageClass::PhysicalStorageBuffer:
            type.pointer_scalars = {ir::Type::kI64};
            type.layout = {8, 8};
            type.scalar = ir::Type::kI64;
            break;
        case spv::StorageClass::StorageBuffer:
        case spv::StorageClass::Uniform:
            type.pointer_scalars = {ir::Type::kI64, ir::Type::kI64, buffer_offset_};
            break;
        case spv::StorageClass::Workgroup:
            type.pointer_scalars = {ir::Type::kI32};
            break;
        default:
            break;
    }
    type.scalars = type.pointer_scalars.size();
    type.leaves = static_cast<uint32_t>(type.scalars);
}

Status TypeTable::AddForward(const Inst& inst) {
    Type type;
    type.id = inst[0];
    type.kind = Type::Kind::kPointer;
    type.storage = static_cast<spv::StorageClass>(inst[1]);
    if (type.storage != spv::StorageClass::PhysicalStorageBuffer) {
        return Invalid(inst, "is of another storage class than PhysicalStorageBuffer");
    }
    MakePointer(type);
    types_.try_emplace(type.id, std::move(type));
    return OkStatus();
}

ir::Type TypeTable::ScalarOf(const Type& type) const {
    switch (type.kind) {
        case Type::Kind::kScalar:
            return type.scalar;
        case Type::Kind::kPointer:
            return type.scalar;  // of a device address
        case Type::Kind::kVector:
        case Type::Kind::kMatrix:
        case Type::Kind::kCooperativeMatrix:
            return ScalarOf(Get(type.element));
        default:
            return ir::Type::kVoid;
    }
}

bool TypeTable::SignedOf(const Type& type) const {
    if (type.kind == Type::Kind::kScalar) {
        return type.is_signed;
    }
    return (type.kind == Type::Kind::kVector || type.kind == Type::Kind::kCooperativeMatrix) &&
           SignedOf(Get(type.element));
}

bool TypeTable::IsBFloat16(const Type& type) const {
    if (type.kind == Type::Kind::kScalar) {
        return type.is_bfloat16;
    }
    return (type.kind == Type::Kind::kVector || type.kind == Type::Kind::kCooperativeMatrix) &&
           IsBFloat16(Get(type.element));
}

void TypeTable::Flatten(const Type& type, std::vector<ir::Type>& out) const {
    if (type.empty) {
        return;  // its parts, of which there may be many, have nothing either
    }
    switch (type.kind) {
        case Type::Kind::kScalar:
            out.push_back(type.scalar);
            return;
        case Type::Kind::kVector:
        case Type::Kind::kMatrix:
        case Type::Kind::kCooperativeMatrix:
        case Type::Kind::kArray:
            for (uint32_t i = 0; i < type.count; ++i) {
                Flatten(Get(type.element), out);
            }
            return;
        case Type::Kind::kStruct:
            for (uint32_t member : type.members) {
                Flatten(Get(member), out);
            }
            return;
        case Type::Kind::kPointer:
            out.insert(out.end(), type.pointer_scalars.begin(), type.pointer_scalars.end());
            return;
        default:
            return;
    }
}

// Once, when the type is declared: its parts are laid out by then.
void TypeTable::LayOut(Type& type) const {
    switch (type.kind) {
        case Type::Kind::kScalar:
            type.layout = {ir::ByteSize(type.scalar), ir::ByteSize(type.scalar)};
            return;
        case Type::Kind::kVector:
        case Type::Kind::kMatrix: {
            const MemoryLayout& element = Get(type.element).layout;
            type.layout = {element.size * type.count, element.align};
            return;
        }
        case Type::Kind::kArray:
        case Type::Kind::kRuntimeArray: {
            const MemoryLayout& element = Get(type.element).layout;
            const Decoration* stride =
                module_.FindDecoration(type.id, spv::Decoration::ArrayStride);
            type.stride = stride ? stride->params[0] : AlignUp(element.size, element.align);
            type.layout = {std::min(type.stride * type.count, kHugeSize), element.align};
            return;
        }
        case Type::Kind::kStruct: {
            uint64_t at = 0;
            for (uint32_t i = 0; i < type.members.size(); ++i) {
                const MemoryLayout& member = Get(type.members[i]).layout;
                const Decoration* offset =
                    module_.FindDecoration(type.id, spv::Decoration::Offset, i);
                at = offset ? offset->params[0] : AlignUp(at, member.align);
                type.offsets.push_back(at);
                at = std::min(at + member.size, kHugeSize);
                type.layout.size = std::max(type.layout.size, at);
                type.layout.align = std::max(type.layout.align, member.align);
            }
            type.layout.size = AlignUp(type.layout.size, type.layout.align);
            return;
        }
        default:
            return;
    }
}

}  // namespace fornax::kernel::spirv
