// The null device's queue: a list of submissions and the thread that goes through it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hal/counters.h"
#include "hal/device.h"
#include "hal/queue.h"
#include "hal/support/host_timeline.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal::null {

class NullQueue : public Queue {
  public:
    NullQueue(std::shared_ptr<Device> device, std::shared_ptr<WaitHub> hub);
    ~NullQueue() override;

    // Ends the thread, as the destructor does. No other thread may be in a call but for waits.
    void Stop();

    Status Submit(const SubmitInfo& submission) override;
    Status WaitIdle(uint64_t timeout_ns) override;

    Counters counters() const;

  private:
    struct Work {
        std::vector<TimelinePoint> waits;
        std::vector<std::shared_ptr<const CommandStream>> streams;
        std::vector<TimelinePoint> signals;
        uint64_t serial = 0;
    };

    void ThreadMain();
    Status RunWork(Work& work);
    Status RunStream(const CommandStream& stream);
    template <typename Done>
    Status Poll(Done done) const;

    const std::shared_ptr<Device> device_;
    const std::shared_ptr<WaitHub> hub_;
    HostTimeline progress_;  // the serial of the last finished submission

    // What submitters and the thread share.
    struct Inbox {
        std::mutex mutex;
        std::condition_variable arrived;
        std::deque<Work> works;
        uint64_t last_serial = 0;
    };
    std::unique_ptr<Inbox> inbox_ = std::make_unique<Inbox>();
    std::unique_ptr<std::thread> thread_;  // under the inbox's mutex
    std::atomic<bool> stop_{false};
    std::atomic<uint64_t> submissions_{0};
    std::atomic<uint64_t> packets_{0};
    std::atomic<uint64_t> barriers_{0};
};

}  // namespace fornax::hal::null
