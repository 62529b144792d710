// Compute pipeline: one kernel, made with the caches' help.
#pragma once

#include <memory>
#include <string>

#include <vulkan/vulkan_core.h>

#include "driver/compute_kernel.h"
#include "driver/kernel_binary.h"
#include "driver/object.h"

namespace fornax::driver {

class PipelineCache;

// A kernel and all that it was made of.
struct CapturedKernel {
    KernelSource source;
    std::string key;  // KernelCompiler's
    std::shared_ptr<const kernel::CompiledKernel> kernel;
};

class ComputePipeline : public DeviceObject {
  public:
    using Handle = VkPipeline;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_PIPELINE;

    explicit ComputePipeline(Device& device) : DeviceObject(device, kObjectType) {}

    // VK_PIPELINE_COMPILE_REQUIRED where the flags forbid a compilation that would be needed.
    VkResult Init(const VkComputePipelineCreateInfo& info, PipelineCache* cache);

    const ComputeKernel& kernel() const { return kernel_; }
    const kernel::CompiledKernel& compiled() const { return *compiled_; }
    uint32_t subgroup_size() const { return subgroup_size_; }

    // With VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR, until it is released; else null.
    const CapturedKernel* captured() const { return captured_.get(); }
    void ReleaseCaptured() { captured_.reset(); }

  private:
    VkResult Create(kernel::KernelCompiler& compiler,
                    const VkComputePipelineCreateInfo& info,
                    PipelineCache* cache,
                    bool* cache_hit);

    ComputeKernel kernel_;
    std::shared_ptr<const kernel::CompiledKernel> compiled_;
    uint32_t subgroup_size_ = 0;
    std::unique_ptr<CapturedKernel> captured_;
};

// The key of the kernel that a pipeline would have.
VkResult GetKernelKey(Device& device, const VkComputePipelineCreateInfo& info, std::string& key);
// The kernel if no compilation is needed, else VK_PIPELINE_BINARY_MISSING_KHR.
VkResult FindCachedKernel(Device& device,
                          const VkComputePipelineCreateInfo& info,
                          CapturedKernel& found);

}  // namespace fornax::driver
