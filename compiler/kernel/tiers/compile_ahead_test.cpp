#include "compiler/kernel/tiers/compile_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <optional>

namespace fornax::kernel {
namespace {

TEST(CompileAhead, OneThreadKeepsTheOrder) {
    std::vector<int> ran;
    std::promise<void> done;
    CompileAhead ahead(1);
    for (int i = 0; i < 5; ++i) {
        ahead.Add([&ran, i] { ran.push_back(i); });
    }
    ahead.Add([&] { done.set_value(); });
    done.get_future().wait();
    EXPECT_THAT(ran, testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(CompileAhead, AsManyRunAtOnceAsThereAreThreads) {
    constexpr int kThreads = 3;
    std::latch all(kThreads);
    CompileAhead ahead(kThreads);
    for (int i = 0; i < kThreads; ++i) {
        ahead.Add([&] { all.arrive_and_wait(); });
    }
    all.wait();
}

TEST(CompileAhead, SignalsAreTheApplications) {
    std::promise<bool> blocked;
    CompileAhead ahead(1);
    ahead.Add([&] {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocked.set_value(sigismember(&mask, SIGURG) == 1);
    });
    EXPECT_TRUE(blocked.get_future().get());
}

TEST(CompileAhead, JobsAreDroppedThatAreTooManyOrTooLate) {
    std::atomic<int> ran = 0;
    std::promise<void> begins, goes_on;
    std::optional<CompileAhead> ahead(std::in_place, 1);
    ahead->Add([&] {
        begins.set_value();
        goes_on.get_future().wait();
    });
    begins.get_future().wait();
    std::promise<void> last;
    for (size_t i = 0; i < CompileAhead::kMostJobs + 5; ++i) {
        ahead->Add([&] {
            if (++ran == CompileAhead::kMostJobs) {
                last.set_value();
            }
        });
    }
    goes_on.set_value();
    last.get_future().wait();
    // Whoever destroys it waits for the job that runs, and for no other.
    std::promise<void> runs, dropped;
    ahead->Add([&] {
        runs.set_value();
        dropped.get_future().wait();
        ++ran;
    });
    struct TellsItsEnd {
        ~TellsItsEnd() { end.set_value(); }
        std::promise<void>& end;
    };
    ahead->Add([&ran, teller = std::make_shared<TellsItsEnd>(dropped)] { ran += 1000; });
    runs.get_future().wait();
    ahead.reset();
    EXPECT_EQ(ran, int{CompileAhead::kMostJobs} + 1);
}

TEST(CompileAhead, WithoutThreadsNothingRuns) {
    bool ran = false;
    {
        CompileAhead ahead(0);
        ahead.Add([&] { ran = true; });
    }
    EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace fornax::kernel
