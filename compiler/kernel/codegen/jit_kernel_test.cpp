// From kernel IR to running code: what the emitter, the backend and the loader make together.
#include "compiler/kernel/codegen/jit_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/op_harness.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/text.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {
namespace {

using testing::HasSubstr;

struct alignas(64) Line {
    uint8_t bytes[64];
};

// y[i] = a * x[i] + y[i]
constexpr char kSaxpy[] =
    R"(kernel "saxpy" workgroup_size(64, 1, 1) subgroup_size(32) push_constants(4) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0) readonly
  binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
  body {
    %0:i32 = builtin workgroup_id_x
    %1:i32 = builtin local_id_x
    %2:i32 = const 64
    %3:i32 = imul %0, %2
    %4:i32 = iadd %3, %1
    %5:i32 = const 2
    %6:i32 = shl %4, %5
    %7:i32 = const 0
    %8:buffer = buffer 0, %7
    %9:buffer = buffer 1, %7
    %10:f32 = load_push %7 align(4)
    %11:f32 = load_buffer %8, %6 align(4)
    %12:f32 = load_buffer %9, %6 align(4)
    %13:f32 = fma %10, %11, %12
    store_buffer %9, %6, %13 align(4)
    return
  }
}
)";

// The backend would take a scalar f16 minimum with a constant for a call to fminf.
TEST(CompileToNative, ScalarHalfMinimaCallNoLibrary) {
    constexpr char kText[] =
        R"(kernel "halves" workgroup_size(1, 1, 1) subgroup_size(32) push_constants(0) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  body {
    %0:i32 = const 0
    %1:i32 = const 2
    %2:f16 = const 0.5
    %3:buffer = buffer 0, %0
    %4:f16 = load_buffer %3, %0 align(2)
    %5:f16 = nmin %4, %2
    %6:f16 = fmax %2, %4
    %7:bool = folt %4, %2
    %8:f16 = select %7, %4, %2
    store_buffer %3, %0, %5, %6, %8 align(2)
    return
  }
}
)";
    Result<ir::Kernel> kernel = ir::ParseKernel(kText);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (const TargetInfo& target : TestTargets()) {
        auto machine = CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
        ASSERT_TRUE(machine.ok()) << machine.error().message;
        auto native = CompileToNative(*kernel, target, **machine, {}, /*force_lanes=*/1);
        ASSERT_TRUE(native.ok()) << native.error().message;
        auto object = LoadedObject::Load(native->object, kKernelSymbol);
        EXPECT_TRUE(object.ok()) << target.cpu_name << ": " << object.error().message;
    }
}

TEST(CompileToNative, RunsOnEveryTarget) {
    Result<ir::Kernel> kernel = ir::ParseKernel(kSaxpy);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    constexpr uint32_t kGroups = 10;
    for (const TargetInfo& target : TestTargets()) {
        auto machine = CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
        ASSERT_TRUE(machine.ok()) << machine.error().message;
        std::vector<std::string> stages;
        auto native = CompileToNative(*kernel, target, **machine,
                                      [&](std::string_view extension, std::string_view text) {
                                          EXPECT_FALSE(text.empty());
                                          stages.emplace_back(extension);
                                      });
        ASSERT_TRUE(native.ok()) << native.error().message;
        EXPECT_THAT(stages, testing::ElementsAre("llvm", "opt.llvm", "s"));
        auto object = LoadedObject::Load(native->object, kKernelSymbol);
        ASSERT_TRUE(object.ok()) << object.error().message;

        std::vector<float> x(64 * kGroups), y(64 * kGroups);
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i);
            y[i] = 1;
        }
        const hal::BufferDescriptor set[] = {{reinterpret_cast<uint64_t>(x.data()), x.size() * 4},
                                             {reinterpret_cast<uint64_t>(y.data()), y.size() * 4}};
        const void* sets[] = {set};
        float push[hal::kPushConstantBytes / sizeof(float)] = {2};
        hal::DispatchFrame dispatch = {
            .descriptor_sets = sets, .push_constants = push, .workgroup_count = {kGroups, 1, 1}};
        std::vector<Line> scratch(native->scratch_bytes / sizeof(Line) + 1);
        hal::WorkerFrame worker = {.scratch = scratch.data()};
        auto entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>((*object)->entry()));
        entry(&dispatch, &worker, 3, kGroups - 3);
        for (size_t i = 0; i < x.size(); ++i) {
            ASSERT_EQ(y[i], i < 3 * 64 ? 1 : 2 * static_cast<float>(i) + 1) << i;
        }
        EXPECT_EQ(worker.fault, 0u);
    }
}

TEST(CompileToNative, RefusesWhatTheMathsLibraryLacks) {
    Result<ir::Kernel> kernel =
        ir::ParseKernel(R"(kernel "f" workgroup_size(1, 1, 1) subgroup_size(32) {
  body {
    %0:f64 = const 1.0
    %1:f64 = exp %0
    return
  }
}
)");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const TargetInfo& target = TestTargets()[0];
    auto machine = CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
    ASSERT_TRUE(machine.ok());
    auto native = CompileToNative(*kernel, target, **machine, {});
    ASSERT_FALSE(native.ok());
    EXPECT_EQ(native.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(native.error().message, HasSubstr("exp"));
}

}  // namespace
}  // namespace fornax::kernel
