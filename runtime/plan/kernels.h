// From a plan's kernels to SPIR-V, for whoever compiles it further: pipelines of a Vulkan device or
// executables of the HAL.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/plan/plan.h"
#include "runtime/plan/launches.h"

namespace fornax::runtime {

// The entry point is "main". Buffers are bindings 0, 1, ... of set 0, push constants u32 words from
// offset 0 on.
struct KernelShader {
    std::string name;  // for messages
    std::vector<uint32_t> words;
    std::vector<uint32_t> constants;  // specialisation constants 0, 1, ...
    uint32_t binding_count = 0;
    KernelInterface interface;

    uint32_t push_constant_count() const {
        return static_cast<uint32_t>(interface.push_constants.size());
    }
};

// Calls `make` with the shader of each kernel and its number, on all processors: from several
// threads at once. `done` may be empty, and is called by one thread at a time. Fails with the error
// of the first kernel, in their order, that has one.
Status MakeKernels(const graph::Plan& plan,
                   const graph::loop::Target& target,
                   const std::function<Status(size_t kernel, const KernelShader& shader)>& make,
                   const std::function<void(size_t done, size_t total)>& done = {});

}  // namespace fornax::runtime
