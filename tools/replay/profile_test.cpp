// Profiles of made-up records: sums, levels over time, the trace's and the page's bytes.
#include "tools/replay/profile.h"

#include <zlib.h>

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npu/description/read.h"
#include "npu/replay/test_records.h"
#include "tools/replay/page.h"
#include "tools/replay/page_files.h"
#include "tools/replay/programs.h"
#include "tools/replay/trace.h"
#include "tools/replay/trace.pb.h"

namespace fornax::tool {
namespace {

using npu::Cycles;
using npu::MatrixType;
using npu::Record;
using npu::RecordId;
using testing::HasSubstr;

std::vector<Record> Records() {
    std::vector<Record> records;
    records.push_back({.work = npu::CopyRecord{"weights", npu::CopyKind::kFromHost, 1 << 20}});
    for (int layer = 0; layer < 3; ++layer) {
        records.push_back(
            {.work = npu::ProductRecord("product </script>", {256, 256, 512}, MatrixType::kInt8),
             .after = {RecordId(records.size() - 1)}});
        records.push_back({.work = npu::StreamRecord("add", 4 << 20, 1 << 20),
                           .after = {RecordId(records.size() - 1)},
                           .begins_submission = true});
    }
    records.push_back(
        {.work = npu::StreamRecord("beside", 1 << 20, 1 << 20), .queue = npu::QueueId(1)});
    return records;
}

Profile ProfileOf(const std::vector<Record>& records, const char* machine = "edge-4") {
    Result<Profile> profile = MakeProfile(*npu::LoadDescription(machine), records);
    EXPECT_TRUE(profile.ok()) << profile.error().message;
    return std::move(profile).value();
}

TEST(Profile, AddsKernelsUp) {
    const std::vector<Record> records = Records();
    const Profile profile = ProfileOf(records);
    ASSERT_EQ(profile.kernels.size(), 4U);
    Cycles time = 0, expected = 0;
    uint64_t dram = 0, count = 0;
    double energy = 0;
    for (size_t i = 0; i < profile.kernels.size(); ++i) {
        const KernelProfile& kernel = profile.kernels[i];
        EXPECT_TRUE(i == 0 || profile.kernels[i - 1].time >= kernel.time);
        // No kernel is faster than the machine's peaks.
        EXPECT_GE(static_cast<double>(kernel.run) + 1, kernel.roofline_cycles) << kernel.name;
        EXPECT_GT(kernel.roofline_cycles, 0) << kernel.name;
        EXPECT_LE(kernel.bound_time, kernel.time);
        time += kernel.time;
        dram += kernel.traffic.dram();
        count += kernel.count;
        energy += kernel.energy_nj;
    }
    for (const npu::RecordTime& record : profile.result.records) {
        expected += record.ended - record.ready;
    }
    EXPECT_EQ(time, expected);
    EXPECT_EQ(dram, profile.result.traffic.dram());
    EXPECT_EQ(count, records.size());
    EXPECT_NEAR(energy + profile.result.energy.static_nj, profile.result.energy.total_nj(), 1e-3);
    for (size_t i = 0; i < records.size(); ++i) {
        EXPECT_EQ(profile.kernels[profile.kernel_of[i]].name, records[i].name());
    }
}

TEST(Profile, NothingIsBelowTheRoofline) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
        const std::vector<Record> records = npu::RandomRecords(seed, {.queues = 2});
        for (const char* machine : {"edge-4", "laptop-45", "dc-400"}) {
            const Profile profile = ProfileOf(records, machine);
            for (size_t i = 0; i < records.size(); ++i) {
                const npu::RecordTime& time = profile.result.records[i];
                EXPECT_GE(static_cast<double>(time.finished - time.began) + 1,
                          RooflineCycles(profile.description, records[i], time.cost))
                    << seed << " " << machine << " " << i;
            }
        }
    }
}

// The line of what bounds the longest record of a kernel.
TEST(Profile, NamesTheLineThatCostsMost) {
    std::vector<Record> records = Records();
    for (Record& record : records) {
        if (auto* dispatch = std::get_if<npu::DispatchRecord>(&record.work)) {
            dispatch->lines = {{npu::LineWork::kOperations, "k.comp:3", 90},
                               {npu::LineWork::kProducts, "k.comp:4", 80},
                               {npu::LineWork::kBytes, "k.comp:<5>", 70}};
        }
    }
    const Profile profile = ProfileOf(records);
    for (const KernelProfile& kernel : profile.kernels) {
        const bool is_bytes = kernel.bound == npu::Bound::kDram || kernel.bound == npu::Bound::kDma;
        EXPECT_EQ(kernel.line, kernel.is_copy                        ? ""
                               : kernel.bound == npu::Bound::kMatrix ? "k.comp:4"
                               : is_bytes                            ? "k.comp:<5>"
                                                                     : "")
            << kernel.name;
    }
    EXPECT_THAT(ProfileText(profile, 9), HasSubstr("k.comp:<5> (70 %)"));
    EXPECT_THAT(ProfileToJson(profile).dump(), HasSubstr("\"line\":\"k.comp:<5>\""));
}

TEST(Profile, PrintsWithAStamp) {
    const std::vector<Record> records = Records();
    const Profile profile = ProfileOf(records);
    const std::string stamp = npu::StampOf(profile.description);
    const std::string text = ProfileText(profile, 2);
    EXPECT_THAT(text, testing::StartsWith(stamp));
    EXPECT_THAT(text, HasSubstr("and 2 kernels more"));
    EXPECT_THAT(text, HasSubstr("host link"));
    const nlohmann::json json = ProfileToJson(profile);
    EXPECT_EQ(json["stamp"], stamp);
    EXPECT_EQ(json["description_hash"], profile.description.Hash().ToHex());
    EXPECT_EQ(json["model_version"], npu::kModelVersion);
    EXPECT_EQ(json["kernels"].size(), 4U);
    EXPECT_EQ(json["host_link_bytes"], 1 << 20);
}

TEST(Programs, KeepTheirQueuesAndDependencies) {
    std::vector<Record> one = Records(), other = Records();
    const std::vector<Program> programs = {{"a", one}, {"b", other}};
    const std::vector<Record> together = *Together(programs);
    ASSERT_EQ(together.size(), one.size() + other.size());
    const Record& record = together[one.size() + 1];
    EXPECT_EQ(record.name(), "b: product </script>");
    EXPECT_EQ(record.after, std::vector<RecordId>{RecordId(one.size())});
    EXPECT_EQ(record.queue, npu::QueueId(2));
    EXPECT_EQ(together.back().queue, npu::QueueId(3));
    Profile profile = ProfileOf(together);
    profile.programs = *ProgramTimesOf(programs, profile);
    ASSERT_EQ(profile.programs.size(), 2U);
    EXPECT_GT(profile.programs[1].together_ns, profile.programs[1].alone_ns);
    EXPECT_THAT(ProfileText(profile, 1), HasSubstr("us beside the others"));
    // One alone is as it was.
    EXPECT_EQ(Together(std::vector<Program>{{"a", one}})->front().name(), "weights");

    one.back().queue = npu::QueueId(npu::kMaxQueues - 1);
    EXPECT_THAT(Together(std::vector<Program>{{"a", one}, {"b", other}}).error().message,
                HasSubstr("have 4098 queues together; there are 4096."));
}

TEST(Steps, AreTheSumOfWhatOverlaps) {
    const std::vector<Step> steps =
        StepsOf({{0, 10, 1}, {5, 10, 2}, {10, 12, 0.1}, {7, 7, 100}, {20, 30, 4}});
    std::vector<std::pair<Cycles, double>> found;
    for (const Step& step : steps) {
        found.emplace_back(step.time, step.value);
    }
    ASSERT_EQ(found.size(), 6U);
    EXPECT_EQ(found[0], (std::pair<Cycles, double>{0, 1}));
    EXPECT_EQ(found[1], (std::pair<Cycles, double>{5, 3}));
    EXPECT_EQ(found[2].first, 10U);
    EXPECT_NEAR(found[2].second, 0.1, 1e-12);
    EXPECT_EQ(found[3], (std::pair<Cycles, double>{12, 0}));
    EXPECT_EQ(found[4], (std::pair<Cycles, double>{20, 4}));
    EXPECT_EQ(found[5], (std::pair<Cycles, double>{30, 0}));
}

TEST(Steps, HaveTheIntegralOfTheirIntervals) {
    const std::vector<Record> records = Records();
    const Profile profile = ProfileOf(records);
    const std::vector<Step> steps = StepsOf(RatesOf(profile, npu::Unit::kDram));
    double bytes = 0;
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
        bytes += steps[i].value * static_cast<double>(steps[i + 1].time - steps[i].time);
    }
    EXPECT_NEAR(bytes, static_cast<double>(profile.result.traffic.dram()), 1);
}

TEST(Lanes, HoldNothingThatOverlaps) {
    std::mt19937 random(1);
    std::vector<Interval> intervals;
    Cycles began = 0;
    for (int i = 0; i < 300; ++i) {
        began += random() % 5;
        intervals.push_back({began, began + random() % 20});
    }
    const std::vector<uint32_t> lanes = LanesOf(intervals);
    std::map<uint32_t, Cycles> ends;
    for (size_t i = 0; i < intervals.size(); ++i) {
        EXPECT_GE(intervals[i].began, ends[lanes[i]]);
        ends[lanes[i]] = intervals[i].ended;
    }
    EXPECT_EQ(LanesOf(std::vector<Interval>{{0, 1}, {1, 2}, {2, 3}}),
              (std::vector<uint32_t>{0, 0, 0}));
}

// The packets that a file's packets hold.
trace::Trace Unpacked(const std::string& file) {
    trace::Trace packed;
    trace::Trace trace;
    EXPECT_TRUE(packed.ParseFromString(file));
    for (const trace::TracePacket& packet : packed.packet()) {
        const std::string& from = packet.compressed_packets();
        std::string bytes(size_t{4} << 20, 0);
        uLongf size = bytes.size();
        EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                             reinterpret_cast<const Bytef*>(from.data()), from.size()),
                  Z_OK);
        EXPECT_TRUE(trace.MergeFromString(bytes.substr(0, size)));
    }
    return trace;
}

TEST(Trace, HasSlicesThatBeginAndEnd) {
    const std::vector<Record> records = Records();
    const Profile profile = ProfileOf(records);
    const trace::Trace trace = Unpacked(TraceOf(profile));
    ASSERT_GT(trace.packet_size(), 0);
    std::map<uint64_t, std::string> tracks;
    std::map<uint64_t, int> open;
    std::map<uint64_t, uint64_t> last;
    size_t flows = 0;
    for (const trace::TracePacket& packet : trace.packet()) {
        if (packet.has_track_descriptor()) {
            const trace::TrackDescriptor& track = packet.track_descriptor();
            EXPECT_TRUE(tracks.emplace(track.uuid(), track.name()).second);
            continue;
        }
        const trace::TrackEvent& event = packet.track_event();
        EXPECT_TRUE(tracks.contains(event.track_uuid()));
        EXPECT_GE(packet.timestamp(), last[event.track_uuid()]);
        last[event.track_uuid()] = packet.timestamp();
        flows += static_cast<size_t>(event.flow_ids_size());
        if (event.type() == trace::TrackEvent::TYPE_SLICE_BEGIN) {
            EXPECT_EQ(++open[event.track_uuid()], 1);
        } else if (event.type() == trace::TrackEvent::TYPE_SLICE_END) {
            EXPECT_EQ(--open[event.track_uuid()], 0);
        }
    }
    std::set<std::string> names;
    for (const auto& [track, name] : tracks) {
        names.insert(name);
    }
    for (const char* name : {"queue 0: driver", "queue 1: driver", "command processor", "kernels",
                             "matrix", "vector", "scratchpad", "DMA", "network", "DRAM",
                             "host link", "DRAM bandwidth", "scratchpad granted"}) {
        EXPECT_TRUE(names.contains(name)) << name;
    }
    // Each record's begins with its submission.
    EXPECT_GE(flows, 4 * records.size());
}

TEST(Page, IsSelfContainedAndHoldsItsData) {
    const std::vector<Record> records = Records();
    const Profile profile = ProfileOf(records);
    const std::vector<WhatIf> changes = ReplayChanges(profile.description, records, 2);
    ASSERT_EQ(changes.size(), size_t{1} << Changes().size());
    EXPECT_EQ(changes[0].description, profile.description.Hash());
    EXPECT_EQ(changes[0].time_ns, profile.Nanoseconds(profile.result.total));
    EXPECT_LT(changes[1].time_ns, changes[0].time_ns);  // it is bound by DRAM
    const std::string page = PageOf(profile, changes);
    EXPECT_THAT(page, HasSubstr(npu::StampOf(profile.description)));
    // Only the text of a kernel's name could end the data's script.
    const std::string begin = "<script id=\"data\" type=\"application/json\">";
    const size_t data = page.find(begin) + begin.size();
    const std::string text = page.substr(data, page.find("</script>", data) - data);
    EXPECT_EQ(nlohmann::json::parse(text), PageData(profile, changes));
    for (const char* other : {" src=", "<link", "@import", "url("}) {
        // The chart library may speak of them.
        EXPECT_EQ(page.find(other, data), std::string::npos) << other;
        EXPECT_EQ(std::string(PageStyle()).find(other), std::string::npos) << other;
    }
    EXPECT_EQ(ChartLibrary().find("</script"), std::string_view::npos);
}

TEST(Page, LeavesNoMachineOutThatCannotBe) {
    npu::Description description = *npu::LoadDescription("edge-4");
    description.cores.clusters = 1024;
    description.cores.per_cluster = 4;
    const std::vector<Record> records = Records();
    const std::vector<WhatIf> changes = ReplayChanges(description, records, 1);
    EXPECT_TRUE(changes[0].failure.empty());
    EXPECT_THAT(changes[2].failure, HasSubstr("it must be at most 4096"));
}

TEST(Page, AveragesCurvesOfManyPoints) {
    std::vector<Record> records;
    for (int i = 0; i < 3000; ++i) {
        records.push_back(
            {.work = npu::StreamRecord("s", 10'000, 10'000), .begins_submission = i % 10 == 0});
    }
    const Profile profile = ProfileOf(records);
    const nlohmann::json data = PageData(profile, {});
    const nlohmann::json& points = data["curves"]["dram_gbs"];
    ASSERT_LE(points.size(), 2001U);
    double bytes = 0;
    for (size_t i = 1; i < points.size(); ++i) {
        const double next = i + 1 < points.size() ? points[i + 1][0].get<double>()
                                                  : profile.Nanoseconds(profile.result.total);
        bytes += points[i][1].get<double>() * (next - points[i][0].get<double>());
    }
    EXPECT_NEAR(bytes / static_cast<double>(profile.result.traffic.dram()), 1, 1e-6);
    EXPECT_EQ(
        data["timeline"]["bars"].size() + data["timeline"]["left_out"].get<size_t>(),
        6000U + 3000U + profile.timeline.computations.size() + [&] {
            return static_cast<size_t>(std::ranges::count_if(
                profile.timeline.flows,
                [](const auto& flow) { return flow.unit == npu::Unit::kDram; }));
        }());
}

}  // namespace
}  // namespace fornax::tool
