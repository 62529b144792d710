// The per-user secret: how it is made, shared, replaced and refused; what the digest covers.
#include "base/keyed_digest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/test_directory.h"

namespace fornax {
namespace {

class KeyedDigestTest : public testing::Test {
  protected:
    void SetUp() override {
        SetLogSink([](LogLevel, std::string_view) {});
    }
    void TearDown() override { SetLogSink(nullptr); }

    UserSecret Load() {
        Result<UserSecret> secret = LoadOrCreateUserSecret(directory_.path());
        EXPECT_TRUE(secret.ok());
        return secret.ok() ? *secret : UserSecret{};
    }

    TestDirectory directory_;
    const std::string path_ = directory_ / kUserSecretFileName;
};

KeyedDigest DigestOf(const UserSecret& secret, std::string_view text) {
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
    return ComputeKeyedDigest(secret, parts);
}

TEST_F(KeyedDigestTest, TheSecretIsMadeOnceAndPrivate) {
    const UserSecret first = Load();
    EXPECT_NE(first.bytes, UserSecret{}.bytes);
    EXPECT_EQ(Load().bytes, first.bytes);
    struct stat info;
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode_t{0600});
    EXPECT_EQ(directory_.size(), 1u);
}

TEST_F(KeyedDigestTest, DirectoriesHaveDifferentSecrets) {
    TestDirectory other;
    EXPECT_NE(Load().bytes, LoadOrCreateUserSecret(other.path())->bytes);
}

TEST_F(KeyedDigestTest, ThreadsThatCreateItAtOnceAgree) {
    std::vector<UserSecret> secrets(8);
    {
        std::vector<std::jthread> threads;
        for (UserSecret& secret : secrets) {
            threads.emplace_back([this, &secret] { secret = Load(); });
        }
    }
    for (const UserSecret& secret : secrets) {
        EXPECT_EQ(secret.bytes, secrets[0].bytes);
    }
    EXPECT_EQ(directory_.size(), 1u);
}

TEST_F(KeyedDigestTest, ASecretThatOthersCouldReadIsReplaced) {
    const UserSecret first = Load();
    ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
    const UserSecret second = Load();
    EXPECT_NE(second.bytes, first.bytes);
    EXPECT_EQ(Load().bytes, second.bytes);
}

TEST_F(KeyedDigestTest, ASecretOfWrongSizeIsReplaced) {
    for (size_t size : {size_t{0}, size_t{31}, size_t{33}}) {
        ASSERT_TRUE(WriteFileAtomically(path_, std::string(size, 'x'), 0600).ok());
        const UserSecret secret = Load();
        EXPECT_EQ(ReadFile(path_, 100)->size(), secret.bytes.size());
    }
}

TEST_F(KeyedDigestTest, ALinkIsNotFollowed) {
    TestDirectory elsewhere;
    ASSERT_TRUE(WriteFileAtomically(elsewhere / "known", std::string(32, 'k'), 0600).ok());
    ASSERT_EQ(::symlink((elsewhere / "known").c_str(), path_.c_str()), 0);
    EXPECT_FALSE(LoadOrCreateUserSecret(directory_.path()).ok());
}

TEST_F(KeyedDigestTest, AMissingDirectoryIsAnError) {
    EXPECT_FALSE(LoadOrCreateUserSecret(directory_ / "missing").ok());
}

TEST_F(KeyedDigestTest, DependsOnTheSecretAndOnEveryByte) {
    UserSecret secret = Load();
    const KeyedDigest digest = DigestOf(secret, "code");
    EXPECT_TRUE(SameDigest(digest, DigestOf(secret, "code")));
    EXPECT_FALSE(SameDigest(digest, DigestOf(secret, "codf")));
    EXPECT_FALSE(SameDigest(digest, DigestOf(secret, "code ")));
    secret.bytes[31] ^= std::byte{1};
    EXPECT_FALSE(SameDigest(digest, DigestOf(secret, "code")));
}

TEST_F(KeyedDigestTest, DigestsDifferInAnyByte) {
    const KeyedDigest digest = DigestOf(Load(), "code");
    for (size_t i = 0; i < digest.size(); ++i) {
        KeyedDigest other = digest;
        other[i] ^= std::byte{0x80};
        EXPECT_FALSE(SameDigest(digest, other)) << i;
    }
}

}  // namespace
}  // namespace fornax
