// Makes cost records (npu/replay/records.h) of what a device does, and modelled time of them.
//
// Records of all devices of a process go to one file, which is written when a device ends and when
// the process does. Queues of all devices are numbered in the order in which they first did
// something. On a queue a record waits for those before the last barrier; submissions are in
// order. Between queues there are the waits for semaphores. What the host waits for is not known.
//
// The modelled clock counts cycles of the described machine. It stands still while nothing runs: a
// submission begins where the last one ended, is replayed when it ends, and then its timestamps
// are written.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/npu_settings.h"
#include "hal/work_observer.h"
#include "npu/replay/records.h"

namespace fornax::driver {

class CostRecorder final : public hal::WorkObserver {
  public:
    explicit CostRecorder(NpuSettings settings);
    // The device has ended: writes the file.
    ~CostRecorder() override;

    void BeginSubmission(uint32_t queue) override;
    void Dispatch(uint32_t queue,
                  const hal::Executable& executable,
                  const hal::DispatchFrame& frame,
                  uint64_t workgroups,
                  std::span<const uint64_t> region_counts) override;
    void Copy(uint32_t queue, hal::ObservedCopy kind, uint64_t bytes) override;
    void Barrier(uint32_t queue) override;
    void Wait(uint32_t queue, const hal::Timeline& timeline, uint64_t value) override;
    void Signal(uint32_t queue, const hal::Timeline& timeline, uint64_t value) override;
    bool Timestamp(uint32_t queue, hal::QuerySlot& slot) override;
    bool Count(uint32_t queue, hal::QuerySlot& slot, uint32_t counter, bool begins) override;
    void Flush(uint32_t queue) override;
    std::optional<uint64_t> Now() override;

  private:
    // Records by their number, in the file and in the submission's replay.
    struct Group {
        std::vector<npu::RecordId> logged;
        std::vector<npu::RecordId> replayed;
    };
    // A slot that is owed a value.
    struct Owed {
        enum class What : uint8_t { kTimestamp, kCountBegin, kCountEnd };
        hal::QuerySlot* slot = nullptr;
        What what = What::kTimestamp;
        uint32_t counter = 0;
        size_t before = 0;  // records of the submission that come before it
    };
    struct QueueState {
        std::optional<npu::QueueId> id;  // in the file
        bool begins_submission = false;
        Group before;  // the last barrier
        Group since;
        // The submission that runs.
        uint64_t base = 0;
        std::vector<npu::Record> records;
        size_t replayed = 0;  // records that the clock knows
        std::vector<Owed> owed;
    };
    struct Signalled {
        const hal::Timeline* timeline = nullptr;
        uint64_t value = 0;
        std::vector<npu::RecordId> records;
    };

    void Add(QueueState& state, npu::Record record);
    void Append(QueueState& state, npu::Record record);
    static void EndGroup(QueueState& state);
    void Owe(QueueState& state, const Owed& owed);
    void Replay(QueueState& state);

    const NpuSettings settings_;
    std::mutex mutex_;
    std::map<uint32_t, QueueState> queues_;
    std::deque<Signalled> signalled_;
    uint64_t clock_ = 0;  // cycles at which all work so far has ended
    bool has_failed_ = false;
};

}  // namespace fornax::driver
