// Values by type: constants, what is there already, composites, conversions.
#include "compiler/kernel/fuzz/generator_values.h"

#include "compiler/kernel/fuzz/generator_arithmetic.h"
#include "compiler/kernel/fuzz/generator_variables.h"

#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::kernel::fuzz {

Id ValueGenerator::Leaf(ValueType type) {
    uint32_t choice = Below(100);
    if (choice < 45) {
        if (auto id = Pick(type)) {
            return *id;
        }
    }
    if (choice < 75) {
        if (auto id = access_.LoadOf(type)) {
            return *id;
        }
    }
    if (choice < 85 && type.rows == 1) {
        for (auto [spec_type, id] : state_.spec_constants) {
            if (spec_type == type && Chance(60)) {
                return id;
            }
        }
    }
    return RandomConstant(type);
}

Id ValueGenerator::Value(ValueType type, uint32_t depth) {
    if (type.columns > 1) {
        return arithmetic_.MatrixValue(type, depth);
    }
    if (depth == 0) {
        return Leaf(type);
    }
    uint32_t outer = state_.depth;
    state_.depth = depth - 1;
    uint32_t choice = Below(100);
    Id id;
    if (choice < 15) {
        id = Leaf(type);
    } else if (choice < 22) {
        id = Construct(type);
    } else if (choice < 28) {
        id = Component(type);
    } else if (choice < 33) {
        id = Selected(type);
    } else if (choice < 37 && type.rows > 1) {
        id = Shuffled(type);
    } else if (type.kind == Kind::kBool) {
        id = arithmetic_.BoolValue(type);
    } else if (choice < 50) {
        id = Converted(type);
    } else if (IsFloat(type.kind)) {
        id = arithmetic_.FloatValue(type);
    } else {
        id = arithmetic_.IntegerValue(type);
    }
    state_.depth = outer;
    return id;
}

Id ValueGenerator::Condition() {
    uint32_t depth = 1 + Below(2);
    return Value({Kind::kBool, 1, 1}, depth);
}

// A word that all invocations of a workgroup agree on.
Id ValueGenerator::UniformWord() {
    constexpr ValueType kUint{Kind::kU32, 1, 1};
    Id word = 0;
    uint32_t choice = Below(6);
    if (choice < 2 && !state_.uniform_words.empty()) {
        word = state_.uniform_words[Below(static_cast<uint32_t>(state_.uniform_words.size()))];
    }
    for (auto [type, id] : state_.spec_constants) {
        if (choice == 2 && type == kUint) {
            word = id;
        }
    }
    if (choice == 3 && state_.push_variable) {
        Id pointer =
            b_.Emit(Op::OpAccessChain, b_.Pointer(spv::StorageClass::PushConstant, b_.Type(kUint)),
                    {state_.push_variable, b_.Uint(0)});
        word = b_.Emit(Op::OpLoad, b_.Type(kUint), {pointer});
    }
    if (choice == 4) {
        const Variable& input = state_.globals[0];
        const auto last = static_cast<uint32_t>(input.type.parts.size() - 1);
        const ValueType type =
            state_.wide_indexing && Chance(50) ? ValueType{Kind::kU64, 1, 1} : kUint;
        word = b_.Emit(Op::OpArrayLength, b_.Type(type), {input.id, last});
        if (type != kUint) {
            word = Emit(Op::OpUConvert, kUint, {word});
        }
    }
    if (!word) {
        Id vector = b_.Emit(Op::OpLoad, b_.Type({Kind::kU32, 3, 1}),
                            {Chance(80) ? state_.workgroup_id : state_.num_workgroups});
        word = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {vector, Below(2)});
    }
    if (Chance(80)) {
        return word;
    }
    // The same, but not for who only looks at where it comes from.
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
    Id zero = Emit(Op::OpShiftRightLogical, kUint, {local, b_.Uint(6)});
    static_assert(kMaxInvocations <= 64);
    return Emit(Op::OpIAdd, kUint, {word, zero});
}

Id ValueGenerator::UniformCondition() {
    constexpr ValueType kUint{Kind::kU32, 1, 1};
    constexpr ValueType kBool{Kind::kBool, 1, 1};
    Id word = UniformWord();
    if (Chance(50)) {
        word = Emit(Op::OpBitwiseAnd, kUint, {word, b_.Uint(1 + Below(3))});
    }
    static constexpr Op kCompare[] = {Op::OpIEqual, Op::OpINotEqual, Op::OpULessThan,
                                      Op::OpUGreaterThanEqual};
    const Op compare = kCompare[Below(4)];
    Id condition = Emit(compare, kBool, {word, b_.Uint(Below(3))});
    if (Chance(80)) {
        return condition;
    }
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
    Id always = Emit(Op::OpULessThan, kBool, {local, b_.Uint(state_.module.invocations)});
    return Emit(Op::OpLogicalAnd, kBool, {condition, always});
}

Id ValueGenerator::Masked(ValueType type, uint64_t mask) {
    return Emit(Op::OpBitwiseAnd, type, {Any(type), b_.Splat(type, mask)});
}

Id ValueGenerator::Construct(ValueType type) {
    if (type.rows == 1) {
        return Component(type);
    }
    std::vector<Id> parts;
    uint32_t left = type.rows;
    while (left > 0) {
        // Vectors of fewer components may stand for several.
        uint8_t rows =
            static_cast<uint8_t>(left >= 2 && left < type.rows + 0u && Chance(40) ? 2 : 1);
        if (left == type.rows && left > 2 && Chance(40)) {
            rows = 2;
        }
        parts.push_back(Any(type.WithRows(rows)));
        left -= rows;
    }
    return b_.Emit(Op::OpCompositeConstruct, b_.Type(type), parts);
}

// A component of a vector, or a vector with one of its components changed.
Id ValueGenerator::Component(ValueType type) {
    constexpr ValueType kUint{Kind::kU32, 1, 1};
    auto index = [&](uint32_t rows) {
        ValueType index_type = Chance(70) ? kUint : ValueType{AnyIntKind(), 1, 1};
        Id mask = b_.Constant(index_type.kind, rows == 3 ? 1 : rows - 1);
        return Emit(Op::OpBitwiseAnd, index_type, {Any(index_type), mask});
    };
    if (type.rows > 1) {
        Id vector = Any(type);
        Id scalar = Any(type.Scalar());
        if (Chance(50)) {
            return b_.Emit(Op::OpCompositeInsert, b_.Type(type),
                           {scalar, vector, Below(type.rows)});
        }
        return b_.Emit(Op::OpVectorInsertDynamic, b_.Type(type),
                       {vector, scalar, index(type.rows)});
    }
    const uint8_t rows = static_cast<uint8_t>(2 + Below(3));
    Id vector = Any(type.WithRows(rows));
    if (Chance(60)) {
        return b_.Emit(Op::OpCompositeExtract, b_.Type(type), {vector, Below(rows)});
    }
    return Emit(Op::OpVectorExtractDynamic, type, {vector, index(rows)});
}

Id ValueGenerator::Shuffled(ValueType type) {
    const auto rows_a = static_cast<uint8_t>(2 + Below(3));
    const auto rows_b = static_cast<uint8_t>(2 + Below(3));
    std::vector<uint32_t> operands = {Any(type.WithRows(rows_a)), Any(type.WithRows(rows_b))};
    for (uint32_t i = 0; i < type.rows; ++i) {
        operands.push_back(Below(rows_a + rows_b));
    }
    return b_.Emit(Op::OpVectorShuffle, b_.Type(type), operands);
}

Id ValueGenerator::Selected(ValueType type) {
    // A scalar condition for vectors came with version 1.4 (OpSelect).
    uint8_t rows = type.rows > 1 && b_.version() >= 0x10400 && Chance(30) ? 1 : type.rows;
    Id condition = Any({Kind::kBool, rows, 1});
    return Emit(Op::OpSelect, type, {condition, Any(type), Any(type)});
}

Id ValueGenerator::Converted(ValueType type) {
    const uint32_t bits = BitsOf(type.kind);
    if (IsFloat(type.kind)) {
        uint32_t choice = Below(4);
        if (choice == 0) {
            Kind from = AnyFloatKind();
            if (from != type.kind) {
                return Emit(Op::OpFConvert, type, {Any(type.WithKind(from))});
            }
        }
        if (choice == 1 && !state_.exact) {
            Kind from = IntKind(bits, Chance(50));
            for (Kind kind : state_.kinds) {
                if (kind == from) {
                    return Emit(Op::OpBitcast, type, {Any(type.WithKind(from))});
                }
            }
        }
        ValueType from = type.WithKind(AnyIntKind());
        // f16 reaches 65504.
        Id value = state_.exact || bits == 16 ? Masked(from, 15) : Any(from);
        return Emit(IsSigned(from.kind) ? Op::OpConvertSToF : Op::OpConvertUToF, type, {value});
    }
    uint32_t choice = Below(6);
    if (choice == 0) {
        return Emit(Op::OpSelect, type,
                    {Any(type.WithKind(Kind::kBool)), b_.Splat(type, 1), b_.Splat(type, 0)});
    }
    if (choice == 1) {
        // In the range of every integer: -100 to 100, or 0 to 100.
        ValueType from = type.WithKind(AnyFloatKind());
        Id value = Any(from);
        const bool is_signed = IsSigned(type.kind);
        Id low = b_.Splat(from, FloatBits(from.kind, is_signed ? -100 : 0));
        Id high = b_.Splat(from, FloatBits(from.kind, 100));
        ValueType test = type.WithKind(Kind::kBool);
        value = Emit(Op::OpSelect, from,
                     {Emit(Op::OpFOrdLessThanEqual, test, {low, value}), value, low});
        value = Emit(Op::OpSelect, from,
                     {Emit(Op::OpFOrdGreaterThanEqual, test, {high, value}), value, high});
        return Emit(is_signed ? Op::OpConvertFToS : Op::OpConvertFToU, type, {value});
    }
    if (choice == 2) {
        // The other signedness of the same width, or a float's bits.
        for (Kind kind : state_.kinds) {
            if (IsFloat(kind) && BitsOf(kind) == bits && Chance(50)) {
                ValueType from = type.WithKind(kind);
                return Emit(Op::OpBitcast, type, {Observable(from, Any(from))});
            }
        }
        Kind other = IntKind(bits, !IsSigned(type.kind));
        return Emit(Op::OpBitcast, type, {Any(type.WithKind(other))});
    }
    if (choice == 3 && bits == 32 && type.rows == 1 && !state_.exact && Chance(30)) {
        ValueType from{Kind::kU16, 2, 1};
        for (Kind kind : state_.kinds) {
            if (kind == Kind::kU16) {
                return Emit(Op::OpBitcast, type, {Any(from)});
            }
        }
    }
    ValueType from = type.WithKind(AnyIntKind());
    if (BitsOf(from.kind) == bits) {
        return Emit(Op::OpNot, type, {Any(type)});
    }
    // UConvert's result has no sign.
    return Emit(IsSigned(type.kind) ? Op::OpSConvert : Op::OpUConvert, type, {Any(from)});
}

// NaN's bits and, where others compare, the sign of zero are not promised. Compilers may fold a
// selection by `x == 0` and a conversion to integers and back; not a sum between.
Id ValueGenerator::Observable(ValueType type, Id value) {
    if (state_.exact) {
        ValueType whole = type.WithKind(Kind::kI32);
        Id offset = b_.Splat(type, FloatBits(type.kind, 128));
        value = Emit(Op::OpFMul, type, {value, b_.Splat(type, FloatBits(type.kind, 4))});
        value = Emit(Op::OpConvertFToS, whole, {value});
        value = Emit(Op::OpIAdd, whole, {value, b_.Splat(whole, 128)});
        value = Emit(Op::OpFSub, type, {Emit(Op::OpConvertSToF, type, {value}), offset});
        return Emit(Op::OpFMul, type, {value, b_.Splat(type, FloatBits(type.kind, 0.25))});
    }
    ValueType test = type.WithKind(Kind::kBool);
    return Emit(Op::OpSelect, type, {Emit(Op::OpIsNan, test, {value}), b_.Splat(type, 0), value});
}

// Any bits to a whole number of 0 to 15.
Id ValueGenerator::Fit(ValueType type, Id value) {
    if (!state_.exact || !IsFloat(type.kind)) {
        return value;
    }
    ValueType test = type.WithKind(Kind::kBool);
    Id low =
        Emit(Op::OpFOrdGreaterThanEqual, test, {value, b_.Splat(type, FloatBits(type.kind, 1))});
    Id high = Emit(Op::OpFOrdLessThan, test, {value, b_.Splat(type, FloatBits(type.kind, 16))});
    Id inside = Emit(Op::OpLogicalAnd, test, {low, high});
    Id whole = Glsl(GLSLstd450Floor, type, {value});
    return Emit(Op::OpSelect, type, {inside, whole, b_.Splat(type, FloatBits(type.kind, 3))});
}

Id ValueGenerator::Word(ValueType type, Id value) {
    constexpr ValueType kUint{Kind::kU32, 1, 1};
    if (type.columns > 1 || type.rows > 1) {
        const ValueType part = type.columns > 1 ? type.Column() : type.Scalar();
        const uint32_t count = type.columns > 1 ? type.columns : type.rows;
        Id sum = b_.Uint(5);
        for (uint32_t i = 0; i < count; ++i) {
            sum = Fold(sum, Word(part, b_.Emit(Op::OpCompositeExtract, b_.Type(part), {value, i})));
        }
        return sum;
    }
    const uint32_t bits = BitsOf(type.kind);
    if (type.kind == Kind::kBool) {
        return Emit(Op::OpSelect, kUint, {value, b_.Uint(1), b_.Uint(0)});
    }
    if (IsFloat(type.kind)) {
        // The integer of the width may be one that the module does not use; f64 as two words.
        value = Observable(type, value);
        if (bits == 32) {
            return Emit(Op::OpBitcast, kUint, {value});
        }
        if (bits == 64) {
            ValueType pair{Kind::kU32, 2, 1};
            return Word(pair, Emit(Op::OpBitcast, pair, {value}));
        }
        ValueType wide{Kind::kF32, 1, 1};
        return Emit(Op::OpBitcast, kUint, {Emit(Op::OpFConvert, wide, {value})});
    }
    if (bits == 64) {
        Id high = Emit(Op::OpShiftRightLogical, type, {value, b_.Uint(32)});
        return Fold(Emit(Op::OpUConvert, kUint, {value}), Emit(Op::OpUConvert, kUint, {high}));
    }
    if (bits == 32) {
        return IsSigned(type.kind) ? Emit(Op::OpBitcast, kUint, {value}) : value;
    }
    return Emit(Op::OpUConvert, kUint, {value});
}

// A value fit for memory that others see.
Id ValueGenerator::Observable(ValueType type) {
    Id value = Value(type, 1);
    return IsFloat(type.kind) ? Observable(type, value) : value;
}

}  // namespace fornax::kernel::fuzz
