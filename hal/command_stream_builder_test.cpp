// What recording writes down, keeps alive and reuses.
#include "hal/command_stream_builder.h"

#include <gtest/gtest.h>

namespace fornax::hal {
namespace {

void NothingKernel(const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {}

std::shared_ptr<const Executable> MakeExecutable() {
    return std::make_shared<const Executable>(KernelDesc{.entry = &NothingKernel});
}

TEST(CommandStreamBuilder, WritesPackets) {
    CommandStreamBuilder builder;
    const auto executable = MakeExecutable();
    const uint64_t sets[] = {0x1000, 0};
    const uint32_t offsets[] = {16, 32, 48};
    const uint32_t constants[] = {9, 8, 7};
    builder.Bind(executable, sets, offsets);
    builder.Constants(constants, sizeof(constants));
    builder.Dispatch({1, 2, 3}, {4, 5, 6});
    const auto stream = *builder.Finish();
    const auto packets = stream->packets();
    ASSERT_EQ(packets.size(), 3u);
    EXPECT_EQ(packets[0].header.opcode, Opcode::kBind);
    EXPECT_EQ(packets[0].bind.set_count, 2u);
    EXPECT_EQ(packets[0].bind.dynamic_offset_count, 3u);
    EXPECT_TRUE(stream->OwnsSideData(packets[0].bind.descriptor_sets, sizeof(sets)));
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(packets[0].bind.descriptor_sets), sets, 16), 0);
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(packets[0].bind.dynamic_offsets), offsets, 12),
              0);
    EXPECT_EQ(packets[1].header.operand, 12u);
    EXPECT_EQ(packets[1].constants.address % 16, 0u);
    EXPECT_EQ(packets[2].dispatch.workgroup_count[2], 3u);
    EXPECT_EQ(packets[2].dispatch.base_workgroup[0], 4u);
    EXPECT_FALSE(stream->OwnsSideData(packets[0].bind.descriptor_sets, 1 << 20));
}

TEST(CommandStreamBuilder, KeepsEachExecutableOnce) {
    CommandStreamBuilder builder;
    const auto a = MakeExecutable();
    const auto b = MakeExecutable();
    for (int i = 0; i < 10; ++i) {
        builder.Bind(a, {}, {});
        builder.Bind(b, {}, {});
        builder.Bind(b, {}, {});
    }
    const auto stream = *builder.Finish();
    ASSERT_EQ(stream->resources().executables.size(), 2u);
    EXPECT_EQ(stream->packets()[28].header.operand, 1u);
    EXPECT_EQ(stream->packets()[27].header.operand, 0u);
    EXPECT_EQ(a.use_count(), 2);
    builder.Reset();
    EXPECT_EQ(a.use_count(), 2) << "the stream is still held";
}

TEST(CommandStreamBuilder, GrowsWithoutMovingSideData) {
    CommandStreamBuilder builder;
    std::vector<uint64_t> places;
    for (uint64_t i = 0; i < 10'000; ++i) {
        places.push_back(builder.StoreSideData(&i, sizeof(i)));
        builder.Barrier();
    }
    std::vector<std::byte> large(1 << 20, std::byte{7});
    const uint64_t place = builder.StoreSideData(large.data(), large.size());
    const auto stream = *builder.Finish();
    EXPECT_EQ(stream->packets().size(), 10'000u);
    for (uint64_t i = 0; i < 10'000; ++i) {
        ASSERT_TRUE(stream->OwnsSideData(places[i], 8));
        ASSERT_EQ(*reinterpret_cast<const uint64_t*>(places[i]), i);
    }
    EXPECT_TRUE(stream->OwnsSideData(place, large.size()));
}

TEST(CommandStreamBuilder, ResetReusesOrLeavesAlone) {
    CommandStreamBuilder builder;
    builder.Fill(0, 4, 1);
    auto held = *builder.Finish();
    const Packet* storage = held->packets().data();
    builder.Reset();
    builder.Fill(0, 8, 2);
    const auto second = *builder.Finish();
    EXPECT_NE(second->packets().data(), storage);
    EXPECT_EQ(held->packets()[0].fill.size_bytes, 4u) << "held streams do not change";
    const Packet* second_storage = second->packets().data();
    const_cast<std::shared_ptr<const CommandStream>&>(second).reset();
    builder.Reset();
    EXPECT_EQ(builder.packet_count(), 0u);
    builder.Fill(0, 12, 3);
    EXPECT_EQ((*builder.Finish())->packets().data(), second_storage);
}

TEST(CommandStreamBuilder, EmptyStreamsAreStreams) {
    CommandStreamBuilder builder;
    const auto stream = builder.Finish();
    ASSERT_TRUE(stream.ok());
    EXPECT_TRUE((*stream)->packets().empty());
    EXPECT_FALSE((*stream)->OwnsSideData(0, 0));
}

TEST(OpcodeName, CoversAllOpcodes) {
    for (uint32_t i = 0; i < kOpcodeCount; ++i) {
        EXPECT_STRNE(OpcodeName(static_cast<Opcode>(i)), "UNKNOWN");
    }
    EXPECT_STREQ(OpcodeName(Opcode::kChain), "CHAIN");
    EXPECT_STREQ(OpcodeName(static_cast<Opcode>(kOpcodeCount)), "UNKNOWN");
}

}  // namespace
}  // namespace fornax::hal
