// The baseline tier first, the optimized tier later: the same results, to the last bit, from
// either.
#include "compiler/kernel/tiers/tiered_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>

#include "base/log.h"
#include "base/sanitized.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 120;
constexpr uint32_t kInvocations = 64;

std::vector<uint32_t> Words(const std::string& text) {
    std::vector<uint32_t> words((text.size() + 3) / 4);
    std::memcpy(words.data(), text.data(), text.size());
    return words;
}

// Kernel IR text, which the reader of this test program takes for SPIR-V
// (kernel_compiler_test.cpp). Long enough for the baseline tier: x = x * a + b, y = y - x * y,
// again and again, contracted as the compiler likes.
std::vector<uint32_t> LongKernel(int steps = kSteps) {
    std::string text = R"(kernel "long" workgroup_size(64, 1, 1) subgroup_size(32) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  body {
    %0:i32 = builtin local_id_x
    %1:i32 = const 2
    %2:i32 = shl %0, %1
    %3:i32 = const 0
    %4:buffer = buffer 0, %3
    %5:f32 = load_buffer %4, %2 align(4)
    %6:f32 = utof %0
)";
    int next = 7;
    int x = 5;
    int y = 6;
    auto emit = [&](const std::string& operation) {
        text += "    %" + std::to_string(next) + ":f32 = " + operation + "\n";
        return next++;
    };
    auto name = [](int value) { return "%" + std::to_string(value); };
    for (int i = 0; i < steps; ++i) {
        const int product = emit("fmul " + name(x) + ", " + name(y));
        x = emit("fadd " + name(product) + ", " + name(5));
        const int other = emit("fmul " + name(x) + ", " + name(6));
        y = emit("fsub " + name(y) + ", " + name(other));
        const int half = emit("fabs " + name(y));
        y = emit("fdiv " + name(y) + ", " + name(emit("fadd " + name(half) + ", " + name(6))));
        x = emit("fdiv " + name(x) + ", " +
                 name(emit("fadd " + name(emit("fabs " + name(x))) + ", " + name(6))));
    }
    const int sum = emit("fadd " + name(x) + ", " + name(y));
    text += "    store_buffer %4, %2, " + name(sum) + " align(4)\n    return\n  }\n}\n";
    return Words(text);
}

// Loops that the optimized tier unrolls, so that its private arrays are registers and the first of
// them is folded, and the baseline tier does not.
std::vector<uint32_t> LoopingKernel() {
    return Words(R"(kernel "loops" workgroup_size(64, 1, 1) subgroup_size(32) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  local 0: f32[16]
  body {
    %0:i32 = builtin local_id_x
    %1:i32 = const 2
    %2:i32 = shl %0, %1
    %z:i32 = const 0
    %one:i32 = const 1
    %count:i32 = const 16
    %b:buffer = buffer 0, %z
    %x:f32 = load_buffer %b, %2 align(4)
    %third:f32 = const 0.333333343
    loop @fill unroll (%i:i32 = %z) {
      %in:bool = ult %i, %count
      if %in {
        yield
      } else {
        exit @fill
      }
      %f:f32 = utof %i
      %product:f32 = fmul %f, %third
      %plus:f32 = fadd %product, %third
      %other:f32 = fmul %plus, %x
      %minus:f32 = fsub %third, %other
      store_local 0, %i, %minus
      continue @fill
    } continuing () {
      %next:i32 = iadd %i, %one
      next %next
    }
    %zero:f32 = const 0.0
    %sum:f32 = loop @add unroll (%j:i32 = %z, %so_far:f32 = %zero) {
      %more:bool = ult %j, %count
      if %more {
        yield
      } else {
        exit @add %so_far
      }
      %e:f32 = load_local 0, %j
      %square:f32 = fmul %e, %e
      %added:f32 = fadd %so_far, %square
      continue @add %added
    } continuing (%carried:f32) {
      %following:i32 = iadd %j, %one
      next %following, %carried
    }
    store_buffer %b, %2, %sum align(4)
    return
  }
}
)");
}

std::vector<uint32_t> RunBits(const CompiledKernel& kernel) {
    std::vector<float> data(kInvocations);
    for (uint32_t i = 0; i < kInvocations; ++i) {
        data[i] = std::sqrt(static_cast<float>(i) + 0.3f);
    }
    const hal::BufferDescriptor set[] = {
        {reinterpret_cast<uint64_t>(data.data()), data.size() * sizeof(float)}};
    const void* sets[] = {set};
    hal::DispatchFrame dispatch = {.descriptor_sets = sets, .workgroup_count = {1, 1, 1}};
    dispatch.kernel_context = kernel.context;
    struct alignas(64) Line {
        uint8_t bytes[64];
    };
    std::vector<Line> scratch(kernel.scratch_bytes / sizeof(Line) + 1);
    hal::WorkerFrame worker = {.scratch = scratch.data()};
    kernel.entry(&dispatch, &worker, 0, 1);
    std::vector<uint32_t> bits;
    for (float value : data) {
        bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
}

class TieredKernelTest : public testing::Test {
  public:
    ~TieredKernelTest() override {
        SetLogLevel(previous_level_);
        fs::remove_all(directory_);
    }

  protected:
    TieredKernelTest() {
        directory_ = fs::temp_directory_path() /
                     ("fornax-tiered-kernel-test-" + std::to_string(getpid()) + "-" +
                      testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::create_directories(directory_);
        previous_level_ = GetLogLevel();
        SetLogLevel(LogLevel::kOff);
    }

    std::unique_ptr<KernelCompiler> MakeCompiler(const char* tier) {
        if (tier) {
            setenv("FORNAX_TIER", tier, 1);
        }
        auto compiler = KernelCompiler::Create(directory_.string());
        unsetenv("FORNAX_TIER");
        EXPECT_TRUE(compiler.ok()) << compiler.error().message;
        return std::move(compiler).value();
    }
    std::shared_ptr<const CompiledKernel> Compile(KernelCompiler& compiler) {
        auto kernel = compiler.Compile({.spirv = words_});
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        return *kernel;
    }
    bool IsStored() {
        auto compiler = MakeCompiler("1");
        return *compiler->Lookup({.spirv = words_}) != nullptr;
    }

    std::vector<uint32_t> words_ = LongKernel();
    fs::path directory_;
    LogLevel previous_level_;
};

TEST_F(TieredKernelTest, BothCodesComputeTheSame) {
    const auto baseline = Compile(*MakeCompiler("0"));
    const std::vector<uint32_t> bits = RunBits(*baseline);
    EXPECT_FALSE(IsStored()) << "the baseline tier must not stay";
    const auto optimized = Compile(*MakeCompiler("1"));
    EXPECT_FALSE(optimized->from_disk_cache);
    EXPECT_EQ(RunBits(*optimized), bits);
    EXPECT_TRUE(IsStored());
}

TEST_F(TieredKernelTest, LoopsComputeTheSameUnrolledOrNot) {
    words_ = LoopingKernel();
    const std::vector<uint32_t> bits = RunBits(*Compile(*MakeCompiler("0")));
    EXPECT_EQ(RunBits(*Compile(*MakeCompiler("1"))), bits);
    auto compiler = MakeCompiler(nullptr);
    const auto kernel = Compile(*compiler);
    EXPECT_EQ(RunBits(*kernel), bits);
}

TEST_F(TieredKernelTest, TheOptimizedTierReplacesTheBaselineTier) {
    auto compiler = MakeCompiler(nullptr);
    const auto kernel = Compile(*compiler);
    const std::vector<uint32_t> bits = RunBits(*kernel);
    auto* tiered = dynamic_cast<const TieredKernel*>(kernel.get());
    ASSERT_NE(tiered, nullptr) << "the kernel is too short for a baseline tier";
    EXPECT_FALSE(kernel->Serialized().empty());  // waits
    EXPECT_TRUE(tiered->is_optimized());
    EXPECT_EQ(RunBits(*kernel), bits);
    EXPECT_TRUE(IsStored());
    EXPECT_EQ(Compile(*compiler), kernel);
    const auto stored = Compile(*MakeCompiler(nullptr));
    EXPECT_TRUE(stored->from_disk_cache);
    EXPECT_EQ(RunBits(*stored), bits);
}

TEST_F(TieredKernelTest, WhatAShortProgramCompilesIsStored) {
    Compile(*MakeCompiler(nullptr));
    EXPECT_TRUE(IsStored());
}

TEST_F(TieredKernelTest, AKernelMayGoBeforeItsOptimizedTierComes) {
    auto compiler = MakeCompiler(nullptr);
    auto kernel = Compile(*compiler);
    kernel = nullptr;
    compiler = nullptr;
    EXPECT_TRUE(IsStored());
}

#ifndef FORNAX_THREAD_SANITIZER

// The thread that makes the optimized tier does not exist in a child.
TEST_F(TieredKernelTest, AChildProcessBeginsAnew) {
    auto compiler = MakeCompiler(nullptr);
    std::vector<std::vector<uint32_t>> words;
    std::vector<std::shared_ptr<const CompiledKernel>> kernels;
    for (int i = 0; i < 6; ++i) {
        words.push_back(LongKernel(kSteps + i));
        auto kernel = compiler->Compile({.spirv = words.back()});
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        kernels.push_back(*kernel);
    }
    // What the child finds out; 0 if it is all as it should be.
    const auto checks = [&] {
        // Kernels that wait for the thread get no optimized tier any more.
        if (!kernels.back()->Serialized().empty()) {
            return 1;
        }
        for (size_t i = 0; i < words.size(); ++i) {
            auto again = compiler->Compile({.spirv = words[i]});
            if (!again.ok() || RunBits(**again) != RunBits(*kernels[i])) {
                return 2;
            }
        }
        auto last = compiler->Compile({.spirv = words.back()});
        if (!last.ok() || (*last)->Serialized().empty()) {
            return 3;  // the child has a thread of its own for it
        }
        last->reset();
        kernels.clear();
        compiler = nullptr;
        return 0;
    };
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(100);  // a child that hangs dies of it
        _exit(checks());
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_FALSE(kernels.back()->Serialized().empty()) << "the parent's thread goes on";
}

#endif

TEST_F(TieredKernelTest, OtherTiersAreRefused) {
    setenv("FORNAX_TIER", "2", 1);
    auto compiler = KernelCompiler::Create("");
    unsetenv("FORNAX_TIER");
    ASSERT_FALSE(compiler.ok());
    EXPECT_THAT(compiler.error().message, testing::HasSubstr("FORNAX_TIER"));
}

using std::chrono_literals::operator""ms;
using Clock = std::chrono::steady_clock;

// A queue whose thread is held by a first job until Release().
class BackgroundQueueTest : public testing::Test {
  protected:
    BackgroundQueueTest() : queue_(std::in_place, [this] { return is_idle_.load(); }) {
        std::promise<void> holds;
        queue_->Add({[] { return std::optional(BackgroundQueue::kWorthIt); },
                     [&](bool) {
                         holds.set_value();
                         release_.get_future().wait();
                     },
                     0ms});
        holds.get_future().wait();
    }

    // A job of a kernel that has run for `time`, or that is gone.
    void Add(int number,
             std::optional<std::chrono::nanoseconds> time,
             std::chrono::nanoseconds takes = 0ms) {
        queue_->Add({[time] { return time; },
                     [this, number](bool run) { (run ? ran_ : dropped_).push_back(number); },
                     takes});
    }
    void Release() { release_.set_value(); }

    std::promise<void> release_;
    std::atomic<bool> is_idle_ = true;
    std::vector<int> ran_, dropped_;
    std::optional<BackgroundQueue> queue_;
};

TEST_F(BackgroundQueueTest, WhatHasRunMostGoesFirst) {
    Add(1, 0ms);
    Add(2, std::nullopt);
    Add(3, 5ms);
    Add(4, 0ms);
    Add(5, 1ms);
    Add(6, 90ms);
    Release();
    queue_.reset();
    EXPECT_THAT(ran_, testing::ElementsAre(6, 3, 5, 1, 4, 2));
    EXPECT_THAT(dropped_, testing::IsEmpty());
}

// Promises of when a job begins.
BackgroundQueue::Job Begins(std::function<std::optional<std::chrono::nanoseconds>()> run_time,
                            std::promise<Clock::time_point>& begun) {
    return {std::move(run_time), [&](bool) { begun.set_value(Clock::now()); }};
}

TEST_F(BackgroundQueueTest, WhatHasHardlyRunWaitsUntilNoneComesOrRuns) {
    std::promise<Clock::time_point> cold, hot;
    std::atomic<int64_t> microseconds = 0;
    Release();
    queue_->Add(Begins([&] { return std::chrono::microseconds(microseconds.load()); }, cold));
    std::this_thread::sleep_for(BackgroundQueue::kCalm / 2);
    microseconds = 30;
    std::this_thread::sleep_for(BackgroundQueue::kCalm / 2);
    queue_->Add(Begins([] { return 7ms; }, hot));
    const Clock::time_point last = Clock::now();
    const Clock::time_point cold_begun = cold.get_future().get();
    EXPECT_LT(hot.get_future().get(), cold_begun);
    EXPECT_GE(cold_begun - last, BackgroundQueue::kCalm - 1ms);
}

TEST_F(BackgroundQueueTest, AKernelThatKeepsRunningIsCompiledInTheMidst) {
    std::promise<Clock::time_point> begun;
    std::atomic<int64_t> microseconds = 0;
    Release();
    queue_->Add(Begins([&] { return std::chrono::microseconds(microseconds += 90); }, begun));
    EXPECT_EQ(begun.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_GE(microseconds, 1000);
}

// Without an idle processor a compilation has to be worth what it takes.
TEST_F(BackgroundQueueTest, OnABusyMachineAKernelRunsForAsLongAsItsCompilationTakes) {
    std::promise<Clock::time_point> begun;
    std::atomic<int64_t> milliseconds = 12;  // less than an eighth
    is_idle_ = false;
    BackgroundQueue::Job job =
        Begins([&] { return std::chrono::milliseconds(milliseconds.load()); }, begun);
    job.takes = 100ms;
    Release();
    queue_->Add(std::move(job));
    std::future<Clock::time_point> begins = begun.get_future();
    EXPECT_EQ(begins.wait_for(2 * BackgroundQueue::kSettled), std::future_status::timeout);
    // Others that come let it wait, unless this machine is too slow to add them in time.
    Clock::time_point last_added = Clock::now();
    Add(0, 0ms);
    milliseconds = 99;
    for (int i = 1; i < 8; ++i) {
        const Clock::time_point now = Clock::now();
        Add(i, 0ms);
        const bool waits =
            begins.wait_for(BackgroundQueue::kSettled / 4) == std::future_status::timeout;
        if (Clock::now() - last_added >= BackgroundQueue::kSettled) {
            break;
        }
        EXPECT_TRUE(waits);
        last_added = now;
    }
    milliseconds = 100;
    EXPECT_EQ(begins.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(BackgroundQueueTest, OnceNoneComesAnEighthIsEnough) {
    std::promise<Clock::time_point> begun;
    is_idle_ = false;
    BackgroundQueue::Job job = Begins([] { return 13ms; }, begun);
    job.takes = 100ms;
    Release();
    const Clock::time_point start = Clock::now();
    queue_->Add(std::move(job));
    EXPECT_GE(begun.get_future().get() - start, BackgroundQueue::kSettled);
}

TEST_F(BackgroundQueueTest, AnIdleProcessorIsUsed) {
    std::promise<Clock::time_point> little, nothing;
    BackgroundQueue::Job job = Begins([] { return 1ms; }, little);
    job.takes = 100ms;
    is_idle_ = false;
    Release();
    queue_->Add(std::move(job));
    queue_->Add(Begins([] { return 0ms; }, nothing));
    std::future<Clock::time_point> little_begins = little.get_future();
    std::future<Clock::time_point> nothing_begins = nothing.get_future();
    EXPECT_EQ(little_begins.wait_for(2 * BackgroundQueue::kCalm), std::future_status::timeout);
    is_idle_ = true;
    EXPECT_LT(little_begins.get(), nothing_begins.get());
}

// The job that pays goes first, though others have run longer.
TEST_F(BackgroundQueueTest, OnABusyMachineWhatPaysGoesFirst) {
    is_idle_ = false;
    Add(1, 50ms, 100ms);
    Add(2, 20ms, 10ms);
    Add(3, 70ms, 60ms);
    Release();
    queue_.reset();
    EXPECT_THAT(ran_, testing::ElementsAre(3, 2, 1));
}

TEST(IdleProcessors, ReadsTheFirstLine) {
    const auto ticks = [](int64_t count) {
        return std::chrono::milliseconds(count * 1000 / sysconf(_SC_CLK_TCK));
    };
    EXPECT_EQ(ParseIdleTime("cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5"), ticks(450));
    EXPECT_EQ(ParseIdleTime("cpu 1 2 3 4 5"), ticks(9));
    EXPECT_EQ(ParseIdleTime("cpu0 1 2 3 4 5"), std::nullopt);
    EXPECT_EQ(ParseIdleTime("cpu 1 2 3"), std::nullopt);
    EXPECT_EQ(ParseIdleTime(""), std::nullopt);
}

TEST(IdleProcessors, NothingIsKnownAtFirst) {
    IdleProcessors processors;
    EXPECT_FALSE(processors.Any());
}

TEST_F(BackgroundQueueTest, TellsWhatItDropsAtItsEnd) {
    Add(1, 3ms);
    Add(2, std::nullopt);
    // The first job holds the thread beyond the queue's patience.
    std::thread releaser([&] {
        std::this_thread::sleep_for(1500ms);
        Release();
    });
    queue_.reset();
    releaser.join();
    EXPECT_THAT(ran_, testing::IsEmpty());
    EXPECT_THAT(dropped_, testing::ElementsAre(1, 2));
}

TEST_F(BackgroundQueueTest, DropsTheOldestOfManyThatAreGone) {
    constexpr int kMost = BackgroundQueue::kMaxOrphans;
    Add(-1, 0ms);
    for (int i = 0; i < kMost + 2; ++i) {
        Add(i, std::nullopt);
    }
    EXPECT_THAT(dropped_, testing::ElementsAre(0, 1));
    Release();
    queue_.reset();
    EXPECT_EQ(ran_.size(), size_t{kMost} + 1);
    EXPECT_EQ(ran_.front(), -1);
}

TEST_F(TieredKernelTest, CountsForHowLongTheBaselineTierRuns) {
    auto compiler = MakeCompiler(nullptr);
    const auto kernel = Compile(*compiler);
    auto* tiered = dynamic_cast<const TieredKernel*>(kernel.get());
    ASSERT_NE(tiered, nullptr);
    EXPECT_EQ(tiered->baseline_time().count(), 0);
    RunBits(*kernel);
    if (!tiered->is_optimized()) {
        EXPECT_GT(tiered->baseline_time().count(), 0);
    }
    kernel->Serialized();
    EXPECT_EQ(tiered->baseline_time(), std::chrono::nanoseconds::max());
}

}  // namespace
}  // namespace fornax::kernel
