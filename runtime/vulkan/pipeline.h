// Compute pipelines of kernels whose bindings are storage buffers 0, 1, ... of set 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/vulkan/device.h"

namespace fornax::vulkan {

struct ComputePipeline {
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    bool from_cache = false;  // only if the device has creation feedback
};

// What is to become a pipeline. `words` is SPIR-V with the entry point "main"; push constants are
// u32 words from offset 0 on.
struct KernelCode {
    std::string name;  // for messages
    std::span<const uint32_t> words;
    uint32_t binding_count = 0;
    uint32_t push_constant_count = 0;
    // Specialisation constant i is constants[i].
    std::span<const uint32_t> constants;
};

// Makes pipelines and owns them with their layouts. Thread-safe.
class PipelineFactory {
  public:
    // `cache_data` is what CacheData() gave on the same driver, or empty; data of another driver
    // are ignored.
    static Result<std::unique_ptr<PipelineFactory>> Create(std::shared_ptr<Device> device,
                                                           std::span<const std::byte> cache_data);
    ~PipelineFactory();

    PipelineFactory(const PipelineFactory&) = delete;
    PipelineFactory& operator=(const PipelineFactory&) = delete;

    // The pipeline stays as long as the factory.
    Result<ComputePipeline> Make(const KernelCode& code);
    // Empty when the driver gives none.
    std::vector<std::byte> CacheData() const;

  private:
    struct Layouts {
        VkDescriptorSetLayout set = VK_NULL_HANDLE;
        VkPipelineLayout pipeline = VK_NULL_HANDLE;
    };

    explicit PipelineFactory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
    Result<Layouts> LayoutsFor(uint32_t binding_count, uint32_t push_constant_count);

    const std::shared_ptr<Device> device_;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
    std::mutex mutex_;                                       // guards what follows
    std::map<uint32_t, VkDescriptorSetLayout> set_layouts_;  // by number of bindings
    std::map<std::pair<uint32_t, uint32_t>, VkPipelineLayout> pipeline_layouts_;
    std::vector<VkPipeline> pipelines_;
};

}  // namespace fornax::vulkan
