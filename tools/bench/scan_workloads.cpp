// Prefix sums with subgroup operations: of rows, and of one long array with decoupled look-back.
#include <algorithm>

#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/look_back.spv.h"
#include "tools/bench/shaders/prefix_rows.spv.h"

namespace fornax::bench {
namespace {

// Sums wrap, so that every bit of every element counts.
uint32_t Element(size_t i) {
    return static_cast<uint32_t>(i) * 2654435761u;
}

class PrefixRows : public KernelWorkload {
  public:
    explicit PrefixRows(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t rows) {
        for (int i = 0; i < 2; ++i) {
            FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(size_t{rows} * kPrefixRowLength));
        }
        const std::span<uint32_t> matrix = Data<uint32_t>(0);
        for (size_t i = 0; i < matrix.size(); ++i) {
            matrix[i] = Element(i);
        }
        std::ranges::fill(Data<uint32_t>(1), 0u);
        return Prepare(spirv::kPrefixRows, kPrefixRowLength, {rows, 1});
    }

    Status Verify() override {
        const std::span<uint32_t> sums = Data<uint32_t>(1);
        uint32_t expected = 0;
        for (size_t i = 0; i < sums.size(); ++i) {
            expected = (i % kPrefixRowLength == 0 ? 0 : expected) + Element(i);
            if (sums[i] != expected) {
                return WrongResult("prefix sums of rows", i, sums[i], expected);
            }
        }
        return OkStatus();
    }
};

class LookBack : public KernelWorkload {
  public:
    explicit LookBack(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t count) {
        const uint32_t parts = count / kPartLength;
        for (size_t words : {count, count, 1u, parts, parts, parts}) {
            FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(words));
        }
        for (size_t binding = 1; binding < 6; ++binding) {
            std::ranges::fill(Data<uint32_t>(binding), 0u);
        }
        const std::span<uint32_t> source = Data<uint32_t>(0);
        for (size_t i = 0; i < source.size(); ++i) {
            source[i] = Element(i);
        }
        return Prepare(spirv::kLookBack, parts, {parts, 1});
    }

    Status Verify() override {
        const std::span<uint32_t> sums = Data<uint32_t>(1);
        uint32_t expected = 0;
        for (size_t i = 0; i < sums.size(); ++i) {
            expected += Element(i);
            if (sums[i] != expected) {
                return WrongResult("look-back scan", i, sums[i], expected);
            }
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kPartLength = 4096;
};

}  // namespace

WorkloadResult CreatePrefixRows(Device& device, uint32_t rows) {
    return CreateWorkload<PrefixRows>(device, rows);
}

WorkloadResult CreateLookBack(Device& device, uint32_t count) {
    return CreateWorkload<LookBack>(device, count);
}

}  // namespace fornax::bench
