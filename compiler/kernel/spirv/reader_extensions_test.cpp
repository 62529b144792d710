// Small extensions of SPIR-V: long vectors, instructions without meaning between functions, and
// what only fragment shaders have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "compiler/kernel/interface/debug_printf.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/module.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "compiler/kernel/spirv/source_map.h"

namespace fornax::kernel {
namespace {

using testing::HasSubstr;

void Check(const Words& module, const std::function<uint32_t(uint32_t)>& expected) {
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(16, 0xdeadbeef);
    Status status = RunShader(*kernel, data);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (uint32_t i = 0; i < 16; ++i) {
        ASSERT_EQ(data.output[i], expected(i)) << "invocation " << i;
    }
}

TEST(ReaderExtensions, LongVectors) {
    const Words module = CompileGlsl(Shader(R"(
        vector<uint, 11> a;
        for (uint k = 0u; k < 11u; ++k) a[k] = i * k + 3u;
        vector<float, 11> f = vector<float, 11>(a * 5u + vector<uint, 11>(2u));
        vector<uint, 11> c = vector<uint, 11>(sqrt(f * f)) ^ a;
        uint sum = 0u;
        for (uint k = 0u; k < 11u; ++k) sum += c[(k + i) % 11u] * (k + 1u);
        o[i] = sum;)",
                                            "#extension GL_EXT_long_vector : require"));
    Check(module, [](uint32_t i) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 11; ++k) {
            const uint32_t a = i * ((k + i) % 11) + 3;
            sum += ((a * 5 + 2) ^ a) * (k + 1);
        }
        return sum;
    });
}

// One access of 40 components would be one vector of 40 times as many elements as there are lanes.
TEST(ReaderExtensions, LongVectorsInMemoryAreAccessedInRuns) {
    const Words module = CompileGlsl(Shader(R"(
        vector<uint, 40> a;
        for (uint k = 0u; k < 40u; ++k) a[k] = i + k * k;
        rows[gl_LocalInvocationIndex] = a;
        vector<uint, 40> b = rows[gl_LocalInvocationIndex];
        uint sum = 0u;
        for (uint k = 0u; k < 40u; ++k) sum += b[k] * (k + 1u);
        o[i] = sum;)",
                                            "#extension GL_EXT_long_vector : require\n"
                                            "shared vector<uint, 40> rows[64];"));
    Check(module, [](uint32_t i) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 40; ++k) {
            sum += (i + k * k) * (k + 1);
        }
        return sum;
    });
    const Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    size_t loaded = 0;
    size_t stored = 0;
    for (uint32_t id = 0; id < kernel->num_insts(); ++id) {
        const ir::Instruction& inst = kernel->inst(ir::InstId{id});
        if (inst.op == ir::Op::kLoadShared) {
            EXPECT_LE(inst.results.size(), 16u);
            loaded += inst.results.size();
        } else if (inst.op == ir::Op::kStoreShared) {
            EXPECT_LE(inst.operands.size(), 17u);  // with the offset
            stored += inst.operands.size() - 1;
        }
    }
    EXPECT_EQ(loaded, 40u);
    EXPECT_EQ(stored, 40u);
}

// Both scopes and both forms. One whose result nobody uses is read, too.
TEST(ReaderExtensions, ClocksOnlyGrow) {
    const char* declarations =
        "#extension GL_ARB_gpu_shader_int64 : require\n"
        "#extension GL_ARB_shader_clock : require\n"
        "#extension GL_EXT_shader_realtime_clock : require\n";
    const Words module = CompileGlsl(Shader(R"(
        uint64_t times[6];
        times[0] = clockARB();
        times[1] = clockRealtimeEXT();
        for (uint k = 0u; k < 2u; ++k)
            times[2 + k] = clockARB();
        times[4] = packUint2x32(clock2x32ARB());
        times[5] = packUint2x32(clockRealtime2x32EXT());
        uint grown = 0u;
        for (uint k = 0u; k < 5u; ++k)
            grown += times[k] < times[k + 1] ? 1u : 0u;
        clockARB();
        o[i] = grown;)",
                                            declarations));
    Check(module, [](uint32_t) { return 5u; });
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok());
    const std::string text = ir::PrintKernel(*kernel);
    size_t readings = 0;
    for (size_t at = 0; (at = text.find("read_clock", at)) != std::string::npos; ++at) {
        ++readings;
    }
    EXPECT_EQ(readings, 6u);
}

TEST(ReaderExtensions, ClocksOfOtherScopesAreRefused) {
    for (const bool scope : {true, false}) {  // or else of another type
        const std::string text = std::string(R"(
            OpCapability Shader
            OpCapability Int64
            OpCapability ShaderClockKHR
            OpExtension "SPV_KHR_shader_clock"
            OpMemoryModel Logical GLSL450
            OpEntryPoint GLCompute %main "main"
            OpExecutionMode %main LocalSize 1 1 1
            %void = OpTypeVoid
            %fn = OpTypeFunction %void
            %uint = OpTypeInt 32 0
            %float = OpTypeFloat 32
            %long = OpTypeInt 64 0
            %scope = OpConstant %uint )") +
                                 (scope ? "2" : "3") + R"(
            %main = OpFunction %void None %fn
            %entry = OpLabel
            %time = OpReadClockKHR )" +
                                 (scope ? "%long" : "%float") + R"( %scope
            OpReturn
            OpFunctionEnd)";
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(AssembleSpirv(text)));
        ASSERT_FALSE(kernel.ok());
        EXPECT_THAT(kernel.error().message,
                    HasSubstr(scope ? "another scope than subgroup and device" : "neither"));
    }
}

// The number of components comes from a constant.
TEST(ReaderExtensions, VectorsOfASpecializedLength) {
    const Words module = CompileGlsl(Shader(R"(
        vector<uint, N> a = vector<uint, N>(i + 1u);
        uint sum = 0u;
        for (uint k = 0u; k < N; ++k) sum += a[k];
        o[i] = sum;)",
                                            "#extension GL_EXT_long_vector : require\n"
                                            "layout(constant_id = 0) const uint N = 6;"));
    Check(module, [](uint32_t i) { return 6 * (i + 1); });
}

constexpr char kTwoStages[] = R"(
    OpCapability Shader
    OpCapability DemoteToHelperInvocation
    OpExtension "SPV_EXT_demote_to_helper_invocation"
    OpExtension "SPV_KHR_terminate_invocation"
    OpExtension "SPV_KHR_non_semantic_info"
    %set = OpExtInstImport "NonSemantic.Unknown.1"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main"
    OpEntryPoint Fragment %pixel "pixel"
    OpExecutionMode %main LocalSize 8 1 1
    OpExecutionMode %pixel OriginUpperLeft
    %void = OpTypeVoid
    %bool = OpTypeBool
    %fn = OpTypeFunction %void
    %early = OpExtInst %void %set 7
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %inside = OpExtInst %void %set 1 %void
    CALL
    OpReturn
    OpFunctionEnd
    %between = OpExtInst %void %set 2 %main
    %pixel = OpFunction %void None %fn
    %pentry = OpLabel
    OpDemoteToHelperInvocation
    OpReturn
    OpFunctionEnd
    %ending = OpFunction %void None %fn
    %ending_entry = OpLabel
    OpTerminateInvocation
    OpFunctionEnd
    %asking = OpFunction %void None %fn
    %asking_entry = OpLabel
    %helps = OpIsHelperInvocationEXT %bool
    OpReturn
    OpFunctionEnd
    %after = OpExtInst %void %set 3
)";

Words TwoStages(const std::string& call) {
    std::string text = kTwoStages;
    text.replace(text.find("CALL"), 4, call);
    return AssembleSpirv(text);
}

TEST(ReaderExtensions, OtherStagesAndUnknownSetsDoNotMatter) {
    const Words module = TwoStages("");
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
}

TEST(ReaderExtensions, WhatOnlyFragmentsHaveIsRefused) {
    struct {
        const char* function;
        const char* instruction;
    } const cases[] = {{"%pixel", "OpDemoteToHelperInvocation"},
                       {"%ending", "OpTerminateInvocation"},
                       {"%asking", "OpIsHelperInvocationEXT"}};
    for (const auto& c : cases) {
        const Words module = TwoStages("%c = OpFunctionCall %void " + std::string(c.function));
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        ASSERT_FALSE(kernel.ok());
        EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported);
        EXPECT_THAT(kernel.error().message, HasSubstr(c.instruction));
        EXPECT_THAT(kernel.error().message, HasSubstr("fragment shaders only"));
    }
}

// Records as compiler/kernel/interface/debug_printf.h has them, for what has room.
TEST(ReaderExtensions, PrintfLeavesRecords) {
    const Words module = CompileGlsl(Shader(R"(
        if (i % 2u == 0u)
            debugPrintfEXT("%u %f", i + 5u, vec2(0.5, i));
        o[i] = i;)",
                                            "#extension GL_EXT_debug_printf : require\n"));
    CompileRequest request = MakeRequest(module);
    ShaderData data;
    data.output.assign(16, 0);
    for (uint32_t capacity : {1000u, 40u}) {
        SCOPED_TRACE(capacity);
        struct {
            PrintfHeader header;
            uint32_t words[1000] = {};
        } buffer;
        request.options.printf_address = reinterpret_cast<uint64_t>(&buffer);
        request.options.printf_words = capacity;
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        // Two words, "%u %f" NUL "iff" in three, and three values.
        constexpr uint32_t kWords = 8;
        const auto taken = static_cast<uint32_t>(buffer.header.words);
        EXPECT_EQ(buffer.header.words >> 32, taken);
        std::vector<uint32_t> seen;
        for (const uint32_t* word = buffer.words; word[0] != 0; word += kWords) {
            ASSERT_EQ(word[0], kWords);
            EXPECT_EQ(word[1], 9u);
            EXPECT_EQ(std::memcmp(word + 2, "%u %f\0iff", 9), 0);
            EXPECT_EQ(word[6], std::bit_cast<uint32_t>(0.5f));
            EXPECT_EQ(word[7], std::bit_cast<uint32_t>(static_cast<float>(word[5] - 5)));
            seen.push_back(word[5] - 5);
        }
        EXPECT_EQ(seen.size(), std::min(capacity / kWords, 8u));
        EXPECT_EQ(buffer.header.lost, 8 - seen.size());
        EXPECT_GE(taken, seen.size() * kWords);
        std::ranges::sort(seen);
        EXPECT_EQ(std::ranges::unique(seen).size(), 0u);
        for (uint32_t i : seen) {
            EXPECT_TRUE(i % 2 == 0 && i < 16) << i;
        }
    }
    // Nobody wants to hear it: nothing is left of it.
    request.options.printf_address = 0;
    Result<ir::Kernel> kernel = ReadSpirv(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(ir::PrintKernel(*kernel).find("atomic"), std::string::npos);
}

// HLSL as glslang compiles it: structured buffers, constant buffers, group-shared memory.
TEST(ReaderExtensions, Hlsl) {
    const Words module = CompileGlsl(R"(
        struct Pair { uint a; float b; };
        StructuredBuffer<Pair> input : register(t1);
        RWStructuredBuffer<uint> output : register(u0);
        cbuffer Parameters : register(b2) { uint scale; float4 offsets[2]; };
        groupshared uint tile[8];
        [numthreads(8, 1, 1)]
        void main(uint3 id : SV_DispatchThreadID, uint local : SV_GroupIndex) {
            tile[local] = input[id.x].a * scale;
            GroupMemoryBarrierWithGroupSync();
            output[id.x] = tile[7 - local] + (uint)(input[id.x].b + offsets[1].y);
        })",
                                     "-D -e main -S comp --hlsl-iomap");
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(16, 0);
    for (uint32_t i = 0; i < 16; ++i) {
        data.storage.push_back(i * i + 1);
        data.storage.push_back(std::bit_cast<uint32_t>(static_cast<float>(i) * 3));
    }
    data.uniform.assign(12, 0);
    data.uniform[0] = 5;
    data.uniform[9] = std::bit_cast<uint32_t>(100.0f);
    Status status = RunShader(*kernel, data);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (uint32_t i = 0; i < 16; ++i) {
        const uint32_t other = i / 8 * 8 + 7 - i % 8;
        ASSERT_EQ(data.output[i], (other * other + 1) * 5 + i * 3 + 100) << i;
    }
}

// The line of the first store, as debugging information of either kind tells it.
TEST(ReaderExtensions, SourceLinesAreFound) {
    const std::string source = Shader("uint twice = i * 2u;\n    o[i] = twice;");
    const auto line =
        1 + std::count(source.begin(),
                       source.begin() + static_cast<ptrdiff_t>(source.find("o[i] =")), '\n');
    for (const char* options : {"-g", "-gVS"}) {
        SCOPED_TRACE(options);
        const Words words = CompileGlsl(source, options);
        Result<spirv::Module> module = spirv::Module::Parse(words);
        ASSERT_TRUE(module.ok());
        const spirv::SourceMap map(*module);
        uint32_t last_store = 0;
        for (const spirv::Inst& inst : module->insts()) {
            if (inst.op == spv::Op::OpStore) {
                last_store = inst.offset;
            }
        }
        EXPECT_EQ(map.Instruction(last_store), "OpStore");
        EXPECT_THAT(map.Source(last_store), testing::EndsWith(":" + std::to_string(line)));
        EXPECT_EQ(map.Instruction(last_store + 1), "");
    }
    const Words plain = CompileGlsl(source, "-g0");
    Result<spirv::Module> module = spirv::Module::Parse(plain);
    ASSERT_TRUE(module.ok());
    EXPECT_EQ(spirv::SourceMap(*module).Source(module->insts().back().offset), "");
}

}  // namespace
}  // namespace fornax::kernel
