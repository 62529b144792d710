// What the kernel compiler gives: native code of one kernel, and what a dispatch has to know of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/kernel/interface/binding_layout.h"
#include "compiler/kernel/interface/kernel_cost.h"
#include "hal/foresight.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

// Native code of one kernel. Keeps its memory mapped while it lives. Better code may take the place
// of what the entry leads to at any time; what it computes stays the same.
class CompiledKernel {
  public:
    virtual ~CompiledKernel() = default;

    hal::KernelEntry entry = nullptr;
    const void* context = nullptr;  // what DispatchFrame::kernel_context must be
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    uint32_t shared_bytes = 0;
    uint32_t scratch_bytes = 0;
    uint32_t used_sets = 0;               // bit n: a dispatch needs descriptor set n
    bool independent_workgroups = false;  // none can wait for another one
    bool interruptible = false;           // as KernelDesc's: native code is
    std::string name;
    // Words of descriptors that a dispatch finds the same all the time, and that the code decides
    // by: compiled for their values (CompileRequest::known_words), it is faster.
    std::vector<DescriptorPlace> deciding_words;
    // With CompileOptions::timed: what its regions do. Else null.
    std::shared_ptr<const KernelCost> cost;
    bool from_disk_cache = false;
    bool storable = true;  // Serialized may have something to give
    // The native object and the facts above, for VkPipelineCache: KernelCompiler::Load takes it
    // back. Empty for a kernel that cannot be stored. May wait for a compilation in the background;
    // what it refers to does not change afterwards.
    virtual const std::vector<uint8_t>& Serialized() const { return serialized; }
    // Null if it makes no code for what is bound. Lives as long as the kernel.
    virtual const hal::Foresight* foresight() const { return nullptr; }

    std::vector<uint8_t> serialized;  // of kernels that are complete when they are made
};

}  // namespace fornax::kernel
