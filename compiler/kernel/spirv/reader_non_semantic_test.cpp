// Instructions without meaning (NonSemantic.*): the reader takes them wherever spirv-val does, and
// they change no result.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

// Invocation i writes the sum of 0 to i - 1, plus Twice(i). Each `@name@` is a place for
// instructions.
constexpr char kModule[] = R"(
    OpCapability Shader
    OpExtension "SPV_KHR_non_semantic_info"
    OpExtension "SPV_KHR_storage_buffer_storage_class"
    OpExtension "SPV_KHR_relaxed_extended_instruction"
    %debug = OpExtInstImport "NonSemantic.Shader.DebugInfo.100"
    %other = OpExtInstImport "NonSemantic.Unknown.1"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %ids
    OpExecutionMode %main LocalSize 8 1 1
    %file = OpString "shader.slang"
    %text = OpString "twice"
    OpDecorate %ids BuiltIn GlobalInvocationId
    OpDecorate %words ArrayStride 4
    OpMemberDecorate %block 0 Offset 0
    OpDecorate %block Block
    OpDecorate %out DescriptorSet 0
    OpDecorate %out Binding 0
    %void = OpTypeVoid
    @types@
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %u32x3 = OpTypeVector %u32 3
    %zero = OpConstant %u32 0
    %one = OpConstant %u32 1
    %four = OpConstant %u32 4
    %eleven = OpConstant %u32 11
    %words = OpTypeRuntimeArray %u32
    %block = OpTypeStruct %words
    %to_block = OpTypePointer StorageBuffer %block
    %to_word = OpTypePointer StorageBuffer %u32
    %to_ids = OpTypePointer Input %u32x3
    %to_local = OpTypePointer Function %u32
    %out = OpVariable %to_block StorageBuffer
    %ids = OpVariable %to_ids Input
    %procedure = OpTypeFunction %void
    %binary = OpTypeFunction %u32 %u32 %u32
    %source = OpExtInst %void %debug DebugSource %file
    %unit = OpExtInst %void %debug DebugCompilationUnit %one %four %source %eleven
    %debug_type = OpExtInst %void %debug DebugTypeFunction %zero %void
    %debug_twice = OpExtInst %void %debug DebugFunction %text %debug_type %source %one %one %unit %text %zero %one
    @globals@
    %main = OpFunction %void None %procedure
    @before the first block@
    %entry = OpLabel
    @before variables@
    %sum = OpVariable %to_local Function
    @between variables@
    %index = OpVariable %to_local Function
    @behind variables@
    OpStore %sum %zero
    %all = OpLoad %u32x3 %ids
    %i = OpCompositeExtract %u32 %all 0
    OpStore %index %i
    @before a terminator@
    OpBranch %header
    @between blocks@
    %header = OpLabel
    @before phis@
    %k = OpPhi %u32 %zero %entry %next %continue
    @between phis@
    %total = OpPhi %u32 %zero %entry %more %continue
    @behind phis@
    %again = OpULessThan %bool %k %i
    @before a merge@
    OpLoopMerge %done %continue None
    OpBranchConditional %again %body %done
    @behind a loop header@
    %body = OpLabel
    %more = OpIAdd %u32 %total %k
    OpBranch %continue
    %continue = OpLabel
    %next = OpIAdd %u32 %k %one
    OpBranch %header
    @before a merge block@
    %done = OpLabel
    %twice = OpFunctionCall %u32 %double %i %i
    %result = OpIAdd %u32 %total %twice
    %place = OpAccessChain %to_word %out %zero %i
    OpStore %place %result
    OpReturn
    @behind the last block@
    OpFunctionEnd
    @between functions@
    %double = OpFunction %u32 None %binary
    @before parameters@
    %a = OpFunctionParameter %u32
    @between parameters@
    %b = OpFunctionParameter %u32
    @behind parameters@
    %double_entry = OpLabel
    @in a first block@
    %double_sum = OpIAdd %u32 %a %b
    OpReturnValue %double_sum
    @behind a value's return@
    OpFunctionEnd
    @behind the last function@
)";

// The module with instructions in one place and nothing in the others.
Words WithInstructions(const std::string& place, const std::string& instructions) {
    std::string text = kModule;
    for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
        const size_t end = text.find('@', at + 1);
        const bool here = text.substr(at + 1, end - at - 1) == place;
        text.replace(at, end + 1 - at, here ? instructions : "");
    }
    return AssembleSpirv(text);
}

void ExpectRightResults(const Words& module) {
    const Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.assign(16, 0xdeadbeef);
    const Status status = RunShader(*kernel, data);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (uint32_t i = 0; i < 16; ++i) {
        ASSERT_EQ(data.output[i], i * (i - 1) / 2 + 2 * i) << "invocation " << i;
    }
}

// Each instruction by itself, in each place.
void ExpectValidIn(std::initializer_list<const char*> places,
                   std::initializer_list<const char*> instructions) {
    for (const char* place : places) {
        for (const char* instruction : instructions) {
            SCOPED_TRACE(std::string(instruction) + place);
            const Words module = WithInstructions(place, instruction);
            EXPECT_EQ(SpirvErrors(module), "");
            ExpectRightResults(module);
        }
    }
}

constexpr const char* kLine =
    "%line = OpExtInst %void %debug DebugLine %source %one %one %one %one\n";
constexpr const char* kNoLine = "%no_line = OpExtInst %void %debug DebugNoLine\n";
constexpr const char* kScope = "%scope = OpExtInst %void %debug DebugScope %debug_twice\n";
constexpr const char* kNoScope = "%no_scope = OpExtInst %void %debug DebugNoScope\n";

// Compilers write lines and scopes at the beginning of functions, and between and behind blocks.
TEST(ReaderNonSemantic, DebugInformationStandsOutsideOfBlocks) {
    ExpectValidIn({"before parameters", "between parameters", "behind parameters", "between blocks",
                   "behind a loop header", "before a merge block", "behind the last block",
                   "behind a value's return"},
                  {kLine, kNoLine, kScope, kNoScope});
}

TEST(ReaderNonSemantic, DebugInformationStandsInBlocks) {
    ExpectValidIn({"behind variables", "before a terminator", "behind phis", "before a merge",
                   "in a first block"},
                  {kLine, kNoLine, kScope, kNoScope});
    ExpectValidIn(
        {"in a first block"},
        {"%definition = OpExtInst %void %debug DebugFunctionDefinition %debug_twice %double\n"});
}

// Versions of spirv-val disagree about these, so it is not asked.
TEST(ReaderNonSemantic, DebugInformationStandsAmongVariablesAndPhis) {
    for (const char* place : {"before the first block", "before variables", "between variables",
                              "before phis", "between phis"}) {
        for (const char* instruction : {kLine, kNoLine, kScope, kNoScope}) {
            SCOPED_TRACE(std::string(instruction) + place);
            ExpectRightResults(WithInstructions(place, instruction));
        }
    }
}

// Sets that nobody knows, also with operands that come later
// (SPV_KHR_relaxed_extended_instruction).
TEST(ReaderNonSemantic, OtherSetsStandInBlocksAndOutsideOfFunctions) {
    ExpectValidIn(
        {"types", "globals", "behind variables", "before a terminator", "behind phis",
         "before a merge", "in a first block", "between functions", "behind the last function"},
        {"%first = OpExtInst %void %other 7\n"
         "%second = OpExtInst %void %other 8 %first %file\n",
         "%first = OpExtInstWithForwardRefsKHR %void %other 7 %second\n"
         "%second = OpExtInst %void %other 8 %first\n"});
}

// What has a meaning is still refused there.
TEST(ReaderNonSemantic, InstructionsWithMeaningStandInBlocks) {
    for (const char* place :
         {"before the first block", "between blocks", "behind the last block"}) {
        SCOPED_TRACE(place);
        const Words module = WithInstructions(place, "%lost = OpIAdd %u32 %one %one\n");
        EXPECT_NE(SpirvErrors(module), "");
        const Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        ASSERT_FALSE(kernel.ok());
        EXPECT_NE(kernel.error().message.find("stands outside a block"), std::string::npos)
            << kernel.error().message;
    }
}

}  // namespace
}  // namespace fornax::kernel
