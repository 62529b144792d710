// Live values of kernels with selections and loops.
#include <gtest/gtest.h>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/pressure.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

uint32_t LiveValues(const std::string& body) {
    const Result<ir::Kernel> kernel = ir::ParseKernel(R"(kernel "k" workgroup_size(64, 1, 1) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  body {
    %zero:i32 = const 0
    %two:i32 = const 2
    %out:buffer = buffer 0, %zero
    %i:i32 = builtin local_index
    %w:i32 = builtin workgroup_id_x
    %c:bool = ieq %w, %zero
    %o:i32 = shl %i, %two
    %a:i32 = load_buffer %out, %o align(4)
    %b:i32 = imul %a, %a
)" + body + R"(
    store_buffer %out, %o, %r align(4)
    return
  }
}
)");
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok()
               ? EstimatePressure(*kernel, LaneAnalysis(*kernel, 16, FindWorkgroupLevel(*kernel)))
                     .live_values
               : 0;
}

constexpr char kTwoBranches[] = R"(
    %r:i32 = if %c {
      %x0:i32 = imul %a, %b
      %x1:i32 = imul %x0, %x0
      %x2:i32 = imul %x0, %x1
      %x3:i32 = imul %x1, %x2
      %x4:i32 = iadd %x0, %x3
      %x5:i32 = iadd %x1, %x4
      %x6:i32 = iadd %x2, %x5
      yield %x6
    } else {
      %y:i32 = iadd %a, %b
      yield %y
    })";

// In the first branch a and b are dead when the chain needs most, although the second uses them.
TEST(Pressure, WhatTheOtherBranchUsesIsDead) {
    std::string without = kTwoBranches;
    const std::string used = "%y:i32 = iadd %a, %b";
    without.replace(without.find(used), used.size(), "%y:i32 = iadd %i, %i");
    EXPECT_EQ(LiveValues(kTwoBranches), LiveValues(without));
}

TEST(Pressure, WhatIsUsedBehindTheSelectionLives) {
    std::string behind = kTwoBranches;
    behind.replace(behind.find("%r:"), 3, "%s:");
    EXPECT_EQ(LiveValues(behind + "\n%r0:i32 = iadd %a, %b\n%r:i32 = iadd %r0, %s"),
              LiveValues(kTwoBranches) + 2);
}

// Each iteration may take either branch.
TEST(Pressure, WhatALoopUsesLivesInBothBranches) {
    const auto loop = [](const std::string& before, const std::string& inside) {
        return before + R"(
    %r:i32 = loop @0 (%k:i32 = %zero) {
      %goes:bool = ult %k, %w
      if %goes {
        yield
      } else {
        exit @0 %a
      })" + inside +
               R"(
      store_buffer %out, %o, %s align(4)
      continue @0 %k
    } continuing (%k2:i32) {
      %next:i32 = iadd %k2, %two
      next %next
    })";
    };
    std::string branches = kTwoBranches;
    branches.replace(branches.find("%r:"), 3, "%s:");
    const uint32_t live = LiveValues(loop("", branches));
    EXPECT_EQ(live, LiveValues(kTwoBranches) + 2);
}

}  // namespace
}  // namespace fornax::kernel
