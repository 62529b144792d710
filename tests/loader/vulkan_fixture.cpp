// The fixture of the tests through the loader.
#include "tests/loader/vulkan_fixture.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fornax::test {

namespace {

constexpr uint32_t kPoison = 0xDEADF00D;
constexpr VkDeviceSize kMargin = 256;  // bytes on both sides of a range

}  // namespace

void VulkanTest::SetUp() {
    ASSERT_VK(volkInitialize());
    if (Validated()) {
        // The loader goes on without a layer that it does not find, and an older one knows less.
        uint32_t layer_count = 0;
        ASSERT_VK(vkEnumerateInstanceLayerProperties(&layer_count, nullptr));
        std::vector<VkLayerProperties> layers(layer_count);
        ASSERT_VK(vkEnumerateInstanceLayerProperties(&layer_count, layers.data()));
        const auto knows = [](const VkLayerProperties& layer) {
            return std::string_view(layer.layerName) == "VK_LAYER_KHRONOS_validation" &&
                   layer.specVersion >= VK_HEADER_VERSION_COMPLETE;
        };
        ASSERT_TRUE(std::ranges::any_of(layers, knows)) << "No validation layer of these headers.";
    }
    auto instance = vulkan::Instance::Create(
        {.api_version = api_version_,
         .on_message = [this](const std::string& message) { messages_.push_back(message); },
         .driver_messages = true});
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    owned_instance_ = *instance;
    instance_ = owned_instance_->handle();
    volkLoadInstance(instance_);
    // Tests with references of their own can be tried on another driver.
    const char* other = std::getenv("FORNAX_TEST_DEVICE");
    const auto chosen = owned_instance_->Choose(other != nullptr ? other : "Fornax");
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    physical_ = *chosen;
    uint32_t family_count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &family_count, nullptr);
    std::vector<VkQueueFamilyProperties> families(family_count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &family_count, families.data());
    const uint32_t queue_count = std::min(2u, families[0].queueCount);

    const float priorities[] = {1.0f, 1.0f};
    VkDeviceQueueCreateInfo queues{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                   .queueFamilyIndex = 0,
                                   .queueCount = queue_count,
                                   .pQueuePriorities = priorities};
    std::vector<const char*> device_extensions = {
        VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME,
        VK_EXT_HOST_QUERY_RESET_EXTENSION_NAME, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME,
        VK_KHR_COPY_COMMANDS_2_EXTENSION_NAME};
    device_extensions.insert(device_extensions.end(), more_extensions_.begin(),
                             more_extensions_.end());
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .pNext = more_features_,
        .timelineSemaphore = VK_TRUE};
    VkPhysicalDeviceSynchronization2Features synchronization2{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
        .pNext = &timeline,
        .synchronization2 = VK_TRUE};
    VkPhysicalDeviceHostQueryResetFeatures query_reset{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES,
        .pNext = &synchronization2,
        .hostQueryReset = VK_TRUE};
    // "Must not include" the structures of what VkPhysicalDeviceVulkan12Features holds.
    const auto* chained = static_cast<const VkBaseInStructure*>(more_features_);
    while (chained && chained->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
        chained = chained->pNext;
    }
    if (chained) {
        synchronization2.pNext = more_features_;
    }
    const std::vector<VkDeviceQueueCreateInfo> queue_infos =
        queue_infos_.empty() ? std::vector{queues} : queue_infos_;
    VkPhysicalDeviceFeatures core = core_features_;
    core.robustBufferAccess = robust_;
    VkDeviceCreateInfo device{
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = chained ? static_cast<void*>(&synchronization2) : &query_reset,
        .queueCreateInfoCount = static_cast<uint32_t>(queue_infos.size()),
        .pQueueCreateInfos = queue_infos.data(),
        .enabledExtensionCount = static_cast<uint32_t>(device_extensions.size()),
        .ppEnabledExtensionNames = device_extensions.data(),
        .pEnabledFeatures = &core};
    auto opened = vulkan::Device::Open(owned_instance_, physical_, device);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    owned_device_ = *opened;
    device_ = owned_device_->handle();
    volkLoadDevice(device_);
    for (uint32_t i = 0; i < 2 && queue_infos_.empty(); ++i) {
        vkGetDeviceQueue(device_, 0, std::min(i, queue_count - 1), &queues_[i]);
    }
    VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                 .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    ASSERT_VK(vkCreateCommandPool(device_, &pool, nullptr, &pool_));
}

void VulkanTest::TearDown() {
    if (device_) {
        vkDeviceWaitIdle(device_);
        for (const TestBuffer& buffer : buffers_) {
            const uint32_t* before = buffer.words - kMargin / 4;
            const uint32_t* after = buffer.words + (buffer.size + 3) / 4;
            for (size_t i = 0; i < kMargin / 4; ++i) {
                ASSERT_EQ(before[i], kPoison) << "Something wrote before a buffer's range.";
                ASSERT_EQ(after[i], kPoison) << "Something wrote behind a buffer's range.";
            }
        }
        for (auto action = at_end_.rbegin(); action != at_end_.rend(); ++action) {
            (*action)();
        }
        vkDestroyCommandPool(device_, pool_, nullptr);
    }
    owned_device_ = nullptr;
    owned_instance_ = nullptr;
    for (const std::string& message : messages_) {
        ADD_FAILURE() << message;
    }
    // A test may set up again, for another device.
    device_ = VK_NULL_HANDLE;
    instance_ = VK_NULL_HANDLE;
    buffers_.clear();
    at_end_.clear();
    messages_.clear();
}

TestBuffer VulkanTest::MakeBuffer(size_t words, VkBufferUsageFlags more_usage) {
    TestBuffer buffer;
    buffer.offset = kMargin;
    buffer.size = words * 4;
    VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                            .size = buffer.size + 2 * kMargin,
                            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                     VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                     VK_BUFFER_USAGE_TRANSFER_DST_BIT | more_usage};
    EXPECT_VK(vkCreateBuffer(device_, &info, nullptr, &buffer.handle));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device_, buffer.handle, &needs);
    const VkMemoryAllocateFlagsInfo addressed{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                              .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const bool has_address = more_usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = has_address ? &addressed : nullptr,
                                  .allocationSize = needs.size + needs.alignment};
    EXPECT_VK(vkAllocateMemory(device_, &allocate, nullptr, &buffer.memory));
    EXPECT_VK(vkBindBufferMemory(device_, buffer.handle, buffer.memory, needs.alignment));
    void* mapped = nullptr;
    EXPECT_VK(vkMapMemory(device_, buffer.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    auto* bytes = static_cast<std::byte*>(mapped) + needs.alignment;
    std::fill_n(reinterpret_cast<uint32_t*>(bytes), info.size / 4, kPoison);
    buffer.words = reinterpret_cast<uint32_t*>(bytes + kMargin);
    std::fill_n(buffer.words, words, 0u);
    buffers_.push_back(buffer);
    AtEnd([this, buffer] {
        vkDestroyBuffer(device_, buffer.handle, nullptr);
        vkFreeMemory(device_, buffer.memory, nullptr);
    });
    return buffer;
}

TestPipeline VulkanTest::MakePipeline(std::span<const uint32_t> spirv,
                                      std::span<const TestBuffer> buffers,
                                      const VkSpecializationInfo* specialization) {
    std::vector<TestBinding> bindings;
    for (const TestBuffer& buffer : buffers) {
        bindings.push_back({.buffers = {buffer}});
    }
    return MakePipeline(spirv, bindings, specialization);
}

TestPipeline VulkanTest::MakePipeline(std::span<const uint32_t> spirv,
                                      std::span<const TestBinding> bindings,
                                      const VkSpecializationInfo* specialization) {
    const auto count = static_cast<uint32_t>(bindings.size());
    std::vector<VkDescriptorSetLayoutBinding> layouts;
    std::vector<VkDescriptorPoolSize> sizes;
    for (uint32_t i = 0; i < count; ++i) {
        const auto descriptors = static_cast<uint32_t>(bindings[i].buffers.size());
        layouts.push_back({i, bindings[i].type, descriptors, VK_SHADER_STAGE_COMPUTE_BIT});
        sizes.push_back({bindings[i].type, descriptors});
    }
    if (sizes.empty()) {
        sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1});
    }
    TestPipeline made =
        MakePipelineWith(spirv,
                         {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                          .bindingCount = count,
                          .pBindings = layouts.data()},
                         specialization);
    VkDescriptorPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                    .maxSets = 1,
                                    .poolSizeCount = static_cast<uint32_t>(sizes.size()),
                                    .pPoolSizes = sizes.data()};
    EXPECT_VK(vkCreateDescriptorPool(device_, &pool, nullptr, &made.pool));
    VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                         .descriptorPool = made.pool,
                                         .descriptorSetCount = 1,
                                         .pSetLayouts = &made.set_layout};
    EXPECT_VK(vkAllocateDescriptorSets(device_, &allocate, &made.set));
    for (uint32_t i = 0; i < count; ++i) {
        std::vector<VkDescriptorBufferInfo> infos;
        for (const TestBuffer& buffer : bindings[i].buffers) {
            infos.push_back(buffer.info());
        }
        VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                   .dstSet = made.set,
                                   .dstBinding = i,
                                   .descriptorCount = static_cast<uint32_t>(infos.size()),
                                   .descriptorType = bindings[i].type,
                                   .pBufferInfo = infos.data()};
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    }
    AtEnd([this, made] { vkDestroyDescriptorPool(device_, made.pool, nullptr); });
    return made;
}

TestPipeline VulkanTest::MakePipelineWith(std::span<const uint32_t> spirv,
                                          const VkDescriptorSetLayoutCreateInfo& set_layout,
                                          const VkSpecializationInfo* specialization) {
    TestPipeline made;
    VkShaderModuleCreateInfo module{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                    .codeSize = spirv.size_bytes(),
                                    .pCode = spirv.data()};
    EXPECT_VK(vkCreateShaderModule(device_, &module, nullptr, &made.module));
    EXPECT_VK(vkCreateDescriptorSetLayout(device_, &set_layout, nullptr, &made.set_layout));
    VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
    VkPipelineLayoutCreateInfo layout{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                      .setLayoutCount = 1,
                                      .pSetLayouts = &made.set_layout,
                                      .pushConstantRangeCount = 1,
                                      .pPushConstantRanges = &range};
    EXPECT_VK(vkCreatePipelineLayout(device_, &layout, nullptr, &made.layout));
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .pNext = const_cast<void*>(stage_chain_),
        .requiredSubgroupSize = required_subgroup_size_};
    VkComputePipelineCreateInfo pipeline{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = pipeline_chain_,
        .flags = VK_PIPELINE_CREATE_DISPATCH_BASE,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = required_subgroup_size_ != 0 ? &subgroup : stage_chain_,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = made.module,
                  .pName = "main",
                  .pSpecializationInfo = specialization},
        .layout = made.layout};
    EXPECT_VK(
        vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &pipeline, nullptr, &made.pipeline));
    AtEnd([this, made] {
        vkDestroyPipeline(device_, made.pipeline, nullptr);
        vkDestroyPipelineLayout(device_, made.layout, nullptr);
        vkDestroyDescriptorSetLayout(device_, made.set_layout, nullptr);
        vkDestroyShaderModule(device_, made.module, nullptr);
    });
    return made;
}

VkCommandBuffer VulkanTest::Begin(VkCommandBufferUsageFlags flags, VkCommandBufferLevel level) {
    VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = pool_,
                                         .level = level,
                                         .commandBufferCount = 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    EXPECT_VK(vkAllocateCommandBuffers(device_, &allocate, &commands));
    VkCommandBufferInheritanceInfo inheritance{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                   .flags = flags,
                                   .pInheritanceInfo = &inheritance};
    EXPECT_VK(vkBeginCommandBuffer(commands, &begin));
    return commands;
}

void VulkanTest::Bind(VkCommandBuffer commands, const TestPipeline& pipeline) {
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1,
                            &pipeline.set, 0, nullptr);
}

void VulkanTest::Barrier(VkCommandBuffer commands) {
    VkMemoryBarrier all{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &all, 0, nullptr, 0, nullptr);
}

VkFence VulkanTest::MakeFence(bool signalled) {
    VkFenceCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO,
        .flags = signalled ? VkFenceCreateFlags{VK_FENCE_CREATE_SIGNALED_BIT} : 0};
    VkFence fence = VK_NULL_HANDLE;
    EXPECT_VK(vkCreateFence(device_, &info, nullptr, &fence));
    AtEnd([this, fence] { vkDestroyFence(device_, fence, nullptr); });
    return fence;
}

VkSemaphore VulkanTest::MakeSemaphore(std::optional<uint64_t> timeline_value) {
    VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                   .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                   .initialValue = timeline_value.value_or(0)};
    VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                               .pNext = timeline_value ? &type : nullptr};
    VkSemaphore semaphore = VK_NULL_HANDLE;
    EXPECT_VK(vkCreateSemaphore(device_, &info, nullptr, &semaphore));
    AtEnd([this, semaphore] { vkDestroySemaphore(device_, semaphore, nullptr); });
    return semaphore;
}

VkResult VulkanTest::Submit(VkCommandBuffer commands, VkFence fence, uint32_t queue) {
    VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                        .commandBufferCount = commands ? 1u : 0u,
                        .pCommandBuffers = &commands};
    return vkQueueSubmit(queues_[queue], 1, &submit, fence);
}

void VulkanTest::Run(VkCommandBuffer commands) {
    Barrier(commands);
    ASSERT_VK(vkEndCommandBuffer(commands));
    VkFence fence = MakeFence();
    ASSERT_VK(Submit(commands, fence));
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, 20'000'000'000));
}

void VulkanTest::Run(const TestPipeline& pipeline, uint32_t x, uint32_t y, uint32_t z) {
    VkCommandBuffer commands = Begin();
    Bind(commands, pipeline);
    vkCmdDispatch(commands, x, y, z);
    Run(commands);
}

}  // namespace fornax::test
