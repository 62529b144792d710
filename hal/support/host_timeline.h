// HostTimeline: the timelines of devices that run on the host. A timeline is an atomic value;
// everything that blocks is in the device's WaitHub.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/result.h"
#include "hal/timeline.h"

namespace fornax::hal {

class SharedTimeline;
class WaitHub;

class HostTimeline final : public Timeline {
  public:
    HostTimeline(std::shared_ptr<WaitHub> hub, uint64_t initial_value);
    HostTimeline(std::shared_ptr<WaitHub> hub, std::shared_ptr<SharedTimeline> shared);
    ~HostTimeline() override;

    Status Signal(uint64_t value) override;
    void Advance(uint64_t value) override;
    Result<UniqueFd> ExportFile() const override;
    Result<UniqueFd> ExportSyncFile(uint64_t value) override;
    Status WaitFor(std::span<const TimelinePoint> points,
                   WaitMode mode,
                   uint64_t timeout_ns) const override;

    // What Device::CreateTimeline and its neighbours give away.
    template <typename State>
    static std::shared_ptr<Timeline> Make(std::shared_ptr<WaitHub> hub, State state) {
        return std::make_shared<HostTimeline>(std::move(hub), std::move(state));
    }

    // Whether the timeline, which may be null, is of the device that the hub belongs to.
    static bool BelongsTo(const Timeline* timeline, const WaitHub& hub);

    // What other devices share of the timeline; null for one that is not shared. For the hub.
    static const SharedTimeline* SharedPart(const Timeline& timeline);

  private:
    void Notify();

    std::shared_ptr<WaitHub> hub_;
    std::shared_ptr<SharedTimeline> shared_;
    alignas(64) Words own_;
    std::atomic<bool> exported_{false};  // to sync files
};

}  // namespace fornax::hal
