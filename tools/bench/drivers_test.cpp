// Names and the choice of drivers.
#include "tools/bench/drivers.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::bench {
namespace {
namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<Driver> TwoDrivers() {
    Driver fornax;
    fornax.name = "Fornax";
    fornax.manifest = "/drivers/fornax.json";
    Driver lavapipe;
    lavapipe.name = "lavapipe";
    lavapipe.manifest = "/drivers/lvp.json";
    return {fornax, lavapipe};
}

TEST(ShortDriverName, KnowsWhatDriversCallThemselves) {
    EXPECT_EQ(ShortDriverName("llvmpipe"), "lavapipe");
    EXPECT_EQ(ShortDriverName("SwiftShader driver"), "SwiftShader");
    EXPECT_EQ(ShortDriverName("Fornax"), "Fornax");
    EXPECT_EQ(ShortDriverName("Another"), "Another");
}

TEST(SelectDrivers, ByNameWithoutCaseByPartAndByManifest) {
    EXPECT_EQ(SelectDrivers(TwoDrivers(), {})->size(), 2u);
    EXPECT_EQ(SelectDrivers(TwoDrivers(), {"LAVA"})->front().name, "lavapipe");
    EXPECT_EQ(SelectDrivers(TwoDrivers(), {"/drivers/fornax.json"})->front().name, "Fornax");
    EXPECT_EQ(SelectDrivers(TwoDrivers(), {"lavapipe", "fornax"})->front().name, "Fornax");
}

TEST(SelectDrivers, UnknownNameListsWhatIsThere) {
    const auto selected = SelectDrivers(TwoDrivers(), {"fornax", "swiftshader"});
    ASSERT_FALSE(selected.ok());
    EXPECT_THAT(selected.error().message, HasSubstr("swiftshader"));
    EXPECT_THAT(selected.error().message, HasSubstr("Fornax, lavapipe"));
}

TEST(OtherBuildName, IsNewAmongTheDrivers) {
    std::vector<Driver> drivers = TwoDrivers();
    EXPECT_EQ(OtherBuildName(drivers), "Fornax build 2");
    drivers.emplace_back().name = "Fornax build 2";
    EXPECT_EQ(OtherBuildName(drivers), "Fornax build 3");
}

TEST(CandidateManifests, FollowsTheLoadersSearchPath) {
    std::string name = ::testing::TempDir() + "fornax_drivers_XXXXXX";
    const fs::path root = mkdtemp(name.data());
    fs::create_directories(root / "vulkan/icd.d");
    std::ofstream(root / "vulkan/icd.d/some_icd.json") << "{}";
    std::ofstream(root / "vulkan/icd.d/readme.txt") << "not a manifest";
    fs::create_symlink(root / "missing", root / "vulkan/icd.d/broken.json");
    setenv("XDG_DATA_HOME", root.c_str(), 1);
    const std::vector<fs::path> manifests = CandidateManifests();
    unsetenv("XDG_DATA_HOME");
    EXPECT_THAT(manifests, Contains(fs::canonical(root / "vulkan/icd.d/some_icd.json")));
    for (const fs::path& manifest : manifests) {
        EXPECT_EQ(manifest.extension(), ".json");
    }
    fs::remove_all(root);
}

}  // namespace
}  // namespace fornax::bench
