// Kernel IR in; how values differ between lanes, and which constructs lanes leave one by one, out.
#include "compiler/kernel/analysis/lane_patterns.h"

#include <gtest/gtest.h>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/test_kernel.h"

namespace fornax::kernel {
namespace {

std::string Text(const LanePattern& pattern) {
    const auto numbers = [](const auto& list) {
        std::string text;
        for (const auto& number : list) {
            text += " " + std::to_string(number);
        }
        return text;
    };
    switch (pattern.kind) {
        case LanePattern::Kind::kUnknown:
            return "unknown";
        case LanePattern::Kind::kUniform:
            return "uniform";
        case LanePattern::Kind::kOffsets:
            return "pattern" + numbers(pattern.offsets);
        case LanePattern::Kind::kRows:
            return "pattern" + numbers(pattern.offsets) + " rows" + numbers(pattern.rows) +
                   " of %" + std::to_string(pattern.stride.value());
        case LanePattern::Kind::kVarying:
            return "varying" + numbers(pattern.groups);
    }
    return "";
}

LaneAnalysis Analysed(const ir::Kernel& kernel, uint32_t lanes) {
    return {kernel, lanes, FindWorkgroupLevel(kernel)};
}

// Describes %v, with 8 lanes.
std::string OfValue(const std::string& body,
                    const std::string& attributes = "workgroup_size(64, 1, 1)") {
    const ir::Kernel kernel = TestKernel(body + "\n" + Stores({"v"}), attributes);
    const std::vector<ir::ValueId> stored = StoredValues(kernel);
    return stored.empty() ? "" : Text(Analysed(kernel, 8).pattern(stored.back()));
}

TEST(Patterns, UniformValues) {
    EXPECT_EQ(OfValue("%v:i32 = iadd %n, %group"), "uniform");
    EXPECT_EQ(OfValue("%v:i32 = load_buffer %in, %n align(4)"), "uniform");
    EXPECT_EQ(OfValue("%v:i32 = udiv %n, %group"), "uniform");
}

TEST(Patterns, LinearPatterns) {
    EXPECT_EQ(OfValue("%v:i32 = iadd %i, %n"), "pattern 0 1 2 3 4 5 6 7");
    EXPECT_EQ(OfValue("%v:i32 = imul %i, %four"), "pattern 0 4 8 12 16 20 24 28");
    EXPECT_EQ(OfValue("%v:i32 = isub %n, %i"), "pattern 0 -1 -2 -3 -4 -5 -6 -7");
}

// The first lane's index is a multiple of 8.
TEST(Patterns, PiecewisePatterns) {
    EXPECT_EQ(OfValue("%v:i32 = lshr %i, %one"), "pattern 0 0 1 1 2 2 3 3");
    EXPECT_EQ(OfValue("%v:i32 = udiv %i, %four"), "pattern 0 0 0 0 1 1 1 1");
    EXPECT_EQ(OfValue("%v:i32 = urem %i, %four"), "pattern 0 1 2 3 0 1 2 3");
    EXPECT_EQ(OfValue("%three:i32 = const 3\n%v:i32 = and %i, %three"), "pattern 0 1 2 3 0 1 2 3");
}

// Nothing is known of the low bits of a sum with a value of run time.
TEST(Patterns, QuotientsOfSumsVary) {
    EXPECT_EQ(OfValue("%s:i32 = iadd %i, %n\n%v:i32 = udiv %s, %four"), "varying");
    EXPECT_EQ(OfValue("%g:i32 = imul %group, %c64\n%s:i32 = iadd %i, %g\n%v:i32 = udiv %s, %four"),
              "pattern 0 0 0 0 1 1 1 1");
}

TEST(Patterns, RowsOfASymbolicStride) {
    EXPECT_EQ(OfValue("%x:i32 = builtin local_id_x\n%y:i32 = builtin local_id_y\n"
                      "%row:i32 = imul %y, %n\n%v:i32 = iadd %row, %x",
                      "workgroup_size(4, 16, 1)"),
              "pattern 0 1 2 3 0 1 2 3 rows 0 0 0 0 1 1 1 1 of %7");
}

// Vectors part a plane that they do not divide anywhere in a row, but one row in order.
TEST(Patterns, RowsThatVectorsDoNotDivide) {
    const std::string x = "%v:i32 = builtin local_id_x";
    EXPECT_EQ(OfValue(x, "workgroup_size(20, 1, 1)"), "pattern 0 1 2 3 4 5 6 7");
    EXPECT_EQ(OfValue(x, "workgroup_size(20, 3, 1)"), "varying");
    EXPECT_EQ(OfValue(x, "workgroup_size(20, 1, 2)"), "varying");
}

// Rows of four, two in a vector: the last vector's second half lies past the end.
TEST(Patterns, LastRowsMayEndBeforeTheVector) {
    const std::string y = "%v:i32 = builtin local_id_y";
    EXPECT_EQ(OfValue(y, "workgroup_size(4, 5, 1)"), "pattern 0 0 0 0 1 1 1 1");
    EXPECT_EQ(OfValue(y, "workgroup_size(4, 5, 2)"), "varying");
}

TEST(Patterns, BoundsAndZerosTravel) {
    const ir::Kernel kernel = TestKernel(
        "%a:i32 = imul %group, %c64\n%b:i32 = lshr %i, %four\n%c:i32 = imul %i, %eight\n" +
        Stores({"a", "b", "c"}));
    const LaneAnalysis patterns = Analysed(kernel, 8);
    const std::vector<ir::ValueId> stored = StoredValues(kernel);
    ASSERT_EQ(stored.size(), 3u);
    EXPECT_EQ(patterns.pattern(stored[0]).base_zeros, 6);
    EXPECT_EQ(patterns.pattern(stored[1]).max, 3u);
    EXPECT_EQ(patterns.pattern(stored[2]).max, 504u);
}

TEST(Patterns, LoopsOfVaryingLengthDiverge) {
    const auto facts = [](const std::string& limit) {
        const ir::Kernel kernel = TestKernel(R"(
            %length:i32 = load_buffer %in, %i align(4)
            loop @0 (%k:i32 = %zero) {
              %goes:bool = ult %k, %)" + limit +
                                             R"(
              if %goes {
                yield
              } else {
                exit @0
              }
              continue @0
            } continuing () {
              %next:i32 = iadd %k, %one
              next %next
            })");
        const LaneAnalysis patterns = Analysed(kernel, 8);
        for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
            if (kernel.inst(ir::InstId{i}).op == ir::Op::kLoop) {
                return patterns.facts(ir::InstId{i}).divergent;
            }
        }
        ADD_FAILURE();
        return false;
    };
    EXPECT_FALSE(facts("n"));
    EXPECT_TRUE(facts("length"));
}

}  // namespace
}  // namespace fornax::kernel
