// CommandStreamBuilder: records packets, with the data and the references that they need.
//
// Recording is a few stores per packet; memory grows by doubling and is kept over Reset. Running
// out of host memory is remembered and reported by Finish; until then every call stays valid. One
// thread at a time uses a builder.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/result.h"
#include "hal/command_stream.h"

namespace fornax::hal {

class CommandStreamBuilder {
  public:
    CommandStreamBuilder() = default;
    CommandStreamBuilder(const CommandStreamBuilder&) = delete;
    CommandStreamBuilder& operator=(const CommandStreamBuilder&) = delete;

    // Forgets what was recorded and begins anew. When nobody else holds the finished stream any
    // more, its storage is reused; otherwise that stays untouched with its holders.
    void Reset();

    // Also gives the storage back to the host.
    void ResetAndRelease();

    // Ends the recording. The stream is immutable and may be submitted or chained any number of
    // times; nothing can be recorded until Reset. kOutOfHostMemory if recording ran out of it.
    Result<std::shared_ptr<const CommandStream>> Finish();

    // Packets recorded so far.
    size_t packet_count() const { return stream_ ? stream_->packet_count_ : 0; }

    // The executable, the descriptor sets (by set number: addresses in device Memory or from
    // StoreSideData, 0 for none) and the dynamic offsets of the following dispatches. The stream
    // retains the executable, which must not be null.
    void Bind(const std::shared_ptr<const Executable>& executable,
              std::span<const uint64_t> descriptor_sets,
              std::span<const uint32_t> dynamic_offsets) {
        BindStored(executable, StoreSideData(descriptor_sets.data(), descriptor_sets.size_bytes()),
                   static_cast<uint32_t>(descriptor_sets.size()),
                   StoreSideData(dynamic_offsets.data(), dynamic_offsets.size_bytes()),
                   static_cast<uint32_t>(dynamic_offsets.size()));
    }
    // The same of what is in the side data.
    void BindStored(const std::shared_ptr<const Executable>& executable,
                    uint64_t descriptor_sets,
                    uint32_t set_count,
                    uint64_t dynamic_offsets,
                    uint32_t dynamic_offset_count) {
        Append(Opcode::kBind, 0, ExecutableIndex(executable)).bind = {
            .descriptor_sets = descriptor_sets,
            .dynamic_offsets = dynamic_offsets,
            .set_count = set_count,
            .dynamic_offset_count = dynamic_offset_count};
    }

    // The push constants of the following dispatches, from byte 0 on; copied.
    void Constants(const void* data, uint32_t size_bytes) {
        ConstantsStored(StoreSideData(data, size_bytes), size_bytes);
    }
    void ConstantsStored(uint64_t data, uint32_t size_bytes) {
        Append(Opcode::kConstants, 0, size_bytes).constants = {data};
    }

    void Dispatch(const std::array<uint32_t, 3>& workgroup_count,
                  const std::array<uint32_t, 3>& base_workgroup = {0, 0, 0}) {
        Append(Opcode::kDispatch).dispatch = {
            {workgroup_count[0], workgroup_count[1], workgroup_count[2]},
            {base_workgroup[0], base_workgroup[1], base_workgroup[2]}};
    }

    void DispatchIndirect(uint64_t address) {
        Append(Opcode::kDispatchIndirect).dispatch_indirect = {address};
    }

    void Barrier() { Append(Opcode::kBarrier); }

    void Copy(uint64_t source, uint64_t destination, uint64_t size_bytes) {
        Append(Opcode::kCopy).copy = {source, destination, size_bytes};
    }

    void CopyIndirect(uint64_t copies, uint32_t count, uint64_t stride_bytes) {
        Append(Opcode::kCopyIndirect, 0, count).copy_indirect = {copies, stride_bytes};
    }

    void CopyRowsIndirect(const CopyRowsIndirectPayload& rows) {
        Append(Opcode::kCopyRowsIndirect).copy_rows_indirect = rows;
    }
    void CopyRows(const CopyRowsPayload& rows) { Append(Opcode::kCopyRows).copy_rows = rows; }

    // Dispatches run only if the word at `address` is not 0, or is 0 if `inverted`.
    void BeginCondition(uint64_t address, bool inverted) {
        Append(Opcode::kCondition, inverted ? kConditionInverted : uint8_t{0}).condition = {
            address};
    }
    void EndCondition() { Append(Opcode::kCondition, kConditionEnd); }

    void Fill(uint64_t destination, uint64_t size_bytes, uint32_t pattern) {
        Append(Opcode::kFill).fill = {destination, size_bytes, pattern};
    }

    // Writes `data` (copied now, less than 4 GiB) when the packet executes.
    void Update(uint64_t destination, std::span<const std::byte> data);

    void SetEvent(uint64_t cell) { Append(Opcode::kEventSet).event = {cell}; }
    void ResetEvent(uint64_t cell) { Append(Opcode::kEventReset).event = {cell}; }
    void WaitEvent(uint64_t cell) { Append(Opcode::kEventWait).event = {cell}; }

    void Timestamp(uint64_t slot) { Append(Opcode::kTimestamp).query = {slot, 0, 0}; }
    // A slot for each of the counters, one after the other.
    void BeginCounts(uint64_t slots, std::span<const CounterId> counters) {
        Count(Opcode::kCountBegin, slots, counters);
    }
    void EndCounts(uint64_t slots, std::span<const CounterId> counters) {
        Count(Opcode::kCountEnd, slots, counters);
    }
    void ResetQueries(uint64_t slots, uint32_t count) {
        Append(Opcode::kQueryReset, 0, count).query = {slots, 0, 0};
    }
    void CopyQueries(uint64_t slots,
                     uint32_t count,
                     uint64_t destination,
                     uint64_t stride_bytes,
                     uint8_t flags) {
        Append(Opcode::kQueryCopy, flags, count).query = {slots, destination, stride_bytes};
    }

    // Runs a finished stream in place (a secondary command buffer) and retains it. Binds and
    // constants must be recorded again afterwards.
    void Chain(const std::shared_ptr<const CommandStream>& stream);

    // Appends a packet as it is, for tests and fuzzers.
    void AppendRaw(const Packet& packet) { Append(Opcode::kNop) = packet; }

    // Copies data into the stream's side data, 16-byte aligned, and returns its address; 0 for no
    // bytes or without memory.
    uint64_t StoreSideData(const void* data, uint64_t size_bytes) {
        if (size_bytes == 0) {
            return 0;
        }
        std::byte* place = ReserveSideData(size_bytes);
        if (place == nullptr) {
            return 0;
        }
        std::memcpy(place, data, size_bytes);
        return reinterpret_cast<uint64_t>(place);
    }

    // Room in the side data, 16-byte aligned, which the caller fills before Finish; null without
    // memory. What a recording is made of is better written there at once than copied there.
    std::byte* ReserveSideData(uint64_t size_bytes) {
        if (stream_ && !stream_->side_.empty()) [[likely]] {
            CommandStream::SideChunk& chunk = stream_->side_.back();
            if (size_bytes <= chunk.size_bytes - chunk.used_bytes) [[likely]] {
                std::byte* place = chunk.data + chunk.used_bytes;
                const uint64_t next =
                    (chunk.used_bytes + size_bytes + kSideAlignment - 1) & ~(kSideAlignment - 1);
                chunk.used_bytes = next < chunk.size_bytes ? next : chunk.size_bytes;
                return place;
            }
        }
        return AllocateSideChunk(size_bytes);
    }

  private:
    static constexpr uint64_t kSideAlignment = 16;

    Packet& Append(Opcode opcode, uint8_t flags = 0, uint32_t operand = 0) {
        assert(!finished_);
        if (!stream_ || stream_->packet_count_ == stream_->packet_capacity_) [[unlikely]] {
            if (!GrowPackets()) {
                return discarded_;
            }
        }
        Packet& packet = stream_->packets_[stream_->packet_count_++];
        packet = Packet{.header = {.opcode = opcode, .flags = flags, .operand = operand}};
        return packet;
    }

    uint32_t ExecutableIndex(const std::shared_ptr<const Executable>& executable) {
        if (executable.get() == last_executable_) [[likely]] {
            return last_executable_index_;
        }
        return AddExecutable(executable);
    }

    void Count(Opcode opcode, uint64_t slots, std::span<const CounterId> counters);
    bool GrowPackets();
    std::byte* AllocateSideChunk(uint64_t size_bytes);
    uint32_t AddExecutable(const std::shared_ptr<const Executable>& executable);
    bool EnsureStream();

    std::shared_ptr<CommandStream> stream_;
    const Executable* last_executable_ = nullptr;
    uint32_t last_executable_index_ = 0;
    bool finished_ = false;
    bool out_of_memory_ = false;
    Packet discarded_;
};

}  // namespace fornax::hal
