// A few random modules on every run; fornax_fuzz_modules tries many (docs/testing.md).
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/kernel/fuzz/judge.h"

namespace fornax::kernel::fuzz {
namespace {

// More seeds take more time and find more: FORNAX_FUZZ_SEEDS=from:to.
std::pair<uint64_t, uint64_t> Seeds() {
    const char* text = std::getenv("FORNAX_FUZZ_SEEDS");
    if (!text) {
        return {0, 150};
    }
    char* end = nullptr;
    const uint64_t from = std::strtoull(text, &end, 10);
    return {from, *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1};
}

void ExpectAgreement(Judge& judge, uint64_t seed) {
    const std::string found = judge.Try(CaseOf(seed, judge.targets()));
    EXPECT_EQ(found, "") << "seed " << seed << "; fornax_fuzz_modules --reduce makes it small";
}

TEST(RandomModules, NativeCodeGivesWhatTheInterpreterGives) {
    Judge judge;
    auto [from, to] = Seeds();
    for (uint64_t seed = from; seed < to; ++seed) {
        ExpectAgreement(judge, seed);
    }
}

TEST(RandomModules, OneSeedGivesOneModule) {
    RandomModuleOptions options;
    EXPECT_EQ(MakeRandomModule(7, options).words, MakeRandomModule(7, options).words);
    EXPECT_NE(MakeRandomModule(7, options).words, MakeRandomModule(8, options).words);
}

// The reducer is right to trust a smaller module only if it is one that could have been made.
TEST(RandomModules, EveryStatementCanBeLeftOut) {
    Judge judge;
    for (uint64_t seed = 20; seed < 22; ++seed) {
        Case which = CaseOf(seed, judge.targets());
        for (uint64_t statement : MakeRandomModule(seed, which.options).statements) {
            Case smaller = which;
            smaller.options.dropped = {statement};
            EXPECT_EQ(judge.Try(smaller), "") << "seed " << seed << " without " << statement;
        }
    }
}

TEST(RandomModules, ReductionKeepsWhatFails) {
    const Case which = CaseOf(3, 1);
    const std::vector<uint64_t> all = MakeRandomModule(3, which.options).statements;
    ASSERT_GT(all.size(), 5u);
    const uint64_t guilty = all[all.size() / 2];
    auto fails = [&](const Case& candidate) {
        std::vector<uint64_t> made = MakeRandomModule(candidate.seed, candidate.options).statements;
        return std::ranges::count(made, guilty) != 0 && !candidate.options.dropped.contains(guilty);
    };
    const Case reduced = Reduce(which, fails);
    EXPECT_TRUE(fails(reduced));
    std::vector<uint64_t> left = MakeRandomModule(3, reduced.options).statements;
    std::erase_if(left, [&](uint64_t one) { return reduced.options.dropped.contains(one); });
    EXPECT_LE(left.size(), 6u);  // itself, and what it is inside of
}

}  // namespace
}  // namespace fornax::kernel::fuzz
