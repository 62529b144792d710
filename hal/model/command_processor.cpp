// Decoding and control: the loop over packets, state, waits and chains. Work on data is in
// command_processor_work.cpp.
#include "hal/model/command_processor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "hal/device.h"
#include "hal/timeline.h"

namespace fornax::hal::model {

namespace {

Error Malformed(std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

class ScopedFlag {
  public:
    explicit ScopedFlag(std::atomic<bool>& flag) : flag_(flag) {
        flag_.store(true, std::memory_order_relaxed);
    }
    ~ScopedFlag() { flag_.store(false, std::memory_order_relaxed); }
    ScopedFlag(const ScopedFlag&) = delete;
    ScopedFlag& operator=(const ScopedFlag&) = delete;

  private:
    std::atomic<bool>& flag_;
};

// The flags that each opcode defines.
constexpr uint8_t AllowedFlags(Opcode opcode) {
    switch (opcode) {
        case Opcode::kUpdate:
            return kUpdateInline;
        case Opcode::kQueryCopy:
            return kQueryResultFlagMask;
        case Opcode::kCondition:
            return kConditionInverted | kConditionEnd;
        default:
            return 0;
    }
}

}  // namespace

CommandProcessor::CommandProcessor(const ProcessorContext& context)
    : context_(context), memory_(context.heap), worker_(0, &context.hub.lost_flag()) {}

Status CommandProcessor::RunRingPacket(const Packet& packet, const ResourceTable& resources) {
    Scope scope{.resources = resources, .stream = nullptr, .depth = 0};
    Packet plain = packet;
    plain.header.flags &= static_cast<uint8_t>(~kRingEndOfSubmission);
    Status status = Run(plain, scope);
    if (!status.ok() && packet.header.opcode != Opcode::kChain) {
        return Error{status.error().code,
                     fmt::format("A ring packet {}: {}", OpcodeName(packet.header.opcode),
                                 status.error().message)};
    }
    return status;
}

void CommandProcessor::BeginSubmission() {
    if (context_.observer != nullptr) {
        context_.observer->BeginSubmission(context_.queue);
    }
}

void CommandProcessor::FlushObserver() {
    if (context_.observer != nullptr) {
        context_.observer->Flush(context_.queue);
    }
}

bool CommandProcessor::IdleObserver() {
    return context_.observer != nullptr && context_.observer->Idle(context_.queue);
}

Status CommandProcessor::RunStream(const CommandStream& stream) {
    Scope scope{.resources = stream.resources(), .stream = &stream, .depth = 1};
    return RunPackets(scope);
}

Status CommandProcessor::RunPackets(Scope& scope) {
    const std::span<const Packet> packets = scope.stream->packets();
    for (size_t index = 0; index < packets.size(); ++index) {
        const Packet& packet = packets[index];
        Status status = Run(packet, scope);
        if (!status.ok()) [[unlikely]] {
            return Error{
                status.error().code,
                fmt::format("Packet {} of {} of a command stream, {}: {}", index, packets.size(),
                            OpcodeName(packet.header.opcode), status.error().message)};
        }
    }
    return OkStatus();
}

Status CommandProcessor::Run(const Packet& packet, Scope& scope) {
    context_.counters.packets.Add(1);
    const PacketHeader& header = packet.header;
    if (header.reserved != 0 || (header.flags & ~AllowedFlags(header.opcode)) != 0) [[unlikely]] {
        return Malformed(
            fmt::format("the header has flags {:#x} and reserved bits {:#x}, which the "
                        "opcode {} does not define.",
                        header.flags, header.reserved, static_cast<uint32_t>(header.opcode)));
    }
    switch (header.opcode) {
        case Opcode::kNop:
            return OkStatus();
        case Opcode::kBarrier:
            // Packets run one after another and each waits for its workers, so nothing is pending.
            context_.counters.barriers.Add(1);
            if (context_.observer != nullptr) {
                context_.observer->Barrier(context_.queue);
            }
            return OkStatus();
        case Opcode::kBind:
            return Bind(packet, scope);
        case Opcode::kConstants:
            return Constants(packet, scope);
        case Opcode::kDispatch:
            return Dispatch(packet, scope);
        case Opcode::kDispatchIndirect:
            return DispatchIndirect(packet, scope);
        case Opcode::kCopy:
            return Copy(packet.copy);
        case Opcode::kCopyRows:
            return CopyRows(packet.copy_rows, scope);
        case Opcode::kCopyIndirect:
            return CopyIndirect(packet);
        case Opcode::kCopyRowsIndirect:
            return CopyRowsIndirect(packet.copy_rows_indirect, scope);
        case Opcode::kCondition:
            return Condition(packet, scope);
        case Opcode::kFill:
            return Fill(packet.fill);
        case Opcode::kUpdate:
            return Update(packet, scope);
        case Opcode::kTimelineWait:
        case Opcode::kTimelineSignal:
            return Timeline(packet, scope);
        case Opcode::kEventSet:
        case Opcode::kEventReset:
        case Opcode::kEventWait:
            return Event(packet);
        case Opcode::kTimestamp:
            return Timestamp(packet.query);
        case Opcode::kCountBegin:
        case Opcode::kCountEnd:
            return Count(packet);
        case Opcode::kQueryReset:
            return QueryReset(packet);
        case Opcode::kQueryCopy:
            return QueryCopy(packet);
        case Opcode::kChain:
            return Chain(packet, scope);
    }
    return Malformed(
        fmt::format("the opcode {} does not exist.", static_cast<uint32_t>(header.opcode)));
}

Status CommandProcessor::Bind(const Packet& packet, Scope& scope) {
    const BindPayload& bind = packet.bind;
    const auto& executables = scope.resources.executables;
    const uint32_t index = packet.header.operand;
    if (index >= executables.size() || executables[index] == nullptr) {
        return Malformed(
            fmt::format("executable {} of {} does not exist.", index, executables.size()));
    }
    if (bind.set_count > kMaxDescriptorSets) {
        return Malformed(fmt::format("{} descriptor sets are more than {}.", bind.set_count,
                                     kMaxDescriptorSets));
    }
    if (bind.dynamic_offset_count > kMaxDynamicOffsets) {
        return Malformed(fmt::format("{} dynamic offsets are more than {}.",
                                     bind.dynamic_offset_count, kMaxDynamicOffsets));
    }
    uint32_t bound_sets = 0;
    if (bind.set_count != 0) {
        FORNAX_RETURN_IF_ERROR(CheckSideData("the list of descriptor sets", bind.descriptor_sets,
                                             bind.set_count * sizeof(uint64_t), alignof(uint64_t),
                                             scope));
        const auto* sets = reinterpret_cast<const uint64_t*>(bind.descriptor_sets);
        for (uint32_t set = 0; set < bind.set_count; ++set) {
            if (sets[set] == 0) {
                continue;
            }
            if (!memory_.Contains(sets[set], sizeof(BufferDescriptor))) {
                FORNAX_RETURN_IF_ERROR(CheckSideData("a descriptor set", sets[set],
                                                     sizeof(BufferDescriptor),
                                                     alignof(BufferDescriptor), scope));
            } else if (sets[set] % alignof(BufferDescriptor) != 0) {
                return Malformed(fmt::format("descriptor set {} at {:#x} is not aligned to {}.",
                                             set, sets[set], alignof(BufferDescriptor)));
            }
            bound_sets |= 1u << set;
        }
    }
    if (bind.dynamic_offset_count != 0) {
        FORNAX_RETURN_IF_ERROR(CheckSideData("the list of dynamic offsets", bind.dynamic_offsets,
                                             bind.dynamic_offset_count * sizeof(uint32_t),
                                             alignof(uint32_t), scope));
    }
    scope.executable = executables[index].get();
    scope.bound_sets = bound_sets;
    scope.frame.descriptor_sets = reinterpret_cast<const void* const*>(bind.descriptor_sets);
    scope.frame.dynamic_offsets = reinterpret_cast<const uint32_t*>(bind.dynamic_offsets);
    return OkStatus();
}

Status CommandProcessor::Constants(const Packet& packet, Scope& scope) {
    const uint32_t size_bytes = packet.header.operand;
    if (size_bytes > kMaxPushConstantBytes) {
        return Malformed(fmt::format("{} bytes of constants are more than {}.", size_bytes,
                                     kMaxPushConstantBytes));
    }
    if (size_bytes != 0) {
        FORNAX_RETURN_IF_ERROR(
            CheckSideData("the constants", packet.constants.address, size_bytes, 16, scope));
        // Kernels may read all kPushConstantBytes, so they get a copy of full size.
        std::memcpy(scope.constants.data(), reinterpret_cast<const void*>(packet.constants.address),
                    size_bytes);
    }
    scope.constant_bytes = size_bytes;
    return OkStatus();
}

Status CommandProcessor::Condition(const Packet& packet, Scope& scope) {
    if ((packet.header.flags & kConditionEnd) != 0) {
        scope.discards = scope.outer_discards;
        return OkStatus();
    }
    const uint64_t address = packet.condition.address;
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the condition", address, sizeof(uint32_t), alignof(uint32_t)));
    uint32_t word = 0;
    FORNAX_RETURN_IF_ERROR(Read(address, &word));
    const bool runs = (word != 0) != ((packet.header.flags & kConditionInverted) != 0);
    scope.discards = scope.outer_discards || !runs;
    return OkStatus();
}

Status CommandProcessor::Timeline(const Packet& packet, const Scope& scope) {
    const auto& timelines = scope.resources.timelines;
    const uint32_t index = packet.header.operand;
    if (index >= timelines.size() || timelines[index] == nullptr) {
        return Malformed(fmt::format("timeline {} of {} does not exist.", index, timelines.size()));
    }
    const std::shared_ptr<hal::Timeline>& timeline = timelines[index];
    const uint64_t value = packet.timeline.value;
    if (packet.header.opcode == Opcode::kTimelineSignal) {
        if (context_.observer != nullptr) {
            context_.observer->Flush(context_.queue);
            context_.observer->Signal(context_.queue, *timeline, value);
        }
        timeline->Advance(value);
        return OkStatus();
    }
    const TimelinePoint point{timeline, value};
    if (!point.Reached()) {
        const ScopedFlag blocked(blocked_);
        FORNAX_RETURN_IF_ERROR(
            context_.hub.Wait({&point, 1}, WaitHub::Mode::kAll, kWaitForever, &context_.stop));
    }
    if (context_.observer != nullptr) {
        context_.observer->Wait(context_.queue, *timeline, value);
    }
    return OkStatus();
}

template <typename Done>
Status CommandProcessor::Poll(Done done) {
    using std::chrono::microseconds;
    constexpr int kSpins = 1'000;
    for (int i = 0; i < kSpins; ++i) {
        if (done()) {
            return OkStatus();
        }
        SpinPause();
    }
    const ScopedFlag blocked(blocked_);
    for (microseconds pause(20); !done(); pause = std::min(2 * pause, microseconds(1'000))) {
        if (context_.hub.lost()) {
            return context_.hub.status();
        }
        if (context_.stop.load(std::memory_order_acquire)) {
            return Error{ErrorCode::kTimeout, "the queue was stopped during a wait."};
        }
        std::this_thread::sleep_for(pause);
    }
    return OkStatus();
}

Status CommandProcessor::Event(const Packet& packet) {
    const uint64_t address = packet.event.address;
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the event", address, sizeof(EventCell), alignof(EventCell)));
    FlushObserver();
    auto& cell = *reinterpret_cast<EventCell*>(address);
    switch (packet.header.opcode) {
        case Opcode::kEventSet:
            SetEvent(cell);
            return OkStatus();
        case Opcode::kEventReset:
            ResetEvent(cell);
            return OkStatus();
        default:
            return Poll([&] { return EventIsSet(cell); });
    }
}

Status CommandProcessor::Timestamp(const QueryPayload& query) {
    FORNAX_RETURN_IF_ERROR(CheckMemory("the query", query.slots, sizeof(QuerySlot), 16));
    auto& slot = *reinterpret_cast<QuerySlot*>(query.slots);
    if (context_.observer == nullptr || !context_.observer->Timestamp(context_.queue, slot)) {
        WriteQuery(slot, MonotonicNanoseconds());
    }
    return OkStatus();
}

Status CommandProcessor::Count(const Packet& packet) {
    const CountPayload& payload = packet.count;
    const uint32_t count = packet.header.operand;
    if (count > CountPayload::kMaxCounters) {
        return Malformed(fmt::format("{} counters in a packet are more than {}.", count,
                                     CountPayload::kMaxCounters));
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (payload.counters[i] >= kCounterIds && context_.observer == nullptr) {
            return Malformed(
                fmt::format("the counter {} is not one of {}.", payload.counters[i], kCounterIds));
        }
    }
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the queries", payload.slots, count * sizeof(QuerySlot), 16));
    // This queue's alone, so that what other queues do meanwhile is not seen.
    Counters now;
    context_.counters.AddTo(now);
    auto* slots = reinterpret_cast<QuerySlot*>(payload.slots);
    const bool begins = packet.header.opcode == Opcode::kCountBegin;
    for (uint32_t i = 0; i < count; ++i) {
        if (payload.counters[i] >= kCounterIds) {
            const uint32_t counter = payload.counters[i] - kCounterIds;
            if (!context_.observer->Count(context_.queue, slots[i], counter, begins)) {
                return Malformed(
                    fmt::format("the observer of the device has no counter {}.", counter));
            }
            continue;
        }
        const uint64_t reading = now.of(static_cast<CounterId>(payload.counters[i]));
        if (begins) {
            BeginCount(slots[i], reading);
        } else {
            EndCount(slots[i], reading);
        }
    }
    return OkStatus();
}

Status CommandProcessor::QueryReset(const Packet& packet) {
    const uint64_t count = packet.header.operand;
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the queries", packet.query.slots, count * sizeof(QuerySlot), 16));
    FlushObserver();
    ResetQueries({reinterpret_cast<QuerySlot*>(packet.query.slots), count});
    return OkStatus();
}

Status CommandProcessor::QueryCopy(const Packet& packet) {
    const QueryPayload& query = packet.query;
    const uint64_t count = packet.header.operand;
    const uint8_t flags = packet.header.flags;
    const uint64_t word_bytes = (flags & kQuery64Bit) != 0 ? 8 : 4;
    if (count == 0) {
        return OkStatus();
    }
    if (query.stride_bytes % word_bytes != 0 || (query.stride_bytes == 0 && count > 1)) {
        return Malformed(
            fmt::format("the stride {} between {} results is not a positive multiple "
                        "of {}.",
                        query.stride_bytes, count, word_bytes));
    }
    // Bounded first, so that the product below cannot overflow.
    constexpr uint64_t kMaxStride = uint64_t{1} << 31;
    if (query.stride_bytes > kMaxStride) {
        return Malformed(fmt::format("the stride {} between results is more than {}.",
                                     query.stride_bytes, kMaxStride));
    }
    FORNAX_RETURN_IF_ERROR(CheckMemory("the queries", query.slots, count * sizeof(QuerySlot), 16));
    FORNAX_RETURN_IF_ERROR(CheckMemory("the results", query.destination,
                                       (count - 1) * query.stride_bytes + QueryResultBytes(flags),
                                       sizeof(uint32_t)));
    FlushObserver();
    const std::span<const QuerySlot> slots(reinterpret_cast<const QuerySlot*>(query.slots), count);
    if ((flags & kQueryWait) != 0) {
        FORNAX_RETURN_IF_ERROR(
            Poll([&] { return std::all_of(slots.begin(), slots.end(), QueryAvailable); }));
    }
    return Guarded(worker_, [&] {
        WriteQueryResults(slots, reinterpret_cast<std::byte*>(query.destination),
                          query.stride_bytes, flags);
    });
}

Status CommandProcessor::Chain(const Packet& packet, Scope& scope) {
    const auto& streams = scope.resources.streams;
    const uint32_t index = packet.header.operand;
    if (index >= streams.size() || streams[index] == nullptr) {
        return Malformed(fmt::format("stream {} of {} does not exist.", index, streams.size()));
    }
    if (scope.depth == kMaxChainDepth) {
        return Malformed(fmt::format("streams are nested deeper than {}.", kMaxChainDepth));
    }
    Scope inner{.resources = streams[index]->resources(),
                .stream = streams[index].get(),
                .depth = scope.depth + 1,
                .outer_discards = scope.discards};
    FORNAX_RETURN_IF_ERROR(RunPackets(inner));
    scope.executable = nullptr;
    scope.bound_sets = 0;
    scope.constant_bytes = 0;
    scope.frame = {};
    return OkStatus();
}

Status CommandProcessor::CheckMemory(const char* what,
                                     uint64_t address,
                                     uint64_t size_bytes,
                                     uint64_t alignment) {
    if (address % alignment != 0) [[unlikely]] {
        return Malformed(
            fmt::format("{} at {:#x} is not aligned to {} bytes.", what, address, alignment));
    }
    if (!memory_.Contains(address, size_bytes)) [[unlikely]] {
        return Malformed(fmt::format("{} of {} bytes at {:#x} is not in device memory.", what,
                                     size_bytes, address));
    }
    return OkStatus();
}

Status CommandProcessor::CheckSideData(const char* what,
                                       uint64_t address,
                                       uint64_t size_bytes,
                                       uint64_t alignment,
                                       const Scope& scope) const {
    if (address % alignment != 0) [[unlikely]] {
        return Malformed(
            fmt::format("{} at {:#x} is not aligned to {} bytes.", what, address, alignment));
    }
    if (scope.stream == nullptr || !scope.stream->OwnsSideData(address, size_bytes)) [[unlikely]] {
        return Malformed(fmt::format("{} of {} bytes at {:#x} is not in the stream's side data.",
                                     what, size_bytes, address));
    }
    return OkStatus();
}

}  // namespace fornax::hal::model
