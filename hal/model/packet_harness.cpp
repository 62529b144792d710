// The harness around the command processor for packets of any content.
#include "hal/model/packet_harness.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "hal/support/host_timeline.h"

namespace fornax::hal::model {

namespace {

// Touches all that a kernel with this description may, so that a sanitiser sees a check that is
// missing: 16 bytes of constants and the first descriptor of set 0.
void TouchingKernel(const DispatchFrame* frame, WorkerFrame* worker, uint64_t first, uint64_t) {
    volatile uint8_t sink = 0;
    for (int i = 0; i < 16; ++i) {
        sink = static_cast<const volatile uint8_t*>(frame->push_constants)[i];
        sink = static_cast<const volatile uint8_t*>(frame->descriptor_sets[0])[i];
    }
    *static_cast<volatile uint8_t*>(worker->shared_memory) = sink;
    *static_cast<volatile uint8_t*>(worker->scratch) = static_cast<uint8_t>(first);
}

void PlainKernel(const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {}

void FaultyKernel(const DispatchFrame*, WorkerFrame* worker, uint64_t, uint64_t) {
    worker->fault = static_cast<uint32_t>(KernelFault::kUnreachable);
}

// A word of a payload: of no meaning, an address or a small number.
uint64_t RandomWord(std::mt19937_64& random) {
    const auto marked = [](uint8_t mark, uint64_t offset) { return uint64_t{mark} << 56 | offset; };
    constexpr uint64_t kEnd = PacketHarness::kMemoryBytes;
    switch (random() % 8) {
        case 0:
            return random();
        case 1:
        case 2:
            return marked(PacketHarness::kMemoryMark, random() % (2 * kEnd));
        case 3:
            return marked(PacketHarness::kMemoryMark, random() % kEnd & ~uint64_t{63});
        case 4:
            return marked(PacketHarness::kSideMark,
                          random() % PacketHarness::kSideBytes & ~uint64_t{15});
        case 5:
            return random() % 4 | (random() % 4) << 32;
        case 6:
            return random() % 128 * 4;
        default:
            return 0;
    }
}

// Rows without pitches stay in memory however many there are, and 2^32 of them take minutes.
void ShortenRows(Packet& packet) {
    constexpr uint32_t kEnough = 1 << 9;
    CopyRowsPayload& copy = packet.copy_rows;
    if (packet.header.opcode == Opcode::kCopyRows && copy.rows <= CopyRowsPayload::kMaxCount &&
        copy.slices <= CopyRowsPayload::kMaxCount) {
        copy.rows = std::min(copy.rows, kEnough);
        copy.slices = std::min(copy.slices, kEnough);
    }
}

}  // namespace

Packet PacketHarness::RandomPacket(std::mt19937_64& random) {
    Packet packet;
    packet.header.opcode = static_cast<Opcode>(random() % (kOpcodeCount + 1));
    if (packet.header.opcode == Opcode::kEventWait && random() % 16 != 0) {
        packet.header.opcode = Opcode::kEventSet;  // a wait takes its time
    }
    packet.header.flags = static_cast<uint8_t>(random() % 4 == 0 ? random() : random() % 2);
    packet.header.reserved = static_cast<uint16_t>(random() % 64 == 0);
    packet.header.operand = static_cast<uint32_t>(random() % 8 == 0 ? random() : random() % 4);
    for (size_t offset = 0; offset < sizeof(packet.raw); offset += sizeof(uint64_t)) {
        const uint64_t value = RandomWord(random);
        std::memcpy(packet.raw + offset, &value, sizeof(value));
    }
    return packet;
}

PacketHarness::PacketHarness()
    : hub_(std::make_shared<WaitHub>(nullptr)),
      heap_(std::make_shared<HostHeap>(1 << 20)),
      pool_(2, hub_),
      processor_(
          {.hub = *hub_, .heap = *heap_, .pool = pool_, .counters = counters_, .stop = stop_}) {
    auto memory = heap_->Allocate(kMemoryBytes);
    if (!memory.ok()) {
        std::abort();  // 8 KiB of a heap of 1 MiB
    }
    memory_ = *memory;
    const KernelDesc kernels[] = {
        {.entry = &PlainKernel, .name = "plain"},
        {.entry = &TouchingKernel,
         .scratch_bytes = 100,
         .push_constant_bytes = 16,
         .descriptor_set_mask = 1,
         .name = "touching"},
        {.entry = &FaultyKernel, .name = "faulty"},
    };
    for (const KernelDesc& kernel : kernels) {
        resources_.executables.push_back(std::make_shared<const Executable>(kernel));
    }
    resources_.executables.push_back(nullptr);
    CommandStreamBuilder inner;
    inner.Fill(memory_->address(), 64, 1);
    auto stream = inner.Finish();
    resources_.streams = {stream.ok() ? *stream : nullptr, nullptr};
    resources_.timelines = {std::make_shared<HostTimeline>(hub_, 100), nullptr};
}

// The resources, and the side data that marked words point into.
uint64_t PacketHarness::BeginStream(CommandStreamBuilder& builder) const {
    for (size_t i = 0; i < 3; ++i) {
        builder.Bind(resources_.executables[i], {}, {});
    }
    builder.Chain(resources_.streams[0]);
    // A list of descriptor sets first, then bytes of no meaning.
    uint64_t side[kSideBytes / sizeof(uint64_t)] = {};
    side[0] = memory_->address() + 256;
    side[1] = memory_->address() + kMemoryBytes - 8;  // ends too late for a descriptor
    return builder.StoreSideData(side, sizeof(side));
}

void PacketHarness::Relocate(Packet& packet, uint64_t side_address) const {
    for (size_t offset = 0; offset < sizeof(packet.raw); offset += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, packet.raw + offset, sizeof(word));
        const auto mark = static_cast<uint8_t>(word >> 56);
        // Up to twice the size, so that ends and beyond are hit as often as the inside.
        if (mark == kMemoryMark) {
            word = memory_->address() + word % (2 * kMemoryBytes);
        } else if (mark == kSideMark) {
            word = side_address + word % (2 * kSideBytes);
        }
        std::memcpy(packet.raw + offset, &word, sizeof(word));
    }
}

void PacketHarness::Run(std::span<const uint8_t> bytes, Outcomes* outcomes) {
    if (bytes.empty()) {
        return;
    }
    const bool in_ring = (bytes[0] & 1) != 0;
    bytes = bytes.subspan(1);
    CommandStreamBuilder builder;
    const uint64_t side_address = BeginStream(builder);
    for (; bytes.size() >= sizeof(Packet); bytes = bytes.subspan(sizeof(Packet))) {
        Packet packet;
        std::memcpy(static_cast<void*>(&packet), bytes.data(), sizeof(packet));
        Relocate(packet, side_address);
        ShortenRows(packet);
        if (!in_ring) {
            builder.AppendRaw(packet);
            continue;
        }
        const bool ok = processor_.RunRingPacket(packet, resources_).ok();
        const auto opcode = static_cast<uint32_t>(packet.header.opcode);
        if (outcomes != nullptr && opcode < kOpcodeCount) {
            ++(ok ? outcomes->done : outcomes->refused)[opcode];
        }
    }
    if (in_ring) {
        return;
    }
    const auto stream = builder.Finish();
    if (!stream.ok()) {
        return;
    }
    const bool ok = processor_.RunStream(**stream).ok();
    // A stream of one packet tells what became of that packet.
    const std::span<const Packet> packets = (*stream)->packets();
    constexpr size_t kPreamble = 4;
    if (outcomes != nullptr && packets.size() == kPreamble + 1) {
        const auto opcode = static_cast<uint32_t>(packets.back().header.opcode);
        if (opcode < kOpcodeCount) {
            ++(ok ? outcomes->done : outcomes->refused)[opcode];
        }
    }
}

Status PacketHarness::RunOne(const Packet& packet) {
    CommandStreamBuilder builder;
    const uint64_t side_address = BeginStream(builder);
    Packet relocated = packet;
    Relocate(relocated, side_address);
    builder.AppendRaw(relocated);
    FORNAX_ASSIGN_OR_RETURN(const auto stream, builder.Finish());
    return processor_.RunStream(*stream);
}

}  // namespace fornax::hal::model
