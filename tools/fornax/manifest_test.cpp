// Finding the manifest in a build tree, in an installation and by FORNAX_MANIFEST.
#include "tools/fornax/manifest.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::tool {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ManifestTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "fornax_manifest_XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        root_ = name;
    }
    void TearDown() override { fs::remove_all(root_); }

    fs::path Touch(const fs::path& relative) {
        fs::create_directories((root_ / relative).parent_path());
        std::ofstream(root_ / relative) << "{}";
        return root_ / relative;
    }

    fs::path root_;
};

TEST_F(ManifestTest, BuildTreeComesBeforeInstallation) {
    const fs::path installed = Touch("share/vulkan/icd.d" / ManifestFileName());
    auto found = FindManifest(root_ / "bin" / "fornax", nullptr);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, installed);

    const fs::path built = Touch("icd" / ManifestFileName());
    found = FindManifest(root_ / "bin" / "fornax", nullptr);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, built);
}

TEST_F(ManifestTest, OverrideWins) {
    Touch("icd" / ManifestFileName());
    const fs::path other = Touch("other.json");
    auto found = FindManifest(root_ / "bin" / "fornax", other.c_str());
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, other);
}

TEST_F(ManifestTest, EmptyOverrideIsUnset) {
    const fs::path built = Touch("icd" / ManifestFileName());
    auto found = FindManifest(root_ / "bin" / "fornax", "");
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, built);
}

TEST_F(ManifestTest, MissingOverrideIsAnErrorEvenWhenAManifestExists) {
    Touch("icd" / ManifestFileName());
    auto found = FindManifest(root_ / "bin" / "fornax", "/nowhere/fornax.json");
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(found.error().message, HasSubstr("/nowhere/fornax.json"));
}

TEST_F(ManifestTest, NothingFoundNamesBothPlaces) {
    auto found = FindManifest(root_ / "bin" / "fornax", nullptr);
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.error().message, HasSubstr((root_ / "icd").string()));
    EXPECT_THAT(found.error().message, HasSubstr((root_ / "share/vulkan/icd.d").string()));
}

TEST(SelectDriver, SetsBothVariablesAndClearsFilters) {
    setenv("VK_LOADER_DRIVERS_DISABLE", "*fornax*", 1);
    SelectDriver("/some/fornax.json");
    EXPECT_STREQ(std::getenv("VK_DRIVER_FILES"), "/some/fornax.json");
    EXPECT_STREQ(std::getenv("VK_ICD_FILENAMES"), "/some/fornax.json");
    EXPECT_EQ(std::getenv("VK_LOADER_DRIVERS_DISABLE"), nullptr);
}

}  // namespace
}  // namespace fornax::tool
