#include "tools/replay/table.h"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npu/replay/test_records.h"
#include "tools/replay/sweep_rows.h"

namespace fornax::tool {
namespace {

using testing::HasSubstr;

TEST(Csv, QuotesWhatNeedsIt) {
    const std::vector<Column> columns = {{"name", std::vector<std::string>{"a", "b,\"c\"", "d\ne"}},
                                         {"count", std::vector<int64_t>{1, -2, 3}},
                                         {"size", std::vector<double>{0.1, NAN, 1e300}}};
    EXPECT_EQ(CsvOf(columns),
              "name,count,size\r\na,1,0.1\r\n\"b,\"\"c\"\"\",-2,\r\n\"d\ne\",3,1e+300\r\n");
}

TEST(Parquet, IsFramed) {
    const std::vector<Column> columns = {{"count", std::vector<int64_t>{1, 2}}};
    const std::string file = ParquetOf(columns, {{"stamp", "modelled"}});
    EXPECT_TRUE(file.starts_with("PAR1"));
    EXPECT_TRUE(file.ends_with("PAR1"));
    uint32_t footer = 0;
    std::memcpy(&footer, file.data() + file.size() - 8, 4);
    EXPECT_LT(footer, file.size() - 12);
    EXPECT_THAT(file, HasSubstr("modelled"));
}

TEST(SweepRows, AreReadAsTheyWereWritten) {
    std::vector<npu::SweepRow> rows(2);
    rows[0] = {.failure = "",
               .description = {1, 2},
               .program_ns = {0.1, 1.0 / 3},
               .time_ns = 0.1 + 1.0 / 3,
               .energy_nj = 1e30,
               .area_mm2 = 5e-324,
               .dram_bytes = UINT64_MAX,
               .spill_bytes = 7,
               .matrix_busy = 0.25,
               .dram_busy = 1};
    rows[1].failure = "It is \"odd\".";
    const std::string text = RowLine(1, rows[1]) + RowLine(0, rows[0]);
    std::vector<npu::SweepRow> read(2);
    const Status status = ReadRowLines(text, 2, read);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(RowLine(i, read[i]), RowLine(i, rows[i]));
        EXPECT_EQ(read[i].time_ns, rows[i].time_ns);
        EXPECT_EQ(read[i].program_ns, rows[i].program_ns);
    }
    const auto error = [&](const std::string& of, size_t programs = 2) {
        std::vector<npu::SweepRow> into(2);
        return ReadRowLines(of, programs, into).error().message;
    };
    EXPECT_EQ(error(RowLine(1, rows[1])), "A row of the cluster is missing, 0.");
    EXPECT_EQ(error(text + RowLine(0, rows[0])), "A row of the cluster is there twice, 0.");
    EXPECT_EQ(error(RowLine(2, rows[0])), "A row of the cluster is no row of this sweep.");
    EXPECT_EQ(error("nothing"), "A row of the cluster is no row of this sweep.");
    EXPECT_EQ(error(text, 3), "A row of the cluster lacks a value, 0.");
    EXPECT_EQ(error("{\"index\":0}"), "A row of the cluster lacks a value, 0.");
}

TEST(SweepTable, HasARowForEachDescription) {
    const npu::Space space = *npu::ParseSpace(
        "base = \"edge-4\"\n[cores]\nclusters = [1, 2]\n[matrix]\ndataflow = [\"best\", "
        "\"weight-stationary\"]\n[scratchpad]\nbytes = [524288, 4194304]\n",
        "space.toml", ".");
    npu::Record faults = {.work = npu::StreamRecord("needs", 100, 100)};
    std::get<npu::DispatchRecord>(faults.work).scratchpad = {
        .least_bytes = 1 << 20, .preferred_bytes = 1 << 20, .may_spill = false};
    const std::vector<std::vector<npu::Record>> programs = {
        {{.work = npu::ProductRecord("p", {64, 64, 64}, npu::MatrixType::kInt8)}}, {faults}};
    const std::vector<npu::SweepRow> rows = *npu::RunSweep(space, programs, {});
    const std::vector<std::string> names = {"one", "two"};
    const std::vector<Column> columns = SweepColumns(space, rows, names);
    for (const Column& column : columns) {
        EXPECT_EQ(column.size(), 8U) << column.name;
    }
    const std::string csv = CsvOf(columns);
    EXPECT_THAT(csv, testing::StartsWith(
                         "cores.clusters,matrix.dataflow,scratchpad.bytes,modelled_time_ns,"
                         "modelled_time_ns:one,modelled_time_ns:two,modelled_energy_nj,"
                         "area_proxy_mm2,matrix_busy,dram_busy,dram_bytes,spill_bytes,pareto,"
                         "description_hash,model_version,failure\r\n"
                         "1,best,524288,,,,,,,,,,0,,5,"));
    EXPECT_THAT(csv, HasSubstr("1,weight-stationary,4194304,"));
    EXPECT_THAT(ParetoText(space, rows, 20), HasSubstr("mm2 (proxy)"));
    EXPECT_EQ(SweepStamp(space),
              "modelled, uncalibrated (sweep of 8 descriptions of edge-4, model 5)");
}

}  // namespace
}  // namespace fornax::tool
