// Creating compute pipelines: the kernel compiler's request, its caches, and feedback about both.
#include "driver/compute_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "compiler/kernel/kernel_compiler.h"
#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/heap_layout.h"
#include "driver/kernel_request.h"
#include "driver/pipeline_binary.h"
#include "driver/pipeline_cache.h"
#include "driver/pipeline_layout.h"
#include "driver/shader_module.h"

namespace fornax::driver {
namespace {

using KernelPointer = std::shared_ptr<const kernel::CompiledKernel>;

// Whether accesses outside of a buffer's range are caught.
bool NeedsBounds(const Device& device, const VkComputePipelineCreateInfo& info) {
    const FeatureSet& features = device.features();
    if (features.nullDescriptor) {
        return true;
    }
    // "The stage's structure takes precedence over the pipeline's"
    // (VkPipelineRobustnessCreateInfo).
    for (const void* chain : {info.stage.pNext, info.pNext}) {
        const auto* wanted = FindInChain<VkPipelineRobustnessCreateInfo>(
            chain, VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO);
        if (!wanted) {
            continue;
        }
        bool bounds = false;
        for (auto behavior : {wanted->storageBuffers, wanted->uniformBuffers}) {
            bounds |= behavior == VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DEVICE_DEFAULT
                          ? features.robustBufferAccess
                          : behavior != VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED;
        }
        return bounds;
    }
    return DefaultBounds(device);
}

// VkPipelineCreateFlags2CreateInfo replaces the flags of the create info ("maintenance5").
VkPipelineCreateFlags2 FlagsOf(const VkComputePipelineCreateInfo& info) {
    const auto* flags = FindInChain<VkPipelineCreateFlags2CreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO);
    return flags ? flags->flags : info.flags;
}

// The code of a stage: of its module, or, without one, in the chain ("maintenance5").
std::span<const uint32_t> CodeOf(const VkPipelineShaderStageCreateInfo& stage) {
    if (stage.module) {
        return FromHandle<ShaderModule>(stage.module)->spirv();
    }
    const auto* module = FindInChain<VkShaderModuleCreateInfo>(
        stage.pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    return module ? std::span(module->pCode, module->codeSize / sizeof(uint32_t))
                  : std::span<const uint32_t>();
}

// In place of code: its identifier (VK_EXT_shader_module_identifier). One that is none of ours
// finds nothing.
std::optional<Hash128> IdentifierOf(const VkPipelineShaderStageCreateInfo& stage) {
    const auto* identifier = FindInChain<VkPipelineShaderStageModuleIdentifierCreateInfoEXT>(
        stage.pNext, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_MODULE_IDENTIFIER_CREATE_INFO_EXT);
    if (!identifier || identifier->identifierSize == 0) {
        return std::nullopt;
    }
    Hash128 digest;
    if (identifier->identifierSize == sizeof(digest)) {
        std::memcpy(&digest, identifier->pIdentifier, sizeof(digest));
    }
    return digest;
}

bool HasBinaries(const VkComputePipelineCreateInfo& info) {
    const auto* binaries = FindInChain<VkPipelineBinaryInfoKHR>(
        info.pNext, VK_STRUCTURE_TYPE_PIPELINE_BINARY_INFO_KHR);
    return binaries && binaries->binaryCount > 0;
}

kernel::CompileRequest MakeRequest(const Device& device, const VkComputePipelineCreateInfo& info) {
    const auto spirv = CodeOf(info.stage);
    kernel::CompileRequest request{
        .spirv = spirv,
        .spirv_digest = spirv.empty() ? IdentifierOf(info.stage) : std::nullopt,
        .entry_point = info.stage.pName,
        .specialization = ReadSpecialization(info.stage.pSpecializationInfo),
        .layout = FromHandle<PipelineLayout>(info.layout)->MakeResourceLayout(),
        .options = {.robust_buffer_access = NeedsBounds(device, info),
                    .wide_indexing =
                        (FlagsOf(info) & VK_PIPELINE_CREATE_2_64_BIT_INDEXING_BIT_EXT) != 0,
                    .subgroup_size = SubgroupSizeOf(info.stage.pNext)},
        .disk = DiskUseOf(device),
    };
    SetDeviceOptions(device, request);
    return request;
}

KernelSource CopySource(const kernel::CompileRequest& request) {
    return {.stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .spirv = {request.spirv.begin(), request.spirv.end()},
            .spirv_digest = request.spirv_digest,
            .entry_point = request.entry_point,
            .specialization = request.specialization,
            .subgroup_size = request.options.subgroup_size,
            .wide_indexing = request.options.wide_indexing,
            .heap = request.layout.heaps
                        ? std::make_shared<const kernel::ResourceLayout>(request.layout)
                        : nullptr};
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
    if (!out) {
        return;
    }
    VkPipelineCreationFeedback value = {};
    if (result == VK_SUCCESS) {
        value.flags = VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT;
        if (feedback.cache_hit) {
            value.flags |= VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
        }
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
            return compiler.Specialize(request, std::move(found));
        }
    }
    FORNAX_ASSIGN_OR_RETURN(KernelPointer kernel,
                            may_compile ? compiler.Compile(request) : compiler.Lookup(request));
    if (cache && kernel && kernel->storable) {
        cache->Add(key, kernel);
    }
    return kernel;
}

Result<KernelBinary> ReadBinaryOf(const VkComputePipelineCreateInfo& info) {
    const auto* binaries = FindInChain<VkPipelineBinaryInfoKHR>(
        info.pNext, VK_STRUCTURE_TYPE_PIPELINE_BINARY_INFO_KHR);
    return ReadKernelBinary(FromHandle<PipelineBinary>(binaries->pPipelineBinaries[0])->block());
}

// The mappings of the stage, which are ignored beside a binary that has them
// (VkPipelineBinaryInfoKHR).
VkResult FindHeapLayout(Device& device,
                        const VkComputePipelineCreateInfo& info,
                        std::shared_ptr<const kernel::ResourceLayout>& layout) {
    if (!HasBinaries(info)) {
        auto read = std::make_shared<kernel::ResourceLayout>();
        FORNAX_RETURN_IF_FAILED(ReadHeapLayout(device, info.stage.pNext, *read));
        layout = std::move(read);
        return VK_SUCCESS;
    }
    const auto binary = ReadBinaryOf(info);
    if (!binary) {
        return Fail(device, binary.error());
    }
    if (!binary->source.heap) {
        return Fail(device, VK_ERROR_VALIDATION_FAILED_EXT,
                    "A pipeline with descriptor heaps was asked for, and the binary is of one "
                    "without.");
    }
    layout = binary->source.heap;
    return VK_SUCCESS;
}

// Calls `make` with an info that has a layout: with descriptor heaps none is given, and the stage's
// mappings make one for the time of the call.
template <typename Make>
VkResult WithLayout(Device& device, const VkComputePipelineCreateInfo& info, Make make) {
    if (!(FlagsOf(info) & VK_PIPELINE_CREATE_2_DESCRIPTOR_HEAP_BIT_EXT)) {
        return make(info);
    }
    std::shared_ptr<const kernel::ResourceLayout> heap;
    FORNAX_RETURN_IF_FAILED(FindHeapLayout(device, info, heap));
    PipelineLayout layout(device, std::move(heap));
    VkComputePipelineCreateInfo whole = info;
    whole.layout = ToHandle(&layout);
    return make(whole);
}

}  // namespace

VkResult GetKernelKey(Device& device, const VkComputePipelineCreateInfo& info, std::string& key) {
    auto compiler = device.physical_device().compiler();
    if (!compiler) {
        return Fail(device, compiler.error());
    }
    return WithLayout(device, info, [&](const VkComputePipelineCreateInfo& whole) {
        key = (*compiler)->Key(MakeRequest(device, whole));
        return VK_SUCCESS;
    });
}

VkResult FindCachedKernel(Device& device,
                          const VkComputePipelineCreateInfo& info,
                          CapturedKernel& found) {
    auto compiler = device.physical_device().compiler();
    if (!compiler) {
        return Fail(device, compiler.error());
    }
    return WithLayout(device, info, [&](const VkComputePipelineCreateInfo& whole) -> VkResult {
        const auto request = MakeRequest(device, whole);
        auto kernel = (*compiler)->Lookup(request);
        if (!kernel) {
            return Fail(device, kernel.error());
        }
        if (!*kernel) {
            return VK_PIPELINE_BINARY_MISSING_KHR;
        }
        found = {CopySource(request), (*compiler)->Key(request), std::move(*kernel)};
        return VK_SUCCESS;
    });
}

VkResult ComputePipeline::Create(kernel::KernelCompiler& compiler,
                                 const VkComputePipelineCreateInfo& info,
                                 PipelineCache* cache,
                                 bool* cache_hit) {
    const VkPipelineCreateFlags2 flags = FlagsOf(info);
    const auto& layout = *FromHandle<PipelineLayout>(info.layout);
    KernelBinary binary;
    kernel::CompileRequest request;
    KernelPointer kernel;
    if (HasBinaries(info)) {
        auto read = ReadBinaryOf(info);
        if (!read) {
            return Fail(device(), read.error());
        }
        binary = std::move(*read);
        request = binary.source.MakeRequest(device(), layout, NeedsBounds(device(), info));
        kernel = binary.Load(compiler, request);
    } else {
        request = MakeRequest(device(), info);
    }
    // "Implementations should not store pipeline data to an internal cache" when it is captured.
    const bool capture = flags & VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR;
    if (capture && request.disk == kernel::DiskUse::kReadAndWrite) {
        request.disk = kernel::DiskUse::kRead;
    }
    if (!kernel) {
        const bool may_compile =
            !(flags & VK_PIPELINE_CREATE_2_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT) &&
            !request.spirv_digest;
        auto got = GetKernel(compiler, request, cache, may_compile, cache_hit);
        if (!got) {
            return Fail(device(), got.error());
        }
        if (!*got) {
            return VK_PIPELINE_COMPILE_REQUIRED;
        }
        kernel = std::move(*got);
    }
    if (capture) {
        captured_ = std::make_unique<CapturedKernel>(
            CapturedKernel{CopySource(request), compiler.Key(request), kernel});
    }
    subgroup_size_ = request.options.subgroup_size;
    compiled_ = std::move(kernel);
    return kernel_.Init(device(), compiled_, layout);
}

VkResult ComputePipeline::Init(const VkComputePipelineCreateInfo& info, PipelineCache* cache) {
    const auto start = std::chrono::steady_clock::now();
    Feedback feedback;
    auto compiler = device().physical_device().compiler();
    const VkResult result = compiler ? Create(**compiler, info, cache, &feedback.cache_hit)
                                     : Fail(device(), compiler.error());
    feedback.duration_ns = static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    WriteFeedback(info, result, feedback);
    return result;
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
        const VkResult one = WithLayout(
            *FromHandle<Device>(device), infos[i], [&](const VkComputePipelineCreateInfo& whole) {
                return CreateObject<ComputePipeline>(device, callbacks, &pipelines[i], whole,
                                                     FromHandle<PipelineCache>(cache));
            });
        if (one == VK_SUCCESS) {
            continue;
        }
        if (result >= VK_SUCCESS) {
            result = one;
        }
        if (FlagsOf(infos[i]) & VK_PIPELINE_CREATE_2_EARLY_RETURN_ON_FAILURE_BIT) {
            break;
        }
    }
    return result;
}

FORNAX_ENTRY_POINT(void)
vkDestroyPipeline(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* callbacks) {
    DestroyObject<ComputePipeline>(device, callbacks, pipeline);
}

}  // namespace fornax::driver
