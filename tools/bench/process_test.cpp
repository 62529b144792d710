// Children that end well, badly, violently or not at all.
#include "tools/bench/process.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::bench {
namespace {

using ::testing::HasSubstr;

class ProcessTest : public ::testing::Test {
  public:
    ~ProcessTest() override { std::filesystem::remove_all(directory_); }

  protected:
    ProcessTest() {
        std::string name = ::testing::TempDir() + "fornax_process_XXXXXX";
        directory_ = mkdtemp(name.data());
        options_.log = directory_ / "log";
    }

    Result<int> RunShell(const std::string& script) {
        options_.arguments = {"/bin/sh", "-c", script};
        return RunProcess(options_);
    }
    std::string Log() const {
        std::stringstream text;
        text << std::ifstream(options_.log).rdbuf();
        return text.str();
    }

    std::filesystem::path directory_;
    ProcessOptions options_;
};

TEST_F(ProcessTest, ReturnsTheExitCodeAndLogsBothStreams) {
    const auto code = RunShell("echo out; echo err >&2; exit 3");
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_EQ(*code, 3);
    EXPECT_EQ(Log(), "out\nerr\n");
}

TEST_F(ProcessTest, EnvironmentIsSetAndUnset) {
    setenv("FORNAX_PROCESS_TEST_KEPT", "kept", 1);
    setenv("FORNAX_PROCESS_TEST_GONE", "here", 1);
    options_.environment = {{"FORNAX_PROCESS_TEST_NEW", "new"}, {"FORNAX_PROCESS_TEST_GONE", ""}};
    const auto code = RunShell(
        "echo $FORNAX_PROCESS_TEST_KEPT $FORNAX_PROCESS_TEST_NEW "
        "${FORNAX_PROCESS_TEST_GONE-unset}");
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_EQ(Log(), "kept new unset\n");
}

TEST_F(ProcessTest, CrashNamesTheSignal) {
    const auto code = RunShell("kill -SEGV $$");
    ASSERT_FALSE(code.ok());
    EXPECT_THAT(code.error().message, HasSubstr("signal 11"));
}

TEST_F(ProcessTest, HangIsKilledWhenTimeIsUp) {
    options_.timeout_seconds = 0.05;
    const auto code = RunShell("exec sleep 60");
    ASSERT_FALSE(code.ok());
    EXPECT_EQ(code.error().code, ErrorCode::kTimeout);
}

TEST_F(ProcessTest, MissingProgramIsAnError) {
    options_.arguments = {(directory_ / "missing").string()};
    const auto code = RunProcess(options_);
    ASSERT_FALSE(code.ok());
    EXPECT_THAT(code.error().message, HasSubstr("missing cannot be started"));
}

}  // namespace
}  // namespace fornax::bench
