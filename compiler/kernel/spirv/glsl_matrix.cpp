// Determinant and MatrixInverse of GLSL.std.450, by cofactors; those of f16 are computed in f32.
#include <spirv/unified1/GLSL.std.450.h>

#include "compiler/kernel/spirv/glsl_std_450.h"

namespace fornax::kernel::spirv {

namespace {

// A square matrix as indices into its tuple, so that minors are made without copying values.
using Square = std::vector<std::vector<ir::ValueId>>;  // [column][row]

Square Minor(const Square& matrix, size_t column, size_t row) {
    Square minor;
    for (size_t c = 0; c < matrix.size(); ++c) {
        if (c == column) {
            continue;
        }
        auto& kept = minor.emplace_back();
        for (size_t r = 0; r < matrix.size(); ++r) {
            if (r != row) {
                kept.push_back(matrix[c][r]);
            }
        }
    }
    return minor;
}

}  // namespace

Status GlslInstructions::GlslMatrix(const Inst& inst, uint32_t number, const Tuple& a) {
    size_t size = 1;
    while (size * size < a.size()) {
        ++size;
    }
    if (size < 2 || size * size != a.size()) {
        return Invalid(inst, "has an operand that is no square matrix");
    }
    // Cofactors are small differences of large products, of which f16 would keep few digits.
    const ir::Type result_type = kernel_.type(a[0]);
    const ir::Type type = result_type == ir::Type::kF16 ? ir::Type::kF32 : result_type;
    auto converted = [&](ir::Type to, ir::ValueId value) {
        return type == result_type ? value : Emit(ir::Op::kFConvert, to, {value});
    };
    const uint8_t flags = FloatFlags(inst.result);
    auto binary = [&](ir::Op op, ir::ValueId x, ir::ValueId y) {
        return Emit(op, type, {x, y}, flags);
    };
    auto determinant = [&](auto& self, const Square& matrix) -> ir::ValueId {
        if (matrix.size() == 1) {
            return matrix[0][0];
        }
        ir::ValueId sum;
        for (size_t c = 0; c < matrix.size(); ++c) {
            ir::ValueId part = binary(ir::Op::kFMul, matrix[c][0], self(self, Minor(matrix, c, 0)));
            if (c == 0) {
                sum = part;
            } else {
                sum = binary(c % 2 == 0 ? ir::Op::kFAdd : ir::Op::kFSub, sum, part);
            }
        }
        return sum;
    };
    Square matrix(size);
    for (size_t c = 0; c < size; ++c) {
        for (size_t r = 0; r < size; ++r) {
            matrix[c].push_back(converted(type, a[c * size + r]));
        }
    }
    ir::ValueId whole = determinant(determinant, matrix);
    if (number == GLSLstd450Determinant) {
        return values_.Define(inst, {converted(result_type, whole)});
    }
    // Entry (column c, row r) of the inverse is the cofactor of (column r, row c) over the
    // determinant.
    ir::ValueId scale = binary(ir::Op::kFDiv, Float(type, 1), whole);
    Tuple result;
    for (size_t c = 0; c < size; ++c) {
        for (size_t r = 0; r < size; ++r) {
            ir::ValueId cofactor = determinant(determinant, Minor(matrix, r, c));
            if ((c + r) % 2 != 0) {
                cofactor = Emit(ir::Op::kFNeg, type, {cofactor});
            }
            result.push_back(converted(result_type, binary(ir::Op::kFMul, cofactor, scale)));
        }
    }
    return values_.Define(inst, std::move(result));
}

}  // namespace fornax::kernel::spirv
