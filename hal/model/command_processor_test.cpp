// What the command processor refuses, with which words, and that nothing else happens then.
#include "hal/model/command_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <random>

#include <sys/resource.h>

#include "base/sanitized.h"
#include "hal/device.h"
#include "hal/model/packet_harness.h"

namespace fornax::hal::model {
namespace {

using testing::HasSubstr;

uint64_t InMemory(uint64_t offset) {
    return (uint64_t{PacketHarness::kMemoryMark} << 56) | offset;
}

uint64_t InSideData(uint64_t offset) {
    return (uint64_t{PacketHarness::kSideMark} << 56) | offset;
}

PacketHeader Header(Opcode opcode, uint8_t flags = 0, uint32_t operand = 0) {
    return {.opcode = opcode, .flags = flags, .operand = operand};
}

// Expects the packet to be refused with a message that has `words` in it and names the packet.
void ExpectRefused(const Packet& packet, const std::string& words) {
    PacketHarness harness;
    const Status status = harness.RunOne(packet);
    ASSERT_FALSE(status.ok()) << words;
    EXPECT_THAT(status.error().message, HasSubstr(words));
    EXPECT_THAT(status.error().message, HasSubstr(OpcodeName(packet.header.opcode)));
    const std::byte* bytes = harness.memory()->host_pointer();
    EXPECT_TRUE(std::all_of(bytes + 64, bytes + PacketHarness::kMemoryBytes,
                            [](std::byte b) { return b == std::byte{0}; }));
}

void ExpectDone(const Packet& packet) {
    PacketHarness harness;
    const Status status = harness.RunOne(packet);
    EXPECT_TRUE(status.ok()) << status.error().message;
}

constexpr uint64_t kEnd = PacketHarness::kMemoryBytes;

TEST(CommandProcessor, RefusesHeaders) {
    ExpectRefused({.header = {.opcode = static_cast<Opcode>(200)}}, "opcode 200 does not exist");
    ExpectRefused({.header = Header(Opcode::kBarrier, 1)}, "flags 0x1");
    ExpectRefused({.header = Header(Opcode::kQueryCopy, 16)}, "flags 0x10");
    ExpectRefused({.header = Header(Opcode::kNop, kRingEndOfSubmission)}, "flags 0x80");
    ExpectRefused({.header = {.opcode = Opcode::kFill, .reserved = 3}}, "reserved bits 0x3");
}

TEST(CommandProcessor, RefusesCopies) {
    const auto copy = [](uint64_t source, uint64_t destination, uint64_t size_bytes) {
        Packet packet{.header = Header(Opcode::kCopy)};
        packet.copy = {source, destination, size_bytes};
        return packet;
    };
    ExpectDone(copy(InMemory(0), InMemory(kEnd / 2), kEnd / 2));
    ExpectDone(copy(0, 0, 0));
    ExpectRefused(copy(InMemory(0), InMemory(kEnd / 2), kEnd / 2 + 1), "the destination of 4097");
    ExpectRefused(copy(InMemory(1), InMemory(0), kEnd), "the source of 8192");
    ExpectRefused(copy(InMemory(0), InMemory(64), UINT64_MAX), "not in device memory");
    ExpectRefused(copy(InMemory(0), InMemory(64), UINT64_MAX - 63), "not in device memory");
    ExpectRefused(copy(0, InMemory(0), 1), "at 0x0");
    ExpectRefused(copy(InSideData(0), InMemory(0), 8), "the source of 8");
}

TEST(CommandProcessor, RefusesIndirectCopiesAndConditions) {
    const auto copies = [](uint64_t address, uint32_t count, uint64_t stride_bytes) {
        Packet packet{.header = Header(Opcode::kCopyIndirect, 0, count)};
        packet.copy_indirect = {address, stride_bytes};
        return packet;
    };
    // The memory there is zeros, so the copies are empty.
    ExpectDone(copies(InMemory(1028), 3, 32));
    ExpectRefused(copies(InMemory(4), 1, 24), "the source of 4294967297");
    ExpectDone(copies(0, 0, 0));
    ExpectDone(copies(InMemory(kEnd - 24), 1, 24));
    ExpectRefused(copies(InMemory(kEnd - 20), 1, 24), "the list of copies of 24");
    ExpectRefused(copies(InMemory(kEnd - 56), 2, 36), "the list of copies of 60");
    ExpectRefused(copies(InMemory(2), 1, 24), "not aligned to 4");
    ExpectRefused(copies(InMemory(0), 1, 20), "the stride 20 between copies");
    ExpectRefused(copies(InMemory(0), 2, 26), "the stride 26 between copies");
    ExpectRefused(copies(InMemory(0), UINT32_MAX, UINT64_MAX - 3), "between copies");
    ExpectRefused(copies(InMemory(0), UINT32_MAX, CopyIndirectPayload::kMaxStride),
                  "not in device memory");
    ExpectRefused(copies(InSideData(0), 1, 24), "not in device memory");
    const auto condition = [](uint64_t address, uint8_t flags) {
        Packet packet{.header = Header(Opcode::kCondition, flags)};
        packet.condition = {address};
        return packet;
    };
    ExpectDone(condition(InMemory(8), 0));
    ExpectDone(condition(InMemory(kEnd - 4), kConditionInverted));
    ExpectDone(condition(0, kConditionEnd));
    ExpectRefused(condition(InMemory(kEnd), 0), "the condition of 4");
    ExpectRefused(condition(InMemory(6), 0), "not aligned to 4");
    ExpectRefused(condition(InMemory(0), 4), "flags 0x4");
}

TEST(CommandProcessor, RefusesIndirectCopiesOfRows) {
    const auto rows = [](const CopyRowsIndirectPayload& copy) {
        Packet packet{.header = Header(Opcode::kCopyRowsIndirect)};
        packet.copy_rows_indirect = copy;
        return packet;
    };
    const CopyRowsIndirectPayload good{.source = InMemory(kEnd - 40),
                                       .box = InMemory(kEnd - 24),
                                       .destination = InMemory(1024),
                                       .slice_pitch = 256,
                                       .row_pitch = 32,
                                       .width = 8,
                                       .height = 6,
                                       .slices = 2,
                                       .bytes = 4,
                                       .block_log2 = 0};
    ExpectDone(rows(good));
    CopyRowsIndirectPayload bad = good;
    bad.source = InMemory(kEnd - 12);
    ExpectRefused(rows(bad), "the rows of a copy of 16");
    bad.source = InMemory(2);
    ExpectRefused(rows(bad), "not aligned to 4");
    bad = good;
    bad.box += 4;
    ExpectRefused(rows(bad), "the box of a copy of 24");
    bad.box = InMemory(2);
    ExpectRefused(rows(bad), "not aligned to 4");
    bad = good;
    bad.bytes = 17;
    ExpectRefused(rows(bad), "17 bytes");
    bad = good;
    bad.block_log2 = 33;
    ExpectRefused(rows(bad), "2^33 texels");
    // Boxes that an earlier packet wrote; the memory was zeros.
    const auto expect_box = [&](std::array<uint32_t, 6> box, const char* words) {
        PacketHarness harness;
        Packet update{.header = Header(Opcode::kUpdate, kUpdateInline)};
        update.update = {
            .destination = good.box, .size_bytes = sizeof(box), .reserved = 0, .data = {}};
        std::memcpy(update.update.data, box.data(), sizeof(box));
        ASSERT_TRUE(harness.RunOne(update).ok());
        const Status status = harness.RunOne(rows(good));
        ASSERT_FALSE(status.ok()) << words;
        EXPECT_THAT(status.error().message, HasSubstr(words));
    };
    expect_box({4, 1, 0, 5, 3, 1}, "a box of 5 x 3 texels at (4, 1) is not inside of 8 x 6");
    expect_box({0, 4, 0, 1, 3, 1}, "a box of 1 x 3 texels at (0, 4)");
    expect_box({UINT32_MAX, 0, 0, 2, 1, 1}, "texels at (-1, 0)");
    expect_box({1, 0, 0, UINT32_MAX, 1, 1}, "a box of 4294967295 x 1");
    expect_box({3, 3, 0, 5, 3, 1}, "the source of");  // there is none at 0
}

TEST(CommandProcessor, RefusesCopiesOfRows) {
    const auto rows = [](CopyRowsPayload copy) {
        Packet packet{.header = Header(Opcode::kCopyRows)};
        packet.copy_rows = copy;
        return packet;
    };
    const CopyRowsPayload good{.source = InMemory(0),
                               .destination = InMemory(kEnd - 30),
                               .source_slice_pitch = 100,
                               .destination_slice_pitch = 16,
                               .source_row_pitch = 8,
                               .destination_row_pitch = 4,
                               .row_bytes = 2,
                               .rows = 4,
                               .slices = 2};
    ExpectDone(rows(good));
    CopyRowsPayload bad = good;
    bad.destination += 1;
    ExpectRefused(rows(bad), "the destination of 30");
    bad = good;
    bad.source = InMemory(kEnd - 100);
    ExpectRefused(rows(bad), "the source of 126");
    bad = good;
    bad.rows = CopyRowsPayload::kMaxCount + 1;
    ExpectRefused(rows(bad), "65537 rows in 2 slices");
    bad = good;
    bad.source_slice_pitch = UINT64_MAX;
    ExpectRefused(rows(bad), "the slice pitches 18446744073709551615 and 16");
    bad.source_slice_pitch = CopyRowsPayload::kMaxSlicePitch;
    ExpectRefused(rows(bad), "not in device memory");
    bad.row_bytes = 0;
    ExpectDone(rows(bad));
}

TEST(CommandProcessor, RefusesFillsAndUpdates) {
    const auto fill = [](uint64_t destination, uint64_t size_bytes) {
        Packet packet{.header = Header(Opcode::kFill)};
        packet.fill = {destination, size_bytes, 7};
        return packet;
    };
    ExpectDone(fill(InMemory(0), kEnd));
    ExpectRefused(fill(InMemory(0), 6), "size 6");
    ExpectRefused(fill(InMemory(2), 8), "not aligned to 4");
    ExpectRefused(fill(InMemory(4), kEnd), "not in device memory");
    const auto update = [](uint64_t destination, uint32_t size_bytes, uint64_t source,
                           uint8_t flags) {
        Packet packet{.header = Header(Opcode::kUpdate, flags)};
        packet.update = {.destination = destination, .size_bytes = size_bytes, .source = source};
        return packet;
    };
    ExpectDone(update(InMemory(kEnd - 40), 40, 0, kUpdateInline));
    ExpectRefused(update(InMemory(100), 41, 0, kUpdateInline), "41 bytes of data");
    ExpectRefused(update(InMemory(kEnd - 39), 40, 0, kUpdateInline), "the destination");
    ExpectDone(update(InMemory(100), PacketHarness::kSideBytes, InSideData(0), 0));
    ExpectRefused(update(InMemory(100), PacketHarness::kSideBytes + 1, InSideData(0), 0),
                  "side data");
    ExpectRefused(update(InMemory(100), 8, InMemory(0), 0), "side data");
    ExpectRefused(update(InMemory(100), UINT32_MAX, InSideData(0), 0), "side data");
}

TEST(CommandProcessor, RefusesBinds) {
    const auto bind = [](uint32_t executable, uint64_t sets, uint32_t set_count, uint64_t offsets,
                         uint32_t offset_count) {
        Packet packet{.header = Header(Opcode::kBind, 0, executable)};
        packet.bind = {sets, offsets, set_count, offset_count};
        return packet;
    };
    ExpectDone(bind(1, InSideData(0), 1, InSideData(64), 16));
    ExpectRefused(bind(3, 0, 0, 0, 0), "executable 3 of 3");
    ExpectRefused(bind(0, InSideData(0), 33, 0, 0), "33 descriptor sets");
    ExpectRefused(bind(0, InSideData(0), 2, 0, 0), "a descriptor set");
    ExpectRefused(bind(0, InMemory(0), 1, 0, 0), "the list of descriptor sets");
    ExpectRefused(bind(0, InSideData(4), 1, 0, 0), "not aligned to 8");
    ExpectRefused(bind(0, 0, 0, InSideData(0), 65), "65 dynamic offsets");
    ExpectRefused(bind(0, 0, 0, InSideData(PacketHarness::kSideBytes), 1), "dynamic offsets");
    const auto constants = [](uint64_t address, uint32_t size_bytes) {
        Packet packet{.header = Header(Opcode::kConstants, 0, size_bytes)};
        packet.constants = {address};
        return packet;
    };
    ExpectDone(constants(InSideData(0), 256));
    ExpectRefused(constants(InSideData(0), 257), "257 bytes");
    ExpectRefused(constants(InSideData(8), 16), "not aligned to 16");
    ExpectRefused(constants(InMemory(0), 16), "side data");
}

TEST(CommandProcessor, RefusesQueriesAndEvents) {
    for (const Opcode opcode : {Opcode::kEventSet, Opcode::kEventReset, Opcode::kEventWait}) {
        Packet packet{.header = Header(opcode)};
        packet.event = {InMemory(2)};
        ExpectRefused(packet, "not aligned to 4");
        packet.event = {InMemory(kEnd)};
        ExpectRefused(packet, "not in device memory");
    }
    const auto query = [](Opcode opcode, uint32_t count, uint64_t slots, uint64_t destination = 0,
                          uint64_t stride = 0, uint8_t flags = 0) {
        Packet packet{.header = Header(opcode, flags, count)};
        packet.query = {slots, destination, stride};
        return packet;
    };
    ExpectDone(query(Opcode::kTimestamp, 0, InMemory(kEnd - 16)));
    ExpectRefused(query(Opcode::kTimestamp, 0, InMemory(8)), "not aligned to 16");
    ExpectRefused(query(Opcode::kTimestamp, 0, InMemory(kEnd)), "not in device memory");
    for (const Opcode opcode : {Opcode::kCountBegin, Opcode::kCountEnd}) {
        ExpectDone(query(opcode, 1, InMemory(kEnd - 16)));
        ExpectRefused(query(opcode, 1, InMemory(8)), "not aligned to 16");
        ExpectRefused(query(opcode, 2, InMemory(kEnd - 16)), "not in device memory");
        ExpectRefused(query(opcode, CountPayload::kMaxCounters + 1, InMemory(0)), "more than 48");
        Packet unknown = query(opcode, 2, InMemory(0));
        unknown.count.counters[1] = kCounterIds;
        ExpectRefused(unknown, "the counter " + std::to_string(kCounterIds));
    }
    ExpectDone(query(Opcode::kQueryReset, kEnd / 16, InMemory(0)));
    ExpectRefused(query(Opcode::kQueryReset, kEnd / 16 + 1, InMemory(0)), "the queries");
    ExpectRefused(query(Opcode::kQueryReset, UINT32_MAX, InMemory(0)), "the queries");
    const auto copy = [&](uint32_t count, uint64_t destination, uint64_t stride, uint8_t flags) {
        return query(Opcode::kQueryCopy, count, InMemory(1024), destination, stride, flags);
    };
    ExpectDone(copy(2, InMemory(kEnd - 8), 4, 0));
    ExpectRefused(copy(3, InMemory(kEnd - 8), 4, 0), "the results of 12");
    ExpectRefused(copy(2, InMemory(4096), 6, 0), "stride 6");
    ExpectRefused(copy(2, InMemory(4096), 4, kQuery64Bit), "stride 4");
    ExpectRefused(copy(2, InMemory(4096), 0, 0), "stride 0");
    ExpectRefused(copy(4, InMemory(4096), uint64_t{1} << 62, kQuery64Bit), "more than");
    ExpectDone(copy(1, InMemory(4100), 8, kQuery64Bit));
    ExpectRefused(copy(1, InMemory(4098), 8, kQuery64Bit), "not aligned to 4");
    // The processor is told to stop, so the wait for what never comes ends.
    ExpectRefused(copy(1, InMemory(4096), 8, kQueryWait), "stopped");
}

TEST(CommandProcessor, RefusesObjectsThatDoNotExist) {
    ExpectRefused({.header = Header(Opcode::kChain, 0, 1)}, "stream 1 of 1");
    ExpectRefused({.header = Header(Opcode::kTimelineSignal, 0, 0)}, "timeline 0 of 0");
    ExpectRefused({.header = Header(Opcode::kTimelineWait, 0, 7)}, "timeline 7 of 0");
    ExpectRefused({.header = Header(Opcode::kDispatch)}, "no executable is bound");
}

// Runs a stream on a queue and returns why the device was lost; "" when it was not.
std::string RunOnDevice(const KernelDesc& kernel,
                        const std::function<void(CommandStreamBuilder&, Device&)>& record) {
    auto device = *CreateDevice("model", {.worker_count = 2});
    auto queue = *device->CreateQueue();
    CommandStreamBuilder builder;
    builder.Bind(*device->CreateExecutable(kernel), {}, {});
    record(builder, *device);
    const auto stream = *builder.Finish();
    EXPECT_TRUE(queue->Submit({.streams = {&stream, 1}}).ok());
    const Status idle = queue->WaitIdle();
    EXPECT_EQ(idle.ok(), !device->lost());
    return idle.ok() ? "" : idle.error().message;
}

void NothingKernel(const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {}

TEST(CommandProcessor, RefusesGrids) {
    const KernelDesc kernel = {.entry = &NothingKernel, .name = "nothing"};
    const auto dispatch = [&](std::array<uint32_t, 3> count, std::array<uint32_t, 3> base) {
        return RunOnDevice(
            kernel, [&](CommandStreamBuilder& builder, Device&) { builder.Dispatch(count, base); });
    };
    EXPECT_EQ(dispatch({0x7fffffff, 65535, 65535}, {0, 0, 0}), "");
    EXPECT_EQ(dispatch({1, 1, 1}, {0xfffffffe, 0, 0}), "");
    EXPECT_THAT(dispatch({0x80000000, 0, 1}, {0, 0, 0}), HasSubstr("workgroups in x"));
    EXPECT_THAT(dispatch({1, 65536, 1}, {0, 0, 0}), HasSubstr("65536 workgroups in y"));
    EXPECT_THAT(dispatch({1, 1, 70000}, {0, 0, 0}), HasSubstr("70000 workgroups in z"));
    EXPECT_THAT(dispatch({2, 1, 1}, {0xfffffffe, 0, 0}), HasSubstr("does not fit 32 bits"));
}

TEST(CommandProcessor, ChecksIndirectParametersAtExecution) {
    const KernelDesc kernel = {.entry = &NothingKernel, .name = "nothing"};
    const std::string message = RunOnDevice(kernel, [](CommandStreamBuilder& builder,
                                                       Device& device) {
        auto memory = *device.AllocateMemory(4096);
        const uint32_t count[] = {1, 100'000, 1};
        std::memcpy(memory->host_pointer(), count, sizeof(count));
        builder.DispatchIndirect(memory->address());
        // Keeps the memory beyond this function, with the executable's code.
        builder.Bind(*device.CreateExecutable({.entry = &NothingKernel, .code = memory}), {}, {});
    });
    EXPECT_THAT(message, HasSubstr("100000 workgroups in y"));
    EXPECT_THAT(message, HasSubstr("DISPATCH_INDIRECT"));
    EXPECT_THAT(RunOnDevice(kernel, [](CommandStreamBuilder& builder,
                                       Device&) { builder.DispatchIndirect(0x1002); }),
                HasSubstr("not aligned to 4"));
}

TEST(CommandProcessor, ChecksWhatAKernelNeeds) {
    const KernelDesc kernel = {.entry = &NothingKernel,
                               .push_constant_bytes = 20,
                               .descriptor_set_mask = 0b10,
                               .name = "needy"};
    EXPECT_THAT(RunOnDevice(kernel, [](CommandStreamBuilder& builder,
                                       Device&) { builder.Dispatch({1, 1, 1}); }),
                HasSubstr("'needy' reads 20 bytes of constants, and 0 are set"));
    EXPECT_THAT(RunOnDevice(kernel,
                            [](CommandStreamBuilder& builder, Device&) {
                                const uint32_t constants[5] = {};
                                builder.Constants(constants, sizeof(constants));
                                builder.Dispatch({1, 1, 1});
                            }),
                HasSubstr("uses the descriptor sets 0x2, and 0x0 are bound"));
}

TEST(CommandProcessor, NestingHasALimit) {
    std::shared_ptr<const CommandStream> inner;
    for (uint32_t depth = 0; depth <= kMaxChainDepth; ++depth) {
        CommandStreamBuilder builder;
        if (inner) {
            builder.Chain(inner);
        }
        inner = *builder.Finish();
    }
    const KernelDesc kernel = {.entry = &NothingKernel};
    EXPECT_THAT(
        RunOnDevice(kernel, [&](CommandStreamBuilder& builder, Device&) { builder.Chain(inner); }),
        HasSubstr("nested deeper than 8"));
}

#ifndef FORNAX_SANITIZED
TEST(CommandProcessor, ScratchThatCannotBeHadLosesTheDevice) {
    rlimit previous;
    ASSERT_EQ(getrlimit(RLIMIT_AS, &previous), 0);
    rlimit tight = previous;
    tight.rlim_cur = uint64_t{900} << 20;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
    const std::string message =
        RunOnDevice({.entry = &NothingKernel, .scratch_bytes = kMaxScratchBytes, .name = "greedy"},
                    [](CommandStreamBuilder& builder, Device&) { builder.Dispatch({1, 1, 1}); });
    ASSERT_EQ(setrlimit(RLIMIT_AS, &previous), 0);
    EXPECT_THAT(message, HasSubstr("1073741824 bytes for the scratch memory of worker 0"));
}
#endif

// Packets of random content, most of them nearly right. Every opcode must be met both ways, or the
// generator has lost touch with the encoding.
TEST(CommandProcessor, SurvivesRandomPackets) {
    PacketHarness harness;
    PacketHarness::Outcomes outcomes;
    std::mt19937_64 random(20240607);
    constexpr int kRuns = 100'000;
    std::vector<uint8_t> bytes;
    for (int run = 0; run < kRuns; ++run) {
        bytes.assign(1, static_cast<uint8_t>(random()));
        const uint64_t packets = random() % 4 == 0 ? random() % 12 : 1;
        for (uint64_t i = 0; i < packets; ++i) {
            const Packet packet = PacketHarness::RandomPacket(random);
            const auto* raw = reinterpret_cast<const uint8_t*>(&packet);
            bytes.insert(bytes.end(), raw, raw + sizeof(packet));
        }
        harness.Run(bytes, &outcomes);
    }
    for (uint32_t opcode = 0; opcode < kOpcodeCount; ++opcode) {
        const char* name = OpcodeName(static_cast<Opcode>(opcode));
        EXPECT_GT(outcomes.refused[opcode], 0u) << name;
        const bool needs_state = opcode == static_cast<uint32_t>(Opcode::kDispatch) ||
                                 opcode == static_cast<uint32_t>(Opcode::kDispatchIndirect);
        if (!needs_state) {
            EXPECT_GT(outcomes.done[opcode], 0u) << name;
        }
    }
}

}  // namespace
}  // namespace fornax::hal::model
