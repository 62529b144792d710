// WriteOutputFile over everything that a path can lead to.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <thread>

#include "base/file.h"
#include "base/test_directory.h"

namespace fornax {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr int kNotPrepared = 77;

// Runs in a child, whose exit code it gives. The child says on standard error what went wrong.
int InChild(const std::function<int()>& run) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::_exit(run());
    }
    int status = -1;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Runs as a user for whom the access rights count, which they do not for root.
int AsNormalUser(const std::function<int()>& run) {
    return InChild([&] {
        const bool prepared =
            ::geteuid() != 0 ||
            (::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
        return prepared ? run() : kNotPrepared;
    });
}

// In a child: 0 if the outcome is as expected.
int ExpectWritten(const std::string& path) {
    const Status status = WriteOutputFile(path, std::string("new"));
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
    }
    return status.ok() ? 0 : 1;
}
int ExpectRefused(const std::string& path, const std::string& reason) {
    const Status status = WriteOutputFile(path, std::string("new"));
    if (!status.ok() && status.error().message.find(reason) != std::string::npos) {
        return 0;
    }
    std::fprintf(stderr, "%s\n", status.ok() ? "written" : status.error().message.c_str());
    return 1;
}

class OutputFile : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0); }

    static struct stat InfoOf(const std::string& path) {
        struct stat info = {};
        EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
        return info;
    }
    static mode_t ModeOf(const std::string& path) { return InfoOf(path).st_mode & 07777; }
    static std::string Text(const std::string& path) {
        const Result<std::string> text = ReadTextFile(path, 100'000);
        return text.ok() ? *text : text.error().message;
    }
    std::string Existing(const std::string& name, mode_t mode) {
        const std::string path = directory_ / name;
        EXPECT_TRUE(WriteFileAtomically(path, std::string("old"), mode).ok());
        return path;
    }
    static std::string ErrorOf(const Status& status) {
        return status.ok() ? "written" : status.error().message;
    }

    TestDirectory directory_;
};

TEST_F(OutputFile, ANewFileObeysTheUmask) {
    const std::string text("line\n\0binary", 12);
    const mode_t before = ::umask(0);
    for (const mode_t umask : {0u, 022u, 027u, 077u}) {
        ::umask(umask);
        const std::string path = directory_ / fmt::format("new-{:o}", umask);
        EXPECT_TRUE(WriteOutputFile(path, text).ok());
        EXPECT_EQ(ModeOf(path), 0666 & ~umask);
        EXPECT_EQ(Text(path), text);
    }
    ::umask(before);
    EXPECT_EQ(directory_.size(), 4u);
}

TEST_F(OutputFile, AnExistingFileIsReplacedAndKeepsItsMode) {
    for (const mode_t mode : {0600u, 0640u, 0664u, 0777u}) {
        const std::string path = Existing("data", mode);
        const ino_t inode = InfoOf(path).st_ino;
        EXPECT_EQ(ErrorOf(WriteOutputFile(path, std::string("new"))), "written");
        EXPECT_EQ(Text(path), "new");
        EXPECT_EQ(ModeOf(path), mode);
        EXPECT_NE(InfoOf(path).st_ino, inode) << "a reader may have seen half of it";
        EXPECT_EQ(directory_.size(), 1u);
    }
}

TEST_F(OutputFile, TheOwnerStays) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file away";
    }
    const std::string path = Existing("data", 0640);
    ASSERT_EQ(::chown(path.c_str(), kNobody, 12345), 0);
    EXPECT_EQ(ErrorOf(WriteOutputFile(path, std::string("new"))), "written");
    EXPECT_EQ(InfoOf(path).st_uid, kNobody);
    EXPECT_EQ(InfoOf(path).st_gid, 12345u);
    EXPECT_EQ(ModeOf(path), mode_t{0640});

    // Whoever may write it but not give it away writes into it.
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0606), 0);
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
    const ino_t inode = InfoOf(path).st_ino;
    EXPECT_EQ(AsNormalUser([&] { return ExpectWritten(path); }), 0);
    EXPECT_EQ(Text(path), "new");
    EXPECT_EQ(InfoOf(path).st_uid, 12345u);
    EXPECT_EQ(InfoOf(path).st_ino, inode);
    EXPECT_EQ(directory_.size(), 1u);
}

TEST_F(OutputFile, AnAccessListStays) {
    // Version 2, and entries of a tag, rights and an id: acl(5), as linux/posix_acl_xattr.h has it.
    struct Entry {
        uint16_t tag, rights;
        uint32_t id;
    };
    struct {
        uint32_t version = 2;
        Entry entries[5] = {{1, 6, ~0u},
                            {2, 6, kNobody},
                            {4, 0, ~0u},
                            {0x10, 6, ~0u},
                            {0x20, 0, ~0u}};
    } list;
    const std::string path = Existing("data", 0600);
    if (::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof(list), 0) != 0) {
        GTEST_SKIP() << "this file system has no access lists";
    }
    EXPECT_EQ(ErrorOf(WriteOutputFile(path, std::string("new"))), "written");
    EXPECT_EQ(Text(path), "new");
    EXPECT_EQ(::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0),
              ssize_t{sizeof(list)});
}

TEST_F(OutputFile, WhatMayNotBeWrittenIsRefused) {
    const std::string path = Existing("data", 0444);
    // The directory may be written, so the file could be replaced.
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
    EXPECT_EQ(AsNormalUser([&] {
                  return ExpectRefused(path, path + " cannot be written: Permission denied.");
              }),
              0);
    EXPECT_EQ(Text(path), "old");
    EXPECT_EQ(ModeOf(path), mode_t{0444});
    EXPECT_EQ(directory_.size(), 1u);
}

TEST_F(OutputFile, AWritableFileInADirectoryThatIsNot) {
    const std::string path = Existing("data", 0666);
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0555), 0);
    const int written = AsNormalUser([&] { return ExpectWritten(path); });
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
    EXPECT_EQ(written, 0);
    EXPECT_EQ(Text(path), "new");
    EXPECT_EQ(directory_.size(), 1u);
}

TEST_F(OutputFile, OtherHardLinksKeepTheOldContents) {
    const std::string path = Existing("data", 0640);
    ASSERT_EQ(::link(path.c_str(), (directory_ / "copy").c_str()), 0);
    EXPECT_EQ(ErrorOf(WriteOutputFile(path, std::string("new"))), "written");
    EXPECT_EQ(Text(path), "new");
    EXPECT_EQ(Text(directory_ / "copy"), "old");
}

TEST_F(OutputFile, LinksStay) {
    ASSERT_EQ(::mkdir((directory_ / "folder").c_str(), 0755), 0);
    const std::string target = Existing("folder/target", 0640);
    const ino_t inode = InfoOf(target).st_ino;
    ASSERT_EQ(::symlink("target", (directory_ / "folder/second").c_str()), 0);
    const std::string link = directory_ / "link";
    ASSERT_EQ(::symlink("folder/second", link.c_str()), 0);
    EXPECT_EQ(ErrorOf(WriteOutputFile(link, std::string("new"))), "written");
    EXPECT_TRUE(S_ISLNK(InfoOf(link).st_mode));
    EXPECT_TRUE(S_ISLNK(InfoOf(directory_ / "folder/second").st_mode));
    EXPECT_EQ(Text(target), "new");
    EXPECT_EQ(ModeOf(target), mode_t{0640});
    EXPECT_NE(InfoOf(target).st_ino, inode) << "not replaced at once";
    EXPECT_EQ(directory_.size(), 2u);
}

TEST_F(OutputFile, ALinkToNothingGetsItsTarget) {
    ASSERT_EQ(::mkdir((directory_ / "folder").c_str(), 0755), 0);
    const std::string link = directory_ / "link";
    ASSERT_EQ(::symlink("folder/target", link.c_str()), 0);
    const mode_t before = ::umask(027);
    EXPECT_EQ(ErrorOf(WriteOutputFile(link, std::string("new"))), "written");
    ::umask(before);
    EXPECT_TRUE(S_ISLNK(InfoOf(link).st_mode));
    EXPECT_EQ(Text(directory_ / "folder/target"), "new");
    EXPECT_EQ(ModeOf(directory_ / "folder/target"), mode_t{0640});

    ASSERT_EQ(::symlink("missing/target", (directory_ / "lost").c_str()), 0);
    EXPECT_THAT(ErrorOf(WriteOutputFile(directory_ / "lost", std::string("new"))),
                HasSubstr("lost cannot be written: No such file or directory."));
    EXPECT_TRUE(S_ISLNK(InfoOf(directory_ / "lost").st_mode));
}

TEST_F(OutputFile, LinksInACircleAreRefused) {
    ASSERT_EQ(::symlink("b", (directory_ / "a").c_str()), 0);
    ASSERT_EQ(::symlink("a", (directory_ / "b").c_str()), 0);
    EXPECT_THAT(ErrorOf(WriteOutputFile(directory_ / "a", std::string("new"))),
                HasSubstr("a cannot be written: Too many levels of symbolic links."));
    EXPECT_TRUE(S_ISLNK(InfoOf(directory_ / "a").st_mode));
    EXPECT_EQ(directory_.size(), 2u);
}

TEST_F(OutputFile, DevicesAreWrittenInto) {
    // A device of our own, as root could lose the system's.
    for (const unsigned minor : {3u, 7u}) {
        std::string device = minor == 3 ? "/dev/null" : "/dev/full";
        if (::geteuid() == 0) {
            device = directory_ / fmt::format("device-{}", minor);
            ASSERT_EQ(::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, minor)), 0);
            if (!UniqueFd(::open(device.c_str(), O_WRONLY | O_CLOEXEC)).valid()) {
                GTEST_SKIP() << "this file system has no devices";
            }
        }
        const std::string result = ErrorOf(WriteOutputFile(device, std::string("new")));
        EXPECT_EQ(result,
                  minor == 3 ? "written" : device + " cannot be written: No space left on device.");
        EXPECT_TRUE(S_ISCHR(InfoOf(device).st_mode));
    }
}

TEST_F(OutputFile, PipesAreWrittenInto) {
    const std::string path = directory_ / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::string sent(200'000, 'x');  // more than it holds at once
    std::string received;
    UniqueFd end(
        ::open(path.c_str(), O_RDWR | O_CLOEXEC));  // as long as it is open, so is the pipe
    std::jthread reader([&] {
        const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        std::array<char, 4096> buffer;
        for (ssize_t got = 0; (got = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
            received.append(buffer.data(), static_cast<size_t>(got));
        }
    });
    EXPECT_EQ(ErrorOf(WriteOutputFile(path, sent)), "written");
    EXPECT_TRUE(S_ISFIFO(InfoOf(path).st_mode));
    end.Reset();
    reader.join();
    EXPECT_EQ(received, sent);
}

TEST_F(OutputFile, SocketsAndDirectoriesAreRefused) {
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = directory_ / "socket";
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(ErrorOf(WriteOutputFile(path, std::string("new"))),
              path + " cannot be written: it is a socket.");
    EXPECT_TRUE(S_ISSOCK(InfoOf(path).st_mode));

    EXPECT_THAT(ErrorOf(WriteOutputFile(directory_.path(), std::string("new"))),
                HasSubstr("cannot be written: Is a directory."));
    for (const char* name : {"missing/data", "socket/data", "new/", ""}) {
        EXPECT_NE(ErrorOf(WriteOutputFile(directory_ / name, std::string("new"))), "written")
            << name;
    }
    EXPECT_EQ(directory_.size(), 1u);
}

// Redirected as a shell does: what is printed before and after stands around it.
TEST_F(OutputFile, StandardOutputIsWrittenFromWhereItStands) {
    // As /dev/stdout is, which root could lose.
    const std::string standard_output = directory_ / "stdout";
    ASSERT_EQ(::symlink("/proc/self/fd/1", standard_output.c_str()), 0);
    for (const std::string& name : {standard_output, std::string("/dev/fd/1")}) {
        const std::string path = Existing("redirected", 0600);
        EXPECT_EQ(InChild([&] {
                      const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC);
                      if (::dup2(fd, STDOUT_FILENO) < 0) {
                          return kNotPrepared;
                      }
                      std::printf("before ");
                      const int result = ExpectWritten(name);
                      std::printf(" behind");
                      return std::fflush(stdout) == 0 ? result : 1;
                  }),
                  0)
            << name;
        EXPECT_EQ(Text(path), "before new behind") << name;
    }
    // A link of the user's to it, and a socket, which cannot be opened by its path.
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    const UniqueFd near(ends[0]), far(ends[1]);
    const std::string link = directory_ / "link";
    ASSERT_EQ(::symlink(fmt::format("/dev/fd/{}", near.get()).c_str(), link.c_str()), 0);
    EXPECT_EQ(ErrorOf(WriteOutputFile(link, std::string("new"))), "written");
    std::array<char, 16> buffer;
    EXPECT_EQ(::read(far.get(), buffer.data(), buffer.size()), 3);
    EXPECT_THAT(ErrorOf(WriteOutputFile("/dev/fd/987654", std::string("new"))),
                HasSubstr("/dev/fd/987654 cannot be written: Bad file descriptor."));
}

// The process's file size limit stands for a full disk.
TEST_F(OutputFile, AFailedWriteLeavesWhatWasThere) {
    const std::string path = Existing("data", 0640);
    ASSERT_EQ(::symlink("target", (directory_ / "link").c_str()), 0);
    rlimit old_limit;
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const rlimit limit{1000, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::vector<std::string> results;
    for (const char* name : {"data", "link", "new"}) {
        results.push_back(ErrorOf(WriteOutputFile(directory_ / name, std::string(2000, 'x'))));
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    EXPECT_THAT(
        results,
        testing::Each(HasSubstr("it would have 2000 bytes, and this process may write 1000.")));
    EXPECT_EQ(Text(path), "old");
    EXPECT_EQ(directory_.size(), 2u) << "the file and the link, which still leads to nothing";
}

TEST_F(OutputFile, AFullDiskLeavesWhatWasThere) {
    // Room for few bytes, and for no third file beside the root and the first.
    for (const char* options : {"size=16k", "size=1m,nr_inodes=2"}) {
        const std::string path = directory_ / "data";
        const int result = InChild([&] {
            const int namespaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
            if (::unshare(namespaces) != 0 ||
                ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, options) != 0 ||
                !WriteFileAtomically(path, std::string("old"), 0600).ok()) {
                return kNotPrepared;
            }
            const std::string error = ErrorOf(WriteOutputFile(path, std::string(20'000, 'x')));
            if (error.find("No space left on device.") != std::string::npos &&
                Text(path) == "old" && directory_.size() == 1) {
                return 0;
            }
            std::fprintf(stderr, "%s: %s; %s\n", options, error.c_str(), Text(path).c_str());
            return 1;
        });
        if (result == kNotPrepared) {
            GTEST_SKIP() << "this system lets nobody mount a small file system";
        }
        EXPECT_EQ(result, 0);
    }
}

// A single file that is mounted over another can only be written in place.
TEST_F(OutputFile, AMountPointIsWrittenInPlace) {
    const std::string path = Existing("data", 0600);
    const std::string mounted = Existing("mounted", 0600);
    const int result = InChild([&] {
        const int namespaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
        if (::unshare(namespaces) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount(mounted.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
            return kNotPrepared;
        }
        return ExpectWritten(path);
    });
    if (result == kNotPrepared) {
        GTEST_SKIP() << "this system lets nobody mount a file";
    }
    EXPECT_EQ(result, 0);
    EXPECT_EQ(Text(path), "old");
    EXPECT_EQ(Text(mounted), "new");
    EXPECT_EQ(directory_.size(), 2u);
}

}  // namespace
}  // namespace fornax
