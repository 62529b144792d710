// Records of dispatches are kept by all that they follow from.
#include "driver/dispatch_records.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "compiler/kernel/interface/kernel_desc.h"

namespace fornax::driver {
namespace {

// Reads 4 bytes of set 0's buffer in each invocation, and as much again each time its counter says.
std::shared_ptr<const kernel::CompiledKernel> Kernel() {
    auto kernel = std::make_shared<kernel::CompiledKernel>();
    kernel->used_sets = 1;
    const auto region = [](kernel::CostCount count) {
        return kernel::CostRegion{.count = std::move(count),
                                  .accesses = {{.bytes = 4, .buffer = 0, .source = 0}}};
    };
    kernel->cost = std::make_shared<kernel::KernelCost>(kernel::KernelCost{
        .counters = 1,
        .workgroup_invocations = 64,
        .regions = {region({.invocations = 1, .counters = {}}), region(kernel::CostCount::Of(0))},
        .buffers = {{.set = 0, .offset_bytes = 0}},
        .sources = {"k.comp:1"}});
    return kernel;
}

class DispatchRecordsTest : public testing::Test {
  protected:
    hal::BufferDescriptor descriptor_ = {.address = 0x1000, .size_bytes = 4096};
    const void* sets_[1] = {&descriptor_};
    hal::DispatchFrame frame_ = {.descriptor_sets = sets_, .workgroup_count = {2, 1, 1}};
    DispatchRecords records_{false};

    static hal::Executable Named(std::shared_ptr<const kernel::CompiledKernel> kernel,
                                 std::string name) {
        hal::KernelDesc desc = kernel::DescribeExecutable(std::move(kernel), 0);
        desc.name = std::move(name);
        return hal::Executable(std::move(desc));
    }
    npu::DispatchRecord Of(const hal::Executable& executable, uint64_t count, uint64_t groups = 2) {
        return records_.Of(executable, frame_, groups, std::span(&count, 1));
    }
};

TEST_F(DispatchRecordsTest, TheSameDispatchHasTheSameRecord) {
    const hal::Executable executable = Named(Kernel(), "k");
    const npu::DispatchRecord first = Of(executable, 3);
    ASSERT_EQ(first.accesses.size(), 1u);
    EXPECT_EQ(first.accesses[0].bytes, 4u * (2 * 64 + 3));
    const npu::DispatchRecord again = Of(executable, 3);
    EXPECT_EQ(again.name, "k");
    EXPECT_EQ(again.workgroups, first.workgroups);
    ASSERT_EQ(again.accesses.size(), 1u);
    EXPECT_EQ(again.accesses[0].bytes, first.accesses[0].bytes);
    EXPECT_EQ(again.accesses[0].range, first.accesses[0].range);
    EXPECT_EQ(records_.kept(), 1u);
}

TEST_F(DispatchRecordsTest, WhatARecordFollowsFromMakesAnotherOne) {
    const hal::Executable executable = Named(Kernel(), "k");
    const npu::DispatchRecord first = Of(executable, 3);
    EXPECT_EQ(Of(executable, 4).accesses[0].bytes, first.accesses[0].bytes + 4);
    EXPECT_EQ(Of(executable, 3, 4).workgroups, 4u);
    frame_.workgroup_count[1] = 2;
    Of(executable, 3);
    descriptor_.size_bytes = 2048;
    EXPECT_EQ(Of(executable, 3).accesses[0].range.bytes, 2048u);
    descriptor_.address = 0x2000;
    EXPECT_NE(Of(executable, 3).accesses[0].range.memory, first.accesses[0].range.memory);
    EXPECT_EQ(records_.kept(), 6u);
}

// A label names dispatches of the same kernel.
TEST_F(DispatchRecordsTest, TheNameIsTheExecutables) {
    const auto kernel = Kernel();
    EXPECT_EQ(Of(Named(kernel, "first"), 3).name, "first");
    EXPECT_EQ(Of(Named(kernel, "second"), 3).name, "second");
    EXPECT_EQ(records_.kept(), 1u);
}

// Another kernel may lie where one was that is gone.
TEST_F(DispatchRecordsTest, AKernelThatIsGoneIsNotTakenForAnother) {
    auto kernel = std::make_shared<kernel::CompiledKernel>(*Kernel());
    // The same address, and another life.
    std::shared_ptr<const kernel::CompiledKernel> first(kernel.get(), [](const auto*) {});
    EXPECT_EQ(Of(Named(std::move(first), "k"), 3).accesses[0].bytes, 4u * (2 * 64 + 3));
    auto cost = std::make_shared<kernel::KernelCost>(*kernel->cost);
    cost->regions[0].accesses[0].bytes = 8;
    kernel->cost = cost;
    std::shared_ptr<const kernel::CompiledKernel> second(kernel.get(), [](const auto*) {});
    EXPECT_EQ(Of(Named(std::move(second), "k"), 3).accesses[0].bytes, 8u * 2 * 64 + 4 * 3);
}

TEST_F(DispatchRecordsTest, ForgetsThemWhenTheyAreMany) {
    const hal::Executable executable = Named(Kernel(), "k");
    const size_t words = 6;  // of a key
    const size_t most = (size_t{1} << 20) / words;
    for (uint64_t i = 0; i <= most; ++i) {
        Of(executable, i);
    }
    EXPECT_EQ(records_.kept(), 1u);
}

}  // namespace
}  // namespace fornax::driver
