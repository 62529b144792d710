// Instructions that no other test of the reader has a reason to use, one by one
// (tests/capabilities/instructions_test.cpp says which those are).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/half.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kInvocations = 16;

// `body` computes the uint %r from the storage buffer's words 2 * %i and 2 * %i + 1, which are %x
// and %y, as int %xi and %yi, as float %xf and %yf. %place is word 2 * %i itself.
struct Parts {
    std::string declarations;
    std::string decorations;
    std::string capabilities;
};

std::string Module(const std::string& body, const Parts& parts = {}) {
    return R"(OpCapability Shader
        )" +
           parts.capabilities +
           R"(
        %glsl = OpExtInstImport "GLSL.std.450"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main" %id %out %in
        OpExecutionMode %main LocalSize 8 1 1
        )" +
           parts.decorations +
           R"(
        OpDecorate %id BuiltIn GlobalInvocationId
        OpDecorate %words ArrayStride 4
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %out DescriptorSet 0
        OpDecorate %out Binding 0
        OpDecorate %in DescriptorSet 0
        OpDecorate %in Binding 1
        %void = OpTypeVoid
        %bool = OpTypeBool
        %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
        %float = OpTypeFloat 32
        %vec2 = OpTypeVector %float 2
        %vec4 = OpTypeVector %float 4
        %mat2 = OpTypeMatrix %vec2 2
        %uvec3 = OpTypeVector %uint 3
        %zero = OpConstant %uint 0
        %one = OpConstant %uint 1
        %two = OpConstant %uint 2
        %three = OpConstant %uint 3
        %words = OpTypeRuntimeArray %uint
        %block = OpTypeStruct %words
        %block_pointer = OpTypePointer StorageBuffer %block
        %pointer = OpTypePointer StorageBuffer %uint
        %id_pointer = OpTypePointer Input %uvec3
        %id = OpVariable %id_pointer Input
        %out = OpVariable %block_pointer StorageBuffer
        %in = OpVariable %block_pointer StorageBuffer
        )" +
           parts.declarations +
           R"(
        %type = OpTypeFunction %void
        %main = OpFunction %void None %type
        %entry = OpLabel
        %id_value = OpLoad %uvec3 %id
        %i = OpCompositeExtract %uint %id_value 0
        %twice = OpIMul %uint %i %two
        %second = OpIAdd %uint %twice %one
        %place = OpAccessChain %pointer %in %zero %twice
        %place_y = OpAccessChain %pointer %in %zero %second
        %x = OpLoad %uint %place
        %y = OpLoad %uint %place_y
        %xi = OpBitcast %int %x
        %yi = OpBitcast %int %y
        %xf = OpBitcast %float %x
        %yf = OpBitcast %float %y
        )" +
           body +
           R"(
        %result_place = OpInBoundsAccessChain %pointer %out %zero %i
        OpStore %result_place %r
        OpReturn
        OpFunctionEnd)";
}

using Pair = std::function<std::pair<uint32_t, uint32_t>(uint32_t)>;
using Expected = std::function<uint32_t(uint32_t x, uint32_t y)>;

ShaderData RunModule(const std::string& text,
                     const Pair& inputs,
                     const std::vector<SpecializationValue>& specialization = {}) {
    ShaderData data;
    data.output.assign(kInvocations, 0xdeadbeef);
    for (uint32_t i = 0; i < kInvocations; ++i) {
        const auto [x, y] = inputs(i);
        data.storage.push_back(x);
        data.storage.push_back(y);
    }
    const Words module = AssembleSpirv(text, "spv1.4");
    CompileRequest request = MakeRequest(module);
    request.specialization = specialization;
    Result<ir::Kernel> kernel = ReadSpirv(request);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    if (kernel.ok()) {
        const Status status = RunShader(*kernel, data);
        EXPECT_TRUE(status.ok()) << status.error().message;
    }
    return data;
}

void Check(const std::string& text,
           const Pair& inputs,
           const Expected& expected,
           const std::vector<SpecializationValue>& specialization = {}) {
    const ShaderData data = RunModule(text, inputs, specialization);
    for (uint32_t i = 0; i < kInvocations; ++i) {
        const auto [x, y] = inputs(i);
        ASSERT_EQ(data.output[i], expected(x, y)) << "x " << x << " y " << y << "\n" << text;
    }
}

uint32_t Bits(float value) {
    return std::bit_cast<uint32_t>(value);
}

float Float(uint32_t bits) {
    return std::bit_cast<float>(bits);
}

std::pair<uint32_t, uint32_t> Integers(uint32_t i) {
    const int32_t x[] = {7, -7, 7, -7, 100, -100, 0, 2147483647};
    const int32_t y[] = {3, 3, -3, -3, 7, 7, 5, -10};
    return {static_cast<uint32_t>(x[i % 8]), static_cast<uint32_t>(y[(i + i / 8) % 8])};
}

// All pairs of these, over the invocations.
std::pair<uint32_t, uint32_t> Floats(uint32_t i) {
    const float values[] = {-1.5f, 2.0f, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()};
    return {Bits(values[i % 4]), Bits(values[i / 4])};
}

// As above, but what is no number stands on one side at most.
std::pair<uint32_t, uint32_t> Numbers(uint32_t i) {
    const auto [x, y] = Floats(i);
    return {x, std::isnan(Float(x)) && std::isnan(Float(y)) ? Bits(4) : y};
}

std::string FloatComparison(const std::string& op) {
    return Module("%b = " + op + " %bool %xf %yf\n %r = OpSelect %uint %b %one %zero");
}

TEST(ReaderInstructions, SignedRemainderHasTheSignOfTheDividend) {
    Check(Module("%s = OpSRem %int %xi %yi\n %r = OpBitcast %uint %s"), Integers,
          [](uint32_t x, uint32_t y) {
              return static_cast<uint32_t>(static_cast<int32_t>(x) % static_cast<int32_t>(y));
          });
}

TEST(ReaderInstructions, FloatRemainderHasTheSignOfTheDividend) {
    const Pair inputs = [](uint32_t i) {
        const float x = (static_cast<float>(i) - 8) * 1.25f;
        return std::pair{Bits(x), Bits(i % 2 ? -3.0f : 2.5f)};
    };
    Check(Module("%s = OpFRem %float %xf %yf\n %r = OpBitcast %uint %s"), inputs,
          [](uint32_t x, uint32_t y) { return Bits(std::fmod(Float(x), Float(y))); });
}

TEST(ReaderInstructions, UnorderedComparisonsAreTrueOfNaN) {
    struct {
        const char* op;
        bool (*compare)(float x, float y);
    } const cases[] = {
        {"OpFUnordEqual", [](float x, float y) { return x == y; }},
        {"OpFUnordNotEqual", [](float x, float y) { return x != y; }},
        {"OpFUnordLessThan", [](float x, float y) { return x < y; }},
        {"OpFUnordGreaterThan", [](float x, float y) { return x > y; }},
        {"OpFUnordLessThanEqual", [](float x, float y) { return x <= y; }},
        {"OpFUnordGreaterThanEqual", [](float x, float y) { return x >= y; }},
    };
    for (const auto& c : cases) {
        Check(FloatComparison(c.op), Floats, [&](uint32_t x, uint32_t y) -> uint32_t {
            return std::isnan(Float(x)) || std::isnan(Float(y)) || c.compare(Float(x), Float(y));
        });
    }
}

TEST(ReaderInstructions, OrderedInequalityIsFalseOfNaN) {
    Check(FloatComparison("OpFOrdNotEqual"), Floats, [](uint32_t x, uint32_t y) -> uint32_t {
        return !std::isnan(Float(x)) && !std::isnan(Float(y)) && Float(x) != Float(y);
    });
}

TEST(ReaderInstructions, ComparisonsOfBooleans) {
    const std::string booleans = R"(
        %xb = OpUGreaterThan %bool %x %one
        %yb = OpUGreaterThan %bool %y %one
        )";
    const std::string select = "%bool %xb %yb\n %r = OpSelect %uint %b %three %two";
    const Pair inputs = [](uint32_t i) { return std::pair{i % 4, i / 4}; };
    Check(Module(booleans + "%b = OpLogicalEqual " + select), inputs,
          [](uint32_t x, uint32_t y) { return (x > 1) == (y > 1) ? 3u : 2u; });
    Check(Module(booleans + "%b = OpLogicalNotEqual " + select), inputs,
          [](uint32_t x, uint32_t y) { return (x > 1) != (y > 1) ? 3u : 2u; });
    Check(Module(booleans + "%b = OpLogicalOr " + select), inputs,
          [](uint32_t x, uint32_t y) { return (x > 1) || (y > 1) ? 3u : 2u; });
}

// Values are rounded to 16 bits and have 32 again; what is too small for a normal number is zero.
TEST(ReaderInstructions, QuantizationToHalfPrecision) {
    struct {
        float value;
        float expected;
    } const cases[] = {{1, 1},
                       {1.0f / 3, 0.333251953125f},
                       {-1.0f / 3, -0.333251953125f},
                       {2049, 2048},
                       {2051, 2052},
                       {65504, 65504},
                       {65536, std::numeric_limits<float>::infinity()},
                       {-1e30f, -std::numeric_limits<float>::infinity()},
                       {6.103515625e-05f, 6.103515625e-05f},
                       {1e-8f, 0},
                       {0, 0}};
    const Pair inputs = [&](uint32_t i) {
        return std::pair{Bits(cases[i % std::size(cases)].value), i};
    };
    const ShaderData data =
        RunModule(Module("%q = OpQuantizeToF16 %float %xf\n %r = OpBitcast %uint %q"), inputs);
    for (uint32_t i = 0; i < kInvocations; ++i) {
        EXPECT_EQ(Float(data.output[i]), cases[i % std::size(cases)].expected) << i;
    }
}

TEST(ReaderInstructions, AtomicsOfOneOperand) {
    struct {
        const char* body;
        uint32_t (*result)(uint32_t x, uint32_t y);
        uint32_t (*memory)(uint32_t x, uint32_t y);
    } const cases[] = {
        {"%r = OpAtomicLoad %uint %place %one %zero", [](uint32_t x, uint32_t) { return x; },
         [](uint32_t x, uint32_t) { return x; }},
        {"OpAtomicStore %place %one %zero %y\n %r = OpIAdd %uint %x %one",
         [](uint32_t x, uint32_t) { return x + 1; }, [](uint32_t, uint32_t y) { return y; }},
        {"%r = OpAtomicIIncrement %uint %place %one %zero", [](uint32_t x, uint32_t) { return x; },
         [](uint32_t x, uint32_t) { return x + 1; }},
        {"%r = OpAtomicIDecrement %uint %place %one %zero", [](uint32_t x, uint32_t) { return x; },
         [](uint32_t x, uint32_t) { return x - 1; }},
        {"%r = OpAtomicISub %uint %place %one %zero %y", [](uint32_t x, uint32_t) { return x; },
         [](uint32_t x, uint32_t y) { return x - y; }},
    };
    const Pair inputs = [](uint32_t i) { return std::pair{i * 3, 100 + i}; };
    for (const auto& c : cases) {
        const ShaderData data = RunModule(Module(c.body), inputs);
        for (uint32_t i = 0; i < kInvocations; ++i) {
            const auto [x, y] = inputs(i);
            EXPECT_EQ(data.output[i], c.result(x, y)) << c.body;
            EXPECT_EQ(data.storage[2 * i], c.memory(x, y)) << c.body;
        }
    }
}

TEST(ReaderInstructions, MatrixTimesScalar) {
    Check(
        Module(R"(
        %column = OpCompositeConstruct %vec2 %xf %yf
        %other = OpCompositeConstruct %vec2 %yf %xf
        %m = OpCompositeConstruct %mat2 %column %other
        %scaled = OpMatrixTimesScalar %mat2 %m %xf
        %a = OpCompositeExtract %float %scaled 0 1
        %b = OpCompositeExtract %float %scaled 1 1
        %sum = OpFAdd %float %a %b
        %r = OpBitcast %uint %sum)"),
        [](uint32_t i) { return std::pair{Bits(static_cast<float>(i)), Bits(2.5f)}; },
        [](uint32_t x, uint32_t y) { return Bits(Float(x) * Float(y) + Float(x) * Float(x)); });
}

TEST(ReaderInstructions, AComponentIsSetAtAnIndexOfRunTime) {
    const ShaderData data =
        RunModule(Module(R"(
        %v = OpCompositeConstruct %vec4 %xf %xf %xf %xf
        %index = OpUMod %uint %i %three
        %w = OpVectorInsertDynamic %vec4 %v %yf %index
        %c = OpCompositeExtract %float %w 2
        %r = OpBitcast %uint %c)"),
                  [](uint32_t i) { return std::pair{Bits(1), Bits(2.0f + i)}; });
    for (uint32_t i = 0; i < kInvocations; ++i) {
        EXPECT_EQ(Float(data.output[i]), i % 3 == 2 ? 2.0f + i : 1.0f) << i;
    }
}

TEST(ReaderInstructions, BooleanSpecializationConstants) {
    const Pair inputs = [](uint32_t i) { return std::pair{i, i + 100}; };
    const Expected first = [](uint32_t x, uint32_t) { return x; };
    const Expected second = [](uint32_t, uint32_t y) { return y; };
    for (bool value : {false, true}) {
        const std::string text = Module(
            "%r = OpSelect %uint %flag %x %y",
            {value ? "%flag = OpSpecConstantTrue %bool" : "%flag = OpSpecConstantFalse %bool",
             "OpDecorate %flag SpecId 5"});
        Check(text, inputs, value ? first : second);
        Check(text, inputs, first, {SpecializationValue{.constant_id = 5, .bits = 1}});
        Check(text, inputs, second, {SpecializationValue{.constant_id = 5, .bits = 0}});
    }
}

TEST(ReaderInstructions, AMemoryBarrierOrdersAndComputesNothing) {
    Check(
        Module(R"(
        OpStore %place %y
        OpMemoryBarrier %one %semantics
        %r = OpLoad %uint %place)",
               {"%semantics = OpConstant %uint 72"}),
        [](uint32_t i) { return std::pair{i, 10 * i}; }, [](uint32_t, uint32_t y) { return y; });
}

// All invocations of the workgroup agree on the value.
TEST(ReaderInstructions, ADecorationWithAScope) {
    Check(
        Module("%same = OpIMul %uint %two %three\n %r = OpIAdd %uint %x %same",
               {"", "OpDecorateId %same UniformId %two"}),
        [](uint32_t i) { return std::pair{i, i}; }, [](uint32_t x, uint32_t) { return x + 6; });
}

// What says something about the program's text, and decorations by group.
TEST(ReaderInstructions, SourceLinesAndGroupsChangeNothing) {
    const std::string before = R"(
        %file = OpString "shader.comp"
        OpSource GLSL 460 %file "first part"
        OpSourceContinued "second part"
        OpDecorate %members Restrict
        %members = OpDecorationGroup
        OpGroupMemberDecorate %members %block 0
        )";
    Check(
        Module(R"(
        OpLine %file 12 3
        %s = OpIAdd %uint %x %y
        OpNop
        OpNoLine
        %r = OpIAdd %uint %s %one)",
               {"", before}),
        [](uint32_t i) { return std::pair{i, 10 * i}; },
        [](uint32_t x, uint32_t y) { return x + y + 1; });
}

// Two structures with the same members and other layouts.
TEST(ReaderInstructions, ALogicalCopyIsOfTheMembers) {
    Check(
        Module(R"(
        %from = OpCompositeConstruct %pair %x %yf
        %to = OpCopyLogical %other_pair %from
        %a = OpCompositeExtract %uint %to 0
        %bf = OpCompositeExtract %float %to 1
        %b = OpBitcast %uint %bf
        %r = OpIAdd %uint %a %b)",
               {"%pair = OpTypeStruct %uint %float\n %other_pair = OpTypeStruct %uint %float",
                "OpMemberDecorate %pair 0 Offset 0\n OpMemberDecorate %pair 1 Offset 4\n"
                "OpMemberDecorate %other_pair 0 Offset 0\n"
                "OpMemberDecorate %other_pair 1 Offset 16"}),
        [](uint32_t i) { return std::pair{i, 7 * i}; },
        [](uint32_t x, uint32_t y) { return x + y; });
}

// A structure without members is a value: in variables of every kind, arguments, results, phis,
// composites and memory.
TEST(ReaderInstructions, StructuresWithoutMembersAreValues) {
    const Parts parts = {R"(
        %none = OpTypeStruct
        %nested = OpTypeStruct %none %none
        %nones = OpTypeArray %nested %two
        %holder = OpTypeStruct %uint %none %nones %uint
        %to_function = OpTypePointer Function %none
        %to_private = OpTypePointer Private %nested
        %to_shared = OpTypePointer Workgroup %none
        %to_holder = OpTypePointer Function %holder
        %of_none = OpTypeFunction %none %none %to_function
        %null = OpConstantNull %none
        %made = OpConstantComposite %nested %null %null
        %in_private = OpVariable %to_private Private %made
        %in_shared = OpVariable %to_shared Workgroup)"};
    std::string text = Module(R"(
        %local = OpVariable %to_function Function
        %held = OpVariable %to_holder Function
        OpStore %local %null
        %loaded = OpLoad %none %local
        OpCopyMemory %in_shared %local
        %shared = OpLoad %none %in_shared
        %got = OpFunctionCall %none %give %shared %local
        %global = OpLoad %nested %in_private
        %array = OpCompositeConstruct %nones %global %global
        %whole = OpCompositeConstruct %holder %x %got %array %y
        %part = OpCompositeExtract %nones %whole 2
        %again = OpCompositeInsert %holder %part %whole 2
        OpStore %held %again
        %back = OpLoad %holder %held
        %copy = OpCopyObject %holder %back
        %a = OpCompositeExtract %uint %copy 0
        %b = OpCompositeExtract %uint %copy 3
        %less = OpULessThan %bool %a %b
        OpSelectionMerge %after None
        OpBranchConditional %less %then %else
        %then = OpLabel
        OpBranch %after
        %else = OpLabel
        OpBranch %after
        %after = OpLabel
        %phi = OpPhi %none %loaded %then %got %else
        OpStore %local %phi
        %open = OpUndef %nested
        OpStore %in_private %open
        %r = OpIMul %uint %a %b)",
                              parts);
    text += R"(
        %give = OpFunction %none None %of_none
        %given = OpFunctionParameter %none
        %target = OpFunctionParameter %to_function
        %give_label = OpLabel
        OpStore %target %given
        %taken = OpLoad %none %target
        OpReturnValue %taken
        OpFunctionEnd
    )";
    Check(
        text, [](uint32_t i) { return std::pair{i + 3, 7 * i}; },
        [](uint32_t x, uint32_t y) { return x * y; });
}

TEST(ReaderInstructions, UntypedPointersStepOverElements) {
    const Parts parts = {"%untyped = OpTypeUntypedPointerKHR StorageBuffer",
                         "OpDecorate %untyped ArrayStride 4",
                         "OpCapability VariablePointersStorageBuffer\n"
                         "OpCapability UntypedPointersKHR\n"
                         "OpExtension \"SPV_KHR_untyped_pointers\""};
    for (const char* op : {"OpUntypedPtrAccessChainKHR", "OpUntypedInBoundsPtrAccessChainKHR"}) {
        Check(
            Module("%first = OpUntypedAccessChainKHR %untyped %block %in %zero %twice\n"
                   "%next = " +
                       std::string(op) +
                       " %untyped %uint %first %one\n"
                       "%word = OpLoad %uint %next\n"
                       "%r = OpIAdd %uint %word %x",
                   parts),
            [](uint32_t i) { return std::pair{i, 100 * i}; },
            [](uint32_t x, uint32_t y) { return x + y; });
    }
}

// Where one of two is no number, the result is the other.
TEST(ReaderInstructions, MinimaAndMaximaThatPreferNumbers) {
    const auto prefer = [](float x, float y, float of_numbers) {
        return std::isnan(x) ? y : std::isnan(y) ? x : of_numbers;
    };
    Check(Module("%n = OpExtInst %float %glsl NMin %xf %yf\n %r = OpBitcast %uint %n"), Numbers,
          [&](uint32_t x, uint32_t y) {
              return Bits(prefer(Float(x), Float(y), std::min(Float(x), Float(y))));
          });
    Check(Module("%n = OpExtInst %float %glsl NMax %xf %yf\n %r = OpBitcast %uint %n"), Numbers,
          [&](uint32_t x, uint32_t y) {
              return Bits(prefer(Float(x), Float(y), std::max(Float(x), Float(y))));
          });
    Check(Module("%n = OpExtInst %float %glsl NClamp %xf %low %high\n %r = OpBitcast %uint %n",
                 {"%low = OpConstant %float -1\n %high = OpConstant %float 3"}),
          Numbers, [&](uint32_t x, uint32_t) {
              // NMin(NMax(x, minVal), maxVal): the lower bound of what is no number.
              return Bits(std::isnan(Float(x)) ? -1.0f : std::clamp(Float(x), -1.0f, 3.0f));
          });
}

TEST(ReaderInstructions, PartsOfFloats) {
    const Pair inputs = [](uint32_t i) {
        return std::pair{Bits((static_cast<float>(i) - 7) * 1.375f), i};
    };
    const Parts locals = {
        "%float_local = OpTypePointer Private %float\n"
        "%int_local = OpTypePointer Private %int\n"
        "%whole = OpVariable %float_local Private\n"
        "%power = OpVariable %int_local Private"};
    Check(Module(R"(
        %fraction = OpExtInst %float %glsl Modf %xf %whole
        %w = OpLoad %float %whole
        %scaled = OpFAdd %float %fraction %w
        %more = OpFAdd %float %scaled %w
        %r = OpBitcast %uint %more)",
                 locals),
          inputs, [](uint32_t x, uint32_t) { return Bits(Float(x) + std::trunc(Float(x))); });
    Check(Module(R"(
        %fraction = OpExtInst %float %glsl Frexp %xf %power
        %p = OpLoad %int %power
        %pf = OpConvertSToF %float %p
        %sum = OpFAdd %float %fraction %pf
        %r = OpBitcast %uint %sum)",
                 locals),
          inputs, [](uint32_t x, uint32_t) {
              int power = 0;
              const float fraction = std::frexp(Float(x), &power);
              return Bits(fraction + static_cast<float>(power));
          });
}

// The exponent is an integer of any width, and what 32 bits cannot hold is not cut to them.
TEST(ReaderInstructions, LdexpOfExponentsOfEveryWidth) {
    constexpr int64_t k32 = int64_t{1} << 32;
    constexpr int64_t kExponents[kInvocations] = {
        1,   0,    -1,      -2,      100,       -100,          k32 / 2,   -k32 / 2 - 1,
        k32, -k32, k32 + 1, 1 - k32, INT64_MAX, INT64_MAX - 4, INT64_MIN, INT64_MIN + 5};
    const Pair inputs = [&](uint32_t i) {
        const auto bits = static_cast<uint64_t>(kExponents[i]);
        return std::pair{static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
    };
    const Parts parts = {
        "%half = OpTypeFloat 16\n %double = OpTypeFloat 64\n"
        "%byte = OpTypeInt 8 1\n %short = OpTypeInt 16 1\n"
        "%long = OpTypeInt 64 1\n %ushort = OpTypeInt 16 0\n"
        "%uvec2 = OpTypeVector %uint 2\n",
        "",
        "OpCapability Float16\n OpCapability Float64\n"
        "OpCapability Int8\n OpCapability Int16\n OpCapability Int64"};
    for (const uint32_t width : {8u, 16u, 32u, 64u}) {
        const std::string exponent =
            width == 64 ? "%both = OpCompositeConstruct %uvec2 %x %y\n %e = OpBitcast %long %both\n"
            : width == 32
                ? "%e = OpCopyObject %int %xi\n"
                : std::string("%e = OpSConvert ") + (width == 16 ? "%short" : "%byte") + " %xi\n";
        // -1.25 times a power of two, which is exact, zero or infinite in each type.
        const auto power = [&](uint32_t x, uint32_t y) {
            int64_t e = static_cast<int64_t>(uint64_t{y} << 32 | x);
            e = static_cast<int64_t>(static_cast<uint64_t>(e) << (64 - width)) >> (64 - width);
            return std::ldexp(-1.25, static_cast<int>(std::clamp<int64_t>(e, -9999, 9999)));
        };
        Parts with = parts;
        with.declarations += "%significand = OpConstant %float -1.25";
        Check(Module(exponent + "%f = OpExtInst %float %glsl Ldexp %significand %e\n"
                                "%r = OpBitcast %uint %f",
                     with),
              inputs,
              [&](uint32_t x, uint32_t y) { return Bits(static_cast<float>(power(x, y))); });
        with.declarations = parts.declarations + "%significand = OpConstant %double -1.25";
        Check(Module(exponent + "%f = OpExtInst %double %glsl Ldexp %significand %e\n"
                                "%bits = OpBitcast %uvec2 %f\n"
                                "%r = OpCompositeExtract %uint %bits 1",
                     with),
              inputs, [&](uint32_t x, uint32_t y) {
                  return static_cast<uint32_t>(std::bit_cast<uint64_t>(power(x, y)) >> 32);
              });
        with.declarations = parts.declarations + "%significand = OpConstant %half -0x1.4p+0\n";
        Check(Module(exponent + "%f = OpExtInst %half %glsl Ldexp %significand %e\n"
                                "%bits = OpBitcast %ushort %f\n"
                                "%r = OpUConvert %uint %bits",
                     with),
              inputs, [&](uint32_t x, uint32_t y) { return uint32_t{DoubleToHalf(power(x, y))}; });
    }
}

TEST(ReaderInstructions, DoublesOfTwoWords) {
    Check(
        Module(R"(
        %words_in = OpCompositeConstruct %uvec2 %x %y
        %d = OpExtInst %double %glsl PackDouble2x32 %words_in
        %twice_d = OpFAdd %double %d %d
        %words_out = OpExtInst %uvec2 %glsl UnpackDouble2x32 %twice_d
        %low = OpCompositeExtract %uint %words_out 0
        %high = OpCompositeExtract %uint %words_out 1
        %r = OpBitwiseXor %uint %low %high)",
               {"%double = OpTypeFloat 64\n %uvec2 = OpTypeVector %uint 2", "",
                "OpCapability Float64"}),
        [](uint32_t i) {
            const uint64_t bits = std::bit_cast<uint64_t>(1.0 / (i + 1));
            return std::pair{static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
        },
        [](uint32_t x, uint32_t y) {
            const double twice = 2 * std::bit_cast<double>(uint64_t{y} << 32 | x);
            const uint64_t bits = std::bit_cast<uint64_t>(twice);
            return static_cast<uint32_t>(bits) ^ static_cast<uint32_t>(bits >> 32);
        });
}

}  // namespace
}  // namespace fornax::kernel
