#include "tools/replay/trace.h"

#include <zlib.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/printable.h"
#include "tools/replay/trace.pb.h"

namespace fornax::tool {
namespace {

using npu::Cycles;
using npu::Unit;

constexpr uint32_t kSequence = 1;
constexpr uint32_t kBegins = 1, kUsesNames = 2;  // of sequence_flags
constexpr uint64_t kProcess = 1;
constexpr int kByRank = 3;
// Packets are compressed together, so many bytes of them.
constexpr size_t kCompressedBytes = size_t{1} << 20;

class TraceWriter {
  public:
    explicit TraceWriter(const Profile& profile) : profile_(profile) {}

    std::string Write() {
        Begin();
        Submissions();
        Jobs();
        Kernels();
        Computations();
        Dma();
        for (const Unit unit : {Unit::kNetwork, Unit::kDram, Unit::kHostLink}) {
            FlowsOf(unit);
        }
        const double ghz = profile_.description.cores.clock_ghz;
        Counter("DRAM bandwidth", "GB/s", RatesOf(profile_, Unit::kDram), ghz);
        Counter("network bandwidth", "GB/s", RatesOf(profile_, Unit::kNetwork), ghz);
        Counter("scratchpad granted", "bytes", ScratchpadOf(profile_), 1);
        Counter("cores held", "cores", CoresOf(profile_), 1);
        Compress();
        return std::move(bytes_);
    }

  private:
    // --- Packets

    void Append(trace::TracePacket& packet) {
        packet.set_trusted_packet_sequence_id(kSequence);
        trace::Trace one;
        one.add_packet()->Swap(&packet);
        one.AppendToString(&pending_);
        if (pending_.size() >= kCompressedBytes) {
            Compress();
        }
    }

    void Compress() {
        std::string packed(compressBound(pending_.size()), 0);
        uLongf size = packed.size();
        const int status =
            compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(pending_.data()), pending_.size());
        trace::Trace one;
        if (status == Z_OK) {
            packed.resize(size);
            one.add_packet()->set_compressed_packets(std::move(packed));
            one.AppendToString(&bytes_);
        } else {
            bytes_ += pending_;  // zlib has no memory; packets may stand for themselves
        }
        pending_.clear();
    }

    void Begin() {
        trace::TracePacket packet;
        packet.set_sequence_flags(kBegins);
        trace::TrackDescriptor& process = *packet.mutable_track_descriptor();
        process.set_uuid(kProcess);
        process.mutable_process()->set_pid(1);
        process.mutable_process()->set_process_name(npu::StampOf(profile_.description));
        process.set_child_ordering(kByRank);
        Append(packet);
    }

    uint64_t Track(const std::string& name, std::string_view unit = {}) {
        trace::TracePacket packet;
        trace::TrackDescriptor& track = *packet.mutable_track_descriptor();
        track.set_uuid(++last_track_);
        track.set_name(name);
        track.set_parent_uuid(kProcess);
        track.set_sibling_order_rank(static_cast<int>(last_track_));
        if (!unit.empty()) {
            track.mutable_counter()->set_unit_name(std::string(unit));
        }
        Append(packet);
        return last_track_;
    }

    // What is named once and has a number in all packets behind.
    uint64_t NumberOf(std::map<std::string, uint64_t, std::less<>>& names,
                      std::string_view name,
                      trace::TracePacket& packet,
                      int kind) {
        if (const auto found = names.find(name); found != names.end()) {
            return found->second;
        }
        const uint64_t number = names.size() + 1;
        names.emplace(name, number);
        trace::InternedData& data = *packet.mutable_interned_data();
        if (kind == 2) {
            trace::InternedString& made = *data.add_debug_annotation_string_values();
            made.set_iid(number);
            made.set_str(std::string(name));
            return number;
        }
        trace::InternedName& made =
            *(kind == 0 ? data.add_event_names() : data.add_debug_annotation_names());
        made.set_iid(number);
        made.set_name(std::string(name));
        return number;
    }

    struct Argument {
        std::string_view name;
        std::variant<uint64_t, double, std::string_view> value;
    };

    uint64_t TimeOf(Cycles cycles) const {
        return static_cast<uint64_t>(profile_.Nanoseconds(cycles));
    }

    void Slice(uint64_t track,
               std::string_view name,
               Cycles began,
               Cycles ended,
               const std::vector<uint64_t>& flows,
               const std::vector<Argument>& arguments) {
        trace::TracePacket packet;
        packet.set_timestamp(TimeOf(began));
        packet.set_sequence_flags(kUsesNames);
        trace::TrackEvent& event = *packet.mutable_track_event();
        event.set_type(trace::TrackEvent::TYPE_SLICE_BEGIN);
        event.set_track_uuid(track);
        event.set_name_iid(NumberOf(event_names_, name, packet, 0));
        for (const uint64_t flow : flows) {
            event.add_flow_ids(flow);
        }
        for (const Argument& argument : arguments) {
            trace::DebugAnnotation& made = *event.add_debug_annotations();
            made.set_name_iid(NumberOf(argument_names_, argument.name, packet, 1));
            if (const auto* number = std::get_if<uint64_t>(&argument.value)) {
                made.set_uint_value(*number);
            } else if (const auto* real = std::get_if<double>(&argument.value)) {
                made.set_double_value(*real);
            } else {
                made.set_string_value_iid(
                    NumberOf(strings_, std::get<std::string_view>(argument.value), packet, 2));
            }
        }
        Append(packet);
        trace::TracePacket end;
        end.set_timestamp(TimeOf(ended));
        end.mutable_track_event()->set_type(trace::TrackEvent::TYPE_SLICE_END);
        end.mutable_track_event()->set_track_uuid(track);
        Append(end);
    }

    // --- Tracks

    std::string NameOf(uint32_t record) const {
        const std::string name = Printable(profile_.records[record].name());
        return name.empty() ? fmt::format("record {}", record) : name;
    }
    // A record's flow.
    static uint64_t FlowOf(uint32_t record) { return uint64_t{record} + 1; }

    // Tracks of a name, one for each lane, made when they are needed.
    class Lanes {
      public:
        Lanes(TraceWriter& writer, std::string name) : writer_(writer), name_(std::move(name)) {}
        uint64_t operator[](uint32_t lane) {
            while (tracks_.size() <= lane) {
                tracks_.push_back(writer_.Track(
                    tracks_.empty() ? name_ : fmt::format("{} ({})", name_, tracks_.size() + 1)));
            }
            return tracks_[lane];
        }

      private:
        TraceWriter& writer_;
        const std::string name_;
        std::vector<uint64_t> tracks_;
    };

    void Submissions() {
        const std::vector<npu::SubmissionTime>& submissions = profile_.timeline.submissions;
        // Records of a queue belong to its last submission that began with them or before.
        std::map<uint32_t, size_t> last;  // by queue
        std::vector<std::vector<uint64_t>> flows(submissions.size());
        size_t next = 0;
        for (uint32_t i = 0; i < profile_.records.size(); ++i) {
            const uint32_t queue = profile_.records[i].queue.value();
            if (next < submissions.size() && submissions[next].first_record == i) {
                last[queue] = next++;
            }
            flows[last[queue]].push_back(FlowOf(i));
        }
        std::map<uint32_t, uint64_t> tracks;
        for (const auto& [queue, submission] : last) {
            tracks[queue] = Track(fmt::format("queue {}: driver", queue));
        }
        for (size_t i = 0; i < submissions.size(); ++i) {
            const uint32_t queue = profile_.records[submissions[i].first_record].queue.value();
            Slice(tracks[queue], "submission", submissions[i].began, submissions[i].submitted,
                  flows[i], {{"records", uint64_t{flows[i].size()}}});
        }
    }

    void Jobs() {
        const uint64_t track = Track(std::string(npu::kUnitNames[0]));
        for (const npu::ProcessorJobTime& job : profile_.timeline.jobs) {
            const uint64_t flow = FlowOf(job.record);
            Slice(track, job.allocates ? "allocate" : "decode", job.began, job.ended, {flow},
                  {{"record", uint64_t{job.record}}});
        }
    }

    void Kernels() {
        std::vector<uint32_t> order;
        for (uint32_t i = 0; i < profile_.records.size(); ++i) {
            if (std::holds_alternative<npu::DispatchRecord>(profile_.records[i].work)) {
                order.push_back(i);
            }
        }
        const std::vector<npu::RecordTime>& times = profile_.result.records;
        std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(times[i].began, i); });
        std::vector<Interval> intervals;
        for (const uint32_t i : order) {
            intervals.push_back({times[i].began, times[i].finished});
        }
        const std::vector<uint32_t> lanes = LanesOf(intervals);
        Lanes tracks(*this, "kernels");
        for (size_t i = 0; i < order.size(); ++i) {
            Kernel(tracks[lanes[i]], order[i]);
        }
    }

    void Kernel(uint64_t track, uint32_t record) {
        const npu::RecordTime& time = profile_.result.records[record];
        const npu::Description& description = profile_.description;
        uint64_t macs = 0;
        for (const uint64_t of_type : time.cost.events.multiply_accumulates) {
            macs += of_type;
        }
        const std::vector<Argument> arguments = {
            {"record", uint64_t{record}},
            {"bound by", npu::kBoundNames[static_cast<size_t>(time.bound)]},
            {"cores", time.cost.cores},
            {"workgroups", time.cost.workgroups},
            {"multiply_accumulates", macs},
            {"vector_operations", time.cost.events.vector_operations},
            {"dram_bytes", time.cost.traffic.dram()},
            {"roofline_ns", description.Nanoseconds(
                                RooflineCycles(description, profile_.records[record], time.cost))},
            {"energy_nj", npu::EnergyOf(description, time.cost.events, 0).total_nj()},
            {"scratchpad", npu::kGrantStepNames[static_cast<size_t>(time.grant.step)]}};
        const uint64_t flow = FlowOf(record);
        Slice(track, NameOf(record), time.began, time.finished, {flow}, arguments);
    }

    // The busiest core's time on each kind of unit, from the beginning of the computation.
    void Computations() {
        const std::vector<npu::ComputeTime>& computations = profile_.timeline.computations;
        const auto units = {std::pair(Unit::kMatrix, &npu::UnitCycles::matrix),
                            std::pair(Unit::kVector, &npu::UnitCycles::vector),
                            std::pair(Unit::kSpecial, &npu::UnitCycles::special),
                            std::pair(Unit::kScalar, &npu::UnitCycles::scalar),
                            std::pair(Unit::kScratchpad, &npu::UnitCycles::scratchpad)};
        for (const auto& [unit, cycles] : units) {
            std::vector<uint32_t> records;
            std::vector<Interval> intervals;
            for (const npu::ComputeTime& compute : computations) {
                const npu::Cost& cost = profile_.result.records[compute.record].cost;
                const Cycles busy = std::min(cost.workgroups_of_core * cost.workgroup.*cycles,
                                             compute.ended - compute.began);
                if (busy > 0) {
                    records.push_back(compute.record);
                    intervals.push_back({compute.began, compute.began + busy});
                }
            }
            const std::vector<uint32_t> lanes = LanesOf(intervals);
            Lanes tracks(*this, std::string(npu::kUnitNames[static_cast<size_t>(unit)]));
            for (size_t i = 0; i < records.size(); ++i) {
                Slice(tracks[lanes[i]], NameOf(records[i]), intervals[i].began, intervals[i].ended,
                      {}, {});
            }
        }
    }

    // What of a record begins to flow at one time is one transfer.
    void Dma() {
        struct Transfer {
            uint32_t record = 0;
            std::array<uint64_t, 3> bytes = {};  // DRAM, network, host link
        };
        std::vector<Transfer> transfers;
        std::vector<Interval> intervals;
        for (const npu::FlowTime& flow : profile_.timeline.flows) {
            if (transfers.empty() || transfers.back().record != flow.record ||
                intervals.back().began != flow.began) {
                transfers.push_back({.record = flow.record});
                intervals.push_back({flow.began, flow.ended});
            }
            intervals.back().ended = std::max(intervals.back().ended, flow.ended);
            const size_t number = flow.unit == Unit::kDram      ? 0
                                  : flow.unit == Unit::kNetwork ? 1
                                                                : 2;
            transfers.back().bytes[number] += flow.bytes;
        }
        const std::vector<uint32_t> lanes = LanesOf(intervals);
        Lanes tracks(*this, "DMA");
        for (size_t i = 0; i < transfers.size(); ++i) {
            const uint64_t flow = FlowOf(transfers[i].record);
            const std::vector<Argument> arguments = {{"record", uint64_t{transfers[i].record}},
                                                     {"dram_bytes", transfers[i].bytes[0]},
                                                     {"network_bytes", transfers[i].bytes[1]},
                                                     {"host_link_bytes", transfers[i].bytes[2]}};
            Slice(tracks[lanes[i]], NameOf(transfers[i].record), intervals[i].began,
                  intervals[i].ended, {flow}, arguments);
        }
    }

    void FlowsOf(Unit unit) {
        std::vector<npu::FlowTime> flows;
        std::vector<Interval> intervals;
        for (const npu::FlowTime& flow : profile_.timeline.flows) {
            if (flow.unit == unit) {
                flows.push_back(flow);
                intervals.push_back({flow.began, flow.ended});
            }
        }
        const std::vector<uint32_t> lanes = LanesOf(intervals);
        Lanes tracks(*this, std::string(npu::kUnitNames[static_cast<size_t>(unit)]));
        for (size_t i = 0; i < flows.size(); ++i) {
            Slice(tracks[lanes[i]], NameOf(flows[i].record), flows[i].began, flows[i].ended, {},
                  {{"bytes", flows[i].bytes}});
        }
    }

    void Counter(const std::string& name,
                 std::string_view unit,
                 std::vector<Interval> intervals,
                 double factor) {
        const uint64_t track = Track(name, unit);
        for (const Step& step : StepsOf(std::move(intervals))) {
            trace::TracePacket packet;
            packet.set_timestamp(TimeOf(step.time));
            trace::TrackEvent& event = *packet.mutable_track_event();
            event.set_type(trace::TrackEvent::TYPE_COUNTER);
            event.set_track_uuid(track);
            event.set_double_counter_value(step.value * factor);
            Append(packet);
        }
    }

    const Profile& profile_;
    std::string pending_;  // packets that are not compressed yet
    std::string bytes_;
    uint64_t last_track_ = kProcess;
    std::map<std::string, uint64_t, std::less<>> event_names_, argument_names_, strings_;
};

}  // namespace

std::string TraceOf(const Profile& profile) {
    return TraceWriter(profile).Write();
}

}  // namespace fornax::tool
