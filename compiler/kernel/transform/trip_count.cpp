// Finds trip counts by running what is known of a loop: whatever the counter does, and however the
// test is written, as long as it is made of pure operations.
#include "compiler/kernel/transform/trip_count.h"

#include <algorithm>

#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMaxIndexDepth = 8;  // every path is followed

}  // namespace

// The ifs among the first `end` instructions of a block that runs in every iteration.
void TripCounter::FindTestsIn(InstId loop, BlockId block, uint32_t end) {
    const auto& insts = kernel_.block(block).insts;
    for (uint32_t i = 0; i < end && i < insts.size(); ++i) {
        const Instruction& inst = kernel_.inst(insts[i]);
        if (inst.op != Op::kIf) {
            continue;
        }
        for (size_t side = 0; side < 2; ++side) {
            const Instruction& last = kernel_.inst(kernel_.block(inst.blocks[side]).insts.back());
            if (last.op == Op::kExit && last.target == loop) {
                tests_.push_back({inst.operands[0], side == 0});
            }
        }
    }
}

void TripCounter::FindTests(InstId loop) {
    tests_.clear();
    const Instruction& inst = kernel_.inst(loop);
    // What stands behind a construct that may continue the loop does not always run.
    auto end = static_cast<uint32_t>(kernel_.block(inst.blocks[0]).insts.size());
    for (InstId edge : structure_.Continues(loop)) {
        InstId at = edge;
        while (structure_.block_of[at.value()] != inst.blocks[0]) {
            at = kernel_.block(structure_.block_of[at.value()]).parent;
        }
        end = std::min(end, structure_.position[at.value()]);
    }
    FindTestsIn(loop, inst.blocks[0], end);
    FindTestsIn(loop, inst.blocks[1], UINT32_MAX);
    FindOnlyContinue(loop);
}

// The body ends with an exit, and one if goes on before: `for` with its test as the condition to
// stay.
void TripCounter::FindOnlyContinue(InstId loop) {
    const BlockId body = kernel_.inst(loop).blocks[0];
    const Instruction& last = kernel_.inst(kernel_.block(body).insts.back());
    const auto& edges = structure_.Continues(loop);
    if (last.op != Op::kExit || last.target != loop || edges.size() != 1) {
        return;
    }
    const BlockId side = structure_.block_of[edges[0].value()];
    const InstId parent = kernel_.block(side).parent;
    if (!parent.valid() || structure_.block_of[parent.value()] != body ||
        kernel_.inst(parent).op != Op::kIf) {
        return;
    }
    const Instruction& inst = kernel_.inst(parent);
    tests_.push_back({inst.operands[0], inst.blocks[0] != side});
}

// A parameter of the continuing block is what all continues agree on.
std::optional<uint64_t> TripCounter::Common(InstId loop, size_t param) {
    std::optional<uint64_t> common;
    for (InstId edge : structure_.Continues(loop)) {
        const auto bits = values_.Evaluate(kernel_.inst(edge).operands[param]);
        if (!bits || (common && *common != *bits)) {
            return std::nullopt;
        }
        common = bits;
    }
    return common;
}

std::optional<uint32_t> TripCounter::Count(InstId loop_id, uint32_t limit) {
    FindTests(loop_id);
    if (tests_.empty()) {
        return std::nullopt;
    }
    const Instruction& loop = kernel_.inst(loop_id);
    const Instruction& next = kernel_.inst(structure_.Next(loop_id));
    const auto& params = kernel_.block(loop.blocks[0]).params;
    const auto& continuing = kernel_.block(loop.blocks[1]).params;
    std::vector<std::optional<uint64_t>> values(params.size());
    for (size_t i = 0; i < params.size(); ++i) {
        uint64_t bits = 0;
        if (kernel_.IsConst(loop.operands[i], &bits)) {
            values[i] = bits;
        }
    }
    for (uint32_t trips = 1; trips <= limit; ++trips) {
        values_.Begin();
        for (size_t i = 0; i < params.size(); ++i) {
            values_.Set(params[i], values[i]);
        }
        for (size_t i = 0; i < continuing.size(); ++i) {
            values_.Set(continuing[i], Common(loop_id, i));
        }
        bool any_known = false;
        for (const Test& test : tests_) {
            auto bits = values_.Evaluate(test.condition);
            any_known |= bits.has_value();
            if (bits && (*bits != 0) == test.exits_if) {
                return trips;
            }
        }
        if (!any_known) {
            return std::nullopt;
        }
        for (size_t i = 0; i < params.size(); ++i) {
            values[i] = values_.Evaluate(next.operands[i]);
        }
    }
    return std::nullopt;
}

bool TripCounter::DependsOn(InstId loop, ValueId value, uint32_t depth, bool* on_loop) const {
    const Value& definition = kernel_.value(value);
    if (!definition.inst.valid()) {
        *on_loop |= kernel_.block(definition.block).parent == loop;
        return true;
    }
    const Instruction& inst = kernel_.inst(definition.inst);
    if (inst.op == Op::kConst) {
        return true;
    }
    if (depth > kMaxIndexDepth || !IsExact(kernel_, inst)) {
        return false;
    }
    return std::ranges::all_of(inst.operands, [&](ValueId operand) {
        return DependsOn(loop, operand, depth + 1, on_loop);
    });
}

bool TripCounter::DependsOnLoopOnly(InstId loop, ValueId value) const {
    bool on_loop = false;
    return DependsOn(loop, value, 0, &on_loop) && on_loop;
}

}  // namespace fornax::kernel
