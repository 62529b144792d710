// What the matrix unit is told to have done, for products of known size: by the interpreter, by
// both tiers, in tile and in vector registers, and in the explanation of the kernel.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "hal/kernel_abi.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kWorkgroups = 2;
// Matrix products of 16 x 16 x 16 in one of 64 x 64 x 64.
constexpr uint64_t kProducts = 64;

// A product of 64 x 64 x 64 with the operands of a format. Each of four subgroups, two a workgroup,
// makes 32 x 32 sums. `depth`: 64, as the shader is told it.
std::string Product(const std::string& operand, const std::string& sum, const std::string& depth) {
    std::string text = R"(#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_bfloat16 : require
#pragma use_vulkan_memory_model
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { SUM o[]; };
layout(set = 0, binding = 1) readonly buffer In { FACTOR s[]; };
layout(push_constant) uniform Push { uint depth; };
void main() {
    uint row = gl_WorkGroupID.x * 32, column = gl_SubgroupID * 32;
    coopmat<SUM, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums[4];
    for (int i = 0; i < 4; ++i)
        sums[i] = coopmat<SUM, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(SUM(0));
    for (uint k = 0; k < DEPTH; k += 16) {
        coopmat<FACTOR, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a[2];
        coopmat<FACTOR, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b[2];
        [[unroll]] for (int i = 0; i < 2; ++i) {
            coopMatLoad(a[i], s, (row + i * 16) * 64 + k, 64, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(b[i], s, 4096 + k * 64 + column + i * 16, 64, gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (int i = 0; i < 4; ++i)
            sums[i] = coopMatMulAdd(a[i / 2], b[i % 2], sums[i]);
    }
    for (int i = 0; i < 4; ++i)
        coopMatStore(sums[i], o, (row + i / 2 * 16) * 64 + column + i % 2 * 16, 64, gl_CooperativeMatrixLayoutRowMajor);
})";
    auto replace = [&](const std::string& name, const std::string& by) {
        for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += by.size()) {
            text.replace(at, name.size(), by);
        }
    };
    replace("FACTOR", operand);
    replace("SUM", sum);
    replace("DEPTH", depth);
    text.replace(text.find("void main"), 0,
                 "#extension GL_EXT_control_flow_attributes : require\n");
    return text;
}

// All workgroups, in two calls.
hal::MatrixCounts RunKernel(hal::KernelEntry entry, const void* context, uint32_t scratch_bytes) {
    std::vector<uint32_t> output(64 * 64);
    std::vector<uint32_t> operands(2 * 64 * 64, 0);
    std::vector<uint32_t> push(hal::kPushConstantBytes / 4, 64);
    const hal::BufferDescriptor set[] = {
        {reinterpret_cast<uint64_t>(output.data()), output.size() * 4},
        {reinterpret_cast<uint64_t>(operands.data()), operands.size() * 4}};
    const void* sets[] = {set};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    frame.push_constants = push.data();
    frame.workgroup_count[0] = kWorkgroups;
    frame.workgroup_count[1] = frame.workgroup_count[2] = 1;
    frame.kernel_context = context;
    struct alignas(64) Line {
        uint8_t bytes[64];
    };
    std::vector<Line> shared(2 * hal::kSharedMemoryMargin / sizeof(Line) + 1);
    std::vector<Line> scratch(scratch_bytes / sizeof(Line) + 1);
    hal::WorkerFrame worker = {
        .shared_memory = shared.data() + hal::kSharedMemoryMargin / sizeof(Line),
        .scratch = scratch.data()};
    entry(&frame, &worker, 0, 1);
    entry(&frame, &worker, 1, kWorkgroups - 1);
    return hal::MatrixCountsOf(worker.unit_counts);
}

hal::MatrixCounts RunCode(KernelBackend& backend,
                          const CompileRequest& request,
                          const TargetInfo& target,
                          CompileTier tier) {
    auto compiled = backend.Compile(request, target, {}, tier, CodeTime::kNow);
    EXPECT_TRUE(compiled.ok()) << compiled.error().message;
    auto object = LoadedObject::Load(compiled->object, kKernelSymbol);
    EXPECT_TRUE(object.ok()) << object.error().message;
    auto entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>((*object)->entry()));
    return RunKernel(entry, nullptr, compiled->facts.scratch_bytes);
}

struct Format {
    const char* operand;
    const char* sum;
    hal::MatrixFormat format;
};
constexpr Format kFormats[] = {{"float16_t", "float", hal::MatrixFormat::kF16},
                               {"bfloat16_t", "float", hal::MatrixFormat::kBF16},
                               {"uint8_t", "int", hal::MatrixFormat::kInt8},
                               {"int8_t", "int", hal::MatrixFormat::kInt8},
                               {"float", "float", hal::MatrixFormat::kF32}};

CompileRequest Request(const Words& module) {
    CompileRequest request = MakeRequest(module);
    request.options.subgroup_size = 32;
    return request;
}

// 262,144 multiplications, and everything else once a subgroup and step or less.
TEST(MatrixCounts, AreThoseOfTheProduct) {
    const std::shared_ptr<KernelBackend> backend = MakeKernelBackend();
    for (const Format& format : kFormats) {
        for (const std::string depth : {"64", "depth"}) {
            const Words module =
                CompileGlsl(Product(format.operand, format.sum, depth), "--target-env vulkan1.3");
            const CompileRequest request = Request(module);
            const auto check = [&](const hal::MatrixCounts& counts, const std::string& what) {
                SCOPED_TRACE(std::string(format.operand) + ", depth " + depth + ", " + what);
                for (uint32_t i = 0; i < hal::kMatrixFormats; ++i) {
                    const bool own = i == static_cast<uint32_t>(format.format);
                    EXPECT_EQ(counts.mmas[i], own ? kProducts : 0);
                    EXPECT_EQ(counts.mmas[i] * hal::kMultiplyAddsPerMma, own ? 262'144u : 0u);
                }
                // A step's operands are loaded once for four products, or for each again.
                EXPECT_GE(counts.operands_loaded, kProducts);
                EXPECT_LE(counts.operands_loaded, 2 * kProducts);
                EXPECT_EQ(counts.accumulators_loaded, counts.accumulators_stored);
                EXPECT_GE(counts.accumulators_loaded, 16u);
                EXPECT_LE(counts.accumulators_loaded, kProducts);
            };
            auto interpreted = backend->MakeInterpreted(request);
            ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
            const hal::MatrixCounts obvious =
                RunKernel((*interpreted)->entry, (*interpreted)->context, 0);
            check(obvious, "interpreted");
            EXPECT_EQ(obvious.commands(), kProducts * 5);
            for (const TargetInfo& target : TestTargets()) {
                check(RunCode(*backend, request, target, CompileTier::kBaseline),
                      target.cpu_name + " baseline");
                const hal::MatrixCounts optimized =
                    RunCode(*backend, request, target, CompileTier::kOptimized);
                check(optimized, target.cpu_name + " optimized");
                // Four products of a step share their four operands.
                EXPECT_EQ(optimized.operands_loaded, kProducts);
            }
        }
    }
}

// What the explanation shows, times the loop's iterations and the vectors of the grid, is what is
// counted.
TEST(MatrixCounts, AreExplained) {
    const std::shared_ptr<KernelBackend> backend = MakeKernelBackend();
    const Words module =
        CompileGlsl(Product("float16_t", "float", "64"), "-g --target-env vulkan1.3");
    const CompileRequest request = Request(module);
    for (const TargetInfo& target : TestTargets()) {
        SCOPED_TRACE(target.cpu_name);
        auto explained = backend->Explain(request, target);
        ASSERT_TRUE(explained.ok()) << explained.error().message;
        EXPECT_EQ(explained->matrix_tiles, HasTiles(target));
        EXPECT_EQ(explained->vectors, 2u);
        hal::MatrixCounts counts;
        for (const MatrixRecord& record : explained->matrix) {
            ASSERT_LE(record.depth, 1u);
            EXPECT_EQ(record.place.instruction, "OpCooperativeMatrixMulAddKHR");
            EXPECT_NE(record.place.source, "");
            const uint32_t iterations = record.depth == 0 ? 1 : 64 / 16;
            for (uint32_t i = 0; i < iterations * explained->vectors * kWorkgroups; ++i) {
                counts += record.counts;
            }
        }
        const hal::MatrixCounts ran = RunCode(*backend, request, target, CompileTier::kOptimized);
        EXPECT_EQ(counts.mmas[0], kProducts);
        EXPECT_EQ(counts, ran) << counts.commands() << " and " << ran.commands();
    }
}

// A branch that no workgroup takes issues nothing, one in a loop as often as it is taken.
TEST(MatrixCounts, FollowTheControlFlow) {
    const std::shared_ptr<KernelBackend> backend = MakeKernelBackend();
    std::string text = Product("float16_t", "float", "64");
    const std::string product = "sums[i] = coopMatMulAdd(";
    // Three of four steps, of one workgroup.
    text.replace(text.find(product), product.size(),
                 "if (gl_WorkGroupID.x == 1 && k != 32) " + product);
    const Words module = CompileGlsl(text, "--target-env vulkan1.3");
    const CompileRequest request = Request(module);
    for (const TargetInfo& target : TestTargets()) {
        for (const CompileTier tier : {CompileTier::kBaseline, CompileTier::kOptimized}) {
            EXPECT_EQ(RunCode(*backend, request, target, tier).mmas[0], kProducts / 2 * 3 / 4);
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
