// The modelled clock: cycles of the described machine.
//
// It stands still while nothing runs: a submission begins where the last one ended that was flushed
// before. What is flushed is replayed at once if a query waits for its time. Otherwise that is left
// until somebody asks for the time, or the queue has nothing else to do, so that kernels
// do not wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "hal/query.h"
#include "npu/replay/replay.h"

namespace fornax::driver {

// A query's slot that is owed a value.
struct OwedValue {
    enum class What : uint8_t { kTimestamp, kCountBegin, kCountEnd };
    hal::QuerySlot* slot = nullptr;
    What what = What::kTimestamp;
    uint32_t counter = 0;
    size_t before = 0;  // records of the submission that come before it; set by the clock
};

// What a queue was given at a time, as far as it has been done.
struct ModelledSubmission {
    std::shared_ptr<const uint64_t> begin;  // the clock's time
    std::vector<npu::Record> records;
    std::vector<OwedValue> owed;  // since the last flush
    size_t flushed = 0;           // records
};

// Not thread-safe.
class ModelledClock {
  public:
    // The description outlives the clock.
    explicit ModelledClock(const npu::Description& machine);

    static std::shared_ptr<ModelledSubmission> Begin();
    npu::RecordId Append(ModelledSubmission& submission, npu::Record record);
    // The next Flush() of the submission writes the slot, which lives until then.
    void Owe(ModelledSubmission& submission, const OwedValue& owed);
    // What the submission has so far is done.
    void Flush(const std::shared_ptr<ModelledSubmission>& submission);

    // Replays the first of what was left; false: nothing was.
    bool ReplayOne();
    // When everything that was flushed has ended.
    uint64_t Now();

  private:
    struct Flushed {
        std::shared_ptr<ModelledSubmission> submission;
        size_t records = 0;  // the first ones
        std::vector<OwedValue> owed;
        std::shared_ptr<uint64_t> end;
    };

    void SetBegin(ModelledSubmission& submission) const;
    void Replay(const Flushed& flushed);

    const npu::Description& machine_;
    std::deque<Flushed> left_;
    size_t left_records_ = 0;
    std::shared_ptr<uint64_t> last_;  // the clock's time after the last flush, once it is replayed
    uint64_t cycles_ = 0;             // at which everything that was replayed has ended
    bool has_failed_ = false;
};

}  // namespace fornax::driver
