// The counters that a described machine adds to performance queries: sums over what a replay says
// of the records between a query's begin and its end. They follow the device's own, in this order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <vulkan/vulkan_core.h>

#include "npu/replay/replay.h"

namespace fornax::driver {

struct ModelledCounterInfo {
    const char* name;
    const char* category;
    const char* description;
    VkPerformanceCounterUnitKHR unit;
};

inline constexpr uint32_t kModelledCounters = 14;
extern const std::array<ModelledCounterInfo, kModelledCounters> kModelledCounterInfos;

// What the counters read in a submission.
class ModelledReadings {
  public:
    explicit ModelledReadings(const npu::Description& machine) : machine_(machine) {}

    // The next record's.
    void Add(const npu::RecordTime& time);
    // `at`: cycles since the submission began.
    uint64_t Read(uint32_t counter, npu::Cycles at) const;

  private:
    const npu::Description& machine_;
    npu::UnitCycles busy_;
    npu::Traffic traffic_;
    npu::EnergyEvents events_;
};

}  // namespace fornax::driver
