// Kernels of a size that nobody writes: right results, or a refusal, in a time that grows with the
// size and not with its square. The limits of time are several times what it takes, and were
// exceeded when it was the square.
#include "compiler/kernel/codegen/jit_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>

#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/verify.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {
namespace {

using ir::Op;
using ir::Type;
using ir::ValueId;
using testing::HasSubstr;

constexpr uint32_t kLanes = 64;

struct alignas(64) Line {
    uint8_t bytes[64];
};

double CpuSeconds() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A kernel of 64 invocations that reads an element of buffer 0, computes, and writes it.
class LargeKernel {
  public:
    LargeKernel() {
        kernel_.name = "large";
        kernel_.workgroup_size = {kLanes, 1, 1};
        kernel_.bindings.push_back({});
        kernel_.body = kernel_.NewBlock({});
        b.SetBlock(kernel_.body);
        const ValueId lane =
            b.Emit(Op::kBuiltin, Type::kI32, {}, static_cast<uint64_t>(ir::BuiltinId::kLocalIdX));
        offset_ = b.Emit(Op::kShl, Type::kI32, {lane, b.ConstI32(2)});
        buffer_ = b.Emit(Op::kBuffer, Type::kBuffer, {b.ConstI32(0)}, 0);
    }

    ValueId Load(Type type = Type::kI32) {
        return b.Emit(Op::kLoadBuffer, type, {buffer_, offset_}, 4);
    }
    void Store(ValueId value) {
        b.Append(Op::kStoreBuffer, std::vector<ValueId>{buffer_, offset_, value}, {}, 4);
    }
    void Yield() { b.Append(Op::kYield, {}, {}); }
    void Return() { b.Append(Op::kReturn, {}, {}); }

    // Fills a block of a construct; gives its number.
    ir::BlockId Block(ir::InstId construct, const std::function<void()>& fill) {
        const ir::BlockId outside = b.block();
        const ir::BlockId block = kernel_.NewBlock(construct);
        b.SetBlock(block);
        fill();
        b.SetBlock(outside);
        return block;
    }
    void If(ValueId condition, const std::function<void()>& then) {
        const ir::InstId construct = b.Append(Op::kIf, {&condition, 1}, {});
        const ir::BlockId taken = Block(construct, then);
        const ir::BlockId otherwise = Block(construct, [&] { Yield(); });
        kernel_.inst(construct).blocks = {taken, otherwise};
    }
    void Switch(ValueId selector, uint32_t cases, const std::function<void(uint32_t)>& fill) {
        const ir::InstId construct = b.Append(Op::kSwitch, {&selector, 1}, {});
        std::vector<ir::BlockId> blocks = {Block(construct, [&] { Yield(); })};
        std::vector<uint64_t> values;
        for (uint32_t i = 0; i < cases; ++i) {
            blocks.push_back(Block(construct, [&] { fill(i); }));
            values.push_back(i);
        }
        kernel_.inst(construct).blocks = std::move(blocks);
        kernel_.inst(construct).case_values = std::move(values);
    }

    ir::Kernel& Finish() {
        Return();
        return kernel_;
    }

  private:
    ir::Kernel kernel_;
    ValueId offset_;
    ValueId buffer_;

  public:
    ir::Builder b{kernel_, ir::BlockId{}};
};

void Run(const NativeKernel& native, std::vector<uint32_t>& values) {
    auto object = LoadedObject::Load(native.object, kKernelSymbol);
    ASSERT_TRUE(object.ok()) << object.error().message;
    const hal::BufferDescriptor set[] = {
        {reinterpret_cast<uint64_t>(values.data()), values.size() * sizeof(uint32_t)}};
    const void* sets[] = {set};
    hal::DispatchFrame dispatch = {.descriptor_sets = sets, .workgroup_count = {1, 1, 1}};
    std::vector<Line> scratch(native.scratch_bytes / sizeof(Line) + 1);
    hal::WorkerFrame worker = {.scratch = scratch.data()};
    reinterpret_cast<hal::KernelEntry>(const_cast<void*>((*object)->entry()))(&dispatch, &worker, 0,
                                                                              1);
}

Result<NativeKernel> Compile(const ir::Kernel& kernel, CodeTier tier) {
    const TargetInfo& target = TestTargets()[0];
    auto machine = CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
    if (!machine.ok()) {
        return machine.error();
    }
    return CompileToNative(kernel, target, **machine, {}, 0, nullptr, tier);
}

// Compiles the kernel in both qualities and runs it on `start + lane * step`.
void Check(const ir::Kernel& kernel,
           double limit_seconds,
           uint32_t start,
           uint32_t step,
           const std::function<uint32_t(uint32_t)>& expected) {
    const Status verified = ir::Verify(kernel);
    ASSERT_TRUE(verified.ok()) << verified.error().message;
    for (CodeTier tier : {CodeTier::kBaseline, CodeTier::kOptimized}) {
        const double before = CpuSeconds();
        const Result<NativeKernel> native = Compile(kernel, tier);
        const double seconds = CpuSeconds() - before;
        ASSERT_TRUE(native.ok()) << native.error().message;
        EXPECT_LT(seconds, limit_seconds)
            << (tier == CodeTier::kBaseline ? "baseline" : "optimized");
        std::vector<uint32_t> values(kLanes), wanted(kLanes);
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
            values[lane] = start + lane * step;
            wanted[lane] = expected(values[lane]);
        }
        Run(*native, values);
        EXPECT_EQ(values, wanted);
    }
}

// 100 s when the masks of all cases were alive at once.
TEST(LargeKernels, ASwitchOfManyCases) {
    constexpr uint32_t kCases = 4000;
    LargeKernel k;
    const ValueId selector = k.Load();
    k.Switch(selector, kCases, [&](uint32_t i) {
        k.Store(k.b.Emit(Op::kIMul, Type::kI32, {selector, k.b.ConstI32(2 * i + 3)}));
        k.Yield();
    });
    Check(k.Finish(), 20, 2000, 50, [](uint32_t x) { return x < kCases ? x * (2 * x + 3) : x; });
}

// 28 s when LLVM looked from each mask back at all before it, one return after the other.
TEST(LargeKernels, ManyReturns) {
    constexpr uint32_t kReturns = 500;
    LargeKernel k;
    const ValueId x = k.Load();
    for (uint32_t i = 0; i < kReturns; ++i) {
        k.If(k.b.Emit(Op::kIEq, Type::kBool, {x, k.b.ConstI32(3 * i)}), [&] {
            k.Store(k.b.ConstI32(i + 1));
            k.Return();
        });
    }
    k.Store(k.b.ConstI32(0));
    Check(k.Finish(), 12, 1450, 1,
          [](uint32_t x) { return x % 3 == 0 && x / 3 < kReturns ? x / 3 + 1 : 0; });
}

// 26 s when each constant had a register from before the loop over workgroups on.
TEST(LargeKernels, ManyConstants) {
    constexpr uint32_t kBranches = 2000;
    LargeKernel k;
    const ValueId x = k.Load();
    for (uint32_t i = 0; i < kBranches; ++i) {
        k.If(k.b.Emit(Op::kIEq, Type::kBool, {x, k.b.ConstI32(i * 0x9e3779b9u)}), [&] {
            k.Store(k.b.ConstI32(i * 77 + 1));
            k.Yield();
        });
    }
    Check(k.Finish(), 12, 0, 0x9e3779b9u,
          [](uint32_t x) { return x * 0x144cbc89u /* the inverse of 0x9e3779b9 */ * 77 + 1; });
}

// When one block was selected as a whole, each product of a constant looked at all the others of
// it.
TEST(LargeKernels, ALongBlockOfProducts) {
    constexpr uint32_t kProducts = 10'000;
    LargeKernel k;
    ValueId value = k.Load(Type::kF32);
    const ValueId factor = k.b.ConstF32(0.75F);
    const ValueId term = k.b.ConstF32(0.5F);
    for (uint32_t i = 0; i < kProducts; ++i) {
        value = k.b.Emit(Op::kFma, Type::kF32, {value, i % 2 ? factor : value, term});
    }
    k.Store(value);
    Check(k.Finish(), 12, 0x3e000000u, 1u << 17, [](uint32_t x) {
        float result;
        std::memcpy(&result, &x, sizeof(result));
        for (uint32_t i = 0; i < kProducts; ++i) {
            result = std::fma(result, i % 2 ? 0.75F : result, 0.5F);
        }
        std::memcpy(&x, &result, sizeof(result));
        return x;
    });
}

// A straight line of operations that no pass folds.
ir::Kernel& FillLine(LargeKernel& k, size_t length) {
    const ValueId start = k.Load();
    ValueId value = start;
    for (size_t i = 0; i < length; ++i) {
        value = k.b.Emit(i % 2 ? Op::kIMul : Op::kXor, Type::kI32, {value, start});
    }
    k.Store(value);
    return k.Finish();
}

TEST(LargeKernels, VeryLongOnesAreCompiledQuickly) {
    constexpr size_t kLength = 104'000;
    LargeKernel k;
    Check(FillLine(k, kLength), 60, 5, 1, [](uint32_t x) {
        uint32_t value = x;
        for (size_t i = 0; i < kLength; ++i) {
            value = i % 2 ? value * x : value ^ x;
        }
        return value;
    });
}

TEST(LargeKernels, TooLongOnesAreRefused) {
    LargeKernel k;
    const Result<NativeKernel> native = Compile(FillLine(k, 1'100'000), CodeTier::kOptimized);
    ASSERT_FALSE(native.ok());
    EXPECT_EQ(native.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(native.error().message, HasSubstr("1000000"));
}

}  // namespace
}  // namespace fornax::kernel
