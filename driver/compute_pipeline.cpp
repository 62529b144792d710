// Creating compute pipelines: the kernel compiler's request, its caches, and feedback about both.
#include "driver/compute_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "compiler/kernel/debug_printf.h"
#include "compiler/kernel/kernel_compiler.h"
#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/pipeline_cache.h"
#include "driver/pipeline_layout.h"
#include "driver/shader_module.h"

namespace fornax::driver {
namespace {

using KernelPointer = std::shared_ptr<const kernel::CompiledKernel>;

std::vector<kernel::SpecializationValue> ReadSpecialization(const VkSpecializationInfo* info) {
    std::vector<kernel::SpecializationValue> values;
    if (!info)
        return values;
    values.reserve(info->mapEntryCount);
    for (uint32_t i = 0; i < info->mapEntryCount; ++i) {
        const VkSpecializationMapEntry& entry = info->pMapEntries[i];
        kernel::SpecializationValue value{
            .constant_id = entry.constantID,
            .size_bytes = static_cast<uint32_t>(entry.size),
            .bits = 0,
        };
        // VUID-VkSpecializationMapEntry-constantID-00776: the constant's size, so at most 8 bytes.
        // An entry for a constant that does not exist may have any size and has no effect.
        std::memcpy(&value.bits, static_cast<const std::byte*>(info->pData) + entry.offset,
                    std::min(entry.size, sizeof(value.bits)));
        values.push_back(value);
    }
    return values;
}

// VkPipelineShaderStageRequiredSubgroupSizeCreateInfo, else the default. What is no power of two is
// refused by the compiler.
uint32_t SubgroupSizeOf(const VkPipelineShaderStageCreateInfo& stage) {
    const auto* required = FindInChain<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
        stage.pNext, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
    return required ? required->requiredSubgroupSize : kSubgroupSize;
}

// Whether accesses outside of a buffer's range are caught. What is caught is exact for
// robustBufferAccess2, so there is one way to do it; null descriptors have a range of 0 bytes.
bool NeedsBounds(const Device& device, const VkComputePipelineCreateInfo& info) {
    const FeatureSet& features = device.features();
    if (features.nullDescriptor)
        return true;
    // "The stage's structure takes precedence over the pipeline's"
    // (VkPipelineRobustnessCreateInfo).
    for (const void* chain : {info.stage.pNext, info.pNext}) {
        const auto* wanted = FindInChain<VkPipelineRobustnessCreateInfo>(
            chain, VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO);
        if (!wanted)
            continue;
        bool bounds = false;
        for (auto behavior : {wanted->storageBuffers, wanted->uniformBuffers}) {
            bounds |= behavior == VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DEVICE_DEFAULT
                          ? features.robustBufferAccess
                          : behavior != VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED;
        }
        return bounds;
    }
    return features.robustBufferAccess;
}

// VkPipelineCreateFlags2CreateInfo replaces the flags of the create info ("maintenance5").
VkPipelineCreateFlags2 FlagsOf(const VkComputePipelineCreateInfo& info) {
    const auto* flags = FindInChain<VkPipelineCreateFlags2CreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO);
    return flags ? flags->flags : info.flags;
}

// The code of a stage: of its module, or, without one, in the chain ("maintenance5").
std::span<const uint32_t> CodeOf(const VkPipelineShaderStageCreateInfo& stage) {
    if (stage.module)
        return FromHandle<ShaderModule>(stage.module)->spirv();
    const auto* module = FindInChain<VkShaderModuleCreateInfo>(
        stage.pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    return module ? std::span(module->pCode, module->codeSize / sizeof(uint32_t))
                  : std::span<const uint32_t>();
}

kernel::CompileRequest MakeRequest(const Device& device,
                                   const VkComputePipelineCreateInfo& info,
                                   const PipelineLayout& layout) {
    const auto spirv = CodeOf(info.stage);
    const DebugPrintf* printf = kernel::MayPrint(spirv) ? device.debug_printf() : nullptr;
    return {
        .spirv = spirv,
        .entry_point = info.stage.pName,
        .specialization = ReadSpecialization(info.stage.pSpecializationInfo),
        .layout = layout.MakeResourceLayout(),
        .options = {.robust_buffer_access = NeedsBounds(device, info),
                    .wide_indexing =
                        (FlagsOf(info) & VK_PIPELINE_CREATE_2_64_BIT_INDEXING_BIT_EXT) != 0,
                    .subgroup_size = SubgroupSizeOf(info.stage),
                    .printf_address = printf ? printf->address() : 0,
                    .printf_words = printf ? printf->capacity_words() : 0},
    };
}

// Where the kernel came from, for VK_EXT_pipeline_creation_feedback.
struct Feedback {
    bool cache_hit = false;
    uint64_t duration_ns = 0;
};

// Fills what VkPipelineCreationFeedbackCreateInfo points to; the only stage is the pipeline.
void WriteFeedback(const VkComputePipelineCreateInfo& info, VkResult result, Feedback feedback) {
    const auto* out = FindInChain<VkPipelineCreationFeedbackCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO);
    if (!out)
        return;
    VkPipelineCreationFeedback value = {};
    if (result == VK_SUCCESS) {
        value.flags = VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT;
        if (feedback.cache_hit)
            value.flags |= VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
        value.duration = feedback.duration_ns;
    }
    *out->pPipelineCreationFeedback = value;
    std::fill_n(out->pPipelineStageCreationFeedbacks, out->pipelineStageCreationFeedbackCount,
                value);
}

// The kernel from the application's cache, the disk or the compiler, in that order. Null when only
// the compiler could make it and `may_compile` is false.
Result<KernelPointer> GetKernel(kernel::KernelCompiler& compiler,
                                const kernel::CompileRequest& request,
                                PipelineCache* cache,
                                bool may_compile,
                                bool* cache_hit) {
    const std::string key = cache ? compiler.Key(request) : std::string();
    if (cache) {
        if (KernelPointer found = cache->Find(compiler, key)) {
            *cache_hit = true;
            return found;
        }
    }
    FORNAX_ASSIGN_OR_RETURN(KernelPointer kernel,
                            may_compile ? compiler.Compile(request) : compiler.Lookup(request));
    if (cache && kernel && kernel->storable)
        cache->Add(key, kernel);
    return kernel;
}

}  // namespace

VkResult ComputePipeline::Init(const VkComputePipelineCreateInfo& info, PipelineCache* cache) {
    const auto start = std::chrono::steady_clock::now();
    Feedback feedback;
    const auto create = [&]() -> VkResult {
        auto compiler = device().physical_device().compiler();
        if (!compiler)
            return Fail(device(), compiler.error());
        const auto& layout = *FromHandle<PipelineLayout>(info.layout);
        const bool may_compile =
            !(FlagsOf(info) & VK_PIPELINE_CREATE_2_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT);
        auto kernel = GetKernel(**compiler, MakeRequest(device(), info, layout), cache, may_compile,
                                &feedback.cache_hit);
        if (!kernel)
            return Fail(device(), kernel.error());
        if (!*kernel)
            return VK_PIPELINE_COMPILE_REQUIRED;
        return CreateExecutable(*kernel, layout);
    };
    const VkResult result = create();
    feedback.duration_ns = static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    WriteFeedback(info, result, feedback);
    return result;
}

VkResult ComputePipeline::CreateExecutable(
    const std::shared_ptr<const kernel::CompiledKernel>& kernel,
    const PipelineLayout& layout) {
    push_constant_bytes_ = layout.push_constant_bytes();
    set_count_ = static_cast<uint32_t>(layout.sets().size());
    for (uint32_t i = 0; i < set_count_; ++i) {
        dynamic_offset_counts_[i] = static_cast<uint8_t>(layout.sets()[i].dynamic_offset_count);
    }
    auto executable = device().hal().CreateExecutable({
        .entry = kernel->entry,
        .context = kernel->context,
        .workgroup_size = kernel->workgroup_size,
        .shared_bytes = kernel->shared_bytes,
        .scratch_bytes = kernel->scratch_bytes,
        .push_constant_bytes = push_constant_bytes_,
        .descriptor_set_mask = kernel->used_sets,
        .independent_workgroups = kernel->independent_workgroups,
        .name = kernel->name,
        .code = kernel,
    });
    if (!executable)
        return Fail(device(), executable.error());
    executable_ = std::move(*executable);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateComputePipelines(VkDevice device,
                         VkPipelineCache cache,
                         uint32_t count,
                         const VkComputePipelineCreateInfo* infos,
                         const VkAllocationCallbacks* callbacks,
                         VkPipeline* pipelines) {
    // "Multiple Pipeline Creation": all are tried unless a failed one says otherwise; those that
    // failed, or were not tried, are null. An error goes before VK_PIPELINE_COMPILE_REQUIRED.
    std::fill_n(pipelines, count, VkPipeline(VK_NULL_HANDLE));
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < count; ++i) {
        const VkResult one = CreateObject<ComputePipeline>(
            device, callbacks, &pipelines[i], infos[i], FromHandle<PipelineCache>(cache));
        if (one == VK_SUCCESS)
            continue;
        if (result >= VK_SUCCESS)
            result = one;
        if (FlagsOf(infos[i]) & VK_PIPELINE_CREATE_2_EARLY_RETURN_ON_FAILURE_BIT)
            break;
    }
    return result;
}

FORNAX_ENTRY_POINT(void)
vkDestroyPipeline(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* callbacks) {
    DestroyObject<ComputePipeline>(device, callbacks, pipeline);
}

}  // namespace fornax::driver
