// Every operation of a subgroup through the reader, at every size, for full and partial subgroups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/reconvergence.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "compiler/kernel/spirv/subgroup_cases.h"

namespace fornax::kernel {
namespace {

using ::testing::HasSubstr;
using Needs = SubgroupCase::Needs;

void CheckCases(Needs needs, const std::string& options = "") {
    for (uint32_t condition = 0; condition < SubgroupRun::kConditions; ++condition) {
        const SubgroupRun run{needs, condition};
        const Words module = CompileGlsl(run.Shader(), options);
        for (uint32_t size : {8u, 16u, 32u, 64u}) {
            CompileRequest request = MakeRequest(module);
            request.options.subgroup_size = size;
            Result<ir::Kernel> kernel = ReadSpirv(request);
            ASSERT_TRUE(kernel.ok()) << kernel.error().message;
            ShaderData data;
            data.workgroups = SubgroupRun::kWorkgroups;
            data.output = run.FreshOutput();
            data.storage = run.Input();
            Status status = RunShader(*kernel, data);
            ASSERT_TRUE(status.ok()) << status.error().message;
            ASSERT_EQ(run.FirstWrong(size, data.output), "");
        }
    }
}

TEST(ReaderSubgroups, CoreOperations) {
    CheckCases(Needs::kCore);
}
TEST(ReaderSubgroups, LanesNamedAtRunTime) {
    CheckCases(Needs::kSpirv15, "--target-env spirv1.5");
}
TEST(ReaderSubgroups, KhrForms) {
    CheckCases(Needs::kKhrForms);
}
TEST(ReaderSubgroups, Rotate) {
    CheckCases(Needs::kRotate);
}
TEST(ReaderSubgroups, Partitioned) {
    CheckCases(Needs::kPartitioned);
}
TEST(ReaderSubgroups, QuadControl) {
    CheckCases(Needs::kQuadControl);
}
TEST(ReaderSubgroups, OtherWidths) {
    CheckCases(Needs::kSmallTypes);
}

TEST(ReaderSubgroups, LanesReconvergeMaximally) {
    size_t compared = 0;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
        const ReconvergenceProgram program(seed);
        const uint32_t size = 8u << seed % 4;
        const std::vector<uint32_t> expected = program.Expected(size);
        if (expected.empty()) {
            continue;
        }
        ++compared;
        const Words module = CompileGlsl(program.Shader());
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = size;
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ShaderData data;
        data.workgroups = 1;
        data.output.resize(expected.size());
        data.storage = {0, 1, 2, 3};
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_EQ(data.output, expected) << "seed " << seed << "\n" << program.Shader();
    }
    EXPECT_GT(compared, 20u);
}

TEST(ReaderSubgroups, WrongOperandsAreErrors) {
    auto message = [](const std::string& body) {
        const Words module = AssembleSpirv(R"(
            OpCapability Shader
            OpCapability GroupNonUniform
            OpCapability GroupNonUniformVote
            OpCapability GroupNonUniformArithmetic
            OpCapability GroupNonUniformClustered
            OpCapability GroupNonUniformBallot
            OpMemoryModel Logical GLSL450
            OpEntryPoint GLCompute %main "main"
            OpExecutionMode %main LocalSize 8 1 1
            %void = OpTypeVoid
            %fn = OpTypeFunction %void
            %bool = OpTypeBool
            %uint = OpTypeInt 32 0
            %float = OpTypeFloat 32
            %yes = OpConstantTrue %bool
            %c2 = OpConstant %uint 2
            %c3 = OpConstant %uint 3
            %f1 = OpConstant %float 1
            %main = OpFunction %void None %fn
            %entry = OpLabel
            )" + body + "\nOpReturn\nOpFunctionEnd\n");
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        return kernel.ok() ? std::string() : kernel.error().message;
    };
    EXPECT_EQ(message("%r = OpGroupNonUniformAll %bool %c3 %yes"), "");
    EXPECT_THAT(message("%r = OpGroupNonUniformAll %bool %c2 %yes"), HasSubstr("the scope 2"));
    EXPECT_THAT(message("%r = OpGroupNonUniformAll %bool %c3 %c2"), HasSubstr("no boolean"));
    EXPECT_THAT(message("%r = OpGroupNonUniformIAdd %float %c3 Reduce %f1"),
                HasSubstr("another kind of type"));
    EXPECT_THAT(message("%r = OpGroupNonUniformFAdd %uint %c3 Reduce %c2"),
                HasSubstr("another kind of type"));
    EXPECT_THAT(message("%r = OpGroupNonUniformIAdd %uint %c3 ClusteredReduce %c2 %c3"),
                HasSubstr("no power of two"));
    EXPECT_THAT(message("%r = OpGroupNonUniformIAdd %uint %c3 ClusteredReduce %c2"),
                HasSubstr("lacks the last operand"));
    EXPECT_THAT(message("%r = OpGroupNonUniformBallotFindLSB %uint %c3 %c2"),
                HasSubstr("no vector of four"));
    EXPECT_THAT(message("%r = OpGroupNonUniformLogicalAnd %bool %c3 Reduce %c2"),
                HasSubstr("no boolean"));
}

}  // namespace
}  // namespace fornax::kernel
