// For tests: a kernel of IR text over two storage buffers, run natively at every width and for
// every set of instructions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/codegen/kernel_harness.h"

namespace fornax::kernel {

using Buffers = std::vector<std::vector<uint32_t>>;

// Parses a kernel with `attributes` whose body is `prologue`, then `body`. In both, `%zero`, `%two`
// and the buffers `%in` (binding 0) and `%out` (binding 1) are there. A text that is no kernel
// fails the test and gives an empty one.
ir::Kernel TwoBufferKernel(const std::string& attributes,
                           std::string_view prologue,
                           std::string_view body);

// A prologue for workgroups of 64: `%i` counts all invocations, `%s` is the first push constant.
inline constexpr char kInvocationsOf64[] = R"(
    %wx:i32 = builtin workgroup_id_x
    %li:i32 = builtin local_index
    %size:i32 = const 64
    %first:i32 = imul %wx, %size
    %i:i32 = iadd %first, %li
    %s:i32 = load_push %zero align(4)
)";

// first, first + 1, ...
std::vector<uint32_t> Counting(uint32_t count, uint32_t first = 100);

struct Launch {
    uint32_t groups[3] = {1, 1, 1};
    std::vector<uint32_t> push_constants = {0};
    // The words behind a cache line that the buffers begin at; one run for each, and one more with
    // buffers that end where memory does.
    std::vector<uint32_t> misaligned_words = {4};
};

// Runs `kernel` on a copy of `buffers` with every number of lanes, for the host, for AVX2 and for
// SSE4, and gives `check` the copy. The first run that fails the test is the last one, and prints
// its LLVM IR.
void ForEachWidth(const ir::Kernel& kernel,
                  const Buffers& buffers,
                  const Launch& launch,
                  const std::function<void(const Buffers&)>& check);

}  // namespace fornax::kernel
