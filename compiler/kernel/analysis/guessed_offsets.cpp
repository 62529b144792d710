#include "compiler/kernel/analysis/guessed_offsets.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr size_t kMaxValues = 96;
constexpr int64_t kMaxOffset = int64_t{1} << 30;
// What strides are multiplied and divided by.
constexpr uint64_t kMaxScale = uint64_t{1} << 20;
constexpr int64_t kMaxRow = 1 << 12;
constexpr size_t kLeastLanesOfARow = 4;

bool IsNegative(int64_t at) {
    return at < 0;
}

// A stride of `times` / `by` times as much, without a rest. False if its factors get too large.
bool Scale(LaneGuesses::Lanes& lanes, int64_t times, int64_t by) {
    if (!lanes.HasRows()) {
        return true;
    }
    if (times <= 0) {
        return false;
    }
    const uint64_t above = std::gcd(lanes.by, static_cast<uint64_t>(times));
    const uint64_t below = std::gcd(lanes.times, static_cast<uint64_t>(by));
    lanes.times = lanes.times / below * (static_cast<uint64_t>(times) / above);
    lanes.by = lanes.by / above * (static_cast<uint64_t>(by) / below);
    return lanes.times <= kMaxScale && lanes.by <= kMaxScale;
}

LaneGuesses::Guess Divided(LaneGuesses::Lanes lanes, int64_t by) {
    for (int64_t& at : lanes.offsets) {
        at /= by;
    }
    return Scale(lanes, 1, by) ? LaneGuesses::Guess(std::move(lanes)) : std::nullopt;
}

LaneGuesses::Guess Multiplied(LaneGuesses::Lanes lanes, int64_t times) {
    for (int64_t& at : lanes.offsets) {
        at *= times;
    }
    return Scale(lanes, times, 1) ? LaneGuesses::Guess(std::move(lanes)) : std::nullopt;
}

// What is left when it is divided by `by`, of which the stride is a multiple.
LaneGuesses::Lanes Rest(const LaneGuesses::Lanes& lanes, int64_t by) {
    LaneGuesses::Lanes rest{.offsets = lanes.offsets, .rows = {}, .stride = {}};
    for (int64_t& at : rest.offsets) {
        at %= by;
    }
    return rest;
}

LaneGuesses::Lanes Masked(LaneGuesses::Lanes lanes, int64_t mask) {
    for (int64_t& at : lanes.offsets) {
        at &= mask;
    }
    return lanes;
}

LaneGuesses::Guess Sum(LaneGuesses::Lanes first, const LaneGuesses::Lanes& second, int64_t sign) {
    for (size_t i = 0; i < first.offsets.size(); ++i) {
        first.offsets[i] += sign * second.offsets[i];
    }
    if (!second.HasRows()) {
        return first;
    }
    if (sign < 0) {
        return {};
    }
    if (!first.HasRows()) {
        LaneGuesses::Lanes sum = second;
        sum.offsets = std::move(first.offsets);
        return sum;
    }
    if (first.stride != second.stride || first.times != second.times || first.by != second.by) {
        return {};
    }
    for (size_t i = 0; i < first.rows.size(); ++i) {
        first.rows[i] += second.rows[i];
    }
    return first;
}

}  // namespace

bool LaneGuesses::Lanes::IsOne() const {
    return !HasRows() && std::ranges::all_of(offsets, [&](int64_t at) { return at == offsets[0]; });
}

LaneGuesses::Guess LaneGuesses::Of(ir::ValueId value) {
    const Shape& shape = shapes_.shape(value);
    if (shape.uniform()) {
        return same_;
    }
    if (shape.pattern()) {
        return Lanes{.offsets = shape.offsets, .rows = {}, .stride = {}};
    }
    if (guesses_.size() >= kMaxValues) {
        return {};
    }
    // What a loop computes from itself is not known while it is looked at.
    const auto [found, is_new] = guesses_.try_emplace(value.index);
    if (!is_new) {
        return found->second;
    }
    Guess guess = shape.has_rows() ? OfRows(shape) : OfVarying(value);
    auto is_far = [](int64_t at) { return at < -kMaxOffset || at > kMaxOffset; };
    auto is_no_row = [](int64_t row) { return row < 0 || row > kMaxRow; };
    if (guess && (std::ranges::any_of(guess->offsets, is_far) ||
                  std::ranges::any_of(guess->rows, is_no_row))) {
        guess.reset();
    }
    return guesses_[value.index] = guess;
}

LaneGuesses::Guess LaneGuesses::OfRows(const Shape& shape) {
    if (shape.narrow_scale != 0) {
        return {};
    }
    Lanes lanes{.offsets = shape.offsets, .rows = {}, .stride = {}};
    if (!shape.groups.empty()) {
        // All lanes have the same multiple of different strides.
        const Guess strides = Of(shape.stride);
        const Guess multiples = strides ? Multiplied(*strides, shape.rows[0]) : Guess();
        return multiples ? Sum(*multiples, lanes, 1) : Guess();
    }
    const std::set<int64_t> rows(shape.rows.begin(), shape.rows.end());
    if (rows.size() * kLeastLanesOfARow <= shape.rows.size() && *rows.begin() >= 0) {
        // Rows that follow each other, of a stride that may be several times the value.
        int64_t common = 0;
        for (int64_t row : rows) {
            common = std::gcd(common, row);
        }
        lanes.rows = shape.rows;
        for (int64_t& row : lanes.rows) {
            row /= std::max<int64_t>(common, 1);
        }
        lanes.stride = shape.stride;
        lanes.times = static_cast<uint64_t>(std::max<int64_t>(common, 1));
        return lanes.times <= kMaxScale ? Guess(lanes) : Guess();
    }
    for (size_t i = 0; i < shape.rows.size(); ++i) {
        lanes.offsets[i] += shape.rows[i];
    }
    return lanes;
}

LaneGuesses::Guess LaneGuesses::OfVarying(ir::ValueId value) {
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst) {
        return OfParameter(value);
    }
    if (inst->op == Op::kIf) {
        return OfBranches(*inst, value);
    }
    if (inst->op == Op::kLoop) {
        return OfExits(kernel_.value(value).inst, value);
    }
    const bool loads = inst->op == Op::kLoadBuffer || inst->op == Op::kLoadShared;
    const bool pure = ir::HasProperty(inst->op, ir::kPure);
    if (inst->operands.empty() || (!loads && !pure)) {
        return {};
    }
    std::vector<Lanes> in;
    for (ir::ValueId operand : inst->operands) {
        Guess guess = Of(operand);
        if (!guess) {
            return {};
        }
        in.push_back(std::move(*guess));
    }
    if (std::ranges::all_of(in, &Lanes::IsOne)) {
        return same_;
    }
    return pure ? OfOperation(*inst, in) : Guess();
}

LaneGuesses::Guess LaneGuesses::OfOperation(const ir::Instruction& inst,
                                            const std::vector<Lanes>& in) {
    uint64_t bits = 0;
    const bool is_const =
        inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &bits) && bits != 0;
    const auto number = static_cast<int64_t>(bits);
    const bool positive = std::ranges::none_of(in[0].offsets, IsNegative);
    const bool small = is_const && bits < 31;
    const bool divides = is_const && positive && bits < static_cast<uint64_t>(kMaxOffset);
    switch (inst.op) {
        case Op::kIAdd:
            return Sum(in[0], in[1], 1);
        case Op::kISub:
            return Sum(in[0], in[1], -1);
        case Op::kOr:
        case Op::kXor:
            // The operands' bits do not overlap.
            return in[0].HasRows() || in[1].HasRows() ? Guess() : Sum(in[0], in[1], 1);
        case Op::kIMul:
            if (is_const && bits < static_cast<uint64_t>(kMaxOffset)) {
                return Multiplied(in[0], number);
            }
            return Product(in);
        case Op::kShl:
            return small ? Multiplied(in[0], int64_t{1} << number) : Guess();
        case Op::kLShr:
        case Op::kAShr:
            return small && positive ? Divided(in[0], int64_t{1} << number) : Guess();
        case Op::kAnd:
            if (!divides) {
                return {};
            }
            if (std::has_single_bit(bits + 1)) {
                return Rest(in[0], number + 1);
            }
            return in[0].HasRows() ? Guess() : Masked(in[0], number);
        case Op::kUDiv:
        case Op::kSDiv:
            if (divides) {
                return Divided(in[0], number);
            }
            return in[1] == same_ && !in[0].HasRows() ? Guess(same_) : Guess();
        case Op::kURem:
        case Op::kSRem:
            if (divides) {
                return Rest(in[0], number);
            }
            return in[1] == same_ && !in[0].HasRows() ? Guess(in[0]) : Guess();
        case Op::kZExt:
        case Op::kSExt:
        case Op::kTrunc:
            return in[0];
        case Op::kBitcast:
            return ir::IsInteger(kernel_.type(inst.operands[0])) ? Guess(in[0]) : Guess();
        case Op::kSMod:
            return in[1] == same_ && !in[0].HasRows() ? Guess(in[0]) : Guess();
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
            return OnlyOne(in);
        case Op::kSelect:
            return in[1] == in[2] ? Guess(in[1]) : Guess();
        default:
            return {};
    }
}

// The first operand, if the others are one value for all lanes, or the second if that is so.
LaneGuesses::Guess LaneGuesses::OnlyOne(const std::vector<Lanes>& in) {
    const size_t own = in.size() > 1 && in[0] == same_ ? 1 : 0;
    for (size_t i = 0; i < in.size(); ++i) {
        if (i != own && in[i] != same_) {
            return {};
        }
    }
    return in[own].HasRows() ? Guess() : Guess(in[own]);
}

// By a number that is 1, or of numbers that all lanes have.
LaneGuesses::Guess LaneGuesses::Product(const std::vector<Lanes>& in) {
    if (in[0] == same_) {
        return in[1];
    }
    return in[1] == same_ ? Guess(in[0]) : Guess();
}

// What goes into a loop.
LaneGuesses::Guess LaneGuesses::OfParameter(ir::ValueId value) {
    const ir::BlockId block = kernel_.value(value).block;
    const ir::InstId parent = kernel_.block(block).parent;
    if (!parent.valid()) {
        return {};
    }
    const ir::Instruction& loop = kernel_.inst(parent);
    const auto& params = kernel_.block(block).params;
    if (loop.op != Op::kLoop || loop.blocks[0] != block || loop.operands.size() != params.size()) {
        return {};
    }
    const auto index = std::find(params.begin(), params.end(), value) - params.begin();
    return Of(loop.operands[static_cast<size_t>(index)]);
}

// What both branches yield.
LaneGuesses::Guess LaneGuesses::OfBranches(const ir::Instruction& branch, ir::ValueId value) {
    const auto& results = branch.results;
    const auto index =
        static_cast<size_t>(std::find(results.begin(), results.end(), value) - results.begin());
    Guess both;
    for (ir::BlockId block : branch.blocks) {
        const ir::Instruction& last = kernel_.inst(kernel_.block(block).insts.back());
        if (last.op != Op::kYield) {
            return {};
        }
        Guess guess = Of(last.operands[index]);
        if (!guess || (both && *both != *guess)) {
            return {};
        }
        both = std::move(guess);
    }
    return both;
}

// What all exits take along, if lanes leave a loop together.
LaneGuesses::Guess LaneGuesses::OfExits(ir::InstId loop, ir::ValueId value) {
    const auto& results = kernel_.inst(loop).results;
    const auto index =
        static_cast<size_t>(std::find(results.begin(), results.end(), value) - results.begin());
    Guess all;
    bool agree = true;
    auto visit = [&](auto& self, ir::BlockId block) -> void {
        for (ir::InstId id : kernel_.block(block).insts) {
            const ir::Instruction& inst = kernel_.inst(id);
            for (ir::BlockId child : inst.blocks) {
                self(self, child);
            }
            if (inst.op != Op::kExit || inst.target != loop || !agree) {
                continue;
            }
            Guess guess = Of(inst.operands[index]);
            agree = guess && (!all || *all == *guess);
            all = std::move(guess);
        }
    };
    visit(visit, kernel_.inst(loop).blocks[0]);
    return agree ? all : Guess();
}

}  // namespace fornax::kernel
