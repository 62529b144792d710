#include "npu/replay/replay.h"

#include <deque>
#include <queue>

#include <fmt/format.h>

#include "base/printable.h"
#include "npu/replay/flows.h"
#include "npu/units/command_processor.h"
#include "npu/units/dma_engine.h"
#include "npu/units/host_link.h"
#include "npu/units/network.h"

namespace fornax::npu {
namespace {

// What happens at a time that is known before. Flows end when they end.
enum class EventKind : uint8_t {
    kAvailable,      // the doorbell of a submission has reached its first record
    kProcessorDone,  // with the job of the record
    kDelayDone,      // of a phase: its bytes begin to flow
    kComputeDone,
    kDrained,
};

struct Event {
    Cycles time = 0;
    uint64_t sequence = 0;  // ties go to what was scheduled first
    EventKind kind = EventKind::kAvailable;
    uint32_t record = 0;
    bool operator>(const Event& other) const {
        return time != other.time ? time > other.time : sequence > other.sequence;
    }
};

enum class Job : uint8_t { kDecode, kAllocate };

struct State {
    std::vector<uint32_t> dependents;
    std::vector<Phase> phases;
    std::vector<uint32_t> cores;
    std::optional<uint32_t> next_in_queue;
    size_t phase = 0;
    uint32_t blockers = 0;                  // records in `after` that have not ended
    uint32_t pending = 0;                   // parts of the phase that have not ended
    std::array<size_t, 3> flow_times = {};  // of its phase, in the timeline: DRAM, network, link
    bool is_available = false;
    bool is_next = false;  // the queue's earlier packets are decoded
    bool is_decoded = false;
};

class Simulation {
  public:
    Simulation(const Description& description, std::span<const Record> records, Timeline* timeline)
        : description_(description),
          timeline_(timeline),
          launch_(LaunchCyclesOf(description)),
          records_(records),
          states_(records.size()),
          core_is_free_(description.cores.count(), true),
          free_cores_(description.cores.count()),
          allocators_(description.cores.count(), ScratchpadAllocator(description)),
          caches_(description),
          dram_(DramBytesPerCycle(description),
                description.BytesPerCycle(description.dram.bandwidth_gbs)),
          network_(NetworkBytesPerCycle(description), NetworkBytesPerCycle(description)),
          host_link_(HostLinkBytesPerCycle(description), HostLinkBytesPerCycle(description)) {
        result_.records.resize(records.size());
    }

    Result<ReplayResult> Run() {
        Prepare();
        StartProcessor();
        while (ended_ < records_.size()) {
            FORNAX_RETURN_IF_ERROR(Step());
        }
        Finish();
        return std::move(result_);
    }

  private:
    void Schedule(Cycles delay, EventKind kind, uint32_t record) {
        events_.push({now_ + delay, sequence_++, kind, record});
    }

    const DispatchRecord* DispatchOf(uint32_t record) const {
        return std::get_if<DispatchRecord>(&records_[record].work);
    }

    ServedDispatch Served(const DispatchRecord& dispatch) {
        return description_.cache.bytes + description_.cache.core_bytes > 0
                   ? ServeFromCaches(description_, dispatch, caches_)
                   : ServedDispatch();
    }

    void Prepare() {
        std::vector<std::optional<uint32_t>> last(kMaxQueues);
        std::vector<Cycles> driver(kMaxQueues, 0);
        for (uint32_t i = 0; i < records_.size(); ++i) {
            const Record& record = records_[i];
            State& state = states_[i];
            for (const RecordId before : record.after) {
                states_[before.value()].dependents.push_back(i);
            }
            state.blockers = static_cast<uint32_t>(record.after.size());
            std::optional<uint32_t>& earlier = last[record.queue.value()];
            state.is_next = !earlier.has_value();
            state.is_available = earlier.has_value() && !record.begins_submission;
            if (!state.is_available) {
                // A queue's submissions pass the driver one after the other.
                Cycles& free = driver[record.queue.value()];
                const Cycles available = free + launch_.driver + launch_.doorbell;
                if (timeline_ != nullptr) {
                    timeline_->submissions.push_back({i, free, free + launch_.driver, available});
                }
                free += launch_.driver;
                Schedule(available, EventKind::kAvailable, i);
            }
            if (earlier.has_value()) {
                states_[*earlier].next_in_queue = i;
            }
            earlier = i;
            const DispatchRecord* dispatch = DispatchOf(i);
            RecordTime& time = result_.records[i];
            time.cost = dispatch != nullptr
                            ? CostOf(description_, *dispatch, Served(*dispatch))
                            : CostOf(description_, std::get<CopyRecord>(record.work));
        }
    }

    Status Step() {
        std::optional<Cycles> until;
        for (Flows* flows : {&dram_, &network_, &host_link_}) {
            if (const std::optional<Cycles> end = flows->UntilNextEnd()) {
                until = std::min(until.value_or(*end), *end);
            }
        }
        if (!events_.empty()) {
            const Cycles event = events_.top().time - now_;
            until = std::min(until.value_or(event), event);
        }
        Pass(*until);
        while (!events_.empty() && events_.top().time == now_) {
            const Event event = events_.top();
            events_.pop();
            FORNAX_RETURN_IF_ERROR(Handle(event));
        }
        FORNAX_RETURN_IF_ERROR(StartWaiting());
        StartProcessor();
        return OkStatus();
    }

    void Pass(Cycles cycles) {
        const uint64_t held = description_.cores.count() - free_cores_;
        result_.cores_held += held * cycles;
        processor_.busy += processor_job_ ? cycles : 0;
        processor_.stall += !processor_job_ && !waiting_.empty() ? cycles : 0;
        processor_.idle += !processor_job_ && waiting_.empty() ? cycles : 0;
        now_ += cycles;
        ended_flows_.clear();
        Advance(dram_, 0, cycles);
        Advance(network_, 1, cycles);
        Advance(host_link_, 2, cycles);
        for (const uint32_t record : ended_flows_) {
            PartDone(record);
        }
    }

    void Advance(Flows& flows, size_t number, Cycles cycles) {
        const size_t before = ended_flows_.size();
        flows.Advance(cycles, ended_flows_);
        for (size_t i = before; timeline_ != nullptr && i < ended_flows_.size(); ++i) {
            timeline_->flows[states_[ended_flows_[i]].flow_times[number]].ended = now_;
        }
    }

    Status Handle(const Event& event) {
        const uint32_t record = event.record;
        State& state = states_[record];
        switch (event.kind) {
            case EventKind::kAvailable:
                state.is_available = true;
                QueueDecode(record);
                break;
            case EventKind::kProcessorDone:
                JobDone(record);
                break;
            case EventKind::kDelayDone:
                StartFlows(record);
                break;
            case EventKind::kComputeDone:
                PartDone(record);
                break;
            case EventKind::kDrained:
                Ended(record);
                break;
        }
        return OkStatus();
    }

    // --- The command processor

    void QueueDecode(uint32_t record) {
        if (states_[record].is_available && states_[record].is_next) {
            decodes_.push_back(record);
        }
    }

    void StartProcessor() {
        if (processor_job_ || (allocations_.empty() && decodes_.empty())) {
            return;
        }
        // What is ready to run comes before what is only to be known.
        const bool allocates = !allocations_.empty();
        std::deque<uint32_t>& jobs = allocates ? allocations_ : decodes_;
        processor_job_ = allocates ? Job::kAllocate : Job::kDecode;
        const Cycles cycles = allocates ? launch_.allocation : launch_.decode;
        Schedule(cycles, EventKind::kProcessorDone, jobs.front());
        if (timeline_ != nullptr) {
            timeline_->jobs.push_back({jobs.front(), allocates, now_, now_ + cycles});
        }
        jobs.pop_front();
    }

    void JobDone(uint32_t record) {
        State& state = states_[record];
        RecordTime& time = result_.records[record];
        const Job job = *processor_job_;
        processor_job_.reset();
        if (job == Job::kAllocate) {
            time.launch += launch_.allocation;
            allocated_at_.emplace_back(now_);
            waiting_.push_back(record);
            return;
        }
        time.decoded = now_;
        time.launch += launch_.decode;
        state.is_decoded = true;
        if (state.next_in_queue) {
            states_[*state.next_in_queue].is_next = true;
            QueueDecode(*state.next_in_queue);
        }
        Launch(record);
    }

    // When the record is decoded and nothing that it depends on runs.
    void Launch(uint32_t record) {
        const State& state = states_[record];
        if (!state.is_decoded || state.blockers > 0) {
            return;
        }
        result_.records[record].ready = now_;
        if (DispatchOf(record) != nullptr) {
            allocations_.push_back(record);
            return;
        }
        states_[record].phases =
            PhasesOf(description_, std::get<CopyRecord>(records_[record].work));
        result_.records[record].began = now_;
        StartPhase(record);
    }

    // --- Cores and scratchpads

    Status StartWaiting() {
        while (!waiting_.empty()) {
            const uint32_t record = waiting_.front();
            RecordTime& time = result_.records[record];
            if (time.cost.cores > free_cores_) {
                return OkStatus();
            }
            TakeCores(record);
            FORNAX_RETURN_IF_ERROR(TakeScratchpad(record));
            time.began = now_;
            time.waited_for_cores = now_ - allocated_at_.front();
            waiting_.pop_front();
            allocated_at_.pop_front();
            states_[record].phases = PhasesOf(description_, time.cost, time.grant);
            StartPhase(record);
        }
        return OkStatus();
    }

    void TakeCores(uint32_t record) {
        std::vector<uint32_t>& cores = states_[record].cores;
        for (uint32_t core = 0; cores.size() < result_.records[record].cost.cores; ++core) {
            if (core_is_free_[core]) {
                core_is_free_[core] = false;
                cores.push_back(core);
            }
        }
        free_cores_ -= cores.size();
    }

    // Cores that are held have nobody else's grants, so that the first speaks for all.
    Status TakeScratchpad(uint32_t record) {
        RecordTime& time = result_.records[record];
        ScratchpadAllocator& allocator = allocators_[states_[record].cores.front()];
        time.grant =
            allocator.Request(time.cost.request, description_.cores.workgroup_slots, now_, record);
        result_.grants.push_back(allocator.log().back());
        if (time.grant.step == GrantStep::kFault || time.grant.step == GrantStep::kWait) {
            return Error{
                ErrorCode::kOutOfDeviceMemory,
                fmt::format("{} needs at least {} bytes of scratchpad and may not spill; "
                            "scratchpad.bytes of {} is {}.",
                            Printable(records_[record].name()), time.cost.request.least_bytes,
                            description_.name, description_.scratchpad.bytes)};
        }
        AddSpill(time.grant, time.cost);
        return OkStatus();
    }

    void GiveBack(uint32_t record) {
        State& state = states_[record];
        if (state.cores.empty()) {
            return;
        }
        allocators_[state.cores.front()].Release(result_.records[record].grant.id);
        for (const uint32_t core : state.cores) {
            core_is_free_[core] = true;
        }
        free_cores_ += state.cores.size();
        state.cores.clear();
    }

    // --- Phases

    void StartPhase(uint32_t record) {
        State& state = states_[record];
        if (state.phase == state.phases.size()) {
            result_.records[record].finished = now_;
            GiveBack(record);
            const bool is_dispatch = DispatchOf(record) != nullptr;
            result_.records[record].launch += is_dispatch ? launch_.drain : 0;
            Schedule(is_dispatch ? launch_.drain : 0, EventKind::kDrained, record);
            return;
        }
        const Phase& phase = state.phases[state.phase];
        const bool moves = phase.dram_bytes + phase.network_bytes + phase.host_bytes > 0;
        state.pending = (phase.compute > 0 ? 1 : 0) + (moves ? 1 : 0);
        if (phase.compute > 0) {
            Schedule(phase.compute, EventKind::kComputeDone, record);
            if (timeline_ != nullptr) {
                timeline_->computations.push_back({record, now_, now_ + phase.compute});
            }
        }
        if (moves) {
            Schedule(phase.delay, EventKind::kDelayDone, record);
        }
    }

    void StartFlows(uint32_t record) {
        State& state = states_[record];
        const Phase& phase = state.phases[state.phase];
        --state.pending;  // the delay
        const auto add = [&](Unit unit, Flows& flows, size_t number, uint64_t bytes, double cap) {
            if (bytes == 0) {
                return;
            }
            ++state.pending;
            flows.Add(record, bytes, cap);
            if (timeline_ != nullptr) {
                state.flow_times[number] = timeline_->flows.size();
                timeline_->flows.push_back({record, unit, bytes, now_, now_});
            }
        };
        add(Unit::kDram, dram_, 0, phase.dram_bytes, phase.dram_cap);
        add(Unit::kNetwork, network_, 1, phase.network_bytes, phase.network_cap);
        add(Unit::kHostLink, host_link_, 2, phase.host_bytes, HostLinkBytesPerCycle(description_));
    }

    void PartDone(uint32_t record) {
        State& state = states_[record];
        if (--state.pending == 0) {
            ++state.phase;
            StartPhase(record);
        }
    }

    void Ended(uint32_t record) {
        ++ended_;
        result_.records[record].ended = now_;
        for (const uint32_t dependent : states_[record].dependents) {
            --states_[dependent].blockers;
            Launch(dependent);
        }
    }

    // --- The sums

    void Finish() {
        result_.total = now_;
        Cycles dma_busy = 0;
        UnitCycles busy;
        for (RecordTime& time : result_.records) {
            const auto floors = FloorsOf(description_, time.cost, time.launch);
            time.bound = static_cast<Bound>(std::ranges::max_element(floors) - floors.begin());
            const uint64_t port = result_.traffic.port;
            result_.traffic += time.cost.traffic;
            result_.traffic.port = port;
            result_.host_bytes += time.cost.host_bytes;
            result_.events += time.cost.events;
            busy.matrix += time.cost.busy.matrix;
            busy.vector += time.cost.busy.vector;
            busy.special += time.cost.busy.special;
            busy.scalar += time.cost.busy.scalar;
            busy.scratchpad += time.cost.busy.scratchpad;
            // Rounded down, so that it is not more than the core was held.
            dma_busy +=
                time.cost.cores * static_cast<Cycles>(static_cast<double>(time.cost.traffic.port) /
                                                      DmaBytesPerCycle(description_, 1));
        }
        result_.energy = EnergyOf(description_, result_.events, now_);
        processor_.instances = 1;
        At(Unit::kCommandProcessor) = processor_;
        OfCores(Unit::kMatrix, description_.matrix.units, busy.matrix);
        OfCores(Unit::kVector, 1, busy.vector);
        OfCores(Unit::kSpecial, 1, busy.special);
        OfCores(Unit::kScalar, 1, busy.scalar);
        OfCores(Unit::kScratchpad, 1, busy.scratchpad);
        OfCores(Unit::kDma, 1, dma_busy);
        OfFlows(Unit::kNetwork, network_);
        OfFlows(Unit::kDram, dram_);
        OfFlows(Unit::kHostLink, host_link_);
        for (const ScratchpadAllocator& allocator : allocators_) {
            const ScratchpadCounters& counters = allocator.counters();
            if (counters.high_water_bytes >= result_.scratchpad.high_water_bytes &&
                counters.grants >= result_.scratchpad.grants) {
                result_.scratchpad = counters;
            }
        }
    }

    UnitTime& At(Unit unit) { return result_.units[static_cast<size_t>(unit)]; }

    void OfCores(Unit unit, uint64_t of_a_core, Cycles busy) {
        const uint64_t instances = description_.cores.count() * of_a_core;
        const Cycles held = result_.cores_held * of_a_core;
        At(unit) = {instances, busy, held - busy, instances * now_ - held};
    }

    void OfFlows(Unit unit, const Flows& flows) {
        At(unit) = {1, flows.busy(), flows.active() - flows.busy(), now_ - flows.active()};
    }

    const Description& description_;
    Timeline* const timeline_;
    const LaunchCycles launch_;
    const std::span<const Record> records_;
    std::vector<State> states_;
    ReplayResult result_;

    Cycles now_ = 0;
    uint64_t sequence_ = 0;
    size_t ended_ = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;

    std::deque<uint32_t> decodes_, allocations_;
    std::optional<Job> processor_job_;
    UnitTime processor_;

    std::deque<uint32_t> waiting_;  // for cores
    std::deque<Cycles> allocated_at_;
    std::vector<bool> core_is_free_;
    uint64_t free_cores_;
    std::vector<ScratchpadAllocator> allocators_;

    Caches caches_;
    Flows dram_, network_, host_link_;
    std::vector<uint32_t> ended_flows_;
};

}  // namespace

Result<ReplayResult> Replay(const Description& description,
                            std::span<const Record> records,
                            Timeline* timeline) {
    FORNAX_RETURN_IF_ERROR(CheckRecords(records));
    return Simulation(description, records, timeline).Run();
}

}  // namespace fornax::npu
