// 64-bit indexing through the reader: offsets beyond 4 GiB of buffers whose pages are there when
// they are touched, and what the mode does not change.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class LargeBuffer {
  public:
    explicit LargeBuffer(uint64_t bytes) : bytes_(bytes) {
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        words_ = memory == MAP_FAILED ? nullptr : static_cast<uint32_t*>(memory);
    }
    ~LargeBuffer() {
        if (words_) {
            munmap(words_, bytes_);
        }
    }
    LargeBuffer(const LargeBuffer&) = delete;
    LargeBuffer& operator=(const LargeBuffer&) = delete;

    uint32_t* words() const { return words_; }
    hal::BufferDescriptor descriptor() const {
        return {reinterpret_cast<uint64_t>(words_), bytes_};
    }

  private:
    uint64_t bytes_;
    uint32_t* words_;
};

constexpr char kMode[] = R"(
#extension GL_EXT_shader_64bit_indexing : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#ifdef MODE
#pragma shader_64bit_indexing
#endif
layout(set = 0, binding = 1) buffer Large { uint large[]; };
layout(set = 0, binding = 1) buffer Tail { uint head[8]; u16vec4 tail[]; };
)";

Words Compile(const std::string& body, const char* options = "-DMODE") {
    return CompileGlsl(Shader(body, kMode), options);
}

// One workgroup of 8 invocations, robust; binding 0 has 64 words.
std::vector<uint32_t> RunOn(const LargeBuffer& large, const CompileRequest& request) {
    CompileRequest robust = request;
    robust.options.robust_buffer_access = true;
    Result<ir::Kernel> kernel = ReadSpirv(robust);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    std::vector<uint32_t> output(64, 0xdeadbeef);
    if (!kernel.ok()) {
        return output;
    }
    const hal::BufferDescriptor descriptors[7] = {
        {reinterpret_cast<uint64_t>(output.data()), output.size() * 4}, large.descriptor()};
    const void* sets[] = {descriptors};
    const uint32_t push[32] = {};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    frame.push_constants = push;
    frame.workgroup_count[0] = frame.workgroup_count[1] = frame.workgroup_count[2] = 1;
    Status status = Interpret(*kernel, frame, 0, 1, {.steps = 1'000'000});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return output;
}

#define SKIP_UNLESS_THERE(buffer) \
    if (!(buffer).words())        \
    GTEST_SKIP() << "The address space has no room for the buffer."

// Indices of 64 and of 32 bits, strides that take the product beyond 32 bits, stores, atomics.
constexpr char kFarPlaces[] = R"(
    o[i] = large[int64_t(i) * 200000000l];
    o[8 + i] = large[i * 200000000u];
    o[16 + i] = uint(tail[0x20000000u + i].y);
    large[0x40000000u + i] = 50u + i;
    o[24 + i] = atomicAdd(large[0x40000100ul + uint64_t(i)], i);
    tail[0x28000000u + i] = u16vec4(i);)";

void CheckFarPlaces(const CompileRequest& request) {
    LargeBuffer large(6 * kGiB);
    SKIP_UNLESS_THERE(large);
    const uint64_t end = 6 * kGiB / 4;
    for (uint64_t i = 0; i < 8; ++i) {
        if (i * 200000000 < end) {
            large.words()[i * 200000000] = static_cast<uint32_t>(i + 100);
        }
        large.words()[8 + 0x40000000 + 2 * i] = static_cast<uint32_t>((i + 7) << 16);
        large.words()[0x40000100 + i] = static_cast<uint32_t>(1000 + i);
    }
    const std::vector<uint32_t> o = RunOn(large, request);
    for (uint32_t i = 0; i < 8; ++i) {
        SCOPED_TRACE(i);
        const uint32_t there = i * 200000000ul < end ? i + 100 : 0;
        EXPECT_EQ(o[i], there);
        EXPECT_EQ(o[8 + i], there);
        EXPECT_EQ(o[16 + i], i + 7);
        EXPECT_EQ(large.words()[0x40000000 + i], 50 + i);
        EXPECT_EQ(o[24 + i], 1000 + i);
        EXPECT_EQ(large.words()[0x40000100 + i], 1000 + 2 * i);
        EXPECT_EQ(large.words()[8 + 0x50000000 + 2 * i], i << 16 | i);
    }
}

TEST(ReaderIndexing, TheModeReachesFarPlaces) {
    const Words module = Compile(kFarPlaces);
    CheckFarPlaces(MakeRequest(module));
}

TEST(ReaderIndexing, ThePipelineReachesFarPlaces) {
    const Words module = Compile(kFarPlaces, "");
    CompileRequest request = MakeRequest(module);
    request.options.wide_indexing = true;
    CheckFarPlaces(request);
}

// What would lie in range modulo 2^32 bytes reads 0 and is not written; indices are signed.
TEST(ReaderIndexing, NothingWrapsIntoRange) {
    LargeBuffer large(4096);
    SKIP_UNLESS_THERE(large);
    for (uint32_t i = 0; i < 1024; ++i) {
        large.words()[i] = i + 1;
    }
    const Words module = Compile(R"(
    o[i] = large[0x40000000u + i];
    o[8 + i] = large[uint64_t(i) << 30];
    o[16 + i] = large[int(i) - 4];
    o[24 + i] = uint(tail[0x20000000u + i].x);
    o[32 + i] = atomicAdd(large[0x40000000u + i], 1u);
    o[40 + i] = large[uint64_t(i) + 0x1000000000000000ul];
    large[0x80000000u + i] = 7u;)");
    const std::vector<uint32_t> o = RunOn(large, MakeRequest(module));
    for (uint32_t i = 0; i < 8; ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(o[i], 0u);
        EXPECT_EQ(o[8 + i], i == 0 ? 1u : 0u);
        EXPECT_EQ(o[16 + i], i < 4 ? 0u : i - 3);
        EXPECT_EQ(o[24 + i], 0u);
        EXPECT_EQ(o[32 + i], 0u);
        EXPECT_EQ(o[40 + i], 0u);
    }
    for (uint32_t i = 0; i < 1024; ++i) {
        ASSERT_EQ(large.words()[i], i + 1);
    }
}

// "can have a 64-bit result type"; 32 bits hold what they can.
TEST(ReaderIndexing, Lengths) {
    LargeBuffer large(20 * kGiB + 6);
    SKIP_UNLESS_THERE(large);
    const Words module = Compile(R"(
    int64_t n = large.length64();
    o[i] = i == 0u ? uint(n) : i == 1u ? uint(n >> 32) : i == 2u ? uint(large.length())
         : i == 3u ? uint(tail.length()) : uint(uint64_t(tail.length64()) >> 16);)");
    const std::vector<uint32_t> o = RunOn(large, MakeRequest(module));
    EXPECT_EQ(o[0], 0x40000001u);
    EXPECT_EQ(o[1], 1u);
    EXPECT_EQ(o[2], UINT32_MAX);
    EXPECT_EQ(o[3], 0x9ffffffcu);
    EXPECT_EQ(o[4], 0x9fffu);
}

constexpr char kCapability[] = "OpCapability Shader64BitIndexingEXT";

// A module around main's body; %far and %near are pointers to words 2^30 + i and i of binding 1.
std::string Module(const std::string& head, bool with_mode, const std::string& body) {
    return R"(
               OpCapability Shader
               OpCapability Int64
               OpCapability VariablePointers
)" + head + R"(
               OpExtension "SPV_KHR_variable_pointers"
               OpExtension "SPV_EXT_shader_64bit_indexing"
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %id
               OpExecutionMode %main LocalSize 8 1 1
)" + (with_mode ? "OpExecutionMode %main Shader64BitIndexingEXT\n" : "") +
           R"(
               OpDecorate %id BuiltIn LocalInvocationIndex
               OpDecorate %words ArrayStride 4
               OpDecorate %element ArrayStride 4
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %block Block
               OpDecorate %buffer DescriptorSet 0
               OpDecorate %buffer Binding 1
               OpDecorate %output DescriptorSet 0
               OpDecorate %output Binding 0
       %void = OpTypeVoid
       %bool = OpTypeBool
       %uint = OpTypeInt 32 0
      %ulong = OpTypeInt 64 0
       %long = OpTypeInt 64 1
         %u0 = OpConstant %uint 0
         %u1 = OpConstant %uint 1
         %u8 = OpConstant %uint 8
        %big = OpConstant %ulong 1073741824
       %back = OpConstant %long -1073741824
      %words = OpTypeRuntimeArray %uint
      %block = OpTypeStruct %words
    %in_uint = OpTypePointer Input %uint
   %to_block = OpTypePointer StorageBuffer %block
    %element = OpTypePointer StorageBuffer %uint
    %private = OpTypePointer Function %element
         %id = OpVariable %in_uint Input
     %buffer = OpVariable %to_block StorageBuffer
     %output = OpVariable %to_block StorageBuffer
     %void_f = OpTypeFunction %void
       %main = OpFunction %void None %void_f
      %entry = OpLabel
       %kept = OpVariable %private Function
          %i = OpLoad %uint %id
          %w = OpUConvert %ulong %i
        %at  = OpIAdd %ulong %w %big
        %far = OpAccessChain %element %buffer %u0 %at
       %near = OpAccessChain %element %buffer %u0 %i
        %out = OpAccessChain %element %output %u0 %i
        %bit = OpBitwiseAnd %uint %i %u1
        %odd = OpIEqual %bool %bit %u1
)" + body + R"(
               OpReturn
               OpFunctionEnd
)";
}

TEST(ReaderIndexing, PointersAsValues) {
    LargeBuffer large(5 * kGiB);
    SKIP_UNLESS_THERE(large);
    for (uint32_t i = 0; i < 16; ++i) {
        large.words()[i] = 10 + i;
        large.words()[0x40000000 + i] = 100 + i;
    }
    const Words module = AssembleSpirv(Module(kCapability, true, R"(
     %chosen = OpSelect %element %odd %far %near
               OpStore %kept %chosen
       %same = OpLoad %element %kept
       %next = OpPtrAccessChain %element %same %u1
      %value = OpLoad %uint %next
       %step = OpSelect %long %odd %back %back
       %down = OpPtrAccessChain %element %far %step
      %again = OpLoad %uint %down
       %diff = OpPtrDiff %long %far %near
      %equal = OpPtrEqual %bool %down %near
        %one = OpSelect %uint %equal %u1 %u0
      %parts = OpUConvert %uint %diff
          %j = OpIAdd %uint %i %u8
       %out2 = OpPtrAccessChain %element %out %u8
       %out3 = OpPtrAccessChain %element %out2 %u8
       %out4 = OpPtrAccessChain %element %out3 %u8
               OpStore %out %value
               OpStore %out2 %again
               OpStore %out3 %parts
               OpStore %out4 %one)"),
                                       "spv1.4");
    const std::vector<uint32_t> o = RunOn(large, MakeRequest(module));
    for (uint32_t i = 0; i < 8; ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(o[i], (i & 1 ? 100 : 10) + i + 1);
        EXPECT_EQ(o[8 + i], 10 + i);
        EXPECT_EQ(o[16 + i], 0x40000000u);
        EXPECT_EQ(o[24 + i], 1u);
    }
}

void ExpectRefused(const std::string& module, const char* what) {
    const Words words = AssembleSpirv(module, "spv1.4");
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(words));
    ASSERT_FALSE(kernel.ok()) << what;
    EXPECT_NE(kernel.error().message.find(what), std::string::npos) << kernel.error().message;
}

TEST(ReaderIndexing, WhatIsWrongIsRefused) {
    ExpectRefused(Module("", true, ""), "does not declare the capability");
    ExpectRefused(Module("", false, "%n = OpArrayLength %ulong %buffer 0"),
                  "without 64-bit indexing");
    ExpectRefused(Module(kCapability, false, "%n = OpArrayLength %ulong %buffer 0"),
                  "without 64-bit indexing");
    ExpectRefused(Module(kCapability, true, "%n = OpArrayLength %bool %buffer 0"),
                  "do not fit its result type");
}

// Offsets of 32 bits stay what they are.
TEST(ReaderIndexing, WithoutTheModeOffsetsAreNarrow) {
    const char* body = "o[i] = large[int64_t(i)] + large[i * 3u + 1u];";
    for (const bool wide : {false, true}) {
        const Words module = Compile(body, wide ? "-DMODE" : "");
        const Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        for (uint32_t i = 0; i < kernel->num_insts(); ++i) {
            const ir::Instruction& inst = kernel->inst(ir::InstId{i});
            if (inst.op == ir::Op::kLoadBuffer) {
                EXPECT_EQ(kernel->type(inst.operands[1]), wide ? ir::Type::kI64 : ir::Type::kI32);
            }
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
