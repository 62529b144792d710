// Greedy placement in several orders, best fit among gaps.
#include "compiler/graph/plan/packing.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>

namespace fornax::graph {
namespace {

// Comparisons of two buffers after which no further order is tried: some 0.2 s.
constexpr uint64_t kWorkLimit = 100'000'000;
// Orders that are tried without an improvement before the search ends.
constexpr int kPatience = 24;

struct Packer {
    std::vector<Lifetime> buffers;  // with rounded sizes
    uint64_t work = 0;

    // Places the buffers one after the other, each in the smallest gap that it fits into between
    // those that live at the same time.
    Packing Place(std::span<const uint32_t> order) {
        Packing packing;
        packing.offsets.assign(buffers.size(), 0);
        std::vector<uint32_t> placed;  // by increasing offset
        placed.reserve(order.size());
        for (const uint32_t index : order) {
            const Lifetime& buffer = buffers[index];
            if (buffer.size_bytes == 0) {
                continue;
            }
            uint64_t best_offset = UINT64_MAX, best_gap = UINT64_MAX, free_from = 0;
            for (const uint32_t other_index : placed) {
                const Lifetime& other = buffers[other_index];
                if (buffer.first > other.last || other.first > buffer.last) {
                    continue;
                }
                const uint64_t begin = packing.offsets[other_index];
                if (begin >= free_from + buffer.size_bytes && begin - free_from < best_gap) {
                    best_gap = begin - free_from;
                    best_offset = free_from;
                }
                free_from = std::max(free_from, begin + other.size_bytes);
            }
            work += placed.size();
            const uint64_t offset = best_offset != UINT64_MAX ? best_offset : free_from;
            packing.offsets[index] = offset;
            packing.total_bytes = std::max(packing.total_bytes, offset + buffer.size_bytes);
            placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](uint64_t value, uint32_t other) {
                                               return value < packing.offsets[other];
                                           }),
                          index);
        }
        return packing;
    }

    uint64_t LowerBound() const {
        struct Event {
            uint64_t step;
            bool begins;
            uint64_t size;
        };
        std::vector<Event> events;
        for (const Lifetime& buffer : buffers) {
            events.push_back({buffer.first, true, buffer.size_bytes});
            events.push_back({uint64_t{buffer.last} + 1, false, buffer.size_bytes});
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

    // The bytes that are alive at the buffer's busiest step.
    std::vector<uint64_t> Breadths() {
        std::vector<uint64_t> breadths(buffers.size(), 0);
        // A buffer's busiest step is its first one or the first one of another buffer.
        for (const Lifetime& at : buffers) {
            uint64_t live = 0;
            for (const Lifetime& buffer : buffers) {
                live += buffer.first <= at.first && at.first <= buffer.last ? buffer.size_bytes : 0;
            }
            for (size_t i = 0; i < buffers.size(); ++i) {
                if (buffers[i].first <= at.first && at.first <= buffers[i].last) {
                    breadths[i] = std::max(breadths[i], live);
                }
            }
        }
        work += 2 * buffers.size() * buffers.size();
        return breadths;
    }
};

// The positions in order of descending keys; ties in the order given, so that it is deterministic.
std::vector<uint32_t> Order(size_t count,
                            const std::function<std::pair<uint64_t, uint64_t>(uint32_t)>& key) {
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        const auto key_a = key(a), key_b = key(b);
        return key_a != key_b ? key_a > key_b : a < b;
    });
    return order;
}

}  // namespace

Packing Pack(std::span<const Lifetime> buffers, uint64_t alignment) {
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    Packer packer;
    packer.buffers.assign(buffers.begin(), buffers.end());
    for (Lifetime& buffer : packer.buffers) {
        buffer.size_bytes = (buffer.size_bytes + alignment - 1) & ~(alignment - 1);
    }
    const std::vector<Lifetime>& sized = packer.buffers;
    const size_t count = sized.size();
    const uint64_t lower_bound = packer.LowerBound();

    Packing best, current;
    std::vector<uint32_t> best_order;
    bool first = true;
    // True if it is the best so far.
    const auto attempt = [&](const std::vector<uint32_t>& order) {
        Packing packing = packer.Place(order);
        const bool better = first || packing.total_bytes < best.total_bytes;
        if (better) {
            best = packing;
            best_order = order;
        }
        first = false;
        current = std::move(packing);
        return better;
    };
    const auto done = [&] {
        return !first && (best.total_bytes == lower_bound || packer.work > kWorkLimit);
    };

    using Key = std::pair<uint64_t, uint64_t>;
    const auto size = [&](uint32_t i) { return sized[i].size_bytes; };
    const auto length = [&](uint32_t i) { return uint64_t{sized[i].last - sized[i].first} + 1; };
    attempt(Order(count, [&](uint32_t i) { return Key(size(i), 0); }));
    if (!done()) {
        attempt(
            Order(count, [&](uint32_t i) { return Key(UINT32_MAX - sized[i].first, size(i)); }));
    }
    if (!done()) {
        attempt(Order(count, [&](uint32_t i) { return Key(length(i), size(i)); }));
    }
    if (!done()) {
        attempt(Order(count, [&](uint32_t i) { return Key((size(i) >> 8) * length(i), 0); }));
    }
    if (!done() && uint64_t{count} * count < kWorkLimit / 8) {
        const std::vector<uint64_t> breadths = packer.Breadths();
        attempt(Order(count, [&](uint32_t i) { return Key(breadths[i], size(i)); }));
    }
    // What reaches to the end of the arena is placed earlier in the next attempt.
    current = best;
    std::vector<uint32_t> order = best_order;
    for (int idle = 0; !done() && idle < kPatience; ++idle) {
        std::vector<uint32_t> next, others;
        for (const uint32_t i : order) {
            const bool reaches = current.offsets[i] + size(i) == current.total_bytes;
            (reaches ? next : others).push_back(i);
        }
        next.insert(next.end(), others.begin(), others.end());
        order = std::move(next);
        if (attempt(order)) {
            idle = 0;
        }
    }
    best.lower_bound_bytes = lower_bound;
    return best;
}

}  // namespace fornax::graph
