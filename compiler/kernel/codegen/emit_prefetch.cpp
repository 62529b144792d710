// Prefetches the next iteration's tile: see prefetch_plan.h.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/kernel/analysis/access_limits.h"
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/fetch_line.h"
#include "compiler/kernel/codegen/matrix_emitter.h"

namespace fornax::kernel {

using llvm::Value;

namespace {

constexpr int64_t kLineBytes = kCacheLineBytes;
// The limit of one load: lanes that are further scattered take too many instructions.
constexpr size_t kMaxLines = 16;

struct Line {
    LayoutRow row;       // the stride's multiple and a lane
    int64_t lowest = 0;  // offset
};

// By multiple of the stride, group and line.
using Lines = std::map<std::tuple<int64_t, uint8_t, int64_t>, Line>;

Lines LinesOf(const LanePattern& pattern, int64_t bytes) {
    Lines lines;
    for (uint32_t lane = 0; lane < std::max<size_t>(1, pattern.offsets.size()); ++lane) {
        LayoutRow row;
        row.lane = lane;
        row.multiple = pattern.has_rows() ? pattern.rows[lane] : 0;
        const uint8_t group = pattern.groups.empty() ? 0 : pattern.groups[lane];
        const int64_t first = pattern.offsets.empty() ? 0 : pattern.offsets[lane];
        for (int64_t at = first; at < first + bytes; at += kLineBytes) {
            const int64_t number = at >= 0 ? at / kLineBytes : (at + 1) / kLineBytes - 1;
            Line& line = lines.try_emplace({row.multiple, group, number}, row, at).first->second;
            line.lowest = std::min(line.lowest, at);
        }
    }
    return lines;
}

// In an instruction, as often as the text has them.
size_t CountMmas(const ir::Kernel& kernel, ir::InstId id) {
    const ir::Instruction& inst = kernel.inst(id);
    size_t count = inst.op == ir::Op::kMatrixMulAdd ? 1 : 0;
    for (ir::BlockId block : inst.blocks) {
        for (ir::InstId child : kernel.block(block).insts) {
            count += CountMmas(kernel, child);
        }
    }
    return count;
}

}  // namespace

void Emitter::EmitPrefetches(uint32_t region) {
    const PrefetchPlan::Iteration* found = prefetches_->Find(region);
    if (!found) {
        return;
    }
    const PrefetchPlan::Iteration& iteration = *found;
    std::vector<std::pair<ir::ValueId, HeldValue>> kept;
    auto keep = [&](ir::ValueId value) { kept.emplace_back(value, values_.held(value)); };
    for (const auto& [counter, step] : iteration.steps) {
        spills_.Import(counter);
        keep(counter);
        Value* now = values_.Raw(counter);
        values_.Set(counter,
                    builder_.CreateAdd(now, llvm::ConstantInt::getSigned(now->getType(), step)));
    }
    for (ir::ValueId value : iteration.computed) {
        keep(value);
        accesses_.EmitPure(*kernel_.Definition(value));
    }
    std::vector<Value*> addresses;
    for (ir::InstId id : iteration.loads) {
        const ir::Instruction& load = kernel_.inst(id);
        const MemoryRegion buffer_region = memory_regions_.BufferRegion(load, load.operands[0]);
        const Offset offset = values_.OffsetOf(load.operands[1]);
        if (buffer_region.lane_bases || !offset.pattern->scalar()) {
            continue;
        }
        const auto bytes = static_cast<int64_t>(
            load.results.size() * std::max(1u, ir::ByteSize(kernel_.type(load.results[0]))));
        const Lines lines = LinesOf(*offset.pattern, bytes);
        if (lines.size() > kMaxLines) {
            continue;
        }
        llvm::Type* type = offset.scalar->getType();
        for (const auto& [place, line] : lines) {
            Value* at =
                builder_.CreateAdd(offset.scalar, llvm::ConstantInt::getSigned(type, line.lowest));
            if (line.row.multiple != 0) {
                at = builder_.CreateAdd(at, values_.RowOffset(offset, line.row, type));
            }
            addresses.push_back(memory_.ByteAddress(buffer_region, at));
        }
    }
    for (const auto& [value, held] : kept) {
        values_.Restore(value, held);
    }
    if (code_.matrices) {
        size_t mmas = 0;
        for (const RegionItem& item : regions_.region(region).items) {
            if (item.kind == RegionItem::Kind::kInstruction) {
                mmas += CountMmas(kernel_, item.inst);
            }
        }
        code_.matrices->PrefetchMeanwhile(std::move(addresses), mmas);
        return;
    }
    for (Value* address : addresses) {
        FetchLine(builder_, address, CacheLevel::kAll);
    }
}

}  // namespace fornax::kernel
