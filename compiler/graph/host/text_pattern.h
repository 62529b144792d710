// Regular expressions in time that grows with the text: RE2's common subset as a nondeterministic
// automaton.
//
// Understands characters, ".", classes [a-z], [^..], \d \w \s and their opposites, groups (also
// (?:..)), "|", and the repetitions * + ? {n} {n,} {n,m}. The whole text has to match. Works on
// bytes.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fornax::graph::host {

class TextPattern {
  public:
    // Fails for what is not understood, and patterns that are too long.
    static Result<TextPattern> Parse(std::string_view pattern);
    bool Matches(std::string_view text) const;

  private:
    friend class PatternParser;
    static constexpr size_t kNone = SIZE_MAX;
    // A state either takes a byte of its set and goes to `next`, or goes to `next` and `other`
    // without one.
    struct State {
        bool takes = false;
        std::bitset<256> bytes;
        size_t next = kNone;
        size_t other = kNone;
    };
    std::vector<State> states_;
    size_t first_ = kNone;
    size_t last_ = kNone;
};

}  // namespace fornax::graph::host
