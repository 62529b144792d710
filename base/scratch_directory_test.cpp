#include "base/scratch_directory.h"

#include <sys/stat.h>

#include <fstream>

#include <gtest/gtest.h>

namespace fornax {
namespace {

TEST(ScratchDirectory, IsPrivateAndIsRemovedWithItsContents) {
    std::filesystem::path path;
    {
        Result<ScratchDirectory> scratch = ScratchDirectory::Create("test");
        ASSERT_TRUE(scratch.ok()) << scratch.error().message;
        path = scratch->path();
        std::ofstream(*scratch / "file") << "text";
        struct stat status = {};
        ASSERT_EQ(stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777U, 0700U);
        const ScratchDirectory moved = std::move(*scratch);
        EXPECT_TRUE(std::filesystem::exists(moved / "file"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace fornax
