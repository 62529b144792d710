// A specialization of what takes an invocation's number apart by sizes that are known at run time
// only, for vectors whose lanes share every quotient.
//
// Kernels for tensors of any rank divide an index by the sizes of the dimensions. As long as a
// vector lies inside of one row, which a few scalar operations tell, its lanes have one quotient
// and remainders side by side: divisions, what follows from them and the addresses are scalar then,
// and accesses are those of patterns. Guards that all lanes pass (`if (i >= n) return;`) are part
// of the question, so nothing is masked there. The original stands beside it for all other vectors.
#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/kernel/index/index_builder.h"
#include "compiler/kernel/ir/any_inside.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/division_forms.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMaxCopiedInstructions = 1500;
constexpr size_t kMaxBeforehand = 300;
// Smaller constant divisors divide the lanes of a vector nearly always.
constexpr uint64_t kLeastConstantDivisor = 64;

// How the lanes of a vector probably differ, as far as a pass can tell that does not know the
// vector.
enum class Lanes : uint8_t {
    kSame,
    kNear,   // by little that is known when code is emitted: an index
    kApart,  // by anything
};

class Versioner {
  public:
    Versioner(Kernel& kernel, BlockId block)
        : kernel_(kernel),
          block_(block),
          in_loop_(kernel.block(block).parent.valid() &&
                   kernel.inst(kernel.block(block).parent).op == Op::kLoop),
          place_(kernel.num_insts(), kOutside),
          index_(kernel, {.alike_lanes = true}),
          same_as_(kernel.num_values()),
          beforehand_(kernel.num_values()) {}

    bool Run() {
        const std::vector<InstId> insts = kernel_.block(block_).insts;
        for (size_t i = 0; i < insts.size(); ++i) {
            SetPlaces(insts[i], static_cast<uint32_t>(i));
        }
        for (size_t i = 0; i + 1 < insts.size(); ++i) {
            at_ = static_cast<uint32_t>(i);
            Walk(insts[i]);
        }
        if (divisions_ == 0 || made_.size() > kMaxBeforehand) {
            return false;
        }
        uint32_t size = 0;
        for (size_t i = start_; i + 1 < insts.size(); ++i) {
            if (!MayCopy(insts[i], size)) {
                return false;
            }
        }
        if (size > kMaxCopiedInstructions) {
            return false;
        }
        Split();
        return true;
    }

  private:
    static constexpr uint32_t kOutside = UINT32_MAX;

    void SetPlaces(InstId id, uint32_t place) {
        place_[id.value()] = place;
        for (BlockId block : kernel_.inst(id).blocks) {
            for (InstId inner : kernel_.block(block).insts) {
                SetPlaces(inner, place);
            }
        }
    }

    // Counts what is copied.
    bool MayCopy(InstId id, uint32_t& size) const {
        return !AnyInside(kernel_, id, [&](const Instruction& inst) {
            ++size;
            return HasProperty(inst.op, kConvergent);
        });
    }

    // --- what is computed before the question ---------------------------------------------------

    ValueId Make(Op op, Type type, std::initializer_list<ValueId> operands, uint64_t imm = 0) {
        const InstId id = kernel_.NewInst(op, {operands.begin(), operands.size()}, {&type, 1});
        kernel_.inst(id).imm = imm;
        kernel_.inst(id).origin = origin_;
        made_.push_back(id);
        return kernel_.inst(id).results[0];
    }

    // The value as the specialization has it, if it can be had there; else an invalid id.
    ValueId Beforehand(ValueId value) {
        if (value.value() >= beforehand_.size()) {
            return value;
        }
        if (beforehand_[value.value()].valid()) {
            return beforehand_[value.value()];
        }
        if (same_as_[value.value()].valid()) {
            return beforehand_[value.value()] = Beforehand(same_as_[value.value()]);
        }
        const InstId id = kernel_.value(value).inst;
        if (!id.valid()) {
            return IsOutside(kernel_.block(kernel_.value(value).block).parent) ? value : ValueId{};
        }
        if (IsOutside(id)) {
            return value;
        }
        const Instruction inst = kernel_.inst(id);
        if (!HasProperty(inst.op, kPure) || made_.size() > kMaxBeforehand) {
            return {};
        }
        std::vector<ValueId> operands;
        for (ValueId operand : inst.operands) {
            operands.push_back(Beforehand(operand));
            if (!operands.back().valid()) {
                return {};
            }
        }
        const ValueId copy = Again(inst, operands, inst.results[0]);
        const InstId copied = kernel_.value(copy).inst;
        for (size_t i = 0; i < inst.results.size(); ++i) {
            beforehand_[inst.results[i].value()] = kernel_.inst(copied).results[i];
        }
        return beforehand_[value.value()];
    }

    // Defined before the first form begins.
    bool IsOutside(InstId id) const {
        const uint32_t place = place_[id.value()];
        return place == kOutside || place < std::min(start_, at_);
    }

    struct Range {
        ValueId low;
        ValueId span;
    };

    // The lowest lane's value and how far the highest one's lies above.
    Range RangeOf(ValueId value) {
        const Type type = kernel_.type(value);
        const Type types[] = {type, type};
        const InstId id = kernel_.NewInst(Op::kLaneRange, {&value, 1}, types);
        made_.push_back(id);
        return {kernel_.inst(id).results[0], kernel_.inst(id).results[1]};
    }

    void Ask(ValueId condition) { asked_.push_back(condition); }

    // That low + span does not wrap.
    void AskNoWrap(const Range& range, bool is_signed) {
        const Type type = kernel_.type(range.low);
        if (is_signed) {
            const ValueId top = Make(Op::kConst, type, {}, ~uint64_t{0} >> (65 - BitWidth(type)));
            Ask(Make(Op::kULe, Type::kBool, {range.span, top}));
            const ValueId high = Make(Op::kIAdd, type, {range.low, range.span});
            Ask(Make(Op::kSLe, Type::kBool, {range.low, high}));
        } else {
            Ask(Make(Op::kULe, Type::kBool, {range.span, Make(Op::kNot, type, {range.low})}));
        }
    }

    Lanes LanesOf(ValueId value) {
        const uint8_t axes = index_.Axes(value);
        return (axes & kLaneAxis) == 0     ? Lanes::kSame
               : (axes & kUnevenAxis) == 0 ? Lanes::kNear
                                           : Lanes::kApart;
    }

    // --- what is assumed ------------------------------------------------------------------------

    void Begin() {
        questions_ = asked_.size();
        began_ = start_ == kOutside;
        if (began_) {
            start_ = at_;
        }
    }
    bool End(bool assumed) {
        if (!assumed) {
            asked_.resize(questions_);
            if (began_) {
                start_ = kOutside;
            }
        }
        return assumed;
    }

    // Asks whether the condition has this value for all lanes.
    bool Assume(ValueId condition, bool holds) {
        const Instruction* found = kernel_.Definition(condition);
        if (!found || kernel_.type(condition) != Type::kBool) {
            return false;
        }
        const Instruction inst = *found;
        switch (inst.op) {
            case Op::kNot:
                return Assume(inst.operands[0], !holds);
            case Op::kAnd:
            case Op::kOr:
                return holds == (inst.op == Op::kAnd) && Assume(inst.operands[0], holds) &&
                       Assume(inst.operands[1], holds);
            case Op::kULt:
            case Op::kULe:
            case Op::kSLt:
            case Op::kSLe:
                break;
            default:
                return false;
        }
        const bool is_signed = inst.op == Op::kSLt || inst.op == Op::kSLe;
        bool or_equal = inst.op == Op::kULe || inst.op == Op::kSLe;
        ValueId less = inst.operands[0];
        ValueId more = inst.operands[1];
        if (!holds) {
            std::swap(less, more);
            or_equal = !or_equal;
        }
        const Lanes kind = LanesOf(less);
        const Lanes other = LanesOf(more);
        const bool lanes_left = kind == Lanes::kNear && other == Lanes::kSame;
        if (!lanes_left && !(kind == Lanes::kSame && other == Lanes::kNear)) {
            return false;
        }
        less = Beforehand(less);
        more = Beforehand(more);
        if (!less.valid() || !more.valid()) {
            return false;
        }
        const Range range = RangeOf(lanes_left ? less : more);
        AskNoWrap(range, is_signed);
        if (lanes_left) {
            less = Make(Op::kIAdd, kernel_.type(range.low), {range.low, range.span});
        } else {
            more = range.low;
        }
        const Op op =
            is_signed ? (or_equal ? Op::kSLe : Op::kSLt) : (or_equal ? Op::kULe : Op::kULt);
        Ask(Make(op, Type::kBool, {less, more}));
        return true;
    }

    bool Assume(const Division& division) {
        const Lanes kind = LanesOf(division.dividend);
        uint64_t divisor_bits = 0;
        if (kind == Lanes::kApart || LanesOf(division.divisor) != Lanes::kSame) {
            return false;
        }
        const bool constant = kernel_.IsConst(division.divisor, &divisor_bits);
        if (constant &&
            (divisor_bits < kLeastConstantDivisor || (divisor_bits & (divisor_bits - 1)) == 0)) {
            return false;
        }
        const ValueId dividend = Beforehand(division.dividend);
        const ValueId divisor = Beforehand(division.divisor);
        if (!dividend.valid() || !divisor.valid()) {
            return false;
        }
        const Type type = kernel_.type(dividend);
        const bool is_signed = division.op == Op::kSDiv || division.op == Op::kSRem;
        const bool remainder = division.op == Op::kURem || division.op == Op::kSRem;
        ValueId result;
        if (kind == Lanes::kSame) {
            result = Make(division.op, type, {dividend, divisor});
        } else {
            const Range range = RangeOf(dividend);
            const ValueId quotient = Make(Op::kUDiv, type, {range.low, divisor});
            const ValueId whole = Make(Op::kIMul, type, {quotient, divisor});
            const ValueId lowest = Make(Op::kISub, type, {range.low, whole});
            const ValueId room = Make(Op::kISub, type, {divisor, lowest});
            AskNoWrap(range, is_signed);
            if (is_signed) {
                const ValueId zero = Make(Op::kConst, type, {}, 0);
                Ask(Make(Op::kSLe, Type::kBool, {zero, range.low}));
                Ask(Make(Op::kSLt, Type::kBool, {zero, divisor}));
            }
            Ask(Make(Op::kULt, Type::kBool, {range.span, room}));
            result = remainder ? Make(Op::kISub, type, {dividend, whole}) : quotient;
            ++divisions_;
        }
        index_.Assume(division.result, remainder && kind == Lanes::kNear ? kLaneAxis : kNoAxis);
        beforehand_[division.result.value()] = result;
        replaced_.emplace_back(division.result, result);
        return true;
    }

    struct Ends {
        ValueId low;
        ValueId high;
    };

    // A shift by a constant is like what it shifts. Most take apart what was loaded.
    bool MayRise(const Instruction& shift) const {
        const Instruction* shifted = kernel_.Definition(shift.operands[0]);
        return !kernel_.IsConst(shift.operands[1]) || (shifted && Grows(shifted->op));
    }
    static bool Grows(Op op) {
        return op == Op::kIAdd || op == Op::kZExt || op == Op::kLShr || op == Op::kUDiv ||
               op == Op::kUMulExtended;
    }

    // What lies between two values for all lanes, because it grows with an index: a product's upper
    // half, a sum, a shift, as quotients are computed by the inverse of a divisor.
    std::optional<Ends> Rising(ValueId value) {
        const Type type = kernel_.type(value);
        const Lanes kind = LanesOf(value);
        if (kind != Lanes::kApart) {
            const ValueId before = Beforehand(value);
            if (!before.valid() || kind == Lanes::kSame) {
                return before.valid() ? std::optional<Ends>({before, before}) : std::nullopt;
            }
            const Range range = RangeOf(before);
            AskNoWrap(range, false);
            return Ends{range.low, Make(Op::kIAdd, type, {range.low, range.span})};
        }
        const Instruction* found = kernel_.Definition(value);
        if (!found || made_.size() > kMaxBeforehand) {
            return {};
        }
        const Instruction inst = *found;
        const bool by_any = inst.op == Op::kIAdd || inst.op == Op::kZExt;
        if (!Grows(inst.op) || inst.results.back() != value ||
            (!by_any && LanesOf(inst.operands[1]) != Lanes::kSame)) {
            return {};
        }
        std::vector<ValueId> low;
        std::vector<ValueId> high;
        for (ValueId operand : inst.operands) {
            const std::optional<Ends> ends = Rising(operand);
            if (!ends) {
                return {};
            }
            low.push_back(ends->low);
            high.push_back(ends->high);
        }
        const ValueId ends[] = {Again(inst, low, value), Again(inst, high, value)};
        if (inst.op == Op::kIAdd) {
            Ask(Make(Op::kULe, Type::kBool, {high[0], ends[1]}));
        }
        return Ends{ends[0], ends[1]};
    }

    // The operation with other operands; what `value` is of its results.
    ValueId Again(const Instruction& inst, const std::vector<ValueId>& operands, ValueId value) {
        std::vector<Type> types;
        for (ValueId result : inst.results) {
            types.push_back(kernel_.type(result));
        }
        const InstId id = kernel_.NewInst(inst.op, operands, types);
        kernel_.inst(id).imm = inst.imm;
        kernel_.inst(id).flags = inst.flags;
        kernel_.inst(id).origin = inst.origin;
        made_.push_back(id);
        return kernel_.inst(id).results[kernel_.value(value).position];
    }

    // That what grows with an index has not grown from the lowest lane to the highest.
    bool AssumeFlat(ValueId value) {
        const std::optional<Ends> ends = Rising(value);
        if (!ends) {
            return false;
        }
        Ask(Make(Op::kIEq, Type::kBool, {ends->low, ends->high}));
        index_.Assume(value, kNoAxis);
        beforehand_[value.value()] = ends->low;
        replaced_.emplace_back(value, ends->low);
        ++divisions_;
        return true;
    }

    // --- the walk -------------------------------------------------------------------------------

    void Walk(InstId id) {
        origin_ = kernel_.inst(id).origin;
        if (const std::optional<Division> division = FindDivision(kernel_, id)) {
            Begin();
            End(Assume(*division));
        } else if (kernel_.inst(id).op == Op::kLShr) {
            const ValueId result = kernel_.inst(id).results[0];
            if (!MayRise(kernel_.inst(id)) || LanesOf(result) != Lanes::kApart) {
                return;
            }
            Begin();
            End(AssumeFlat(result));
        } else if (kernel_.inst(id).op == Op::kIf) {
            WalkIf(id);
        } else if (kernel_.inst(id).op == Op::kScope) {
            WalkScope(id);
        }
    }

    void WalkBlock(BlockId block) {
        for (InstId id : std::vector(kernel_.block(block).insts)) {
            Walk(id);
        }
    }

    const Instruction& Last(BlockId block) const {
        return kernel_.inst(kernel_.block(block).insts.back());
    }
    bool OnlyYields(BlockId block) const {
        return kernel_.block(block).insts.size() == 1 && Last(block).op == Op::kYield;
    }

    // A guard: one way leaves or does nothing.
    void WalkIf(InstId id) {
        if (in_loop_) {
            return;  // lanes that leave a loop one by one: emit_unmasked.cpp
        }
        const Instruction inst = kernel_.inst(id);
        auto leaves = [&](BlockId block) {
            return kernel_.block(block).insts.size() == 1 && Last(block).op != Op::kYield;
        };
        for (size_t way = 0; way < 2; ++way) {
            const BlockId other = inst.blocks[1 - way];
            if (leaves(inst.blocks[way]) ||
                (!leaves(other) && !(OnlyYields(other) && inst.results.empty()))) {
                continue;
            }
            Begin();
            if (!End(Assume(inst.operands[0], way == 0))) {
                continue;
            }
            guards_.push_back({id, way == 0});
            not_taken_.push_back(other);
            WalkBlock(inst.blocks[way]);
            Join(inst.results, inst.blocks[way]);
            return;
        }
    }

    void WalkScope(InstId id) {
        const Instruction inst = kernel_.inst(id);
        WalkBlock(inst.blocks[0]);
        if (!HasExits(inst.blocks[0], id)) {
            Join(inst.results, inst.blocks[0]);
        }
    }

    // What a construct gives is what this block yields.
    void Join(const std::vector<ValueId>& results, BlockId block) {
        const Instruction& last = Last(block);
        if (last.op != Op::kYield) {
            return;
        }
        for (size_t i = 0; i < results.size(); ++i) {
            same_as_[results[i].value()] = last.operands[i];
            index_.Assume(results[i], index_.Of(last.operands[i]));
        }
    }

    bool HasExits(BlockId block, InstId to) const {
        if (std::ranges::find(not_taken_, block) != not_taken_.end()) {
            return false;
        }
        return std::ranges::any_of(kernel_.block(block).insts, [&](InstId id) {
            const Instruction& inst = kernel_.inst(id);
            return (inst.op == Op::kExit && inst.target == to) ||
                   std::ranges::any_of(inst.blocks,
                                       [&](BlockId inner) { return HasExits(inner, to); });
        });
    }

    // --- the two forms --------------------------------------------------------------------------

    void Split() {
        std::vector<InstId> end = TakeEnd(kernel_, block_, start_);
        ValueId all = asked_[0];
        for (size_t i = 1; i < asked_.size(); ++i) {
            all = Make(Op::kAnd, Type::kBool, {all, asked_[i]});
        }
        std::vector<InstId>& insts = kernel_.block(block_).insts;
        insts.insert(insts.end(), made_.begin(), made_.end());
        Cloner cloner(kernel_);
        const InstId branch =
            AppendForms(kernel_, block_, std::move(end), {.condition = all}, cloner);
        std::vector<InstId>& even = kernel_.block(kernel_.inst(branch).blocks[0]).insts;
        for (const auto& [guard, holds] : guards_) {
            const InstId known = kernel_.NewInst(Op::kConst, {}, kBool);
            kernel_.inst(known).imm = holds ? 1 : 0;
            even.insert(even.begin(), known);
            kernel_.inst(cloner.Construct(guard)).operands[0] = kernel_.inst(known).results[0];
        }
        std::vector<ValueId> map(kernel_.num_values());
        for (const auto& [from, to] : replaced_) {
            map[cloner.Value(from).value()] = to;
        }
        kernel_.ReplaceUses(map);
    }

    static constexpr Type kBool[] = {Type::kBool};

    struct Guard {
        InstId inst;
        bool holds;
    };

    Kernel& kernel_;
    const BlockId block_;
    const bool in_loop_;           // the block is that of a loop
    std::vector<uint32_t> place_;  // by instruction: where in the block it lies
    IndexBuilder index_;
    std::vector<ValueId> same_as_;     // by value: what a construct's result is taken to be
    std::vector<ValueId> beforehand_;  // by value: what it is in the specialization
    uint32_t at_ = 0;                  // where the walk is
    uint32_t start_ = kOutside;        // where the two forms begin
    uint32_t origin_ = 0;
    std::vector<InstId> made_;    // stands before them
    std::vector<ValueId> asked_;  // what must hold
    size_t questions_ = 0;
    bool began_ = false;
    uint32_t divisions_ = 0;
    std::vector<std::pair<ValueId, ValueId>> replaced_;  // results of divisions
    std::vector<Guard> guards_;
    std::vector<BlockId> not_taken_;
};

bool HasDivision(const Kernel& kernel, BlockId block) {
    return AnyInside(kernel, block, [](const Instruction& inst) {
        return inst.op == Op::kUDiv || inst.op == Op::kSDiv || inst.op == Op::kURem ||
               inst.op == Op::kSRem || inst.op == Op::kUMulExtended;
    });
}

bool VisitBlock(Kernel& kernel, BlockId block) {
    if (!HasDivision(kernel, block)) {
        return false;
    }
    if (Versioner(kernel, block).Run()) {
        return true;
    }
    bool any = false;
    for (InstId id : std::vector(kernel.block(block).insts)) {
        for (BlockId inner : std::vector(kernel.inst(id).blocks)) {
            any |= VisitBlock(kernel, inner);
        }
    }
    return any;
}

}  // namespace

bool VersionDivisions(Kernel& kernel) {
    // Between barriers vectors may be of different widths, and have different ranges.
    const auto is_barrier = [](const Instruction& inst) { return inst.op == Op::kBarrier; };
    return !AnyInside(kernel, kernel.body, is_barrier) && VisitBlock(kernel, kernel.body);
}

}  // namespace fornax::kernel
