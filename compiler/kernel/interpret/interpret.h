// The slow, obvious interpreter of the kernel IR: the oracle that passes and generated code are
// compared with.
//
// It runs one invocation at a time through the same structures that compiled kernels get
// (hal/kernel_abi.h), so it can stand in for a kernel's entry. All memory accesses are checked as
// if the kernel had robust buffer access; undefined values, fresh locals and reads outside of
// private or constant memory are 0.
#pragma once

#include "base/result.h"
#include "compiler/kernel/ir/kernel.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

struct InterpretLimits {
    uint64_t steps = uint64_t{1} << 32;  // instructions of all invocations
    // Told of each workgroup, and asked now and then whether to stop; may be null.
    hal::WorkerFrame* worker = nullptr;
};

// Runs the workgroups [first, first + count) in order. The kernel must be verified. Gives
// kDeviceLost if an invocation reaches Unreachable or its barriers do not match, kTimeout at the
// limit or when the worker is asked to stop.
Status Interpret(const ir::Kernel& kernel,
                 const hal::DispatchFrame& dispatch,
                 uint64_t first_workgroup,
                 uint64_t count,
                 const InterpretLimits& limits = {});

}  // namespace fornax::kernel
