// Composites: tuples of scalars in declaration order. Matrices are column after column.
#include "compiler/kernel/spirv/composites.h"

#include <algorithm>

namespace fornax::kernel::spirv {

Status Composites::CompositeConstruct(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (std::ranges::any_of(inst.operands,
                            [&](uint32_t id) { return values_.HasLargeValue(id); })) {
        return large_.ConstructLarge(inst, *type);
    }
    Tuple tuple;
    for (uint32_t id : inst.operands) {
        FORNAX_ASSIGN_OR_RETURN(Tuple part, values_.UseParts(inst, id));
        tuple.insert(tuple.end(), part.begin(), part.end());
        if (tuple.size() > type->scalars) {
            break;
        }
    }
    // Every component of a cooperative matrix is the one constituent.
    if (type->kind == Type::Kind::kCooperativeMatrix && inst.size() == 1 && tuple.size() == 1) {
        tuple.assign(type->scalars, tuple[0]);
    }
    return values_.Define(inst, std::move(tuple));
}

// Where the part that literal indices lead to begins, and its type.
Result<std::pair<uint64_t, const Type*>> Composites::Locate(const Inst& inst,
                                                            const Type& type,
                                                            std::span<const uint32_t> indices) {
    uint64_t first = 0;
    const Type* at = &type;
    for (uint32_t index : indices) {
        const uint64_t count = at->kind == Type::Kind::kStruct ? at->members.size() : at->count;
        if (index >= count) {
            return Invalid(inst, "has the index " + std::to_string(index) + " into " +
                                     std::to_string(count) + " parts");
        }
        if (at->kind == Type::Kind::kStruct) {
            for (uint32_t i = 0; i < index; ++i) {
                first += types_.Get(at->members[i]).scalars;
            }
            at = &types_.Get(at->members[index]);
        } else {
            at = &types_.Get(at->element);
            first += index * at->scalars;
        }
    }
    return std::make_pair(first, at);
}

Status Composites::CompositeExtract(const Inst& inst) {
    if (values_.HasLargeValue(inst[0])) {
        FORNAX_ASSIGN_OR_RETURN(const Value whole, values_.Use(inst, inst[0]));
        return large_.ExtractLarge(inst, *whole.pointer);
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, values_.ValueType(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple source, values_.UseParts(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(auto part, Locate(inst, *type, inst.operands.subspan(1)));
    if (part.first + part.second->scalars > source.size()) {
        return Invalid(inst, "has an index that its composite does not have");
    }
    auto begin = source.begin() + static_cast<ptrdiff_t>(part.first);
    return values_.Define(inst, Tuple(begin, begin + static_cast<ptrdiff_t>(part.second->scalars)));
}

Status Composites::CompositeInsert(const Inst& inst) {
    if (values_.HasLargeValue(inst[1])) {
        FORNAX_ASSIGN_OR_RETURN(const Value whole, values_.Use(inst, inst[1]));
        return large_.InsertLarge(inst, *whole.pointer);
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple object, values_.UseParts(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, values_.ValueType(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple composite, values_.UseParts(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(auto part, Locate(inst, *type, inst.operands.subspan(2)));
    if (part.second->scalars != object.size() || part.first + object.size() > composite.size()) {
        return Invalid(inst, "has an object of another type than the part that it replaces");
    }
    std::ranges::copy(object, composite.begin() + static_cast<ptrdiff_t>(part.first));
    return values_.Define(inst, std::move(composite));
}

Status Composites::VectorShuffle(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple all, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple second, values_.UseTuple(inst, inst[1]));
    all.insert(all.end(), second.begin(), second.end());
    Tuple result;
    for (uint32_t index : inst.operands.subspan(2)) {
        // 0xFFFFFFFF: the component is undefined.
        if (index == UINT32_MAX) {
            result.push_back(Emit(ir::Op::kUndef, kernel_.type(all[0]), {}));
        } else if (index < all.size()) {
            result.push_back(all[index]);
        } else {
            return Invalid(inst, "has the component " + std::to_string(index) + " of " +
                                     std::to_string(all.size()));
        }
    }
    return values_.Define(inst, std::move(result));
}

Status Composites::VectorExtractDynamic(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple vector, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, values_.UseScalar(inst, inst[1]));
    return values_.Define(inst, {SelectComponent(vector, index)});
}

Status Composites::VectorInsertDynamic(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple vector, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId component, values_.UseScalar(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, values_.UseScalar(inst, inst[2]));
    if (kernel_.type(component) != kernel_.type(vector[0])) {
        return Invalid(inst, "has a component of another type than its vector's");
    }
    const ir::Type type = kernel_.type(index);
    for (size_t i = 0; i < vector.size(); ++i) {
        ir::ValueId here = Emit(ir::Op::kIEq, ir::Type::kBool, {index, builder_.Const(type, i)});
        vector[i] = Emit(ir::Op::kSelect, kernel_.type(component), {here, component, vector[i]});
    }
    return values_.Define(inst, std::move(vector));
}

Status Composites::Transpose(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Tuple matrix, values_.UseTuple(inst, inst[0]));
    if (type->kind != Type::Kind::kMatrix || matrix.size() != type->scalars) {
        return Invalid(inst, "does not have a matrix type");
    }
    const uint32_t columns = type->count;
    const uint32_t rows = types_.Get(type->element).count;
    Tuple result;
    for (uint32_t c = 0; c < columns; ++c) {
        for (uint32_t r = 0; r < rows; ++r) {
            result.push_back(matrix[r * columns + c]);
        }
    }
    return values_.Define(inst, std::move(result));
}

Status Composites::Dot(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple a, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, values_.UseTuple(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, values_.ValueType(inst, inst[0]));
    if (types_.IsBFloat16(*type) && a.size() == b.size()) {
        // SPV_KHR_bfloat16: products and sums are those of binary32, and rounded once at the end.
        for (Tuple* operand : {&a, &b}) {
            for (ir::ValueId& value : *operand) {
                value = FromBFloat16(value);
            }
        }
        return values_.Define(inst, {ToBFloat16(DotOf(a, b, FloatFlags(inst.result)))});
    }
    if (a.size() != b.size() || !ir::IsFloat(kernel_.type(a[0]))) {
        return Invalid(inst, "has operands that are no float vectors of one type");
    }
    return values_.Define(inst, {DotOf(a, b, FloatFlags(inst.result))});
}

// matrix * vector, vector * matrix and matrix * matrix are one loop over the columns of the right
// operand (a vector is one column) and the rows of the left one (a vector is one row).
Status Composites::MatrixTimes(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* left_type, values_.ValueType(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* right_type, values_.ValueType(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple left, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple right, values_.UseTuple(inst, inst[1]));
    const bool left_matrix = left_type->kind == Type::Kind::kMatrix;
    const bool right_matrix = right_type->kind == Type::Kind::kMatrix;
    const uint32_t rows = left_matrix ? types_.Get(left_type->element).count : 1;
    const auto inner = static_cast<uint32_t>(left.size() / rows);
    const uint32_t columns = right_matrix ? right_type->count : 1;
    if (right.size() != size_t{inner} * columns || !ir::IsFloat(kernel_.type(left[0]))) {
        return Invalid(inst, "has operands whose sizes do not fit each other");
    }
    const uint8_t flags = FloatFlags(inst.result);
    Tuple result;
    for (uint32_t c = 0; c < columns; ++c) {
        for (uint32_t r = 0; r < rows; ++r) {
            Tuple row;
            for (uint32_t k = 0; k < inner; ++k) {
                row.push_back(left[k * rows + r]);
            }
            result.push_back(DotOf(row, {right.data() + size_t{c} * inner, inner}, flags));
        }
    }
    return values_.Define(inst, std::move(result));
}

Status Composites::OuterProduct(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple a, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, values_.UseTuple(inst, inst[1]));
    const uint8_t flags = FloatFlags(inst.result);
    Tuple result;
    for (ir::ValueId column : b) {
        for (ir::ValueId row : a) {
            result.push_back(Emit(ir::Op::kFMul, kernel_.type(row), {row, column}, flags));
        }
    }
    return values_.Define(inst, std::move(result));
}

}  // namespace fornax::kernel::spirv
