// Which loops become one, and what expressions are then.
#include "compiler/graph/loop/loop_nests.h"

#include <gtest/gtest.h>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {
namespace {

constexpr const char* kCopy = R"(kernel copy(in x: f32[n,8], out y: f32[n,8])
  sizes n in 1..4096
  parallel $i < n, $j < 8
  %0 = load x[$i, $j]
  store y[$i, $j] = %0
)";

constexpr const char* kTranspose = R"(kernel transpose(in x: f32[8,n], out y: f32[n,8])
  sizes n in 1..4096
  parallel $i < n, $j < 8
  %0 = load x[$j, $i]
  store y[$i, $j] = %0
)";

class LoopNestsTest : public testing::Test {
  protected:
    void Use(const char* text) {
        const Result<Kernel> kernel = ParseKernel(text);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        kernel_ = *kernel;
        scope_ = FindScope(kernel_);
        domain_.ranges = kernel_.sizes;
        for (const Loop& loop : scope_.variables) {
            domain_.AddVariable(loop.variable, loop.extent);
        }
    }
    Nest Collapsed() {
        const std::vector<bool> all(kernel_.scalars.size(), true);
        return nests_.Collapse(kernel_.parallel, nests_.UsesIn(all, kernel_.stores));
    }

    const Expr n_ = Expr(Symbol("n")), i_ = Expr(Symbol("$i")), j_ = Expr(Symbol("$j"));
    Kernel kernel_;
    Scope scope_;
    Domain domain_;
    LoopNests nests_ = LoopNests(kernel_, scope_, domain_);
};

TEST_F(LoopNestsTest, LoopsThatAllAccessesSeeAsOneBecomeOne) {
    Use(kCopy);
    const Nest nest = Collapsed();
    ASSERT_EQ(nest.loops.size(), 1);
    EXPECT_EQ(nest.loops[0].extent, 8 * n_);
    EXPECT_EQ(nest.variables, scope_.parallel);
    const Expr merged(nest.loops[0].variable);
    EXPECT_EQ(nests_.Simplified(8 * i_ + j_), merged);
    // An expression that no access has is one of the loop that is left, all the same.
    EXPECT_EQ(nests_.Simplified(j_), merged - 8 * FloorDiv(merged, 8));
    EXPECT_EQ(nests_.Simplified(i_), FloorDiv(merged, 8));
}

TEST_F(LoopNestsTest, LoopsThatAnAccessSeesApartStayTwo) {
    Use(kTranspose);
    EXPECT_EQ(Collapsed().loops.size(), 2);
    EXPECT_EQ(nests_.Simplified(8 * i_ + j_), 8 * i_ + j_);
}

TEST_F(LoopNestsTest, LoopsAreSeveralAgainBehindAMergeScope) {
    Use(kCopy);
    {
        const MergeScope scope(nests_);
        Collapsed();
        EXPECT_FALSE(nests_.Simplified(i_) == i_);
    }
    EXPECT_EQ(nests_.Simplified(i_), i_);
}

TEST_F(LoopNestsTest, IndicesAreProvenByTheirRanges) {
    Use(kCopy);
    EXPECT_TRUE(nests_.HasNoNegativeExtents());
    EXPECT_TRUE(nests_.Proven(j_, 8));
    EXPECT_FALSE(nests_.Proven(j_ + 1, 8));
    EXPECT_FALSE(nests_.Proven(j_ - 1, 8));
    EXPECT_EQ(nests_.Offset(BufferId(0), {i_, j_}), 8 * i_ + j_);
}

}  // namespace
}  // namespace fornax::graph::loop
