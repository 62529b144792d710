// Regular expressions by Thompson's construction.
#include "compiler/graph/host/text_pattern.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace fornax::graph::host {
namespace {

constexpr size_t kMaxStates = 20'000;
constexpr int kMaxDepth = 200;
constexpr int64_t kMaxRepeats = 1000;

using Bytes = std::bitset<256>;

Bytes RangeOf(uint8_t low, uint8_t high) {
    Bytes bytes;
    for (size_t c = low; c <= high; ++c) {
        bytes.set(c);
    }
    return bytes;
}

}  // namespace

class PatternParser {
  public:
    PatternParser(std::string_view text, TextPattern& pattern) : text_(text), pattern_(pattern) {}

    // Null, or why it failed: a clause.
    std::optional<std::string> Run() {
        const Part whole = Alternatives(0);
        if (!failure_ && at_ != text_.size()) {
            Fail("has a \")\" too many");
        }
        pattern_.first_ = whole.first;
        pattern_.last_ = whole.last;
        return failure_;
    }

  private:
    using State = TextPattern::State;
    // A piece of the automaton, from `first` to `last`, which goes nowhere yet.
    struct Part {
        size_t first, last;
    };

    void Fail(std::string reason) {
        if (!failure_) {
            failure_ = std::move(reason);
        }
        at_ = text_.size();
    }

    size_t Add(State state = {}) {
        if (pattern_.states_.size() >= kMaxStates) {
            Fail(fmt::format("takes more than {} states", kMaxStates));
            return 0;
        }
        pattern_.states_.push_back(state);
        return pattern_.states_.size() - 1;
    }

    void Link(size_t from, size_t to) {
        State& state = pattern_.states_[from];
        (state.next == TextPattern::kNone ? state.next : state.other) = to;
    }

    bool More() const { return at_ < text_.size(); }

    Part Alternatives(int depth) {
        if (depth > kMaxDepth) {
            Fail(fmt::format("is nested deeper than {}", kMaxDepth));
        }
        Part all = Sequence(depth);
        while (More() && text_[at_] == '|') {
            ++at_;
            const Part next = Sequence(depth);
            const size_t fork = Add(), join = Add();
            Link(fork, all.first);
            Link(fork, next.first);
            Link(all.last, join);
            Link(next.last, join);
            all = {fork, join};
        }
        return all;
    }

    Part Sequence(int depth) {
        const size_t empty = Add();
        Part all{empty, empty};
        while (More() && text_[at_] != '|' && text_[at_] != ')') {
            const Part next = Repeated(depth);
            Link(all.last, next.first);
            all.last = next.last;
        }
        return all;
    }

    Part Repeated(int depth) {
        const size_t begin = at_;
        Part part = Atom(depth);
        while (More()) {
            int64_t least = 0, most = -1;  // -1: without end
            const size_t end_of_atom = at_;
            const char c = text_[at_];
            if (c == '?') {
                most = 1;
            } else if (c == '+') {
                least = 1;
            } else if (c == '{') {
                if (!ReadCounts(least, most)) {
                    break;
                }
            } else if (c != '*') {
                break;
            }
            ++at_;
            if (More() && text_[at_] == '?') {
                ++at_;  // lazy or not makes no difference to whether it matches
            }
            const size_t behind = at_;
            part = Times(part, begin, end_of_atom, least, most, depth);
            if (failure_) {
                return part;
            }
            at_ = behind;
            if (More() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?')) {
                Fail("repeats a repetition");
            }
        }
        return part;
    }

    // {n}, {n,} or {n,m}; leaves at_ at the closing brace.
    bool ReadCounts(int64_t& least, int64_t& most) {
        size_t at = at_ + 1;
        const auto number = [&]() -> std::optional<int64_t> {
            int64_t value = 0;
            const size_t from = at;
            while (at < text_.size() && text_[at] >= '0' && text_[at] <= '9' && value <= kMaxRepeats) {
                value = value * 10 + (text_[at++] - '0');
            }
            return at == from ? std::nullopt : std::optional(value);
        };
        const std::optional<int64_t> low = number();
        if (!low) {
            return false;
        }
        std::optional<int64_t> high = low;
        if (at < text_.size() && text_[at] == ',') {
            ++at;
            high = number();
        }
        if (at >= text_.size() || text_[at] != '}') {
            return false;
        }
        if (*low > kMaxRepeats || high.value_or(0) > kMaxRepeats || (high && *high < *low)) {
            Fail(fmt::format("repeats more than {} times, or less than 0", kMaxRepeats));
            return false;
        }
        least = *low;
        most = high ? *high : -1;
        at_ = at;
        return true;
    }

    // A fresh copy of the atom between two places, made by reading it again.
    Part Copy(size_t begin, size_t end, int depth) {
        const std::string_view whole = text_;
        text_ = whole.substr(0, end);
        at_ = begin;
        const Part part = Atom(depth + 1);
        text_ = whole;
        return part;
    }

    Part Times(Part part, size_t begin, size_t end, int64_t least, int64_t most, int depth) {
        const size_t start = Add();
        Part all{start, start};
        const auto append = [&](Part next) {
            Link(all.last, next.first);
            all.last = next.last;
        };
        bool used = false;
        const auto copy = [&] {
            if (!used) {
                used = true;
                return part;
            }
            return Copy(begin, end, depth);
        };
        for (int64_t i = 0; i < least && !failure_; ++i) {
            append(copy());
        }
        if (most < 0) {
            const Part again = copy();
            const size_t fork = Add(), join = Add();
            Link(fork, again.first);
            Link(fork, join);
            Link(again.last, fork);
            append({fork, join});
            return all;
        }
        for (int64_t i = least; i < most && !failure_; ++i) {
            const Part maybe = copy();
            const size_t fork = Add(), join = Add();
            Link(fork, maybe.first);
            Link(fork, join);
            Link(maybe.last, join);
            append({fork, join});
        }
        return all;
    }

    Part Taking(const Bytes& bytes) {
        State state;
        state.takes = true;
        state.bytes = bytes;
        const size_t first = Add(state), last = Add();
        Link(first, last);
        return {first, last};
    }

    Part Atom(int depth) {
        const char c = text_[at_++];
        switch (c) {
            case '(': {
                if (text_.substr(at_, 2) == "?:") {
                    at_ += 2;
                } else if (More() && text_[at_] == '?') {
                    Fail("has a group of a kind that is not supported");
                }
                const Part inner = Alternatives(depth + 1);
                if (!More() || text_[at_] != ')') {
                    Fail("lacks a \")\"");
                    return inner;
                }
                ++at_;
                return inner;
            }
            case '[':
                return Taking(Class());
            case '.': {
                Bytes all;
                all.set();
                all.reset('\n');
                return Taking(all);
            }
            case '\\':
                return Taking(Escape());
            case '*':
            case '+':
            case '?':
                Fail("repeats nothing");
                return Taking({});
            case '^':
            case '$':
                // The whole text matches anyway.
                if ((c == '^') == (at_ == 1) && (c == '^' || at_ == text_.size())) {
                    const size_t empty = Add();
                    return {empty, empty};
                }
                Fail("has an anchor inside");
                return Taking({});
            default:
                return Taking(RangeOf(static_cast<uint8_t>(c), static_cast<uint8_t>(c)));
        }
    }

    Bytes Escape() {
        if (!More()) {
            Fail("ends with a \"\\\"");
            return {};
        }
        const char c = text_[at_++];
        const Bytes digits = RangeOf('0', '9');
        const Bytes words = digits | RangeOf('a', 'z') | RangeOf('A', 'Z') | RangeOf('_', '_');
        const Bytes spaces = RangeOf('\t', '\n') | RangeOf('\f', '\r') | RangeOf(' ', ' ');
        switch (c) {
            case 'd':
                return digits;
            case 'D':
                return ~digits;
            case 'w':
                return words;
            case 'W':
                return ~words;
            case 's':
                return spaces;
            case 'S':
                return ~spaces;
            case 'n':
                return RangeOf('\n', '\n');
            case 't':
                return RangeOf('\t', '\t');
            case 'r':
                return RangeOf('\r', '\r');
            default:
                break;
        }
        if (words.test(static_cast<uint8_t>(c))) {
            Fail(fmt::format("has the escape \\{}", c));
        }
        return RangeOf(static_cast<uint8_t>(c), static_cast<uint8_t>(c));
    }

    Bytes Class() {
        Bytes bytes;
        const bool negated = More() && text_[at_] == '^';
        at_ += negated ? 1 : 0;
        bool first = true;
        while (More() && (first || text_[at_] != ']')) {
            first = false;
            if (text_.substr(at_, 2) == "[:") {
                Fail("has a named class");
                return bytes;
            }
            const char c = text_[at_++];
            if (c == '\\') {
                bytes |= Escape();
                continue;
            }
            const uint8_t low = static_cast<uint8_t>(c);
            uint8_t high = low;
            if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
                high = static_cast<uint8_t>(text_[at_ + 1]);
                at_ += 2;
            }
            if (high < low) {
                Fail("has a range that ends before it begins");
                return bytes;
            }
            bytes |= RangeOf(low, high);
        }
        if (!More()) {
            Fail("lacks a \"]\"");
            return bytes;
        }
        ++at_;
        return negated ? ~bytes : bytes;
    }

    std::string_view text_;
    TextPattern& pattern_;
    size_t at_ = 0;
    std::optional<std::string> failure_;
};

Result<TextPattern> TextPattern::Parse(std::string_view pattern) {
    TextPattern result;
    const std::optional<std::string> failure = PatternParser(pattern, result).Run();
    if (failure) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("the pattern \"{}\" {}", pattern, *failure)};
    }
    return result;
}

bool TextPattern::Matches(std::string_view text) const {
    std::vector<size_t> current, next, open;
    std::vector<bool> seen(states_.size(), false);
    const auto add = [&](std::vector<size_t>& set, size_t state) {
        open = {state};
        while (!open.empty()) {
            const size_t at = open.back();
            open.pop_back();
            if (at == kNone || seen[at]) {
                continue;
            }
            seen[at] = true;
            set.push_back(at);
            if (!states_[at].takes) {
                open.push_back(states_[at].next);
                open.push_back(states_[at].other);
            }
        }
    };
    add(current, first_);
    for (const char c : text) {
        next.clear();
        std::fill(seen.begin(), seen.end(), false);
        for (const size_t at : current) {
            if (states_[at].takes && states_[at].bytes.test(static_cast<uint8_t>(c))) {
                add(next, states_[at].next);
            }
        }
        std::swap(current, next);
    }
    return std::ranges::find(current, last_) != current.end();
}

}  // namespace fornax::graph::host
