// The disk cache in a user's real life, with whole processes. Outcome in every case: kernels are
// compiled if need be, run, and give right results; the cache holds whole entries or none; what
// this user's driver did not write is never run.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/test_directory.h"
#include "tests/robust/process.h"

namespace fornax::test {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
  protected:
    ChildOptions Options(uint32_t kernels = 2, uint32_t rounds = 1) const {
        return {.kernels = kernels,
                .rounds = rounds,
                .environment = {{"FORNAX_CACHE_DIR", path_}, {"FORNAX_LOG_LEVEL", "warning"}}};
    }

    static void ExpectRight(const ChildResult& result) {
        EXPECT_EQ(result.exit_code, 0) << result.output;
    }

    // What the cache holds, but for its secret.
    std::vector<fs::path> Files() const {
        std::vector<fs::path> files;
        for (const auto& item : fs::directory_iterator(path_)) {
            if (item.path().filename() != "fornax-secret") {
                files.push_back(item.path());
            }
        }
        std::sort(files.begin(), files.end());
        return files;
    }

    static std::string Read(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void Write(const fs::path& path, const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }

    const TestDirectory directory_;
    const std::string path_ = directory_.path();
};

// A file system with room for `bytes`, over the directory; for the child alone.
bool MountSmall(const std::string& path, size_t bytes) {
    const int namespaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    const std::string options = "mode=0700,size=" + std::to_string(bytes);
    return unshare(namespaces) == 0 &&
           mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", path.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

TEST_F(CacheTest, AFullDisk) {
    for (const size_t bytes : {4'096u, 8'192u, 16'384u}) {
        ChildOptions options = Options(4);
        options.prepare = [&] { return MountSmall(path_, bytes); };
        const ChildResult result = Child(options).Wait();
        if (result.exit_code == kChildNotPrepared) {
            GTEST_SKIP() << "This system lets nobody mount a small file system.";
        }
        ExpectRight(result);
        const size_t first = result.output.find("cannot be stored");
        ASSERT_NE(first, std::string::npos) << result.output;
        EXPECT_EQ(result.output.find("cannot be stored", first + 1), std::string::npos)
            << "One warning is enough.";
    }
}

// As batch systems do: a limit on the size of files, beyond which a process is ended by SIGXFSZ.
TEST_F(CacheTest, FilesThatMayNotGrow) {
    ChildOptions options = Options();
    options.prepare = [] {
        const rlimit limit{.rlim_cur = 1024, .rlim_max = 1024};
        return setrlimit(RLIMIT_FSIZE, &limit) == 0;
    };
    ExpectRight(Child(options).Wait());
    EXPECT_TRUE(Files().empty()) << Files().front();
    // With the limit gone it works as if nothing had been.
    ExpectRight(Child(Options()).Wait());
    EXPECT_EQ(Files().size(), 2u);
}

TEST_F(CacheTest, ReadOnly) {
    ExpectRight(Child(Options()).Wait());
    const std::vector<fs::path> before = Files();
    ChildOptions options = Options(4);
    options.prepare = [&] {
        const int namespaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
        return unshare(namespaces) == 0 &&
               mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount(path_.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
               mount(nullptr, path_.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) ==
                   0;
    };
    const ChildResult result = Child(options).Wait();
    if (result.exit_code == kChildNotPrepared) {
        GTEST_SKIP() << "This system lets nobody make a directory read-only.";
    }
    ExpectRight(result);
    EXPECT_EQ(Files(), before);
}

TEST_F(CacheTest, Missing) {
    // Neither is there, nor can it be made: below a file, and in a file system of the kernel's.
    Write(path_ + "/file", "");
    for (const std::string& missing : {path_ + "/file/cache", std::string("/proc/sys/fornax")}) {
        ChildOptions options = Options();
        options.environment[0].second = missing;
        const ChildResult result = Child(options).Wait();
        ExpectRight(result);
        EXPECT_NE(result.output.find("not cached on disk"), std::string::npos) << result.output;
    }
}

// Several processes, and somebody who damages and removes what they write.
TEST_F(CacheTest, ManyProcessesAtOnce) {
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 4; ++i) {
        children.push_back(std::make_unique<Child>(Options(5, 8)));
    }
    for (int round = 0; round < 60; ++round) {
        usleep(20'000);
        int kind = round;
        for (const fs::path& file : Files()) {
            std::error_code gone;
            if (++kind % 3 == 0) {
                fs::remove(file, gone);
            } else if (kind % 3 == 1) {
                fs::resize_file(file, 200, gone);
            } else if (const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC); fd >= 0) {
                const char damage[] = "damage";
                EXPECT_EQ(pwrite(fd, damage, sizeof(damage), 300), ssize_t{sizeof(damage)});
                close(fd);
            }
        }
    }
    for (const auto& child : children) {
        ExpectRight(child->Wait());
    }
}

// The bytes of an entry's header that matter here (base/disk_cache.cpp).
constexpr size_t kDigestAt = 40;
constexpr size_t kHeaderBytes = 88;

// Gives the entry a digest that its damaged payload matches: what an attacker can do as well.
std::string WithRightDigest(std::string entry) {
    const Hash128 digest = HashBytes(
        std::as_bytes(std::span(entry.data() + kHeaderBytes, entry.size() - kHeaderBytes)));
    std::memcpy(entry.data() + kDigestAt, &digest.high, 8);
    std::memcpy(entry.data() + kDigestAt + 8, &digest.low, 8);
    return entry;
}

TEST_F(CacheTest, AlteredCodeIsNotRun) {
    ExpectRight(Child(Options()).Wait());
    std::vector<fs::path> files = Files();
    ASSERT_EQ(files.size(), 2u);
    for (const fs::path& file : files) {
        const std::string good = Read(file);
        ASSERT_EQ(WithRightDigest(good), good) << "The test does not know the header any more.";
        std::string altered = good;
        for (size_t i = kHeaderBytes; i < altered.size(); ++i) {
            if (altered[i] != 0) {
                altered[i] = '\xcc';  // a breakpoint wherever code may be
            }
        }
        Write(file, WithRightDigest(altered));
        const ChildResult result = Child(Options()).Wait();
        ExpectRight(result);
        EXPECT_NE(result.output.find("does not prove"), std::string::npos) << result.output;
        EXPECT_NE(Read(file), WithRightDigest(altered)) << "It was not replaced.";
    }
}

// Code that this driver did make, under the name of another kernel.
TEST_F(CacheTest, SwappedCodeIsNotRun) {
    ExpectRight(Child(Options()).Wait());
    const std::vector<fs::path> files = Files();
    ASSERT_EQ(files.size(), 2u);
    const std::string first = Read(files[0]);
    Write(files[0], Read(files[1]));
    Write(files[1], first);
    ExpectRight(Child(Options()).Wait());

    // With the key of the other one, too.
    constexpr size_t kKeyAt = 16;
    std::string forged = Read(files[0]);
    forged.replace(kKeyAt, 16, Read(files[1]), kKeyAt, 16);
    Write(files[1], forged);
    const ChildResult result = Child(Options()).Wait();
    ExpectRight(result);
    EXPECT_NE(result.output.find("does not prove"), std::string::npos) << result.output;
}

// Whole caches of somebody else, with and without their secret.
TEST_F(CacheTest, CodeOfAnotherCacheIsNotRun) {
    const TestDirectory other;
    ChildOptions options = Options();
    options.environment[0].second = other.path();
    ExpectRight(Child(options).Wait());
    ExpectRight(Child(Options(1)).Wait());
    fs::copy(other.path(), path_,
             fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    // The secret that lies there now is this user's, so the entries count; one that others could
    // have read does not.
    fs::permissions(path_ + "/fornax-secret", fs::perms::group_read, fs::perm_options::add);
    const ChildResult result = Child(Options()).Wait();
    ExpectRight(result);
    EXPECT_NE(result.output.find("open to other users"), std::string::npos) << result.output;
    EXPECT_EQ(fs::status(path_ + "/fornax-secret").permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CacheTest, EntriesThatOthersMayWriteAreNotRead) {
    ExpectRight(Child(Options()).Wait());
    for (const fs::path& file : Files()) {
        fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
    }
    const ChildResult result = Child(Options()).Wait();
    ExpectRight(result);
    EXPECT_NE(result.output.find("is ignored"), std::string::npos) << result.output;
}

TEST_F(CacheTest, EntriesAndSecretsOfOthersAreNotRead) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "Only root can give files away.";
    }
    constexpr uid_t kNobody = 65534;
    ExpectRight(Child(Options()).Wait());
    for (const fs::path& file : Files()) {
        ASSERT_EQ(chown(file.c_str(), kNobody, kNobody), 0);
    }
    ChildResult result = Child(Options()).Wait();
    ExpectRight(result);
    EXPECT_NE(result.output.find("is ignored"), std::string::npos) << result.output;
    ASSERT_EQ(chown((path_ + "/fornax-secret").c_str(), kNobody, kNobody), 0);
    result = Child(Options()).Wait();
    ExpectRight(result);
    EXPECT_NE(result.output.find("is not a regular file of user"), std::string::npos)
        << result.output;
}

// A directory that everybody may write to, with a link in the place of an entry and of the secret.
TEST_F(CacheTest, LinksAreNotFollowed) {
    ExpectRight(Child(Options()).Wait());
    fs::permissions(path_, fs::perms::all);
    const TestDirectory elsewhere;
    for (const fs::path& file : Files()) {
        const std::string target = elsewhere.path() + "/" + file.filename().string();
        fs::copy_file(file, target);
        fs::remove(file);
        fs::create_symlink(target, file);
    }
    ExpectRight(Child(Options()).Wait());
    const std::string secret = path_ + "/fornax-secret";
    fs::copy_file(secret, elsewhere.path() + "/secret");
    fs::remove(secret);
    fs::create_symlink(elsewhere.path() + "/secret", secret);
    ExpectRight(Child(Options()).Wait());
    EXPECT_TRUE(fs::is_symlink(fs::symlink_status(secret)));
}

}  // namespace
}  // namespace fornax::test
