// Greedy placement by size, best fit among gaps.
#include "compiler/legacy_graph/memory_planner.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>

namespace fornax::legacy_graph {
namespace {

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

bool Overlap(const BufferLifetime& a, const BufferLifetime& b) {
    return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const BufferLifetime> buffers, uint64_t alignment) {
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    std::vector<uint32_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    // Ties go to the buffer that lives first, then to the order given: a total order, so
    // deterministic.
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        if (buffers[a].size_bytes != buffers[b].size_bytes) {
            return buffers[a].size_bytes > buffers[b].size_bytes;
        }
        return std::tie(buffers[a].first_step, a) < std::tie(buffers[b].first_step, b);
    });

    MemoryPlan plan;
    plan.offsets.assign(buffers.size(), 0);
    std::vector<uint32_t> placed;  // by increasing offset
    for (uint32_t index : order) {
        const BufferLifetime& buffer = buffers[index];
        const uint64_t size = AlignUp(buffer.size_bytes, alignment);
        if (size == 0) {
            continue;
        }
        uint64_t best_offset = UINT64_MAX, best_gap = UINT64_MAX;
        uint64_t free_from = 0;
        for (uint32_t other : placed) {
            if (!Overlap(buffer, buffers[other])) {
                continue;
            }
            const uint64_t begin = plan.offsets[other];
            if (begin >= free_from + size && begin - free_from < best_gap) {
                best_gap = begin - free_from;
                best_offset = free_from;
            }
            free_from = std::max(free_from, begin + AlignUp(buffers[other].size_bytes, alignment));
        }
        plan.offsets[index] = best_offset != UINT64_MAX ? best_offset : free_from;
        plan.total_bytes = std::max(plan.total_bytes, plan.offsets[index] + size);
        const auto position = std::upper_bound(
            placed.begin(), placed.end(), index,
            [&](uint32_t a, uint32_t b) { return plan.offsets[a] < plan.offsets[b]; });
        placed.insert(position, index);
    }
    return plan;
}

uint64_t PeakLiveBytes(std::span<const BufferLifetime> buffers, uint64_t alignment) {
    // The peak is reached at a step at which some buffer begins to live.
    struct Event {
        uint64_t step;
        bool begins;
        uint64_t size;
    };
    std::vector<Event> events;
    for (const BufferLifetime& buffer : buffers) {
        const uint64_t size = AlignUp(buffer.size_bytes, alignment);
        events.push_back({buffer.first_step, true, size});
        events.push_back({uint64_t{buffer.last_step} + 1, false, size});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
        return a.step != b.step ? a.step < b.step : a.begins < b.begins;
    });
    uint64_t live = 0, peak = 0;
    for (const Event& event : events) {
        live = event.begins ? live + event.size : live - event.size;
        peak = std::max(peak, live);
    }
    return peak;
}

}  // namespace fornax::legacy_graph
