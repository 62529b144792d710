// Random kernels give the same bytes in native code, at every width and on every target, as in the
// interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/jit_kernel.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/op_harness.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/cost/add_costs.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/transform/barrier_kernels.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

// More seeds take more time and find more: FORNAX_DIFFERENTIAL_SEEDS=from:to.
std::vector<uint64_t> Seeds() {
    uint64_t from = 0;
    uint64_t to = 40;
    std::vector<uint64_t> seeds = {92};  // found something once
    if (const char* text = std::getenv("FORNAX_DIFFERENTIAL_SEEDS")) {
        char* end = nullptr;
        from = std::strtoull(text, &end, 10);
        to = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1;
        seeds.clear();
    }
    for (uint64_t seed = from; seed < to; ++seed) {
        seeds.push_back(seed);
    }
    return seeds;
}

class NativeDifferential : public testing::TestWithParam<bool> {
  protected:
    void Compare(const ir::Kernel& kernel, uint64_t seed, const TargetInfo& target, uint32_t lanes);

    std::vector<uint8_t> expected_;
    std::vector<uint64_t> expected_counts_;
};

void NativeDifferential::Compare(const ir::Kernel& kernel,
                                 uint64_t seed,
                                 const TargetInfo& target,
                                 uint32_t lanes) {
    auto machine = CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
    ASSERT_TRUE(machine.ok()) << machine.error().message;
    auto native = CompileToNative(kernel, target, **machine, {}, lanes);
    ASSERT_TRUE(native.ok()) << native.error().message;
    auto object = LoadedObject::Load(native->object, kKernelSymbol);
    ASSERT_TRUE(object.ok()) << object.error().message;
    struct alignas(64) Line {
        uint8_t bytes[64];
    };
    constexpr size_t kMarginLines = hal::kSharedMemoryMargin / sizeof(Line);
    std::vector<Line> shared(kernel.shared_bytes / 64 + 1 + 2 * kMarginLines);
    std::vector<Line> scratch(native->scratch_bytes / 64 + 1);
    std::vector<uint64_t> counts(expected_counts_.size());
    hal::WorkerFrame worker = {.shared_memory = shared.data() + kMarginLines,
                               .scratch = scratch.data(),
                               .region_counts = counts.data()};
    TestDispatch dispatch(kernel, seed, /*overlap=*/false);
    hal::DispatchFrame frame = dispatch.frame();
    uint8_t push[hal::kPushConstantBytes] = {};
    if (kernel.push_constant_bytes != 0) {
        std::memcpy(push, frame.push_constants, kernel.push_constant_bytes);
    }
    frame.push_constants = push;
    auto entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>((*object)->entry()));
    entry(&frame, &worker, 0, TestDispatch::kWorkgroups);
    ASSERT_EQ(worker.fault, 0u);
    const auto [is, should] = std::ranges::mismatch(dispatch.memory(), expected_);
    ASSERT_TRUE(is == dispatch.memory().end())
        << "byte " << is - dispatch.memory().begin() << " is " << int{*is} << " instead of "
        << int{*should};
    EXPECT_EQ(counts, expected_counts_) << kernel.name;
}

// The parameter: after the passes.
TEST_P(NativeDifferential, GivesWhatTheInterpreterGives) {
    for (uint64_t seed : Seeds()) {
        RandomKernelOptions options;
        options.statements = seed % 10 == 0 ? 150 : 40;
        options.subgroup_operations = seed % 3 == 0;
        ir::Kernel kernel = RandomKernel(seed, options);
        if (GetParam()) {
            RunPipeline(kernel);
        }
        TestDispatch dispatch(kernel, seed, /*overlap=*/false);
        Status status =
            Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups, {20'000'000});
        ASSERT_TRUE(status.ok()) << status.error().message;
        expected_ = dispatch.memory();
        std::string text = ir::PrintKernel(kernel);
        if (std::getenv("FORNAX_DIFFERENTIAL_PRINT")) {
            std::printf("%s\n", text.c_str());
        }
        for (const TargetInfo& target : TestTargets()) {
            for (uint32_t lanes : {0u, 1u, 8u, 16u, 32u}) {
                // Every width on one target, the chosen one on the others.
                // Kernels that see subgroups choose the width.
                if (lanes != 0 && options.subgroup_operations) {
                    continue;
                }
                if (lanes != 0 && &target != &TestTargets()[seed % TestTargets().size()]) {
                    continue;
                }
                Compare(kernel, seed, target, lanes);
                ASSERT_FALSE(HasFatalFailure())
                    << "seed " << seed << ", " << lanes << " lanes, " << target.cpu_name << "\n"
                    << text;
            }
        }
    }
}

// Counters of regions are the same whatever the passes, the width and the tier do.
TEST_P(NativeDifferential, CountsWhatTheInterpreterCounts) {
    for (uint64_t seed : Seeds()) {
        RandomKernelOptions options;
        options.statements = 40;
        options.subgroup_operations = seed % 3 == 0;
        ir::Kernel kernel = RandomKernel(seed, options);
        RunFirstPasses(kernel);
        const KernelCost cost = AddCosts(kernel);
        expected_counts_.assign(cost.counters, 0);
        hal::WorkerFrame worker = {.region_counts = expected_counts_.data()};
        TestDispatch dispatch(kernel, seed, /*overlap=*/false);
        const Status status = Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups,
                                        {.steps = 20'000'000, .worker = &worker});
        ASSERT_TRUE(status.ok()) << status.error().message;
        expected_ = dispatch.memory();
        const std::string text = ir::PrintKernel(kernel);
        RunOtherPasses(kernel, GetParam() ? CodeTier::kOptimized : CodeTier::kBaseline);
        for (const TargetInfo& target : TestTargets()) {
            for (uint32_t lanes : {0u, 1u, 16u}) {
                if (lanes != 0 && (options.subgroup_operations || &target != &TestTargets()[0])) {
                    continue;
                }
                Compare(kernel, seed, target, lanes);
                ASSERT_FALSE(HasFailure())
                    << "seed " << seed << ", " << lanes << " lanes, " << target.cpu_name << "\n"
                    << text << CostText(cost);
            }
        }
    }
}

// Invocations that part between barriers do so in native code, too, with copies and with states.
class NativeBarriers : public NativeDifferential {};

TEST_P(NativeBarriers, PartAsInTheInterpreter) {
    std::vector<std::pair<std::string, std::string>> kernels;  // names and texts
    for (const BarrierKernel& which : kBarrierKernels) {
        kernels.emplace_back(which.name, BarrierKernelText(which));
    }
    for (const BarrierKernel& which : kReturnKernels) {
        kernels.emplace_back(which.name, ReturnKernelText(which));
    }
    for (const auto& [name, text] : kernels) {
        Result<ir::Kernel> kernel = ir::ParseKernel(text);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        TestDispatch dispatch(*kernel, 1, /*overlap=*/false);
        Status status =
            Interpret(*kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups, {20'000'000});
        ASSERT_TRUE(status.ok()) << status.error().message;
        expected_ = dispatch.memory();
        if (!GetParam()) {
            SplitBarrierBranches(*kernel, 0);
        }
        RunPipeline(*kernel);
        for (const TargetInfo& target : TestTargets()) {
            for (uint32_t lanes : {0u, 1u, 16u}) {
                if (lanes != 0 && &target != &TestTargets()[0]) {
                    continue;
                }
                Compare(*kernel, 1, target, lanes);
                ASSERT_FALSE(HasFatalFailure())
                    << name << ", " << lanes << " lanes, " << target.cpu_name;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, NativeBarriers, testing::Bool(), [](const auto& info) {
    return std::string(info.param ? "WithCopies" : "WithStates");
});

INSTANTIATE_TEST_SUITE_P(Kernels, NativeDifferential, testing::Bool(), [](const auto& info) {
    return std::string(info.param ? "AfterThePasses" : "AsTheyAre");
});

}  // namespace
}  // namespace fornax::kernel
