#include "driver/modelled_clock.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"
#include "driver/modelled_counters.h"

namespace fornax::driver {

namespace {

// So many records are left for later at most.
constexpr size_t kMostLeft = 4096;

}  // namespace

ModelledClock::ModelledClock(const npu::Description& machine)
    : machine_(machine), last_(std::make_shared<uint64_t>(0)) {}

std::shared_ptr<ModelledSubmission> ModelledClock::Begin() {
    return std::make_shared<ModelledSubmission>();
}

void ModelledClock::SetBegin(ModelledSubmission& submission) const {
    if (submission.begin == nullptr) {
        submission.begin = last_;
    }
}

npu::RecordId ModelledClock::Append(ModelledSubmission& submission, npu::Record record) {
    SetBegin(submission);
    submission.records.push_back(std::move(record));
    return npu::RecordId(submission.records.size() - 1);
}

void ModelledClock::Owe(ModelledSubmission& submission, const OwedValue& owed) {
    SetBegin(submission);
    submission.owed.push_back(owed);
    submission.owed.back().before = submission.records.size();
}

void ModelledClock::Flush(const std::shared_ptr<ModelledSubmission>& submission) {
    if (submission->owed.empty() && submission->records.size() == submission->flushed) {
        return;
    }
    submission->flushed = submission->records.size();
    last_ = std::make_shared<uint64_t>(0);
    const bool is_owed = !submission->owed.empty();
    left_.push_back({.submission = submission,
                     .records = submission->flushed,
                     .owed = std::exchange(submission->owed, {}),
                     .end = last_});
    left_records_ += submission->flushed;
    while ((is_owed || left_records_ > kMostLeft) && ReplayOne()) {
    }
}

bool ModelledClock::ReplayOne() {
    if (left_.empty()) {
        return false;
    }
    const Flushed next = std::move(left_.front());
    left_.pop_front();
    left_records_ -= next.records;
    Replay(next);
    return true;
}

void ModelledClock::Replay(const Flushed& flushed) {
    const uint64_t begin = *flushed.submission->begin;
    Result<npu::ReplayResult> replayed =
        npu::Replay(machine_, std::span(flushed.submission->records).first(flushed.records));
    if (!replayed.ok() && !std::exchange(has_failed_, true)) {
        LogError("A submission has no modelled time: {}", replayed.error().message);
    }
    const std::vector<npu::RecordTime> times =
        replayed.ok() ? std::move(replayed->records) : std::vector<npu::RecordTime>();
    // All records before a slot have ended by then; before the first one the command processor has
    // just come to it.
    ModelledReadings readings(machine_);
    size_t next = 0;
    uint64_t ended = times.empty() ? 0 : times[0].decoded;
    for (const OwedValue& owed : flushed.owed) {
        for (; next < std::min(owed.before, times.size()); ++next) {
            ended = std::max<uint64_t>(ended, times[next].ended);
            readings.Add(times[next]);
        }
        switch (owed.what) {
            case OwedValue::What::kTimestamp:
                hal::WriteQuery(*owed.slot, begin + ended);
                break;
            case OwedValue::What::kCountBegin:
                hal::BeginCount(*owed.slot, readings.Read(owed.counter, ended));
                break;
            case OwedValue::What::kCountEnd:
                hal::EndCount(*owed.slot, readings.Read(owed.counter, ended));
                break;
        }
    }
    if (replayed.ok()) {
        cycles_ = std::max(cycles_, begin + replayed->total);
    }
    *flushed.end = cycles_;
}

uint64_t ModelledClock::Now() {
    while (ReplayOne()) {
    }
    return cycles_;
}

}  // namespace fornax::driver
