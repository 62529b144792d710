// Whole-file reading and atomic writing, and how they fail.
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/test_directory.h"

namespace fornax {
namespace {

using testing::HasSubstr;

mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
}

TEST(FileTest, ReadsBackWhatWasWritten) {
    TestDirectory directory;
    const std::string path = directory / "data";
    const std::string text("line\n\0binary", 12);
    ASSERT_TRUE(WriteFileAtomically(path, text, 0644).ok());
    EXPECT_EQ(ModeOf(path), mode_t{0644});
    auto read = ReadTextFile(path, 12);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, text);
    auto bytes = ReadFile(path, 1000);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(std::memcmp(bytes->data(), text.data(), text.size()), 0);
}

TEST(FileTest, MapsWhatWasWritten) {
    TestDirectory directory;
    const std::string path = directory / "data";
    ASSERT_TRUE(WriteFileAtomically(path, std::string("first"), 0644).ok());
    const auto mapped = MappedFile::Open(path);
    ASSERT_TRUE(mapped.ok()) << mapped.error().message;
    // A replaced file stays as it was for whoever has mapped it.
    ASSERT_TRUE(WriteFileAtomically(path, std::string(), 0644).ok());
    const std::span<const std::byte> bytes = (*mapped)->bytes();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "first");
    const auto empty = MappedFile::Open(path);
    ASSERT_TRUE(empty.ok()) << empty.error().message;
    EXPECT_TRUE((*empty)->bytes().empty());

    const auto missing = MappedFile::Open(directory / "missing");
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
    const auto folder = MappedFile::Open(directory / "");
    ASSERT_FALSE(folder.ok());
    EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
}

TEST(FileTest, HashesFilesInParts) {
    const TestDirectory directory;
    const std::string path = directory / "file";
    EXPECT_EQ(HashFile(path).error().code, ErrorCode::kNotFound);
    for (const size_t size : {size_t{0}, size_t{5}, size_t{256} << 10, size_t{600'000}}) {
        std::string text(size, 'a');
        for (size_t i = 0; i < size; i += 1000) {
            text[i] = static_cast<char>('b' + i / 1000 % 20);
        }
        ASSERT_TRUE(WriteFileAtomically(path, text, 0600).ok());
        const Result<Hash128> hash = HashFile(path);
        ASSERT_TRUE(hash.ok()) << hash.error().message;
        EXPECT_EQ(*hash, HashBytes(std::as_bytes(std::span(text))));
    }
}

TEST(FileTest, ReadsAnEmptyFile) {
    TestDirectory directory;
    ASSERT_TRUE(WriteFileAtomically(directory / "empty", std::string(), 0600).ok());
    auto read = ReadTextFile(directory / "empty", 0);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, "");
}

TEST(FileTest, RefusesWhatIsTooLargeMissingOrNoFile) {
    TestDirectory directory;
    ASSERT_TRUE(WriteFileAtomically(directory / "data", std::string(101, 'x'), 0600).ok());
    auto too_large = ReadTextFile(directory / "data", 100);
    ASSERT_FALSE(too_large.ok());
    EXPECT_EQ(too_large.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(too_large.error().message, HasSubstr("has 101 bytes; at most 100 are read."));

    auto missing = ReadFile(directory / "missing", 100);
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(missing.error().message, HasSubstr("No such file"));

    EXPECT_EQ(ReadFile(directory.path(), 100).error().code, ErrorCode::kInvalidArgument);
    const std::string pipe = directory / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(ReadFile(pipe, 100).error().code, ErrorCode::kInvalidArgument);
}

TEST(FileTest, WritingReplacesAndLeavesNothingElse) {
    TestDirectory directory;
    const std::string path = directory / "data";
    ASSERT_TRUE(WriteFileAtomically(path, std::string(1000, 'x'), 0644).ok());
    const std::string head = "new ", tail = "text";
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)),
                                                std::as_bytes(std::span(tail))};
    ASSERT_TRUE(WriteFileAtomically(path, parts, 0600).ok());
    EXPECT_EQ(*ReadTextFile(path, 100), "new text");
    EXPECT_EQ(ModeOf(path), mode_t{0600});
    EXPECT_EQ(directory.size(), 1u);
}

// The process's file size limit stands for a full disk.
TEST(FileTest, AFailedWriteLeavesTheOldFile) {
    TestDirectory directory;
    const std::string path = directory / "data";
    ASSERT_TRUE(WriteFileAtomically(path, std::string("old"), 0600).ok());
    rlimit old_limit;
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Status status = WriteFileAtomically(path, std::string(2000, 'x'), 0600);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    std::signal(SIGXFSZ, old_handler);

    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
    EXPECT_THAT(status.error().message, HasSubstr("cannot be written"));
    EXPECT_EQ(*ReadTextFile(path, 100), "old");
    EXPECT_EQ(directory.size(), 1u);
}

TEST(FileTest, WritingOverADirectoryFails) {
    TestDirectory directory;
    ASSERT_EQ(::mkdir((directory / "folder").c_str(), 0700), 0);
    EXPECT_FALSE(WriteFileAtomically(directory / "folder", std::string("text"), 0600).ok());
    EXPECT_FALSE(WriteFileAtomically(directory / "missing/data", std::string("text"), 0600).ok());
    EXPECT_EQ(directory.size(), 1u);
}

TEST(FileTest, CreatesDirectoriesWithTheirParents) {
    TestDirectory directory;
    const std::string path = directory / "a/b/c";
    ASSERT_TRUE(CreateDirectories(path, 0700).ok());
    EXPECT_EQ(ModeOf(path), mode_t{0700});
    EXPECT_TRUE(CreateDirectories(path + "/", 0700).ok());
    ASSERT_TRUE(WriteFileAtomically(directory / "file", std::string("text"), 0600).ok());
    EXPECT_FALSE(CreateDirectories(directory / "file", 0700).ok());
    EXPECT_FALSE(CreateDirectories(directory / "file/below", 0700).ok());
    EXPECT_FALSE(CreateDirectories("", 0700).ok());
}

TEST(UniqueFdTest, ClosesWhatItOwns) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    UniqueFd read_end(ends[0]);
    {
        UniqueFd first(ends[1]);
        UniqueFd second(std::move(first));
        EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): moved from is empty
        EXPECT_EQ(second.get(), ends[1]);
    }
    char byte;
    EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "the write end is still open";
}

}  // namespace
}  // namespace fornax
