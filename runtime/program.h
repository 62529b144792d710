// A plan on a device: its pipelines and constants, shared by all that run it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/plan/plan.h"
#include "runtime/compile_model.h"
#include "runtime/plan/launches.h"
#include "runtime/vulkan/buffer.h"
#include "runtime/vulkan/device.h"
#include "runtime/vulkan/pipeline.h"

namespace fornax::runtime {

struct PipelineReport {
    size_t pipelines = 0;
    // How many of them the driver took from the pipeline cache it was given; only if it can tell.
    size_t from_cache = 0;
    bool cache_known = false;
    double milliseconds = 0;  // for all of them
};

struct ConstantPlace {
    const vulkan::Buffer* buffer = nullptr;
    uint64_t offset = 0;  // from Buffer::data()
};

// What kernels may use on a device.
graph::loop::Target TargetOf(const vulkan::Device& device);

// Immutable, so safe to share between threads.
class Program {
  public:
    // Makes the plan's kernels to SPIR-V and to pipelines, on all processors, and gives its
    // constants to the device: those that it can use where they are stay there, such as mapped
    // files of the cache; of the others the program keeps no bytes, and those of the plan go when
    // the caller's copy does. `plan` is valid (graph::ValidatePlan).
    // `pipeline_cache` is what PipelineCacheData() gave on the same driver, or empty. `progress` is
    // told of each pipeline.
    static Result<std::shared_ptr<const Program>> Create(std::shared_ptr<vulkan::Device> device,
                                                         graph::Plan plan,
                                                         std::span<const std::byte> pipeline_cache,
                                                         const ProgressFunction& progress = {});

    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    const std::shared_ptr<vulkan::Device>& device() const { return device_; }
    const graph::Plan& plan() const { return plan_; }
    std::span<const Stage> stages() const { return stages_; }
    std::span<const KernelInterface> kernels() const { return kernels_; }
    const vulkan::ComputePipeline& pipeline(graph::KernelId id) const {
        return pipelines_[id.value()];
    }
    const LaunchLimits& limits() const { return limits_; }
    // Where a constant of at least a byte lies.
    const ConstantPlace& constant(graph::BlockId id) const { return constants_[id.value()]; }

    const PipelineReport& report() const { return report_; }
    std::vector<std::byte> PipelineCacheData() const { return factory_->CacheData(); }

  private:
    Program() = default;
    Status MakePipelines(std::span<const std::byte> pipeline_cache,
                         const ProgressFunction& progress);
    Status PlaceConstants();
    bool ImportConstant(size_t index);

    std::shared_ptr<vulkan::Device> device_;
    graph::Plan plan_;
    std::vector<Stage> stages_;
    LaunchLimits limits_;
    std::unique_ptr<vulkan::PipelineFactory> factory_;
    std::vector<KernelInterface> kernels_;
    std::vector<vulkan::ComputePipeline> pipelines_;  // by kernel
    // Buffers of constants; the plan keeps the bytes of an imported one.
    std::vector<std::unique_ptr<vulkan::Buffer>> buffers_;
    std::vector<ConstantPlace> constants_;  // by block
    PipelineReport report_;
};

}  // namespace fornax::runtime
