// Levels, sinks, the environment variable, and whole lines from concurrent threads.
#include "base/log.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fornax {
namespace {

std::mutex g_mutex;
std::vector<std::string> g_messages;

void Collect(LogLevel level, std::string_view message) {
    const std::scoped_lock lock(g_mutex);
    g_messages.push_back(fmt::format("{}:{}", static_cast<int>(level), message));
}

class LogTest : public testing::Test {
  protected:
    void SetUp() override {
        g_messages.clear();
        SetLogLevel(LogLevel::kWarning);
    }
    void TearDown() override {
        SetLogSink(nullptr);
        SetLogLevel(LogLevel::kWarning);
    }
};

TEST_F(LogTest, ParsesItsNamesOnly) {
    LogLevel level = LogLevel::kInfo;
    EXPECT_TRUE(ParseLogLevel("off", &level));
    EXPECT_EQ(level, LogLevel::kOff);
    EXPECT_TRUE(ParseLogLevel("debug", &level));
    EXPECT_EQ(level, LogLevel::kDebug);
    for (const char* wrong : {"", "Debug", "warn", "3", "debug "}) {
        EXPECT_FALSE(ParseLogLevel(wrong, &level)) << wrong;
    }
    EXPECT_EQ(level, LogLevel::kDebug);
}

TEST_F(LogTest, OnlyLevelsUpToTheThresholdPass) {
    SetLogSink(Collect);
    LogError("e{}", 1);
    LogWarning("w");
    LogInfo("i");
    LogDebug("d");
    EXPECT_EQ(g_messages, (std::vector<std::string>{"1:e1", "2:w"}));
    SetLogLevel(LogLevel::kOff);
    LogError("nothing");
    EXPECT_EQ(g_messages.size(), 2u);
}

TEST_F(LogTest, ACauseIsWarnedAboutOnce) {
    SetLogSink(Collect);
    SetLogLevel(LogLevel::kError);
    LogWarningOnce("LogTest cause", "nobody listens");
    SetLogLevel(LogLevel::kInfo);
    LogWarningOnce("LogTest cause", "{}", 1);
    LogWarningOnce("LogTest cause", "{}", 2);
    LogWarningOnce("LogTest other cause", "{}", 3);
    LogWarningOnce("LogTest cause", "{}", 4);
    EXPECT_EQ(g_messages, (std::vector<std::string>{"2:1", "3:2", "2:3", "3:4"}));
}

// Each process starts afresh, and what finds no room in the list of causes is not lost.
TEST(LogCausesDeathTest, HaveALimit) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            int first = 0;
            for (int i = 0; i < 1000; ++i) {
                first += IsFirstWarningOf(std::to_string(i)) ? 1 : 0;
            }
            SetLogLevel(LogLevel::kInfo);
            LogWarningOnce("another", "all {} are taken", first);
            ::exit(0);
        },
        testing::ExitedWithCode(0), "^fornax: info: all 256 are taken\n$");
}

TEST_F(LogTest, WritesOneLineToStandardError) {
    testing::internal::CaptureStderr();
    LogWarning("the {} is {}", "limit", 3);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "fornax: warning: the limit is 3\n");
}

// A name out of a file must not be able to command the user's terminal.
TEST_F(LogTest, ControlCharactersAreReplaced) {
    testing::internal::CaptureStderr();
    LogWarning("name '\x1b[2J\x7f'");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "fornax: warning: name '?[2J?'\n");
}

TEST_F(LogTest, LinesOfConcurrentThreadsStayWhole) {
    constexpr int kThreads = 4;
    constexpr int kLines = 200;
    testing::internal::CaptureStderr();
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([t] {
                for (int i = 0; i < kLines; ++i) {
                    LogWarning("{}", std::string(100, static_cast<char>('a' + t)));
                }
            });
        }
    }
    const std::string text = testing::internal::GetCapturedStderr();
    size_t lines = 0;
    for (size_t start = 0; start < text.size(); ++lines) {
        const size_t end = text.find('\n', start);
        ASSERT_NE(end, std::string::npos);
        const std::string body = text.substr(start, end - start).substr(17);
        EXPECT_EQ(body, std::string(100, body[0]));
        start = end + 1;
    }
    EXPECT_EQ(lines, size_t{kThreads} * kLines);
}

// FORNAX_LOG_LEVEL is read once a process, so each value needs a process of its own.
TEST(LogLevelDeathTest, TheEnvironmentSetsTheThreshold) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("FORNAX_LOG_LEVEL", "info", 1);
            LogInfo("seen");
            LogDebug("unseen");
            ::exit(0);
        },
        testing::ExitedWithCode(0), "^fornax: info: seen\n$");
    EXPECT_EXIT(
        {
            ::setenv("FORNAX_LOG_LEVEL", "loud", 1);
            LogInfo("unseen");
            ::exit(0);
        },
        testing::ExitedWithCode(0), "^fornax: warning: FORNAX_LOG_LEVEL is 'loud', which is not");
}

}  // namespace
}  // namespace fornax
