// Hazards between dispatches: read after write, write after read, write after write.
#include "compiler/graph/plan/barriers.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace fornax::graph {
namespace {

// A set of bytes in one region: disjoint ranges, begin to end.
class ByteSet {
  public:
    void Add(uint64_t begin, uint64_t end) {
        auto next = ranges_.upper_bound(begin);
        if (next != ranges_.begin() && std::prev(next)->second >= begin) {
            --next;
        }
        while (next != ranges_.end() && next->first <= end) {
            begin = std::min(begin, next->first);
            end = std::max(end, next->second);
            next = ranges_.erase(next);
        }
        ranges_[begin] = end;
    }

    bool Overlaps(uint64_t begin, uint64_t end) const {
        const auto next = ranges_.lower_bound(end);
        return next != ranges_.begin() && std::prev(next)->second > begin;
    }

  private:
    std::map<uint64_t, uint64_t> ranges_;
};

using Touched = std::map<uint32_t, ByteSet>;  // by region

bool Overlap(const Touched& touched, std::span<const ByteRange> ranges) {
    for (const ByteRange& range : ranges) {
        const auto set = touched.find(range.region);
        if (range.begin < range.end && set != touched.end() &&
            set->second.Overlaps(range.begin, range.end)) {
            return true;
        }
    }
    return false;
}

void Add(std::span<const ByteRange> ranges, Touched& touched) {
    for (const ByteRange& range : ranges) {
        if (range.begin < range.end) {
            touched[range.region].Add(range.begin, range.end);
        }
    }
}

}  // namespace

std::vector<bool> PlanBarriers(std::span<const DispatchAccess> dispatches) {
    std::vector<bool> barriers;
    barriers.reserve(dispatches.size());
    Touched read, written;  // since the last barrier
    for (const DispatchAccess& dispatch : dispatches) {
        const bool barrier = Overlap(written, dispatch.reads) ||
                             Overlap(written, dispatch.writes) || Overlap(read, dispatch.writes);
        if (barrier) {
            read.clear();
            written.clear();
        }
        Add(dispatch.reads, read);
        Add(dispatch.writes, written);
        barriers.push_back(barrier);
    }
    return barriers;
}

}  // namespace fornax::graph
