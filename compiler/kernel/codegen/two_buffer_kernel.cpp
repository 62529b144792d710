#include "compiler/kernel/codegen/two_buffer_kernel.h"
#include "compiler/kernel/ir/text.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

namespace fornax::kernel {

ir::Kernel TwoBufferKernel(const std::string& attributes,
                           std::string_view prologue,
                           std::string_view body) {
    std::string text = "kernel \"test\" " + attributes + R"( {
binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
body {
    %zero:i32 = const 0
    %two:i32 = const 2
    %in:buffer = buffer 0, %zero
    %out:buffer = buffer 1, %zero
)";
    text.append(prologue).append(body).append("}\n}\n");
    Result<ir::Kernel> kernel = ir::ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message << "\n" << text;
    return kernel.ok() ? std::move(*kernel) : ir::Kernel();
}

std::vector<uint32_t> Counting(uint32_t count, uint32_t first) {
    std::vector<uint32_t> words(count);
    std::iota(words.begin(), words.end(), first);
    return words;
}

void ForEachWidth(const ir::Kernel& kernel,
                  const Buffers& buffers,
                  const Launch& launch,
                  const std::function<void(const Buffers&)>& check) {
    for (uint32_t lanes : {0u, 1u, 4u, 8u, 16u, 32u, 64u}) {
        for (const char* cpu : {"", "x86-64-v2", "x86-64-v3"}) {
            Result<RunnableKernel> native = RunnableKernel::Create(kernel, lanes, cpu);
            ASSERT_TRUE(native.ok()) << native.error().message;
            std::vector<uint32_t> places = launch.misaligned_words;
            places.push_back(RunnableKernel::kAtTheEnd);
            for (const uint32_t misaligned : places) {
                SCOPED_TRACE(testing::Message() << "lanes " << lanes << " cpu '" << cpu
                                                << "' misaligned " << misaligned);
                Buffers copy = buffers;
                Status status = native->Run(copy, launch.push_constants, launch.groups, misaligned);
                ASSERT_TRUE(status.ok()) << status.error().message << native->llvm_ir();
                check(copy);
                if (testing::Test::HasFailure()) {
                    ADD_FAILURE() << native->llvm_ir();
                    return;
                }
            }
        }
    }
}

}  // namespace fornax::kernel
