// Float controls, explicit layouts of workgroup memory and dot products as the reader sees them:
// what glslang cannot express, and what must be refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

// A shader that adds a product to a float of the output buffer.
std::string Module(const std::string& modes, const std::string& decorations) {
    return R"(
OpCapability Shader
OpCapability FloatControls2
OpExtension "SPV_KHR_float_controls2"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 8 1 1
)" + modes +
           R"(
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %floats ArrayStride 4
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding 0
)" + decorations +
           R"(
%void = OpTypeVoid
%function = OpTypeFunction %void
%float = OpTypeFloat 32
%half = OpTypeFloat 64
%uint = OpTypeInt 32 0
%zero = OpConstant %uint 0
%none = OpConstant %uint 0
%contract = OpConstant %uint 0x10000
%two = OpConstant %float 2
%floats = OpTypeRuntimeArray %float
%block = OpTypeStruct %floats
%pointer = OpTypePointer Uniform %block
%element = OpTypePointer Uniform %float
%buffer = OpVariable %pointer Uniform
%main = OpFunction %void None %function
%label = OpLabel
%place = OpAccessChain %element %buffer %zero %zero
%x = OpLoad %float %place
%product = OpFMul %float %x %x
%sum = OpFAdd %float %product %two
OpStore %place %sum
OpReturn
OpFunctionEnd
)";
}

// "fmul" and "fadd" with or without the flag.
std::pair<bool, bool> MayFuse(const std::string& text) {
    const Words module = AssembleSpirv(text);
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    std::pair<bool, bool> may = {true, true};
    for (uint32_t i = 0; i < kernel->num_insts(); ++i) {
        const ir::Instruction& inst = kernel->inst(ir::InstId{i});
        if (inst.op == ir::Op::kFMul) {
            may.first = !(inst.flags & ir::kNoContraction);
        }
        if (inst.op == ir::Op::kFAdd) {
            may.second = !(inst.flags & ir::kNoContraction);
        }
    }
    return may;
}

TEST(ReaderFloatControls, FastMathFlagsDecideContraction) {
    using Fuses = std::pair<bool, bool>;
    EXPECT_EQ(MayFuse(Module("", "")), Fuses(true, true));
    EXPECT_EQ(MayFuse(Module("OpExecutionModeId %main FPFastMathDefault %float %none", "")),
              Fuses(false, false));
    EXPECT_EQ(MayFuse(Module("OpExecutionModeId %main FPFastMathDefault %float %contract", "")),
              Fuses(true, true));
    // Another type's default.
    EXPECT_EQ(MayFuse(Module("OpExecutionModeId %main FPFastMathDefault %half %none", "")),
              Fuses(true, true));
    EXPECT_EQ(MayFuse(Module("OpExecutionModeId %main FPFastMathDefault %float %none",
                             "OpDecorate %sum FPFastMathMode AllowContract")),
              Fuses(false, true));
    EXPECT_EQ(MayFuse(Module("", "OpDecorate %product FPFastMathMode NotNaN|NotInf")),
              Fuses(false, true));
}

TEST(ReaderFloatControls, ModesThatHoldAreAcceptedAndOthersRefused) {
    for (const char* mode : {"OpExecutionMode %main DenormPreserve 16",
                             "OpExecutionMode %main SignedZeroInfNanPreserve 32",
                             "OpExecutionMode %main RoundingModeRTE 64"}) {
        const Words module = AssembleSpirv(Module(mode, ""));
        EXPECT_TRUE(ReadSpirv(MakeRequest(module)).ok()) << mode;
    }
    for (const char* mode :
         {"OpExecutionMode %main DenormFlushToZero 8", "OpExecutionMode %main RoundingModeRTZ 4",
          "OpExecutionMode %main DenormPreserve 8",
          "OpExecutionModeId %main FPFastMathDefault %uint %none"}) {
        const Words module = AssembleSpirv(Module(mode, ""));
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        ASSERT_FALSE(kernel.ok()) << mode;
        EXPECT_NE(kernel.error().message.find("OpExecutionMode"), std::string::npos)
            << kernel.error().message;
    }
}

TEST(ReaderDotProduct, PackedBytesAreSummed) {
    const Words module =
        CompileGlsl(Shader("o[i] = uint(dotPacked4x8EXT(int(s[i]), s[i + 1]) + int(i)) ^"
                           " dotPacked4x8AccSatEXT(s[i], s[i + 1], 0xffffff00u);",
                           "#extension GL_EXT_integer_dot_product : require\n"
                           "layout(set = 0, binding = 1) buffer S { uint s[]; };"));
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(16, 0);
    for (uint32_t i = 0; i < 17; ++i) {
        data.storage.push_back(0x80ff7f01u * (i + 1));
    }
    Status status = RunShader(*kernel, data);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (uint32_t i = 0; i < 16; ++i) {
        auto mixed = static_cast<int32_t>(i);
        uint64_t plain = 0xffffff00u;
        for (uint32_t k = 0; k < 32; k += 8) {
            const auto a = static_cast<uint8_t>(data.storage[i] >> k);
            const auto b = static_cast<uint8_t>(data.storage[i + 1] >> k);
            mixed += static_cast<int8_t>(a) * b;
            plain += uint64_t{a} * b;
        }
        const auto saturated = static_cast<uint32_t>(std::min<uint64_t>(plain, UINT32_MAX));
        EXPECT_EQ(data.output[i], static_cast<uint32_t>(mixed) ^ saturated) << i;
    }
}

}  // namespace
}  // namespace fornax::kernel
