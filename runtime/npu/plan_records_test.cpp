// Records of plans that are made by hand.
#include "runtime/npu/plan_records.h"

#include <gtest/gtest.h>

#include "npu/description/read.h"
#include "runtime/npu/modelled.h"

namespace fornax::runtime {
namespace {

using graph::BlockId;
using graph::BlockKind;
using graph::ElementType;
using graph::Expr;
using graph::KernelId;
using graph::Shape;
using graph::Symbol;

// y = (x * w) of n x 8 by 8 x 16, then z = y + y, in blocks 0 x, 1 w, 2 y, 3 z; a step on the host.
graph::Plan MakePlan() {
    const Symbol n("n");
    graph::Plan plan;
    plan.name = "example";
    plan.blocks = {
        {"x", {ElementType::kF16, Shape({n, 8})}, BlockKind::kInput, nullptr, nullptr, 0, 0},
        {"w", {ElementType::kF16, Shape({8, 16})}, BlockKind::kConstant, nullptr, nullptr, 0, 2},
        {"y", {ElementType::kF32, Shape({n, 16})}, BlockKind::kTemporary, nullptr, nullptr, 0, 1},
        {"z", {ElementType::kF32, Shape({n, 16})}, BlockKind::kOutput, nullptr, nullptr, 1, 2},
    };
    const char* kKernels[] = {
        "kernel p(in a: f16[n,8], in b: f16[8,16], out c: f32[n,16])\n"
        "  sizes n in 1..100\n"
        "  parallel $i0 < n, $i1 < 16\n"
        "  %0 = load a[$i0,$r0]\n"
        "  %1 = cast f32 %0\n"
        "  %2 = load b[$r0,$i1]\n"
        "  %3 = cast f32 %2\n"
        "  %4 = mul %1, %3\n"
        "  %5 = reduce sum $r0 < 8 of %4\n"
        "  store c[$i0,$i1] = %5\n",
        "kernel s(in a: f32[n,16], out c: f32[n,16])\n"
        "  sizes n in 1..100\n"
        "  parallel $i0 < n, $i1 < 16\n"
        "  %0 = load a[$i0,$i1]\n"
        "  %1 = add %0, %0\n"
        "  store c[$i0,$i1] = %1\n"};
    for (const char* text : kKernels) {
        Result<graph::loop::Kernel> kernel = graph::loop::ParseKernel(text);
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        plan.kernels.push_back({std::move(kernel).value()});
    }
    plan.steps.emplace_back(
        graph::DispatchStep{"product", KernelId(0), {BlockId(0), BlockId(1), BlockId(2)}, 0, 0, 0});
    plan.steps.emplace_back(
        graph::DispatchStep{"sum", KernelId(1), {BlockId(2), BlockId(3)}, 0, 0, 0});
    graph::HostStep host;
    host.name = "host";
    plan.steps.emplace_back(std::move(host));
    return plan;
}

PlanRecords RecordsFor(int64_t n) {
    const graph::Plan plan = MakePlan();
    const graph::Bindings sizes = {{Symbol("n"), n}};
    const Result<graph::MemoryPlan> memory = graph::PlanMemory(plan, sizes);
    EXPECT_TRUE(memory.ok());
    const std::vector<KernelInterface> kernels = {{.workgroups = {Expr(Symbol("n")), 2, 1}},
                                                  {.workgroups = {Expr(Symbol("n")), 1, 1}}};
    return RecordsOf(plan, sizes, *memory, kernels);
}

TEST(PlanRecords, HaveTheProductsOperationsAndBytesOfKernels) {
    const PlanRecords made = RecordsFor(50);
    EXPECT_EQ(made.host_steps, 1U);
    EXPECT_EQ(made.unknown_steps, 0U);
    ASSERT_EQ(made.records.size(), 2U);
    EXPECT_EQ(made.steps, (std::vector<uint32_t>{0, 1}));
    const auto& product = std::get<npu::DispatchRecord>(made.records[0].work);
    EXPECT_EQ(product.name, "product");
    EXPECT_EQ(product.workgroups, 100U);
    ASSERT_EQ(product.products.size(), 1U);
    EXPECT_EQ(product.products[0].type, npu::MatrixType::kF16);
    EXPECT_EQ(product.products[0].shape.m, 50U);
    EXPECT_EQ(product.products[0].shape.n, 16U);
    EXPECT_EQ(product.products[0].shape.k, 8U);
    EXPECT_EQ(product.products[0].a_bytes, 50U * 8 * 2);
    EXPECT_EQ(product.products[0].b_bytes, 8U * 16 * 2);
    EXPECT_EQ(product.operations.total(), 0U);
    const auto& sum = std::get<npu::DispatchRecord>(made.records[1].work);
    EXPECT_EQ(sum.operations.simple, 50U * 16);
    // y begins the arena, and z lies behind the 800 bytes of x.
    EXPECT_EQ(sum.accesses,
              (std::vector<npu::Access>{
                  {.bytes = 50 * 16 * 4, .range = {.memory = 3, .bytes = 50 * 16 * 4}},
                  {.writes = true,
                   .bytes = 50 * 16 * 4,
                   .range = {.memory = 2, .begin = 1024, .bytes = 50 * 16 * 4}}}));
    // It reads what the product wrote.
    EXPECT_TRUE(made.records[0].after.empty());
    EXPECT_EQ(made.records[1].after, (std::vector<npu::RecordId>{npu::RecordId(0)}));
}

TEST(PlanRecords, LeaveOutWhatHasNoSize) {
    const graph::Plan plan = MakePlan();
    const Result<graph::MemoryPlan> memory = graph::PlanMemory(plan, {});
    ASSERT_TRUE(memory.ok());
    const std::vector<KernelInterface> kernels(2, {.workgroups = {1, 1, 1}});
    const PlanRecords made = RecordsOf(plan, {}, *memory, kernels);
    EXPECT_EQ(made.unknown_steps, 2U);
    EXPECT_TRUE(made.records.empty());
}

TEST(PlanRecords, AreReplayedWithAStamp) {
    const npu::Description edge = *npu::LoadDescription("edge-4");
    const Result<Modelled> modelled = ReplayPlan(edge, RecordsFor(50));
    ASSERT_TRUE(modelled.ok()) << modelled.error().message;
    const nlohmann::json json = ToJson(*modelled);
    EXPECT_EQ(json["stamp"], "modelled, uncalibrated (edge-4, description " +
                                 edge.Hash().ToHex().substr(0, 16) + ", model 5)");
    EXPECT_EQ(json["description_hash"], edge.Hash().ToHex());
    EXPECT_EQ(json["records"].size(), 2U);
    EXPECT_GT(json["total_ns"], 20'000);
    EXPECT_GT(json["units"]["matrix"]["busy"], 0);
    EXPECT_EQ(json["host_steps"], 1);
}

}  // namespace
}  // namespace fornax::runtime
