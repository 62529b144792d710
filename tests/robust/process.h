// Child processes for the tests of robustness: this program once more, as a client that runs some
// kernels and says whether their results were right (main.cpp).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace fornax::test {

struct ChildOptions {
    std::string scenario;  // of scenario.h; else a client that tidies up
    uint32_t kernels = 2;  // how many different ones the client compiles and runs
    uint32_t rounds = 1;   // how often, each time with a new instance
    std::vector<std::pair<std::string, std::string>> environment;
    // Runs in the child before the client's program begins; false ends it with kChildNotPrepared.
    std::function<bool()> prepare;
};

inline constexpr int kChildNotPrepared = 77;

struct ChildResult {
    int exit_code = -1;  // negative: the signal that ended it
    std::string output;  // standard output and standard error
};

// Starts a client; Wait ends it.
class Child {
  public:
    explicit Child(const ChildOptions& options);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ChildResult Wait();

  private:
    pid_t pid_ = -1;
    int output_ = -1;
};

// What main() does when it is a child.
int ClientMain(int argc, char** argv);

}  // namespace fornax::test
