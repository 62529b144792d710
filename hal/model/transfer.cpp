// Block kernels of copies and fills, written against the same contract as compiled kernels.
#include "hal/model/transfer.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

namespace fornax::hal::model {

namespace {

// What one worker takes at a time, and the size up to which one worker does it all.
constexpr uint64_t kBlockBytes = 256 * 1024;

struct Transfer {
    std::byte* destination;
    const std::byte* source;  // of a copy
    uint64_t size_bytes;
    uint32_t pattern;  // of a fill
};

struct Block {
    uint64_t begin;
    uint64_t size_bytes;
};

Block BlocksRange(const Transfer& transfer, uint64_t first, uint64_t count) {
    const uint64_t begin = first * kBlockBytes;
    return {begin, std::min(count * kBlockBytes, transfer.size_bytes - begin)};
}

void FillPattern(std::byte* destination, uint64_t size_bytes, uint32_t pattern) {
    // Fills by a byte are what memset is made for; the others vectorise.
    if (pattern == (pattern & 0xff) * 0x01010101u) {
        std::memset(destination, static_cast<int>(pattern & 0xff), size_bytes);
        return;
    }
    auto* words = reinterpret_cast<uint32_t*>(destination);
    std::fill_n(words, size_bytes / sizeof(uint32_t), pattern);
}

void RunCopyBlocks(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    const auto& transfer = *static_cast<const Transfer*>(frame->push_constants);
    const Block block = BlocksRange(transfer, first, count);
    std::memcpy(transfer.destination + block.begin, transfer.source + block.begin,
                block.size_bytes);
}

void RunFillBlocks(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    const auto& transfer = *static_cast<const Transfer*>(frame->push_constants);
    const Block block = BlocksRange(transfer, first, count);
    FillPattern(transfer.destination + block.begin, block.size_bytes, transfer.pattern);
}

Status RunBlocks(WorkerPool& pool, Worker& self, KernelEntry entry, const Transfer& transfer) {
    // A block takes some ten microseconds or more on any machine, so it is worth a thread.
    std::atomic<uint32_t> block_cost_ns{10'000};
    const uint64_t blocks = (transfer.size_bytes + kBlockBytes - 1) / kBlockBytes;
    DispatchFrame frame;
    frame.push_constants = &transfer;
    auto result = pool.Run(self, {.entry = entry,
                                  .frame = &frame,
                                  .workgroup_count = blocks,
                                  .workgroup_cost_ns = &block_cost_ns});
    return result.ok() ? OkStatus() : Status(std::move(result).error());
}

}  // namespace

Status CopyBytes(WorkerPool& pool,
                 Worker& self,
                 uint64_t source,
                 uint64_t destination,
                 uint64_t size_bytes) {
    auto* to = reinterpret_cast<std::byte*>(destination);
    const auto* from = reinterpret_cast<const std::byte*>(source);
    const bool overlapping = source < destination + size_bytes && destination < source + size_bytes;
    if (overlapping || size_bytes <= kBlockBytes) {
        std::memmove(to, from, size_bytes);
        return OkStatus();
    }
    return RunBlocks(pool, self, &RunCopyBlocks,
                     {.destination = to, .source = from, .size_bytes = size_bytes});
}

Status FillBytes(WorkerPool& pool,
                 Worker& self,
                 uint64_t destination,
                 uint64_t size_bytes,
                 uint32_t pattern) {
    auto* to = reinterpret_cast<std::byte*>(destination);
    if (size_bytes <= kBlockBytes) {
        FillPattern(to, size_bytes, pattern);
        return OkStatus();
    }
    return RunBlocks(pool, self, &RunFillBlocks,
                     {.destination = to, .size_bytes = size_bytes, .pattern = pattern});
}

}  // namespace fornax::hal::model
