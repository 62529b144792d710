// What FORNAX_COUNTERS prints; queries are tested through the loader (tests/loader).
#include "driver/performance_query.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "driver/test_commands.h"
#include "hal/matrix_unit.h"

namespace fornax::driver_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class CounterReportTest : public TestCommands {
  protected:
    // What a device prints that filled `bytes`.
    std::string Report(VkDeviceSize bytes) {
        SetUpWith({});
        const TestBuffer buffer = MakeBuffer(bytes);
        Run([&](VkCommandBuffer commands) {
            vkCmdFillBuffer(commands, buffer.buffer, 0, bytes, 7);
        });
        testing::internal::CaptureStderr();
        TestCommands::TearDown();
        return testing::internal::GetCapturedStderr();
    }
    void SetUp() override {}
};

TEST_F(CounterReportTest, IsPrintedWhenAskedFor) {
    EXPECT_EQ(Report(64), "");
    setenv("FORNAX_COUNTERS", "0", 1);
    EXPECT_EQ(Report(64), "");
    setenv("FORNAX_COUNTERS", "1", 1);
    const std::string text = Report(1024);
    unsetenv("FORNAX_COUNTERS");
    EXPECT_THAT(text, HasSubstr("Bytes filled"));
    EXPECT_THAT(text, HasSubstr(" 1024\n"));
    EXPECT_THAT(text, Not(HasSubstr("Dispatches")));
}

// A program that leaves its device to the end of the process.
TEST_F(CounterReportTest, IsPrintedAtTheEnd) {
    const auto leave = [this] {
        setenv("FORNAX_COUNTERS", "1", 1);
        SetUpWith({});
        const TestBuffer buffer = MakeBuffer(2048);
        Run([&](VkCommandBuffer commands) {
            vkCmdFillBuffer(commands, buffer.buffer, 0, 2048, 7);
        });
        std::exit(HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "Bytes filled +2048\n");
}

TEST(FormatCounters, LeavesOutWhatIsZero) {
    EXPECT_EQ(driver::FormatCounters({}), "");
    hal::Counters counters;
    counters.multiply_adds_bf16 = 262'144;
    EXPECT_EQ(driver::FormatCounters(counters),
              "fornax: Matrix multiply-adds, bf16               262144\n");
}

}  // namespace
}  // namespace fornax::driver_test
