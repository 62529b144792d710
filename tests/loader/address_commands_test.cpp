// Commands that name memory by its address, indirect copies, and dispatches under a condition.
#include <array>
#include <numeric>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

struct AddConstants {
    uint32_t addend;
    uint32_t count;
};

class AddressTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        more_extensions_ = {VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME,
                            VK_KHR_DEVICE_ADDRESS_COMMANDS_EXTENSION_NAME,
                            VK_KHR_COPY_MEMORY_INDIRECT_EXTENSION_NAME};
        more_features_ = &addresses_;
        addresses_.pNext = &conditions_;
        conditions_.pNext = &commands_;
        commands_.pNext = &copies_;
        VulkanTest::SetUp();
    }

    TestBuffer MakeAddressable(size_t words, VkBufferUsageFlags usage = 0) {
        return MakeBuffer(words, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                     VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | usage);
    }
    VkDeviceAddress AddressOf(const TestBuffer& buffer) {
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer.handle};
        return vkGetBufferDeviceAddress(device_, &info) + buffer.offset;
    }
    VkDeviceAddressRangeKHR RangeOf(const TestBuffer& buffer) {
        return {AddressOf(buffer), buffer.size};
    }

    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
    VkPhysicalDeviceDeviceAddressCommandsFeaturesKHR commands_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DEVICE_ADDRESS_COMMANDS_FEATURES_KHR,
        .deviceAddressCommands = VK_TRUE};
    VkPhysicalDeviceCopyMemoryIndirectFeaturesKHR copies_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COPY_MEMORY_INDIRECT_FEATURES_KHR,
        .indirectMemoryCopy = VK_TRUE};
    VkPhysicalDeviceConditionalRenderingFeaturesEXT conditions_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT,
        .conditionalRendering = VK_TRUE,
        .inheritedConditionalRendering = VK_TRUE};
};

class AddressCommandsTest : public AddressTest {};

TEST_F(AddressCommandsTest, CopiesFillsAndUpdatesByAddress) {
    TestBuffer source = MakeAddressable(64);
    TestBuffer target = MakeAddressable(64);
    std::iota(source.span().begin(), source.span().end(), 100u);
    const uint32_t data[] = {7, 8, 9};
    VkCommandBuffer commands = Begin();
    const VkDeviceAddress from = AddressOf(source);
    const VkDeviceAddress to = AddressOf(target);
    std::array<VkDeviceMemoryCopyKHR, 2> regions = {};
    for (uint32_t i = 0; i < 2; ++i) {
        regions[i] = {.sType = VK_STRUCTURE_TYPE_DEVICE_MEMORY_COPY_KHR,
                      .srcRange = {from + 64 * i, 32},
                      .srcFlags = VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR,
                      .dstRange = {to + 32 * i, 32},
                      .dstFlags = VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR};
    }
    const VkCopyDeviceMemoryInfoKHR copy{.sType = VK_STRUCTURE_TYPE_COPY_DEVICE_MEMORY_INFO_KHR,
                                         .regionCount = 2,
                                         .pRegions = regions.data()};
    vkCmdCopyMemoryKHR(commands, &copy);
    const VkDeviceAddressRangeKHR filled{to + 64, 64};
    vkCmdFillMemoryKHR(commands, &filled, VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR, 55);
    const VkDeviceAddressRangeKHR updated{to + 128, sizeof(data)};
    vkCmdUpdateMemoryKHR(commands, &updated, VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR,
                         sizeof(data), data);
    Run(commands);
    for (uint32_t i = 0; i < 64; ++i) {
        const uint32_t expected = i < 8    ? 100 + i
                                  : i < 16 ? 116 + (i - 8)
                                  : i < 32 ? 55
                                  : i < 35 ? 7 + (i - 32)
                                           : 0;
        EXPECT_EQ(target.words[i], expected) << i;
    }
}

TEST_F(AddressCommandsTest, CopiesQueriesByAddress) {
    TestBuffer results = MakeAddressable(8);
    const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 2};
    VkQueryPool queries = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateQueryPool(device_, &info, nullptr, &queries));
    AtEnd([this, queries] { vkDestroyQueryPool(device_, queries, nullptr); });
    VkCommandBuffer commands = Begin();
    vkCmdResetQueryPool(commands, queries, 0, 2);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, queries, 0);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, queries, 1);
    const VkStridedDeviceAddressRangeKHR range{AddressOf(results), results.size, 16};
    vkCmdCopyQueryPoolResultsToMemoryKHR(commands, queries, 0, 2, &range,
                                         VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR,
                                         VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    Run(commands);
    uint64_t first = 0;
    uint64_t second = 0;
    std::memcpy(&first, results.words, 8);
    std::memcpy(&second, results.words + 4, 8);
    EXPECT_NE(first, 0u);
    EXPECT_GE(second, first);
    EXPECT_EQ(results.words[2], 0u);
}

TEST_F(AddressCommandsTest, IndirectCopiesReadTheirOperandsWhenTheyRun) {
    TestBuffer source = MakeAddressable(32);
    TestBuffer target = MakeAddressable(32);
    TestBuffer list = MakeAddressable(16);
    std::iota(source.span().begin(), source.span().end(), 1u);
    // Two copies 28 bytes apart, which the device writes itself.
    std::array<uint32_t, 13> words = {};
    const auto put = [&](uint32_t at, uint64_t value) { std::memcpy(&words[at], &value, 8); };
    put(0, AddressOf(source));
    put(2, AddressOf(target) + 16);
    put(4, 20);
    put(7, AddressOf(source) + 64);
    put(9, AddressOf(target) + 64);
    put(11, 64);
    VkCommandBuffer commands = Begin();
    vkCmdUpdateBuffer(commands, list.handle, list.offset, sizeof(words), words.data());
    Barrier(commands);
    const VkCopyMemoryIndirectInfoKHR info{.sType = VK_STRUCTURE_TYPE_COPY_MEMORY_INDIRECT_INFO_KHR,
                                           .srcCopyFlags = VK_ADDRESS_COPY_DEVICE_LOCAL_BIT_KHR,
                                           .dstCopyFlags = VK_ADDRESS_COPY_DEVICE_LOCAL_BIT_KHR,
                                           .copyCount = 2,
                                           .copyAddressRange = {AddressOf(list), 56, 28}};
    vkCmdCopyMemoryIndirectKHR(commands, &info);
    Run(commands);
    for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t expected = i >= 4 && i < 9 ? i - 3 : i >= 16 ? i + 1 : 0;
        EXPECT_EQ(target.words[i], expected) << i;
    }
}

class ConditionTest : public AddressTest {
  protected:
    void SetUp() override {
        AddressTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        in_ = MakeAddressable(64);
        out_ = MakeAddressable(64);
        words_ = MakeAddressable(4, VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT);
        words_.words[1] = 0x100;  // any bit counts
        std::array buffers = {in_, out_};
        add_ = MakePipeline(spirv::kAdd, buffers);
    }
    void BeginCondition(VkCommandBuffer commands, uint32_t word, bool inverted) {
        const VkConditionalRenderingBeginInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT,
            .buffer = words_.handle,
            .offset = words_.offset + word * sizeof(uint32_t),
            .flags = inverted ? VkFlags{VK_CONDITIONAL_RENDERING_INVERTED_BIT_EXT} : 0};
        vkCmdBeginConditionalRenderingEXT(commands, &info);
    }
    void Add(VkCommandBuffer commands, uint32_t addend) {
        Bind(commands, add_);
        const AddConstants constants{addend, 64};
        vkCmdPushConstants(commands, add_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                           &constants);
        vkCmdDispatch(commands, 2, 1, 1);
        Barrier(commands);
    }

    TestBuffer in_;
    TestBuffer out_;
    TestBuffer words_;
    TestPipeline add_;
};

TEST_F(ConditionTest, AWordDecidesWhetherDispatchesRun) {
    for (const uint32_t word : {0u, 1u}) {
        for (const bool inverted : {false, true}) {
            VkCommandBuffer commands = Begin();
            Add(commands, 1);
            BeginCondition(commands, word, inverted);
            Add(commands, 2);
            // Copies and fills are no matter of conditions.
            vkCmdFillBuffer(commands, out_.handle, out_.offset + 4, 4, 77);
            Barrier(commands);
            vkCmdEndConditionalRenderingEXT(commands);
            Run(commands);
            const bool runs = (word == 1) != inverted;
            EXPECT_EQ(out_.words[0], runs ? 2u : 1u) << word << inverted;
            EXPECT_EQ(out_.words[1], 77u);
        }
    }
}

TEST_F(ConditionTest, TheWordIsReadWhenTheCommandRuns) {
    VkCommandBuffer commands = Begin();
    Add(commands, 1);
    vkCmdFillBuffer(commands, words_.handle, words_.offset, 4, 1);
    Barrier(commands);
    const VkConditionalRenderingBeginInfo2EXT info{
        .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_2_EXT,
        .addressRange = {AddressOf(words_), 4},
        .addressFlags = VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR};
    vkCmdBeginConditionalRendering2EXT(commands, &info);
    Add(commands, 2);
    vkCmdEndConditionalRenderingEXT(commands);
    Run(commands);
    EXPECT_EQ(out_.words[5], 2u);
}

TEST_F(ConditionTest, SecondariesInheritTheCondition) {
    const VkCommandBufferInheritanceConditionalRenderingInfoEXT condition{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_CONDITIONAL_RENDERING_INFO_EXT,
        .conditionalRenderingEnable = VK_TRUE};
    const VkCommandBufferInheritanceInfo inheritance{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO, .pNext = &condition};
    const VkCommandBufferAllocateInfo allocation{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool_,
        .level = VK_COMMAND_BUFFER_LEVEL_SECONDARY,
        .commandBufferCount = 1};
    VkCommandBuffer secondary = VK_NULL_HANDLE;
    ASSERT_VK(vkAllocateCommandBuffers(device_, &allocation, &secondary));
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
                                         .pInheritanceInfo = &inheritance};
    ASSERT_VK(vkBeginCommandBuffer(secondary, &begin));
    Add(secondary, 2);
    ASSERT_VK(vkEndCommandBuffer(secondary));
    for (const uint32_t word : {0u, 1u}) {
        VkCommandBuffer commands = Begin();
        Add(commands, 1);
        BeginCondition(commands, word, false);
        vkCmdExecuteCommands(commands, 1, &secondary);
        vkCmdEndConditionalRenderingEXT(commands);
        Run(commands);
        EXPECT_EQ(out_.words[9], word + 1);
        // Behind the end of the condition it runs again.
        commands = Begin();
        BeginCondition(commands, word, false);
        vkCmdEndConditionalRenderingEXT(commands);
        vkCmdExecuteCommands(commands, 1, &secondary);
        Run(commands);
        EXPECT_EQ(out_.words[9], 2u);
    }
}

TEST_F(ConditionTest, IndirectDispatchesByAddress) {
    TestBuffer counts = MakeAddressable(4);
    counts.words[0] = 2;
    counts.words[1] = counts.words[2] = 1;
    for (const bool runs : {true, false}) {
        out_.words[3] = 0;
        VkCommandBuffer commands = Begin();
        BeginCondition(commands, 0, runs);
        Bind(commands, add_);
        const AddConstants constants{3, 64};
        vkCmdPushConstants(commands, add_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                           &constants);
        const VkDispatchIndirect2InfoKHR info{
            .sType = VK_STRUCTURE_TYPE_DISPATCH_INDIRECT_2_INFO_KHR,
            .addressRange = {AddressOf(counts), 12},
            .addressFlags = VK_ADDRESS_COMMAND_STORAGE_BUFFER_USAGE_BIT_KHR};
        vkCmdDispatchIndirect2KHR(commands, &info);
        vkCmdEndConditionalRenderingEXT(commands);
        Run(commands);
        EXPECT_EQ(out_.words[3], runs ? 3u : 0u);
    }
}

}  // namespace
}  // namespace fornax::test
