// SPV_KHR_cooperative_matrix: matrices that a subgroup holds together (ir/matrix.h). An
// invocation's part is a tuple of scalars like any composite's; all tuples side by side are the
// matrix in row-major order, so that what works component by component needs nothing here.
//
// Loads and stores are those of scalars, element by element, with offsets from the lane's number. A
// matrix that lies column after column is its transpose that lies row after row.
#include "compiler/kernel/spirv/cooperative_matrix.h"

#include <algorithm>

#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel::spirv {

namespace {

constexpr const char* kUseNames[] = {"MatrixA", "MatrixB", "MatrixAccumulator"};
constexpr uint32_t kAccumulator = 2;

bool HasBit(uint32_t mask, spv::CooperativeMatrixOperandsMask bit) {
    return (mask & static_cast<uint32_t>(bit)) != 0;
}

}  // namespace

// Only what vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR lists has instructions that use it.
Status TypeTable::AddCooperativeMatrix(const Inst& inst, const MatrixNumbers& numbers) {
    const Type* component = Find(inst[0]);
    if (!component || component->kind != Type::Kind::kScalar) {
        return Invalid(inst, "has components that are no scalars");
    }
    if (numbers.scope != static_cast<uint64_t>(spv::Scope::Subgroup)) {
        return Unsupported(inst, "has the scope " + std::to_string(numbers.scope) +
                                     ", and only that of a subgroup is supported");
    }
    if (numbers.rows != ir::kMatrixSize || numbers.columns != ir::kMatrixSize) {
        return Unsupported(inst, "has " + std::to_string(numbers.rows) + " rows and " +
                                     std::to_string(numbers.columns) +
                                     " columns, and only 16 and 16 are supported");
    }
    if (numbers.use >= std::size(kUseNames)) {
        return Invalid(inst, "has the unknown use " + std::to_string(numbers.use));
    }
    switch (component->scalar) {
        case ir::Type::kF16:
        case ir::Type::kF32:
        case ir::Type::kI8:
        case ir::Type::kI32:
            break;
        default:
            if (component->is_bfloat16) {
                break;
            }
            return Unsupported(inst, std::string("has components of the type ") +
                                         ir::TypeName(component->scalar) +
                                         ", and only f16, bfloat16, f32, i8 and i32 are supported");
    }
    if (subgroup_size_ < ir::kMatrixSize / 2 || subgroup_size_ > ir::kMaxSubgroupSize) {
        return Unsupported(inst, "is in a subgroup of " + std::to_string(subgroup_size_) +
                                     " invocations, which hold no matrix together");
    }
    Type type;
    type.id = inst.result;
    type.kind = Type::Kind::kCooperativeMatrix;
    type.element = inst[0];
    type.count = ir::kMatrixElements / subgroup_size_;
    type.depth = 1;
    type.scalars = type.count;
    type.leaves = 1;
    type.use = static_cast<uint32_t>(numbers.use);
    type.layout = {component->layout.size * type.count, component->layout.align};
    types_.insert_or_assign(inst.result, std::move(type));
    return OkStatus();
}

Result<const Type*> CooperativeMatrices::MatrixType(const Inst& inst, uint32_t type_id) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, type_id));
    if (type->kind != Type::Kind::kCooperativeMatrix) {
        return Invalid(inst, "works on a value that is no cooperative matrix");
    }
    code_.sees_subgroups = true;
    return type;
}

// Where a load or store finds a matrix.
struct CooperativeMatrices::MatrixPlace {
    Pointer pointer;                  // to the first element
    uint64_t unit = 0;                // bytes that the stride counts
    ir::ValueId stride;               // of any integer type
    const Constant* known = nullptr;  // the stride, if it is a constant
    bool columns = false;             // what lies there row after row is the transpose
};

// The operands from `first` on are the layout, the stride and those of memory; `at` has the
// pointer.
Status CooperativeMatrices::CheckPlace(const Inst& inst,
                                       const Type& matrix,
                                       size_t first,
                                       MatrixPlace& at) {
    if (inst.size() < first + 2) {
        return Invalid(inst, "has no stride, which both row-major and column-major need");
    }
    FORNAX_ASSIGN_OR_RETURN(const uint64_t layout, constants_.Integer(inst, inst[first]));
    if (layout > static_cast<uint64_t>(spv::CooperativeMatrixLayout::ColumnMajorKHR)) {
        return Unsupported(inst, "has the layout " + std::to_string(layout) +
                                     ", and only row-major and column-major are supported");
    }
    at.columns = layout == static_cast<uint64_t>(spv::CooperativeMatrixLayout::ColumnMajorKHR);
    Pointer& pointer = at.pointer;
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, first + 2, pointer));
    if ((pointer.space != Pointer::Space::kBuffer && pointer.space != Pointer::Space::kShared &&
         pointer.space != Pointer::Space::kAddress) ||
        pointer.needs_element || pointer.component_stride != 0) {
        return Invalid(
            inst,
            "accesses what is not an array in a storage buffer, in workgroup memory or at "
            "a device address");
    }
    // "Stride" counts elements of the type that is pointed to, however they lie.
    const uint32_t pointee_id = pointer.untyped ? matrix.element : pointer.type;
    FORNAX_ASSIGN_OR_RETURN(const Type* pointee, TypeOf(inst, pointee_id));
    if (pointee->kind != Type::Kind::kScalar && pointee->kind != Type::Kind::kVector) {
        return Invalid(inst, "points to what is neither a scalar nor a vector");
    }
    at.unit = pointee->layout.size;
    pointer.type = matrix.element;
    FORNAX_ASSIGN_OR_RETURN(at.stride, values_.UseScalar(inst, inst[first + 1]));
    if (!ir::IsInteger(kernel_.type(at.stride))) {
        return Invalid(inst, "has a stride that is no integer");
    }
    at.known = constants_.Find(inst[first + 1]);
    return OkStatus();
}

// Bytes from a row to the next one, of the type of offsets.
ir::ValueId CooperativeMatrices::RowBytes(const MatrixPlace& at) {
    const ir::Type type = places_.OffsetType(at.pointer);
    if (at.known) {
        return builder_.Const(type, type == ir::Type::kI64
                                        ? at.known->bits[0] * at.unit
                                        : static_cast<uint32_t>(at.known->bits[0] * at.unit));
    }
    ir::ValueId stride = at.stride;
    const uint32_t bits = ir::BitWidth(kernel_.type(stride));
    if (bits != ir::BitWidth(type)) {
        stride = Emit(bits > ir::BitWidth(type) ? ir::Op::kTrunc : ir::Op::kSExt, type, {stride});
    }
    return Emit(ir::Op::kIMul, type, {stride, builder_.Const(type, at.unit)});
}

// Calls `visit` with the place of each of the lane's elements in memory, row after row of what lies
// there.
template <typename Visit>
Status CooperativeMatrices::VisitMatrix(const Type& matrix, const MatrixPlace& at, Visit&& visit) {
    Pointer pointer = at.pointer;
    const Constant* known = at.known;
    const uint64_t element = types_.Get(matrix.element).layout.size;
    using ir::kMatrixSize;
    const uint32_t lanes = kernel_.subgroup_size;
    const ir::ValueId lane = invocation_.SubgroupLane();
    const bool rows_of_lanes = lanes > kMatrixSize;
    places_.AddRuntimeIndex(
        pointer,
        rows_of_lanes ? Emit(ir::Op::kAnd, ir::Type::kI32, {lane, Int(kMatrixSize - 1)}) : lane,
        element);
    const ir::ValueId row =
        rows_of_lanes ? Emit(ir::Op::kLShr, ir::Type::kI32, {lane, Int(4)}) : ir::ValueId{};
    ir::ValueId stride;
    if (known && row.valid()) {
        places_.AddRuntimeIndex(pointer, row, known->bits[0] * at.unit);
    } else if (!known) {
        stride = RowBytes({.pointer = pointer, .unit = at.unit, .stride = at.stride});
        const ir::Type type = places_.OffsetType(pointer);
        pointer.align = std::min(pointer.align,
                                 static_cast<uint32_t>(std::min<uint64_t>(at.unit & -at.unit, 16)));
        if (row.valid()) {
            ir::ValueId number = row;
            if (type == ir::Type::kI64) {
                number = Emit(ir::Op::kZExt, type, {row}, ir::kNoLaneWrap);
            }
            const ir::ValueId start = Emit(ir::Op::kIMul, type, {number, stride});
            pointer.offset = Emit(ir::Op::kIAdd, type, {pointer.offset, start});
        }
    }
    for (uint32_t i = 0; i < matrix.count; ++i) {
        const uint64_t rows = i * lanes / kMatrixSize;
        Pointer place = pointer;
        place.const_offset += i * lanes % kMatrixSize * element;
        if (known) {
            place.const_offset += rows * known->bits[0] * at.unit;
        } else if (rows != 0) {
            const ir::Type type = places_.OffsetType(pointer);
            const ir::ValueId start =
                Emit(ir::Op::kIMul, type, {stride, builder_.Const(type, rows)});
            place.offset = Emit(ir::Op::kIAdd, type, {place.offset, start});
        }
        FORNAX_RETURN_IF_ERROR(visit(place, i));
    }
    return OkStatus();
}

// Operands A and B of f32 are multiplied where they lie, so the emitter is told of the matrix as a
// whole.
Tuple CooperativeMatrices::LoadWholeMatrix(const Type& matrix, const MatrixPlace& at) {
    const ir::ValueId operands[] = {access_.BufferOf(at.pointer),
                                    places_.ByteOffset(at.pointer, at.pointer.const_offset),
                                    RowBytes(at)};
    const std::vector<ir::Type> types(matrix.count, ir::Type::kF32);
    const ir::InstId load = builder_.Append(ir::Op::kMatrixLoad, operands, types,
                                            places_.AlignAt(at.pointer, at.pointer.const_offset));
    return kernel_.inst(load).results;
}

Tuple CooperativeMatrices::TransposeMatrix(const Tuple& tuple) {
    const std::vector<ir::Type> types(tuple.size(), kernel_.type(tuple[0]));
    const ir::InstId inst = builder_.Append(ir::Op::kMatrixTranspose, tuple, types);
    return kernel_.inst(inst).results;
}

Status CooperativeMatrices::MatrixLoad(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, MatrixType(inst, inst.type));
    MatrixPlace at;
    FORNAX_ASSIGN_OR_RETURN(at.pointer, values_.UsePointer(inst, inst[0]));
    FORNAX_RETURN_IF_ERROR(CheckPlace(inst, *type, 1, at));
    const ir::Type scalar = types_.ScalarOf(*type);
    Tuple tuple;
    if (scalar == ir::Type::kF32 && type->use != kAccumulator && !at.pointer.is_volatile &&
        at.pointer.space == Pointer::Space::kBuffer) {
        tuple = LoadWholeMatrix(*type, at);
    } else {
        FORNAX_RETURN_IF_ERROR(VisitMatrix(*type, at, [&](const Pointer& place, size_t) {
            return access_.LoadRun(inst, place, scalar, 1, place.const_offset, tuple);
        }));
    }
    return values_.Define(inst, at.columns ? TransposeMatrix(tuple) : std::move(tuple));
}

Status CooperativeMatrices::MatrixStore(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Value object, values_.Use(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, MatrixType(inst, object.type));
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, values_.UseTuple(inst, inst[1]));
    MatrixPlace at;
    FORNAX_ASSIGN_OR_RETURN(at.pointer, values_.UsePointer(inst, inst[0]));
    FORNAX_RETURN_IF_ERROR(access_.CheckWritable(inst, at.pointer));
    FORNAX_RETURN_IF_ERROR(CheckPlace(inst, *type, 2, at));
    std::vector<Pointer> places;
    FORNAX_RETURN_IF_ERROR(VisitMatrix(*type, at, [&](const Pointer& place, size_t) {
        places.push_back(place);
        return OkStatus();
    }));
    if (at.columns) {
        tuple = TransposeMatrix(tuple);
    }
    for (size_t i = 0; i < places.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(
            access_.StoreRun(inst, places[i], {&tuple[i], 1}, places[i].const_offset));
    }
    return OkStatus();
}

Status CooperativeMatrices::MatrixMulAdd(const Inst& inst) {
    using Mask = spv::CooperativeMatrixOperandsMask;
    std::vector<ir::ValueId> operands;
    const Type* components[3];
    for (uint32_t i = 0; i < 3; ++i) {
        FORNAX_ASSIGN_OR_RETURN(const Value value, values_.Use(inst, inst[i]));
        FORNAX_ASSIGN_OR_RETURN(const Type* type, MatrixType(inst, value.type));
        if (type->use != i) {
            return Invalid(inst, std::string("has a matrix with the use ") + kUseNames[type->use] +
                                     " as its operand " + kUseNames[i]);
        }
        components[i] = &types_.Get(type->element);
        FORNAX_ASSIGN_OR_RETURN(const Tuple tuple, values_.UseTuple(inst, inst[i]));
        operands.insert(operands.end(), tuple.begin(), tuple.end());
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* result, MatrixType(inst, inst.type));
    const Type& accumulator = types_.Get(result->element);
    const ir::Type operand = components[0]->scalar;
    const bool bfloat = components[0]->is_bfloat16;
    const bool integers = operand == ir::Type::kI8;
    const ir::Type wanted = integers ? ir::Type::kI32 : ir::Type::kF32;
    // Not listed, but ggml's flash attention does it: sums that are f16 are f32 for one product.
    const bool half_accumulators = operand == ir::Type::kF16 && components[2]->scalar == operand &&
                                   !components[2]->is_bfloat16 && accumulator.scalar == operand;
    const bool floats = operand == ir::Type::kF16 || operand == ir::Type::kF32;
    if ((!bfloat && !integers && !floats) || components[1]->scalar != operand ||
        components[1]->is_bfloat16 != bfloat || result->use != kAccumulator ||
        (!half_accumulators && (components[2]->scalar != wanted || accumulator.scalar != wanted))) {
        return Unsupported(inst,
                           "multiplies and adds other types than f32, f16 or bfloat16 with sums of "
                           "f32, or 8-bit with sums of 32-bit integers");
    }
    const uint32_t mask = inst.size() > 3 ? inst[3] : 0;
    uint64_t flags = 0;
    auto set_if = [&](bool condition, ir::MatrixFlags flag) {
        if (condition) {
            flags |= flag;
        }
    };
    set_if(bfloat, ir::kMatrixBFloat16);
    set_if(half_accumulators, ir::kMatrixHalfSums);
    // Sums are of binary32, and "the accuracy of floating-point operations on BFloat16KHR values is
    // the same as" of it (SPV_KHR_bfloat16); no f16 gives a denormal there.
    set_if(!integers && modes_.PreservesDenormals(ir::Type::kF32), ir::kMatrixKeepsDenormals);
    if (integers) {
        if (HasBit(mask, Mask::MatrixCSignedComponentsKHR) !=
            HasBit(mask, Mask::MatrixResultSignedComponentsKHR)) {
            return Unsupported(inst,
                               "adds to signed components and gives unsigned ones, or vice versa");
        }
        set_if(HasBit(mask, Mask::MatrixASignedComponentsKHR), ir::kMatrixSignedA);
        set_if(HasBit(mask, Mask::MatrixBSignedComponentsKHR), ir::kMatrixSignedB);
        set_if(HasBit(mask, Mask::MatrixCSignedComponentsKHR), ir::kMatrixSignedC);
        set_if(HasBit(mask, Mask::SaturatingAccumulationKHR), ir::kMatrixSaturating);
    }
    if (half_accumulators) {
        for (size_t i = 2 * size_t{result->count}; i < operands.size(); ++i) {
            operands[i] = builder_.Emit(ir::Op::kFConvert, wanted, {operands[i]});
        }
    }
    const std::vector<ir::Type> types(result->count, wanted);
    const ir::InstId id = builder_.Append(ir::Op::kMatrixMulAdd, operands, types, flags);
    Tuple accumulators = kernel_.inst(id).results;
    if (half_accumulators) {
        for (ir::ValueId& value : accumulators) {
            value = builder_.Emit(ir::Op::kFConvert, operand, {value});
        }
    }
    return values_.Define(inst, std::move(accumulators));
}

Status CooperativeMatrices::MatrixLength(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, MatrixType(inst, inst[0]));
    return values_.Define(inst, {Int(type->count)});
}

}  // namespace fornax::kernel::spirv
