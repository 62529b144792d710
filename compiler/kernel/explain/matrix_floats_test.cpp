// Products of f32 whose operands lie in buffers and in workgroup memory: both tiers against
// the interpreter, where what is multiplied could be another thing by the time that it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "hal/kernel_abi.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kOut = 4096;  // words of the output
constexpr uint32_t kIn = 8192;   // and of the operands' buffer, as far as the descriptor says
constexpr uint32_t kBehind = 4096;

// `o` is written, `s` holds numbers; workgroups of two subgroups. A, B and C are types; ROWS and
// COLUMNS layouts.
std::string Glsl(const std::string& declarations, const std::string& body) {
    return R"(#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#pragma use_vulkan_memory_model
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { float o[]; };
layout(set = 0, binding = 1) buffer In { float s[]; };
layout(push_constant) uniform Push { uint stride, depth, far; };
#define A coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define B coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define C coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define ROWS gl_CooperativeMatrixLayoutRowMajor
#define COLUMNS gl_CooperativeMatrixLayoutColumnMajor
)" + declarations +
           "\nvoid main() {\nuint own = gl_SubgroupID * 1024 + gl_WorkGroupID.x * 2048;\n" + body +
           "}\n";
}

struct Outcome {
    std::vector<float> out;
    std::vector<float> in;
    hal::MatrixCounts counts;
};

class MatrixFloats : public testing::Test {
  protected:
    MatrixFloats() {
        std::mt19937 random(11);
        for (float& value : numbers_) {
            value = static_cast<float>(random() % 65536) / 4096 - 8;
        }
    }

    Outcome RunKernel(hal::KernelEntry entry, const void* context, uint32_t scratch_bytes) {
        Outcome outcome{std::vector<float>(kOut, 0.5f), numbers_, {}};
        std::vector<uint32_t> push(hal::kPushConstantBytes / 4);
        std::ranges::copy(push_, push.begin());
        const hal::BufferDescriptor set[] = {
            {reinterpret_cast<uint64_t>(outcome.out.data()), kOut * 4},
            {reinterpret_cast<uint64_t>(outcome.in.data()), kIn * 4}};
        const void* sets[] = {set};
        hal::DispatchFrame frame;
        frame.descriptor_sets = sets;
        frame.push_constants = push.data();
        frame.workgroup_count[0] = 2;
        frame.workgroup_count[1] = frame.workgroup_count[2] = 1;
        frame.kernel_context = context;
        struct alignas(64) Line {
            uint8_t bytes[64];
        };
        std::vector<Line> shared((2 * hal::kSharedMemoryMargin + 65536) / sizeof(Line));
        std::vector<Line> scratch(scratch_bytes / sizeof(Line) + 1);
        hal::WorkerFrame worker = {
            .shared_memory = shared.data() + hal::kSharedMemoryMargin / sizeof(Line),
            .scratch = scratch.data()};
        entry(&frame, &worker, 0, 2);
        outcome.counts = hal::MatrixCountsOf(worker.unit_counts);
        return outcome;
    }

    // Runs a shader every way; gives what the interpreter made of it.
    Outcome Check(const std::string& glsl, bool robust, uint32_t subgroup_size = 32) {
        const std::shared_ptr<KernelBackend> backend = MakeKernelBackend();
        const Words module = CompileGlsl(glsl, "--target-env vulkan1.3");
        CompileRequest request = MakeRequest(module);
        request.options.subgroup_size = subgroup_size;
        request.options.robust_buffer_access = robust;
        auto interpreted = backend->MakeInterpreted(request);
        EXPECT_TRUE(interpreted.ok()) << interpreted.error().message;
        const Outcome expected = RunKernel((*interpreted)->entry, (*interpreted)->context, 0);
        EXPECT_NE(expected.out, std::vector<float>(kOut, 0.5f));
        for (const TargetInfo& target : TestTargets()) {
            for (const CompileTier tier : {CompileTier::kBaseline, CompileTier::kOptimized}) {
                SCOPED_TRACE(testing::Message()
                             << target.cpu_name
                             << (tier == CompileTier::kOptimized ? " optimized" : " baseline")
                             << (robust ? ", robust" : "") << ", subgroups of " << subgroup_size);
                auto compiled = backend->Compile(request, target, {}, tier, CodeTime::kNow);
                EXPECT_TRUE(compiled.ok()) << compiled.error().message;
                auto object = LoadedObject::Load(compiled->object, kKernelSymbol);
                EXPECT_TRUE(object.ok()) << object.error().message;
                auto entry =
                    reinterpret_cast<hal::KernelEntry>(const_cast<void*>((*object)->entry()));
                const Outcome got = RunKernel(entry, nullptr, compiled->facts.scratch_bytes);
                Compare(got.out, expected.out);
                Compare(got.in, expected.in);
                EXPECT_EQ(got.counts.mmas[static_cast<uint32_t>(hal::MatrixFormat::kF32)],
                          expected.counts.mmas[static_cast<uint32_t>(hal::MatrixFormat::kF32)]);
                if (HasFailure()) {
                    return expected;
                }
            }
        }
        return expected;
    }
    // Sums are rounded once or twice in each step, as the processor has it, and no more than that.
    static void Compare(const std::vector<float>& got, const std::vector<float>& expected) {
        for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_NEAR(got[i], expected[i], 1e-3) << i;
        }
    }

    std::vector<float> numbers_ = std::vector<float>(kIn + kBehind);
    std::vector<uint32_t> push_ = {40, 64, 0};
};

// 32 x 32 sums of rows `stride` apart and of packed panels, two steps an iteration.
constexpr char kTiles[] = R"(
C sums[4];
[[unroll]] for (int i = 0; i < 4; ++i) sums[i] = C(0.25);
for (uint k = 0; k < depth; k += 32)
    [[unroll]] for (uint step = 0; step < 32; step += 16) {
        A a[2]; B b[2];
        [[unroll]] for (int i = 0; i < 2; ++i) {
            coopMatLoad(a[i], s, (gl_SubgroupID * 32 + i * 16) * stride + k + step, stride, ROWS);
            coopMatLoad(b[i], s, 4096 + (i * depth + k + step) * 16, 16, ROWS);
        }
        [[unroll]] for (int i = 0; i < 4; ++i)
            sums[i] = coopMatMulAdd(a[i / 2], b[i % 2], sums[i]);
    }
[[unroll]] for (int i = 0; i < 4; ++i)
    coopMatStore(sums[i], o, own + (i / 2 * 16) * 32 + i % 2 * 16, 32, ROWS);
)";

TEST_F(MatrixFloats, TilesOfAccumulators) {
    push_ = {64, 64, 0};
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        std::string text = Glsl("", kTiles);
        text.replace(text.find("local_size_x = 64"), 17,
                     "local_size_x = " + std::to_string(size * 2));
        for (const bool robust : {false, true}) {
            const Outcome outcome = Check(text, robust, size);
            for (uint32_t i = 0; i < 1024; ++i) {
                double sum = 0.25;
                for (uint32_t k = 0; k < 64; ++k) {
                    sum += double{numbers_[i / 32 * 64 + k]} *
                           numbers_[4096 + (i % 32 / 16 * 64 + k) * 16 + i % 16];
                }
                ASSERT_NEAR(outcome.out[i], sum, 1e-3) << i;
            }
        }
    }
}

// A's last rows lie behind the buffer, wholly and in part: what is there is not read.
TEST_F(MatrixFloats, OutsideOfBuffersIsZero) {
    std::string text = Glsl("", kTiles);
    const std::string rows = "(gl_SubgroupID * 32";
    text.replace(text.find(rows), rows.size(), "(far + gl_SubgroupID * 32");
    for (const uint32_t first : {kIn / 40 - 40, kIn / 40 - 3, kIn / 40 + 1, UINT32_MAX / 160}) {
        push_ = {40, 32, first};
        const Outcome outcome = Check(text, true);
        for (uint32_t i = 0; i < 1024; ++i) {
            double sum = 0.25;
            for (uint32_t k = 0; k < 32; ++k) {
                const uint64_t at = (uint64_t{first} + i / 32) * 40 + k;
                sum += double{at < kIn ? numbers_[at] : 0.0f} *
                       numbers_[4096 + (i % 32 / 16 * 32 + k) * 16 + i % 16];
            }
            if (first < kIn) {
                ASSERT_NEAR(outcome.out[i], sum, 1e-3) << first << ", " << i;
            }
        }
    }
    // Rows so far apart that offsets of 32 bits wrap.
    push_ = {0x3ffffff0, 32, 5};
    Check(text, true);
}

// Both operands in both layouts, strides that are known and that are not, forwards and backwards.
TEST_F(MatrixFloats, Layouts) {
    for (const std::string stride : {"24", "stride", "backwards"}) {
        push_[0] = stride == "backwards" ? 0u - 40 : 40;
        for (uint32_t columns = 0; columns < 4; ++columns) {
            const std::string layout = stride == "24" ? ", 24, " : ", stride, ";
            const std::string text = Glsl(
                "", "A a; B b; C c = C(1.0);\ncoopMatLoad(a, s, own + 1027" + layout +
                        (columns & 1 ? "COLUMNS" : "ROWS") + ");\ncoopMatLoad(b, s, own + 1536" +
                        layout + (columns & 2 ? "COLUMNS" : "ROWS") + R"();
c = coopMatMulAdd(a, b, c);
coopMatStore(c, o, own, 16, ROWS);
)");
            Check(text, false);
            Check(text, true);
        }
    }
}

// Memory changes between loads, products and what looks at the sums: by the subgroup itself.
TEST_F(MatrixFloats, StoresInBetween) {
    Check(Glsl("", R"(
uint at = gl_SubgroupID * 2048 + gl_WorkGroupID.x * 4096;
A a; B b; C sums[2];
sums[0] = C(1.0); sums[1] = C(2.0);
coopMatLoad(a, s, at, 16, ROWS);
coopMatLoad(b, s, at + 256, 16, ROWS);
// The first product waits; the operands of the second one are loaded before this.
sums[0] = coopMatMulAdd(a, b, sums[0]);
coopMatStore(C(3.0), s, at + 256, 16, ROWS);
sums[1] = coopMatMulAdd(a, b, sums[1]);
coopMatLoad(b, s, at + 256, 16, ROWS);
sums[0] = coopMatMulAdd(a, b, sums[0]);
coopMatStore(sums[0], s, at, 16, ROWS);
coopMatLoad(a, s, at, 16, ROWS);
sums[1] = coopMatMulAdd(a, b, sums[1]);
coopMatStore(sums[0], o, own, 16, ROWS);
coopMatStore(sums[1], o, own + 256, 16, ROWS);
)"),
          false);
}

// An operand is changed, then multiplied; the one that was loaded is multiplied, too.
TEST_F(MatrixFloats, OperandsAreValuesAsWell) {
    for (const uint32_t size : {16u, 32u}) {
        Check(Glsl("", R"(
if (gl_LocalInvocationIndex >= 2 * gl_SubgroupSize)
    return;
A a; B b; C sums[2];
sums[0] = C(1.0); sums[1] = C(2.0);
coopMatLoad(a, s, own, 32, ROWS);
coopMatLoad(b, s, own + 512, 32, ROWS);
A more = a;
for (int i = 0; i < more.length(); ++i)
    more[i] = max(more[i], 0.0) + 1.0;
sums[0] = coopMatMulAdd(more, b, sums[0]);
sums[1] = coopMatMulAdd(a, b, sums[1]);
coopMatStore(sums[0], o, own, 16, ROWS);
coopMatStore(sums[1], o, own + 256, 16, ROWS);
)"),
              true, size);
    }
}

// The baseline tier has one function that transposes, and calls it from the third matrix on.
TEST_F(MatrixFloats, ManyTransposes) {
    for (const uint32_t size : {8u, 16u, 32u}) {
        const Outcome outcome = Check(Glsl("", R"(
if (gl_LocalInvocationIndex >= 2 * gl_SubgroupSize)
    return;
[[unroll]] for (uint i = 0; i < 4; ++i) {
    C c;
    coopMatLoad(c, s, own + i * 256, 16, ROWS);
    for (int k = 0; k < c.length(); ++k)
        c[k] = c[k] + float(i);
    coopMatStore(c, o, own + i * 256, 16, COLUMNS);
}
)"),
                                      false, size);
        for (uint32_t i = 0; i < 1024; ++i) {
            ASSERT_EQ(outcome.out[i / 256 * 256 + i % 16 * 16 + i / 16 % 16],
                      numbers_[i] + static_cast<float>(i / 256))
                << i;
        }
    }
}

// Epilogues: a bias for each column is a matrix whose rows are one; elements are changed one by
// one.
TEST_F(MatrixFloats, Epilogue) {
    Check(Glsl("", R"(
C sums[1]; sums[0] = C(0.0);
for (uint k = 0; k < depth; k += 16) {
    A a; B b;
    coopMatLoad(a, s, own / 8 + k, stride, ROWS);
    coopMatLoad(b, s, 4096 + k * 16, 16, ROWS);
    sums[0] = coopMatMulAdd(a, b, sums[0]);
}
C bias;
coopMatLoad(bias, s, 100, 0, ROWS);
C result = sums[0] + bias;
for (int i = 0; i < result.length(); ++i)
    result[i] = max(result[i], 0.0);
coopMatStore(result, o, own, 32, ROWS);
)"),
          false);
}

// Both operands are taken as they lie in workgroup memory, and each subgroup has its own rows.
TEST_F(MatrixFloats, WorkgroupMemory) {
    for (const uint32_t pad : {0u, 4u, 1u}) {
        Check(Glsl("shared float of_a[64 * (32 + " + std::to_string(pad) + R"()];
shared float of_b[32 * 16];)",
                   "const uint width = 32 + " + std::to_string(pad) + R"(;
C sums[2];
sums[0] = C(0.5); sums[1] = C(-0.5);
for (uint k = 0; k < depth; k += 32) {
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < 64 * 32; i += 64)
        of_a[i / 32 * width + i % 32] = s[i / 32 * stride + k + i % 32] * 2.0;
    for (uint i = gl_LocalInvocationIndex; i < 32 * 16; i += 64)
        of_b[i] = s[4096 + k * 16 + i];
    barrier();
    [[unroll]] for (uint step = 0; step < 32; step += 16) {
        A a[2]; B b;
        coopMatLoad(b, of_b, step * 16, 16, ROWS);
        [[unroll]] for (uint i = 0; i < 2; ++i) {
            coopMatLoad(a[i], of_a, (gl_SubgroupID * 32 + i * 16) * width + step, width, ROWS);
            sums[i] = coopMatMulAdd(a[i], b, sums[i]);
        }
    }
}
coopMatStore(sums[0], o, own, 16, ROWS);
coopMatStore(sums[1], o, own + 256, 16, ROWS);
)"),
              true);
    }
}

}  // namespace
}  // namespace fornax::kernel
