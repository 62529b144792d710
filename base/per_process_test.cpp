// What a child of fork finds of its parent's state.
#include "base/per_process.h"
#include "base/sanitized.h"

#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fornax {
namespace {

// The child's exit code, which `checks` gives; negative if a signal ended it.
int InChild(const std::function<int()>& checks) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);  // a child that hangs dies of it
        _exit(checks());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(ProcessGeneration, IsAnotherInEveryDescendant) {
    const uint64_t ours = ProcessGeneration();
    EXPECT_NE(ours, 0u);
    EXPECT_EQ(std::async(std::launch::async, ProcessGeneration).get(), ours);
    EXPECT_EQ(InChild([&] {
                  const uint64_t child = ProcessGeneration();
                  if (child == ours || child != ProcessGeneration()) {
                      return 1;
                  }
                  return InChild([&] {
                      const uint64_t grandchild = ProcessGeneration();
                      return grandchild == ours || grandchild == child ? 2 : 0;
                  });
              }),
              0);
    EXPECT_EQ(ProcessGeneration(), ours);
}

// Counts how many were destroyed in this process.
int destroyed = 0;
struct Counted {
    int value = 1;
    ~Counted() { ++destroyed; }
};

TEST(PerProcess, ChildHasItsOwnAndLeavesTheParentsAlone) {
    destroyed = 0;
    {
        PerProcess<Counted> state;
        state.Get().value = 2;
        EXPECT_EQ(&state.Get(), state.GetIfMade());
        EXPECT_EQ(InChild([&] {
                      if (state.GetIfMade() != nullptr) {
                          return 1;
                      }
                      if (state.Get().value != 1 || &state.Get() != state.GetIfMade()) {
                          return 2;
                      }
                      return destroyed == 0 ? 0 : 3;
                  }),
                  0);
        EXPECT_EQ(state.Get().value, 2);
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 1);

    auto owned = std::make_unique<PerProcess<Counted>>();
    EXPECT_EQ(InChild([&] {
                  owned.reset();
                  return destroyed == 1 ? 0 : 1;
              }),
              0);
    EXPECT_EQ(InChild([&] {
                  owned->Get();
                  owned.reset();
                  return destroyed == 2 ? 0 : 1;
              }),
              0);
}

#ifndef FORNAX_THREAD_SANITIZER
TEST(PerProcess, ThreadsOfAChildAgreeOnOne) {
    PerProcess<Counted> state;
    EXPECT_EQ(InChild([&] {
                  std::vector<std::future<Counted*>> asked;
                  for (int i = 0; i < 8; ++i) {
                      asked.push_back(std::async(std::launch::async, [&] { return &state.Get(); }));
                  }
                  std::set<Counted*> seen;
                  for (auto& one : asked) {
                      seen.insert(one.get());
                  }
                  return seen.size() == 1 ? 0 : 1;
              }),
              0);
}
#endif

TEST(ProcessMutex, ChildFindsItFreeAndIsTold) {
    ProcessMutex mutex;
    std::promise<void> held;
    std::promise<void> release;
    std::thread holder([&] {
        const std::lock_guard lock(mutex);
        held.set_value();
        release.get_future().wait();
    });
    held.get_future().wait();
    EXPECT_EQ(InChild([&] {
                  const std::lock_guard lock(mutex);
                  return mutex.TakeAbandoned() && !mutex.TakeAbandoned() ? 0 : 1;
              }),
              0);
    release.set_value();
    holder.join();

    EXPECT_EQ(InChild([&] {
                  const std::lock_guard lock(mutex);
                  return mutex.TakeAbandoned() ? 1 : 0;
              }),
              0);
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(mutex.TakeAbandoned());
}

#ifndef FORNAX_THREAD_SANITIZER
TEST(ProcessMutex, ThreadsOfAChildExcludeEachOther) {
    ProcessMutex mutex;
    EXPECT_EQ(InChild([&] {
                  int count = 0;
                  std::vector<std::thread> threads;
                  for (int i = 0; i < 8; ++i) {
                      threads.emplace_back([&] {
                          for (int j = 0; j < 1'000; ++j) {
                              const std::lock_guard lock(mutex);
                              ++count;
                          }
                      });
                  }
                  for (std::thread& thread : threads) {
                      thread.join();
                  }
                  return count == 8'000 ? 0 : 1;
              }),
              0);
}
#endif

}  // namespace
}  // namespace fornax
