// Medians, ratios and both forms of the report, on made-up measurements.
#include "tools/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/bench/affinity.h"

namespace fornax::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Driver MakeDriver(const char* name, bool is_fornax = false) {
    Driver driver;
    driver.name = name;
    driver.is_fornax = is_fornax;
    return driver;
}

// Fornax copies at 20 GB/s and submits in 5 us; the others at 10 and 16 GB/s, and in 20 and 10 us.
Report MakeReport() {
    Report report;
    report.processor = "Test processor";
    report.limits.copy_gbs = 25;
    report.drivers = {MakeDriver("Fornax", true), MakeDriver("slow"), MakeDriver("fast")};
    report.rows = {
        {FindShape("copy"), 1 << 20, {{{20, 1, 30}, ""}, {{10}, ""}, {{16}, ""}}},
        {FindShape("submit"), 1, {{{5}, ""}, {{20}, ""}, {{10}, ""}}},
    };
    return report;
}

TEST(Measurement, MedianOfOddAndEvenCounts) {
    EXPECT_EQ((Measurement{{3, 1, 2}, ""}).Median(), 2);
    EXPECT_EQ((Measurement{{4, 1, 2, 3}, ""}).Median(), 2.5);
}

TEST(Measurement, IsNotOkWithAnErrorOrWithoutValues) {
    EXPECT_TRUE((Measurement{{1}, ""}).ok());
    EXPECT_FALSE((Measurement{{}, ""}).ok());
    EXPECT_FALSE((Measurement{{1}, "It crashed."}).ok());
}

TEST(Report, RatiosSayHowManyTimesBetterForRatesAndTimes) {
    const Report report = MakeReport();
    EXPECT_DOUBLE_EQ(RatioTo(report, report.rows[0], 1), 2.0);
    EXPECT_DOUBLE_EQ(RatioToBestOther(report, report.rows[0]), 1.25);
    EXPECT_DOUBLE_EQ(RatioTo(report, report.rows[1], 1), 4.0);
    EXPECT_DOUBLE_EQ(RatioToBestOther(report, report.rows[1]), 2.0);
}

TEST(Report, FailedCellsHaveNoRatio) {
    Report report = MakeReport();
    EXPECT_FALSE(report.HasFailures());
    report.rows[0].cells[2] = {{}, "It crashed with signal 11 (Segmentation fault)."};
    EXPECT_TRUE(report.HasFailures());
    EXPECT_EQ(RatioTo(report, report.rows[0], 2), 0);
    EXPECT_DOUBLE_EQ(RatioToBestOther(report, report.rows[0]), 2.0);
    const std::string text = FormatReport(report);
    EXPECT_THAT(text, HasSubstr("failed"));
    EXPECT_THAT(text, HasSubstr("copy on fast: It crashed with signal 11"));
}

TEST(Report, TableShowsRatiosAndTheShareOfTheLimit) {
    const std::string text = FormatReport(MakeReport());
    EXPECT_THAT(text, HasSubstr("vs best other"));
    EXPECT_THAT(text, HasSubstr("2.00x"));
    EXPECT_THAT(text, HasSubstr("1.25x"));
    EXPECT_THAT(text, HasSubstr("80 % copy"));
}

TEST(Report, WithoutFornaxThereAreNoRatios) {
    Report report = MakeReport();
    report.drivers.erase(report.drivers.begin());
    for (ReportRow& row : report.rows) {
        row.cells.erase(row.cells.begin());
    }
    EXPECT_EQ(RatioToBestOther(report, report.rows[0]), 0);
    const std::string text = FormatReport(report);
    EXPECT_THAT(text, Not(HasSubstr("vs ")));
    EXPECT_THAT(text, Not(HasSubstr("of limit")));
}

TEST(Report, SaysWhenTheMachineWasBusy) {
    Report report = MakeReport();
    report.limits.threads = 4;
    report.load_average = 0.9;
    EXPECT_THAT(FormatReport(report), Not(HasSubstr("busy")));
    report.load_average = 1.1;
    EXPECT_THAT(FormatReport(report), HasSubstr("busy when the run began (load average 1.1)"));
}

TEST(Report, JsonKeepsEveryValue) {
    const nlohmann::json json = ReportToJson(MakeReport());
    const nlohmann::json& copy = json["benchmarks"][0];
    EXPECT_EQ(copy["name"], "copy");
    EXPECT_EQ(copy["results"]["Fornax"]["values"], (std::vector<double>{20, 1, 30}));
    EXPECT_EQ(copy["results"]["Fornax"]["median"], 20);
    EXPECT_EQ(copy["results"]["slow"]["fornax_ratio"], 2.0);
    EXPECT_EQ(copy["fornax_ratio_to_best_other"], 1.25);
    EXPECT_EQ(copy["limit"], 25);
    EXPECT_EQ(copy["limit_name"], "copy");
}

TEST(Report, SaysWhatItWasMeasuredWith) {
    Report report = MakeReport();
    report.limits.threads = 1;
    EXPECT_THAT(FormatReport(report), HasSubstr("1 thread;"));
    EXPECT_THAT(FormatReport(report), Not(HasSubstr("kernels for")));
    report.target = "haswell";
    EXPECT_THAT(FormatReport(report), HasSubstr("1 thread, Fornax's kernels for haswell;"));
    EXPECT_EQ(ReportsToJson({report})["target"], "haswell");
    const nlohmann::json several = ReportsToJson({report, MakeReport()});
    ASSERT_EQ(several["runs"].size(), 2u);
    EXPECT_EQ(several["runs"][1]["target"], "native");
}

TEST(Affinity, IsForAWhileAndNotForMoreThanThereIs) {
    const int all = AvailableThreads();
    {
        auto one = ScopedAffinity::Create(1);
        ASSERT_TRUE(one.ok()) << one.error().message;
        EXPECT_EQ(AvailableThreads(), 1);
        EXPECT_EQ(MeasureHostLimits(/*quick=*/true, 128).threads, 1);
    }
    EXPECT_EQ(AvailableThreads(), all);
    auto many = ScopedAffinity::Create(all + 1);
    ASSERT_FALSE(many.ok());
    EXPECT_THAT(many.error().message, HasSubstr(std::to_string(all + 1)));
}

TEST(Shapes, NamesAreUniqueAndValuesFollowTheUnit) {
    for (const Shape& shape : AllShapes()) {
        EXPECT_EQ(FindShape(shape.name), &shape);
    }
    const Shape& copy = *FindShape("copy");
    EXPECT_DOUBLE_EQ(copy.Value(0.5, 1000000000), 4.0);  // read and written: 2 GB in half a second
    const Shape& dispatches = *FindShape("dispatch_barrier");
    EXPECT_DOUBLE_EQ(dispatches.Value(0.002, 1000), 2.0);  // 2 ms for 1,000 are 2 us each
    EXPECT_EQ(FindShape("no such shape"), nullptr);
}

}  // namespace
}  // namespace fornax::bench
