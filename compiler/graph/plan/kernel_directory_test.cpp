// Directories of plans: found by their hashes, damaged files are told and stay.
#include "compiler/graph/plan/kernel_directory.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"
#include "compiler/graph/plan/test_plan.h"

namespace fornax::graph {
namespace {

using testing::HasSubstr;

constexpr Hash128 kKey = {1, 2}, kOther = {3, 4};

TEST(KernelDirectory, FindsWhatItWrote) {
    const TestDirectory directory;
    const KernelDirectory kernels(directory.path() + "/made/by/it");
    EXPECT_EQ(kernels.Find(kKey).error().code, ErrorCode::kNotFound);
    Plan plan = MakeTestPlan();
    ASSERT_TRUE(kernels.Write(kKey, plan).ok());
    const Result<Plan> found = kernels.Find(kKey);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(ToText(*found), ToText(plan));
    EXPECT_EQ(found->graph_hash, kKey.ToHex());
    const Result<Plan> missing = kernels.Find(kOther);
    ASSERT_FALSE(missing.ok());
    EXPECT_THAT(missing.error().message, HasSubstr(kOther.ToHex() + ".plan"));
}

TEST(KernelDirectory, DamagedFilesAreToldAndStay) {
    const TestDirectory directory;
    const KernelDirectory kernels(directory.path());
    Plan plan = MakeTestPlan();
    ASSERT_TRUE(kernels.Write(kKey, plan).ok());
    const std::string file = kernels.FileOf(kKey);
    const std::vector<std::byte> whole = *ReadFile(file, 1 << 20);
    for (const size_t size : {size_t{0}, size_t{5}, whole.size() / 2, whole.size() - 1}) {
        ASSERT_TRUE(WriteFileAtomically(file, std::span(whole).first(size), 0644).ok());
        const Result<Plan> damaged = kernels.Find(kKey);
        ASSERT_FALSE(damaged.ok()) << size;
        EXPECT_NE(damaged.error().code, ErrorCode::kNotFound) << size;
        EXPECT_THAT(damaged.error().message, HasSubstr(file));
        EXPECT_EQ(std::filesystem::file_size(file), size);
    }
    std::vector<std::byte> changed = whole;
    changed[changed.size() / 2] ^= std::byte{1};
    ASSERT_TRUE(WriteFileAtomically(file, std::span<const std::byte>(changed), 0644).ok());
    EXPECT_EQ(kernels.Find(kKey).error().code, ErrorCode::kDataLoss);
}

// A file under another graph's name must not run in its place.
TEST(KernelDirectory, APlanOfAnotherGraphIsRefused) {
    const TestDirectory directory;
    const KernelDirectory kernels(directory.path());
    Plan plan = MakeTestPlan();
    ASSERT_TRUE(kernels.Write(kKey, plan).ok());
    std::filesystem::rename(kernels.FileOf(kKey), kernels.FileOf(kOther));
    const Result<Plan> foreign = kernels.Find(kOther);
    ASSERT_FALSE(foreign.ok());
    EXPECT_EQ(foreign.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(foreign.error().message, HasSubstr(kKey.ToHex()));
}

TEST(KernelDirectory, KeepsWhatIsKnownOfFamilies) {
    const TestDirectory directory;
    const KernelDirectory kernels(directory.path() + "/made");
    EXPECT_EQ(kernels.FindFamily(kKey).error().code, ErrorCode::kNotFound);
    FamilyRecord record;
    record.AddBasis({{1, 2}, {3, 2}});
    ASSERT_TRUE(kernels.WriteFamily(kKey, record).ok());
    const Result<FamilyRecord> found = kernels.FindFamily(kKey);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(*found, record);
    // That of another family under this name.
    std::filesystem::rename(kernels.FamilyFileOf(kKey), kernels.FamilyFileOf(kOther));
    EXPECT_EQ(kernels.FindFamily(kOther).error().code, ErrorCode::kDataLoss);
}

TEST(KernelDirectory, APlaceThatCannotBeWrittenIsAnError) {
    Plan plan = MakeTestPlan();
    EXPECT_FALSE(KernelDirectory("/proc/nowhere").Write(kKey, plan).ok());
}

}  // namespace
}  // namespace fornax::graph
