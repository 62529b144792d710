// Pointers through the reader: device addresses, pointers that become values, and what of both is
// refused.
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

constexpr char kAddresses[] = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 8) in;
layout(buffer_reference) buffer Link;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint w[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Link {
    uvec2 value;
    Link next;
    mat2 matrix;
};
layout(set = 0, binding = 0) buffer Out { uint o[]; };
layout(push_constant) uniform Push { Words words; Link links; uvec2 raw; };
Words Choose(bool first, Words a, Words b) {
    if (first)
        return a;
    return b;
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    Link at = links;
    for (uint k = 0u; k < i % 3u; ++k)
        at = at.next;
    Words chosen = Choose((i & 1u) != 0u, words, Words(raw));
    links[i % 3u].matrix[1][i & 1u] = 5.0;
    uint old = atomicAdd(words.w[40], 0u);
    o[i] = at.value.y + 100u * chosen.w[i] + 10000u * words.w[int(i) - 0] +
           uint(at.matrix[0][1]) * 1000000u + old;
})";

TEST(ReaderPointers, DeviceAddresses) {
    struct Link {
        uint32_t value[2];
        uint64_t next;
        float matrix[4];
    };
    for (const Variant& variant : Variants(CompileGlsl(kAddresses))) {
        SCOPED_TRACE(variant.name);
        CompileRequest request = MakeRequest(variant.module);
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        std::vector<uint32_t> words(64);
        std::vector<uint32_t> others(64);
        for (uint32_t k = 0; k < 64; ++k) {
            words[k] = k % 7;
            others[k] = k % 5 + 20;
        }
        alignas(16) Link links[3];
        for (uint32_t k = 0; k < 3; ++k) {
            links[k] = {
                {1, k + 3}, reinterpret_cast<uint64_t>(&links[(k + 2) % 3]), {0, 0.0f + k, 0, 0}};
        }
        ShaderData data;
        data.output.assign(16, 0xdeadbeef);
        const uint64_t push[] = {reinterpret_cast<uint64_t>(words.data()),
                                 reinterpret_cast<uint64_t>(links),
                                 reinterpret_cast<uint64_t>(others.data())};
        std::memcpy(data.push.data(), push, sizeof(push));
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        for (uint32_t i = 0; i < 16; ++i) {
            const uint32_t link = i % 3 * 2 % 3;
            const uint32_t chosen = i & 1 ? i % 7 : i % 5 + 20;
            ASSERT_EQ(data.output[i],
                      link + 3 + 100 * chosen + 10000 * (i % 7) + link * 1000000 + 40 % 7)
                << "invocation " << i;
        }
        for (const Link& link : links) {
            EXPECT_EQ(link.matrix[2], 5.0f);
            EXPECT_EQ(link.matrix[3], 5.0f);
        }
    }
}

// A module around the body of main; %out is a pointer to a uint in binding 0, %i the invocation.
std::string Module(const std::string& types, const std::string& body) {
    return R"(
               OpCapability Shader
               OpCapability VariablePointers
               OpCapability PhysicalStorageBufferAddresses
               OpExtension "SPV_KHR_variable_pointers"
               OpExtension "SPV_KHR_physical_storage_buffer"
               OpMemoryModel PhysicalStorageBuffer64 GLSL450
               OpEntryPoint GLCompute %main "main" %id
               OpExecutionMode %main LocalSize 8 1 1
               OpDecorate %id BuiltIn LocalInvocationIndex
               OpDecorate %words ArrayStride 4
               OpDecorate %element ArrayStride 4
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %block Block
               OpDecorate %buffer DescriptorSet 0
               OpDecorate %buffer Binding 0
       %void = OpTypeVoid
       %bool = OpTypeBool
       %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
       %true = OpConstantTrue %bool
         %u0 = OpConstant %uint 0
         %u1 = OpConstant %uint 1
         %u2 = OpConstant %uint 2
         %u3 = OpConstant %uint 3
      %words = OpTypeRuntimeArray %uint
      %block = OpTypeStruct %words
    %in_uint = OpTypePointer Input %uint
   %to_block = OpTypePointer StorageBuffer %block
    %element = OpTypePointer StorageBuffer %uint
    %private = OpTypePointer Function %uint
         %id = OpVariable %in_uint Input
     %buffer = OpVariable %to_block StorageBuffer
)" + types +
           R"(
     %void_f = OpTypeFunction %void
       %main = OpFunction %void None %void_f
      %entry = OpLabel
        %one = OpVariable %private Function
        %two = OpVariable %private Function
          %i = OpLoad %uint %id
        %out = OpAccessChain %element %buffer %u0 %i
)" + body + R"(
               OpReturn
               OpFunctionEnd
)";
}

TEST(ReaderPointers, ComparisonsAndDistances) {
    const Words module = AssembleSpirv(Module("%null = OpConstantNull %element", R"(
      %start = OpAccessChain %element %buffer %u0 %u2
     %chosen = OpSelect %element %true %out %null
       %diff = OpPtrDiff %int %chosen %start
      %equal = OpPtrEqual %bool %chosen %start
    %no_null = OpPtrNotEqual %bool %chosen %null
          %a = OpSelect %uint %equal %u1 %u0
          %b = OpSelect %uint %no_null %u2 %u0
       %bits = OpBitcast %uint %diff
     %scaled = OpIMul %uint %bits %u3
        %sum = OpIAdd %uint %a %b
        %all = OpIAdd %uint %sum %scaled
               OpStore %chosen %all)"),
                                       "spv1.4");
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(8, 0xdeadbeef);
    data.workgroups = 1;
    ASSERT_TRUE(RunShader(*kernel, data).ok());
    for (uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(data.output[i], (i == 2) + 2 + 3 * (i - 2)) << i;
    }
}

// "[...] pointers into an array of 8-bit integers" (SPV_KHR_untyped_pointers).
TEST(ReaderPointers, UntypedPointersAreApartByBytes) {
    std::string source = Module("%untyped = OpTypeUntypedPointerKHR StorageBuffer", R"(
      %start = OpUntypedAccessChainKHR %untyped %block %buffer %u0 %u2
      %there = OpUntypedAccessChainKHR %untyped %block %buffer %u0 %i
       %diff = OpPtrDiff %int %there %start
       %bits = OpBitcast %uint %diff
               OpStore %out %bits)");
    source.insert(source.find("OpExtension"), "OpCapability UntypedPointersKHR\n");
    source.insert(source.find("OpMemoryModel"), "OpExtension \"SPV_KHR_untyped_pointers\"\n");
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(source, "spv1.4")));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(8, 0xdeadbeef);
    data.workgroups = 1;
    ASSERT_TRUE(RunShader(*kernel, data).ok());
    for (uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(data.output[i], 4 * (i - 2)) << i;
    }
}

// Two blocks in workgroup memory: one after the other, or in one place if they are decorated so.
TEST(ReaderPointers, UntypedBlocksOfWorkgroupMemory) {
    for (const bool aliased : {false, true}) {
        std::string source = Module(R"(
       %tile = OpTypeStruct %uint
    %untyped = OpTypeUntypedPointerKHR Workgroup
          %a = OpUntypedVariableKHR %untyped Workgroup %tile
          %b = OpUntypedVariableKHR %untyped Workgroup %tile)",
                                    R"(
    %place_a = OpUntypedAccessChainKHR %untyped %tile %a %u0
    %place_b = OpUntypedAccessChainKHR %untyped %tile %b %u0
               OpStore %place_a %u2
               OpStore %place_b %u0
          %x = OpLoad %uint %place_a
               OpStore %out %x)");
        source.insert(source.find("OpExtension"),
                      "OpCapability UntypedPointersKHR\n"
                      "OpCapability WorkgroupMemoryExplicitLayoutKHR\n");
        source.insert(source.find("OpMemoryModel"),
                      "OpExtension \"SPV_KHR_untyped_pointers\"\n"
                      "OpExtension \"SPV_KHR_workgroup_memory_explicit_layout\"\n");
        source.insert(source.find("OpDecorate"),
                      std::string("OpDecorate %tile Block\nOpMemberDecorate %tile 0 Offset 0\n") +
                          (aliased ? "OpDecorate %a Aliased\nOpDecorate %b Aliased\n" : ""));
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(source, "spv1.4")));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->shared_bytes, aliased ? 4u : 20u);
        ShaderData data;
        data.output.assign(8, 0xdeadbeef);
        data.workgroups = 1;
        ASSERT_TRUE(RunShader(*kernel, data).ok());
        EXPECT_EQ(data.output, std::vector<uint32_t>(8, aliased ? 0 : 2));
    }
}

// Matrices, columns and components can be compared, although pointers to them are no variable
// pointers (SPIR-V, 2.16.1).
TEST(ReaderPointers, PartsOfMatricesAreCompared) {
    std::string source = Module(R"(
      %float = OpTypeFloat 32
       %vec2 = OpTypeVector %float 2
       %mat2 = OpTypeMatrix %vec2 2
      %mat2s = OpTypeArray %mat2 %u2
   %matrices = OpTypeStruct %mat2 %mat2 %mat2s
%to_matrices = OpTypePointer StorageBuffer %matrices
    %to_mat2 = OpTypePointer StorageBuffer %mat2
   %to_mat2s = OpTypePointer StorageBuffer %mat2s
    %to_vec2 = OpTypePointer StorageBuffer %vec2
   %to_float = OpTypePointer StorageBuffer %float
         %in = OpVariable %to_matrices StorageBuffer)",
                                R"(
      %which = OpBitwiseAnd %uint %i %u1
       %rows = OpAccessChain %to_mat2 %in %u0
    %columns = OpAccessChain %to_mat2 %in %u1
      %row_0 = OpAccessChain %to_vec2 %in %u0 %u0
      %row_i = OpAccessChain %to_vec2 %in %u0 %which
       %cell = OpAccessChain %to_float %in %u0 %which %u1
       %more = OpAccessChain %to_float %in %u0 %u1 %u1
      %array = OpAccessChain %to_mat2s %in %u2
     %last_m = OpAccessChain %to_mat2 %in %u2 %u1
        %m_i = OpAccessChain %to_mat2 %in %u2 %which
          %a = OpPtrEqual %bool %rows %columns
          %b = OpPtrEqual %bool %rows %rows
          %c = OpPtrEqual %bool %row_0 %row_i
          %d = OpPtrNotEqual %bool %cell %more
          %e = OpPtrNotEqual %bool %array %array
          %f = OpPtrDiff %uint %m_i %last_m
         %a1 = OpSelect %uint %a %u1 %u0
         %b1 = OpSelect %uint %b %u2 %u0
         %c1 = OpSelect %uint %c %u4 %u0
         %d1 = OpSelect %uint %d %u8 %u0
         %e1 = OpSelect %uint %e %u16 %u0
         %f1 = OpIMul %uint %f %u32
         %r1 = OpBitwiseOr %uint %a1 %b1
         %r2 = OpBitwiseOr %uint %r1 %c1
         %r3 = OpBitwiseOr %uint %r2 %d1
         %r4 = OpBitwiseOr %uint %r3 %e1
         %r5 = OpIAdd %uint %r4 %f1
               OpStore %out %r5)");
    source.insert(source.find("OpDecorate"), R"(
               OpMemberDecorate %matrices 0 Offset 0
               OpMemberDecorate %matrices 0 RowMajor
               OpMemberDecorate %matrices 0 MatrixStride 16
               OpMemberDecorate %matrices 1 Offset 32
               OpMemberDecorate %matrices 1 ColMajor
               OpMemberDecorate %matrices 1 MatrixStride 8
               OpMemberDecorate %matrices 2 Offset 48
               OpMemberDecorate %matrices 2 RowMajor
               OpMemberDecorate %matrices 2 MatrixStride 16
               OpDecorate %mat2s ArrayStride 32
               OpDecorate %to_mat2 ArrayStride 32
               OpDecorate %matrices Block
               OpDecorate %in DescriptorSet 0
               OpDecorate %in Binding 1
)");
    for (const char* more : {"4", "8", "16", "32"}) {
        source.insert(source.find("      %words ="),
                      std::string("%u") + more + " = OpConstant %uint " + more + "\n");
    }
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(source, "spv1.4")));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(8, 0xdeadbeef);
    data.storage.assign(32, 0);
    data.workgroups = 1;
    ASSERT_TRUE(RunShader(*kernel, data).ok());
    for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t which = i & 1;
        EXPECT_EQ(data.output[i], 2 + (which == 0 ? 4 + 8 : 0) + 32 * (which - 1)) << i;
    }
    // Chosen, they would be variable pointers.
    source.replace(source.find("OpPtrEqual %bool %rows %columns"), 31,
                   "OpPtrEqual %bool %chosen %columns");
    source.insert(source.find("%a ="), "%chosen = OpSelect %to_mat2 %true %rows %columns\n");
    kernel = ReadSpirv(MakeRequest(AssembleSpirv(source, "spv1.4")));
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("a part of a matrix"), std::string::npos)
        << kernel.error().message;
}

// "For all other objects, the implementation calculates the element's address" (OpPtrAccessChain):
// what pointers to workgroup memory are decorated with counts for blocks alone.
TEST(ReaderPointers, StridesOfWorkgroupMemory) {
    struct Case {
        const char* block;
        const char* array;
        uint32_t reached;  // 17 elements behind the first one, by a pointer with a stride of 12
    };
    const char* const kFours = "OpDecorate %array ArrayStride 4\n";
    const char* const kBlock = "OpDecorate %tile Block\nOpMemberDecorate %tile 0 Offset 0\n";
    for (const Case& c :
         {Case{"", "", 18}, Case{"", kFours, 18}, Case{"", "OpDecorate %array ArrayStride 8\n", 18},
          Case{kBlock, kFours, 1 + 17 * 3}}) {
        SCOPED_TRACE(std::string(c.array) + c.block);
        std::string source = Module(R"(
        %u17 = OpConstant %uint 17
        %u64 = OpConstant %uint 64
    %reached = OpConstant %uint )" + std::to_string(c.reached) +
                                        R"(
      %array = OpTypeArray %uint %u64
       %tile = OpTypeStruct %array
    %to_tile = OpTypePointer Workgroup %tile
    %to_uint = OpTypePointer Workgroup %uint
      %tiles = OpVariable %to_tile Workgroup)",
                                    R"(
      %first = OpAccessChain %to_uint %tiles %u0 %u1
     %second = OpAccessChain %to_uint %tiles %u0 %u2
     %chosen = OpSelect %to_uint %true %first %second
      %place = OpAccessChain %to_uint %tiles %u0 %reached
       %next = OpPtrAccessChain %to_uint %first %u17
      %other = OpPtrAccessChain %to_uint %chosen %u17
          %a = OpPtrEqual %bool %next %place
          %b = OpPtrEqual %bool %other %place
       %diff = OpPtrDiff %uint %next %first
         %a1 = OpSelect %uint %a %u1 %u0
         %b1 = OpSelect %uint %b %u2 %u0
        %sum = OpIAdd %uint %a1 %b1
       %more = OpIMul %uint %diff %u64
        %all = OpIAdd %uint %sum %more
               OpStore %out %all)");
        source.insert(source.find("OpExtension"),
                      "OpCapability WorkgroupMemoryExplicitLayoutKHR\n");
        source.insert(source.find("OpMemoryModel"),
                      "OpExtension \"SPV_KHR_workgroup_memory_explicit_layout\"\n");
        source.insert(source.find("OpDecorate"),
                      std::string("OpDecorate %to_uint ArrayStride 12\n") + c.array + c.block);
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(source, "spv1.4")));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ShaderData data;
        data.output.assign(8, 0xdeadbeef);
        data.workgroups = 1;
        ASSERT_TRUE(RunShader(*kernel, data).ok());
        EXPECT_EQ(data.output[0], 1u + 2 + 64 * 17);
    }
}

void ExpectRefused(const std::string& types, const std::string& body, const char* what) {
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(Module(types, body))));
    ASSERT_FALSE(kernel.ok()) << body;
    EXPECT_NE(kernel.error().message.find(what), std::string::npos) << kernel.error().message;
}

// Khronos' conformance tests have modules that write what they decorate so.
TEST(ReaderPointers, NonWritableIsNoPromise) {
    std::string source = Module("", "OpStore %out %i");
    source.insert(source.find("OpDecorate %buffer"), "OpDecorate %buffer NonWritable\n");
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(source, "spv1.4")));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_TRUE(kernel->bindings[0].writable);
    ShaderData data;
    data.output.assign(8, 0xdeadbeef);
    data.workgroups = 1;
    ASSERT_TRUE(RunShader(*kernel, data).ok());
    for (uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(data.output[i], i);
    }
}

TEST(ReaderPointers, WhatCannotBeAPointerIsRefused) {
    ExpectRefused("", "%p = OpSelect %private %true %one %two", "as a value a pointer");
    ExpectRefused("", "%p = OpPtrAccessChain %private %one %u1", "steps from a pointer");
    ExpectRefused("", "%p = OpConvertPtrToU %uint %out", "as a scalar");
    ExpectRefused("%raw = OpTypePointer PhysicalStorageBuffer %block",
                  "%p = OpConvertUToPtr %raw %true", "does not make a pointer");
    ExpectRefused(
        "OpTypeForwardPointer %later StorageBuffer\n%later = OpTypePointer StorageBuffer %uint", "",
        "another storage class");
    // An address of what is no type.
    ExpectRefused("%raw = OpTypePointer PhysicalStorageBuffer %u3",
                  "%p = OpConvertUToPtr %raw %i\n%v = OpLoad %uint %p Aligned 4",
                  "has another result");
    ExpectRefused("%raw = OpTypePointer PhysicalStorageBuffer %uint",
                  "%p = OpConvertUToPtr %raw %i\n%v = OpLoad %uint %p Aligned 3",
                  "no power of two");
}

}  // namespace
}  // namespace fornax::kernel
