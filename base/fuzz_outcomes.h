// For fuzz targets: a run in which no input was accepted tests only the first check, so it fails.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fornax {

// Counts a fuzz target's inputs and those that the code behind it accepted. Prints both when the
// process ends, and ends it with an error when none was accepted. One a process; libFuzzer
// calls its target from one thread.
class FuzzOutcomes {
  public:
    static void Count(bool accepted) {
        static const bool registered = std::atexit(&FuzzOutcomes::Report) == 0;
        (void)registered;
        ++inputs_;
        accepted_ += accepted ? 1 : 0;
    }

  private:
    // Fewer inputs than this, as in replaying a finding, prove nothing.
    static constexpr uint64_t kEnoughInputs = 1000;

    static void Report() {
        std::fprintf(stderr, "fuzzing: %llu inputs, of which %llu were accepted\n",
                     static_cast<unsigned long long>(inputs_),
                     static_cast<unsigned long long>(accepted_));
        if (inputs_ >= kEnoughInputs && accepted_ == 0) {
            std::fprintf(stderr,
                         "fuzzing: no input was accepted; the target does not reach what it is "
                         "for\n");
            std::_Exit(EXIT_FAILURE);
        }
    }

    inline static uint64_t inputs_ = 0;
    inline static uint64_t accepted_ = 0;
};

}  // namespace fornax
