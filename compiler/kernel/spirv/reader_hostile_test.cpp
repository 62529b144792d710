// Broken modules: every one gives an error or a kernel that Verify accepts, in bounded time.
#include <gtest/gtest.h>

#include <ctime>

#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

constexpr char kDeclarations[] = R"(
struct Part { mat3x2 m; float f[3]; };
layout(set = 0, binding = 1) buffer In { uint s[]; };
layout(set = 0, binding = 2) uniform U { layout(row_major) mat4 rows; Part part; vec3 v; };
layout(push_constant) uniform P { uint n; vec2 scale[3]; };
layout(constant_id = 3) const uint kCount = 4;
shared vec4 tile[8];
uint Search(uint n) {
    for (uint k = 0; k < kCount * 2; ++k) { if (k * k >= n) return k; }
    return s.length();
})";
constexpr char kBody[] = R"(
    tile[gl_LocalInvocationIndex] = rows * vec4(v, float(i));
    barrier();
    vec4 t = tile[7 - gl_LocalInvocationIndex];
    uint r = Search(i);
    switch (i % 5) {
        case 0: r += atomicAdd(s[2], 1u);
        case 1: for (uint k = 0; k < n; ++k) { if (k == i) break; t[k & 3] += part.f[k % 3]; } break;
        case 2: r ^= packHalf2x16(t.xy * scale[1]); break;
        default: r = uint(dot(part.m * vec3(t), normalize(t.xy))); break;
    }
    o[i] = r + uint(t.x) + uint(inverse(rows)[1][2]);)";

const Words& Module() {
    static const Words module = CompileGlsl(Shader(kBody, kDeclarations));
    return module;
}
const Words& OptimizedModule() {
    static const Words module = OptimizeSpirv(Module(), "-O");
    return module;
}

TEST(ReaderHostile, TheModulesThemselvesAreRead) {
    for (const Words* module : {&Module(), &OptimizedModule()}) {
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(*module));
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    }
}

// A prefix ends inside a function or before the entry point's, so none is a module.
TEST(ReaderHostile, TruncatedAtEveryWord) {
    for (const Words* module : {&Module(), &OptimizedModule()}) {
        for (size_t size = 0; size < module->size(); ++size) {
            Words part(module->begin(), module->begin() + static_cast<ptrdiff_t>(size));
            Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(part));
            bool ends_between_functions = kernel.ok();
            if (ends_between_functions) {
                EXPECT_TRUE(ir::Verify(*kernel).ok());
            } else {
                EXPECT_FALSE(kernel.error().message.empty());
            }
        }
        Words without_end(module->begin(), module->end() - 1);
        EXPECT_FALSE(ReadSpirv(MakeRequest(without_end)).ok());
    }
}

TEST(ReaderHostile, RandomMutations) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    auto random = [&](uint32_t below) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<uint32_t>((state >> 32) % below);
    };
    uint32_t accepted = 0;
    for (int round = 0; round < 3000; ++round) {
        Words module = round % 2 ? Module() : OptimizedModule();
        for (uint32_t count = 1 + random(3); count > 0; --count) {
            uint32_t at = 3 + random(static_cast<uint32_t>(module.size()) - 3);
            switch (random(5)) {
                case 0:
                    module[at] = random(UINT32_MAX);
                    break;
                case 1:
                    module[at] ^= 1u << random(32);
                    break;
                case 2:
                    module[at] = random(module[3]);  // another id
                    break;
                case 3:
                    module[at] = module[5 + random(static_cast<uint32_t>(module.size()) - 5)];
                    break;
                default:
                    module[at] = module[at] + 1 - random(3);
                    break;
            }
        }
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        if (kernel.ok()) {
            ++accepted;
        } else {
            EXPECT_FALSE(kernel.error().message.empty());
        }
    }
    // Names, literals and ids of one type make many mutants harmless.
    EXPECT_GT(accepted, 100u);
    EXPECT_LT(accepted, 2900u);
}

// --- bombs: small modules that ask for much
// ---------------------------------------------------------

constexpr char kHeader[] = R"(
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main"
    OpExecutionMode %main LocalSize 1 1 1
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %u2 = OpConstant %uint 2
    %u60k = OpConstant %uint 60000
    %huge = OpConstant %uint 4294967295
)";
constexpr char kEmptyMain[] = R"(
    %main = OpFunction %void None %fn
    %entry = OpLabel
    OpReturn
    OpFunctionEnd
)";

Result<ir::Kernel> ReadText(const std::string& text) {
    Words module = AssembleSpirv(text);
    // The processor's time: sanitised and on a busy machine the same work takes minutes.
    const std::clock_t start = std::clock();
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
    return kernel;
}

TEST(ReaderHostile, CallsThatDouble) {
    std::string text = kHeader;
    text += "%f0 = OpFunction %void None %fn\n%l0 = OpLabel\nOpReturn\nOpFunctionEnd\n";
    for (int k = 1; k <= 40; ++k) {
        std::string n = std::to_string(k), before = std::to_string(k - 1);
        text += "%f" + n + " = OpFunction %void None %fn\n%l" + n + " = OpLabel\n%a" + n +
                " = OpFunctionCall %void %f" + before + "\n%b" + n + " = OpFunctionCall %void %f" +
                before + "\nOpReturn\nOpFunctionEnd\n";
    }
    text +=
        "%main = OpFunction %void None %fn\n%entry = OpLabel\n%c = OpFunctionCall %void %f40\n"
        "OpReturn\nOpFunctionEnd\n";
    Result<ir::Kernel> kernel = ReadText(text);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported) << kernel.error().message;
    EXPECT_NE(kernel.error().message.find("2000000"), std::string::npos) << kernel.error().message;
}

TEST(ReaderHostile, RecursionIsNamed) {
    Result<ir::Kernel> kernel = ReadText(std::string(kHeader) + R"(
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %c = OpFunctionCall %void %main
        OpReturn
        OpFunctionEnd)");
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(kernel.error().message.find("OpFunctionCall at word"), std::string::npos);
}

TEST(ReaderHostile, NestedArraysOfHugeLengthMayBeDeclared) {
    std::string text = std::string(kHeader) + "%a0 = OpTypeArray %uint %huge\n";
    for (int k = 1; k < 40; ++k) {
        text += "%a" + std::to_string(k) + " = OpTypeArray %a" + std::to_string(k - 1) + " %huge\n";
    }
    EXPECT_TRUE(ReadText(text + kEmptyMain).ok());
    Result<ir::Kernel> kernel = ReadText(text + R"(
        %p = OpTypePointer Function %a39
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %v = OpVariable %p Function
        OpReturn
        OpFunctionEnd)");
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported);
}

TEST(ReaderHostile, TypesNestedTooDeeply) {
    std::string text = std::string(kHeader) + "%s0 = OpTypeStruct %uint\n";
    for (int k = 1; k < 2000; ++k) {
        text += "%s" + std::to_string(k) + " = OpTypeStruct %s" + std::to_string(k - 1) + "\n";
    }
    Result<ir::Kernel> kernel = ReadText(text + kEmptyMain);
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("256"), std::string::npos) << kernel.error().message;
}

TEST(ReaderHostile, ConstantsThatNameLargeOnes) {
    std::string text = std::string(kHeader) +
                       "%arr = OpTypeArray %uint %u60k\n%pair = OpTypeStruct %arr\n"
                       "%zero = OpConstantNull %arr\n";
    for (int k = 0; k < 3000; ++k) {
        text += "%c" + std::to_string(k) + " = OpConstantComposite %pair %zero\n";
    }
    Result<ir::Kernel> kernel = ReadText(text + kEmptyMain);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported);
}

TEST(ReaderHostile, RearrangingLargeComposites) {
    std::string text = std::string(kHeader) + R"(
        %arr = OpTypeArray %uint %u60k
        %zero = OpConstantNull %arr
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %i0 = OpCompositeInsert %arr %u2 %zero 7
    )";
    for (int k = 1; k < 3000; ++k) {
        text += "%i" + std::to_string(k) + " = OpCompositeInsert %arr %u2 %i" +
                std::to_string(k - 1) + " 7\n";
    }
    Result<ir::Kernel> kernel = ReadText(text + "OpReturn\nOpFunctionEnd\n");
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported) << kernel.error().message;
}

TEST(ReaderHostile, DeeplyNestedSelections) {
    std::string text = std::string(kHeader) +
                       "%bool = OpTypeBool\n%yes = OpConstantTrue %bool\n"
                       "%main = OpFunction %void None %fn\n%h0 = OpLabel\n";
    constexpr int kDepth = 3000;
    for (int k = 0; k < kDepth; ++k) {
        std::string n = std::to_string(k), next = std::to_string(k + 1);
        text += "OpSelectionMerge %m" + n + " None\nOpBranchConditional %yes %h" + next + " %m" +
                n + "\n%h" + next + " = OpLabel\n";
    }
    text += "OpBranch %m" + std::to_string(kDepth - 1) + "\n";
    for (int k = kDepth - 1; k >= 0; --k) {
        text += "%m" + std::to_string(k) + " = OpLabel\n";
        text += k ? "OpBranch %m" + std::to_string(k - 1) + "\n" : "OpReturn\nOpFunctionEnd\n";
    }
    Result<ir::Kernel> kernel = ReadText(text);
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("256"), std::string::npos) << kernel.error().message;
}

// Both sides lead to one block that neither merges: translated twice at each level.
TEST(ReaderHostile, UnstructuredDiamonds) {
    std::string text = std::string(kHeader) +
                       "%bool = OpTypeBool\n%yes = OpConstantTrue %bool\n"
                       "%main = OpFunction %void None %fn\n%d0 = OpLabel\n";
    constexpr int kLevels = 60;
    for (int k = 0; k < kLevels; ++k) {
        std::string n = std::to_string(k), next = std::to_string(k + 1);
        text += "OpBranchConditional %yes %x" + n + " %y" + n + "\n%x" + n +
                " = OpLabel\nOpBranch %d" + next + "\n%y" + n + " = OpLabel\nOpBranch %d" + next +
                "\n%d" + next + " = OpLabel\n";
    }
    Result<ir::Kernel> kernel = ReadText(text + "OpReturn\nOpFunctionEnd\n");
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("200000"), std::string::npos) << kernel.error().message;
}

TEST(ReaderHostile, AnEndlessCircleOfBlocks) {
    Result<ir::Kernel> kernel = ReadText(std::string(kHeader) + R"(
        %main = OpFunction %void None %fn
        %entry = OpLabel
        OpBranch %a
        %a = OpLabel
        OpBranch %b
        %b = OpLabel
        OpBranch %a
        OpFunctionEnd)");
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("no loop header"), std::string::npos)
        << kernel.error().message;
}

// 100 cases, each falling into the next: the last block is translated 100 times, and that is right.
TEST(ReaderHostile, LongFallThroughIsRead) {
    std::string cases;
    for (int k = 0; k < 100; ++k) {
        cases += "case " + std::to_string(k) + ": x = x * 3 + " + std::to_string(k) + ";\n";
    }
    Result<ir::Kernel> kernel = ReadSpirv(
        MakeRequest(CompileGlsl(Shader("uint x = i; switch (i) {" + cases + "} o[i] = x;"))));
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
}

// The operation of an OpSpecConstantOp is evaluated before there is a kernel to verify.
TEST(ReaderHostile, ConstantsOfOtherTypesThanTheirOperationTakes) {
    for (const char* operation :
         {"%uint FMul %two %two", "%uint FNegate %two", "%float IAdd %half %half",
          "%bool IEqual %half %half", "%bool LogicalNot %two", "%float Select %two %half %half"}) {
        Result<ir::Kernel> kernel = ReadText(std::string(kHeader) + R"(
        %bool = OpTypeBool
        %float = OpTypeFloat 32
        %half = OpSpecConstant %float 0.5
        %two = OpSpecConstant %uint 2
        %result = OpSpecConstantOp )" + operation +
                                             R"(
        %main = OpFunction %void None %fn
        %entry = OpLabel
        OpReturn
        OpFunctionEnd)");
        EXPECT_FALSE(kernel.ok()) << operation;
    }
}

TEST(ReaderHostile, ValuesWithoutScalars) {
    Result<ir::Kernel> kernel = ReadText(std::string(kHeader) + R"(
        %none = OpTypeStruct
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %empty = OpCompositeConstruct %none
        %bits = OpBitcast %uint %empty
        OpReturn
        OpFunctionEnd)");
    EXPECT_FALSE(kernel.ok());
}

TEST(ReaderHostile, VariablesOfWhatIsNoValue) {
    for (const char* part : {"%void", "%fn", "%sampler"}) {
        Result<ir::Kernel> kernel = ReadText(std::string(kHeader) + R"(
        %sampler = OpTypeSampler
        %pair = OpTypeStruct %uint )" + part +
                                             R"(
        %pointer = OpTypePointer Function %pair
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %variable = OpVariable %pointer Function
        OpReturn
        OpFunctionEnd)");
        ASSERT_FALSE(kernel.ok()) << part;
        EXPECT_NE(kernel.error().message.find("no variable"), std::string::npos)
            << kernel.error().message;
    }
}

// The initialisers of module scope follow each other through the module, one call deeper each.
TEST(ReaderHostile, VariablesThatBeginAsEachOther) {
    for (const char* variables : {"%a = OpVariable %pointer Private %a",
                                  "%a = OpVariable %pointer Private %b\n"
                                  "%b = OpVariable %pointer Private %a"}) {
        Result<ir::Kernel> kernel = ReadText(std::string(kHeader) + R"(
        %pointer = OpTypePointer Private %uint
        )" + variables + R"(
        %main = OpFunction %void None %fn
        %entry = OpLabel
        OpReturn
        OpFunctionEnd)");
        ASSERT_FALSE(kernel.ok());
        EXPECT_NE(kernel.error().message.find("not declared before"), std::string::npos)
            << kernel.error().message;
    }
}

TEST(ReaderHostile, SharedMemoryBeyondTheLimitIsNamed) {
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(CompileGlsl(
        Shader("big[i] = i; barrier(); o[i] = big[i + 1];", "shared uint big[17000];"))));
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("68000"), std::string::npos) << kernel.error().message;
    EXPECT_NE(kernel.error().message.find("65536"), std::string::npos) << kernel.error().message;
}

TEST(ReaderHostile, UnsupportedThingsAreNamed) {
    auto message = [](const Words& module) {
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        EXPECT_FALSE(kernel.ok());
        return kernel.ok() ? "" : kernel.error().message;
    };
    EXPECT_NE(message(CompileGlsl(Shader("o[i] = uint(texelFetch(t, ivec2(0), 0).x);",
                                         "layout(set = 0, binding = 5) uniform sampler2DMS t;")))
                  .find("set 0, binding 5"),
              std::string::npos);
    std::string unsupported = message(AssembleSpirv(std::string(kHeader) + R"(
        %main = OpFunction %void None %fn
        %entry = OpLabel
        OpDemoteToHelperInvocation
        OpReturn
        OpFunctionEnd)"));
    EXPECT_NE(unsupported.find("OpDemoteToHelperInvocation"), std::string::npos) << unsupported;
    EXPECT_NE(unsupported.find("at word"), std::string::npos) << unsupported;
    std::string missing = message(
        CompileGlsl(Shader("o[i] = a;", "layout(set = 3, binding = 9) buffer A { uint a; };")));
    EXPECT_NE(missing.find("set 3, binding 9"), std::string::npos) << missing;
}

}  // namespace
}  // namespace fornax::kernel
