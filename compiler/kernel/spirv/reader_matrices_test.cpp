// Cooperative matrices: what the reader makes of them, in the interpreter, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "base/half.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

using testing::HasSubstr;

// Products of halves and of bytes, both layouts, elements changed one by one, an array of matrices.
TEST(ReaderMatrices, Products) {
    const Words module = CompileGlsl(R"(#version 460
        #extension GL_KHR_cooperative_matrix : require
        #extension GL_KHR_memory_scope_semantics : require
        #extension GL_KHR_shader_subgroup_basic : require
        #extension GL_EXT_shader_explicit_arithmetic_types : require
        #pragma use_vulkan_memory_model
        layout(local_size_x = 64) in;
        layout(set = 0, binding = 0) buffer Out { uint o[]; };
        layout(set = 0, binding = 1) buffer In { uvec4 s[]; };
        layout(push_constant) uniform Push { uint stride; uint more; };
        void main() {
            if (gl_LocalInvocationIndex >= gl_SubgroupSize)
                return;
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b[2];
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> c =
                coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.5);
            coopMatLoad(a, s, 0, stride, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(b[1], s, 48, 2, gl_CooperativeMatrixLayoutColumnMajor);
            for (int i = 0; i < a.length(); ++i)
                a[i] += float16_t(1);
            b[more] = b[1] * float16_t(2);
            c = coopMatMulAdd(a, b[more], c);
            coopMatStore(c, o, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> halves =
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.5);
            halves = coopMatMulAdd(a, b[more], halves);
            coopMatStore(halves, o, 576, 8, gl_CooperativeMatrixLayoutRowMajor);
            coopmat<int8_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> d;
            coopmat<uint8_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> e;
            coopMatLoad(d, s, 0, 1, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(e, s, 16, 1, gl_CooperativeMatrixLayoutRowMajor);
            coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> f =
                coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(c);
            f = coopMatMulAdd(d, e, f) * 3;
            coopMatStore(f, o, 256, 20, gl_CooperativeMatrixLayoutColumnMajor);
        })",
                                     "--target-env vulkan1.3");
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        SCOPED_TRACE(size);
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = size;
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ShaderData data;
        data.workgroups = 1;
        data.output.resize(256 + 320 + 128);
        std::vector<uint16_t> halves(640);
        for (size_t i = 0; i < halves.size(); ++i) {
            halves[i] = FloatToHalf(static_cast<float>(i % 23) - 11);
        }
        data.storage.resize(320);
        memcpy(data.storage.data(), halves.data(), 1280);
        data.push[0] = 3;  // a row of 24
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        const auto* bytes = reinterpret_cast<const uint8_t*>(data.storage.data());
        for (uint32_t row = 0; row < 16; ++row) {
            for (uint32_t column = 0; column < 16; ++column) {
                float sum = 0.5f;
                int32_t whole = 0;
                for (uint32_t k = 0; k < 16; ++k) {
                    sum += (HalfToFloat(halves[row * 24 + k]) + 1) * 2 *
                           HalfToFloat(halves[384 + column * 16 + k]);
                    whole +=
                        static_cast<int8_t>(bytes[row * 16 + k]) * bytes[256 + k * 16 + column];
                }
                ASSERT_EQ(std::bit_cast<float>(data.output[row * 16 + column]), sum)
                    << row << ", " << column;
                const uint32_t pair = data.output[576 + row * 8 + column / 2];
                ASSERT_EQ(pair >> column % 2 * 16 & 0xffff, FloatToHalf(sum))
                    << row << ", " << column;
                whole = (whole + static_cast<int32_t>(sum)) * 3;
                ASSERT_EQ(data.output[256 + column * 20 + row], static_cast<uint32_t>(whole))
                    << row << ", " << column;
            }
        }
    }
}

// Operands of f32 in buffers are loaded as wholes, which is how the emitter knows where they lie;
// what is in workgroup memory and what is added to are loads of elements.
TEST(ReaderMatrices, FloatProducts) {
    const Words module = CompileGlsl(R"(#version 460
        #extension GL_KHR_cooperative_matrix : require
        #extension GL_KHR_memory_scope_semantics : require
        #pragma use_vulkan_memory_model
        layout(local_size_x_id = 0) in;
        layout(set = 0, binding = 0) buffer Out { float o[]; };
        layout(set = 0, binding = 1) buffer In { vec4 s[]; };
        layout(push_constant) uniform Push { uint stride; };
        void main() {
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> c;
            coopMatLoad(a, s, 2, stride, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(b, s, 64, 5, gl_CooperativeMatrixLayoutColumnMajor);
            coopMatLoad(c, o, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
            c = coopMatMulAdd(a, b, c);
            coopMatStore(c, o, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
        })",
                                     "--target-env vulkan1.3");
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        SCOPED_TRACE(size);
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = size;
        request.specialization = {{.constant_id = 0, .bits = size}};
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        const std::string text = ir::PrintKernel(*kernel);
        size_t wholes = 0;
        for (size_t at = 0; (at = text.find("= matrix_load", at)) != std::string::npos; ++at) {
            ++wholes;
        }
        EXPECT_EQ(wholes, 2u);
        ShaderData data;
        data.workgroups = 1;
        std::vector<float> sums(256), operands(640);
        for (size_t i = 0; i < sums.size(); ++i) {
            sums[i] = static_cast<float>(i);
        }
        for (size_t i = 0; i < operands.size(); ++i) {
            operands[i] = static_cast<float>(i % 23) - 11;
        }
        data.output.resize(256);
        memcpy(data.output.data(), sums.data(), 1024);
        data.storage.resize(640);
        memcpy(data.storage.data(), operands.data(), 2560);
        data.push[0] = 6;  // vectors in a row
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        for (uint32_t i = 0; i < 256; ++i) {
            float sum = sums[i];
            for (uint32_t k = 0; k < 16; ++k) {
                sum += operands[8 + i / 16 * 24 + k] * operands[256 + i % 16 * 20 + k];
            }
            ASSERT_EQ(std::bit_cast<float>(data.output[i]), sum) << i;
        }
    }
}

// Matrix units take denormals for 0: products say where an execution mode forbids it.
TEST(ReaderMatrices, DenormPreserve) {
    for (const uint32_t width : {0u, 16u, 32u}) {
        const std::string mode =
            width == 0 ? ""
                       : "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], "
                         "capabilities = [4464], 4459, " +
                             std::to_string(width) + ");\n";
        const Words module = CompileGlsl(R"(#version 460
            #extension GL_KHR_cooperative_matrix : require
            #extension GL_KHR_memory_scope_semantics : require
            #extension GL_EXT_shader_explicit_arithmetic_types : require
            #extension GL_EXT_spirv_intrinsics : require
            #pragma use_vulkan_memory_model
            )" + mode + R"(
            layout(local_size_x = 32) in;
            layout(set = 0, binding = 0) buffer Out { float o[]; };
            void main() {
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;
                coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> c;
                coopMatLoad(a, o, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
                coopMatLoad(b, o, 512, 16, gl_CooperativeMatrixLayoutRowMajor);
                coopMatLoad(c, o, 1024, 16, gl_CooperativeMatrixLayoutRowMajor);
                c = coopMatMulAdd(a, b, c);
                coopMatStore(c, o, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
            })",
                                         "--target-env vulkan1.3");
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = 32;
        const Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        const char* product = width == 32 ? "matrix_muladd 32, " : "matrix_muladd 0, ";
        EXPECT_THAT(ir::PrintKernel(*kernel), HasSubstr(product)) << width;
    }
}

std::string Refusal(const std::string& types,
                    const std::string& body,
                    uint32_t subgroup_size = 32) {
    const Words module = AssembleSpirv(R"(
        OpCapability Shader
        OpCapability Float16
        OpCapability Int8
        OpCapability VulkanMemoryModel
        OpCapability CooperativeMatrixKHR
        OpExtension "SPV_KHR_cooperative_matrix"
        OpMemoryModel Logical Vulkan
        OpEntryPoint GLCompute %main "main" %buffer %private
        OpExecutionMode %main LocalSize 64 1 1
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %array ArrayStride 4
        OpDecorate %buffer DescriptorSet 0
        OpDecorate %buffer Binding 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %bool = OpTypeBool
        %byte = OpTypeInt 8 0
        %float = OpTypeFloat 32
        %half = OpTypeFloat 16
        %c0 = OpConstant %uint 0
        %c1 = OpConstant %uint 1
        %c2 = OpConstant %uint 2
        %c3 = OpConstant %uint 3
        %c7 = OpConstant %uint 7
        %c16 = OpConstant %uint 16
        %c1000000 = OpConstant %uint 1000000
        %f1 = OpConstant %float 1
        %array = OpTypeRuntimeArray %float
        %block = OpTypeStruct %array
        %to_block = OpTypePointer StorageBuffer %block
        %to_float = OpTypePointer StorageBuffer %float
        %buffer = OpVariable %to_block StorageBuffer
        %to_private = OpTypePointer Private %float
        %private = OpVariable %to_private Private
        %a = OpTypeCooperativeMatrixKHR %half %c3 %c16 %c16 %c0
        %b = OpTypeCooperativeMatrixKHR %half %c3 %c16 %c16 %c1
        %c = OpTypeCooperativeMatrixKHR %float %c3 %c16 %c16 %c2
        %null_a = OpConstantNull %a
        %null_b = OpConstantNull %b
        %null_c = OpConstantNull %c
        )" + types + R"(
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %place = OpAccessChain %to_float %buffer %c0 %c0
        )" + body + "\nOpReturn\nOpFunctionEnd\n",
                                       "spv1.6");
    CompileRequest request = MakeRequest(module);
    request.options.subgroup_size = subgroup_size;
    Result<ir::Kernel> kernel = ReadSpirv(request);
    return kernel.ok() ? std::string() : kernel.error().message;
}

TEST(ReaderMatrices, TypesThatAreNotListedAreRefused) {
    auto type = [](const std::string& operands) {
        return Refusal("%t = OpTypeCooperativeMatrixKHR " + operands, "");
    };
    EXPECT_EQ(type("%byte %c3 %c16 %c16 %c1"), "");
    EXPECT_THAT(type("%half %c2 %c16 %c16 %c0"), HasSubstr("only that of a subgroup"));
    EXPECT_THAT(type("%half %c3 %c7 %c16 %c0"), HasSubstr("has 7 rows and 16 columns"));
    EXPECT_THAT(type("%half %c3 %c16 %c1000000 %c0"), HasSubstr("1000000 columns"));
    EXPECT_THAT(type("%half %c3 %c16 %c0 %c0"), HasSubstr("0 columns"));
    EXPECT_THAT(type("%half %c3 %c16 %c16 %c7"), HasSubstr("unknown use 7"));
    EXPECT_THAT(type("%bool %c3 %c16 %c16 %c0"), HasSubstr("components of the type bool"));
    EXPECT_THAT(type("%void %c3 %c16 %c16 %c0"), HasSubstr("no scalars"));
    EXPECT_THAT(type("%a %c3 %c16 %c16 %c0"), HasSubstr("no scalars"));
    EXPECT_THAT(type("%half %main %c16 %c16 %c0"), HasSubstr("integer constant"));
    EXPECT_THAT(Refusal("", "", 4), HasSubstr("a subgroup of 4"));
}

TEST(ReaderMatrices, WrongOperandsAreRefused) {
    auto body = [](const std::string& text) { return Refusal("", text); };
    EXPECT_EQ(body("%r = OpCooperativeMatrixMulAddKHR %c %null_a %null_b %null_c"), "");
    EXPECT_THAT(body("%r = OpCooperativeMatrixMulAddKHR %c %null_b %null_b %null_c"),
                HasSubstr("the use MatrixB as its operand MatrixA"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixMulAddKHR %c %null_a %null_b %f1"),
                HasSubstr("no cooperative matrix"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixMulAddKHR %a %null_a %null_b %null_c"),
                HasSubstr("other types than f32"));
    EXPECT_EQ(Refusal("%h = OpTypeCooperativeMatrixKHR %half %c3 %c16 %c16 %c2\n"
                      "%null_h = OpConstantNull %h",
                      "%r = OpCooperativeMatrixMulAddKHR %h %null_a %null_b %null_h"),
              "");
    EXPECT_THAT(Refusal("%h = OpTypeCooperativeMatrixKHR %half %c3 %c16 %c16 %c2\n"
                        "%null_h = OpConstantNull %h",
                        "%r = OpCooperativeMatrixMulAddKHR %c %null_a %null_b %null_h"),
                HasSubstr("other types than f32"));
    EXPECT_THAT(Refusal("%fa = OpTypeCooperativeMatrixKHR %float %c3 %c16 %c16 %c0\n"
                        "%null_fa = OpConstantNull %fa",
                        "%r = OpCooperativeMatrixMulAddKHR %c %null_fa %null_b %null_c"),
                HasSubstr("other types than f32"));
    EXPECT_EQ(body("%r = OpCooperativeMatrixLoadKHR %c %place %c0 %c16"), "");
    EXPECT_THAT(body("%r = OpCooperativeMatrixLoadKHR %c %place %c0"), HasSubstr("no stride"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixLoadKHR %c %place %c7 %c16"),
                HasSubstr("the layout 7"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixLoadKHR %c %place %c0 %f1"), HasSubstr("no integer"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixLoadKHR %c %private %c0 %c16"),
                HasSubstr("not an array in a storage buffer"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixLoadKHR %c %buffer %c0 %c16"),
                HasSubstr("neither a scalar nor a vector"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixLoadKHR %float %place %c0 %c16"),
                HasSubstr("no cooperative matrix"));
    EXPECT_EQ(body("OpCooperativeMatrixStoreKHR %place %null_c %c1 %c16"), "");
    EXPECT_THAT(body("OpCooperativeMatrixStoreKHR %place %f1 %c1 %c16"),
                HasSubstr("no cooperative matrix"));
    EXPECT_THAT(body("OpCooperativeMatrixStoreKHR %private %null_c %c1 %c16"),
                HasSubstr("cannot be written"));
    EXPECT_THAT(body("%r = OpCooperativeMatrixLengthKHR %uint %float"),
                HasSubstr("no cooperative matrix"));
    EXPECT_THAT(body("%r = OpCompositeExtract %float %null_c 8"), HasSubstr("the index 8 into 8"));
}

}  // namespace
}  // namespace fornax::kernel
