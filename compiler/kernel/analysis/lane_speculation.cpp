// One rule an operation: how its result's lanes probably differ, and what is assumed for that.
#include "compiler/kernel/analysis/lane_speculation.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <utility>

namespace fornax::kernel {

using ir::Op;
using Kind = Assumption::Kind;
using Base = Speculation::Base;

namespace {

constexpr uint32_t kMaxValues = 96;
constexpr int64_t kMaxOffset = int64_t{1} << 30;
constexpr int64_t kMaxRow = 1 << 12;

using lane_forms::AreRows;
using lane_forms::Divided;
using lane_forms::Each;
using lane_forms::kLeastLanesOfARow;
using lane_forms::kMaxScale;
using lane_forms::Lanes;
using lane_forms::Multiplied;
using lane_forms::Remainder;
using lane_forms::Sum;
using lane_forms::WithoutRows;
using Found = std::optional<Speculation>;

// What EmitPureOp() computes: loads of constants are as pure, but not of their operands alone.
bool IsArithmetic(const ir::Instruction& inst) {
    return ir::HasProperty(inst.op, ir::kPure) && inst.op != Op::kIf && !inst.operands.empty() &&
           inst.op != Op::kLoadDescriptor && inst.op != Op::kLoadPush &&
           inst.op != Op::kLoadConstant && inst.op != Op::kBufferSize &&
           inst.op != Op::kBufferAddress;
}

Found With(Lanes lanes, Base base) {
    if (!lanes) {
        return {};
    }
    return Speculation{.lanes = std::move(*lanes), .base = base, .operand = {}, .assumptions = {}};
}

Found ByOperation(Lanes lanes) {
    return With(std::move(lanes), Base::kOperation);
}

Found ByOwnLanes(Lanes lanes) {
    return With(std::move(lanes), Base::kFromOwnLanes);
}

// What lanes add leaves the bits of a multiple of `size` alone, in the base and in the rows.
void AssumeAligned(Speculation& result, ir::ValueId value, const LaneForm& in, uint64_t size) {
    uint64_t most = 0;
    for (int64_t lane : in.offsets) {
        most = std::max(most, static_cast<uint64_t>(lane) % size);
    }
    if (most != 0) {
        result.assumptions.push_back(
            {.kind = Kind::kRoom, .value = value, .size = size, .number = most});
    }
    if (in.HasRows()) {
        result.assumptions.push_back({.kind = Kind::kMultiple, .value = value, .size = size});
    }
}

}  // namespace

bool LaneSpeculation::IsSame(ir::ValueId value) {
    const Speculation* found = Of(value);
    return found && found->lanes == same_;
}

const Speculation* LaneSpeculation::Of(ir::ValueId value) {
    // What a loop computes from itself is not known while it is looked at.
    const auto [known, is_new] = known_.try_emplace(value.index);
    Found& found = known->second;
    if (is_new) {
        Found made = Find(value);
        const auto is_far = [](int64_t at) { return at < -kMaxOffset || at > kMaxOffset; };
        const auto is_no_row = [](int64_t row) { return row < 0 || row > kMaxRow; };
        if (made && !patterns_.pattern(value).constant_offsets() &&
            (std::ranges::any_of(made->lanes.offsets, is_far) ||
             std::ranges::any_of(made->lanes.rows, is_no_row))) {
            made.reset();
        }
        found = std::move(made);
    }
    return found ? &*found : nullptr;
}

Found LaneSpeculation::Find(ir::ValueId value) {
    const LanePattern& pattern = patterns_.pattern(value);
    if (pattern.uniform()) {
        return With(same_, Base::kHeld);
    }
    if (pattern.constant_offsets()) {
        return With(LaneForm{.offsets = pattern.offsets, .rows = {}, .stride = {}}, Base::kHeld);
    }
    if (looked_into_ >= kMaxValues) {
        return {};
    }
    ++looked_into_;
    return pattern.has_rows() ? OfRows(pattern) : OfVarying(value);
}

Found LaneSpeculation::OfRows(const LanePattern& pattern) {
    if (pattern.narrow_scale != 0) {
        return {};
    }
    LaneForm lanes{.offsets = pattern.offsets, .rows = {}, .stride = {}};
    if (!pattern.groups.empty()) {
        // All lanes have the same multiple of different strides.
        const Speculation* strides = Of(pattern.stride);
        const Lanes multiples = strides ? Multiplied(strides->lanes, pattern.rows[0]) : Lanes();
        return multiples ? With(Sum(*multiples, lanes, 1), Base::kHeld) : Found();
    }
    const std::set<int64_t> rows(pattern.rows.begin(), pattern.rows.end());
    if (rows.size() * kLeastLanesOfARow <= pattern.rows.size() && *rows.begin() >= 0) {
        // Rows that follow each other, of a stride that may be several times the value.
        int64_t common = 0;
        for (int64_t row : rows) {
            common = std::gcd(common, row);
        }
        lanes.rows = pattern.rows;
        for (int64_t& row : lanes.rows) {
            row /= std::max<int64_t>(common, 1);
        }
        lanes.stride = pattern.stride;
        lanes.times = static_cast<uint64_t>(std::max<int64_t>(common, 1));
        return lanes.times <= kMaxScale ? With(std::move(lanes), Base::kHeld) : Found();
    }
    for (size_t i = 0; i < pattern.rows.size(); ++i) {
        lanes.offsets[i] += pattern.rows[i];
    }
    Found found = With(std::move(lanes), Base::kHeld);
    found->assumptions.push_back({.kind = Kind::kIsOne, .value = pattern.stride});
    return found;
}

Found LaneSpeculation::OfVarying(ir::ValueId value) {
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst || inst->op == Op::kIf || inst->op == Op::kLoop) {
        return OfAny(SourcesOf(value));
    }
    const bool loads = inst->op == Op::kLoadBuffer || inst->op == Op::kLoadShared;
    const bool pure = ir::HasProperty(inst->op, ir::kPure);
    if (inst->operands.empty() || (!loads && !pure) || kernel_.type(value) == ir::Type::kBuffer) {
        return {};
    }
    std::vector<LaneForm> in;
    for (ir::ValueId operand : inst->operands) {
        const Speculation* of_operand = Of(operand);
        if (!of_operand) {
            return {};
        }
        in.push_back(of_operand->lanes);
    }
    if (std::ranges::all_of(in, &LaneForm::IsOne)) {
        return With(same_, IsArithmetic(*inst) ? Base::kFirstLanes : Base::kFromOwnLanes);
    }
    Found found = pure ? OfOperation(*inst, in) : Found();
    if (found && (inst->results.size() != 1 || !ir::IsInteger(kernel_.type(value)))) {
        return ByOwnLanes(std::move(found->lanes));
    }
    return found;
}

Found LaneSpeculation::OfOperation(const ir::Instruction& inst, const std::vector<LaneForm>& in) {
    uint64_t bits = 0;
    const bool is_const =
        inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &bits) && bits != 0;
    const ir::ValueId first = inst.operands[0];
    const uint32_t unused_bits = 64 - ir::BitWidth(kernel_.type(first));
    const int64_t number = static_cast<int64_t>(bits << unused_bits) >> unused_bits;
    const bool positive = in[0].Lowest() >= 0;
    const bool small = is_const && bits < 31;
    switch (inst.op) {
        case Op::kIAdd:
            return ByOperation(Sum(in[0], in[1], 1));
        case Op::kISub:
            if (in[1].HasRows()) {
                return ByOwnLanes(Sum(WithoutRows(in[0]), WithoutRows(in[1]), -1));
            }
            return ByOperation(Sum(in[0], in[1], -1));
        case Op::kOr:
        case Op::kXor:
            return OfDisjointBits(inst, in);
        case Op::kIMul:
            return is_const && number > -kMaxOffset && number < kMaxOffset
                       ? ByOperation(Multiplied(in[0], number))
                       : OfProduct(inst, in);
        case Op::kShl:
            return small ? ByOperation(Multiplied(in[0], int64_t{1} << bits)) : Found();
        case Op::kLShr:
        case Op::kAShr:
            return small && positive
                       ? OfQuotient(first, in[0], uint64_t{1} << bits, inst.op == Op::kAShr,
                                    Divided(in[0], int64_t{1} << bits))
                       : Found();
        case Op::kAnd:
            if (!is_const || !positive || bits >= static_cast<uint64_t>(kMaxOffset)) {
                return {};
            }
            if (std::has_single_bit(bits + 1)) {
                return OfRemainder(first, in[0], bits + 1);
            }
            return in[0].HasRows() ? Found() : ByOwnLanes(Each(in[0], [bits](int64_t at) {
                return at & static_cast<int64_t>(bits);
            }));
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
            return OfDivision(inst, in);
        case Op::kZExt:
        case Op::kSExt: {
            Found found = ByOperation(in[0]);
            return AssumeNoWrap(*found, first, in[0], inst.op == Op::kSExt) ? found
                                                                            : ByOwnLanes(in[0]);
        }
        case Op::kTrunc:
            return ByOperation(in[0]);
        case Op::kBitcast:
            return ir::IsInteger(kernel_.type(first)) ? ByOwnLanes(in[0]) : Found();
        case Op::kSMod:
            return in[1] == same_ && !in[0].HasRows() ? ByOwnLanes(in[0]) : Found();
        // A position that went through floats, as those of sampled texels do: scaled by a size and
        // by its inverse, rounded, and kept inside.
        case Op::kSToF:
        case Op::kUToF:
        case Op::kFToS:
        case Op::kFToU:
        case Op::kFloor:
        case Op::kFAdd:
        case Op::kFSub:
        case Op::kFMul:
        case Op::kFDiv:
        case Op::kFma:
        case Op::kSMin:
        case Op::kSMax:
        case Op::kUMin:
        case Op::kUMax:
            return OfOneVarying(in);
        case Op::kSelect:
            return in[1] == in[2] ? ByOwnLanes(in[1]) : Found();
        default:
            return {};
    }
}

// As the first operand's, if the others are one value for all lanes, or as the second's if that is
// so.
Found LaneSpeculation::OfOneVarying(const std::vector<LaneForm>& in) const {
    const size_t own = in.size() > 1 && in[0] == same_ ? 1 : 0;
    for (size_t i = 0; i < in.size(); ++i) {
        if (i != own && in[i] != same_) {
            return {};
        }
    }
    return ByOwnLanes(WithoutRows(in[own]));
}

// Lanes differ in bits that neither base has.
Found LaneSpeculation::OfDisjointBits(const ir::Instruction& inst,
                                      const std::vector<LaneForm>& in) const {
    if (in[0].HasRows() || in[1].HasRows()) {
        return {};
    }
    Lanes sum = Sum(in[0], in[1], 1);
    const LaneForm& own = in[in[1] == same_ ? 0 : 1];
    if ((in[0] != same_ && in[1] != same_) || own.Lowest() < 0) {
        return ByOwnLanes(std::move(sum));
    }
    Found found = ByOperation(std::move(sum));
    found->assumptions.push_back(
        {.kind = Kind::kNoCommonBits,
         .value = inst.operands[0],
         .other = inst.operands[1],
         .number = std::bit_ceil(static_cast<uint64_t>(own.Highest()) + 1) - 1});
    return found;
}

// By a value that is 1 for all lanes, or that is the stride of rows.
Found LaneSpeculation::OfProduct(const ir::Instruction& inst,
                                 const std::vector<LaneForm>& in) const {
    for (const size_t one : {size_t{0}, size_t{1}}) {
        if (in[one] != same_) {
            continue;
        }
        const LaneForm& other = in[1 - one];
        if (other.HasRows() ? AreRows(other.rows) && other.offsets == same_.offsets
                            : AreRows(other.offsets)) {
            LaneForm lanes = same_;
            lanes.rows = other.HasRows() ? other.rows : other.offsets;
            lanes.stride = other.HasRows() ? inst.results[0] : inst.operands[one];
            return ByOperation(std::move(lanes));
        }
        Found found = With(in[1 - one], Base::kOperand);
        found->operand = inst.operands[1 - one];
        found->assumptions.push_back({.kind = Kind::kIsOne, .value = inst.operands[one]});
        return found;
    }
    return {};
}

// Whether the value's type has the number, so that tests can be made in it.
bool LaneSpeculation::HasRoomFor(ir::ValueId value, uint64_t number) const {
    const uint32_t bits = ir::BitWidth(kernel_.type(value));
    return bits >= 64 || (number >> bits) == 0;
}

// The base of the result is that of the operation on the dividend's base and `size`.
Found LaneSpeculation::OfQuotient(ir::ValueId dividend,
                                  const LaneForm& in,
                                  uint64_t size,
                                  bool is_signed,
                                  Lanes lanes) const {
    Found found = ByOperation(std::move(lanes));
    if (!found) {
        return {};
    }
    if (!HasRoomFor(dividend, size) || !AssumeNoWrap(*found, dividend, in, is_signed)) {
        return ByOwnLanes(std::move(found->lanes));
    }
    AssumeAligned(*found, dividend, in, size);
    return found;
}

// The remainder by a power of two, whatever wraps.
Found LaneSpeculation::OfRemainder(ir::ValueId dividend, const LaneForm& in, uint64_t size) const {
    Found found = ByOperation(Remainder(in, static_cast<int64_t>(size)));
    if (!HasRoomFor(dividend, size)) {
        return ByOwnLanes(std::move(found->lanes));
    }
    AssumeAligned(*found, dividend, in, size);
    return found;
}

Found LaneSpeculation::OfDivision(const ir::Instruction& inst,
                                  const std::vector<LaneForm>& in) const {
    const bool is_signed = inst.op == Op::kSDiv || inst.op == Op::kSRem;
    const bool divides = inst.op == Op::kSDiv || inst.op == Op::kUDiv;
    uint64_t size = 0;
    const bool is_const = kernel_.IsConst(inst.operands[1], &size);
    Lanes lanes;
    if (is_const && size != 0 && size < static_cast<uint64_t>(kMaxOffset) && in[0].Lowest() >= 0) {
        const auto by = static_cast<int64_t>(size);
        lanes = divides ? Divided(in[0], by) : Lanes(Remainder(in[0], by));
    } else if (in[1] == same_ && !in[0].HasRows()) {
        lanes = divides ? same_ : in[0];
    }
    if (!lanes) {
        return {};
    }
    const uint32_t sign = ir::BitWidth(kernel_.type(inst.operands[1])) - 1;
    const bool is_negative = is_signed && is_const && ((size >> sign) & 1) != 0;
    if (is_const ? size == 0 || is_negative : is_signed) {
        return ByOwnLanes(std::move(lanes));
    }
    if (is_const) {
        return OfQuotient(inst.operands[0], in[0], size, is_signed, std::move(lanes));
    }
    Found found = ByOperation(std::move(lanes));
    if (!AssumeNoWrap(*found, inst.operands[0], in[0], false)) {
        return ByOwnLanes(std::move(found->lanes));
    }
    found->assumptions.push_back({.kind = Kind::kRoomBelow,
                                  .value = inst.operands[0],
                                  .other = inst.operands[1],
                                  .number = static_cast<uint64_t>(in[0].Highest())});
    return found;
}

// No lane's value leaves the range of its type. False if that cannot be said.
bool LaneSpeculation::AssumeNoWrap(Speculation& result,
                                   ir::ValueId value,
                                   const LaneForm& lanes,
                                   bool is_signed) const {
    const uint32_t bits = ir::BitWidth(kernel_.type(value));
    const uint64_t limit = (~uint64_t{0} >> (64 - bits)) >> (is_signed ? 1 : 0);
    if (lanes.Lowest() < 0 || static_cast<uint64_t>(lanes.Highest()) >= limit ||
        (lanes.HasRows() && bits > 32)) {
        return false;
    }
    const uint64_t most = limit - static_cast<uint64_t>(lanes.Highest());
    // The base is a lane's value if the lowest offset is 0, and then has a known bound.
    if (lanes.HasRows() || lanes.Lowest() != 0 || patterns_.pattern(value).max > most) {
        result.assumptions.push_back({.kind = Kind::kAtMost, .value = value, .number = most});
    }
    return true;
}

// What all of the values have.
Found LaneSpeculation::OfAny(const std::vector<ir::ValueId>& values) {
    const Speculation* first = values.empty() ? nullptr : Of(values[0]);
    const bool agree = first && std::ranges::all_of(values, [&](ir::ValueId value) {
                           const Speculation* found = Of(value);
                           return found && found->lanes == first->lanes;
                       });
    return agree ? ByOwnLanes(first->lanes) : Found();
}

// What a construct's result or parameter comes from: what goes into a loop, what branches yield,
// what exits take along, if lanes leave a loop together.
std::vector<ir::ValueId> LaneSpeculation::SourcesOf(ir::ValueId id) const {
    const ir::Value& value = kernel_.value(id);
    const ir::InstId parent = value.inst.valid() ? value.inst : kernel_.block(value.block).parent;
    const ir::Instruction& construct = kernel_.inst(parent);
    std::vector<ir::ValueId> sources;
    if (!value.inst.valid()) {
        if (construct.op == Op::kLoop && construct.blocks[0] == value.block) {
            sources.push_back(construct.operands[value.index]);
        }
        return sources;
    }
    const auto visit = [&](const auto& self, ir::BlockId block) -> void {
        for (ir::InstId at : kernel_.block(block).insts) {
            const ir::Instruction& inst = kernel_.inst(at);
            std::ranges::for_each(inst.blocks, [&](ir::BlockId child) { self(self, child); });
            if (inst.op == Op::kExit && inst.target == parent) {
                sources.push_back(inst.operands[value.index]);
            }
        }
    };
    if (construct.op == Op::kLoop) {
        visit(visit, construct.blocks[0]);
        return sources;
    }
    for (ir::BlockId block : construct.blocks) {
        const ir::Instruction& last = kernel_.inst(kernel_.block(block).insts.back());
        if (last.op != Op::kYield) {
            return {};
        }
        sources.push_back(last.operands[value.index]);
    }
    return sources;
}

std::string LaneSpeculation::Text(ir::ValueId value) {
    const Speculation* found = Of(value);
    if (!found) {
        return "unknown";
    }
    // Lanes that go on alike are one part: "0..60/4", or "8*0" for eight that have the same.
    const std::vector<int64_t>& at = found->lanes.offsets;
    std::string text;
    for (size_t first = 0; first < at.size();) {
        size_t last = first + 1;
        while (last < at.size() && at[last] - at[last - 1] == at[first + 1] - at[first]) {
            ++last;
        }
        const int64_t stride = last - first > 1 ? at[first + 1] - at[first] : 0;
        text += text.empty() ? "" : " ";
        text += stride == 0 && last - first > 1 ? std::to_string(last - first) + "*" : "";
        text += std::to_string(at[first]);
        if (stride != 0) {
            text += ".." + std::to_string(at[last - 1]);
            text += stride == 1 ? "" : "/" + std::to_string(stride);
        }
        first = last;
    }
    if (const LaneForm& lanes = found->lanes; lanes.HasRows()) {
        text += " + rows * %" + std::to_string(lanes.stride.index);
        text += lanes.times == 1 ? "" : " * " + std::to_string(lanes.times);
        text += lanes.by == 1 ? "" : " / " + std::to_string(lanes.by);
    }
    std::vector<std::string> conditions;
    std::set<uint32_t> seen;
    CollectText(value, seen, conditions);
    for (size_t i = 0; i < conditions.size(); ++i) {
        text += (i == 0 ? "; if " : ", ") + conditions[i];
    }
    return text;
}

void LaneSpeculation::CollectText(ir::ValueId value,
                                  std::set<uint32_t>& seen,
                                  std::vector<std::string>& conditions) {
    const Speculation* found = Of(value);
    if (!found || !seen.insert(value.index).second) {
        return;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    const auto add = [&](const std::string& condition) {
        if (std::ranges::find(conditions, condition) == conditions.end()) {
            conditions.push_back(condition);
        }
    };
    if (found->base == Base::kFromOwnLanes) {
        add("%" + std::to_string(value.index) + " has them");
    } else if (found->base != Base::kHeld && inst) {
        for (ir::ValueId operand : inst->operands) {
            CollectText(operand, seen, conditions);
        }
    }
    for (const Assumption& assumed : found->assumptions) {
        const std::string base = "%" + std::to_string(assumed.value.index);
        const std::string other = "%" + std::to_string(assumed.other.index);
        const std::string size = std::to_string(assumed.size);
        const std::string number = std::to_string(assumed.number);
        switch (assumed.kind) {
            case Kind::kAtMost:
                add(base + " <= " + number);
                break;
            case Kind::kRoom:
                add(base + " % " + size + " + " + number + " < " + size);
                break;
            case Kind::kRoomBelow:
                add(base + " % " + other + " + " + number + " < " + other);
                break;
            case Kind::kMultiple:
                add("stride of " + base + " % " + size + " == 0");
                break;
            case Kind::kIsOne:
                add(base + " == 1");
                break;
            case Kind::kNoCommonBits:
                add("(" + base + " | " + other + ") & " + number + " == 0");
                break;
        }
    }
}

}  // namespace fornax::kernel
