// The builder's rare paths: growth, resources and the ends of a recording.
#include "hal/command_stream_builder.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdlib>
#include <new>

namespace fornax::hal {

namespace {

constexpr size_t kFirstPackets = 32;
constexpr uint64_t kFirstSideBytes = 4096;
// How far back a repeated executable is looked for; a miss only costs one more reference.
constexpr size_t kExecutableSearch = 16;

// Appends where the standard library would throw; false without memory.
template <typename T>
bool TryPushBack(std::vector<T>& vector, T value) {
    try {
        vector.push_back(std::move(value));
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace

void CommandStreamBuilder::Reset() {
    last_executable_ = nullptr;
    finished_ = false;
    out_of_memory_ = false;
    if (!stream_) {
        return;
    }
    if (stream_.use_count() != 1) {
        stream_.reset();  // the other holders keep it as it is
        return;
    }
    // Whoever dropped the other references has finished reading before the storage is written.
    std::atomic_thread_fence(std::memory_order_acquire);
    CommandStream& stream = *stream_;
    stream.packet_count_ = 0;
    stream.resources_.executables.clear();
    stream.resources_.streams.clear();
    stream.resources_.timelines.clear();
    // Chunks double in size, so the last one alone is worth all the others.
    while (stream.side_.size() > 1) {
        std::free(stream.side_.front().data);
        stream.side_.erase(stream.side_.begin());
    }
    if (!stream.side_.empty()) {
        stream.side_.front().used_bytes = 0;
    }
}

void CommandStreamBuilder::ResetAndRelease() {
    Reset();
    stream_.reset();
}

Result<std::shared_ptr<const CommandStream>> CommandStreamBuilder::Finish() {
    assert(!finished_);
    finished_ = true;
    EnsureStream();
    if (out_of_memory_) {
        return Error{ErrorCode::kOutOfHostMemory,
                     "The host has no memory left to record the command stream."};
    }
    return std::shared_ptr<const CommandStream>(stream_);
}

void CommandStreamBuilder::Update(uint64_t destination, std::span<const std::byte> data) {
    const auto size_bytes = static_cast<uint32_t>(data.size());
    if (size_bytes <= UpdatePayload::kInlineBytes) {
        Packet& packet = Append(Opcode::kUpdate, kUpdateInline);
        packet.update = {
            .destination = destination, .size_bytes = size_bytes, .reserved = 0, .data = {}};
        if (size_bytes != 0) {
            std::memcpy(packet.update.data, data.data(), size_bytes);
        }
        return;
    }
    const uint64_t source = StoreSideData(data.data(), data.size());
    Append(Opcode::kUpdate).update = {
        .destination = destination, .size_bytes = size_bytes, .reserved = 0, .source = source};
}

void CommandStreamBuilder::Count(Opcode opcode,
                                 uint64_t slots,
                                 std::span<const CounterId> counters) {
    while (!counters.empty()) {
        const auto some =
            counters.first(std::min<size_t>(counters.size(), CountPayload::kMaxCounters));
        CountPayload payload = {.slots = slots, .counters = {}};
        std::memcpy(payload.counters, some.data(), some.size_bytes());
        Append(opcode, 0, static_cast<uint32_t>(some.size())).count = payload;
        slots += some.size() * sizeof(QuerySlot);
        counters = counters.subspan(some.size());
    }
}

void CommandStreamBuilder::Chain(const std::shared_ptr<const CommandStream>& stream) {
    if (!EnsureStream()) {
        return;
    }
    auto& streams = stream_->resources_.streams;
    const auto index = static_cast<uint32_t>(streams.size());
    if (!TryPushBack(streams, stream)) {
        out_of_memory_ = true;
        return;
    }
    Append(Opcode::kChain, 0, index);
}

bool CommandStreamBuilder::EnsureStream() {
    if (!stream_ && !out_of_memory_) {
        try {
            stream_ = std::make_shared<CommandStream>();
        } catch (const std::bad_alloc&) {
            out_of_memory_ = true;
        }
    }
    return stream_ != nullptr;
}

bool CommandStreamBuilder::GrowPackets() {
    if (out_of_memory_ || !EnsureStream()) {
        return false;
    }
    CommandStream& stream = *stream_;
    const size_t capacity = std::max(kFirstPackets, stream.packet_capacity_ * 2);
    auto* packets =
        static_cast<Packet*>(std::aligned_alloc(alignof(Packet), capacity * sizeof(Packet)));
    if (packets == nullptr) {
        out_of_memory_ = true;
        return false;
    }
    std::copy_n(stream.packets_, stream.packet_count_, packets);
    std::free(stream.packets_);
    stream.packets_ = packets;
    stream.packet_capacity_ = capacity;
    return true;
}

std::byte* CommandStreamBuilder::AllocateSideChunk(uint64_t size_bytes) {
    if (out_of_memory_ || !EnsureStream()) {
        return nullptr;
    }
    auto& side = stream_->side_;
    const uint64_t grown = side.empty() ? kFirstSideBytes : side.back().size_bytes * 2;
    const uint64_t needed = (size_bytes + kPacketBytes - 1) & ~uint64_t{kPacketBytes - 1};
    const uint64_t chunk_bytes = std::max(grown, needed);
    auto* data = static_cast<std::byte*>(std::aligned_alloc(kPacketBytes, chunk_bytes));
    if (data == nullptr) {
        out_of_memory_ = true;
        return nullptr;
    }
    const uint64_t used = (size_bytes + kSideAlignment - 1) & ~(kSideAlignment - 1);
    if (!TryPushBack(side, CommandStream::SideChunk{data, used, chunk_bytes})) {
        std::free(data);
        out_of_memory_ = true;
        return nullptr;
    }
    return data;
}

uint32_t CommandStreamBuilder::AddExecutable(const std::shared_ptr<const Executable>& executable) {
    assert(executable != nullptr);
    if (!EnsureStream()) {
        return 0;
    }
    auto& executables = stream_->resources_.executables;
    const size_t count = executables.size();
    size_t index = count;
    for (size_t back = 1; back <= std::min(count, kExecutableSearch); ++back) {
        if (executables[count - back] == executable) {
            index = count - back;
            break;
        }
    }
    if (index == count && !TryPushBack(executables, executable)) {
        out_of_memory_ = true;
        return 0;
    }
    last_executable_ = executable.get();
    last_executable_index_ = static_cast<uint32_t>(index);
    return last_executable_index_;
}

}  // namespace fornax::hal
