// DenormFlushToZero and RoundingModeRTZ: which instructions they are for, and which go before them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kDenormal = 0x00400001;
constexpr uint32_t kSmallestNormal = 0x00800000;
constexpr uint32_t kOne = 0x3f800000;

// A module that stores `results` of `code`, as words, from %a and %b, the first two words of
// binding 1 as floats.
std::string Module(const std::string& modes,
                   const std::string& decorations,
                   const std::string& constants,
                   const std::string& code,
                   const std::vector<std::string>& results) {
    std::string text = R"(
OpCapability Shader
OpCapability Float16
OpCapability Int64
OpCapability Float64
OpCapability DenormFlushToZero
OpCapability RoundingModeRTZ
OpExtension "SPV_KHR_float_controls"
%glsl = OpExtInstImport "GLSL.std.450"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpEntryPoint GLCompute %other "other"
OpExecutionMode %main LocalSize 1 1 1
OpExecutionMode %other LocalSize 1 1 1
)" + modes +
                       R"(
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %words ArrayStride 4
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 1
)" + decorations +
                       R"(
%void = OpTypeVoid
%function = OpTypeFunction %void
%bool = OpTypeBool
%half = OpTypeFloat 16
%float = OpTypeFloat 32
%double = OpTypeFloat 64
%uint = OpTypeInt 32 0
%ulong = OpTypeInt 64 0
%pair = OpTypeVector %float 2
%long_pair = OpTypeVector %uint 2
%half_pair = OpTypeVector %half 2
%zero = OpConstant %uint 0
%one = OpConstant %uint 1
%float_zero = OpConstant %float 0
%float_one = OpConstant %float 1
%words = OpTypeRuntimeArray %uint
%block = OpTypeStruct %words
%pointer = OpTypePointer Uniform %block
%element = OpTypePointer Uniform %uint
)" + constants + R"(
%out = OpVariable %pointer Uniform
%in = OpVariable %pointer Uniform
%other = OpFunction %void None %function
%other_label = OpLabel
OpReturn
OpFunctionEnd
%main = OpFunction %void None %function
%label = OpLabel
%place_a = OpAccessChain %element %in %zero %zero
%place_b = OpAccessChain %element %in %zero %one
%word_a = OpLoad %uint %place_a
%word_b = OpLoad %uint %place_b
%a = OpBitcast %float %word_a
%b = OpBitcast %float %word_b
)" + code;
    for (size_t i = 0; i < results.size(); ++i) {
        const std::string n = std::to_string(i);
        std::string index = i == 0 ? "%zero" : "%index" + n;
        text += "%place" + n + " = OpAccessChain %element %out %zero " + index + "\n";
        text += "%word" + n + " = OpBitcast %uint " + results[i] + "\n";
        text += "OpStore %place" + n + " %word" + n + "\n";
    }
    text += "OpReturn\nOpFunctionEnd\n";
    // Indices are constants.
    std::string indices;
    for (size_t i = 1; i < results.size(); ++i) {
        indices += "%index" + std::to_string(i) + " = OpConstant %uint " + std::to_string(i) + "\n";
    }
    text.insert(text.find("%words = OpTypeRuntimeArray"), indices);
    return text;
}

std::vector<uint32_t> RunModule(const std::string& text, uint32_t a, uint32_t b) {
    const Words module = AssembleSpirv(text);
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.workgroups = 1;
    data.output.resize(16, 0xdead);
    data.storage = {a, b};
    if (kernel.ok()) {
        const Status status = RunShader(*kernel, data);
        EXPECT_TRUE(status.ok()) << status.error().message;
    }
    return data.output;
}

constexpr const char* kFlush = "OpExecutionMode %main DenormFlushToZero 32\n";
constexpr const char* kToZero = "OpExecutionMode %main RoundingModeRTZ 32\n";

TEST(ReaderFloatModes, WhatComputesFlushesAndWhatMovesDoesNot) {
    const std::string code = R"(
%negated = OpFNegate %float %a
%absolute = OpExtInst %float %glsl FAbs %a
%least = OpExtInst %float %glsl FMin %a %float_one
%same = OpFOrdEqual %bool %a %float_zero
%is_zero = OpSelect %uint %same %one %zero
%chosen = OpSelect %float %same %a %b
%copied = OpCopyObject %float %a
%twice = OpFAdd %float %a %a
%tiny = OpFMul %float %b %b
%made = OpCompositeConstruct %pair %a %b
%taken = OpCompositeExtract %float %made 0
)";
    const std::vector<std::string> results = {"%negated", "%absolute", "%least",
                                              "%is_zero", "%chosen",   "%copied",
                                              "%twice",   "%tiny",     "%taken"};
    const uint32_t small = std::bit_cast<uint32_t>(0x1p-70f);  // its square is a denormal
    const std::vector<uint32_t> flushed =
        RunModule(Module(kFlush, "", "", code, results), kDenormal, small);
    const std::vector<uint32_t> expected = {0x80000000, 0, 0, 1,        kDenormal,
                                            kDenormal,  0, 0, kDenormal};
    for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(flushed[i], expected[i]) << results[i];
    }
    // Another width's mode, or another entry point's, changes nothing.
    for (const char* mode : {"", "OpExecutionMode %main DenormFlushToZero 16\n",
                             "OpExecutionMode %other DenormFlushToZero 32\n"}) {
        const std::vector<uint32_t> kept =
            RunModule(Module(mode, "", "", code, results), kDenormal, small);
        EXPECT_EQ(kept[0], 0x80000000 | kDenormal) << mode;
        EXPECT_EQ(kept[2], kDenormal) << mode;
        EXPECT_EQ(kept[3], 0u) << mode;
        EXPECT_EQ(kept[6], 2 * kDenormal) << mode;
        EXPECT_EQ(kept[7], std::bit_cast<uint32_t>(0x1p-140f)) << mode;
    }
}

TEST(ReaderFloatModes, HalvesInWordsAreHalves) {
    // Packing and unpacking follow the mode of 16 bits, not that of the 32 they are packed from.
    const std::string code = R"(
%half_word = OpExtInst %pair %glsl UnpackHalf2x16 %word_a
%low = OpCompositeExtract %float %half_word 0
%high = OpCompositeExtract %float %half_word 1
%floats = OpCompositeConstruct %pair %b %b
%packed = OpExtInst %uint %glsl PackHalf2x16 %floats
)";
    const std::vector<std::string> results = {"%low", "%high", "%packed"};
    const uint32_t small = std::bit_cast<uint32_t>(0x1p-20f);
    const uint32_t halves = 0x3c0083ff;  // 1 and a negative denormal
    EXPECT_EQ(
        RunModule(Module("OpExecutionMode %main DenormFlushToZero 16\n", "", "", code, results),
                  halves, small),
        (std::vector<uint32_t>{0x80000000, kOne, 0, 0xdead, 0xdead, 0xdead, 0xdead, 0xdead, 0xdead,
                               0xdead, 0xdead, 0xdead, 0xdead, 0xdead, 0xdead, 0xdead}));
    const std::vector<uint32_t> kept =
        RunModule(Module(kFlush, "", "", code, results), halves, small);
    EXPECT_EQ(kept[0], std::bit_cast<uint32_t>(-1023 * 0x1p-24f));
    EXPECT_EQ(kept[2], 0x00100010u);
}

TEST(ReaderFloatModes, SumsProductsAndWhatIsMadeOfThemAreCut) {
    const std::string code = R"(
%sum = OpFAdd %float %a %b
%difference = OpFSub %float %a %b
%product = OpFMul %float %a %b
%fused = OpExtInst %float %glsl Fma %a %b %float_one
%left = OpCompositeConstruct %pair %a %float_one
%right = OpCompositeConstruct %pair %b %float_one
%dot = OpDot %float %left %right
%scaled = OpVectorTimesScalar %pair %left %b
%first = OpCompositeExtract %float %scaled 0
)";
    const std::vector<std::string> results = {"%sum",   "%difference", "%product",
                                              "%fused", "%dot",        "%first"};
    // Difference and product lie nearer to the float that is farther from zero.
    const float a = 0x1.320ad6p+0f;
    const float b = -0x1.ac591p-1f;
    const std::vector<uint32_t> cut =
        RunModule(Module(kToZero, "", "", code, results), std::bit_cast<uint32_t>(a),
                  std::bit_cast<uint32_t>(b));
    const double product = double{a} * b;
    auto towards_zero = [](double value) {
        auto nearest = static_cast<float>(value);
        if (std::abs(double{nearest}) > std::abs(value)) {
            nearest = std::nextafter(nearest, 0.0f);
        }
        return nearest;
    };
    const float expected[] = {towards_zero(double{a} + b),
                              towards_zero(double{a} - b),
                              towards_zero(product),
                              towards_zero(double{towards_zero(product)} + 1),
                              towards_zero(double{towards_zero(product)} + 1),
                              towards_zero(product)};
    for (size_t i = 0; i < std::size(expected); ++i) {
        EXPECT_EQ(cut[i], std::bit_cast<uint32_t>(expected[i])) << results[i];
    }
    EXPECT_NE(expected[1], a - b);
    EXPECT_NE(expected[2], a * b);
}

TEST(ReaderFloatModes, SignsOfZerosAreKeptWhereTheyMatter) {
    // The one of two zeros that the IR's own operation gives is the second.
    const std::string code = R"(
%nmin = OpExtInst %float %glsl NMin %a %b
%fmin = OpExtInst %float %glsl FMin %a %b
%nmax = OpExtInst %float %glsl NMax %b %a
%fmax = OpExtInst %float %glsl FMax %b %a
%fclamp = OpExtInst %float %glsl FClamp %a %b %b
%nclamp = OpExtInst %float %glsl NClamp %b %a %a
%constant = OpExtInst %float %glsl FMin %a %float_zero
%pair_a = OpCompositeConstruct %pair %a %float_one
%pair_b = OpCompositeConstruct %pair %b %float_one
%pairs = OpExtInst %pair %glsl FMin %pair_a %pair_b
%of_pair = OpCompositeExtract %float %pairs 0
%half_a = OpFConvert %half %a
%half_b = OpFConvert %half %b
%half_min = OpExtInst %half %glsl FMin %half_a %half_b
%of_half = OpFConvert %float %half_min
%double_a = OpFConvert %double %a
%double_b = OpFConvert %double %b
%double_min = OpExtInst %double %glsl NMin %double_a %double_b
%of_double = OpFConvert %float %double_min
)";
    const std::vector<std::string> results = {"%nmin",    "%fmin",     "%nmax",     "%fmax",
                                              "%fclamp",  "%nclamp",   "%constant", "%of_pair",
                                              "%of_half", "%of_double"};
    constexpr uint32_t kMinus = 0x80000000;
    const std::vector<uint32_t> kept = {kMinus, kMinus, 0,      0,      0,
                                        kMinus, kMinus, kMinus, kMinus, kMinus};
    const std::vector<uint32_t> loose = {0, 0, kMinus, kMinus, 0, kMinus, 0, 0, 0, 0};
    const std::string flags = R"(
%flags_none = OpConstant %uint 0
%flags_nsz = OpConstant %uint 4
)";
    auto run = [&](const std::string& modes, const std::string& decorations) {
        std::string text = Module(modes, decorations, flags, code, results);
        text.insert(text.find("OpExtension"),
                    "OpCapability FloatControls2\nOpCapability SignedZeroInfNanPreserve\n"
                    "OpExtension \"SPV_KHR_float_controls2\"\n");
        std::vector<uint32_t> got = RunModule(text, kMinus, 0);
        got.resize(results.size());
        return got;
    };
    auto of_all_widths = [](const std::string& flag) {
        std::string modes;
        for (const char* type : {"%half", "%float", "%double"}) {
            modes += "OpExecutionModeId %main FPFastMathDefault " + std::string(type) + " " + flag +
                     "\n";
        }
        return modes;
    };
    EXPECT_EQ(run("", ""), loose);
    EXPECT_EQ(run(of_all_widths("%flags_none"), ""), kept);
    EXPECT_EQ(run(of_all_widths("%flags_nsz"), ""), loose);
    EXPECT_EQ(run("OpExecutionMode %main SignedZeroInfNanPreserve 16\n"
                  "OpExecutionMode %main SignedZeroInfNanPreserve 32\n"
                  "OpExecutionMode %main SignedZeroInfNanPreserve 64\n",
                  ""),
              kept);
    // A decoration comes before the default, either way.
    std::vector<uint32_t> expected = loose;
    expected[0] = kMinus;
    EXPECT_EQ(run(of_all_widths("%flags_nsz"), "OpDecorate %nmin FPFastMathMode NotNaN\n"),
              expected);
    expected = kept;
    expected[1] = loose[1];
    EXPECT_EQ(run(of_all_widths("%flags_none"), "OpDecorate %fmin FPFastMathMode NSZ\n"), expected);
}

TEST(ReaderFloatModes, ConstantsAndDecorationsOfConversions) {
    const std::string constants = R"(
%precise = OpConstant %float 1.0009
%constant = OpSpecConstantOp %half FConvert %precise
)";
    const std::string code = R"(
%by_mode = OpFConvert %half %a
%by_decoration = OpFConvert %half %a
%first_pair = OpCompositeConstruct %half_pair %by_mode %by_decoration
%second_pair = OpCompositeConstruct %half_pair %constant %constant
)";
    const std::vector<std::string> results = {"%first_pair", "%second_pair"};
    const uint32_t precise = std::bit_cast<uint32_t>(1.0009f);  // nearer to 0x3c01 than to 0x3c00
    const char* to_zero = "OpExecutionMode %main RoundingModeRTZ 16\n";
    const auto decorated = [](const char* mode) {
        return std::string("OpDecorate %by_decoration FPRoundingMode ") + mode + "\n";
    };
    std::vector<uint32_t> got =
        RunModule(Module(to_zero, decorated("RTE"), constants, code, results), precise, 0);
    EXPECT_EQ(got[0], 0x3c013c00u);
    EXPECT_EQ(got[1], 0x3c003c00u);
    got = RunModule(Module("", decorated("RTZ"), constants, code, results), precise, 0);
    EXPECT_EQ(got[0], 0x3c003c01u);
    EXPECT_EQ(got[1], 0x3c013c01u);
}

TEST(ReaderFloatModes, OverflowEndsAtTheLargestNumberAndInfinityStays) {
    const std::string code = R"(
%sum = OpFAdd %float %a %a
%product = OpFMul %float %a %a
%zero_product = OpFMul %float %b %b
)";
    const std::vector<std::string> results = {"%sum", "%product", "%zero_product"};
    const std::string text = Module(kToZero, "", "", code, results);
    constexpr uint32_t kLargest = 0x7f7fffff;
    constexpr uint32_t kInfinity = 0x7f800000;
    std::vector<uint32_t> got = RunModule(text, kLargest, kSmallestNormal);
    EXPECT_EQ(got[0], kLargest);
    EXPECT_EQ(got[1], kLargest);
    EXPECT_EQ(got[2], 0u);
    got = RunModule(text, kInfinity, 0x80000000);
    EXPECT_EQ(got[0], kInfinity);
    EXPECT_EQ(got[1], kInfinity);
    got = RunModule(text, 0x7fc00000, 0);
    EXPECT_GT(got[0] & 0x7fffffff, kInfinity);
    EXPECT_GT(got[1] & 0x7fffffff, kInfinity);
}

}  // namespace
}  // namespace fornax::kernel
