// Spaces of descriptions, and sweeps over them.
#include "npu/sweep/sweep.h"

#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "npu/description/read.h"
#include "npu/replay/test_records.h"

namespace fornax::npu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSpace =
    "base = \"laptop-45\"\n"
    "[cores]\n"
    "clusters = [1, 2, 6]\n"
    "[dram]\n"
    "bandwidth_gbs = [68.25, 136.5]\n"
    "latency_ns = 200\n";

Space SpaceOf(std::string_view text) {
    Result<Space> space = ParseSpace(text, "space.toml", ".");
    EXPECT_TRUE(space.ok()) << space.error().message;
    return space.ok() ? std::move(space).value() : Space();
}

std::string ErrorOf(std::string_view text) {
    const Result<Space> space = ParseSpace(text, "space.toml", ".");
    EXPECT_FALSE(space.ok());
    return space.ok() ? "" : space.error().message;
}

std::vector<std::vector<Record>> Programs() {
    return {{{.work = ProductRecord("p", {256, 256, 256}, MatrixType::kInt8)}},
            RandomRecords(3, {.queues = 2})};
}

TEST(NpuSpace, IsTheCrossProductOfItsLists) {
    const Space space = SpaceOf(kSpace);
    ASSERT_EQ(space.count(), 6U);
    ASSERT_EQ(space.axes.size(), 2U);
    EXPECT_EQ(space.axes[0].name(), "cores.clusters");
    EXPECT_EQ(space.axes[1].name(), "dram.bandwidth_gbs");
    std::vector<std::pair<uint64_t, double>> found;
    for (uint64_t i = 0; i < 6; ++i) {
        const Description description = *space.At(i);
        EXPECT_EQ(description.dram.latency_ns, 200);
        EXPECT_EQ(static_cast<double>(description.cores.clusters), space.ValueOf(0, i));
        found.emplace_back(description.cores.clusters, description.dram.bandwidth_gbs);
    }
    EXPECT_EQ(found, (std::vector<std::pair<uint64_t, double>>{
                         {1, 68.25}, {1, 136.5}, {2, 68.25}, {2, 136.5}, {6, 68.25}, {6, 136.5}}));
}

TEST(NpuSpace, HasABaseThatIsAFileBesideIt) {
    const TestDirectory directory;
    std::ofstream(directory / "mine.toml") << "base = \"edge-4\"\n[dma]\nsetup_ns = 77\n";
    std::ofstream(directory / "space.toml")
        << "base = \"mine.toml\"\n[matrix]\ndataflow = [\"best\", \"input-stationary\"]\n";
    const Result<Space> space = LoadSpace(directory / "space.toml");
    ASSERT_TRUE(space.ok()) << space.error().message;
    EXPECT_EQ(space->At(1)->dma.setup_ns, 77);
    EXPECT_EQ(space->At(1)->matrix.dataflow, Dataflow::kInputStationary);
}

TEST(NpuSpace, IsTheSameAsATextWithoutABase) {
    const Space space = SpaceOf(std::string(kSpace) + "[matrix]\ndataflow = [\"best\"]\n");
    const Space same = SpaceOf(TextOf(space));
    ASSERT_EQ(same.count(), space.count());
    for (uint64_t i = 0; i < space.count(); ++i) {
        EXPECT_EQ(same.At(i)->Hash(), space.At(i)->Hash());
    }
}

TEST(NpuSpace, SaysWhatIsWrongWithIt) {
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n"),
              "space.toml varies no key; at least one must have a list of values, as in "
              "bandwidth_gbs = [68, 136].");
    EXPECT_EQ(
        ErrorOf("base = \"edge-4\"\n[dram]\nbandwidth_gbs = []\n"),
        "space.toml, line 3: dram.bandwidth_gbs is a list of 0 values; it must have from 1 to "
        "1000000.");
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[dram]\nspeed = [1]\n"),
                HasSubstr("space.toml, line 3: dram.speed is no key of a description"));
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[cores]\nclock_ghz = [1,\n 0]\n"),
                HasSubstr("line 4: cores.clock_ghz is 0; it must be from 0.001 to 100 GHz."));
    EXPECT_THAT(ErrorOf("base = \"none\"\n[cores]\nclusters = [1]\n"),
                HasSubstr("none is no preset"));
    EXPECT_THAT(ErrorOf("[cores]\nclusters = [1]\n"), HasSubstr("lacks the key"));
    std::string many = "1";
    for (int i = 0; i < 1000; ++i) {
        many += ",1";
    }
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[dram]\nlatency_ns = [" + many +
                        "]\nbandwidth_gbs = [" + many + "]\n"),
                HasSubstr("has at least 1002001 descriptions; a space has at most 1000000."));
}

TEST(NpuSweep, HasARowForEachDescriptionWhateverTheThreads) {
    const Space space = SpaceOf(kSpace);
    const auto programs = Programs();
    const Result<std::vector<SweepRow>> one = RunSweep(space, programs, {});
    ASSERT_TRUE(one.ok()) << one.error().message;
    uint64_t last = 0;
    const Result<std::vector<SweepRow>> three =
        RunSweep(space, programs, {.threads = 3, .progress = [&](uint64_t done, uint64_t total) {
                                       EXPECT_EQ(total, 6U);
                                       EXPECT_GE(done, last);
                                       last = done;
                                   }});
    ASSERT_EQ(one->size(), 6U);
    for (size_t i = 0; i < 6; ++i) {
        const SweepRow& row = (*one)[i];
        const Description description = *space.At(i);
        EXPECT_EQ(row.description, description.Hash());
        ASSERT_EQ(row.program_ns.size(), 2U);
        for (size_t p = 0; p < 2; ++p) {
            const ReplayResult result = *Replay(description, programs[p]);
            EXPECT_EQ(row.program_ns[p],
                      description.Nanoseconds(static_cast<double>(result.total)));
        }
        EXPECT_EQ(row.time_ns, row.program_ns[0] + row.program_ns[1]);
        EXPECT_EQ(row.time_ns, (*three)[i].time_ns);
        EXPECT_EQ(row.energy_nj, (*three)[i].energy_nj);
    }
}

TEST(NpuSweep, IsTheSameInParts) {
    const Space space = SpaceOf(kSpace);
    const auto programs = Programs();
    const std::vector<SweepRow> all = *RunSweep(space, programs, {});
    const std::vector<SweepRow> part = *RunSweep(space, programs, {.first = 2, .last = 5});
    ASSERT_EQ(part.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(part[i].description, all[2 + i].description);
        EXPECT_EQ(part[i].time_ns, all[2 + i].time_ns);
    }
    EXPECT_TRUE(RunSweep(space, programs, {.first = 6, .last = 9})->empty());
}

TEST(NpuSweep, RefusesOrLeavesOutWhatContradictsItself) {
    const Space space =
        SpaceOf("base = \"edge-4\"\n[scratchpad]\nbytes = [524288, 1000000]\nbanks = [8, 16]\n");
    const Result<std::vector<SweepRow>> refused = RunSweep(space, Programs(), {});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("space.toml: of the description with scratchpad.banks = 8, "
                                "scratchpad.bytes = 1000000, scratchpad.bytes is 1000000; it must "
                                "be a multiple of"),
                      testing::EndsWith(".")));
    const Result<std::vector<SweepRow>> rows =
        RunSweep(space, Programs(), {.skip_contradictions = true});
    ASSERT_TRUE(rows.ok());
    EXPECT_TRUE((*rows)[0].failure.empty());
    EXPECT_FALSE((*rows)[1].failure.empty());
    EXPECT_THAT(ParetoFront(*rows), testing::Each(testing::AnyOf(0U, 2U)));
}

TEST(NpuSweep, NamesDescriptionsThatCannotRunAProgram) {
    Record record = {.work = StreamRecord("needs", 100, 100)};
    std::get<DispatchRecord>(record.work).scratchpad = {
        .least_bytes = 1 << 20, .preferred_bytes = 1 << 20, .may_spill = false};
    const Space space = SpaceOf("base = \"edge-4\"\n[scratchpad]\nbytes = [524288, 4194304]\n");
    const std::vector<std::vector<Record>> programs = {{record}};
    const std::vector<SweepRow> rows = *RunSweep(space, programs, {});
    EXPECT_THAT(rows[0].failure, HasSubstr("needs at least 1048576 bytes of scratchpad"));
    EXPECT_TRUE(rows[1].failure.empty());
    EXPECT_EQ(ParetoFront(rows), std::vector<uint64_t>{1});
}

TEST(ParetoFront, IsWhatNoOtherRowBeats) {
    std::mt19937 random(1);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<SweepRow> rows(1 + random() % 40);
        for (SweepRow& row : rows) {
            row.time_ns = random() % 6;
            row.energy_nj = random() % 6;
            row.area_mm2 = random() % 6;
            row.failure = random() % 8 == 0 ? "no" : "";
        }
        std::vector<uint64_t> expected;
        for (uint64_t i = 0; i < rows.size(); ++i) {
            bool is_beaten = !rows[i].failure.empty();
            for (uint64_t j = 0; j < rows.size(); ++j) {
                const SweepRow &a = rows[i], &b = rows[j];
                const bool at_least = b.failure.empty() && b.time_ns <= a.time_ns &&
                                      b.energy_nj <= a.energy_nj && b.area_mm2 <= a.area_mm2;
                const bool equal = b.time_ns == a.time_ns && b.energy_nj == a.energy_nj &&
                                   b.area_mm2 == a.area_mm2;
                is_beaten = is_beaten || (at_least && (!equal || j < i));
            }
            if (!is_beaten) {
                expected.push_back(i);
            }
        }
        EXPECT_THAT(ParetoFront(rows), testing::UnorderedElementsAreArray(expected));
    }
}

}  // namespace
}  // namespace fornax::npu
