// Workloads that one kind of unit bounds, by which a description of the host is made.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/unit_chains_division.spv.h"
#include "tools/bench/shaders/unit_chains_exponential.spv.h"
#include "tools/bench/shaders/unit_chains_simple.spv.h"
#include "tools/bench/shaders/unit_passes.spv.h"
#include "tools/bench/shaders/unit_stream.spv.h"

namespace fornax::bench {
namespace {

constexpr uint32_t kVerified = 97;
constexpr float kAddend = 0.75f;
constexpr float kFactor = 0.5f;

// What chains of multiply-adds make of a value.
double SumOfChains(double start, uint32_t steps) {
    double sum = 0;
    for (uint32_t chain = 0; chain < kUnitChains; ++chain) {
        double value = start + chain;
        for (uint32_t step = 0; step < steps; ++step) {
            value = value * kFactor + kAddend;
        }
        sum += value;
    }
    return sum;
}

struct ChainConstants {
    uint32_t steps;
    float factor, addend;
};

class UnitChains : public KernelWorkload {
  public:
    explicit UnitChains(Device& device) : KernelWorkload(device) {}

    Status Verify() override {
        for (uint32_t i = 0; i < start_.size(); ++i) {
            double expected = start_[i];
            for (uint32_t dispatch = 0; dispatch < dispatches_; ++dispatch) {
                expected = Sum(expected);
            }
            const double result = Data<float>(0)[i];
            if (!(std::abs(result - expected) <= 1e-4 * expected)) {
                return WrongResult("unit chains", i, result, expected);
            }
        }
        return OkStatus();
    }

  protected:
    Status Init(std::span<const uint32_t> spirv,
                uint32_t invocations,
                uint32_t steps = kUnitSteps,
                uint32_t dispatches = 1) {
        steps_ = steps;
        dispatches_ = dispatches;
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(invocations));
        for (uint32_t i = 0; i < invocations; ++i) {
            Data<float>(0)[i] = 0.25f + static_cast<float>(i % kVerified) / 64;
        }
        const std::span<const float> start = Data<float>(0).subspan(0, kVerified);
        start_.assign(start.begin(), start.end());
        const struct {
            uint32_t steps;
            float addend;
        } constants = {steps, kAddend};
        return Prepare(spirv, constants, {invocations / 256, 1}, dispatches);
    }

    virtual double Function(double x) const = 0;

  private:
    double Sum(double start) const {
        double sum = 0;
        for (uint32_t chain = 0; chain < kUnitChains; ++chain) {
            double value = start + chain;
            for (uint32_t step = 0; step < steps_; ++step) {
                value = Function(value);
            }
            sum += value;
        }
        return sum;
    }

    std::vector<float> start_;  // of the first invocations, which Verify() looks at
    uint32_t steps_ = 0;
    uint32_t dispatches_ = 0;
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

class TeamDispatches final : public UnitChains {
  public:
    explicit TeamDispatches(Device& device) : UnitChains(device) {}
    Status Init(uint32_t workgroups) {
        return UnitChains::Init(spirv::kUnitChainsExponential, 256 * workgroups, kTeamSteps,
                                kTeamDispatches);
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

class SimpleOperations final : public UnitChains {
  public:
    explicit SimpleOperations(Device& device) : UnitChains(device) {}
    Status Init(uint32_t invocations) {
        return UnitChains::Init(spirv::kUnitChainsSimple, invocations);
    }

  private:
    // Each operation is exact or rounded once, so that both have the same bits.
    double Function(double x) const override {
        auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
        bits = (((bits >> 3) ^ bits) + 12345) & 0x7fffff;
        const float y = std::max(static_cast<float>(bits) * 2.384185791015625e-7f, 0.25f);
        return y < kAddend ? y : 2.75f - y;
    }
};

class StreamedChains final : public KernelWorkload {
  public:
    explicit StreamedChains(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t count, uint32_t steps) {
        steps_ = steps;
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        for (uint32_t i = 0; i < count; ++i) {
            Data<float>(0)[i] = static_cast<float>(i % kVerified) / 64;
        }
        return Prepare(spirv::kUnitStream, ChainConstants{steps, kFactor, kAddend},
                       {count / 256, 1});
    }

    Status Verify() override {
        for (uint32_t i = 0; i < kVerified; ++i) {
            const double expected = SumOfChains(Data<float>(0)[i], steps_);
            const double result = Data<float>(1)[i];
            if (!(std::abs(result - expected) <= 1e-4 * expected)) {
                return WrongResult("streamed chains", i, result, expected);
            }
        }
        return OkStatus();
    }

  private:
    uint32_t steps_ = 0;
};

class BarrierChains final : public KernelWorkload {
  public:
    explicit BarrierChains(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t count, uint32_t steps) {
        steps_ = steps;
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count / kSummed));
        for (uint32_t i = 0; i < count; ++i) {
            Data<float>(0)[i] = static_cast<float>(i % kVerified) / 64;
        }
        return Prepare(spirv::kUnitPasses, ChainConstants{steps, kFactor, kAddend},
                       {count / kSummed / kThreads, 1});
    }

    Status Verify() override {
        for (uint32_t i = 0; i < kThreads; ++i) {
            double sum = 0;
            for (uint32_t part = 0; part < kSummed; ++part) {
                const uint32_t place = kThreads - 1 - i + part / 4 * kThreads;
                sum += Data<float>(0)[4 * place + part % 4];
            }
            const double expected = SumOfChains(sum, steps_);
            const double result = Data<float>(1)[i];
            if (!(std::abs(result - expected) <= 1e-4 * expected)) {
                return WrongResult("chains behind a barrier", i, result, expected);
            }
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kSummed = 16;
    static constexpr uint32_t kThreads = 256;

    uint32_t steps_ = 0;
};

}  // namespace

WorkloadResult CreateExponentials(Device& device, uint32_t invocations) {
    return CreateWorkload<Exponentials>(device, invocations);
}

WorkloadResult CreateDivisions(Device& device, uint32_t invocations) {
    return CreateWorkload<Divisions>(device, invocations);
}

WorkloadResult CreateSimpleOperations(Device& device, uint32_t invocations) {
    return CreateWorkload<SimpleOperations>(device, invocations);
}

WorkloadResult CreateTeamDispatches(Device& device, uint32_t workgroups) {
    return CreateWorkload<TeamDispatches>(device, workgroups);
}

WorkloadResult CreateStreamedChains(Device& device, uint32_t count, uint32_t steps) {
    auto workload = std::make_unique<StreamedChains>(device);
    FORNAX_RETURN_IF_ERROR(workload->Init(count, steps));
    return std::unique_ptr<Workload>(std::move(workload));
}

WorkloadResult CreateBarrierChains(Device& device, uint32_t count, uint32_t steps) {
    auto workload = std::make_unique<BarrierChains>(device);
    FORNAX_RETURN_IF_ERROR(workload->Init(count, steps));
    return std::unique_ptr<Workload>(std::move(workload));
}

}  // namespace fornax::bench
