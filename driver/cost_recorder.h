// Makes cost records (npu/replay/records.h) of what a device does, and modelled time of them.
//
// Records of all devices of a process go to one file, which is written when a device ends and when
// the process does. Queues of all devices are numbered in the order in which they first did
// something. On a queue a record waits for those before the last barrier; submissions are in
// order. Between queues there are the waits for semaphores. What the host waits for is not known.
//
// Modelled time is the ModelledClock's.
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

#include "driver/dispatch_records.h"
#include "driver/modelled_clock.h"
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
    bool Idle(uint32_t queue) override;
    std::optional<uint64_t> Now() override;

  private:
    // Records by their number, in the file and in the submission's replay.
    struct Group {
        std::vector<npu::RecordId> logged;
        std::vector<npu::RecordId> replayed;
    };
    struct QueueState {
        std::optional<npu::QueueId> id;  // in the file
        bool begins_submission = false;
        Group before;  // the last barrier
        Group since;
        std::shared_ptr<ModelledSubmission> submission;  // that runs, where there is a machine
    };
    struct Signalled {
        const hal::Timeline* timeline = nullptr;
        uint64_t value = 0;
        std::vector<npu::RecordId> records;
    };

    void Add(QueueState& state, npu::Record record);
    void Append(QueueState& state, npu::Record record);
    static void EndGroup(QueueState& state);
    bool Owe(uint32_t queue, const OwedValue& owed);

    const NpuSettings settings_;
    std::mutex mutex_;
    std::map<uint32_t, QueueState> queues_;
    std::deque<Signalled> signalled_;
    DispatchRecords dispatches_;
    std::optional<ModelledClock> clock_;  // where there is a machine
};

}  // namespace fornax::driver
