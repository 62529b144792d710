// What a device of the HAL has to know of a compiled kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "compiler/kernel/interface/compiled_kernel.h"
#include "hal/executable.h"

namespace fornax::kernel {

// The executable keeps the kernel. Dispatches bring `push_constant_bytes`.
inline hal::KernelDesc DescribeExecutable(std::shared_ptr<const CompiledKernel> kernel,
                                          uint32_t push_constant_bytes) {
    return {
        .entry = kernel->entry,
        .context = kernel->context,
        .workgroup_size = kernel->workgroup_size,
        .shared_bytes = kernel->shared_bytes,
        .scratch_bytes = kernel->scratch_bytes,
        .push_constant_bytes = push_constant_bytes,
        .descriptor_set_mask = kernel->used_sets,
        .independent_workgroups = kernel->independent_workgroups,
        .interruptible = kernel->interruptible,
        .region_counters = kernel->cost ? kernel->cost->counters : 0,
        .foresight = kernel->foresight(),
        .name = kernel->name,
        .code = std::move(kernel),
    };
}

// The kernel of such an executable.
inline const CompiledKernel& KernelOf(const hal::Executable& executable) {
    return *static_cast<const CompiledKernel*>(executable.desc().code.get());
}

}  // namespace fornax::kernel
