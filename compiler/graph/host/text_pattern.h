// Regular expressions in time that grows with the text: RE2's common subset as a nondeterministic
// automaton.
//
// Understands characters, ".", classes [a-z], [^..], \d \w \s and their opposites, groups (also
// (?:..)), "|", the repetitions * + ? {n} {n,} {n,m}, and ^ $ \b \B. The whole text has to match.
// Works on bytes.
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
    // without one; to `next` alone, and only at such places, if it is of another kind.
    enum class Kind : uint8_t { kGoes, kTakes, kBegin, kEnd, kBoundary, kNoBoundary };
    struct State {
        Kind kind = Kind::kGoes;
        std::bitset<256> bytes;
        size_t next = kNone;
        size_t other = kNone;
    };
    // Whether a state of this kind lets through at a place of the text.
    static bool Passes(Kind kind, std::string_view text, size_t at);

    std::vector<State> states_;
    size_t first_ = kNone;
    size_t last_ = kNone;
};

}  // namespace fornax::graph::host
