// Modules as other tools write them: debugging information, several entry points, decoration
// groups, narrow and wide types, and instructions that glslang does not make.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

void Check(const Words& module, const std::function<uint32_t(uint32_t)>& expected) {
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(16, 0xdeadbeef);
    for (uint32_t k = 0; k < 64; ++k) {
        data.storage.push_back(0x81828384u + k * 0x01010101u);
    }
    Status status = RunShader(*kernel, data);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (uint32_t i = 0; i < 16; ++i) {
        ASSERT_EQ(data.output[i], expected(i)) << "invocation " << i << "\n"
                                               << ir::PrintKernel(*kernel);
    }
}

TEST(ReaderModules, DebuggingInformationIsIgnored) {
    const std::string source = Shader(
        "uint r = 0; for (uint k = 0; k < i; ++k) { Pair p = Make(k); if (p.a > 3) continue; r += "
        "p.b; }"
        " o[i] = r;",
        "struct Pair { uint a; uint b; }; Pair Make(uint k) { if (k == 2) return Pair(9, 9);"
        " return Pair(k, k * k); }");
    for (const char* options : {"", "-g", "-gVS", "-g0"}) {
        SCOPED_TRACE(options);
        Check(CompileGlsl(source, options), [](uint32_t i) {
            uint32_t r = 0;
            for (uint32_t k = 0; k < i; ++k) {
                r += k == 2 || k > 3 ? 0 : k * k;
            }
            return r;
        });
    }
}

TEST(ReaderModules, NarrowAndWideTypes) {
    Check(CompileGlsl(Shader(R"(
        i8vec4 b = bytes[i];
        uint16_t h = uint16_t(b.x) + shorts[i * 2 + 1];
        int64_t w = int64_t(b.y) * 4294967296l + int64_t(h);
        float16_t f = float16_t(float(b.z));
        double d = double(f) * 0.5;
        u8vec2 two = u8vec2(bytes[i].xy);
        o[i] = uint(w >> 30) + uint(uint64_t(w) * 3ul) * 7 + uint(int(d)) * 11 + uint(int16_t(b.w)) * 13
             + uint(two.x) * 17 + uint(unpack32(u64vec2(w, w).y).y) * 19;)",
                             R"(
        #extension GL_EXT_shader_explicit_arithmetic_types : require
        #extension GL_EXT_shader_8bit_storage : require
        #extension GL_EXT_shader_16bit_storage : require
        layout(set = 0, binding = 1) buffer B { i8vec4 bytes[]; };
        layout(set = 0, binding = 1) buffer S { uint16_t shorts[]; };)")),
          [](uint32_t i) {
              uint32_t word = 0x81828384u + i * 0x01010101u;
              auto byte = [&](int k) { return static_cast<int8_t>(word >> (8 * k)); };
              auto h = static_cast<uint16_t>(static_cast<uint16_t>(byte(0)) + (word >> 16));
              int64_t w = int64_t{byte(1)} * 4294967296 + h;
              auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
              return u(w >> 30) + u(static_cast<int64_t>(static_cast<uint64_t>(w) * 3)) * 7 +
                     u(static_cast<int32_t>(byte(2) * 0.5)) * 11 + u(byte(3)) * 13 +
                     static_cast<uint8_t>(byte(0)) * 17 + u(w >> 32) * 19;
          });
}

// The matrix (x y, y z) in rows and columns `a` and `b` of one that is else the identity. Two of
// its products, 45 * 47 and 46 * 46, are one number in f16.
TEST(ReaderModules, InversesOfHalvesAreComputedInSingles) {
    struct Case {
        const char* type;
        const char* elements;
        uint32_t a;
        uint32_t b;
    };
    for (const Case& c :
         {Case{"f16mat2", "x, y, y, z", 0, 1}, Case{"f16mat3", "x, y, 0, y, z, 0, 0, 0, 1", 0, 1},
          Case{"f16mat4", "x, y, 0, 0, y, z, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1", 0, 1},
          Case{"f16mat4", "1, 0, 0, 0, 0, x, 0, y, 0, 0, 1, 0, 0, y, 0, z", 1, 3}}) {
        SCOPED_TRACE(testing::Message() << c.type << " in " << c.a << " and " << c.b);
        std::ostringstream body;
        body << "float16_t x = float16_t(45 + int(i) / 65536), y = x + 1.0hf, z = x + 2.0hf;\n"
             << c.type << " m = " << c.type << "(" << c.elements << ");\n"
             << c.type << " n = inverse(m);\n"
             << "const uint a = " << c.a << ", b = " << c.b << ";\n"
             << "o[i] = uint(int(determinant(m)) + int(n[a][a]) * 100 + int(n[b][a]) * 1000\n"
             << "            + int(n[b][b]) * 100000);";
        Check(CompileGlsl(Shader(body.str(), R"(
        #extension GL_EXT_shader_explicit_arithmetic_types : require)")),
              [](uint32_t) {
                  return static_cast<uint32_t>(-1 - 47 * 100 + 46 * 1000 - 45 * 100000);
              });
    }
}

constexpr char kPreamble[] = R"(
    OpCapability Shader
    OpCapability Int64
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %gid
    OpExecutionMode %main LocalSize 8 1 1
    OpDecorate %gid BuiltIn GlobalInvocationId
    OpDecorate %arr ArrayStride 4
    OpDecorate %blk Block
    OpMemberDecorate %blk 0 Offset 0
    OpDecorate %place Binding 0
    OpDecorate %place DescriptorSet 0
    %place = OpDecorationGroup
    OpGroupDecorate %place %out
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %bool = OpTypeBool
    %uint = OpTypeInt 32 0
    %long = OpTypeInt 64 0
    %v2 = OpTypeVector %uint 2
    %v3 = OpTypeVector %uint 3
    %pin = OpTypePointer Input %v3
    %arr = OpTypeRuntimeArray %uint
    %blk = OpTypeStruct %arr
    %pblk = OpTypePointer StorageBuffer %blk
    %pu = OpTypePointer StorageBuffer %uint
    %pair = OpTypeStruct %v2 %uint
    %u0 = OpConstant %uint 0
    %u1 = OpConstant %uint 1
    %u2 = OpConstant %uint 2
    %u7 = OpConstant %uint 7
    %gid = OpVariable %pin Input
    %out = OpVariable %pblk StorageBuffer
)";
constexpr char kMain[] = R"(
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %id3 = OpLoad %v3 %gid
    %i = OpCompositeExtract %uint %id3 0
    %ptr = OpAccessChain %pu %out %u0 %i
)";
constexpr char kEnd[] = R"(
    OpReturn
    OpFunctionEnd
)";

TEST(ReaderModules, SwitchOn64BitsWithSharedTargets) {
    Check(AssembleSpirv(std::string(kPreamble) + R"(
        %big = OpConstant %long 0x100000002
        %three = OpConstant %long 3
    )" + kMain + R"(
        %wide = OpUConvert %long %i
        %rem = OpUMod %long %wide %three
        %isone = OpIEqual %bool %i %u1
        %sel = OpSelect %long %isone %big %rem
        OpSelectionMerge %done None
        OpSwitch %sel %done 1 %a 0x100000002 %a 0 %b
        %a = OpLabel
        OpBranch %done
        %b = OpLabel
        OpBranch %done
        %done = OpLabel
        %r = OpPhi %uint %u7 %entry %u1 %a %u2 %b
        OpStore %ptr %r)" +
                        kEnd),
          [](uint32_t i) { return i == 1 || i % 3 == 1 ? 1u
                                  : i % 3 == 0         ? 2u
                                                       : 7u; });
}

// FPRoundingMode RTZ on conversions to halves, which 16-bit storage asks for: values between two
// halves, of both signs, and one beyond the largest.
TEST(ReaderModules, ConversionsRoundTowardsZeroWhereTheyAreTold) {
    std::string preamble = kPreamble;
    const std::string place = "OpDecorate %arr ArrayStride 4";
    preamble.insert(preamble.find(place), R"(
        OpDecorate %half FPRoundingMode RTZ
        OpDecorate %last FPRoundingMode RTZ
    )");
    Check(AssembleSpirv("OpCapability Float16\nOpCapability Int16\n" + preamble + R"(
        %float = OpTypeFloat 32
        %f16 = OpTypeFloat 16
        %u16 = OpTypeInt 16 0
        %one = OpConstant %uint 0x3f800000
        %u11 = OpConstant %uint 11
        %u16c = OpConstant %uint 16
        %u31 = OpConstant %uint 31
        %large = OpConstant %uint 0x49742400
    )" + kMain + R"(
        %fraction = OpShiftLeftLogical %uint %i %u11
        %sign = OpShiftLeftLogical %uint %i %u31
        %positive = OpIAdd %uint %one %fraction
        %word = OpBitwiseOr %uint %positive %sign
        %wide = OpBitcast %float %word
        %half = OpFConvert %f16 %wide
        %big = OpBitcast %float %large
        %last = OpFConvert %f16 %big
        %half_bits = OpBitcast %u16 %half
        %last_bits = OpBitcast %u16 %last
        %low = OpUConvert %uint %half_bits
        %high = OpUConvert %uint %last_bits
        %shifted = OpShiftLeftLogical %uint %high %u16c
        %both = OpBitwiseOr %uint %low %shifted
        OpStore %ptr %both)" +
                        kEnd),
          [](uint32_t i) { return 0x7bff0000u | (i % 2 << 15) | (0x3c00 + i / 4); });
}

// A component that a shuffle of constants leaves open and an undefined value of a type without
// values (here a runtime array) hurt only where they are used.
TEST(ReaderModules, WhatIsUndefinedMayBeNamed) {
    Check(AssembleSpirv(std::string(kPreamble) + R"(
        %open = OpUndef %v3
        %spec = OpSpecConstant %uint 5
        %nulls = OpConstantNull %v3
        %put = OpSpecConstantOp %v3 CompositeInsert %spec %nulls 0
        %shuffled = OpSpecConstantOp %v3 VectorShuffle %put %open 0 0xFFFFFFFF 4
        %taken = OpSpecConstantOp %uint CompositeExtract %shuffled 0
    )" + kMain + R"(
        %nothing = OpUndef %arr
        %sum = OpIAdd %uint %taken %i
        OpStore %ptr %sum)" +
                        kEnd),
          [](uint32_t i) { return 5 + i; });
}

TEST(ReaderModules, CompositesThroughPhisSelectsAndCopies) {
    Check(AssembleSpirv(std::string(kPreamble) + R"(
        %none = OpUndef %v2
        %pairs = OpConstantNull %pair
    )" + kMain + R"(
        %odd = OpBitwiseAnd %uint %i %u1
        %isodd = OpIEqual %bool %odd %u1
        OpSelectionMerge %join None
        OpBranchConditional %isodd %left %join
        %left = OpLabel
        %vec = OpCompositeConstruct %v2 %i %u7
        %made = OpCompositeConstruct %pair %vec %u2
        OpBranch %join
        %join = OpLabel
        %p = OpPhi %pair %pairs %entry %made %left
        %both = OpVectorShuffle %v3 %id3 %none 0 4294967295 0
        %v = OpCompositeExtract %v2 %p 0
        %y = OpVectorExtractDynamic %uint %v %odd
        %copy = OpCopyObject %pair %p
        %set = OpCompositeInsert %pair %i %copy 0 1
        %pick = OpSelect %v2 %isodd %v %none
        %last = OpCompositeExtract %uint %set 0 1
        %tail = OpCompositeExtract %uint %set 1
        %x0 = OpCompositeExtract %uint %both 2
        %s1 = OpIAdd %uint %y %last
        %s2 = OpIMul %uint %tail %u7
        %s3 = OpIAdd %uint %s1 %s2
        %s4 = OpIAdd %uint %s3 %x0
        OpStore %ptr %s4)" +
                        kEnd),
          [](uint32_t i) { return i % 2 ? 7 + i + 14 + i : 2 * i; });
}

// A store and a barrier-free copy of a whole array from one place to another.
TEST(ReaderModules, CopyMemoryOfAnArray) {
    Check(AssembleSpirv(std::string(kPreamble) + R"(
        %u4 = OpConstant %uint 4
        %four = OpTypeArray %uint %u4
        %pf = OpTypePointer Function %four
        %pfu = OpTypePointer Function %uint
        %init = OpConstantComposite %four %u1 %u2 %u7 %u4
    )" + kMain + R"(
        %a = OpVariable %pf Function %init
        %b = OpVariable %pf Function
        OpCopyMemory %b %a
        %slot = OpAccessChain %pfu %a %u2
        OpStore %slot %u0
        %n = OpUMod %uint %i %u4
        %from = OpAccessChain %pfu %b %n
        %r = OpLoad %uint %from
        OpStore %ptr %r)" +
                        kEnd),
          [](uint32_t i) {
              const uint32_t table[] = {1, 2, 7, 4};
              return table[i % 4];
          });
}

// What belongs to other entry points does not matter, be it covered or not.
TEST(ReaderModules, OtherEntryPointsDoNotMatter) {
    Check(AssembleSpirv(R"(
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint Fragment %frag "frag" %color %in
        OpEntryPoint GLCompute %other "other"
        OpEntryPoint GLCompute %main "main" %gid
        OpExecutionMode %frag OriginUpperLeft
        OpExecutionMode %other LocalSize 1 1 1
        OpExecutionMode %main LocalSize 8 1 1
        OpDecorate %gid BuiltIn GlobalInvocationId
        OpDecorate %color Location 0
        OpDecorate %in Location 0
        OpDecorate %arr ArrayStride 4
        OpDecorate %blk Block
        OpMemberDecorate %blk 0 Offset 0
        OpDecorate %out Binding 0
        OpDecorate %out DescriptorSet 0
        OpDecorate %far Binding 9
        OpDecorate %far DescriptorSet 9
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %float = OpTypeFloat 32
        %v4 = OpTypeVector %float 4
        %uint = OpTypeInt 32 0
        %v3 = OpTypeVector %uint 3
        %pin = OpTypePointer Input %v3
        %fin = OpTypePointer Input %v4
        %fout = OpTypePointer Output %v4
        %u0 = OpConstant %uint 0
        %u16k = OpConstant %uint 16384
        %bigarr = OpTypeArray %uint %u16k
        %pbig = OpTypePointer Workgroup %bigarr
        %arr = OpTypeRuntimeArray %uint
        %blk = OpTypeStruct %arr
        %pblk = OpTypePointer StorageBuffer %blk
        %pu = OpTypePointer StorageBuffer %uint
        %gid = OpVariable %pin Input
        %in = OpVariable %fin Input
        %color = OpVariable %fout Output
        %out = OpVariable %pblk StorageBuffer
        %far = OpVariable %pblk StorageBuffer
        %big1 = OpVariable %pbig Workgroup
        %big2 = OpVariable %pbig Workgroup
        %frag = OpFunction %void None %fn
        %fe = OpLabel
        OpKill
        OpFunctionEnd
        %other = OpFunction %void None %fn
        %oe = OpLabel
        OpReturn
        OpFunctionEnd
    )" + std::string(kMain) +
                        "OpStore %ptr %i" + kEnd),
          [](uint32_t i) { return i; });
}

TEST(ReaderModules, PushConstantsBeyondTheLayoutAreAnError) {
    Words module = CompileGlsl(
        Shader("o[i] = v.w;", "layout(push_constant) uniform P { layout(offset = 16) uvec4 v; };"));
    CompileRequest request = MakeRequest(module);
    EXPECT_TRUE(ReadSpirv(request).ok());
    request.layout.push_constant_bytes = 28;
    Result<ir::Kernel> kernel = ReadSpirv(request);
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("28"), std::string::npos) << kernel.error().message;
}

}  // namespace
}  // namespace fornax::kernel
