#include "npu/units/scratchpad_allocator.h"

#include <bit>
#include <cassert>

namespace fornax::npu {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t multiple) {
    return CeilDivide(value, multiple) * multiple;
}

}  // namespace

ScratchpadAllocator::ScratchpadAllocator(const Description& description)
    : scratchpad_(description.scratchpad) {}

Grant ScratchpadAllocator::Request(const ScratchpadRequest& request,
                                   uint64_t slots,
                                   Cycles time,
                                   uint32_t owner) {
    assert(request.preferred_bytes >= request.least_bytes && slots > 0);
    const Grant grant = Decide(request, slots);
    if (grant.step >= GrantStep::kWait) {
        ++counters_.failures;
    }
    if (grant.id.valid()) {
        ++counters_.grants;
        counters_.high_water_bytes = std::max(counters_.high_water_bytes, used_bytes());
    }
    log_.push_back({time, owner, request, grant});
    return grant;
}

Grant ScratchpadAllocator::Decide(const ScratchpadRequest& request, uint64_t slots) {
    const uint64_t workgroups =
        request.persists ? 1 : std::max<uint64_t>(1, std::min(slots, request.workgroups));
    if (request.preferred_bytes == 0) {
        return {
            .step = GrantStep::kDoubleBuffered, .occupancy = workgroups, .double_buffered = true};
    }
    const uint64_t size = scratchpad_.bytes;
    // Larger numbers do not fit, and would wrap when multiplied.
    const auto fits = [&](uint64_t bytes, uint64_t count) {
        return bytes <= size && bytes * count <= size;
    };
    const auto attempt = [&](uint64_t bytes, uint64_t buffers, uint64_t occupancy,
                             GrantStep step) -> std::optional<Grant> {
        if (!fits(bytes, buffers * occupancy)) {
            return std::nullopt;
        }
        return TryPlace(bytes * buffers * occupancy, occupancy, step);
    };
    if (!request.persists) {
        if (auto grant =
                attempt(request.preferred_bytes, 2, workgroups, GrantStep::kDoubleBuffered)) {
            grant->double_buffered = true;
            return *grant;
        }
    }
    if (auto grant = attempt(request.preferred_bytes, 1, workgroups, GrantStep::kSingleBuffered)) {
        return *grant;
    }
    for (uint64_t occupancy = workgroups - 1; occupancy > 0; --occupancy) {
        if (auto grant =
                attempt(request.preferred_bytes, 1, occupancy, GrantStep::kFewerWorkgroups)) {
            return *grant;
        }
    }
    const uint64_t least = std::max<uint64_t>(request.least_bytes, 1);
    if (auto grant = attempt(least, 1, 1, GrantStep::kLeast)) {
        return *grant;
    }
    if (fits(Rounded(least), 1)) {
        return {.step = GrantStep::kWait};
    }
    if (!request.may_spill || request.persists) {
        return {.step = GrantStep::kFault};
    }
    if (auto grant = TryPlace(size, 1, GrantStep::kSpill)) {
        grant->spill_bytes = least > size ? least - size : 0;
        return *grant;
    }
    return {.step = GrantStep::kWait};
}

std::optional<Grant> ScratchpadAllocator::TryPlace(uint64_t bytes,
                                                   uint64_t occupancy,
                                                   GrantStep step) {
    const std::optional<uint64_t> offset = Place(bytes);
    if (!offset) {
        return std::nullopt;
    }
    const GrantId id(next_++);
    const Block block = {id, *offset, Rounded(bytes)};
    blocks_.insert(std::ranges::lower_bound(blocks_, block.offset, {}, &Block::offset), block);
    bump_ = block.offset + block.bytes;
    last_bank_ = block.offset / scratchpad_.bank_bytes % scratchpad_.banks;
    counters_.padding_bytes += block.bytes - bytes;
    return Grant{.id = id, .step = step, .offset = *offset, .bytes = bytes, .occupancy = occupancy};
}

uint64_t ScratchpadAllocator::Rounded(uint64_t bytes) const {
    const uint64_t aligned = RoundUp(std::max<uint64_t>(bytes, 1), scratchpad_.alignment_bytes);
    if (scratchpad_.policy != ScratchpadPolicy::kBuddy) {
        // The last grant may end with the scratchpad, whose size need not be aligned.
        return bytes <= scratchpad_.bytes ? std::min(aligned, scratchpad_.bytes) : aligned;
    }
    const uint64_t power = std::bit_ceil(aligned);
    // A scratchpad that is no power of two is a block of its own.
    return bytes <= scratchpad_.bytes ? std::min(power, scratchpad_.bytes) : power;
}

std::optional<uint64_t> ScratchpadAllocator::Place(uint64_t bytes) const {
    const uint64_t rounded = Rounded(bytes);
    switch (scratchpad_.policy) {
        case ScratchpadPolicy::kBump: {
            const uint64_t offset = RoundUp(bump_, scratchpad_.alignment_bytes);
            return offset + rounded <= scratchpad_.bytes ? std::optional(offset) : std::nullopt;
        }
        case ScratchpadPolicy::kBuddy:
            return FirstFit(rounded, rounded, false);
        case ScratchpadPolicy::kBankColoured: {
            const std::optional<uint64_t> other =
                FirstFit(rounded, scratchpad_.alignment_bytes, true);
            return other ? other : FirstFit(rounded, scratchpad_.alignment_bytes, false);
        }
    }
    return std::nullopt;
}

// The lowest free offset; with `colour` one that begins at another bank than the last grant.
std::optional<uint64_t> ScratchpadAllocator::FirstFit(uint64_t bytes,
                                                      uint64_t alignment,
                                                      bool colour) const {
    const auto bank_of = [&](uint64_t offset) {
        return offset / scratchpad_.bank_bytes % scratchpad_.banks;
    };
    uint64_t hole = 0;
    for (size_t i = 0; i <= blocks_.size(); ++i) {
        const uint64_t end = i < blocks_.size() ? blocks_[i].offset : scratchpad_.bytes;
        uint64_t offset = RoundUp(hole, alignment);
        if (colour && bank_of(offset) == last_bank_) {
            offset = RoundUp(offset + 1, std::max(alignment, scratchpad_.bank_bytes));
        }
        const bool coloured = !colour || bank_of(offset) != last_bank_;
        if (coloured && offset + bytes <= end) {
            return offset;
        }
        if (i < blocks_.size()) {
            hole = blocks_[i].offset + blocks_[i].bytes;
        }
    }
    return std::nullopt;
}

void ScratchpadAllocator::Release(GrantId id) {
    if (!id.valid()) {
        return;
    }
    const auto found = std::ranges::find(blocks_, id, &Block::id);
    assert(found != blocks_.end());
    blocks_.erase(found);
    if (blocks_.empty()) {
        bump_ = 0;
    }
}

uint64_t ScratchpadAllocator::used_bytes() const {
    uint64_t used = 0;
    for (const Block& block : blocks_) {
        used += block.bytes;
    }
    return used;
}

double ScratchpadAllocator::fragmentation() const {
    const uint64_t free = scratchpad_.bytes - used_bytes();
    uint64_t largest = 0, hole = 0;
    for (const Block& block : blocks_) {
        largest = std::max(largest, block.offset - hole);
        hole = block.offset + block.bytes;
    }
    largest = std::max(largest, scratchpad_.bytes - hole);
    return free == 0 ? 0 : 1 - static_cast<double>(largest) / static_cast<double>(free);
}

}  // namespace fornax::npu
