// What a dispatch runs: an executable of the device, with what recording needs to know of the
// layout (which the application may destroy). Pipelines and shader objects each hold one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <vulkan/vulkan_core.h>

#include "compiler/kernel/interface/compiled_kernel.h"
#include "compiler/kernel/interface/resource_layout.h"
#include "hal/command_stream.h"
#include "hal/executable.h"

namespace fornax::driver {

class Device;
class PipelineLayout;

class ComputeKernel {
  public:
    VkResult Init(const Device& device,
                  const std::shared_ptr<const kernel::CompiledKernel>& kernel,
                  const PipelineLayout& layout);

    const std::shared_ptr<const hal::Executable>& executable() const { return executable_; }
    // The same under another name; one for all who ask for it, and kept as long as this.
    const std::shared_ptr<const hal::Executable>& NamedExecutable(const std::string& name) const;
    // A dispatch must bring this many bytes of push constants, this many sets, and the dynamic
    // offsets of each set one after another.
    uint32_t push_constant_bytes() const { return push_constant_bytes_; }
    uint32_t set_count() const { return set_count_; }
    uint32_t dynamic_offset_count(uint32_t set) const { return dynamic_offset_counts_[set]; }
    // With descriptor heaps, in place of sets; else null.
    const kernel::ResourceLayout* heap() const { return heap_.get(); }

  private:
    std::shared_ptr<const hal::Executable> executable_;
    mutable std::mutex named_mutex_;
    mutable std::map<std::string, std::shared_ptr<const hal::Executable>> named_;
    std::shared_ptr<const kernel::ResourceLayout> heap_;
    uint32_t push_constant_bytes_ = 0;
    uint32_t set_count_ = 0;
    std::array<uint8_t, hal::kMaxDescriptorSets> dynamic_offset_counts_ = {};
};

}  // namespace fornax::driver
