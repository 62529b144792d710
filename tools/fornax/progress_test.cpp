// The text of the indicator; that it stays away from files is tested with the command.
#include "tools/fornax/progress.h"

#include <gtest/gtest.h>

namespace fornax::tool {
namespace {

TEST(Progress, IsABarWhereTheTotalIsKnown) {
    EXPECT_EQ(ProgressText("compiling", 0, 0), "compiling ...");
    EXPECT_EQ(ProgressText("kernels", 0, 3), "kernels [------------------------------] 0/3");
    EXPECT_EQ(ProgressText("kernels", 1, 3), "kernels [##########--------------------] 1/3");
    EXPECT_EQ(ProgressText("kernels", 3, 3), "kernels [##############################] 3/3");
    EXPECT_EQ(ProgressText("kernels", 9, 3), "kernels [##############################] 9/3");
}

}  // namespace
}  // namespace fornax::tool
