#include "driver/cost_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/log.h"
#include "base/per_process.h"
#include "compiler/kernel/kernel_desc.h"
#include "driver/modelled_counters.h"
#include "npu/replay/record_file.h"
#include "npu/replay/replay.h"

namespace fornax::driver {

namespace {

// More predecessors than this wait for one record of no bytes, so that groups of n records that
// follow each other have n edges and not n * n.
constexpr size_t kMostEdges = 16;
// Signals that a queue may still wait for.
constexpr size_t kMostSignals = 256;

// The records of all devices of the process, on their way to the file.
struct RecordLog {
    std::mutex mutex;
    std::string path;  // set with the first recorder that writes
    std::vector<npu::Record> records;
    uint64_t queues = 0;
    std::map<uint64_t, uint64_t> memories;  // by address
    bool is_full = false;
};

// Never destroyed: devices may outlive everything.
RecordLog& Log() {
    static auto* const log = new PerProcess<RecordLog>;
    return log->Get();
}

// "%p" in the name is the process, for programs that start others.
std::string PathOf(std::string path) {
    if (const size_t at = path.find("%p"); at != std::string::npos) {
        path.replace(at, 2, std::to_string(getpid()));
    }
    return path;
}

// A memory for each address at which a buffer begins, numbered by when it was first accessed, so
// that records do not depend on where memory happens to lie. Buffers that overlap are taken for
// different ones.
uint64_t MemoryOf(uint64_t address) {
    RecordLog& log = Log();
    std::lock_guard lock(log.mutex);
    return log.memories.try_emplace(address, log.memories.size() + 1).first->second;
}

// Bit n: there are several workgroups along axis n.
uint32_t GridAxesOf(const hal::DispatchFrame& frame) {
    uint32_t axes = 0;
    for (uint32_t axis = 0; axis < 3; ++axis) {
        axes |= frame.workgroup_count[axis] > 1 ? 1U << axis : 0;
    }
    return axes;
}

// Where the buffers lie that the kernel accessed.
std::vector<npu::MemoryRange> RangesOf(const kernel::KernelCost& cost,
                                       const hal::KernelDesc& desc,
                                       const hal::DispatchFrame& frame) {
    std::vector<npu::MemoryRange> ranges(cost.buffers.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
        const kernel::CostBuffer& buffer = cost.buffers[i];
        if (buffer.set >= 32 || (desc.descriptor_set_mask >> buffer.set & 1) == 0) {
            continue;
        }
        hal::BufferDescriptor descriptor;
        std::memcpy(
            &descriptor,
            static_cast<const std::byte*>(frame.descriptor_sets[buffer.set]) + buffer.offset_bytes,
            sizeof(descriptor));
        if (buffer.dynamic_offset != kernel::kNone) {
            descriptor.address += frame.dynamic_offsets[buffer.dynamic_offset];
        }
        if (descriptor.size_bytes > 0) {
            ranges[i] = {.memory = MemoryOf(descriptor.address),
                         .bytes = std::min(descriptor.size_bytes, npu::kMaxCount)};
        }
    }
    return ranges;
}

void WriteLog() {
    RecordLog& log = Log();
    std::lock_guard lock(log.mutex);
    if (log.path.empty()) {
        return;
    }
    const Status status = npu::WriteRecordFile(PathOf(log.path), log.records);
    if (!status.ok()) {
        LogError("The cost records are not written: {}", status.error().message);
    }
}

}  // namespace

CostRecorder::CostRecorder(NpuSettings settings) : settings_(std::move(settings)) {
    if (settings_.records.empty()) {
        return;
    }
    static const bool at_exit = std::atexit(WriteLog) == 0;
    RecordLog& log = Log();
    std::lock_guard lock(log.mutex);
    log.path = settings_.records;
    if (!at_exit) {
        LogWarning("The cost records of devices that are never destroyed will not be written.");
    }
}

CostRecorder::~CostRecorder() {
    if (!settings_.records.empty()) {
        WriteLog();
    }
}

void CostRecorder::EndGroup(QueueState& state) {
    if (!state.since.logged.empty() || !state.since.replayed.empty()) {
        state.before = std::exchange(state.since, {});
    }
}

void CostRecorder::BeginSubmission(uint32_t queue) {
    std::lock_guard lock(mutex_);
    QueueState& state = queues_[queue];
    EndGroup(state);
    state.before.replayed.clear();
    state.records.clear();
    state.replayed = 0;
    state.begins_submission = true;
}

void CostRecorder::Append(QueueState& state, npu::Record record) {
    record.begins_submission = std::exchange(state.begins_submission, false);
    if (!settings_.records.empty()) {
        RecordLog& log = Log();
        std::lock_guard lock(log.mutex);
        if (!state.id) {
            state.id = npu::QueueId(log.queues++);
        }
        if (log.records.size() < npu::kMaxRecordsOfFile && state.id->value() < npu::kMaxQueues) {
            npu::Record logged = record;
            logged.queue = *state.id;
            logged.after = state.before.logged;
            state.since.logged.emplace_back(log.records.size());
            log.records.push_back(std::move(logged));
        } else if (!std::exchange(log.is_full, true)) {
            LogWarning("A file of cost records has {} of them at most; what follows is left out.",
                       npu::kMaxRecordsOfFile);
        }
    }
    if (settings_.machine) {
        if (state.records.empty() && state.owed.empty()) {
            state.base = clock_;
        }
        record.queue = npu::QueueId(0);
        record.after = state.before.replayed;
        state.since.replayed.emplace_back(state.records.size());
        state.records.push_back(std::move(record));
    }
}

void CostRecorder::Add(QueueState& state, npu::Record record) {
    if (std::max(state.before.logged.size(), state.before.replayed.size()) > kMostEdges) {
        Group since = std::exchange(state.since, {});
        Append(state, {.work = npu::CopyRecord{
                           .name = "barrier", .kind = npu::CopyKind::kFill, .bytes = 0}});
        state.before = std::exchange(state.since, std::move(since));
    }
    Append(state, std::move(record));
}

void CostRecorder::Dispatch(uint32_t queue,
                            const hal::Executable& executable,
                            const hal::DispatchFrame& frame,
                            uint64_t workgroups,
                            std::span<const uint64_t> region_counts) {
    const std::string& name = executable.desc().name;
    const auto& cost = kernel::KernelOf(executable).cost;
    npu::DispatchRecord record =
        cost ? kernel::DispatchRecordOf(*cost, name, workgroups, region_counts,
                                        RangesOf(*cost, executable.desc(), frame),
                                        GridAxesOf(frame), !settings_.records.empty())
             : npu::DispatchRecord{.name = name, .workgroups = workgroups};
    std::lock_guard lock(mutex_);
    Add(queues_[queue], {.work = std::move(record)});
}

void CostRecorder::Copy(uint32_t queue, hal::ObservedCopy kind, uint64_t bytes) {
    npu::CopyRecord record = {
        .name = "copy", .kind = npu::CopyKind::kDevice, .bytes = std::min(bytes, npu::kMaxCount)};
    if (kind == hal::ObservedCopy::kUpdate) {
        record.name = "update";
        record.kind = npu::CopyKind::kFromHost;
    } else if (kind == hal::ObservedCopy::kFill) {
        record.name = "fill";
        record.kind = npu::CopyKind::kFill;
    }
    std::lock_guard lock(mutex_);
    Add(queues_[queue], {.work = std::move(record)});
}

void CostRecorder::Barrier(uint32_t queue) {
    std::lock_guard lock(mutex_);
    EndGroup(queues_[queue]);
}

void CostRecorder::Wait(uint32_t queue, const hal::Timeline& timeline, uint64_t value) {
    std::lock_guard lock(mutex_);
    // The signal that reached the value.
    const Signalled* found = nullptr;
    for (const Signalled& signal : signalled_) {
        if (signal.timeline == &timeline && signal.value >= value &&
            (found == nullptr || signal.value < found->value)) {
            found = &signal;
        }
    }
    if (found == nullptr) {
        return;
    }
    QueueState& state = queues_[queue];
    EndGroup(state);
    std::vector<npu::RecordId>& before = state.before.logged;
    for (const npu::RecordId record : found->records) {
        if (std::ranges::find(before, record) == before.end()) {
            before.push_back(record);
        }
    }
}

void CostRecorder::Signal(uint32_t queue, const hal::Timeline& timeline, uint64_t value) {
    std::lock_guard lock(mutex_);
    const QueueState& state = queues_[queue];
    const Group& last = state.since.logged.empty() ? state.before : state.since;
    if (last.logged.empty()) {
        return;
    }
    signalled_.push_back({.timeline = &timeline, .value = value, .records = last.logged});
    if (signalled_.size() > kMostSignals) {
        signalled_.pop_front();
    }
}

void CostRecorder::Owe(QueueState& state, const Owed& owed) {
    if (state.records.empty() && state.owed.empty()) {
        state.base = clock_;
    }
    state.owed.push_back(owed);
    state.owed.back().before = state.records.size();
}

bool CostRecorder::Timestamp(uint32_t queue, hal::QuerySlot& slot) {
    if (!settings_.machine) {
        return false;
    }
    std::lock_guard lock(mutex_);
    Owe(queues_[queue], {.slot = &slot, .what = Owed::What::kTimestamp});
    return true;
}

bool CostRecorder::Count(uint32_t queue, hal::QuerySlot& slot, uint32_t counter, bool begins) {
    if (!settings_.machine || counter >= kModelledCounters) {
        return false;
    }
    std::lock_guard lock(mutex_);
    Owe(queues_[queue], {.slot = &slot,
                         .what = begins ? Owed::What::kCountBegin : Owed::What::kCountEnd,
                         .counter = counter});
    return true;
}

void CostRecorder::Replay(QueueState& state) {
    Result<npu::ReplayResult> replayed = npu::Replay(*settings_.machine, state.records);
    if (!replayed.ok() && !std::exchange(has_failed_, true)) {
        LogError("A submission has no modelled time: {}", replayed.error().message);
    }
    const std::vector<npu::RecordTime> times =
        replayed.ok() ? std::move(replayed->records) : std::vector<npu::RecordTime>();
    // All records before a slot have ended by then; before the first one the command processor has
    // just come to it.
    ModelledReadings readings(*settings_.machine);
    size_t next = 0;
    uint64_t ended = times.empty() ? 0 : times[0].decoded;
    for (const Owed& owed : state.owed) {
        for (; next < std::min(owed.before, times.size()); ++next) {
            ended = std::max<uint64_t>(ended, times[next].ended);
            readings.Add(times[next]);
        }
        switch (owed.what) {
            case Owed::What::kTimestamp:
                hal::WriteQuery(*owed.slot, state.base + ended);
                break;
            case Owed::What::kCountBegin:
                hal::BeginCount(*owed.slot, readings.Read(owed.counter, ended));
                break;
            case Owed::What::kCountEnd:
                hal::EndCount(*owed.slot, readings.Read(owed.counter, ended));
                break;
        }
    }
    if (replayed.ok()) {
        clock_ = std::max(clock_, state.base + replayed->total);
    }
}

void CostRecorder::Flush(uint32_t queue) {
    if (!settings_.machine) {
        return;
    }
    std::lock_guard lock(mutex_);
    QueueState& state = queues_[queue];
    if (state.owed.empty() && state.records.size() == state.replayed) {
        return;
    }
    Replay(state);
    state.replayed = state.records.size();
    state.owed.clear();
}

std::optional<uint64_t> CostRecorder::Now() {
    if (!settings_.machine) {
        return std::nullopt;
    }
    std::lock_guard lock(mutex_);
    return clock_;
}

}  // namespace fornax::driver
