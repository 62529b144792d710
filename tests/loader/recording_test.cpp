// Secondary command buffers, pools, labels and what tools ask for, also under the validation
// layers.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class RecordingTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        words_ = MakeBuffer(100);
        sums_ = MakeBuffer(100);
        std::iota(words_.span().begin(), words_.span().end(), 1000u);
        std::array forward = {words_, sums_};
        std::array in_place = {sums_, sums_};
        set_ = MakePipeline(spirv::kAdd, forward);
        grow_ = MakePipeline(spirv::kAdd, in_place);
    }

    // What a secondary inherits nothing of must be recorded in it.
    void Record(VkCommandBuffer commands, const TestPipeline& pipeline, uint32_t addend) {
        Bind(commands, pipeline);
        const uint32_t constants[] = {addend, 100};
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           sizeof(constants), constants);
        vkCmdDispatch(commands, 4, 1, 1);
        Barrier(commands);
    }
    VkCommandBuffer Secondary(const TestPipeline& pipeline,
                              uint32_t addend,
                              VkCommandBufferUsageFlags flags) {
        VkCommandBuffer commands = Begin(flags, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
        Record(commands, pipeline, addend);
        EXPECT_VK(vkEndCommandBuffer(commands));
        return commands;
    }
    void ExpectSums(uint32_t addend) {
        for (uint32_t i = 0; i < 100; ++i) {
            ASSERT_EQ(sums_.words[i], 1000 + i + addend) << i;
        }
    }

    TestBuffer words_;
    TestBuffer sums_;
    TestPipeline set_;   // sums = words + addend
    TestPipeline grow_;  // sums += addend
};

// One secondary in two primaries that are pending together, several times in each.
TEST_F(RecordingTest, SecondariesServeSeveralPrimariesAtOnce) {
    constexpr auto kSimultaneous = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    VkCommandBuffer grow = Secondary(grow_, 1, kSimultaneous);
    VkCommandBuffer primaries[2];
    for (VkCommandBuffer& primary : primaries) {
        primary = Begin(kSimultaneous);
        Barrier(primary);
        vkCmdExecuteCommands(primary, 1, &grow);
        // The primary's own state is gone and is recorded again.
        Record(primary, grow_, 10);
        const VkCommandBuffer both[] = {grow, grow};
        vkCmdExecuteCommands(primary, 2, both);
        ASSERT_VK(vkEndCommandBuffer(primary));
    }
    Run([&] {
        VkCommandBuffer first = Begin();
        Record(first, set_, 0);
        return first;
    }());
    const VkCommandBuffer order[] = {primaries[0], primaries[1], primaries[0]};
    const VkSubmitInfo submit{
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 3, .pCommandBuffers = order};
    ASSERT_VK(vkQueueSubmit(queues_[0], 1, &submit, VK_NULL_HANDLE));
    ASSERT_VK(vkQueueWaitIdle(queues_[0]));
    ExpectSums(3 * 13);
}

// A secondary is recorded anew for each of its uses.
TEST_F(RecordingTest, OneTimeBuffersAreRecordedAgain) {
    constexpr auto kOnce = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    VkCommandBuffer secondary = Secondary(set_, 3, kOnce);
    VkCommandBuffer primary = Begin(kOnce);
    vkCmdExecuteCommands(primary, 1, &secondary);
    Run(primary);
    ExpectSums(3);
    const VkCommandBufferInheritanceInfo inheritance{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = kOnce,
                                         .pInheritanceInfo = &inheritance};
    ASSERT_VK(vkBeginCommandBuffer(secondary, &begin));
    Record(secondary, set_, 4);
    ASSERT_VK(vkEndCommandBuffer(secondary));
    ASSERT_VK(vkBeginCommandBuffer(primary, &begin));
    vkCmdExecuteCommands(primary, 1, &secondary);
    Run(primary);
    ExpectSums(4);
}

// What is recorded survives a trim; what is reset can be recorded again.
TEST_F(RecordingTest, PoolsAreTrimmedAndReset) {
    VkCommandPool pool = VK_NULL_HANDLE;
    const VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    ASSERT_VK(vkCreateCommandPool(device_, &info, nullptr, &pool));
    AtEnd([this, pool] { vkDestroyCommandPool(device_, pool, nullptr); });
    std::array<VkCommandBuffer, 20> buffers;
    const VkCommandBufferAllocateInfo allocate{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = buffers.size()};
    ASSERT_VK(vkAllocateCommandBuffers(device_, &allocate, buffers.data()));
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    for (const VkCommandPoolResetFlags flags :
         {VkCommandPoolResetFlags(0),
          VkCommandPoolResetFlags(VK_COMMAND_POOL_RESET_RELEASE_RESOURCES_BIT)}) {
        for (uint32_t i = 0; i < buffers.size(); ++i) {
            ASSERT_VK(vkBeginCommandBuffer(buffers[i], &begin));
            Record(buffers[i], i == 0 ? set_ : grow_, 1);
            ASSERT_VK(vkEndCommandBuffer(buffers[i]));
        }
        vkTrimCommandPool(device_, pool, 0);
        const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                  .commandBufferCount = buffers.size(),
                                  .pCommandBuffers = buffers.data()};
        ASSERT_VK(vkQueueSubmit(queues_[0], 1, &submit, VK_NULL_HANDLE));
        ASSERT_VK(vkQueueWaitIdle(queues_[0]));
        ExpectSums(buffers.size());
        ASSERT_VK(vkResetCommandPool(device_, pool, flags));
    }
    // Some go, the others stay.
    vkFreeCommandBuffers(device_, pool, 10, buffers.data());
    vkTrimCommandPool(device_, pool, 0);
    ASSERT_VK(vkBeginCommandBuffer(buffers[10], &begin));
    Record(buffers[10], set_, 6);
    Run(buffers[10]);
    ExpectSums(6);
}

// Labels, names and tags may stand anywhere and change nothing.
TEST_F(RecordingTest, LabelsNamesAndTags) {
    const VkDebugUtilsLabelEXT label{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
                                     .pLabelName = "a label",
                                     .color = {1, 0, 0, 1}};
    vkQueueBeginDebugUtilsLabelEXT(queues_[0], &label);
    VkCommandBuffer commands = Begin();
    vkCmdBeginDebugUtilsLabelEXT(commands, &label);
    vkCmdInsertDebugUtilsLabelEXT(commands, &label);
    Record(commands, set_, 8);
    vkCmdEndDebugUtilsLabelEXT(commands);
    vkCmdSetDeviceMask(commands, 1);
    const VkDebugUtilsObjectNameInfoEXT name{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = VK_OBJECT_TYPE_COMMAND_BUFFER,
        .objectHandle = reinterpret_cast<uint64_t>(commands),
        .pObjectName = "a name"};
    EXPECT_VK(vkSetDebugUtilsObjectNameEXT(device_, &name));
    const VkDebugUtilsObjectTagInfoEXT tag{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_TAG_INFO_EXT,
        .objectType = VK_OBJECT_TYPE_COMMAND_BUFFER,
        .objectHandle = reinterpret_cast<uint64_t>(commands),
        .tagName = 1,
        .tagSize = sizeof(label),
        .pTag = &label};
    EXPECT_VK(vkSetDebugUtilsObjectTagEXT(device_, &tag));
    vkQueueInsertDebugUtilsLabelEXT(queues_[0], &label);
    Run(commands);
    vkQueueEndDebugUtilsLabelEXT(queues_[0]);
    ExpectSums(8);
}

// The driver is no tool; layers put themselves into the list.
TEST_F(RecordingTest, ToolsAreListed) {
    uint32_t count = 0;
    EXPECT_VK(vkGetPhysicalDeviceToolProperties(physical_, &count, nullptr));
    std::vector<VkPhysicalDeviceToolProperties> tools(
        count, {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TOOL_PROPERTIES});
    EXPECT_VK(vkGetPhysicalDeviceToolProperties(physical_, &count, tools.data()));
    for (const auto& tool : tools) {
        EXPECT_EQ(std::string(tool.name).find("Fornax"), std::string::npos);
    }
}

class NestedRecordingTest : public RecordingTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_EXT_NESTED_COMMAND_BUFFER_EXTENSION_NAME,
                            VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME};
        more_features_ = &nested_;
        RecordingTest::SetUp();
    }

    VkPhysicalDeviceNestedCommandBufferFeaturesEXT nested_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_NESTED_COMMAND_BUFFER_FEATURES_EXT,
        .nestedCommandBuffer = VK_TRUE,
        .nestedCommandBufferSimultaneousUse = VK_TRUE};
};

// As deep as the device says: each level executes the one below it twice and adds one itself.
TEST_F(NestedRecordingTest, SecondariesExecuteSecondaries) {
    VkPhysicalDeviceNestedCommandBufferPropertiesEXT limits{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_NESTED_COMMAND_BUFFER_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &limits};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    ASSERT_GE(limits.maxCommandBufferNestingLevel, 1u);
    constexpr auto kSimultaneous = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    VkCommandBuffer inner = Secondary(grow_, 1, kSimultaneous);
    uint32_t added = 1;
    for (uint32_t level = 0; level < limits.maxCommandBufferNestingLevel; ++level) {
        VkCommandBuffer outer = Begin(kSimultaneous, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
        const VkCommandBuffer both[] = {inner, inner};
        vkCmdExecuteCommands(outer, 2, both);
        Record(outer, grow_, 1);
        EXPECT_VK(vkEndCommandBuffer(outer));
        inner = outer;
        added = added * 2 + 1;
    }
    VkCommandBuffer primary = Begin();
    Record(primary, set_, 0);
    vkCmdExecuteCommands(primary, 1, &inner);
    Run(primary);
    ExpectSums(added);
}

TEST_F(NestedRecordingTest, NothingIsDeferred) {
    VkDeferredOperationKHR operation = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateDeferredOperationKHR(device_, nullptr, &operation));
    EXPECT_EQ(vkGetDeferredOperationMaxConcurrencyKHR(device_, operation), 0u);
    EXPECT_VK(vkGetDeferredOperationResultKHR(device_, operation));
    EXPECT_VK(vkDeferredOperationJoinKHR(device_, operation));
    vkDestroyDeferredOperationKHR(device_, operation, nullptr);
    vkDestroyDeferredOperationKHR(device_, VK_NULL_HANDLE, nullptr);
}

}  // namespace
}  // namespace fornax::test
