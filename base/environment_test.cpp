// Texts, flags and numbers, and none of them where the process is privileged.
#include "base/environment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "base/test_directory.h"

namespace fornax {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kName = "FORNAX_TEST_VARIABLE";

std::vector<std::string> g_warnings;

class Environment : public testing::Test {
  protected:
    void SetUp() override {
        g_warnings.clear();
        SetLogSink([](LogLevel, std::string_view message) { g_warnings.emplace_back(message); });
        ::unsetenv(kName);
    }
    void TearDown() override {
        SetLogSink(nullptr);
        ::unsetenv(kName);
    }
    static void Set(const char* value) { ::setenv(kName, value, 1); }
};

TEST_F(Environment, AnEmptyTextIsNone) {
    EXPECT_EQ(EnvironmentText(kName), std::nullopt);
    Set("");
    EXPECT_EQ(EnvironmentText(kName), std::nullopt);
    Set(" ");
    EXPECT_EQ(EnvironmentText(kName), " ");
    EXPECT_THAT(g_warnings, IsEmpty());
}

TEST_F(Environment, AFlagIsAnythingButZero) {
    EXPECT_FALSE(EnvironmentFlag(kName));
    for (const char* off : {"", "0"}) {
        Set(off);
        EXPECT_FALSE(EnvironmentFlag(kName)) << off;
    }
    for (const char* on : {"1", "2", "00", "no"}) {
        Set(on);
        EXPECT_TRUE(EnvironmentFlag(kName)) << on;
    }
}

TEST_F(Environment, ANumberIsWithinItsLimits) {
    constexpr NumberLimits kLimits = {2, 40};
    EXPECT_EQ(*EnvironmentNumber(kName, kLimits, 7), 7u);
    EXPECT_EQ(*EnvironmentNumber(kName, kLimits, 0), 0u) << "what is not set is not checked";
    for (const char* good : {"2", "7", "40", "007"}) {
        Set(good);
        EXPECT_EQ(*EnvironmentNumber(kName, kLimits, 9), std::strtoull(good, nullptr, 10)) << good;
    }
    for (const char* bad : {"1", "41", "0", "-3", "+3", " 3", "3 ", "3x", "x", "0x10", "1e1", "3.0",
                            "18446744073709551616", "99999999999999999999"}) {
        Set(bad);
        const Result<uint64_t> number = EnvironmentNumber(kName, kLimits, 9);
        ASSERT_FALSE(number.ok()) << bad;
        EXPECT_EQ(number.error().code, ErrorCode::kInvalidArgument);
        EXPECT_EQ(number.error().message,
                  fmt::format("{} is '{}', which is not a number from 2 to 40.", kName, bad));
    }
    Set("18446744073709551615");
    EXPECT_EQ(*EnvironmentNumber(kName, {}, 9), UINT64_MAX);
}

TEST_F(Environment, APrivilegedProcessReadsNothing) {
    Set("5");
    {
        const PrivilegeForTesting privilege(true);
        EXPECT_TRUE(IsPrivilegedProcess());
        EXPECT_EQ(EnvironmentText(kName), std::nullopt);
        EXPECT_FALSE(EnvironmentFlag(kName));
        EXPECT_EQ(*EnvironmentNumber(kName, {1, 4}, 3), 3u);
        EXPECT_EQ(EnvironmentText("PATH"), std::nullopt);
        EXPECT_THAT(g_warnings,
                    ElementsAre("FORNAX_TEST_VARIABLE and all other variables of Fornax are "
                                "ignored, because this process has privileges that its user "
                                "lacks."));
    }
    const PrivilegeForTesting privilege(false);
    EXPECT_EQ(EnvironmentText(kName), "5");
}

TEST_F(Environment, VariablesThatAreNotOursAreIgnoredSilently) {
    const PrivilegeForTesting privilege(true);
    EXPECT_EQ(EnvironmentText("PATH"), std::nullopt);
    EXPECT_EQ(EnvironmentText(kName), std::nullopt) << "not set";
    EXPECT_THAT(g_warnings, IsEmpty());
}

// A real one: a program with the set-group-ID bit and another group. The kernel marks it, even for
// root.
class PrivilegedProgram : public testing::Test {
  protected:
    // Runs a program with variables that would count, and gives all that it says.
    static std::string OutputOf(const std::string& program) {
        std::array<int, 2> ends;
        if (::pipe(ends.data()) != 0) {
            return "no pipe";
        }
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::dup2(ends[1], STDERR_FILENO);
            ::close(ends[0]);
            ::close(ends[1]);
            for (const char* variable :
                 {"FORNAX_LOG_LEVEL=debug", "FORNAX_BACKEND=null", "FORNAX_THREADS=1000",
                  "FORNAX_COUNTERS=1", "HOME=/proc/none"}) {
                ::putenv(const_cast<char*>(variable));
            }
            ::execl(program.c_str(), program.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        std::string output;
        std::array<char, 4096> buffer;
        for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
            output.append(buffer.data(), static_cast<size_t>(got));
        }
        ::close(ends[0]);
        int status = -1;
        ::waitpid(pid, &status, 0);
        EXPECT_EQ(status, 0) << output;
        return output;
    }

    // A group that this process is not in as its own and may give a file; none for most users.
    static std::optional<gid_t> OtherGroup() {
        if (::geteuid() == 0) {
            return 12345;
        }
        std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
        if (::getgroups(static_cast<int>(groups.size()), groups.data()) > 0) {
            for (const gid_t group : groups) {
                if (group != ::getegid()) {
                    return group;
                }
            }
        }
        return std::nullopt;
    }

    TestDirectory directory_;
};

TEST_F(PrivilegedProgram, ReadsNothing) {
    const std::string program = directory_ / "probe";
    std::filesystem::copy_file(FORNAX_ENVIRONMENT_PROBE, program);
    const std::string plain = OutputOf(program);
    EXPECT_THAT(plain,
                HasSubstr("secure 0\nbackend null\nhome /proc/none\nthreads 0\ncounters true\n"));

    const std::optional<gid_t> group = OtherGroup();
    if (!group || ::chown(program.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
        ::chmod(program.c_str(), 02755) != 0) {
        GTEST_SKIP() << "only root, or a user of several groups, can make such a program";
    }
    const std::string privileged = OutputOf(program);
    if (privileged.find("secure 0\n") != std::string::npos) {
        GTEST_SKIP() << "such programs get no privileges here (nosuid, no_new_privs)";
    }
    EXPECT_THAT(privileged,
                HasSubstr("secure 1\nbackend nothing\nhome nothing\nthreads 2\ncounters false\n"));
    // Once, and at the default level.
    const std::string warning = "all other variables of Fornax are ignored";
    EXPECT_THAT(privileged, HasSubstr("fornax: warning: "));
    EXPECT_THAT(privileged, HasSubstr(warning));
    EXPECT_EQ(privileged.find(warning), privileged.rfind(warning)) << privileged;
    EXPECT_THAT(privileged, Not(HasSubstr("info:")));
}

}  // namespace
}  // namespace fornax
