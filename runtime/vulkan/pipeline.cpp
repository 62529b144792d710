#include "runtime/vulkan/pipeline.h"

#include <fmt/format.h>

#include "runtime/vulkan/result.h"

namespace fornax::vulkan {

Result<std::unique_ptr<PipelineFactory>> PipelineFactory::Create(
    std::shared_ptr<Device> device,
    std::span<const std::byte> cache_data) {
    std::unique_ptr<PipelineFactory> factory(new PipelineFactory(std::move(device)));
    VkPipelineCacheCreateInfo cache_info = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    cache_info.initialDataSize = cache_data.size();
    cache_info.pInitialData = cache_data.data();
    const Device& on = *factory->device_;
    FORNAX_RETURN_IF_FAILED(
        "vkCreatePipelineCache",
        on.vk().vkCreatePipelineCache(on.handle(), &cache_info, nullptr, &factory->cache_));
    return factory;
}

PipelineFactory::~PipelineFactory() {
    const VolkDeviceTable& vk = device_->vk();
    const VkDevice device = device_->handle();
    for (const VkPipeline pipeline : pipelines_) {
        vk.vkDestroyPipeline(device, pipeline, nullptr);
    }
    for (const auto& [key, layout] : pipeline_layouts_) {
        vk.vkDestroyPipelineLayout(device, layout, nullptr);
    }
    for (const auto& [key, layout] : set_layouts_) {
        vk.vkDestroyDescriptorSetLayout(device, layout, nullptr);
    }
    vk.vkDestroyPipelineCache(device, cache_, nullptr);
}

Result<PipelineFactory::Layouts> PipelineFactory::LayoutsFor(uint32_t binding_count,
                                                             uint32_t push_constant_count) {
    const std::lock_guard lock(mutex_);
    Layouts layouts;
    const auto set = set_layouts_.find(binding_count);
    if (set != set_layouts_.end()) {
        layouts.set = set->second;
    } else {
        std::vector<VkDescriptorSetLayoutBinding> bindings(binding_count);
        for (uint32_t i = 0; i < binding_count; ++i) {
            bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                           nullptr};
        }
        VkDescriptorSetLayoutCreateInfo set_info = {
            VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        set_info.bindingCount = binding_count;
        set_info.pBindings = bindings.data();
        FORNAX_RETURN_IF_FAILED("vkCreateDescriptorSetLayout",
                                device_->vk().vkCreateDescriptorSetLayout(
                                    device_->handle(), &set_info, nullptr, &layouts.set));
        set_layouts_[binding_count] = layouts.set;
    }
    const std::pair key(binding_count, push_constant_count);
    const auto pipeline = pipeline_layouts_.find(key);
    if (pipeline != pipeline_layouts_.end()) {
        layouts.pipeline = pipeline->second;
        return layouts;
    }
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                       push_constant_count * uint32_t{sizeof(uint32_t)}};
    VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &layouts.set;
    layout_info.pushConstantRangeCount = push_constant_count == 0 ? 0 : 1;
    layout_info.pPushConstantRanges = &range;
    FORNAX_RETURN_IF_FAILED("vkCreatePipelineLayout",
                            device_->vk().vkCreatePipelineLayout(device_->handle(), &layout_info,
                                                                 nullptr, &layouts.pipeline));
    pipeline_layouts_[key] = layouts.pipeline;
    return layouts;
}

Result<ComputePipeline> PipelineFactory::Make(const KernelCode& code) {
    const VkPhysicalDeviceLimits& limits = device_->limits();
    if (code.binding_count > limits.maxPerStageDescriptorStorageBuffers) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The kernel {} has {} buffers; the device {} binds at most {}.",
                                 code.name, code.binding_count, device_->name(),
                                 limits.maxPerStageDescriptorStorageBuffers)};
    }
    if (code.push_constant_count * sizeof(uint32_t) > limits.maxPushConstantsSize) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The kernel {} has {} bytes of push constants; the device {} "
                                 "takes at most {}.",
                                 code.name, code.push_constant_count * sizeof(uint32_t),
                                 device_->name(), limits.maxPushConstantsSize)};
    }
    FORNAX_ASSIGN_OR_RETURN(const Layouts layouts,
                            LayoutsFor(code.binding_count, code.push_constant_count));
    const VolkDeviceTable& vk = device_->vk();
    const VkDevice device = device_->handle();
    VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = code.words.size_bytes();
    module_info.pCode = code.words.data();
    VkShaderModule module = VK_NULL_HANDLE;
    FORNAX_RETURN_IF_FAILED("vkCreateShaderModule",
                            vk.vkCreateShaderModule(device, &module_info, nullptr, &module));

    std::vector<VkSpecializationMapEntry> entries(code.constants.size());
    for (uint32_t i = 0; i < entries.size(); ++i) {
        entries[i] = {i, i * uint32_t{sizeof(uint32_t)}, sizeof(uint32_t)};
    }
    VkSpecializationInfo specialization = {};
    specialization.mapEntryCount = static_cast<uint32_t>(entries.size());
    specialization.pMapEntries = entries.data();
    specialization.dataSize = code.constants.size_bytes();
    specialization.pData = code.constants.data();

    VkPipelineCreationFeedback feedback = {}, stage_feedback = {};
    VkPipelineCreationFeedbackCreateInfo feedback_info = {
        VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO};
    feedback_info.pPipelineCreationFeedback = &feedback;
    feedback_info.pipelineStageCreationFeedbackCount = 1;
    feedback_info.pPipelineStageCreationFeedbacks = &stage_feedback;
    VkComputePipelineCreateInfo pipeline_info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    if (device_->features().creation_feedback) {
        pipeline_info.pNext = &feedback_info;
    }
    pipeline_info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline_info.stage.module = module;
    pipeline_info.stage.pName = "main";
    pipeline_info.stage.pSpecializationInfo = entries.empty() ? nullptr : &specialization;
    pipeline_info.layout = layouts.pipeline;
    ComputePipeline made;
    made.layout = layouts.pipeline;
    made.set_layout = layouts.set;
    const VkResult result =
        vk.vkCreateComputePipelines(device, cache_, 1, &pipeline_info, nullptr, &made.pipeline);
    vk.vkDestroyShaderModule(device, module, nullptr);
    if (result != VK_SUCCESS) {
        Error error = ErrorOf("vkCreateComputePipelines", result);
        error.message = fmt::format("The device {} did not compile the kernel {}: {}",
                                    device_->name(), code.name, error.message);
        return error;
    }
    made.from_cache =
        (feedback.flags & VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT) != 0;
    const std::lock_guard lock(mutex_);
    pipelines_.push_back(made.pipeline);
    return made;
}

std::vector<std::byte> PipelineFactory::CacheData() const {
    const VolkDeviceTable& vk = device_->vk();
    size_t size = 0;
    if (vk.vkGetPipelineCacheData(device_->handle(), cache_, &size, nullptr) != VK_SUCCESS) {
        return {};
    }
    std::vector<std::byte> data(size);
    if (vk.vkGetPipelineCacheData(device_->handle(), cache_, &size, data.data()) != VK_SUCCESS) {
        return {};
    }
    data.resize(size);
    return data;
}

}  // namespace fornax::vulkan
