// Compares a random module's native code with the interpreter: the kernel IR as the reader made it
// is run by the interpreter, and again as code, after all passes. So the passes, the analyses and
// the emitter are judged; the reader is where other drivers are (tests/differential).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <llvm/Target/TargetMachine.h>

#include "compiler/kernel/codegen/jit_kernel.h"
#include "compiler/kernel/fuzz/random_module.h"

namespace fornax::kernel::fuzz {

struct Case {
    uint64_t seed = 0;
    RandomModuleOptions options;
    size_t target = 0;
    uint32_t lanes = 0;  // 0: the emitter chooses
    CodeTier tier = CodeTier::kOptimized;
};

// What is tried for a seed: every kind of option in turn.
Case CaseOf(uint64_t seed, size_t targets);

class Judge {
  public:
    // The host's CPU and, as far as it can run them, x86-64-v4, v3 and v2 (without AVX).
    Judge();
    ~Judge();

    size_t targets() const { return targets_.size(); }
    // "" if all is well, else what differs.
    // `sink` takes the stages' texts, as FORNAX_DUMP has them.
    std::string Try(const Case& which, const StageSink& sink = {});

  private:
    struct Target;
    std::vector<std::unique_ptr<Target>> targets_;
};

// Leaves out as many statements as possible while `fails` holds of the case: halves first, then
// ever smaller parts, and those that are inside of a statement that is left out no more.
template <typename Fails>
Case Reduce(Case which, Fails&& fails) {
    auto left = [&] {
        std::vector<uint64_t> all = MakeRandomModule(which.seed, which.options).statements;
        std::erase_if(all, [&](uint64_t one) { return which.options.dropped.contains(one); });
        return all;
    };
    for (size_t size = left().size(); size > 0; size /= 2) {
        for (size_t at = 0;;) {
            const std::vector<uint64_t> statements = left();
            if (at >= statements.size()) {
                break;
            }
            Case smaller = which;
            const size_t end = std::min(at + size, statements.size());
            for (size_t i = at; i < end; ++i) {
                smaller.options.dropped.insert(statements[i]);
            }
            if (fails(smaller)) {
                which = smaller;  // what comes next has moved here
            } else {
                at = end;
            }
        }
    }
    return which;
}

}  // namespace fornax::kernel::fuzz
