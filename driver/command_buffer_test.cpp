// Recording: what kernels are handed by each way of binding, and what transfers move. Kernels are
// the test compiler's, which write down what they see.
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <numeric>

#include "driver/test_commands.h"

namespace fornax::driver_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr auto kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
constexpr auto kDynamic = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
constexpr uint32_t kUseSet1 = 1;

class DispatchTest : public TestCommands {
  protected:
    static constexpr size_t kRecords = 64;

    void SetUp() override {
        TestCommands::SetUp();
        set_layout_ = MakeSetLayout(kStorage, 1);
        layout_ = MakePipelineLayout({set_layout_});
        pipeline_ = MakePipeline(kRecordingProgram, layout_);
        records_ = MakeRecords();
        set_ = MakeSet(set_layout_, kStorage, {records_.buffer, 0, VK_WHOLE_SIZE});
    }

    TestBuffer MakeRecords() { return MakeBuffer(kRecords * sizeof(DispatchRecord)); }

    static const DispatchRecord& RecordOf(const TestBuffer& buffer, size_t index = 0) {
        return buffer.as<DispatchRecord>()[index];
    }

    // How many workgroups ran, each of which must have run `times`.
    static size_t Ran(const TestBuffer& buffer, uint32_t times = 1) {
        size_t count = 0;
        for (size_t i = 0; i < kRecords; ++i) {
            EXPECT_TRUE(RecordOf(buffer, i).runs == 0 || RecordOf(buffer, i).runs == times);
            count += RecordOf(buffer, i).runs != 0;
        }
        return count;
    }

    void Bind(VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
        BindSet(commands, layout_, 0, set_);
    }

    static void BindSet(VkCommandBuffer commands,
                        VkPipelineLayout layout,
                        uint32_t index,
                        VkDescriptorSet set,
                        const std::vector<uint32_t>& dynamic_offsets = {}) {
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, index, 1, &set,
                                static_cast<uint32_t>(dynamic_offsets.size()),
                                dynamic_offsets.data());
    }

    static void Push(VkCommandBuffer commands,
                     VkPipelineLayout layout,
                     uint32_t first,
                     const std::vector<uint32_t>& words) {
        vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, first * 4,
                           static_cast<uint32_t>(words.size() * 4), words.data());
    }

    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    TestBuffer records_;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
};

// VUID-vkCmdBindPipeline-commandBuffer-cmdpool.
TEST_F(DispatchTest, AFamilyForTransfersTakesNoPipelines) {
    const VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .queueFamilyIndex = 1};
    VkCommandPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateCommandPool(device_, &info, nullptr, &pool), VK_SUCCESS);
    const VkCommandBufferAllocateInfo allocate{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .commandBufferCount = 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    ASSERT_EQ(vkAllocateCommandBuffers(device_, &allocate, &commands), VK_SUCCESS);
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    ASSERT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
    vkCmdFillBuffer(commands, records_.buffer, 0, 4, 0);
    EXPECT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
    ASSERT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
    Bind(commands);
    vkCmdDispatch(commands, 1, 1, 1);
    EXPECT_EQ(vkEndCommandBuffer(commands), VK_ERROR_VALIDATION_FAILED_EXT);
    vkDestroyCommandPool(device_, pool, nullptr);
}

TEST_F(DispatchTest, EveryWorkgroupRunsOnce) {
    Run([&](VkCommandBuffer commands) {
        Bind(commands);
        vkCmdDispatch(commands, 4, 3, 2);
    });
    EXPECT_EQ(Ran(records_), 24u);
    EXPECT_THAT(RecordOf(records_).workgroup_count, ElementsAre(4, 3, 2));
    EXPECT_THAT(RecordOf(records_).base_workgroup, Each(0));
}

TEST_F(DispatchTest, EmptyGridsDoNothing) {
    Run([&](VkCommandBuffer commands) {
        Bind(commands);
        vkCmdDispatch(commands, 0, 3, 2);
        vkCmdDispatch(commands, 3, 0, 2);
    });
    EXPECT_EQ(Ran(records_), 0u);
}

TEST_F(DispatchTest, BaseAndIndirect) {
    TestBuffer arguments = MakeBuffer(64);
    const VkDispatchIndirectCommand command{5, 2, 1};
    std::memcpy(arguments.as() + 20, &command, sizeof(command));
    Run([&](VkCommandBuffer commands) {
        Bind(commands);
        vkCmdDispatchBase(commands, 7, 8, 9, 2, 1, 1);
    });
    EXPECT_EQ(Ran(records_), 2u);
    EXPECT_THAT(RecordOf(records_).base_workgroup, ElementsAre(7, 8, 9));
    std::memset(records_.as(), 0, records_.size_bytes);
    Run([&](VkCommandBuffer commands) {
        Bind(commands);
        vkCmdDispatchIndirect(commands, arguments.buffer, 20);
    });
    EXPECT_EQ(Ran(records_), 10u);
    EXPECT_THAT(RecordOf(records_, 9).workgroup_count, ElementsAre(5, 2, 1));
}

TEST_F(DispatchTest, PushConstantsAreWhatTheyWereAtEachDispatch) {
    TestBuffer second = MakeRecords();
    VkDescriptorSet second_set = MakeSet(set_layout_, kStorage, {second.buffer, 0, VK_WHOLE_SIZE});
    Run([&](VkCommandBuffer commands) {
        Push(commands, layout_, 0, {1, 2, 0, 4});
        Bind(commands);
        vkCmdDispatch(commands, 1, 1, 1);
        Push(commands, layout_, 1, {20});  // the others stay
        BindSet(commands, layout_, 0, second_set);
        vkCmdDispatch(commands, 1, 1, 1);
        Push(commands, layout_, 0, {99, 99, 0, 99});  // after the last dispatch
    });
    EXPECT_THAT(RecordOf(records_).constants, ElementsAre(1, 2, 0, 4));
    EXPECT_THAT(RecordOf(second).constants, ElementsAre(1, 20, 0, 4));
}

TEST_F(DispatchTest, PushConstantsComeInPieces) {
    TestBuffer second = MakeRecords();
    VkDescriptorSet second_set = MakeSet(set_layout_, kStorage, {second.buffer, 0, VK_WHOLE_SIZE});
    Run([&](VkCommandBuffer commands) {
        Push(commands, layout_, 3, {4});  // the end first; what is not pushed is 0
        Push(commands, layout_, 0, {1});
        Bind(commands);
        vkCmdDispatch(commands, 1, 1, 1);
        // From an address that no word has, in two pieces before one dispatch.
        alignas(4) std::array<std::byte, 9> bytes = {};
        const std::array<uint32_t, 2> words = {21, 31};
        std::memcpy(bytes.data() + 1, words.data(), sizeof(words));
        vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 4, sizeof(words),
                           bytes.data() + 1);
        Push(commands, layout_, 2, {0, 41});
        BindSet(commands, layout_, 0, second_set);
        vkCmdDispatch(commands, 1, 1, 1);
    });
    EXPECT_THAT(RecordOf(records_).constants, ElementsAre(1, 0, 0, 4));
    EXPECT_THAT(RecordOf(second).constants, ElementsAre(1, 21, 0, 41));
}

// "Pipeline Layout Compatibility": bindings survive a change of pipeline.
TEST_F(DispatchTest, BindingsSurviveAChangeOfPipeline) {
    VkPipeline other = MakePipeline({kSpirvMagic, 1}, layout_);
    Run([&](VkCommandBuffer commands) {
        BindSet(commands, layout_, 0, set_);
        Push(commands, layout_, 0, {7});
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, other);
        vkCmdDispatch(commands, 1, 1, 1);
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
        vkCmdDispatch(commands, 2, 1, 1);
    });
    EXPECT_EQ(Ran(records_), 2u);
    EXPECT_EQ(RecordOf(records_).constants[0], 7u);
}

TEST_F(DispatchTest, DynamicOffsetsGoToTheirSets) {
    auto one_dynamic = MakeSetLayout(kDynamic, 1);
    auto layout = MakePipelineLayout({one_dynamic, one_dynamic});
    auto pipeline = MakePipeline(kRecordingProgram, layout);
    // The kernel does not add dynamic offsets, it writes them down.
    auto first = MakeSet(one_dynamic, kDynamic, {records_.buffer, 0, VK_WHOLE_SIZE});
    TestBuffer data = MakeBuffer(1024);
    auto second = MakeSet(one_dynamic, kDynamic, {data.buffer, 64, 128});
    Run([&](VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        Push(commands, layout, 2, {kUseSet1});
        const VkDescriptorSet sets[] = {first, second};
        const uint32_t offsets[] = {16, 32};
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 2, sets, 2,
                                offsets);
        vkCmdDispatch(commands, 1, 1, 1);
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, nullptr, 0, nullptr, 0,
                             nullptr);
        // Only the second set anew.
        BindSet(commands, layout, 1, second, {48});
        vkCmdDispatch(commands, 1, 1, 1);
    });
    EXPECT_EQ(RecordOf(records_).runs, 2u);
    EXPECT_THAT(RecordOf(records_).dynamic_offsets, ElementsAre(16, 48));
    EXPECT_EQ(RecordOf(records_).set1_address, reinterpret_cast<uint64_t>(data.as()) + 64);
    EXPECT_EQ(RecordOf(records_).set1_size_bytes, 128u);
}

class PushDescriptorTest : public DispatchTest {
  protected:
    void SetUp() override {
        DispatchTest::SetUp();
        push_layout_ = MakePipelineLayout(
            {MakeSetLayout(kStorage, 2, VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR)});
        push_pipeline_ = MakePipeline(kRecordingProgram, push_layout_);
    }

    void PushBuffer(VkCommandBuffer commands, uint32_t element, VkBuffer buffer) {
        const VkDescriptorBufferInfo info{buffer, 0, VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstArrayElement = element,
                                         .descriptorCount = 1,
                                         .descriptorType = kStorage,
                                         .pBufferInfo = &info};
        vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, push_layout_, 0, 1,
                                  &write);
    }

    // The template writes so many buffers, whose structures begin at an offset.
    VkDescriptorUpdateTemplate MakeTemplate(uint32_t count,
                                            size_t offset,
                                            VkDescriptorType type = kStorage,
                                            uint32_t binding = 0) {
        const VkDescriptorUpdateTemplateEntry entry{.dstBinding = binding,
                                                    .descriptorCount = count,
                                                    .descriptorType = type,
                                                    .offset = offset,
                                                    .stride = sizeof(VkDescriptorBufferInfo)};
        const VkDescriptorUpdateTemplateCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO,
            .descriptorUpdateEntryCount = 1,
            .pDescriptorUpdateEntries = &entry,
            .templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR,
            .pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE,
            .pipelineLayout = push_layout_,
            .set = 0};
        VkDescriptorUpdateTemplate made = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateDescriptorUpdateTemplate(device_, &info, nullptr, &made), VK_SUCCESS);
        return made;
    }

    // A recording that the commands make fail.
    template <typename Record>
    void RecordExpectingError(Record&& record) {
        Begin(commands_);
        record(commands_);
        EXPECT_EQ(vkEndCommandBuffer(commands_), VK_ERROR_VALIDATION_FAILED_EXT);
    }

    VkPipelineLayout push_layout_ = VK_NULL_HANDLE;
    VkPipeline push_pipeline_ = VK_NULL_HANDLE;
};

TEST_F(PushDescriptorTest, EachDispatchSeesWhatWasPushedBefore) {
    TestBuffer second = MakeRecords();
    TestBuffer unused = MakeRecords();
    Run([&](VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, push_pipeline_);
        PushBuffer(commands, 0, records_.buffer);
        vkCmdDispatch(commands, 1, 1, 1);
        PushBuffer(commands, 1, unused.buffer);  // element 0 stays
        vkCmdDispatch(commands, 2, 1, 1);
        PushBuffer(commands, 0, second.buffer);
        vkCmdDispatch(commands, 3, 1, 1);
    });
    EXPECT_EQ(RecordOf(records_, 0).runs, 2u);
    EXPECT_EQ(RecordOf(records_, 1).runs, 1u);
    EXPECT_EQ(Ran(second), 3u);
    EXPECT_EQ(Ran(unused), 0u);
}

TEST_F(PushDescriptorTest, TemplatesPush) {
    const VkDescriptorUpdateTemplate update = MakeTemplate(2, 8);
    struct {
        uint64_t unrelated;
        VkDescriptorBufferInfo infos[2];
    } data{0, {{records_.buffer, 0, VK_WHOLE_SIZE}, {records_.buffer, 0, 16}}};
    Run([&](VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, push_pipeline_);
        vkCmdPushDescriptorSetWithTemplateKHR(commands, update, push_layout_, 0, &data);
        data = {};  // was read
        vkCmdDispatch(commands, 4, 1, 1);
    });
    EXPECT_EQ(Ran(records_), 4u);
    vkDestroyDescriptorUpdateTemplate(device_, update, nullptr);
}

// They lie in memory of the host's, which a write beyond their end would damage.
TEST_F(PushDescriptorTest, AWriteBeyondTheSetIsRefused) {
    RecordExpectingError([&](VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, push_pipeline_);
        PushBuffer(commands, 0, records_.buffer);
        PushBuffer(commands, 2, records_.buffer);
    });
}

// A write of larger descriptors than the binding holds, and one of a binding that is not there.
TEST_F(PushDescriptorTest, AWriteOfAnotherTypeOrBindingIsRefused) {
    const VkDescriptorImageInfo image{};
    const VkDescriptorBufferInfo buffer{records_.buffer, 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                               .descriptorCount = 1,
                               .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                               .pImageInfo = &image,
                               .pBufferInfo = &buffer};
    const auto push = [&](VkCommandBuffer commands) {
        vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, push_layout_, 0, 1,
                                  &write);
    };
    RecordExpectingError(push);
    write.descriptorType = kStorage;
    write.dstBinding = 1;
    RecordExpectingError(push);
    write.dstBinding = 0;
    Run(push);
}

TEST_F(PushDescriptorTest, ATemplateBeyondTheSetIsRefused) {
    const std::array<VkDescriptorBufferInfo, 3> infos{};
    for (const VkDescriptorUpdateTemplate update :
         {MakeTemplate(3, 0), MakeTemplate(1, 0, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE),
          MakeTemplate(1, 0, kStorage, 1)}) {
        RecordExpectingError([&](VkCommandBuffer commands) {
            vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, push_pipeline_);
            vkCmdPushDescriptorSetWithTemplateKHR(commands, update, push_layout_, 0, infos.data());
        });
        vkDestroyDescriptorUpdateTemplate(device_, update, nullptr);
    }
}

// What was pushed but not used before a set is bound in its place must not come back.
TEST_F(PushDescriptorTest, ABoundSetReplacesPushedDescriptors) {
    TestBuffer pushed = MakeRecords();
    Run([&](VkCommandBuffer commands) {
        PushBuffer(commands, 0, pushed.buffer);
        Bind(commands);
        vkCmdDispatch(commands, 1, 1, 1);
    });
    EXPECT_EQ(Ran(records_), 1u);
    EXPECT_EQ(Ran(pushed), 0u);
}

TEST_F(DispatchTest, SecondaryCommandBuffersRunInPlace) {
    VkCommandBuffer secondary = AllocateCommands(VK_COMMAND_BUFFER_LEVEL_SECONDARY);
    TestBuffer counter = MakeBuffer(16);
    Begin(secondary);
    Bind(secondary);
    Push(secondary, layout_, 0, {5});
    vkCmdDispatch(secondary, 3, 1, 1);
    ASSERT_EQ(vkEndCommandBuffer(secondary), VK_SUCCESS);
    Run([&](VkCommandBuffer commands) {
        vkCmdExecuteCommands(commands, 1, &secondary);
        vkCmdFillBuffer(commands, counter.buffer, 0, 4, 1);
        vkCmdExecuteCommands(commands, 1, &secondary);
    });
    EXPECT_EQ(Ran(records_, 2), 3u);
    EXPECT_EQ(RecordOf(records_).constants[0], 5u);
    EXPECT_EQ(counter.as<uint32_t>()[0], 1u);
}

TEST_F(DispatchTest, CommandBuffersCanBeSubmittedAgainAndRecordedAgain) {
    Begin(commands_);
    Bind(commands_);
    vkCmdDispatch(commands_, 1, 1, 1);
    ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(Submit(commands_), VK_SUCCESS);
    }
    ASSERT_EQ(vkQueueWaitIdle(queue_), VK_SUCCESS);
    EXPECT_EQ(RecordOf(records_).runs, 3u);

    ASSERT_EQ(vkResetCommandPool(device_, command_pool_, 0), VK_SUCCESS);
    Run([](VkCommandBuffer) {});
    ASSERT_EQ(vkResetCommandBuffer(commands_, VK_COMMAND_BUFFER_RESET_RELEASE_RESOURCES_BIT),
              VK_SUCCESS);
    EXPECT_EQ(RecordOf(records_).runs, 3u);
}

// "Any error while recording is reported by vkEndCommandBuffer."
TEST_F(DispatchTest, RecordingErrorsSurfaceAtTheEnd) {
    Begin(commands_);
    vkCmdDispatch(commands_, 1, 1, 1);  // without a pipeline
    EXPECT_LT(vkEndCommandBuffer(commands_), VK_SUCCESS);
    EXPECT_LT(Submit(commands_), VK_SUCCESS);
    Run([&](VkCommandBuffer commands) {
        Bind(commands);
        vkCmdDispatch(commands, 1, 1, 1);
    });
    EXPECT_EQ(Ran(records_), 1u);
}

// VUID-vkCmdDispatch-None-08600: a set that the kernel uses is bound.
TEST_F(DispatchTest, SetsThatAreUsedMustBeBound) {
    Begin(commands_);
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vkCmdDispatch(commands_, 1, 1, 1);
    EXPECT_LT(vkEndCommandBuffer(commands_), VK_SUCCESS);
    EXPECT_EQ(Ran(records_), 0u);
    // One that does not use its set needs none.
    const VkPipeline idle = MakePipeline({kSpirvMagic, 1}, layout_);
    Begin(commands_);
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, idle);
    vkCmdDispatch(commands_, 1, 1, 1);
    EXPECT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
}

class TransferTest : public TestCommands {
  protected:
    static void FillWithNumbers(const TestBuffer& buffer) {
        std::iota(buffer.as<uint8_t>(), buffer.as<uint8_t>() + buffer.size_bytes, uint8_t{1});
    }
};

TEST_F(TransferTest, CopiesRegions) {
    TestBuffer from = MakeBuffer(200);
    TestBuffer to = MakeBuffer(200);
    FillWithNumbers(from);
    const VkBufferCopy regions[] = {{3, 50, 7}, {100, 0, 1}};
    Run([&](VkCommandBuffer commands) {
        vkCmdCopyBuffer(commands, from.buffer, to.buffer, 2, regions);
    });
    std::vector<uint8_t> expected(200);
    std::copy_n(from.as() + 3, 7, expected.begin() + 50);
    expected[0] = from.as()[100];
    EXPECT_EQ(std::vector<uint8_t>(to.as(), to.as() + 200), expected);
}

TEST_F(TransferTest, FillsAndRoundsTheWholeSizeDown) {
    TestBuffer buffer = MakeBuffer(22);
    Run([&](VkCommandBuffer commands) {
        vkCmdFillBuffer(commands, buffer.buffer, 4, VK_WHOLE_SIZE, 0x01020304);
    });
    EXPECT_EQ(buffer.as<uint32_t>()[0], 0u);
    for (int i = 1; i < 5; ++i) {
        EXPECT_EQ(buffer.as<uint32_t>()[i], 0x01020304u);
    }
    EXPECT_EQ(buffer.as()[20], 0);
    EXPECT_EQ(buffer.as()[21], 0);
}

TEST_F(TransferTest, UpdatesCopyTheDataWhenRecorded) {
    TestBuffer small = MakeBuffer(64);
    TestBuffer large = MakeBuffer(65536);
    std::vector<uint8_t> data(65536);
    std::iota(data.begin(), data.end(), uint8_t{0});
    const std::vector<uint8_t> original = data;
    Run([&](VkCommandBuffer commands) {
        vkCmdUpdateBuffer(commands, small.buffer, 8, 12, data.data());
        vkCmdUpdateBuffer(commands, large.buffer, 0, 65536, data.data());
        std::ranges::fill(data, uint8_t{0});
    });
    EXPECT_EQ(std::memcmp(small.as() + 8, original.data(), 12), 0);
    EXPECT_EQ(small.as()[7] + small.as()[20], 0);
    EXPECT_EQ(std::memcmp(large.as(), original.data(), 65536), 0);
}

TEST_F(TransferTest, BarriersOrderTransfers) {
    TestBuffer a = MakeBuffer(1 << 20);
    TestBuffer b = MakeBuffer(1 << 20);
    const VkMemoryBarrier2 memory{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                  .srcStageMask = VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
                                  .srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                  .dstStageMask = VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
                                  .dstAccessMask = VK_ACCESS_2_TRANSFER_READ_BIT};
    const VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                      .memoryBarrierCount = 1,
                                      .pMemoryBarriers = &memory};
    const VkBufferCopy whole{0, 0, 1 << 20};
    Run([&](VkCommandBuffer commands) {
        for (uint32_t i = 1; i <= 20; ++i) {
            vkCmdFillBuffer(commands, a.buffer, 0, VK_WHOLE_SIZE, i);
            vkCmdPipelineBarrier2KHR(commands, &dependency);
            vkCmdCopyBuffer(commands, a.buffer, b.buffer, 1, &whole);
            vkCmdPipelineBarrier2KHR(commands, &dependency);
        }
    });
    const auto* words = b.as<uint32_t>();
    EXPECT_TRUE(std::all_of(words, words + (1 << 18), [](uint32_t word) { return word == 20; }));
}

}  // namespace
}  // namespace fornax::driver_test
