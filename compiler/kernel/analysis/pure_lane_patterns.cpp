// The patterns of what pure operations compute (lane_patterns.h).
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/index/upper_bound.h"

namespace fornax::kernel {

using ir::Op;
using lane_patterns::TypeMax;

namespace {

uint32_t IntegerBits(const ir::Kernel& kernel, ir::ValueId value) {
    ir::Type type = kernel.type(value);
    return ir::IsInteger(type) ? ir::BitWidth(type) : 64;
}

}  // namespace

LanePattern LaneAnalysis::PurePattern(const ir::Instruction& inst) const {
    LanePattern pattern = ScalarPattern(inst);
    if (!pattern.varying() || lanes_ == 1) {
        return pattern;
    }
    std::vector<const LanePattern*> operands;
    for (ir::ValueId operand : inst.operands) {
        operands.push_back(&patterns_[operand.index]);
    }
    pattern.groups = lane_patterns::CommonGroups(operands, lanes_);
    if (inst.op != Op::kIAdd) {
        return pattern;
    }
    for (const size_t of : {0, 1}) {
        const LanePattern& pattern = *operands[of];
        const LanePattern& varying = *operands[1 - of];
        if (pattern.constant_offsets() && varying.varying() && !varying.groups.empty()) {
            LanePattern rows = lane_patterns::AddGroups(pattern, inst.operands[1 - of], varying);
            rows.max = pattern.max;
            return rows;
        }
    }
    return pattern;
}

// What the operands' patterns say of a result that need not be in a vector register.
LanePattern LaneAnalysis::ScalarPattern(const ir::Instruction& inst) const {
    ir::ValueId result = inst.results[0];
    ir::Type type = kernel_.type(result);
    if (inst.op == Op::kConst || inst.op == Op::kUndef) {
        LanePattern pattern;
        pattern.kind = LanePattern::Kind::kUniform;
        pattern.workgroup = true;
        pattern.max = inst.imm;
        pattern.base_zeros = static_cast<uint8_t>(inst.imm == 0 ? 64 : std::countr_zero(inst.imm));
        return pattern;
    }

    bool uniform = true;
    bool scalar = true;
    bool workgroup = true;
    for (ir::ValueId operand : inst.operands) {
        uniform &= patterns_[operand.index].uniform();
        scalar &= patterns_[operand.index].scalar();
        workgroup &= patterns_[operand.index].workgroup;
    }
    LanePattern generic = Varying(result);
    if (uniform) {
        generic.kind = LanePattern::Kind::kUniform;
        generic.workgroup = workgroup;
    }
    if (ir::IsInteger(type)) {
        generic.max = UpperBoundOfResult(
            kernel_, inst, result, [&](size_t i) { return patterns_[inst.operands[i].index].max; });
    }
    if (inst.op == Op::kSelect && ir::IsInteger(type)) {
        const LanePattern& a = patterns_[inst.operands[1].index];
        const LanePattern& b = patterns_[inst.operands[2].index];
        if (patterns_[inst.operands[0].index].uniform() && !uniform && a.scalar() &&
            a.SameLanes(b)) {
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
        const LanePattern& x = patterns_[inst.operands[less ? 0 : 1].index];
        const LanePattern& bound = patterns_[inst.operands[less ? 1 : 0].index];
        const bool is_signed = inst.op == Op::kSLt || inst.op == Op::kSLe;
        const uint64_t sign = uint64_t{1} << (IntegerBits(kernel_, inst.operands[0]) - 1);
        if (x.constant_offsets() && bound.uniform() && lane_patterns::Disjoint(x) &&
            (!is_signed || (x.max < sign && bound.max < sign)) &&
            (static_cast<uint64_t>(*std::max_element(x.offsets.begin(), x.offsets.end())) >>
             std::min<uint32_t>(bound.base_zeros, 63)) == 0) {
            generic.kind = LanePattern::Kind::kUniform;
            generic.workgroup = workgroup;
        }
        return generic;
    }
    if (!ir::IsInteger(type) || inst.operands.empty() ||
        !ir::IsInteger(kernel_.type(inst.operands[0]))) {
        return generic;
    }

    const LanePattern& a = patterns_[inst.operands[0].index];
    const uint32_t bits = IntegerBits(kernel_, inst.operands[0]);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    auto keep = [&](LanePattern pattern) {
        // The rules know offsets; a workgroup-wide base needs every operand's.
        pattern.workgroup = !pattern.varying() && workgroup;
        pattern.max = generic.max;
        if (pattern.varying()) {
            pattern.base_zeros = 0;
        }
        return pattern;
    };
    if (inst.operands.size() == 1) {
        switch (inst.op) {
            case Op::kTrunc:
            case Op::kZExt:
            case Op::kSExt: {
                if (a.has_rows() && a.groups.empty() && a.narrow_scale == 0 &&
                    inst.op != Op::kTrunc && (inst.flags & ir::kNoLaneWrap)) {
                    LanePattern pattern = a;
                    pattern.narrow_scale = 1;
                    return keep(std::move(pattern));
                }
                if (!a.constant_offsets()) {
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
                    lane_patterns::Disjoint(a) && static_cast<uint64_t>(high) < sign;
                if (inst.op == Op::kTrunc || no_wrap || free_bits ||
                    (inst.flags & ir::kNoLaneWrap)) {
                    LanePattern pattern = a;
                    for (int64_t& offset : pattern.offsets) {
                        offset = lane_patterns::Wrap(offset, ir::BitWidth(type));
                    }
                    return keep(lane_patterns::Normalize(std::move(pattern)));
                }
                return generic;
            }
            case Op::kBitcast:
                return ir::BitWidth(type) == bits ? keep(a) : generic;
            default:
                return generic;
        }
    }

    const LanePattern& b = patterns_[inst.operands[1].index];
    uint64_t c = 0;
    const bool is_const = inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &c);
    switch (inst.op) {
        case Op::kIAdd:
            return keep(lane_patterns::Add(a, b, bits, false));
        case Op::kISub:
            return keep(lane_patterns::Add(a, b, bits, true));
        case Op::kIMul: {
            if (is_const) {
                return keep(lane_patterns::MulConst(a, c, bits));
            }
            if (a.constant_offsets() && b.uniform()) {
                return keep(lane_patterns::MulUniform(a, inst.operands[1], b));
            }
            if (a.uniform() && b.constant_offsets()) {
                return keep(lane_patterns::MulUniform(b, inst.operands[0], a));
            }
            if (generic.uniform()) {
                generic.base_zeros =
                    static_cast<uint8_t>(std::min(64, int{a.base_zeros} + int{b.base_zeros}));
            }
            return generic;
        }
        case Op::kShl:
            if (is_const && c < bits) {
                return keep(lane_patterns::MulConst(a, uint64_t{1} << c, bits));
            }
            return generic;
        case Op::kLShr:
            if (is_const && c < bits) {
                return keep(lane_patterns::ShiftRightConst(a, static_cast<uint32_t>(c)));
            }
            return generic;
        case Op::kAShr:
            if (is_const && c < bits && a.max < sign) {
                return keep(lane_patterns::ShiftRightConst(a, static_cast<uint32_t>(c)));
            }
            return generic;
        case Op::kUDiv:
        case Op::kSDiv:
            if (!is_const || c == 0 || c >= sign || (inst.op == Op::kSDiv && a.max >= sign)) {
                return generic;
            }
            if (std::has_single_bit(c)) {
                return keep(
                    lane_patterns::ShiftRightConst(a, static_cast<uint32_t>(std::countr_zero(c))));
            }
            return generic;
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            if (!is_const || c == 0 || c >= sign || (inst.op != Op::kURem && a.max >= sign)) {
                return generic;
            }
            if (std::has_single_bit(c)) {
                return keep(lane_patterns::AndConst(a, c - 1));
            }
            return generic;
        case Op::kAnd:
            if (is_const) {
                return keep(lane_patterns::AndConst(a, c));
            }
            return generic;
        case Op::kOr:
        case Op::kXor: {
            // One operand's bits all lie below the other's: the operation adds.
            auto below = [&](const LanePattern& low, const LanePattern& top) {
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
                return keep(lane_patterns::Add(a, b, bits, false));
            }
            return generic;
        }
        default:
            return generic;
    }
}

}  // namespace fornax::kernel
