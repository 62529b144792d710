// Where the cache goes, by each combination of the environment.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "base/file.h"
#include "base/log.h"
#include "base/test_directory.h"

namespace fornax {
namespace {

std::vector<std::string> g_warnings;

// Sets the four variables that decide, and restores them.
class CacheDirectoryTest : public testing::Test {
  protected:
    void SetUp() override {
        g_warnings.clear();
        SetLogSink([](LogLevel, std::string_view message) { g_warnings.emplace_back(message); });
        for (const char* name : {"FORNAX_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"}) {
            const char* value = std::getenv(name);
            saved_[name] = value ? std::optional<std::string>(value) : std::nullopt;
            ::unsetenv(name);
        }
        Set("TMPDIR", directory_.path());
    }
    void TearDown() override {
        for (const auto& [name, value] : saved_) {
            if (value) {
                Set(name, *value);
            } else {
                ::unsetenv(name.c_str());
            }
        }
        SetLogSink(nullptr);
    }

    static void Set(const std::string& name, const std::string& value) {
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    static mode_t ModeOf(const std::string& path) {
        struct stat info = {};
        EXPECT_EQ(::stat(path.c_str(), &info), 0);
        return info.st_mode & 07777;
    }
    std::string TemporaryChoice() const {
        return directory_ / ("fornax-" + std::to_string(::geteuid()));
    }

    TestDirectory directory_;
    std::map<std::string, std::optional<std::string>> saved_;
};

TEST_F(CacheDirectoryTest, FollowsTheOrder) {
    EXPECT_EQ(*CacheDirectory(), TemporaryChoice());
    Set("HOME", directory_ / "home");
    EXPECT_EQ(*CacheDirectory(), directory_ / "home/.cache/fornax");
    Set("XDG_CACHE_HOME", directory_ / "xdg");
    EXPECT_EQ(*CacheDirectory(), directory_ / "xdg/fornax");
    Set("FORNAX_CACHE_DIR", directory_ / "own");
    EXPECT_EQ(*CacheDirectory(), directory_ / "own");
    for (const std::string& path :
         {TemporaryChoice(), directory_ / "xdg/fornax", directory_ / "own"}) {
        EXPECT_EQ(ModeOf(path), mode_t{0700}) << path;
    }
}

TEST_F(CacheDirectoryTest, RelativeAndEmptyValuesAreIgnored) {
    Set("FORNAX_CACHE_DIR", "");
    Set("XDG_CACHE_HOME", "relative");
    Set("HOME", "relative");
    EXPECT_EQ(*CacheDirectory(), TemporaryChoice());
}

TEST_F(CacheDirectoryTest, FallsBackFromAHomeThatCannotBeUsed) {
    ASSERT_TRUE(WriteFileAtomically(directory_ / "file", std::string("text"), 0600).ok());
    Set("HOME", directory_ / "file");
    EXPECT_EQ(*CacheDirectory(), TemporaryChoice());
}

TEST_F(CacheDirectoryTest, DoesNotFallBackFromAChosenDirectory) {
    ASSERT_TRUE(WriteFileAtomically(directory_ / "file", std::string("text"), 0600).ok());
    Set("FORNAX_CACHE_DIR", directory_ / "file");
    Set("HOME", directory_ / "home");
    EXPECT_FALSE(CacheDirectory().ok());

    DiskCache cache = DiskCache::OpenDefault();
    DiskCache::OpenDefault();
    EXPECT_EQ(g_warnings, std::vector<std::string>{
                              "There is no cache directory, so nothing compiled is kept: " +
                              (directory_ / "file") + " is not a directory."});
    const CacheKind kind = {.name = "plan", .extension = "fxp", .version = 1, .executable = false};
    EXPECT_EQ(cache.directory(), "");
    EXPECT_FALSE(cache.Put(kind, {}, {}));
    EXPECT_EQ(cache.Get(kind, {}), std::nullopt);
    EXPECT_TRUE(cache.List().empty());
}

// In a directory that everyone may write to, someone else may have made ours first.
TEST_F(CacheDirectoryTest, ATemporaryDirectoryThatOthersCanReachIsRefused) {
    ASSERT_EQ(::mkdir(TemporaryChoice().c_str(), 0700), 0);
    EXPECT_TRUE(CacheDirectory().ok());
    ASSERT_EQ(::chmod(TemporaryChoice().c_str(), 0770), 0);
    EXPECT_FALSE(CacheDirectory().ok());
    ASSERT_EQ(::rmdir(TemporaryChoice().c_str()), 0);
    ASSERT_EQ(::mkdir((directory_ / "target").c_str(), 0700), 0);
    ASSERT_EQ(::symlink((directory_ / "target").c_str(), TemporaryChoice().c_str()), 0);
    EXPECT_FALSE(CacheDirectory().ok());
}

TEST_F(CacheDirectoryTest, ATemporaryDirectoryOfAnotherUserIsRefused) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can give a directory away";
    }
    ASSERT_EQ(::mkdir(TemporaryChoice().c_str(), 0700), 0);
    ASSERT_EQ(::chown(TemporaryChoice().c_str(), 65534, 65534), 0);
    EXPECT_FALSE(CacheDirectory().ok());
}

}  // namespace
}  // namespace fornax
