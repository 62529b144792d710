// Lines of memory that are asked for before they are used. An address that nothing is at does no
// harm.
#include <algorithm>

#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;

namespace {

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kFetchAheadBytes = 4096;
constexpr uint64_t kLeastFetchedBytes = 32;  // smaller accesses would ask for each line too often

}  // namespace

// A store to a line that is in no cache waits until it is, and those behind it wait, too: the
// processor asks for the lines of few stores at once. Loads do not hold each other up, so the line
// of a later store is asked for like one. Loads among much arithmetic need the same, because the
// processor does not look far enough ahead to meet the next ones. Accesses that run through memory
// come by there soon, be it in this loop, in the next sweep over a row or in the next workgroup; a
// line too many costs less than one that is missing.
void Emitter::FetchAhead(Value* address, uint64_t bytes, bool for_store) {
    if (bytes < kLeastFetchedBytes)
        return;
    for (uint64_t line = 0; line < bytes; line += kLineBytes) {
        Value* ahead =
            builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, kFetchAheadBytes + line);
        constexpr uint32_t kAllCaches = 3;
        constexpr uint32_t kData = 1;
        builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {ahead->getType()},
                                 {ahead, builder_.getInt32(for_store),
                                  builder_.getInt32(kAllCaches), builder_.getInt32(kData)});
    }
}

// Whether the innermost loop, or the kernel outside of loops, has a long float function. Others run
// so far ahead of their loads that the processor needs no help to have many under way.
bool Emitter::ComputesMuch() {
    ir::BlockId around = kernel_.body;
    for (const Construct& construct : constructs_) {
        if (kernel_.inst(construct.inst).op == Op::kLoop)
            around = kernel_.inst(construct.inst).blocks[0];
    }
    const auto [known, is_new] = computes_much_.try_emplace(around.index, false);
    if (is_new) {
        auto visit = [&](auto& self, ir::BlockId block) -> bool {
            return std::ranges::any_of(kernel_.block(block).insts, [&](ir::InstId id) {
                const ir::Instruction& inst = kernel_.inst(id);
                return (inst.op >= Op::kExp && inst.op <= Op::kATanh) ||
                       std::ranges::any_of(inst.blocks,
                                           [&](ir::BlockId inner) { return self(self, inner); });
            });
        };
        known->second = visit(visit, around);
    }
    return known->second;
}

// Whether the kernel loads from where it stores: that brings the line already.
bool Emitter::IsLoaded(const ir::Instruction& store) const {
    const bool global = store.op == Op::kStoreGlobal;
    const size_t at = global ? 0 : 1;
    auto binding = [&](const ir::Instruction& access) {
        const ir::Instruction* buffer = kernel_.Definition(access.operands[0]);
        return buffer && buffer->op == Op::kBuffer ? buffer->imm : UINT64_MAX;
    };
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& load = kernel_.inst(ir::InstId{i});
        if (load.op == (global ? Op::kLoadGlobal : Op::kLoadBuffer) &&
            load.operands[at] == store.operands[at] &&
            (global || binding(load) == binding(store))) {
            return true;
        }
    }
    return false;
}

}  // namespace fornax::kernel
