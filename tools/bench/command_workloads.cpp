// What it costs to start work: submissions, dispatches with barriers, workgroups.
#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/empty_group.spv.h"
#include "tools/bench/shaders/increment.spv.h"

namespace fornax::bench {
namespace {

class Dispatches : public KernelWorkload {
  public:
    explicit Dispatches(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t dispatches) {
        dispatches_ = dispatches;
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(1));
        Data<uint32_t>(0)[0] = kStart;
        return Prepare(spirv::kIncrement, Grid(), dispatches);
    }

    Status Verify() override {
        const uint32_t count = Data<uint32_t>(0)[0];
        if (count != kStart + dispatches_) {
            return WrongResult("dispatches", 0, count, kStart + dispatches_);
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kStart = 7;

    uint32_t dispatches_ = 0;
};

class EmptyGroups : public KernelWorkload {
  public:
    explicit EmptyGroups(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t groups) {
        const Grid grid = {kGroupsX, groups / kGroupsX};
        const uint32_t last_invocation[2] = {grid.x * kGroupSize - 1, grid.y - 1};
        mark_ = last_invocation[0] + last_invocation[1];
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(1));
        Data<uint32_t>(0)[0] = 0;
        return Prepare(spirv::kEmptyGroup, last_invocation, grid);
    }

    Status Verify() override {
        const uint32_t mark = Data<uint32_t>(0)[0];
        return mark == mark_ ? OkStatus() : WrongResult("empty groups", 0, mark, mark_);
    }

  private:
    static constexpr uint32_t kGroupsX = 1024;
    static constexpr uint32_t kGroupSize = 64;

    uint32_t mark_ = 0;
};

}  // namespace

WorkloadResult CreateDispatches(Device& device, uint32_t dispatches) {
    return CreateWorkload<Dispatches>(device, dispatches);
}

WorkloadResult CreateEmptyGroups(Device& device, uint32_t groups) {
    return CreateWorkload<EmptyGroups>(device, groups);
}

}  // namespace fornax::bench
