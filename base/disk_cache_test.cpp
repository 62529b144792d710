// The disk cache with good, damaged, foreign and planted entries, full disks and several threads.
#include "base/disk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/test_directory.h"

namespace fornax {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr CacheKind kPlan = {.name = "plan", .extension = "fxp", .version = 1, .executable = false};
constexpr CacheKind kCode = {.name = "kernel", .extension = "o", .version = 1, .executable = true};
constexpr Hash128 kKey = {0x1111, 0x2222};
constexpr size_t kHeaderBytes = 88;

std::mutex g_mutex;
std::vector<std::string> g_warnings;

std::vector<std::byte> Payload(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

class DiskCacheTest : public testing::Test {
  protected:
    void SetUp() override {
        g_warnings.clear();
        SetLogSink([](LogLevel level, std::string_view message) {
            const std::scoped_lock lock(g_mutex);
            if (level <= LogLevel::kWarning) {
                g_warnings.emplace_back(message);
            }
        });
    }
    void TearDown() override { SetLogSink(nullptr); }

    // Each test of damage starts from the bytes of a good entry and writes them back changed.
    std::string Contents(const CacheKind& kind) { return *ReadTextFile(PathOf(kind), 10'000); }
    void Write(const CacheKind& kind, const std::string& bytes, mode_t mode = 0600) {
        ASSERT_TRUE(WriteFileAtomically(PathOf(kind), bytes, mode).ok());
    }
    std::string PathOf(const CacheKind& kind, Hash128 key = kKey) const {
        return directory_ / fmt::format("{}-{}.{}", kind.name, key.ToHex(), kind.extension);
    }
    bool Exists(const CacheKind& kind) const { return ::access(PathOf(kind).c_str(), F_OK) == 0; }

    TestDirectory directory_;
    DiskCache cache_{directory_.path()};
};

TEST_F(DiskCacheTest, ReturnsWhatWasStored) {
    for (const CacheKind& kind : {kPlan, kCode}) {
        EXPECT_EQ(cache_.Get(kind, kKey), std::nullopt);
        EXPECT_TRUE(cache_.Put(kind, kKey, Payload("first")));
        EXPECT_EQ(cache_.Get(kind, kKey), Payload("first"));
        EXPECT_TRUE(cache_.Put(kind, kKey, Payload("second, longer")));
        EXPECT_EQ(cache_.Get(kind, kKey), Payload("second, longer"));
        EXPECT_TRUE(cache_.Put(kind, kKey, {}));
        EXPECT_EQ(cache_.Get(kind, kKey), Payload(""));
        EXPECT_EQ(cache_.Get(kind, Hash128{0x1111, 0x2223}), std::nullopt);
    }
    EXPECT_THAT(g_warnings, IsEmpty());
}

TEST_F(DiskCacheTest, AnotherProcessFindsIt) {
    EXPECT_TRUE(cache_.Put(kCode, kKey, Payload("code")));
    DiskCache other(directory_.path());
    EXPECT_EQ(other.Get(kCode, kKey), Payload("code"));
}

TEST_F(DiskCacheTest, KindsAndVersionsDoNotMix) {
    CacheKind newer = kPlan;
    newer.version = 2;
    EXPECT_TRUE(cache_.Put(kPlan, kKey, Payload("old")));
    EXPECT_EQ(cache_.Get(newer, kKey), std::nullopt);
    EXPECT_EQ(cache_.Get(kCode, kKey), std::nullopt);
    EXPECT_TRUE(Exists(kPlan)) << "another version of Fornax may still want it";
    EXPECT_TRUE(cache_.Put(newer, kKey, Payload("new")));
    EXPECT_EQ(cache_.Get(newer, kKey), Payload("new"));
    EXPECT_THAT(g_warnings, IsEmpty());
}

// Whatever single byte is damaged, the payload is either refused or untouched - never wrong.
TEST_F(DiskCacheTest, NoDamagedByteIsAccepted) {
    for (const CacheKind& kind : {kPlan, kCode}) {
        ASSERT_TRUE(cache_.Put(kind, kKey, Payload("payload")));
        const std::string good = Contents(kind);
        ASSERT_EQ(good.size(), kHeaderBytes + 7);
        for (size_t i = 0; i < good.size(); ++i) {
            std::string bad = good;
            bad[i] ^= 0x10;
            Write(kind, bad);
            EXPECT_EQ(cache_.Get(kind, kKey), std::nullopt) << kind.name << " byte " << i;
        }
        Write(kind, good);
        EXPECT_EQ(cache_.Get(kind, kKey), Payload("payload"));
    }
}

TEST_F(DiskCacheTest, ADamagedEntryIsRemovedWithAWarningAndReplaced) {
    ASSERT_TRUE(cache_.Put(kPlan, kKey, Payload("payload")));
    std::string bad = Contents(kPlan);
    bad.back() ^= 1;
    Write(kPlan, bad);
    EXPECT_EQ(cache_.Get(kPlan, kKey), std::nullopt);
    EXPECT_THAT(g_warnings, ElementsAre(AllOf(HasSubstr(PathOf(kPlan)), HasSubstr("is damaged"))));
    EXPECT_FALSE(Exists(kPlan));
    EXPECT_TRUE(cache_.Put(kPlan, kKey, Payload("payload")));
    EXPECT_EQ(cache_.Get(kPlan, kKey), Payload("payload"));
}

TEST_F(DiskCacheTest, EveryWrongLengthIsRefused) {
    ASSERT_TRUE(cache_.Put(kCode, kKey, Payload("payload")));
    const std::string good = Contents(kCode);
    for (size_t size = 0; size < good.size(); ++size) {
        Write(kCode, good.substr(0, size));
        EXPECT_EQ(cache_.Get(kCode, kKey), std::nullopt) << size;
    }
    Write(kCode, good + "x");
    EXPECT_EQ(cache_.Get(kCode, kKey), std::nullopt);
}

TEST_F(DiskCacheTest, AnEntryUnderAnotherNameIsRefused) {
    constexpr Hash128 kOther = {3, 4};
    for (const CacheKind& kind : {kPlan, kCode}) {
        ASSERT_TRUE(cache_.Put(kind, kKey, Payload("payload")));
        ASSERT_EQ(::rename(PathOf(kind).c_str(), PathOf(kind, kOther).c_str()), 0);
        EXPECT_EQ(cache_.Get(kind, kOther), std::nullopt);
    }
}

// The attack: a well-formed entry with a right checksum, put there by someone without the secret.
TEST_F(DiskCacheTest, PlantedCodeIsRefused) {
    TestDirectory attacker_directory;
    DiskCache attacker(attacker_directory.path());
    ASSERT_TRUE(attacker.Put(kCode, kKey, Payload("evil code")));
    ASSERT_TRUE(cache_.Put(kCode, kKey, Payload("good code")));
    const std::string planted =
        attacker_directory / PathOf(kCode).substr(directory_.path().size() + 1);
    Write(kCode, *ReadTextFile(planted, 10'000));
    EXPECT_EQ(cache_.Get(kCode, kKey), std::nullopt);
    EXPECT_THAT(g_warnings, ElementsAre(HasSubstr("does not prove that user")));
}

// Data of this user must not be turned into code by a change of its name.
TEST_F(DiskCacheTest, SignedDataOfAnotherKindIsRefused) {
    CacheKind other_code = kCode;
    other_code.name = "other";
    ASSERT_TRUE(cache_.Put(other_code, kKey, Payload("payload")));
    ASSERT_EQ(::rename(PathOf(other_code).c_str(), PathOf(kCode).c_str()), 0);
    EXPECT_EQ(cache_.Get(kCode, kKey), std::nullopt);
}

TEST_F(DiskCacheTest, AnEntryOthersMayWriteToIsIgnoredAndKept) {
    ASSERT_TRUE(cache_.Put(kPlan, kKey, Payload("payload")));
    ASSERT_EQ(::chmod(PathOf(kPlan).c_str(), 0660), 0);
    EXPECT_EQ(cache_.Get(kPlan, kKey), std::nullopt);
    EXPECT_THAT(g_warnings, ElementsAre(HasSubstr("only user")));
    EXPECT_TRUE(Exists(kPlan));
}

TEST_F(DiskCacheTest, AnEntryOfAnotherUserIsIgnored) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file away";
    }
    ASSERT_TRUE(cache_.Put(kPlan, kKey, Payload("payload")));
    ASSERT_EQ(::chown(PathOf(kPlan).c_str(), 65534, 65534), 0);
    EXPECT_EQ(cache_.Get(kPlan, kKey), std::nullopt);
    EXPECT_THAT(cache_.List(), IsEmpty());
    EXPECT_EQ(cache_.Clear().removed_count, 0u);
    EXPECT_TRUE(Exists(kPlan));
}

// A directory full of such entries costs one warning for each cause, in the whole process.
TEST_F(DiskCacheTest, EachCauseIsWarnedAboutOnce) {
    TestDirectory attacker_directory;
    DiskCache attacker(attacker_directory.path());
    const auto name = [this](const Hash128& key) {
        return PathOf(kCode, key).substr(directory_.path().size() + 1);
    };
    for (int opened = 0; opened < 2; ++opened) {
        DiskCache cache(directory_.path());
        for (uint64_t i = 0; i < 4; ++i) {
            const Hash128 shared = {1, i}, damaged = {2, i}, planted = {3, i};
            ASSERT_TRUE(cache.Put(kCode, shared, Payload("payload")));
            ASSERT_EQ(::chmod(PathOf(kCode, shared).c_str(), 0660), 0);
            ASSERT_TRUE(cache.Put(kCode, damaged, Payload("payload")));
            ASSERT_EQ(::truncate(PathOf(kCode, damaged).c_str(), kHeaderBytes), 0);
            ASSERT_TRUE(attacker.Put(kCode, planted, Payload("evil code")));
            const std::string evil = *ReadTextFile(attacker_directory / name(planted), 10'000);
            ASSERT_TRUE(WriteFileAtomically(PathOf(kCode, planted), evil, 0600).ok());
            for (const Hash128& key : {shared, damaged, planted}) {
                EXPECT_EQ(cache.Get(kCode, key), std::nullopt);
            }
        }
    }
    EXPECT_THAT(g_warnings,
                ElementsAre(AllOf(HasSubstr(PathOf(kCode, {1, 0})), HasSubstr("only user"),
                                  HasSubstr("The entry is ignored.")),
                            AllOf(HasSubstr(PathOf(kCode, {2, 0})),
                                  HasSubstr("has 0 bytes of payload instead of 7."),
                                  HasSubstr("The entry is removed and made again.")),
                            AllOf(HasSubstr(PathOf(kCode, {3, 0})),
                                  HasSubstr("does not prove that user"))));
    // Another directory is another matter.
    ASSERT_TRUE(attacker.Put(kCode, kKey, Payload("payload")));
    ASSERT_EQ(::truncate((attacker_directory / name(kKey)).c_str(), kHeaderBytes), 0);
    EXPECT_EQ(attacker.Get(kCode, kKey), std::nullopt);
    EXPECT_EQ(g_warnings.size(), 4u);
}

TEST_F(DiskCacheTest, LinksAndPipesAreNotOpened) {
    TestDirectory elsewhere;
    ASSERT_TRUE(cache_.Put(kPlan, kKey, Payload("payload")));
    ASSERT_EQ(::rename(PathOf(kPlan).c_str(), (elsewhere / "moved").c_str()), 0);
    ASSERT_EQ(::symlink((elsewhere / "moved").c_str(), PathOf(kPlan).c_str()), 0);
    EXPECT_EQ(cache_.Get(kPlan, kKey), std::nullopt);
    ASSERT_EQ(::unlink(PathOf(kPlan).c_str()), 0);
    ASSERT_EQ(::mkfifo(PathOf(kPlan).c_str(), 0600), 0);
    EXPECT_EQ(cache_.Get(kPlan, kKey), std::nullopt);
    EXPECT_THAT(cache_.List(), IsEmpty());
}

TEST_F(DiskCacheTest, AFullDiskCostsOneWarning) {
    rlimit old_limit;
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const rlimit limit{kHeaderBytes + 10, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_FALSE(cache_.Put(kPlan, kKey, Payload("too long a payload")));
    EXPECT_FALSE(cache_.Put(kPlan, Hash128{1, 1}, Payload("too long a payload")));
    EXPECT_TRUE(cache_.Put(kPlan, Hash128{1, 2}, Payload("short")));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    EXPECT_THAT(g_warnings, ElementsAre(HasSubstr("A cache entry cannot be stored")));
    EXPECT_EQ(directory_.size(), 1u) << "nothing of the failed writes remains";
}

TEST_F(DiskCacheTest, AMissingDirectoryOnlyWarns) {
    DiskCache missing(directory_ / "missing");
    EXPECT_FALSE(DiskCache(directory_ / "missing").Put(kPlan, kKey, Payload("payload")));
    EXPECT_FALSE(missing.Put(kPlan, kKey, Payload("payload")));
    EXPECT_FALSE(missing.Put(kCode, kKey, Payload("payload")));
    EXPECT_EQ(missing.Get(kPlan, kKey), std::nullopt);
    EXPECT_THAT(missing.List(), IsEmpty());
    EXPECT_EQ(missing.Clear().removed_count, 0u);
    EXPECT_EQ(g_warnings.size(), 1u);
}

TEST_F(DiskCacheTest, ListAndClearTouchOurFilesOnly) {
    ASSERT_TRUE(cache_.Put(kPlan, kKey, Payload("payload")));
    ASSERT_TRUE(cache_.Put(kCode, kKey, Payload("code")));
    const std::string entry_name = "plan-" + Hash128{5, 6}.ToHex() + ".fxp";
    const std::string magic(Contents(kPlan).substr(0, 8));
    const std::vector<std::string> foreign = {
        "notes.txt",
        "plan-1234.fxp",
        "plan.fxp",
        "-.",
        entry_name + ".bak",
        entry_name + ".tmp-abc",
        "Plan-" + kKey.ToHex() + ".fxp",
    };
    for (const std::string& name : foreign) {
        ASSERT_TRUE(WriteFileAtomically(directory_ / name, magic + "foreign", 0600).ok());
    }
    // Our name, not our contents.
    ASSERT_TRUE(WriteFileAtomically(directory_ / entry_name, std::string("foreign"), 0600).ok());
    // What writes that were cut off left.
    ASSERT_TRUE(
        WriteFileAtomically(directory_ / (entry_name + ".tmp-abcdef"), std::string(), 0600).ok());
    ASSERT_TRUE(WriteFileAtomically(directory_ / (entry_name + ".tmp-abcdeg"), magic, 0600).ok());

    const std::vector<CacheEntry> entries = cache_.List();
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].kind, "kernel");
    EXPECT_EQ(entries[1].kind, "plan");
    EXPECT_EQ(entries[1].key, kKey);
    EXPECT_EQ(entries[1].size_bytes, kHeaderBytes + 7);
    EXPECT_GT(entries[1].modified, 0);

    const CacheClearResult cleared = cache_.Clear();
    EXPECT_EQ(cleared.removed_count, 4u);
    EXPECT_EQ(cleared.removed_bytes, 2 * kHeaderBytes + 7 + 4 + 8);
    EXPECT_EQ(cleared.failed_count, 0u);
    EXPECT_THAT(cache_.List(), IsEmpty());
    EXPECT_EQ(directory_.size(), foreign.size() + 1 + 1) << "the foreign files and the secret";
    EXPECT_TRUE(cache_.Put(kCode, kKey, Payload("code")));
    EXPECT_EQ(DiskCache(directory_.path()).Get(kCode, kKey), Payload("code"));
}

// --- The limit
// ---------------------------------------------------------------------------------

class DiskCacheLimit : public DiskCacheTest {
  protected:
    static constexpr uint64_t kEntryBytes = 1000;

    // Entries 0, 1, ..., last used in that order, long ago.
    void Fill(uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) {
            ASSERT_TRUE(
                cache_.Put(kPlan, {0, i}, std::vector<std::byte>(kEntryBytes - kHeaderBytes)));
            Age(i, static_cast<std::time_t>(1'000'000 + i));
        }
    }
    void Age(uint64_t entry, std::time_t used) {
        const struct timespec times[2] = {{used, 0}, {used, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, PathOf(kPlan, {0, entry}).c_str(), times, 0), 0);
    }
    std::vector<uint64_t> Left() const {
        std::vector<uint64_t> keys;
        for (const CacheEntry& entry : cache_.List()) {
            keys.push_back(entry.key.low);
        }
        return keys;
    }
};

TEST_F(DiskCacheLimit, WhatWasNotUsedForLongestGoes) {
    Fill(9);
    DiskCache enough(directory_.path(), 9 * kEntryBytes);
    EXPECT_EQ(enough.Trim().removed_count, 0u);
    EXPECT_NE(enough.Get(kPlan, {0, 0}), std::nullopt);  // used: it is the youngest now
    DiskCache small(directory_.path(), 8 * kEntryBytes);
    const CacheClearResult trimmed = small.Trim();
    EXPECT_EQ(trimmed.removed_count, 2u) << "to seven eighths";
    EXPECT_EQ(trimmed.removed_bytes, 2 * kEntryBytes);
    EXPECT_EQ(trimmed.failed_count, 0u);
    EXPECT_THAT(Left(), ElementsAre(0, 3, 4, 5, 6, 7, 8));
}

TEST_F(DiskCacheLimit, PutKeepsIt) {
    DiskCache small(directory_.path(), 8 * kEntryBytes);
    for (uint64_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(small.Put(kPlan, {0, i}, std::vector<std::byte>(kEntryBytes - kHeaderBytes)));
        EXPECT_LE(Left().size(), 9u);
        EXPECT_NE(small.Get(kPlan, {0, i}), std::nullopt);
    }
    EXPECT_GE(Left().size(), 7u);
}

TEST_F(DiskCacheLimit, OtherFilesStay) {
    Fill(3);
    const std::string foreign = PathOf(kPlan, {0, 77});
    ASSERT_TRUE(WriteFileAtomically(foreign, std::string(5000, 'x'), 0600).ok());
    const std::string notes = directory_ / "notes.txt";
    ASSERT_TRUE(WriteFileAtomically(notes, std::string(5000, 'x'), 0600).ok());
    DiskCache small(directory_.path(), 1);
    small.Trim();
    EXPECT_THAT(Left(), IsEmpty());
    EXPECT_EQ(::access(foreign.c_str(), F_OK), 0);
    EXPECT_EQ(::access(notes.c_str(), F_OK), 0);
}

TEST_F(DiskCacheLimit, ComesFromTheEnvironment) {
    unsetenv("FORNAX_CACHE_MIB");
    EXPECT_EQ(CacheLimitBytes(), uint64_t{4} << 30);
    setenv("FORNAX_CACHE_MIB", "3", 1);
    EXPECT_EQ(CacheLimitBytes(), uint64_t{3} << 20);
    setenv("FORNAX_CACHE_MIB", "0", 1);
    EXPECT_EQ(CacheLimitBytes(), 0u);
    DiskCache unlimited(directory_.path());
    Fill(3);
    EXPECT_EQ(unlimited.Trim().removed_count, 0u);
    EXPECT_THAT(g_warnings, IsEmpty());
    setenv("FORNAX_CACHE_MIB", "much", 1);
    EXPECT_EQ(CacheLimitBytes(), uint64_t{4} << 30);
    EXPECT_EQ(CacheLimitBytes(), uint64_t{4} << 30);
    EXPECT_THAT(g_warnings, ElementsAre("FORNAX_CACHE_MIB is 'much', which is not a number from 0 "
                                        "to 4294967295. The cache may take 4096 MiB."));
    unsetenv("FORNAX_CACHE_MIB");
}

TEST_F(DiskCacheTest, ReadersSeeWholeEntriesWhileWritersReplaceThem) {
    const auto one = Payload(std::string(20'000, '1')), two = Payload(std::string(30'000, '2'));
    ASSERT_TRUE(cache_.Put(kCode, kKey, one));
    std::vector<std::jthread> threads;
    for (const auto* payload : {&one, &two}) {
        threads.emplace_back([this, payload] {
            DiskCache writer(directory_.path());
            for (int i = 0; i < 100; ++i) {
                EXPECT_TRUE(writer.Put(kCode, kKey, *payload));
            }
        });
        threads.emplace_back([this, &one, &two] {
            for (int i = 0; i < 100; ++i) {
                const auto read = cache_.Get(kCode, kKey);
                ASSERT_TRUE(read.has_value());
                EXPECT_TRUE(*read == one || *read == two);
            }
        });
    }
    threads.clear();
    EXPECT_THAT(g_warnings, IsEmpty());
}

constexpr CacheKind kMapped = {.name = "big",
                               .extension = "bin",
                               .version = 1,
                               .executable = false,
                               .mapped = true};

TEST_F(DiskCacheTest, MapsFromAPageOn) {
    DiskCache cache(directory_.path());
    EXPECT_FALSE(cache.Map(kMapped, kKey).has_value());
    for (const std::string& text :
         {std::string("short"), std::string(100'000, 'x'), std::string()}) {
        ASSERT_TRUE(cache.Put(kMapped, kKey, Payload(text)));
        const std::optional<MappedPayload> mapped = cache.Map(kMapped, kKey);
        ASSERT_TRUE(mapped.has_value());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->bytes.data()) % 4096, 0u);
        EXPECT_EQ(*cache.Get(kMapped, kKey), Payload(text));
        // What is mapped stays when the entry goes.
        ASSERT_EQ(::unlink(PathOf(kMapped).c_str()), 0);
        EXPECT_EQ(std::vector(mapped->bytes.begin(), mapped->bytes.end()), Payload(text));
    }
    EXPECT_THAT(g_warnings, IsEmpty());
}

TEST_F(DiskCacheTest, DamagedEntriesAreNotMapped) {
    DiskCache cache(directory_.path());
    ASSERT_TRUE(cache.Put(kMapped, kKey, Payload("payload")));
    const std::string good = Contents(kMapped);
    std::string changed = good, short_one = good.substr(0, 1000);
    changed.back() ^= 1;
    for (const std::string& bad : {changed, short_one, good.substr(0, good.size() - 1)}) {
        Write(kMapped, bad);
        EXPECT_FALSE(cache.Map(kMapped, kKey).has_value());
        EXPECT_FALSE(Exists(kMapped));
    }
    EXPECT_FALSE(g_warnings.empty());
}

}  // namespace
}  // namespace fornax
