// Derivatives through the reader: which invocations make a quad, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/spirv/derivative_cases.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

using ::testing::HasSubstr;

TEST(ReaderDerivatives, EveryKindOfGroup) {
    uint32_t subgroup_size = 8;
    for (const DerivativeRun& run : DerivativeRuns()) {
        const Words module = CompileGlsl(run.Shader());
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = subgroup_size;
        subgroup_size = subgroup_size == 64 ? 8 : subgroup_size * 2;
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ShaderData data;
        data.workgroups = DerivativeRun::kWorkgroups;
        data.output = run.FreshOutput();
        data.storage = run.Input();
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_EQ(run.FirstWrong(data.output), "");
    }
}

// A shader that sees quads only leaves the number of lanes to the compiler.
TEST(ReaderDerivatives, QuadsDoNotTellTheSizeOfSubgroups) {
    const std::string before = R"(#version 450
#extension GL_KHR_compute_shader_derivatives : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_quad : require
layout(local_size_x = 32) in;
layout(derivative_group_linearKHR) in;
layout(set = 0, binding = 0) buffer Out { float o[]; };
void main() {
    float p = float(gl_LocalInvocationIndex);
)";
    const std::pair<const char*, uint32_t> cases[] = {
        {"o[0] = dFdx(p) + subgroupQuadSwapVertical(p);", 16},
        {"o[0] = dFdx(p) + float(gl_SubgroupSize);", 64},
        {"o[0] = dFdx(p); if (subgroupElect()) o[1] = p;", 64},
        {"o[0] = dFdx(p); subgroupBarrier(); o[1] = o[0];", 64},
        {"o[0] = p;", 64},
    };
    for (const auto& [body, lanes] : cases) {
        const Words module = CompileGlsl(before + body + "\n}\n");
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = 64;
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->subgroup_size, lanes) << body;
    }
}

std::string RefusalOf(const std::string& modes, const std::string& size) {
    const Words module = AssembleSpirv(R"(
               OpCapability Shader
               OpCapability ComputeDerivativeGroupQuadsKHR
               OpCapability ComputeDerivativeGroupLinearKHR
               OpExtension "SPV_KHR_compute_shader_derivatives"
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main"
               OpExecutionMode %main LocalSize )" +
                                       size + "\n" + modes + R"(
       %void = OpTypeVoid
         %fn = OpTypeFunction %void
      %float = OpTypeFloat 32
        %one = OpConstant %float 1
       %main = OpFunction %void None %fn
      %entry = OpLabel
         %dx = OpDPdx %float %one
               OpReturn
               OpFunctionEnd
)");
    const Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    return kernel.ok() ? "" : kernel.error().message;
}

TEST(ReaderDerivatives, GroupsMustFitTheWorkgroup) {
    const std::string quads = "OpExecutionMode %main DerivativeGroupQuadsKHR\n";
    const std::string linear = "OpExecutionMode %main DerivativeGroupLinearKHR\n";
    EXPECT_EQ(RefusalOf(quads, "4 2 3"), "");
    EXPECT_EQ(RefusalOf(linear, "1 2 6"), "");
    EXPECT_THAT(RefusalOf("", "4 2 1"),
                HasSubstr("takes derivatives, and the entry point has neither of the "
                          "execution modes DerivativeGroupQuadsKHR and DerivativeGroupLinearKHR"));
    EXPECT_THAT(RefusalOf(quads, "3 2 1"), HasSubstr("x and y must be multiples of 2"));
    EXPECT_THAT(RefusalOf(quads, "4 1 1"), HasSubstr("x and y must be multiples of 2"));
    EXPECT_THAT(RefusalOf(linear, "3 2 1"),
                HasSubstr("3 x 2 x 1 invocations, which is no multiple of 4"));
    EXPECT_THAT(RefusalOf(quads + linear, "4 4 1"),
                HasSubstr("asks for a second kind of derivative group"));
}

}  // namespace
}  // namespace fornax::kernel
