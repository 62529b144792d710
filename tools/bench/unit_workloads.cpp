// Workloads that one kind of unit bounds, by which a description of the host is made.
#include <cmath>
#include <vector>

#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/unit_chains_division.spv.h"
#include "tools/bench/shaders/unit_chains_exponential.spv.h"

namespace fornax::bench {
namespace {

class UnitChains : public KernelWorkload {
  public:
    explicit UnitChains(Device& device) : KernelWorkload(device) {}

    Status Verify() override {
        for (uint32_t i = 0; i < start_.size(); ++i) {
            double expected = 0;
            for (uint32_t chain = 0; chain < kUnitChains; ++chain) {
                double value = double{start_[i]} + chain;
                for (uint32_t step = 0; step < kUnitSteps; ++step) {
                    value = Function(value);
                }
                expected += value;
            }
            const double result = Data<float>(0)[i];
            if (!(std::abs(result - expected) <= 1e-4 * expected)) {
                return WrongResult("unit chains", i, result, expected);
            }
        }
        return OkStatus();
    }

  protected:
    static constexpr float kAddend = 0.75f;

    Status Init(std::span<const uint32_t> spirv, uint32_t invocations) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(invocations));
        for (uint32_t i = 0; i < invocations; ++i) {
            Data<float>(0)[i] = 0.25f + static_cast<float>(i % 97) / 64;
        }
        const std::span<const float> start = Data<float>(0).subspan(0, 97);
        start_.assign(start.begin(), start.end());
        const struct {
            uint32_t steps;
            float addend;
        } constants = {kUnitSteps, kAddend};
        return Prepare(spirv, constants, {invocations / 256, 1});
    }

    virtual double Function(double x) const = 0;

  private:
    std::vector<float> start_;  // of the first invocations, which Verify() looks at
};

class Exponentials final : public UnitChains {
  public:
    explicit Exponentials(Device& device) : UnitChains(device) {}
    Status Init(uint32_t invocations) {
        return UnitChains::Init(spirv::kUnitChainsExponential, invocations);
    }

  private:
    double Function(double x) const override { return std::exp(-x); }
};

class Divisions final : public UnitChains {
  public:
    explicit Divisions(Device& device) : UnitChains(device) {}
    Status Init(uint32_t invocations) {
        return UnitChains::Init(spirv::kUnitChainsDivision, invocations);
    }

  private:
    double Function(double x) const override { return kAddend / (x + kAddend); }
};

}  // namespace

WorkloadResult CreateExponentials(Device& device, uint32_t invocations) {
    return CreateWorkload<Exponentials>(device, invocations);
}

WorkloadResult CreateDivisions(Device& device, uint32_t invocations) {
    return CreateWorkload<Divisions>(device, invocations);
}

}  // namespace fornax::bench
