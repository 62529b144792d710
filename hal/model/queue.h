// A queue of the software device: turns submissions into ring packets, and owns the thread that the
// command processor runs on.
//
// Submit never waits for certain work. What does not fit the ring stands in a backlog, from which
// the command processor refills the ring, so even a submission that waits for a signal that the
// same host thread will only make later cannot block anybody. Only who is thousands of submissions
// ahead of a queue that is at work is slowed down.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hal/model/command_processor.h"
#include "hal/model/counter_block.h"
#include "hal/model/ring.h"
#include "hal/queue.h"
#include "hal/support/adaptive_spin.h"
#include "hal/support/host_timeline.h"

namespace fornax::hal::model {

class ModelDevice;

// One submission while it is pending. In its table the timelines of the waits come first, then
// those of the signals.
struct Submission {
    ResourceTable resources;
    std::vector<uint64_t> values;  // by timeline
    uint64_t serial = 0;
    size_t wait_count = 0;
    size_t stream_count = 0;  // still that when the table has let its streams go
    size_t next_packet = 0;   // the first that is not in the ring yet

    size_t packet_count() const;
    Packet MakePacket(size_t index) const;
};

class ModelQueue : public Queue {
  public:
    explicit ModelQueue(std::shared_ptr<ModelDevice> device);
    ~ModelQueue() override;

    Status Submit(const SubmitInfo& submission) override;
    Status WaitIdle(uint64_t timeout_ns) override;

    // Ends the thread, as the destructor does. No other thread may be in a call but for waits.
    void Stop();

    const std::shared_ptr<CounterBlock>& counters() const { return counters_; }

  private:
    Status StartThread();
    void FillRing();
    void RingDoorbell();
    void ThreadMain();
    bool WaitForWork();
    void Process(const Ring::Entry& entry);

    const std::shared_ptr<ModelDevice> device_;
    const std::shared_ptr<WaitHub> hub_;
    const std::shared_ptr<CounterBlock> counters_;
    // The serial of the last finished submission, for WaitIdle.
    HostTimeline progress_;

    std::mutex mutex_;  // of the producers' side, and of thread_
    std::deque<Submission*> backlog_;
    uint64_t last_serial_ = 0;
    std::unique_ptr<std::thread> thread_;

    std::atomic<bool> has_backlog_{false};
    std::atomic<bool> stop_{false};
    std::atomic<uint32_t> ended_{0};  // the thread has
    alignas(64) std::atomic<uint32_t> doorbell_{0};
    std::atomic<uint32_t> asleep_{0};
    std::atomic<uint64_t> rung_ns_{0};  // when the doorbell was rung last
    AdaptiveSpin spin_{2'000, 50'000};
    std::unique_ptr<Ring> ring_;
    const Submission* begun_ = nullptr;  // of which the thread has taken a packet, not the last
    std::unique_ptr<CommandProcessor> processor_;
};

}  // namespace fornax::hal::model
