// One rule an operation: how its result's lanes probably differ, and what is assumed for that.
#include "compiler/kernel/analysis/lane_speculation.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/kernel/analysis/lane_rules.h"
#include "compiler/kernel/ir/any_inside.h"
#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

using ir::Op;
using Kind = Assumption::Kind;
using Base = Speculation::Base;

namespace {

constexpr uint32_t kMaxValues = 96;
constexpr int64_t kMaxOffset = int64_t{1} << 30;
constexpr int64_t kMaxRow = 1 << 12;

using lane_forms::AreRows;
using lane_forms::kLeastLanesOfARow;
using lane_forms::kMaxScale;
using lane_forms::Lanes;
using lane_forms::Multiplied;
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

Found ByOwnLanes(Lanes lanes) {
    return With(std::move(lanes), Base::kFromOwnLanes);
}

std::string TextOf(const Assumption& assumed) {
    const auto text = [&](const char* format) {
        return fmt::format(fmt::runtime(format), fmt::arg("base", assumed.value.value()),
                           fmt::arg("other", assumed.other.value()), fmt::arg("size", assumed.size),
                           fmt::arg("number", assumed.number));
    };
    switch (assumed.kind) {
        case Kind::kAtMost:
            return text("%{base} <= {number}");
        case Kind::kRoom:
            return text("%{base} % {size} + {number} < {size}");
        case Kind::kRoomBelow:
            return text("%{base} % %{other} + {number} < %{other}");
        case Kind::kMultiple:
            return text("stride of %{base} % {size} == 0");
        case Kind::kIsOne:
            return text("%{base} == 1");
        case Kind::kNoCommonBits:
            return text("(%{base} | %{other}) & {number} == 0");
    }
    return "";
}

// How the lanes of one operation's result probably differ. What the rules need is assumed of the
// operands' bases; where no assumption says it, the lanes' own values have to be compared.
struct AssumedLanes {
    using Result = Found;
    static constexpr uint64_t kMaxSize = kMaxOffset;

    const ir::Kernel& kernel;
    const LaneAnalysis& patterns;
    const ir::Instruction& inst;
    const std::vector<const LaneForm*>& in;
    const LaneForm& same;  // that of all lanes
    const LaneForm& a = *in.front();
    const LaneForm& b = *in.back();
    const ir::ValueId value = inst.operands[0];
    const uint32_t bits = ir::BitWidth(kernel.type(value));
    std::vector<Assumption> assumptions = {};

    Found Find() {
        if (Found found = LanesOfResult(*this, kernel, inst)) {
            return found;
        }
        assumptions.clear();
        switch (inst.op) {
            case Op::kUDiv:
            case Op::kSDiv:
            case Op::kURem:
            case Op::kSRem:
            case Op::kSMod:
                return Division();
            // A position that went through floats, as those of sampled texels do: scaled by a size
            // and by its inverse, rounded, and kept inside.
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
                return OfOneVarying();
            case Op::kSelect:
                return *in[1] == *in[2] ? ByOwnLanes(*in[1]) : Found();
            default:
                return {};
        }
    }

    // --- what LanesOfResult() asks --------------------------------------------------------------

    static Found None() { return {}; }

    bool StaysIn(LaneRange range) {
        const bool is_signed = range != LaneRange::kUnsigned;
        const uint64_t limit = lane_patterns::TypeMax(bits) >> (is_signed ? 1 : 0);
        const auto high = static_cast<uint64_t>(a.Highest());
        if (a.Lowest() < 0 || high >= limit || (a.HasRows() && bits > 32)) {
            return false;
        }
        // The base is a lane's value if the lowest offset is 0, and then has a known bound.
        if (a.HasRows() || a.Lowest() != 0 || patterns.pattern(value).max > limit - high) {
            Assume({.kind = Kind::kAtMost, .value = value, .number = limit - high});
        }
        return true;
    }
    bool HasRoom(uint64_t size) {
        if (size > lane_patterns::TypeMax(bits)) {
            return false;  // the test is made in the type
        }
        uint64_t most = 0;
        for (int64_t lane : a.offsets) {
            most = std::max(most, static_cast<uint64_t>(lane) % size);
        }
        if (most != 0) {
            Assume({.kind = Kind::kRoom, .value = value, .size = size, .number = most});
        }
        if (a.HasRows()) {
            Assume({.kind = Kind::kMultiple, .value = value, .size = size});
        }
        return true;
    }
    static bool AddsFreeBits() { return false; }
    bool NoCommonBits() {
        const LaneForm& own = b == same ? a : b;
        if ((a != same && b != same) || own.HasRows() || own.Lowest() < 0) {
            return false;
        }
        Assume({.kind = Kind::kNoCommonBits,
                .value = value,
                .other = inst.operands[1],
                .number = std::bit_ceil(static_cast<uint64_t>(own.Highest()) + 1) - 1});
        return true;
    }

    Found Converted(bool follows) { return Made(follows, a); }
    Found Times(uint64_t factor) { return Made(true, Multiplied(a, ir::SignExtend(factor, bits))); }
    Found Quotient(bool follows, uint64_t size) {
        return a.Lowest() < 0 ? Found() : Made(follows, lane_forms::Divided(a, size));
    }
    Found Remainder(bool follows, uint64_t size) {
        return a.Lowest() < 0 ? Found() : Made(follows, lane_forms::Remainder(a, size));
    }
    Found Masked(bool follows, uint64_t mask) {
        const auto masked = [mask](uint64_t at) { return at & mask; };
        return a.HasRows() || a.Lowest() < 0
                   ? Found()
                   : Made(follows, LaneForm{.offsets = EachLane(a.offsets, masked)});
    }
    Found Sum(bool follows, int64_t sign) {
        if (!follows && (a.HasRows() || b.HasRows())) {
            return {};
        }
        if (sign < 0 && b.HasRows()) {
            return ByOwnLanes(lane_forms::Sum(WithoutRows(a), WithoutRows(b), sign));
        }
        return Made(follows, lane_forms::Sum(a, b, sign));
    }
    // By a value that is 1 for all lanes, or that is the stride of rows.
    Found Product() {
        for (const size_t one : {size_t{0}, size_t{1}}) {
            const LaneForm& other = *in[1 - one];
            if (*in[one] != same) {
                continue;
            }
            const std::vector<int64_t>& rows = other.HasRows() ? other.rows : other.offsets;
            if (AreRows(rows) && (!other.HasRows() || other.offsets == same.offsets)) {
                LaneForm lanes = same;
                lanes.rows = rows;
                lanes.stride = other.HasRows() ? inst.results[0] : inst.operands[one];
                return Made(true, std::move(lanes));
            }
            Found found = With(other, Base::kOperand);
            found->operand = inst.operands[1 - one];
            found->assumptions.push_back({.kind = Kind::kIsOne, .value = inst.operands[one]});
            return found;
        }
        return {};
    }

    // --- the rest ---------------------------------------------------------------------------

    void Assume(const Assumption& assumption) { assumptions.push_back(assumption); }

    Found Made(bool follows, Lanes lanes) {
        Found found = With(std::move(lanes), follows ? Base::kOperation : Base::kFromOwnLanes);
        if (found && follows) {
            found->assumptions = std::move(assumptions);
        }
        return found;
    }

    // By a value that is known at run time only: all lanes have one quotient.
    Found Division() {
        if (b != same || a.HasRows()) {
            return {};
        }
        const bool divides = inst.op == Op::kUDiv || inst.op == Op::kSDiv;
        const bool is_unsigned = inst.op == Op::kUDiv || inst.op == Op::kURem;
        const bool follows = is_unsigned && StaysIn(LaneRange::kUnsigned);
        Assume({.kind = Kind::kRoomBelow,
                .value = value,
                .other = inst.operands[1],
                .number = static_cast<uint64_t>(a.Highest())});
        return Made(follows, divides ? same : a);
    }

    // As the first operand's, if the others are one value for all lanes, or as the second's if that
    // is so.
    Found OfOneVarying() {
        const size_t own = in.size() > 1 && a == same ? 1 : 0;
        for (size_t i = 0; i < in.size(); ++i) {
            if (i != own && *in[i] != same) {
                return {};
            }
        }
        return ByOwnLanes(WithoutRows(*in[own]));
    }
};

}  // namespace

bool LaneSpeculation::IsSame(ir::ValueId value) {
    const Speculation* found = Of(value);
    return found && found->lanes == same_;
}

const Speculation* LaneSpeculation::Of(ir::ValueId value) {
    // What a loop computes from itself is not known while it is looked at.
    const auto [known, is_new] = known_.try_emplace(value.value());
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
        return With(LaneForm{.offsets = pattern.offsets}, Base::kHeld);
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
    LaneForm lanes{.offsets = pattern.offsets};
    if (!pattern.groups.empty()) {
        // All lanes have the same multiple of different strides.
        const Speculation* strides = Of(pattern.stride);
        const Lanes multiples = strides ? Multiplied(strides->lanes, pattern.rows[0]) : Lanes();
        return multiples ? With(lane_forms::Sum(*multiples, lanes, 1), Base::kHeld) : Found();
    }
    const std::set<int64_t> rows(pattern.rows.begin(), pattern.rows.end());
    if (rows.size() * kLeastLanesOfARow <= pattern.rows.size() && *rows.begin() >= 0) {
        // Rows that follow each other, of a stride that may be several times the value.
        int64_t common = 0;
        for (int64_t row : rows) {
            common = std::gcd(common, row);
        }
        lanes.rows = EachLane(pattern.rows, [&](int64_t row) { return row / common; });
        lanes.stride = pattern.stride;
        lanes.times = static_cast<uint64_t>(common);
        return lanes.times <= kMaxScale ? With(std::move(lanes), Base::kHeld) : Found();
    }
    lanes.offsets = SumOfLanes(pattern.offsets, pattern.rows, 1);
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
    std::vector<const LaneForm*> in;
    for (ir::ValueId operand : inst->operands) {
        const Speculation* of_operand = Of(operand);
        if (!of_operand) {
            return {};
        }
        in.push_back(&of_operand->lanes);
    }
    if (std::ranges::all_of(in, [](const LaneForm* lanes) { return lanes->IsOne(); })) {
        return With(same_, IsArithmetic(*inst) ? Base::kFirstLanes : Base::kFromOwnLanes);
    }
    Found found = pure ? AssumedLanes{kernel_, patterns_, *inst, in, same_}.Find() : Found();
    if (found && (inst->results.size() != 1 || !ir::IsInteger(kernel_.type(value)))) {
        return ByOwnLanes(std::move(found->lanes));
    }
    return found;
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
            sources.push_back(construct.operands[value.position]);
        }
        return sources;
    }
    if (construct.op == Op::kLoop) {
        ir::AnyInside(kernel_, construct.blocks[0], [&](const ir::Instruction& inst) {
            if (inst.op == Op::kExit && inst.target == parent) {
                sources.push_back(inst.operands[value.position]);
            }
            return false;
        });
        return sources;
    }
    for (ir::BlockId block : construct.blocks) {
        const ir::Instruction& last = kernel_.inst(kernel_.block(block).insts.back());
        if (last.op != Op::kYield) {
            return {};
        }
        sources.push_back(last.operands[value.position]);
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
        text += stride == 0 && last - first > 1 ? fmt::format("{}*", last - first) : "";
        text += std::to_string(at[first]);
        text += stride == 0 ? "" : fmt::format("..{}", at[last - 1]);
        text += stride == 0 || stride == 1 ? "" : fmt::format("/{}", stride);
        first = last;
    }
    if (const LaneForm& lanes = found->lanes; lanes.HasRows()) {
        text += fmt::format(" + rows * %{}", lanes.stride.value());
        text += lanes.times == 1 ? "" : fmt::format(" * {}", lanes.times);
        text += lanes.by == 1 ? "" : fmt::format(" / {}", lanes.by);
    }
    std::vector<std::string> conditions;
    std::set<uint32_t> seen;
    CollectText(value, seen, conditions);
    return text + (conditions.empty() ? "" : "; if ") +
           fmt::format("{}", fmt::join(conditions, ", "));
}

void LaneSpeculation::CollectText(ir::ValueId value,
                                  std::set<uint32_t>& seen,
                                  std::vector<std::string>& conditions) {
    const Speculation* found = Of(value);
    if (!found || !seen.insert(value.value()).second) {
        return;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    const auto add = [&](const std::string& condition) {
        if (std::ranges::find(conditions, condition) == conditions.end()) {
            conditions.push_back(condition);
        }
    };
    if (found->base == Base::kFromOwnLanes) {
        add(fmt::format("%{} has them", value.value()));
    } else if (found->base != Base::kHeld && inst) {
        for (ir::ValueId operand : inst->operands) {
            CollectText(operand, seen, conditions);
        }
    }
    for (const Assumption& assumed : found->assumptions) {
        add(TextOf(assumed));
    }
}

}  // namespace fornax::kernel
