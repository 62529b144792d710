// The command stream: the one place that says how work is encoded for a device.
//
// A stream is a sequence of 64-byte packets. The driver records one per command buffer with
// CommandStreamBuilder (hal/command_stream_builder.h); a queue's ring, whose packets look the same,
// chains to it; the device's command processor decodes both. Numbers are little-endian.
//
// Operands. Data is named by device address. An address must lie in a Memory of the device or,
// where a packet says so, in the side data of its own stream. Objects (executables, other streams,
// timelines) are named by their index in the stream's resource table, which keeps them alive.
//
// Order. Packets take effect in order as far as BARRIER and the packets themselves demand: work on
// two sides of a BARRIER never overlaps, work without one between may. A packet that breaks a rule
// stated here loses the device with a message; it never has another effect.
//
// State. BIND and CONSTANTS set the state that dispatches use. It starts empty in every stream and
// is not inherited through CHAIN in either direction: after a CHAIN the state is empty again. A
// CONDITION holds in chained streams as well, and one that a stream began ends with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hal/counters.h"
#include "hal/executable.h"
#include "hal/kernel_abi.h"
#include "hal/query.h"

namespace fornax::hal {

class CommandStream;
class Timeline;

inline constexpr uint32_t kPacketBytes = 64;
inline constexpr uint32_t kMaxPushConstantBytes = kPushConstantBytes;
inline constexpr uint32_t kMaxDescriptorSets = 32;
inline constexpr uint32_t kMaxDynamicOffsets = 64;
inline constexpr uint32_t kMaxChainDepth = 8;  // streams active at once below a ring

enum class Opcode : uint8_t {
    kNop = 0,
    kDispatch = 1,
    kDispatchIndirect = 2,
    kCopy = 3,
    kFill = 4,
    kUpdate = 5,
    kBarrier = 6,
    kTimelineWait = 7,
    kTimelineSignal = 8,
    kEventSet = 9,
    kEventReset = 10,
    kEventWait = 11,
    kTimestamp = 12,
    kQueryReset = 13,
    kQueryCopy = 14,
    kBind = 15,
    kConstants = 16,
    kChain = 17,
    kCopyRows = 18,
    kCondition = 19,
    kCopyIndirect = 20,
    kCountBegin = 21,
    kCountEnd = 22,
    kCopyRowsIndirect = 23,
};
inline constexpr uint32_t kOpcodeCount = 24;

// Returns the name as in documents, "DISPATCH_INDIRECT"; "UNKNOWN" for anything else.
const char* OpcodeName(Opcode opcode);

struct PacketHeader {
    Opcode opcode = Opcode::kNop;
    uint8_t flags = 0;      // meaning by opcode; unused bits must be 0
    uint16_t reserved = 0;  // must be 0
    uint32_t operand = 0;   // meaning by opcode; ignored where none is stated
};

// Flags in the header.
inline constexpr uint8_t kUpdateInline = 1;           // UPDATE: the data is in the packet
inline constexpr uint8_t kConditionInverted = 1;      // CONDITION: a word of 0 lets work run
inline constexpr uint8_t kConditionEnd = 2;           // CONDITION: work runs again
inline constexpr uint8_t kRingEndOfSubmission = 128;  // ring only: the submission's last packet

// DISPATCH: runs the bound executable on a grid, each count within kMaxWorkgroupCount. base + count
// must fit 32 bits. An empty grid is valid and does nothing.
struct DispatchPayload {
    uint32_t workgroup_count[3];
    uint32_t base_workgroup[3];
};

// DISPATCH_INDIRECT: as DISPATCH with the counts read from `address` (three 32-bit words, 4-byte
// aligned, in Memory) when the packet executes, and base 0.
struct DispatchIndirectPayload {
    uint64_t address;
};

// COPY: bytes from Memory to Memory. Where the ranges overlap the result is that of memmove.
struct CopyPayload {
    uint64_t source;
    uint64_t destination;
    uint64_t size_bytes;
};

// COPY_ROWS: copies a block of equal rows, in slices of rows, between places of any pitches: what
// images are made of. The source may lie in side data, and its pitches may be 0 to repeat a row or
// a slice. Ranges that overlap give any bytes of the source.
struct CopyRowsPayload {
    static constexpr uint32_t kMaxCount = 1u << 16;  // of rows and of slices
    static constexpr uint64_t kMaxSlicePitch = uint64_t{1} << 40;
    uint64_t source;
    uint64_t destination;
    uint64_t source_slice_pitch;  // bytes, as all pitches
    uint64_t destination_slice_pitch;
    uint32_t source_row_pitch;
    uint32_t destination_row_pitch;
    uint32_t row_bytes;
    uint32_t rows;
    uint32_t slices;
};

// COPY_INDIRECT: header.operand COPYs whose operands are read from Memory when the packet executes:
// IndirectCopy structures `stride_bytes` apart (at least their size), all aligned to 4 bytes.
struct CopyIndirectPayload {
    static constexpr uint64_t kMaxStride = uint64_t{1} << 31;
    uint64_t address;
    uint64_t stride_bytes;
};
struct IndirectCopy {
    uint64_t source;
    uint64_t destination;
    uint64_t size_bytes;
};

// COPY_ROWS_INDIRECT: a COPY_ROWS into slices of texels, or of blocks of texels, whose source and
// box are read from Memory when the packet executes: an IndirectRows at `source` and an IndirectBox
// at `box`, both aligned to 4 bytes. The box must lie inside of the slices' size; its corner is
// rounded down to whole blocks, and its size up.
struct CopyRowsIndirectPayload {
    uint64_t source;
    uint64_t box;
    uint64_t destination;  // the first slice's first texel
    uint64_t slice_pitch;
    uint32_t row_pitch;
    uint32_t width;  // of a slice, in texels
    uint32_t height;
    uint32_t slices;
    uint8_t bytes;       // of a texel or block
    uint8_t block_log2;  // texels of a block are 1 << block_log2 each way
};
// The source is rows of texels without gaps unless row_texels or slice_rows, which are texels, too,
// say how far they are apart.
struct IndirectRows {
    uint64_t source;
    uint32_t row_texels;
    uint32_t slice_rows;
};
// The packet says which slices are written; z and depth are ignored.
struct IndirectBox {
    int32_t x, y, z;
    uint32_t width, height, depth;
};

// FILL: repeats a 32-bit pattern; destination and size are multiples of 4.
struct FillPayload {
    uint64_t destination;
    uint64_t size_bytes;
    uint32_t pattern;
};

// UPDATE: writes data that was recorded in the stream: in the packet with kUpdateInline, else in
// side data at `source`.
struct UpdatePayload {
    static constexpr uint32_t kInlineBytes = 40;
    uint64_t destination;
    uint32_t size_bytes;
    uint32_t reserved;
    union {
        uint64_t source;
        uint8_t data[kInlineBytes];
    };
};

// TIMELINE_WAIT, TIMELINE_SIGNAL: header.operand is the timeline's index.
struct TimelinePayload {
    uint64_t value;
};

// EVENT_SET, EVENT_RESET, EVENT_WAIT: an EventCell in Memory. WAIT holds the queue until it is set.
struct EventPayload {
    uint64_t address;
};

// TIMESTAMP: when all work before it is done, writes Device::TimestampNow to a QuerySlot in Memory.
// QUERY_RESET: makes header.operand slots unavailable.
// QUERY_COPY: writes the results of header.operand slots to Memory, stride_bytes apart (a multiple
// of the word; may be 0 for one query) and 4-byte aligned, as header.flags (QueryResultFlags) say.
// With kQueryWait it holds the queue until all are available.
struct QueryPayload {
    uint64_t slots;
    uint64_t destination;   // QUERY_COPY only
    uint64_t stride_bytes;  // QUERY_COPY only
};

// COUNT_BEGIN, COUNT_END: header.operand QuerySlots in Memory, one after the other, become what as
// many counters gained by what this queue did between the two, in chained streams as well;
// COUNT_END makes them available. A counter is a CounterId, or beyond these one of the device's
// observer.
struct CountPayload {
    static constexpr uint32_t kMaxCounters = 48;
    uint64_t slots;
    uint8_t counters[kMaxCounters];
};

// BIND: header.operand is the executable's index. `descriptor_sets` is the address in side data of
// `set_count` addresses in Memory or side data (or 0 for a set that is not bound), 8-byte aligned;
// `dynamic_offsets` that of `dynamic_offset_count` 32-bit words. Replaces the whole previous BIND;
// CONSTANTS stay.
struct BindPayload {
    uint64_t descriptor_sets;
    uint64_t dynamic_offsets;
    uint32_t set_count;
    uint32_t dynamic_offset_count;
};

// CONSTANTS: the push constants from byte 0 on, header.operand bytes (at most
// kMaxPushConstantBytes) in side data at `address`, 16-byte aligned. Replaces all previous ones.
struct ConstantsPayload {
    uint64_t address;
};

// CONDITION: reads a 32-bit word in Memory, 4-byte aligned. If it is 0, the DISPATCHes of either
// kind that follow in this stream do nothing, up to the CONDITION with kConditionEnd, which has no
// address.
struct ConditionPayload {
    uint64_t address;
};

// CHAIN runs another stream (header.operand is its index) to its end and returns. NOP and BARRIER
// have no payload.

struct alignas(kPacketBytes) Packet {
    PacketHeader header;
    union {
        uint8_t raw[kPacketBytes - sizeof(PacketHeader)] = {};
        DispatchPayload dispatch;
        DispatchIndirectPayload dispatch_indirect;
        CopyPayload copy;
        CopyRowsPayload copy_rows;
        FillPayload fill;
        UpdatePayload update;
        TimelinePayload timeline;
        EventPayload event;
        QueryPayload query;
        CountPayload count;
        BindPayload bind;
        ConstantsPayload constants;
        ConditionPayload condition;
        CopyIndirectPayload copy_indirect;
        CopyRowsIndirectPayload copy_rows_indirect;
    };
};

static_assert(sizeof(PacketHeader) == 8);
static_assert(offsetof(PacketHeader, opcode) == 0);
static_assert(offsetof(PacketHeader, flags) == 1);
static_assert(offsetof(PacketHeader, reserved) == 2);
static_assert(offsetof(PacketHeader, operand) == 4);
static_assert(sizeof(Packet) == kPacketBytes && alignof(Packet) == kPacketBytes);
static_assert(offsetof(Packet, raw) == 8 && offsetof(Packet, dispatch) == 8);
static_assert(offsetof(DispatchPayload, workgroup_count) == 0);
static_assert(offsetof(DispatchPayload, base_workgroup) == 12);
static_assert(offsetof(DispatchIndirectPayload, address) == 0);
static_assert(offsetof(CopyPayload, source) == 0);
static_assert(offsetof(CopyPayload, destination) == 8);
static_assert(offsetof(CopyPayload, size_bytes) == 16);
static_assert(offsetof(CopyRowsPayload, source) == 0);
static_assert(offsetof(CopyRowsPayload, destination) == 8);
static_assert(offsetof(CopyRowsPayload, source_slice_pitch) == 16);
static_assert(offsetof(CopyRowsPayload, destination_slice_pitch) == 24);
static_assert(offsetof(CopyRowsPayload, source_row_pitch) == 32);
static_assert(offsetof(CopyRowsPayload, destination_row_pitch) == 36);
static_assert(offsetof(CopyRowsPayload, row_bytes) == 40);
static_assert(offsetof(CopyRowsPayload, rows) == 44);
static_assert(offsetof(CopyRowsPayload, slices) == 48);
static_assert(offsetof(FillPayload, destination) == 0);
static_assert(offsetof(FillPayload, size_bytes) == 8);
static_assert(offsetof(FillPayload, pattern) == 16);
static_assert(offsetof(UpdatePayload, destination) == 0);
static_assert(offsetof(UpdatePayload, size_bytes) == 8);
static_assert(offsetof(UpdatePayload, source) == 16 && offsetof(UpdatePayload, data) == 16);
static_assert(sizeof(UpdatePayload) == 56);
static_assert(offsetof(TimelinePayload, value) == 0);
static_assert(offsetof(EventPayload, address) == 0);
static_assert(offsetof(QueryPayload, slots) == 0);
static_assert(offsetof(QueryPayload, destination) == 8);
static_assert(offsetof(QueryPayload, stride_bytes) == 16);
static_assert(offsetof(CountPayload, counters) == 8 && sizeof(CountPayload) == 56);
static_assert(offsetof(BindPayload, descriptor_sets) == 0);
static_assert(offsetof(BindPayload, dynamic_offsets) == 8);
static_assert(offsetof(BindPayload, set_count) == 16);
static_assert(offsetof(BindPayload, dynamic_offset_count) == 20);
static_assert(offsetof(ConstantsPayload, address) == 0);
static_assert(offsetof(ConditionPayload, address) == 0);
static_assert(offsetof(CopyIndirectPayload, address) == 0);
static_assert(offsetof(CopyIndirectPayload, stride_bytes) == 8);
static_assert(sizeof(IndirectCopy) == 24);
static_assert(offsetof(CopyRowsIndirectPayload, source) == 0);
static_assert(offsetof(CopyRowsIndirectPayload, box) == 8);
static_assert(offsetof(CopyRowsIndirectPayload, destination) == 16);
static_assert(offsetof(CopyRowsIndirectPayload, slice_pitch) == 24);
static_assert(offsetof(CopyRowsIndirectPayload, row_pitch) == 32);
static_assert(offsetof(CopyRowsIndirectPayload, width) == 36);
static_assert(offsetof(CopyRowsIndirectPayload, height) == 40);
static_assert(offsetof(CopyRowsIndirectPayload, slices) == 44);
static_assert(offsetof(CopyRowsIndirectPayload, bytes) == 48);
static_assert(offsetof(CopyRowsIndirectPayload, block_log2) == 49);
static_assert(offsetof(IndirectRows, row_texels) == 8 && offsetof(IndirectRows, slice_rows) == 12);
static_assert(sizeof(IndirectRows) == 16);
static_assert(offsetof(IndirectBox, width) == 12 && sizeof(IndirectBox) == 24);

// What the packets of a stream (or of one submission in a ring) name by index.
struct ResourceTable {
    std::vector<std::shared_ptr<const Executable>> executables;
    std::vector<std::shared_ptr<const CommandStream>> streams;
    std::vector<std::shared_ptr<Timeline>> timelines;
};

// A recorded stream: packets, side data and resources. Written by a CommandStreamBuilder, read-only
// from Finish on; then any thread may read it and any number of submissions may run it, also at
// once.
class CommandStream {
  public:
    CommandStream() = default;
    ~CommandStream();
    CommandStream(const CommandStream&) = delete;
    CommandStream& operator=(const CommandStream&) = delete;

    std::span<const Packet> packets() const { return {packets_, packet_count_}; }
    const ResourceTable& resources() const { return resources_; }

    // Whether the whole range lies in this stream's side data.
    bool OwnsSideData(uint64_t address, uint64_t size_bytes) const;

  private:
    friend class CommandStreamBuilder;

    struct SideChunk {
        std::byte* data;
        uint64_t used_bytes;
        uint64_t size_bytes;
    };

    Packet* packets_ = nullptr;
    size_t packet_count_ = 0;
    size_t packet_capacity_ = 0;
    std::vector<SideChunk> side_;
    ResourceTable resources_;
};

}  // namespace fornax::hal
