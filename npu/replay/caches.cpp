#include "npu/replay/caches.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "npu/units/cycles.h"

namespace fornax::npu {

Access Compulsory(const Description& description, const DispatchRecord& dispatch, Access access) {
    const uint64_t once = access.bytes - access.repeated_bytes;
    const uint64_t part = description.scratchpad.bytes / description.cores.workgroup_slots;
    if (CeilDivide(once, dispatch.workgroups) <= part) {
        access.bytes = once;
    }
    access.repeated_bytes = 0;
    return access;
}

namespace {

// Which stores of a dispatch read the lines of their range first. What the dispatch has read they
// find; and long streams of whole lines to what is only written are non-temporal (Intel's manual of
// optimization, "Memory Optimization"), or what a processor notices by itself (write streaming of
// Arm's cores). Atomics read what they change in any case, and TrafficOf() counts that.
class StoreFetches {
  public:
    StoreFetches(const Description& description, const DispatchRecord& dispatch)
        : description_(description), dispatch_(dispatch) {
        if (description.cache.write_allocate_bytes == 0) {
            return;
        }
        for (const Access& access : dispatch.accesses) {
            if (!access.writes) {
                read_[KeyOf(access.range)] += Compulsory(description, dispatch, access).bytes;
            }
        }
    }

    bool Fetches(const Access& write) const {
        const uint64_t below = description_.cache.write_allocate_bytes;
        if (below == 0 || write.kind == AccessKind::kAtomic) {
            return false;
        }
        const auto read = read_.find(KeyOf(write.range));
        const bool is_whole = !write.in_parts && write.kind != AccessKind::kScatter;
        if (read == read_.end() && write.range.bytes >= below && is_whole) {
            return false;
        }
        return Compulsory(description_, dispatch_, write).bytes >
               (read == read_.end() ? 0 : read->second);
    }

  private:
    using Key = std::tuple<uint64_t, uint64_t, uint64_t>;
    static Key KeyOf(const MemoryRange& range) { return {range.memory, range.begin, range.bytes}; }

    const Description& description_;
    const DispatchRecord& dispatch_;
    std::map<Key, uint64_t> read_;  // bytes from memory, by range
};

// What an access that nobody served would move, and what caches leave of it. A part of a stream is
// one core's in dispatch after dispatch, so that its own cache may hold it; what that holds the
// shared cache is not asked for.
ServedBytes ServeAccess(const Access& access, const Traffic& asked, bool fetches, Caches& caches) {
    ServedBytes served = {.asked = {asked.dram_read, asked.dram_written},
                          .asked_apart = asked.apart,
                          .asked_far = asked.far};
    const bool is_own = access.kind == AccessKind::kStream && caches.cores.Holds(1);
    uint64_t read = asked.dram_read, written = asked.dram_written;
    if (is_own) {
        served.asked_network = asked.network;
        // What is written passes the network once, and counts when the store misses.
        read = read > 0 ? caches.cores.Read(access.range, read).read : 0;
        written = written > 0 ? caches.cores.Write(access.range, written, true).read : 0;
        served.moved_network = read + written;
    }
    if (read > 0) {
        served.moved += caches.shared.Read(access.range, read);
    }
    if (written > 0) {
        served.moved += caches.shared.Write(access.range, written, fetches);
    }
    if (access.far || asked.far > 0 || access.kind == AccessKind::kScatter) {
        served.moved_far = served.moved.read;
    } else if (access.apart) {
        served.moved_apart = served.moved.read;
    }
    return served;
}

}  // namespace

ServedBytes& ServedBytes::operator+=(const ServedBytes& other) {
    asked += other.asked;
    moved += other.moved;
    asked_network += other.asked_network;
    moved_network += other.moved_network;
    asked_apart += other.asked_apart;
    moved_apart += other.moved_apart;
    asked_far += other.asked_far;
    moved_far += other.moved_far;
    return *this;
}

ServedDispatch ServeFromCaches(const Description& description,
                               const DispatchRecord& dispatch,
                               Caches& caches) {
    ServedDispatch served;
    served.passes.resize(std::max<size_t>(1, dispatch.passes.size()));
    const StoreFetches stores(description, dispatch);
    for (const Access& access : dispatch.accesses) {
        if (access.range.memory != 0) {
            // What DRAM would move does not depend on the cores.
            const Traffic asked =
                TrafficOf(description, Compulsory(description, dispatch, access), 1);
            served.passes[access.pass] +=
                ServeAccess(access, asked, stores.Fetches(access), caches);
        }
    }
    uint64_t largest = 0;
    for (const Product& product : dispatch.products) {
        largest = std::max({largest, product.a_bytes, product.b_bytes});
    }
    served.holds_operands = caches.shared.Holds(largest);
    return served;
}

}  // namespace fornax::npu
