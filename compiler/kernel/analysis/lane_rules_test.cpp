// One operation on an index in; the lanes of its result out: proven where the index' base is known,
// assumed where it is not.
#include "compiler/kernel/analysis/lane_rules.h"

#include <gtest/gtest.h>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/lane_speculation.h"
#include "compiler/kernel/analysis/test_kernel.h"

namespace fornax::kernel {
namespace {

// The lanes of %v, 16 of them; what is proven needs no assumption.
std::string LanesText(const std::string& body) {
    const ir::Kernel kernel = TestKernel(body + "\n" + Stores({"v"}));
    const LaneAnalysis patterns(kernel, 16, FindWorkgroupLevel(kernel));
    LaneSpeculation lanes(kernel, patterns);
    const std::vector<ir::ValueId> stored = StoredValues(kernel);
    return stored.empty() ? "" : lanes.Text(stored.back());
}

struct Case {
    std::string operation;
    std::string proven;
    std::string assumed;
};

void Check(const std::vector<Case>& cases) {
    for (const Case& at : cases) {
        SCOPED_TRACE(at.operation);
        const std::string operation = R"(
            %three:i32 = const 3
            %six:i32 = const 6
            %seven:i32 = const 7
            %twelve:i32 = const 12
            %v:i32 = )" + at.operation;
        // Value 10, whose base is a multiple of 16 below 128, or anything.
        EXPECT_EQ(LanesText("%x:i32 = iadd %i, %c64" + operation), at.proven);
        EXPECT_EQ(LanesText("%x:i32 = iadd %i, %n" + operation), at.assumed);
    }
}

TEST(LaneRules, NothingHasToHoldOfSumsAndMultiples) {
    Check({{"iadd %x, %i", "0..30/2", "0..30/2"},
           {"isub %n, %x", "0..-15/-1", "0..-15/-1"},
           {"imul %x, %three", "0..45/3", "0..45/3"},
           {"shl %x, %three", "0..120/8", "0..120/8"}});
}

TEST(LaneRules, QuotientsNeedRoom) {
    const std::string lanes = "8*0 8*1";
    const std::string room = "%10 % 8 + 7 < 8";
    const std::string unsigned_room = lanes + "; if %10 <= 4294967280, " + room;
    const std::string signed_room = lanes + "; if %10 <= 2147483632, " + room;
    Check({{"lshr %x, %three", lanes, unsigned_room},
           {"udiv %x, %eight", lanes, unsigned_room},
           {"ashr %x, %three", lanes, signed_room},
           {"sdiv %x, %eight", lanes, signed_room}});
}

TEST(LaneRules, RemaindersNeedRoom) {
    const std::string lanes = "0..7 0..7";
    const std::string room = "%10 % 8 + 7 < 8";
    const std::string signed_room = lanes + "; if %10 <= 2147483632, " + room;
    Check({{"urem %x, %eight", lanes, lanes + "; if %10 <= 4294967280, " + room},
           {"srem %x, %eight", lanes, signed_room},
           {"smod %x, %eight", lanes, signed_room}});
}

// Known zeros prove nothing of other sizes than powers of two.
TEST(LaneRules, OtherSizesAreAssumed) {
    Check({{"udiv %x, %twelve", "12*0 4*1; if %10 % 12 + 11 < 12",
            "12*0 4*1; if %10 <= 4294967280, %10 % 12 + 11 < 12"},
           {"smod %x, %twelve", "0..11 0..3; if %10 % 12 + 11 < 12",
            "0..11 0..3; if %10 <= 2147483632, %10 % 12 + 11 < 12"}});
}

// Low bits do not care what wraps; nothing is assumed of other masks.
TEST(LaneRules, Masks) {
    Check({{"and %x, %seven", "0..7 0..7", "0..7 0..7; if %10 % 8 + 7 < 8"},
           {"and %x, %six", "2*0 2*2 2*4 2*6 2*0 2*2 2*4 2*6",
            "2*0 2*2 2*4 2*6 2*0 2*2 2*4 2*6; if %15 has them"}});
}

TEST(LaneRules, BitsBesideEachOtherAdd) {
    const auto combined = [](const std::string& bits) {
        return LanesText("%x:i32 = imul %i, %eight\n" + bits);
    };
    const std::string low = "%seven:i32 = const 7\n%low:i32 = and %n, %seven\n";
    EXPECT_EQ(combined(low + "%v:i32 = or %x, %low"), "0..120/8");
    EXPECT_EQ(combined(low + "%v:i32 = xor %low, %x"), "0..120/8");
    EXPECT_EQ(combined("%v:i32 = or %x, %n"), "0..120/8; if (%10 | %7) & 127 == 0");
    EXPECT_EQ(combined("%v:i32 = or %x, %i"), "0..135/9; if %11 has them");
}

TEST(LaneRules, WideningNeedsTheRange) {
    const auto widened = [](const std::string& op, const std::string& more) {
        return LanesText("%x:i32 = iadd %i, %" + more + "\n%w:i64 = " + op + " %x\n" +
                         "%v:i32 = trunc %w");
    };
    for (const std::string op : {"zext", "sext"}) {
        EXPECT_EQ(widened(op, "c64"), "0..15");
    }
    EXPECT_EQ(widened("zext", "n"), "0..15; if %10 <= 4294967280");
    EXPECT_EQ(widened("sext", "n"), "0..15; if %10 <= 2147483632");
}

}  // namespace
}  // namespace fornax::kernel
