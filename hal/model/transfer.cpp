// Block kernels of copies and fills, written against the same contract as compiled kernels.
#include "hal/model/transfer.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include "hal/model/cache_share.h"

namespace fornax::hal::model {

namespace {

// What one worker takes at a time, and the size up to which one worker does it all.
constexpr uint64_t kBlockBytes = 256 * 1024;

struct Transfer {
    std::byte* destination;
    const std::byte* source;  // of a copy
    uint64_t size_bytes;
    uint32_t pattern;  // of a fill
    bool streaming;    // more than the caches hold: written past them
};

struct Block {
    uint64_t begin;
    uint64_t size_bytes;
};

Block BlockRange(const Transfer& transfer, uint64_t index) {
    const uint64_t begin = index * kBlockBytes;
    return {begin, std::min(kBlockBytes, transfer.size_bytes - begin)};
}

// Transfers that touch more than the caches hold write past them, which saves reading each line
// before it is written: 1.5 to 3 times as fast for 64 MiB, and slower for what is used next below.
bool WorthStreaming(const WorkerPool& pool, uint64_t touched_bytes) {
    return touched_bytes > CacheShareBytes(pool.worker_count());
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

#if defined(__x86_64__)

// What streams at a time: a cache line, of four aligned vectors.
constexpr uint64_t kLineBytes = 64;

// Bytes from `destination` to the next line, at most size_bytes.
uint64_t HeadBytes(const std::byte* destination, uint64_t size_bytes) {
    const uint64_t misaligned = reinterpret_cast<uint64_t>(destination) % kLineBytes;
    return misaligned == 0 ? 0 : std::min(kLineBytes - misaligned, size_bytes);
}

// Whole lines to where a line begins. With the widest vectors: a line that is written by one
// instruction never leaves half done.
using StreamLines = void (*)(std::byte* to, const std::byte* from, uint64_t size_bytes);

void StreamLines128(std::byte* to, const std::byte* from, uint64_t size_bytes) {
    for (uint64_t offset = 0; offset < size_bytes; offset += kLineBytes) {
        const auto* source = reinterpret_cast<const __m128i*>(from + offset);
        auto* line = reinterpret_cast<__m128i*>(to + offset);
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(line, a);
        _mm_stream_si128(line + 1, b);
        _mm_stream_si128(line + 2, c);
        _mm_stream_si128(line + 3, d);
    }
}

__attribute__((target("avx"))) void StreamLines256(std::byte* to,
                                                   const std::byte* from,
                                                   uint64_t size_bytes) {
    for (uint64_t offset = 0; offset < size_bytes; offset += kLineBytes) {
        const auto* source = reinterpret_cast<const __m256i*>(from + offset);
        auto* line = reinterpret_cast<__m256i*>(to + offset);
        const __m256i a = _mm256_loadu_si256(source);
        const __m256i b = _mm256_loadu_si256(source + 1);
        _mm256_stream_si256(line, a);
        _mm256_stream_si256(line + 1, b);
    }
}

__attribute__((target("avx512f"))) void StreamLines512(std::byte* to,
                                                       const std::byte* from,
                                                       uint64_t size_bytes) {
    for (uint64_t offset = 0; offset < size_bytes; offset += kLineBytes) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + offset),
                            _mm512_loadu_si512(from + offset));
    }
}

StreamLines WidestStream() {
    static const StreamLines widest = __builtin_cpu_supports("avx512f") ? StreamLines512
                                      : __builtin_cpu_supports("avx")   ? StreamLines256
                                                                        : StreamLines128;
    return widest;
}

void StreamCopy(std::byte* destination, const std::byte* source, uint64_t size_bytes) {
    const uint64_t head_bytes = HeadBytes(destination, size_bytes);
    std::memcpy(destination, source, head_bytes);
    const uint64_t line_bytes = (size_bytes - head_bytes) / kLineBytes * kLineBytes;
    WidestStream()(destination + head_bytes, source + head_bytes, line_bytes);
    const uint64_t end = head_bytes + line_bytes;
    std::memcpy(destination + end, source + end, size_bytes - end);
    _mm_sfence();  // streaming stores are ordered by nothing else
}

void StreamFill(std::byte* destination, uint64_t size_bytes, uint32_t pattern) {
    // The destination is a multiple of 4, so the head is one, too, and the pattern's phase stays.
    const uint64_t head_bytes = HeadBytes(destination, size_bytes);
    FillPattern(destination, head_bytes, pattern);
    const __m128i value = _mm_set1_epi32(static_cast<int>(pattern));
    uint64_t offset = head_bytes;
    for (; offset + kLineBytes <= size_bytes; offset += kLineBytes) {
        auto* to = reinterpret_cast<__m128i*>(destination + offset);
        _mm_stream_si128(to, value);
        _mm_stream_si128(to + 1, value);
        _mm_stream_si128(to + 2, value);
        _mm_stream_si128(to + 3, value);
    }
    FillPattern(destination + offset, size_bytes - offset, pattern);
    _mm_sfence();
}

#else

void StreamCopy(std::byte* destination, const std::byte* source, uint64_t size_bytes) {
    std::memcpy(destination, source, size_bytes);
}

void StreamFill(std::byte* destination, uint64_t size_bytes, uint32_t pattern) {
    FillPattern(destination, size_bytes, pattern);
}

#endif

// What a watchdog looks at.
void Begin(WorkerFrame* worker, uint64_t block) {
    std::atomic_ref(worker->workgroup).store(block, std::memory_order_relaxed);
}

void RunCopyBlocks(const DispatchFrame* frame,
                   WorkerFrame* worker,
                   uint64_t first,
                   uint64_t count) {
    const auto& transfer = *static_cast<const Transfer*>(frame->push_constants);
    for (uint64_t i = first; i < first + count; ++i) {
        Begin(worker, i);
        const Block block = BlockRange(transfer, i);
        std::byte* to = transfer.destination + block.begin;
        const std::byte* from = transfer.source + block.begin;
        if (transfer.streaming) {
            StreamCopy(to, from, block.size_bytes);
        } else {
            std::memcpy(to, from, block.size_bytes);
        }
    }
}

void RunFillBlocks(const DispatchFrame* frame,
                   WorkerFrame* worker,
                   uint64_t first,
                   uint64_t count) {
    const auto& transfer = *static_cast<const Transfer*>(frame->push_constants);
    for (uint64_t i = first; i < first + count; ++i) {
        Begin(worker, i);
        const Block block = BlockRange(transfer, i);
        std::byte* to = transfer.destination + block.begin;
        if (transfer.streaming) {
            StreamFill(to, block.size_bytes, transfer.pattern);
        } else {
            FillPattern(to, block.size_bytes, transfer.pattern);
        }
    }
}

// The rows of all slices are one list of rows; a block is as many of them as make kBlockBytes.
struct RowsTransfer {
    const CopyRowsPayload* copy;
    uint64_t rows_in_block;
};

void RunRowBlocks(const DispatchFrame* frame, WorkerFrame* worker, uint64_t first, uint64_t count) {
    const auto& transfer = *static_cast<const RowsTransfer*>(frame->push_constants);
    const CopyRowsPayload& copy = *transfer.copy;
    const uint64_t end =
        std::min((first + count) * transfer.rows_in_block, uint64_t{copy.rows} * copy.slices);
    for (uint64_t row = first * transfer.rows_in_block; row < end; ++row) {
        Begin(worker, row / transfer.rows_in_block);
        const uint64_t slice = row / copy.rows;
        const uint64_t in_slice = row % copy.rows;
        std::memmove(reinterpret_cast<std::byte*>(copy.destination) +
                         slice * copy.destination_slice_pitch +
                         in_slice * copy.destination_row_pitch,
                     reinterpret_cast<const std::byte*>(copy.source) +
                         slice * copy.source_slice_pitch + in_slice * copy.source_row_pitch,
                     copy.row_bytes);
    }
}

Error Stopped(uint32_t fault, uint64_t address) {
    return {
        ErrorCode::kDeviceLost,
        fmt::format("a transfer was stopped with fault {} at the address {:#x}.", fault, address)};
}

Status RunGrid(WorkerPool& pool,
               Worker& self,
               KernelEntry entry,
               const void* transfer,
               uint64_t blocks) {
    // A block takes some ten microseconds or more on any machine, so it is worth a thread.
    std::atomic<uint32_t> block_cost_ns{10'000};
    DispatchFrame frame;
    frame.push_constants = transfer;
    auto result = pool.Run(self, {.entry = entry,
                                  .frame = &frame,
                                  .workgroup_count = blocks,
                                  .workgroup_cost_ns = &block_cost_ns,
                                  .independent = true,
                                  .interruptible = true});
    if (!result.ok()) {
        return std::move(result).error();
    }
    if (result->fault != 0) {
        return Stopped(result->fault, result->trap.address);
    }
    return OkStatus();
}

Status RunBlocks(WorkerPool& pool, Worker& self, KernelEntry entry, const Transfer& transfer) {
    return RunGrid(pool, self, entry, &transfer,
                   (transfer.size_bytes + kBlockBytes - 1) / kBlockBytes);
}

}  // namespace

Status RunGuarded(Worker& self, KernelEntry entry, const void* argument) {
    DispatchFrame frame;
    frame.push_constants = argument;
    self.frame().fault = 0;
    self.guard().Call({.entry = entry,
                       .dispatch = &frame,
                       .first_workgroup = 0,
                       .count = 1,
                       .interruptible = true},
                      self.frame());
    if (self.frame().fault == 0) [[likely]] {
        return OkStatus();
    }
    return Stopped(self.frame().fault, self.guard().trap().address);
}

Status CopyBytes(WorkerPool& pool,
                 Worker& self,
                 uint64_t source,
                 uint64_t destination,
                 uint64_t size_bytes) {
    auto* to = reinterpret_cast<std::byte*>(destination);
    const auto* from = reinterpret_cast<const std::byte*>(source);
    const bool overlapping = source < destination + size_bytes && destination < source + size_bytes;
    if (overlapping || size_bytes <= kBlockBytes) {
        return Guarded(self, [=] { std::memmove(to, from, size_bytes); });
    }
    return RunBlocks(pool, self, &RunCopyBlocks,
                     {.destination = to,
                      .source = from,
                      .size_bytes = size_bytes,
                      .streaming = WorthStreaming(pool, 2 * size_bytes)});
}

Status CopyRows(WorkerPool& pool, Worker& self, const CopyRowsPayload& copy) {
    const uint64_t rows = uint64_t{copy.rows} * copy.slices;
    const bool rows_adjoin = copy.rows == 1 || (copy.source_row_pitch == copy.row_bytes &&
                                                copy.destination_row_pitch == copy.row_bytes);
    const uint64_t slice_bytes = uint64_t{copy.row_bytes} * copy.rows;
    const bool slices_adjoin = copy.slices == 1 || (copy.source_slice_pitch == slice_bytes &&
                                                    copy.destination_slice_pitch == slice_bytes);
    if (rows_adjoin && slices_adjoin) {
        return CopyBytes(pool, self, copy.source, copy.destination, rows * copy.row_bytes);
    }
    const RowsTransfer transfer{&copy, std::max<uint64_t>(1, kBlockBytes / copy.row_bytes)};
    const uint64_t blocks = (rows + transfer.rows_in_block - 1) / transfer.rows_in_block;
    return RunGrid(pool, self, &RunRowBlocks, &transfer, blocks);
}

Status FillBytes(WorkerPool& pool,
                 Worker& self,
                 uint64_t destination,
                 uint64_t size_bytes,
                 uint32_t pattern) {
    auto* to = reinterpret_cast<std::byte*>(destination);
    if (size_bytes <= kBlockBytes) {
        return Guarded(self, [=] { FillPattern(to, size_bytes, pattern); });
    }
    return RunBlocks(pool, self, &RunFillBlocks,
                     {.destination = to,
                      .size_bytes = size_bytes,
                      .pattern = pattern,
                      .streaming = WorthStreaming(pool, size_bytes)});
}

}  // namespace fornax::hal::model
