// The validator is asked, and says something against what is wrong.
#include "tests/graph/spirv_check.h"

#include <gtest/gtest.h>

#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::test {
namespace {

TEST(SpirvCheck, AKernelsModuleIsValidAndACutOneIsNot) {
    const Result<graph::loop::Kernel> kernel = graph::loop::ParseKernel(
        "kernel twice(in x: f32[8], out y: f32[8])\n"
        "  parallel $i < 8\n"
        "%0 = load x[$i]\n"
        "%1 = add %0, %0\n"
        "store y[$i] = %1\n");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Result<graph::loop::Module> module = graph::loop::EmitSpirv(*kernel, {});
    ASSERT_TRUE(module.ok()) << module.error().message;
    EXPECT_EQ(Validate(module->words), "");
    const std::span<const uint32_t> words = module->words;
    EXPECT_NE(Validate(words.first(words.size() - 1)), "");  // lacks OpFunctionEnd
}

}  // namespace
}  // namespace fornax::test
