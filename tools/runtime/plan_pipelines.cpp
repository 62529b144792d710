// The runner's pipelines: one for every distinct kernel and parameters of the plan.
#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "tools/runtime/plan_runner.h"

namespace fornax::runtime {

VkPipelineLayout PlanRunner::LayoutOf(const legacy_graph::PlanDispatch& dispatch) const {
    return pipeline_layouts_[plan_.sets[dispatch.set].tensors.size()];
}

Status PlanRunner::CreatePipelines(std::span<const std::byte> pipeline_cache) {
    const auto start = std::chrono::steady_clock::now();
    VkPipelineCacheCreateInfo cache_info = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    cache_info.initialDataSize = pipeline_cache.size();
    cache_info.pInitialData = pipeline_cache.data();
    const VkResult result =
        vkCreatePipelineCache(device_.handle(), &cache_info, nullptr, &pipeline_cache_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreatePipelineCache", result);
    }

    std::map<std::pair<legacy_graph::KernelId, std::vector<uint32_t>>, size_t> made;
    for (const legacy_graph::PlanDispatch& dispatch : plan_.dispatches) {
        const auto [entry, is_new] =
            made.emplace(std::pair(dispatch.kernel, dispatch.parameters), pipelines_.size());
        if (is_new) {
            FORNAX_ASSIGN_OR_RETURN(VkPipeline pipeline, CreatePipeline(dispatch));
            pipelines_.push_back(pipeline);
        }
        pipeline_of_dispatch_.push_back(entry->second);
    }
    pipeline_report_.pipelines = pipelines_.size();
    pipeline_report_.cache_known = device_.has_creation_feedback();
    pipeline_report_.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return OkStatus();
}

Result<VkPipeline> PlanRunner::CreatePipeline(const legacy_graph::PlanDispatch& dispatch) {
    const VkDevice device = device_.handle();
    const legacy_graph::KernelInfo& kernel = legacy_graph::Kernel(dispatch.kernel);
    VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = kernel.spirv.size_bytes();
    module_info.pCode = kernel.spirv.data();
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult result = vkCreateShaderModule(device, &module_info, nullptr, &module);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreateShaderModule", result);
    }

    // Parameter i is specialisation constant i; a constant that the kernel does not declare is
    // ignored.
    std::vector<VkSpecializationMapEntry> entries(dispatch.parameters.size());
    for (uint32_t i = 0; i < entries.size(); ++i) {
        entries[i] = {i, i * static_cast<uint32_t>(sizeof(uint32_t)), sizeof(uint32_t)};
    }
    VkSpecializationInfo specialization = {};
    specialization.mapEntryCount = static_cast<uint32_t>(entries.size());
    specialization.pMapEntries = entries.data();
    specialization.dataSize = dispatch.parameters.size() * sizeof(uint32_t);
    specialization.pData = dispatch.parameters.data();

    VkPipelineCreationFeedback feedback = {}, stage_feedback = {};
    VkPipelineCreationFeedbackCreateInfo feedback_info = {
        VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO};
    feedback_info.pPipelineCreationFeedback = &feedback;
    feedback_info.pipelineStageCreationFeedbackCount = 1;
    feedback_info.pPipelineStageCreationFeedbacks = &stage_feedback;
    VkComputePipelineCreateInfo pipeline_info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    if (device_.has_creation_feedback()) {
        pipeline_info.pNext = &feedback_info;
    }
    pipeline_info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline_info.stage.module = module;
    pipeline_info.stage.pName = "main";
    pipeline_info.stage.pSpecializationInfo = &specialization;
    pipeline_info.layout = LayoutOf(dispatch);
    VkPipeline pipeline = VK_NULL_HANDLE;
    result =
        vkCreateComputePipelines(device, pipeline_cache_, 1, &pipeline_info, nullptr, &pipeline);
    vkDestroyShaderModule(device, module, nullptr);
    if (result != VK_SUCCESS) {
        return Error{ErrorCode::kInternal,
                     fmt::format("The device {} did not compile the kernel {} of {}: "
                                 "vkCreateComputePipelines returned {}.",
                                 device_.name(), kernel.name, dispatch.name, ResultName(result))};
    }
    if (feedback.flags & VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT) {
        ++pipeline_report_.from_cache;
    }
    return pipeline;
}

std::vector<std::byte> PlanRunner::PipelineCacheData() const {
    size_t size = 0;
    if (vkGetPipelineCacheData(device_.handle(), pipeline_cache_, &size, nullptr) != VK_SUCCESS) {
        return {};
    }
    std::vector<std::byte> data(size);
    if (vkGetPipelineCacheData(device_.handle(), pipeline_cache_, &size, data.data()) !=
        VK_SUCCESS) {
        return {};
    }
    data.resize(size);
    return data;
}

}  // namespace fornax::runtime
