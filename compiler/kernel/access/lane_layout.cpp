// Sorting of the lanes' elements, and what an access costs.
#include "compiler/kernel/access/lane_layout.h"

#include <algorithm>

#include "compiler/kernel/analysis/access_limits.h"

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr double kLoopWeight = 8;
constexpr int kDeepestLoop = 4;

}  // namespace

std::optional<LaneLayout> MakeLaneLayout(const LanePattern& pattern,
                                         uint64_t element_bytes,
                                         size_t count,
                                         uint64_t gap_bytes) {
    LaneLayout layout;
    const size_t lanes = pattern.offsets.size();
    // What tells rows apart: the multiple, or the group where each has a stride of its own.
    std::vector<int64_t> keys(lanes, 0);
    if (!pattern.groups.empty()) {
        keys.assign(pattern.groups.begin(), pattern.groups.end());
    } else if (pattern.has_rows()) {
        keys = pattern.rows;
    }
    std::vector<int64_t> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

    const uint64_t gap = std::max<uint64_t>(1, gap_bytes / element_bytes);
    layout.row.resize(lanes);
    layout.first.resize(lanes);
    for (int64_t key : sorted) {
        LayoutRow row;
        row.lane = static_cast<uint32_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
        row.multiple = pattern.has_rows() ? pattern.rows[row.lane] : 0;
        row.lowest = INT64_MAX;
        for (size_t lane = 0; lane < lanes; ++lane) {
            if (keys[lane] == key) {
                row.lowest = std::min(row.lowest, pattern.offsets[lane]);
            }
        }
        std::vector<uint64_t> touched;
        for (size_t lane = 0; lane < lanes; ++lane) {
            if (keys[lane] != key) {
                continue;
            }
            const auto relative = static_cast<uint64_t>(pattern.offsets[lane] - row.lowest);
            if (relative % element_bytes != 0) {
                return std::nullopt;
            }
            layout.row[lane] = static_cast<uint32_t>(layout.rows.size());
            layout.first[lane] = relative / element_bytes;
            for (size_t i = 0; i < count; ++i) {
                touched.push_back(relative / element_bytes + i);
            }
        }
        std::sort(touched.begin(), touched.end());
        row.span = (touched.back() + 1) * element_bytes;
        for (size_t i = 0; i < touched.size(); ++i) {
            const uint64_t at = touched[i];
            if (i == 0 || at > touched[i - 1] + gap) {
                row.runs.push_back({at, 1});
                continue;
            }
            RowRun& run = row.runs.back();
            layout.distinct &= at != touched[i - 1];
            layout.dense &= at <= touched[i - 1] + 1;
            run.count = at - run.first + 1;
        }
        for (const RowRun& run : row.runs) {
            layout.elements += run.count;
        }
        layout.num_runs += static_cast<uint32_t>(row.runs.size());
        layout.rows.push_back(std::move(row));
    }
    return layout;
}

bool WorthLoadingRuns(const LaneLayout& layout, uint32_t lanes, size_t count) {
    const uint64_t wanted = uint64_t{lanes} * count;
    return (layout.num_runs <= kFewRuns || layout.num_runs * 2 <= wanted) &&
           layout.elements <= 4 * wanted;
}

bool WorthStoringRuns(const LaneLayout& layout, uint32_t lanes, size_t count) {
    return layout.distinct && layout.dense &&
           (layout.num_runs <= kFewRuns || layout.num_runs * 2 <= uint64_t{lanes} * count);
}

namespace {

class MemoryCost {
  public:
    MemoryCost(const ir::Kernel& kernel, const LaneAnalysis& patterns, uint32_t vector_bytes)
        : kernel_(kernel), patterns_(patterns), vector_bytes_(vector_bytes) {}

    double Of(ir::BlockId block, int loops) const {
        double cost = 0;
        for (ir::InstId id : kernel_.block(block).insts) {
            cost += Of(id, loops);
        }
        return cost;
    }

    double Of(ir::InstId id, int loops) const {
        const ir::Instruction& inst = kernel_.inst(id);
        const int inside = std::min(loops + (inst.op == Op::kLoop ? 1 : 0), kDeepestLoop);
        double cost = 0;
        for (ir::BlockId child : inst.blocks) {
            cost += Of(child, inside);
        }
        double access = 0;
        switch (inst.op) {
            case Op::kLoadBuffer:
                access = Access(inst.operands[1], inst.results[0], inst.results.size(), false);
                break;
            case Op::kLoadShared:
                access = Access(inst.operands[0], inst.results[0], inst.results.size(), false);
                break;
            case Op::kStoreBuffer:
                access = Access(inst.operands[1], inst.operands[2], inst.operands.size() - 2, true);
                break;
            case Op::kStoreShared:
                access = Access(inst.operands[0], inst.operands[1], inst.operands.size() - 1, true);
                break;
            default:
                break;
        }
        for (int i = 0; i < loops; ++i) {
            access *= kLoopWeight;
        }
        return cost + access;
    }

  private:
    double Access(ir::ValueId offset, ir::ValueId value, size_t count, bool store) const {
        const LanePattern& pattern = patterns_.pattern(offset);
        const double elements = static_cast<double>(patterns_.lanes()) * static_cast<double>(count);
        if (pattern.uniform()) {
            return 1;
        }
        if (pattern.varying()) {
            return kElementCost * elements;
        }
        const uint64_t bytes = std::max(ir::ByteSize(kernel_.type(value)), 1u);
        std::optional<LaneLayout> layout =
            MakeLaneLayout(pattern, bytes, count, store ? 0 : kRunGapBytes);
        if (!layout || !(store ? WorthStoringRuns(*layout, patterns_.lanes(), count)
                               : WorthLoadingRuns(*layout, patterns_.lanes(), count))) {
            return kElementCost * elements;
        }
        double cost = 0;
        for (const LayoutRow& row : layout->rows) {
            for (const RowRun& run : row.runs) {
                const auto vectors = (run.count * bytes + vector_bytes_ - 1) / vector_bytes_;
                cost += static_cast<double>(vectors);
            }
        }
        return cost;
    }

    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    uint32_t vector_bytes_;
};

}  // namespace

double EstimateMemoryCost(const ir::Kernel& kernel,
                          const LaneAnalysis& patterns,
                          uint32_t vector_bytes) {
    return MemoryCost(kernel, patterns, vector_bytes).Of(kernel.body, 0) / patterns.lanes();
}

double EstimateMemoryCost(const ir::Kernel& kernel,
                          const LaneAnalysis& patterns,
                          uint32_t vector_bytes,
                          const BarrierRegion& region) {
    const MemoryCost memory(kernel, patterns, vector_bytes);
    double cost = 0;
    for (const RegionItem& item : region.items) {
        if (item.kind == RegionItem::Kind::kInstruction) {
            cost += memory.Of(item.inst, 0);
        }
    }
    return cost / patterns.lanes();
}

}  // namespace fornax::kernel
