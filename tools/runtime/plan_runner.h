// Runs a plan of the graph compiler on a Vulkan device.
//
// Creating a PlanRunner allocates the plan's region once, makes pipelines and descriptor sets, and
// records the whole plan into one command buffer. Each Run() copies the inputs in, submits that
// command buffer, waits, and copies the outputs out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/legacy_graph/plan.h"
#include "tools/runtime/vulkan_device.h"

namespace fornax::runtime {

struct PipelineReport {
    size_t pipelines = 0;
    // How many of them the driver took from the pipeline cache it was given; only if it can tell.
    size_t from_cache = 0;
    bool cache_known = false;
    double milliseconds = 0;  // for all of them
};

class PlanRunner {
  public:
    // `plan` must be valid (ValidatePlan) and, like the device, outlive the runner.
    // `pipeline_cache` is what an earlier runner's PipelineCacheData() gave on the same driver, or
    // empty.
    static Result<std::unique_ptr<PlanRunner>> Create(const VulkanDevice& device,
                                                      const legacy_graph::Plan& plan,
                                                      std::span<const std::byte> pipeline_cache);
    ~PlanRunner();

    PlanRunner(const PlanRunner&) = delete;
    PlanRunner& operator=(const PlanRunner&) = delete;

    // inputs[i] holds the elements of plan.inputs[i], and outputs[i] takes those of
    // plan.outputs[i].
    Status Run(std::span<const std::span<const float>> inputs,
               std::span<const std::span<float>> outputs);

    // What the device took for each dispatch in the last Run(), in nanoseconds; empty when the
    // device has no timestamps.
    const std::vector<double>& dispatch_nanoseconds() const { return dispatch_nanoseconds_; }
    // From submission to the fence in the last Run().
    double submit_nanoseconds() const { return submit_nanoseconds_; }
    const PipelineReport& pipelines() const { return pipeline_report_; }
    // The driver's pipeline cache, to give to Create() next time; empty when the driver gives none.
    std::vector<std::byte> PipelineCacheData() const;

  private:
    PlanRunner(const VulkanDevice& device, const legacy_graph::Plan& plan)
        : device_(device), plan_(plan) {}

    Status CreateRegion();
    Status CreateSets();
    Status CreatePipelines(std::span<const std::byte> pipeline_cache);
    Result<VkPipeline> CreatePipeline(const legacy_graph::PlanDispatch& dispatch);
    VkPipelineLayout LayoutOf(const legacy_graph::PlanDispatch& dispatch) const;
    Status RecordCommands();
    Status ReadTimestamps();

    const VulkanDevice& device_;
    const legacy_graph::Plan& plan_;

    VkBuffer region_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    std::byte* mapped_ = nullptr;

    // By number of bindings; sets and pipelines of one number share a layout.
    std::vector<VkDescriptorSetLayout> set_layouts_;
    std::vector<VkPipelineLayout> pipeline_layouts_;
    VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
    std::vector<VkDescriptorSet> sets_;  // as plan_.sets

    VkPipelineCache pipeline_cache_ = VK_NULL_HANDLE;
    std::vector<VkPipeline> pipelines_;         // distinct ones
    std::vector<size_t> pipeline_of_dispatch_;  // as plan_.dispatches
    PipelineReport pipeline_report_;

    VkQueryPool timestamps_ = VK_NULL_HANDLE;  // two a dispatch: before and behind
    VkCommandPool command_pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
    std::vector<double> dispatch_nanoseconds_;
    double submit_nanoseconds_ = 0;
};

}  // namespace fornax::runtime
