// The shapes of what pure operations compute (shapes.h).
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/shapes.h"
#include "compiler/kernel/index/upper_bound.h"

namespace fornax::kernel {

using ir::Op;
using shape_rules::TypeMax;

namespace {

uint32_t IntegerBits(const ir::Kernel& kernel, ir::ValueId value) {
    ir::Type type = kernel.type(value);
    return ir::IsInteger(type) ? ir::BitWidth(type) : 64;
}

}  // namespace

Shape ShapeAnalysis::PureShape(const ir::Instruction& inst) const {
    Shape shape = ScalarShape(inst);
    if (!shape.varying() || lanes_ == 1) {
        return shape;
    }
    std::vector<const Shape*> operands;
    for (ir::ValueId operand : inst.operands) {
        operands.push_back(&shapes_[operand.index]);
    }
    shape.groups = shape_rules::CommonGroups(operands, lanes_);
    if (inst.op != Op::kIAdd) {
        return shape;
    }
    for (const size_t of : {0, 1}) {
        const Shape& pattern = *operands[of];
        const Shape& varying = *operands[1 - of];
        if (pattern.pattern() && varying.varying() && !varying.groups.empty()) {
            Shape rows = shape_rules::AddGroups(pattern, inst.operands[1 - of], varying);
            rows.max = shape.max;
            return rows;
        }
    }
    return shape;
}

// What the operands' shapes say of a result that need not be in a vector register.
Shape ShapeAnalysis::ScalarShape(const ir::Instruction& inst) const {
    ir::ValueId result = inst.results[0];
    ir::Type type = kernel_.type(result);
    if (inst.op == Op::kConst || inst.op == Op::kUndef) {
        Shape shape;
        shape.kind = Shape::Kind::kUniform;
        shape.workgroup = true;
        shape.max = inst.imm;
        shape.base_zeros = static_cast<uint8_t>(inst.imm == 0 ? 64 : std::countr_zero(inst.imm));
        return shape;
    }

    bool uniform = true;
    bool scalar = true;
    bool workgroup = true;
    for (ir::ValueId operand : inst.operands) {
        uniform &= shapes_[operand.index].uniform();
        scalar &= shapes_[operand.index].scalar();
        workgroup &= shapes_[operand.index].workgroup;
    }
    Shape generic = Varying(result);
    if (uniform) {
        generic.kind = Shape::Kind::kUniform;
        generic.workgroup = workgroup;
    }
    if (ir::IsInteger(type)) {
        generic.max = UpperBoundOfResult(
            kernel_, inst, result, [&](size_t i) { return shapes_[inst.operands[i].index].max; });
    }
    if (inst.op == Op::kSelect && ir::IsInteger(type)) {
        const Shape& a = shapes_[inst.operands[1].index];
        const Shape& b = shapes_[inst.operands[2].index];
        if (shapes_[inst.operands[0].index].uniform() && !uniform && a.scalar() && a.SameLanes(b)) {
            const uint64_t max = generic.max;
            generic = a;
            generic.max = max;
            generic.workgroup = workgroup;
        }
        generic.base_zeros = generic.varying() ? 0 : std::min(a.base_zeros, b.base_zeros);
        return generic;
    }
    if (inst.op == Op::kULt || inst.op == Op::kSLt || inst.op == Op::kULe || inst.op == Op::kSLe) {
        // x < bound, bound <= x: no lane differs if the bound is a multiple of what the lanes add.
        const bool less = inst.op == Op::kULt || inst.op == Op::kSLt;
        const Shape& x = shapes_[inst.operands[less ? 0 : 1].index];
        const Shape& bound = shapes_[inst.operands[less ? 1 : 0].index];
        const bool is_signed = inst.op == Op::kSLt || inst.op == Op::kSLe;
        const uint64_t sign = uint64_t{1} << (IntegerBits(kernel_, inst.operands[0]) - 1);
        if (x.pattern() && bound.uniform() && shape_rules::Disjoint(x) &&
            (!is_signed || (x.max < sign && bound.max < sign)) &&
            (static_cast<uint64_t>(*std::max_element(x.offsets.begin(), x.offsets.end())) >>
             std::min<uint32_t>(bound.base_zeros, 63)) == 0) {
            generic.kind = Shape::Kind::kUniform;
            generic.workgroup = workgroup;
        }
        return generic;
    }
    if (!ir::IsInteger(type) || inst.operands.empty() ||
        !ir::IsInteger(kernel_.type(inst.operands[0]))) {
        return generic;
    }

    const Shape& a = shapes_[inst.operands[0].index];
    const uint32_t bits = IntegerBits(kernel_, inst.operands[0]);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    auto keep = [&](Shape shape) {
        // The rules know offsets; a workgroup-wide base needs every operand's.
        shape.workgroup = !shape.varying() && workgroup;
        shape.max = generic.max;
        if (shape.varying()) {
            shape.base_zeros = 0;
        }
        return shape;
    };
    if (inst.operands.size() == 1) {
        switch (inst.op) {
            case Op::kTrunc:
            case Op::kZExt:
            case Op::kSExt: {
                if (a.has_rows() && a.groups.empty() && a.narrow_scale == 0 &&
                    inst.op != Op::kTrunc && (inst.flags & ir::kNoLaneWrap)) {
                    Shape shape = a;
                    shape.narrow_scale = 1;
                    return keep(std::move(shape));
                }
                if (!a.pattern()) {
                    return generic;
                }
                // Widening keeps the pattern only where no lane wraps: the sum stays in range, or
                // the offsets fill bits that the base leaves free.
                int64_t low = *std::min_element(a.offsets.begin(), a.offsets.end());
                int64_t high = *std::max_element(a.offsets.begin(), a.offsets.end());
                uint64_t limit = inst.op == Op::kSExt ? sign - 1 : TypeMax(bits);
                bool no_wrap =
                    low == 0 && a.max <= limit && static_cast<uint64_t>(high) <= limit - a.max;
                const bool free_bits =
                    shape_rules::Disjoint(a) && static_cast<uint64_t>(high) < sign;
                if (inst.op == Op::kTrunc || no_wrap || free_bits ||
                    (inst.flags & ir::kNoLaneWrap)) {
                    Shape shape = a;
                    for (int64_t& offset : shape.offsets) {
                        offset = shape_rules::Wrap(offset, ir::BitWidth(type));
                    }
                    return keep(shape_rules::Normalize(std::move(shape)));
                }
                return generic;
            }
            case Op::kBitcast:
                return ir::BitWidth(type) == bits ? keep(a) : generic;
            default:
                return generic;
        }
    }

    const Shape& b = shapes_[inst.operands[1].index];
    uint64_t c = 0;
    const bool is_const = inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &c);
    switch (inst.op) {
        case Op::kIAdd:
            return keep(shape_rules::Add(a, b, bits, false));
        case Op::kISub:
            return keep(shape_rules::Add(a, b, bits, true));
        case Op::kIMul: {
            if (is_const) {
                return keep(shape_rules::MulConst(a, c, bits));
            }
            if (a.pattern() && b.uniform()) {
                return keep(shape_rules::MulUniform(a, inst.operands[1], b));
            }
            if (a.uniform() && b.pattern()) {
                return keep(shape_rules::MulUniform(b, inst.operands[0], a));
            }
            if (generic.uniform()) {
                generic.base_zeros =
                    static_cast<uint8_t>(std::min(64, int{a.base_zeros} + int{b.base_zeros}));
            }
            return generic;
        }
        case Op::kShl:
            if (is_const && c < bits) {
                return keep(shape_rules::MulConst(a, uint64_t{1} << c, bits));
            }
            return generic;
        case Op::kLShr:
            if (is_const && c < bits) {
                return keep(shape_rules::ShiftRightConst(a, static_cast<uint32_t>(c)));
            }
            return generic;
        case Op::kAShr:
            if (is_const && c < bits && a.max < sign) {
                return keep(shape_rules::ShiftRightConst(a, static_cast<uint32_t>(c)));
            }
            return generic;
        case Op::kUDiv:
        case Op::kSDiv:
            if (!is_const || c == 0 || c >= sign || (inst.op == Op::kSDiv && a.max >= sign)) {
                return generic;
            }
            if (std::has_single_bit(c)) {
                return keep(
                    shape_rules::ShiftRightConst(a, static_cast<uint32_t>(std::countr_zero(c))));
            }
            return generic;
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            if (!is_const || c == 0 || c >= sign || (inst.op != Op::kURem && a.max >= sign)) {
                return generic;
            }
            if (std::has_single_bit(c)) {
                return keep(shape_rules::AndConst(a, c - 1));
            }
            return generic;
        case Op::kAnd:
            if (is_const) {
                return keep(shape_rules::AndConst(a, c));
            }
            return generic;
        case Op::kOr:
        case Op::kXor: {
            // One operand's bits all lie below the other's: the operation adds.
            auto below = [&](const Shape& low, const Shape& top) {
                uint32_t zeros = top.base_zeros;
                auto trailing = [&](int64_t at) {
                    const auto bits_of = static_cast<uint64_t>(at);
                    zeros = std::min(zeros, static_cast<uint32_t>(std::countr_zero(bits_of)));
                };
                std::for_each(top.offsets.begin(), top.offsets.end(), trailing);
                std::for_each(top.rows.begin(), top.rows.end(), trailing);
                return zeros >= 64 || (low.max >> zeros) == 0;
            };
            if (!uniform && scalar && (below(a, b) || below(b, a))) {
                if (b.max <= UINT64_MAX - a.max) {
                    generic.max = std::min(generic.max, a.max + b.max);
                }
                return keep(shape_rules::Add(a, b, bits, false));
            }
            return generic;
        }
        default:
            return generic;
    }
}

}  // namespace fornax::kernel
