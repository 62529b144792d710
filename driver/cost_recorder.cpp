#include "driver/cost_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include <fmt/format.h>

#include "base/log.h"
#include "base/per_process.h"
#include "driver/modelled_counters.h"
#include "npu/replay/record_file.h"

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

CostRecorder::CostRecorder(NpuSettings settings)
    : settings_(std::move(settings)), dispatches_(!settings_.records.empty()) {
    if (settings_.machine) {
        clock_.emplace(*settings_.machine);
    }
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
    state.submission = clock_ ? clock_->Begin() : nullptr;
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
    if (state.submission != nullptr) {
        record.queue = npu::QueueId(0);
        record.after = state.before.replayed;
        state.since.replayed.push_back(clock_->Append(*state.submission, std::move(record)));
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
    std::lock_guard lock(mutex_);
    Add(queues_[queue], {.work = dispatches_.Of(executable, frame, workgroups, region_counts)});
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

bool CostRecorder::Owe(uint32_t queue, const OwedValue& owed) {
    std::lock_guard lock(mutex_);
    const QueueState& state = queues_[queue];
    if (state.submission == nullptr) {
        return false;
    }
    clock_->Owe(*state.submission, owed);
    return true;
}

bool CostRecorder::Timestamp(uint32_t queue, hal::QuerySlot& slot) {
    return Owe(queue, {.slot = &slot, .what = OwedValue::What::kTimestamp});
}

bool CostRecorder::Count(uint32_t queue, hal::QuerySlot& slot, uint32_t counter, bool begins) {
    return counter < kModelledCounters &&
           Owe(queue, {.slot = &slot,
                       .what = begins ? OwedValue::What::kCountBegin : OwedValue::What::kCountEnd,
                       .counter = counter});
}

void CostRecorder::Flush(uint32_t queue) {
    std::lock_guard lock(mutex_);
    if (const QueueState& state = queues_[queue]; state.submission != nullptr) {
        clock_->Flush(state.submission);
    }
}

bool CostRecorder::Idle(uint32_t /*queue*/) {
    std::lock_guard lock(mutex_);
    return clock_ && clock_->ReplayOne();
}

std::optional<uint64_t> CostRecorder::Now() {
    std::lock_guard lock(mutex_);
    return clock_ ? std::optional(clock_->Now()) : std::nullopt;
}

}  // namespace fornax::driver
