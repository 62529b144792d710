// Programs that destroy too little or too early, or just return from main. Outcome: whatever the
// device is doing, the call returns in bounded time, nothing crashes, and instances that come after
// work.
#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "base/test_directory.h"
#include "tests/robust/process.h"
#include "tests/robust/scenario.h"

namespace fornax::test {
namespace {

class TearDownTest : public testing::TestWithParam<std::string_view> {};

TEST_P(TearDownTest, EndsWell) {
    const std::string scenario(GetParam());
#ifdef FORNAX_THREAD_SANITIZER
    if (scenario.ends_with("-endless") && !scenario.starts_with("exit-")) {
        GTEST_SKIP() << "ThreadSanitizer keeps signals back, so no kernel is left in its middle.";
    }
#endif
    const TestDirectory cache;
    ChildOptions options{.scenario = scenario, .environment = {{"FORNAX_CACHE_DIR", cache.path()}}};
#ifdef FORNAX_ADDRESS_SANITIZER
    const char* present = getenv("ASAN_OPTIONS");
    options.environment.emplace_back("ASAN_OPTIONS",
                                     std::string(present ? present : "") + ":detect_leaks=0");
#endif
    // Unloading the library under idle threads crashed two runs of three.
    const int runs = scenario == "leak-idle" ? 8 : 2;
    for (int run = 0; run < runs; ++run) {
        const ChildResult result = Child(options).Wait();
        ASSERT_EQ(result.exit_code, 0) << "run " << run << ": " << result.output;
    }
}

INSTANTIATE_TEST_SUITE_P(Scenarios,
                         TearDownTest,
                         testing::ValuesIn(kScenarios),
                         [](const auto& info) {
                             std::string name(info.param);
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace fornax::test
