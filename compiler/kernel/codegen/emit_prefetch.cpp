// Asking for the next round's tile: see prefetch_plan.h. A prefetch never faults, so nothing is
// checked.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <map>

#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using llvm::Value;

namespace {

constexpr int64_t kLineBytes = 64;
// Of one load: lanes that are further scattered take too many instructions.
constexpr size_t kMaxLines = 8;

int64_t At(const std::vector<int64_t>& by_lane, size_t lane) {
    return by_lane.empty() ? 0 : by_lane[lane];
}

// By multiple of the stride and line: the lowest offset.
std::map<std::pair<int64_t, int64_t>, int64_t> LinesOf(const Shape& shape, int64_t bytes) {
    std::map<std::pair<int64_t, int64_t>, int64_t> lines;
    for (size_t lane = 0; lane < std::max<size_t>(1, shape.offsets.size()); ++lane) {
        const int64_t first = At(shape.offsets, lane);
        for (int64_t at = first; at < first + bytes; at += kLineBytes) {
            const int64_t line = at >= 0 ? at / kLineBytes : (at + 1) / kLineBytes - 1;
            int64_t& lowest = lines.try_emplace({At(shape.rows, lane), line}, at).first->second;
            lowest = std::min(lowest, at);
        }
    }
    return lines;
}

}  // namespace

void Emitter::EmitPrefetches(const PrefetchPlan::Round& round) {
    std::vector<std::pair<ir::ValueId, Held>> kept;
    auto keep = [&](ir::ValueId value) { kept.emplace_back(value, held_[value.index]); };
    for (const auto& [counter, step] : round.steps) {
        keep(counter);
        Value* now = Raw(counter);
        Set(counter, builder_.CreateAdd(now, llvm::ConstantInt::get(now->getType(), step)));
    }
    for (ir::ValueId value : round.computed) {
        keep(value);
        EmitPure(*kernel_.Definition(value));
    }
    for (ir::InstId id : round.loads) {
        const ir::Instruction& load = kernel_.inst(id);
        const MemoryRegion region = BufferRegion(load, load.operands[0]);
        const Offset offset = OffsetOf(load.operands[1]);
        if (region.lane_bases || !offset.shape->scalar())
            continue;
        const auto bytes = static_cast<int64_t>(
            load.results.size() * std::max(1u, ir::ByteSize(kernel_.type(load.results[0]))));
        const auto lines = LinesOf(*offset.shape, bytes);
        if (lines.size() > kMaxLines)
            continue;
        llvm::Type* type = offset.scalar->getType();
        for (const auto& [place, lowest] : lines) {
            Value* at =
                builder_.CreateAdd(offset.scalar, llvm::ConstantInt::getSigned(type, lowest));
            if (place.first != 0)
                at = builder_.CreateAdd(at, RowOffset(*offset.shape, place.first, type));
            // For reading, into all caches, as data.
            builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                                     {ByteAddress(region, at), builder_.getInt32(0),
                                      builder_.getInt32(3), builder_.getInt32(1)});
        }
    }
    for (const auto& [value, held] : kept)
        held_[value.index] = held;
}

}  // namespace fornax::kernel
