#include "npu/units/memory_cache.h"

#include <algorithm>

namespace fornax::npu {

void MemoryCache::AddMissed(Use use, uint64_t bytes, CacheTraffic& traffic) {
    traffic.read += use == Use::kWrite ? 0 : bytes;
    traffic.written += use == Use::kRead ? 0 : bytes;
}

CacheTraffic MemoryCache::Touch(const MemoryRange& range, uint64_t bytes, Use use) {
    CacheTraffic traffic;
    uint64_t distinct = std::min(bytes, range.bytes);
    const uint64_t again = bytes - distinct;
    if (again > 0 && !Holds(range.bytes)) {
        AddMissed(use, again, traffic);
    }
    uint64_t begin = range.begin;
    // Nothing is found of a range that is much too large, and its end stays.
    const uint64_t most = 2 * parts_ * kPartBytes;
    if (distinct > most) {
        const uint64_t passes = distinct - most;
        AddMissed(use, passes, traffic);
        begin += passes;
        distinct = most;
    }
    const uint64_t end = begin + distinct;
    while (begin < end) {
        const uint64_t number = begin / kPartBytes;
        const uint64_t until = std::min(end, (number + 1) * kPartBytes);
        TouchPart({range.memory, number, 0}, until - begin, use, traffic);
        begin = until;
    }
    return traffic;
}

void MemoryCache::TouchPart(const Part& part, uint64_t bytes, Use use, CacheTraffic& traffic) {
    const auto found = held_.find(part);
    if (found != held_.end()) {
        used_.splice(used_.begin(), used_, found->second);
    } else {
        traffic.read += use == Use::kWrite ? 0 : bytes;
        used_.push_front(part);
        held_.emplace(part, used_.begin());
    }
    if (use != Use::kRead) {
        uint64_t& dirty = used_.front().dirty_bytes;
        dirty = std::min(kPartBytes, std::max(dirty, bytes));
    }
    if (used_.size() > parts_) {
        traffic.written += used_.back().dirty_bytes;
        held_.erase(used_.back());
        used_.pop_back();
    }
}

}  // namespace fornax::npu
