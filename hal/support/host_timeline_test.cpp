#include "hal/support/host_timeline.h"

#include <gtest/gtest.h>

#include "hal/support/shared_timeline.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal {
namespace {

// A timeline of a device that does not run on the host.
class ForeignTimeline : public Timeline {
  public:
    ForeignTimeline() : Timeline(&own_) {}

    Status Signal(uint64_t) override { return OkStatus(); }
    void Advance(uint64_t value) override { own_.value = value; }
    Result<UniqueFd> ExportFile() const override { return UniqueFd(); }
    Result<UniqueFd> ExportSyncFile(uint64_t) override { return UniqueFd(); }
    Status WaitFor(std::span<const TimelinePoint>, WaitMode, uint64_t) const override {
        return OkStatus();
    }

  private:
    Words own_{};
};

std::shared_ptr<WaitHub> NewHub() {
    return std::make_shared<WaitHub>(nullptr);
}

// Queues refuse what is not of their device; other devices' timelines may be of any kind.
TEST(HostTimeline, KnowsItsDevice) {
    const auto hub = NewHub();
    const auto other = NewHub();
    const HostTimeline timeline(hub, 0);
    EXPECT_TRUE(HostTimeline::BelongsTo(&timeline, *hub));
    EXPECT_FALSE(HostTimeline::BelongsTo(&timeline, *other));
    EXPECT_FALSE(HostTimeline::BelongsTo(nullptr, *hub));
    const ForeignTimeline foreign;
    EXPECT_FALSE(HostTimeline::BelongsTo(&foreign, *hub));
    EXPECT_EQ(HostTimeline::SharedPart(foreign), nullptr);
}

TEST(HostTimeline, SharesItsWordsWhenItIsMadeSo) {
    auto shared = SharedTimeline::Create(5);
    ASSERT_TRUE(shared.ok());
    HostTimeline here(NewHub(), *shared);
    HostTimeline there(NewHub(), *shared);
    EXPECT_EQ(HostTimeline::SharedPart(here), shared->get());
    ASSERT_TRUE(here.Signal(7).ok());
    EXPECT_EQ(there.value(), 7u);
    EXPECT_EQ(&here.target(), &there.target());
    const HostTimeline own(NewHub(), 5);
    EXPECT_EQ(HostTimeline::SharedPart(own), nullptr);
}

// The contract's functions reach the device of the points.
TEST(HostTimeline, WaitsForPointsOfItsDevice) {
    const auto hub = NewHub();
    const auto reached = std::make_shared<HostTimeline>(hub, 1);
    const auto pending = std::make_shared<HostTimeline>(hub, 0);
    const TimelinePoint points[] = {{pending, 1}, {reached, 1}};
    EXPECT_TRUE(WaitAny(points, 0).ok());
    const Status all = WaitAll(points, 0);
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.error().code, ErrorCode::kTimeout);
    EXPECT_FALSE(pending->Wait(1, 0).ok());
    pending->Advance(1);
    EXPECT_TRUE(WaitAll(points, 0).ok());
    EXPECT_TRUE(pending->Wait(1, 0).ok());
}

}  // namespace
}  // namespace fornax::hal
