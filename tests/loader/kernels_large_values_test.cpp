// Structures of arrays by value through the loader, as Slang passes them to functions.
#include <array>

#include "compiler/kernel/spirv/large_value_cases.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using KernelsLargeValuesTest = VulkanTest;

// The first is small enough for scalars.
TEST_F(KernelsLargeValuesTest, FunctionsOverArrays) {
    constexpr uint32_t kWorkgroups = 6;
    for (uint32_t elements : {20u, 100u, 333u}) {
        std::array buffers = {MakeBuffer(8 * kWorkgroups)};
        const kernel::Words module = kernel::AssembleSpirv(kernel::LargeValueChain(elements, 5));
        Run(MakePipeline(module, buffers), kWorkgroups);
        for (uint32_t x = 0; x < 8 * kWorkgroups; ++x) {
            ASSERT_EQ(buffers[0].words[x], kernel::LargeValueResult(elements, 5, x))
                << x << " of " << elements;
        }
    }
}

}  // namespace
}  // namespace fornax::test
