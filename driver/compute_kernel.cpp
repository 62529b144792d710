// Making executables of compiled kernels.
#include "driver/compute_kernel.h"

#include "compiler/kernel/interface/kernel_desc.h"
#include "driver/device.h"
#include "driver/pipeline_layout.h"

namespace fornax::driver {

VkResult ComputeKernel::Init(const Device& device,
                             const std::shared_ptr<const kernel::CompiledKernel>& kernel,
                             const PipelineLayout& layout) {
    heap_ = layout.heap();
    push_constant_bytes_ = layout.push_constant_bytes();
    set_count_ = static_cast<uint32_t>(layout.sets().size());
    for (uint32_t i = 0; i < set_count_; ++i) {
        dynamic_offset_counts_[i] = static_cast<uint8_t>(layout.sets()[i].dynamic_offset_count);
    }
    auto executable =
        device.hal().CreateExecutable(kernel::DescribeExecutable(kernel, push_constant_bytes_));
    if (!executable) {
        return Fail(device, executable.error());
    }
    executable_ = std::move(*executable);
    return VK_SUCCESS;
}

const std::shared_ptr<const hal::Executable>& ComputeKernel::NamedExecutable(
    const std::string& name) const {
    std::lock_guard lock(named_mutex_);
    std::shared_ptr<const hal::Executable>& named = named_[name];
    if (!named) {
        hal::KernelDesc desc = executable_->desc();
        desc.name = name;
        named = std::make_shared<const hal::Executable>(std::move(desc));
    }
    return named;
}

}  // namespace fornax::driver
