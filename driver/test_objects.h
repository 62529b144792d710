// Everything that an instance and a device create, one object after another, for tests that make
// each creation fail: in the application's callbacks (allocation_test.cpp) and in operator new
// (out_of_memory_test.cpp). A test of icd/ says which command has no case here.
#pragma once

#include <gtest/gtest.h>
#include <volk.h>

#include <functional>
#include <string>
#include <vector>

#include "driver/test_kernel_compiler.h"

namespace fornax::driver_test {

// What the instance of a factory must have enabled.
inline const std::vector<const char*> kFactoryExtensions = {
    VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_DEBUG_REPORT_EXTENSION_NAME,
    VK_KHR_SURFACE_EXTENSION_NAME, VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME};

// `callbacks` go to every command that takes them.
class ObjectFactory {
  public:
    ObjectFactory(VkInstance instance, VkDevice device, const VkAllocationCallbacks* callbacks)
        : instance_(instance), device_(device), callbacks_(callbacks) {}

    struct Step {
        std::string command;
        std::function<VkResult()> create;
        std::function<void()> destroy;
        bool allocates = true;  // through callbacks: else what it makes has its place already
    };

    std::vector<Step> Steps() {
        return {
            {"vkAllocateMemory", [this] { return CreateMemory(); },
             [this] { vkFreeMemory(device_, memory_, callbacks_); }},
            {"vkCreateBuffer", [this] { return CreateBuffer(); },
             [this] { vkDestroyBuffer(device_, buffer_, callbacks_); }},
            {"vkCreateDescriptorSetLayout", [this] { return CreateSetLayout(); },
             [this] { vkDestroyDescriptorSetLayout(device_, set_layout_, callbacks_); }},
            {"vkCreateDescriptorPool", [this] { return CreatePool(); },
             [this] { vkDestroyDescriptorPool(device_, pool_, callbacks_); }},
            {"vkCreatePipelineLayout", [this] { return CreatePipelineLayout(); },
             [this] { vkDestroyPipelineLayout(device_, pipeline_layout_, callbacks_); }},
            {"vkCreateDescriptorUpdateTemplate", [this] { return CreateTemplate(); },
             [this] { vkDestroyDescriptorUpdateTemplate(device_, template_, callbacks_); }},
            {"vkCreateShaderModule", [this] { return CreateModule(); },
             [this] { vkDestroyShaderModule(device_, module_, callbacks_); }},
            {"vkCreatePipelineCache", [this] { return CreateCache(); },
             [this] { vkDestroyPipelineCache(device_, cache_, callbacks_); }},
            {"vkCreateComputePipelines", [this] { return CreatePipeline(0); },
             [this] { vkDestroyPipeline(device_, pipeline_, callbacks_); }},
            {"vkCreateCommandPool", [this] { return CreateCommandPool(); },
             [this] { vkDestroyCommandPool(device_, command_pool_, callbacks_); }},
            {"vkAllocateCommandBuffers", [this] { return AllocateCommandBuffers(); },
             [this] { vkFreeCommandBuffers(device_, command_pool_, 3, command_buffers_); }},
            {"vkCreateFence", [this] { return CreateFence(); },
             [this] { vkDestroyFence(device_, fence_, callbacks_); }},
            {"vkCreateSemaphore", [this] { return CreateSemaphore(); },
             [this] { vkDestroySemaphore(device_, semaphore_, callbacks_); }},
            {"vkCreateEvent", [this] { return CreateEvent(); },
             [this] { vkDestroyEvent(device_, event_, callbacks_); }},
            {"vkCreateQueryPool", [this] { return CreateQueryPool(); },
             [this] { vkDestroyQueryPool(device_, query_pool_, callbacks_); }},
            {"vkCreatePrivateDataSlot", [this] { return CreateSlot(); },
             [this] { vkDestroyPrivateDataSlotEXT(device_, slot_, callbacks_); }},
            {"vkAllocateDescriptorSets", [this] { return AllocateSets(); },
             [this] { EXPECT_EQ(vkResetDescriptorPool(device_, pool_, 0), VK_SUCCESS); }, false},
            {"vkCreateBufferView", [this] { return CreateBufferView(); },
             [this] { vkDestroyBufferView(device_, buffer_view_, callbacks_); }},
            {"vkCreateImage", [this] { return CreateImage(); },
             [this] { vkDestroyImage(device_, image_, callbacks_); }},
            {"vkCreateImageView", [this] { return CreateImageView(); },
             [this] { vkDestroyImageView(device_, image_view_, callbacks_); }},
            {"vkCreateSampler", [this] { return CreateSampler(); },
             [this] { vkDestroySampler(device_, sampler_, callbacks_); }},
            {"vkCreateDebugUtilsMessengerEXT", [this] { return CreateMessenger(); },
             [this] { vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, callbacks_); }},
            {"vkCreateDebugReportCallbackEXT", [this] { return CreateReport(); },
             [this] { vkDestroyDebugReportCallbackEXT(instance_, report_, callbacks_); }},
            {"vkCreateHeadlessSurfaceEXT", [this] { return CreateSurface(); },
             [this] { vkDestroySurfaceKHR(instance_, surface_, callbacks_); }},
            {"vkCreateDeferredOperationKHR",
             [this] { return vkCreateDeferredOperationKHR(device_, callbacks_, &operation_); },
             [this] { vkDestroyDeferredOperationKHR(device_, operation_, callbacks_); }},
            {"vkCreateSamplerYcbcrConversion", [this] { return CreateConversion(); },
             [this] { vkDestroySamplerYcbcrConversion(device_, conversion_, callbacks_); }},
            {"vkCreateShadersEXT", [this] { return CreateShader(); },
             [this] { vkDestroyShaderEXT(device_, shader_, callbacks_); }},
            {"vkCreateComputePipelines",
             [this] { return CreatePipeline(VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR); },
             [this] { vkDestroyPipeline(device_, capturing_, callbacks_); }},
            {"vkCreatePipelineBinariesKHR", [this] { return CreateBinary(); },
             [this] { vkDestroyPipelineBinaryKHR(device_, binary_, callbacks_); }},
        };
    }

  private:
    VkResult CreateMemory() {
        const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = 4096};
        return vkAllocateMemory(device_, &info, callbacks_, &memory_);
    }
    VkResult CreateBuffer() {
        const VkBufferCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
            .size = 256,
            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT};
        return vkCreateBuffer(device_, &info, callbacks_, &buffer_);
    }
    VkResult CreateSetLayout() {
        const VkDescriptorSetLayoutBinding binding{
            .binding = 0,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 3,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = 1,
            .pBindings = &binding};
        return vkCreateDescriptorSetLayout(device_, &info, callbacks_, &set_layout_);
    }
    VkResult CreatePool() {
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 12};
        const VkDescriptorPoolCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 4,
            .poolSizeCount = 1,
            .pPoolSizes = &size};
        return vkCreateDescriptorPool(device_, &info, callbacks_, &pool_);
    }
    VkResult CreatePipelineLayout() {
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
        const VkPipelineLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = 1,
            .pSetLayouts = &set_layout_,
            .pushConstantRangeCount = 1,
            .pPushConstantRanges = &range};
        return vkCreatePipelineLayout(device_, &info, callbacks_, &pipeline_layout_);
    }
    VkResult CreateTemplate() {
        const VkDescriptorUpdateTemplateEntry entry{
            .dstBinding = 0,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER};
        const VkDescriptorUpdateTemplateCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO,
            .descriptorUpdateEntryCount = 1,
            .pDescriptorUpdateEntries = &entry,
            .templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET,
            .descriptorSetLayout = set_layout_};
        return vkCreateDescriptorUpdateTemplate(device_, &info, callbacks_, &template_);
    }
    VkResult CreateModule() {
        constexpr TestProgram kProgram = {kSpirvMagic, 1};
        const VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = sizeof(kProgram),
                                            .pCode = kProgram.data()};
        return vkCreateShaderModule(device_, &info, callbacks_, &module_);
    }
    VkResult CreateCache() {
        const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
        return vkCreatePipelineCache(device_, &info, callbacks_, &cache_);
    }
    VkResult CreatePipeline(VkPipelineCreateFlags2 flags) {
        // Without a cache: a cache that has no memory for an entry does without.
        const VkPipelineCreateFlags2CreateInfo flags_info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO, .flags = flags};
        const VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .pNext = &flags_info,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module_,
                      .pName = "main"},
            .layout = pipeline_layout_};
        return vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, callbacks_,
                                        flags ? &capturing_ : &pipeline_);
    }
    VkResult CreateCommandPool() {
        const VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        return vkCreateCommandPool(device_, &info, callbacks_, &command_pool_);
    }
    VkResult AllocateCommandBuffers() {
        const VkCommandBufferAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = command_pool_,
            .commandBufferCount = 3};
        return vkAllocateCommandBuffers(device_, &info, command_buffers_);
    }
    VkResult CreateFence() {
        const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        return vkCreateFence(device_, &info, callbacks_, &fence_);
    }
    VkResult CreateSemaphore() {
        const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
        return vkCreateSemaphore(device_, &info, callbacks_, &semaphore_);
    }
    VkResult CreateEvent() {
        const VkEventCreateInfo info{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
        return vkCreateEvent(device_, &info, callbacks_, &event_);
    }
    VkResult CreateQueryPool() {
        const uint32_t counters[] = {2, 0, 1};
        const VkQueryPoolPerformanceCreateInfoKHR performance{
            .sType = VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR,
            .counterIndexCount = 3,
            .pCounterIndices = counters};
        const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .pNext = &performance,
                                         .queryType = VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR,
                                         .queryCount = 4};
        return vkCreateQueryPool(device_, &info, callbacks_, &query_pool_);
    }
    VkResult CreateSlot() {
        const VkPrivateDataSlotCreateInfo info{.sType =
                                                   VK_STRUCTURE_TYPE_PRIVATE_DATA_SLOT_CREATE_INFO};
        return vkCreatePrivateDataSlotEXT(device_, &info, callbacks_, &slot_);
    }

    VkResult AllocateSets() {
        const VkDescriptorSetLayout layouts[3] = {set_layout_, set_layout_, set_layout_};
        const VkDescriptorSetAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = pool_,
            .descriptorSetCount = 3,
            .pSetLayouts = layouts};
        return vkAllocateDescriptorSets(device_, &info, sets_);
    }
    VkResult CreateBufferView() {
        if (!bound_) {
            EXPECT_EQ(vkBindBufferMemory(device_, buffer_, memory_, 0), VK_SUCCESS);
            bound_ = true;
        }
        const VkBufferViewCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                          .buffer = buffer_,
                                          .format = VK_FORMAT_R32_UINT,
                                          .range = VK_WHOLE_SIZE};
        return vkCreateBufferView(device_, &info, callbacks_, &buffer_view_);
    }
    VkResult CreateImage() {
        const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = VK_IMAGE_TYPE_2D,
                                     .format = VK_FORMAT_R32_UINT,
                                     .extent = {8, 8, 1},
                                     .mipLevels = 1,
                                     .arrayLayers = 1,
                                     .samples = VK_SAMPLE_COUNT_1_BIT,
                                     .usage = VK_IMAGE_USAGE_STORAGE_BIT};
        return vkCreateImage(device_, &info, callbacks_, &image_);
    }
    VkResult CreateImageView() {
        if (!image_bound_) {
            EXPECT_EQ(vkBindImageMemory(device_, image_, memory_, 1024), VK_SUCCESS);
            image_bound_ = true;
        }
        const VkImageViewCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
            .image = image_,
            .viewType = VK_IMAGE_VIEW_TYPE_2D,
            .format = VK_FORMAT_R32_UINT,
            .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
        return vkCreateImageView(device_, &info, callbacks_, &image_view_);
    }
    VkResult CreateSampler() {
        const VkSamplerCreateInfo info{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
        return vkCreateSampler(device_, &info, callbacks_, &sampler_);
    }
    VkResult CreateMessenger() {
        const VkDebugUtilsMessengerCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
            .pfnUserCallback = [](VkDebugUtilsMessageSeverityFlagBitsEXT,
                                  VkDebugUtilsMessageTypeFlagsEXT,
                                  const VkDebugUtilsMessengerCallbackDataEXT*,
                                  void*) -> VkBool32 { return VK_FALSE; }};
        return vkCreateDebugUtilsMessengerEXT(instance_, &info, callbacks_, &messenger_);
    }

    VkResult CreateReport() {
        const VkDebugReportCallbackCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DEBUG_REPORT_CALLBACK_CREATE_INFO_EXT,
            .pfnCallback = [](VkDebugReportFlagsEXT, VkDebugReportObjectTypeEXT, uint64_t, size_t,
                              int32_t, const char*, const char*,
                              void*) -> VkBool32 { return VK_FALSE; }};
        return vkCreateDebugReportCallbackEXT(instance_, &info, callbacks_, &report_);
    }
    VkResult CreateSurface() {
        const VkHeadlessSurfaceCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
        return vkCreateHeadlessSurfaceEXT(instance_, &info, callbacks_, &surface_);
    }
    VkResult CreateConversion() {
        const VkSamplerYcbcrConversionCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_SAMPLER_YCBCR_CONVERSION_CREATE_INFO,
            .format = VK_FORMAT_R8G8B8A8_UNORM,
            .ycbcrModel = VK_SAMPLER_YCBCR_MODEL_CONVERSION_RGB_IDENTITY};
        return vkCreateSamplerYcbcrConversion(device_, &info, callbacks_, &conversion_);
    }
    VkResult CreateShader() {
        constexpr TestProgram kProgram = {kSpirvMagic, 1};
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
        const VkShaderCreateInfoEXT info{.sType = VK_STRUCTURE_TYPE_SHADER_CREATE_INFO_EXT,
                                         .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                         .codeType = VK_SHADER_CODE_TYPE_SPIRV_EXT,
                                         .codeSize = sizeof(kProgram),
                                         .pCode = kProgram.data(),
                                         .pName = "main",
                                         .setLayoutCount = 1,
                                         .pSetLayouts = &set_layout_,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &range};
        return vkCreateShadersEXT(device_, 1, &info, callbacks_, &shader_);
    }
    VkResult CreateBinary() {
        const VkPipelineBinaryCreateInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, .pipeline = capturing_};
        VkPipelineBinaryHandlesInfoKHR handles{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_HANDLES_INFO_KHR,
            .pipelineBinaryCount = 1,
            .pPipelineBinaries = &binary_};
        return vkCreatePipelineBinariesKHR(device_, &info, callbacks_, &handles);
    }

    VkInstance instance_;
    VkDevice device_;
    const VkAllocationCallbacks* callbacks_;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
    VkDescriptorUpdateTemplate template_ = VK_NULL_HANDLE;
    VkShaderModule module_ = VK_NULL_HANDLE;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkCommandPool command_pool_ = VK_NULL_HANDLE;
    VkCommandBuffer command_buffers_[3] = {};
    VkFence fence_ = VK_NULL_HANDLE;
    VkSemaphore semaphore_ = VK_NULL_HANDLE;
    VkEvent event_ = VK_NULL_HANDLE;
    VkQueryPool query_pool_ = VK_NULL_HANDLE;
    VkPrivateDataSlot slot_ = VK_NULL_HANDLE;
    VkDescriptorSet sets_[3] = {};
    VkBufferView buffer_view_ = VK_NULL_HANDLE;
    VkImage image_ = VK_NULL_HANDLE;
    VkImageView image_view_ = VK_NULL_HANDLE;
    VkSampler sampler_ = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    VkDebugReportCallbackEXT report_ = VK_NULL_HANDLE;
    VkSurfaceKHR surface_ = VK_NULL_HANDLE;
    VkDeferredOperationKHR operation_ = VK_NULL_HANDLE;
    VkSamplerYcbcrConversion conversion_ = VK_NULL_HANDLE;
    VkShaderEXT shader_ = VK_NULL_HANDLE;
    VkPipeline capturing_ = VK_NULL_HANDLE;
    VkPipelineBinaryKHR binary_ = VK_NULL_HANDLE;
    bool bound_ = false;
    bool image_bound_ = false;
};

}  // namespace fornax::driver_test
