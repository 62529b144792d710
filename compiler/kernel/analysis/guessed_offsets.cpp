#include "compiler/kernel/analysis/guessed_offsets.h"

#include <algorithm>
#include <functional>

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr size_t kMaxValues = 96;
constexpr int64_t kMaxOffset = int64_t{1} << 30;

}  // namespace

LaneGuesses::Guess LaneGuesses::Of(ir::ValueId value) {
    const Shape& shape = shapes_.shape(value);
    if (shape.uniform())
        return same_;
    if (shape.pattern())
        return shape.offsets;
    if (guesses_.size() >= kMaxValues)
        return {};
    // What a loop computes from itself is not known while it is looked at.
    const auto [found, is_new] = guesses_.try_emplace(value.index);
    if (!is_new)
        return found->second;
    Guess guess = shape.has_rows() ? OfRows(shape) : OfVarying(value);
    if (guess && std::any_of(guess->begin(), guess->end(),
                             [](int64_t at) { return at < -kMaxOffset || at > kMaxOffset; }))
        guess.reset();
    return guesses_[value.index] = guess;
}

LaneGuesses::Guess LaneGuesses::OfRows(const Shape& shape) {
    if (shape.narrow_scale != 0)
        return {};
    Guess strides = shape.groups.empty() ? Lanes(same_.size(), 1) : Of(shape.stride);
    if (!strides)
        return {};
    for (size_t i = 0; i < strides->size(); ++i)
        (*strides)[i] = (*strides)[i] * shape.rows[i] + shape.offsets[i];
    return strides;
}

LaneGuesses::Guess LaneGuesses::OfVarying(ir::ValueId value) {
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst)
        return OfParameter(value);
    if (inst->op == Op::kIf)
        return OfBranches(*inst, value);
    if (inst->op == Op::kLoop)
        return OfExits(kernel_.value(value).inst, value);
    const bool loads = inst->op == Op::kLoadBuffer || inst->op == Op::kLoadShared;
    const bool pure = ir::HasProperty(inst->op, ir::kPure);
    if (inst->operands.empty() || (!loads && !pure))
        return {};
    std::vector<Lanes> in;
    for (ir::ValueId operand : inst->operands) {
        Guess guess = Of(operand);
        if (!guess)
            return {};
        in.push_back(std::move(*guess));
    }
    const bool same = std::all_of(in.begin(), in.end(), [&](const Lanes& lanes) {
        return std::all_of(lanes.begin(), lanes.end(), [&](int64_t at) { return at == lanes[0]; });
    });
    if (same)
        return same_;
    return pure ? OfOperation(*inst, in) : Guess();
}

LaneGuesses::Guess LaneGuesses::OfOperation(const ir::Instruction& inst,
                                            const std::vector<Lanes>& in) {
    uint64_t bits = 0;
    const bool is_const =
        inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &bits) && bits != 0;
    const auto number = static_cast<int64_t>(bits);
    auto each = [&](const std::function<int64_t(int64_t)>& map) {
        Lanes lanes = in[0];
        std::transform(lanes.begin(), lanes.end(), lanes.begin(), map);
        return lanes;
    };
    auto with = [&](const Lanes& other, int64_t sign) {
        Lanes lanes = in[0];
        for (size_t i = 0; i < lanes.size(); ++i)
            lanes[i] += sign * other[i];
        return lanes;
    };
    const bool positive =
        std::all_of(in[0].begin(), in[0].end(), [](int64_t at) { return at >= 0; });
    const bool small = is_const && bits < 31;
    const bool divides = is_const && positive && bits < static_cast<uint64_t>(kMaxOffset);
    switch (inst.op) {
        case Op::kIAdd:
            return with(in[1], 1);
        case Op::kISub:
            return with(in[1], -1);
        case Op::kOr:
        case Op::kXor:
            // Of bits that do not meet.
            return with(in[1], 1);
        case Op::kIMul:
            if (is_const && bits < static_cast<uint64_t>(kMaxOffset))
                return each([&](int64_t at) { return at * number; });
            return Product(in);
        case Op::kShl:
            return small ? Guess(each([&](int64_t at) { return at << number; })) : Guess();
        case Op::kLShr:
        case Op::kAShr:
            return small && positive ? Guess(each([&](int64_t at) { return at >> number; }))
                                     : Guess();
        case Op::kAnd:
            return divides ? Guess(each([&](int64_t at) { return at & number; })) : Guess();
        case Op::kUDiv:
        case Op::kSDiv:
            if (divides)
                return each([&](int64_t at) { return at / number; });
            return in[1] == same_ ? Guess(same_) : Guess();
        case Op::kURem:
        case Op::kSRem:
            if (divides)
                return each([&](int64_t at) { return at % number; });
            return in[1] == same_ ? Guess(in[0]) : Guess();
        case Op::kZExt:
        case Op::kSExt:
        case Op::kTrunc:
        case Op::kBitcast:
            return in[0];
        case Op::kSelect:
            return in[1] == in[2] ? Guess(in[1]) : Guess();
        default:
            return {};
    }
}

// By a number that is 1, or of numbers that all lanes have.
LaneGuesses::Guess LaneGuesses::Product(const std::vector<Lanes>& in) {
    if (in[0] == same_)
        return in[1];
    return in[1] == same_ ? Guess(in[0]) : Guess();
}

// What goes into a loop.
LaneGuesses::Guess LaneGuesses::OfParameter(ir::ValueId value) {
    const ir::BlockId block = kernel_.value(value).block;
    const ir::InstId parent = kernel_.block(block).parent;
    if (!parent.valid())
        return {};
    const ir::Instruction& loop = kernel_.inst(parent);
    const auto& params = kernel_.block(block).params;
    if (loop.op != Op::kLoop || loop.blocks[0] != block || loop.operands.size() != params.size())
        return {};
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
        if (last.op != Op::kYield)
            return {};
        Guess guess = Of(last.operands[index]);
        if (!guess || (both && *both != *guess))
            return {};
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
            for (ir::BlockId child : inst.blocks)
                self(self, child);
            if (inst.op != Op::kExit || inst.target != loop || !agree)
                continue;
            Guess guess = Of(inst.operands[index]);
            agree = guess && (!all || *all == *guess);
            all = std::move(guess);
        }
    };
    visit(visit, kernel_.inst(loop).blocks[0]);
    return agree ? all : Guess();
}

}  // namespace fornax::kernel
