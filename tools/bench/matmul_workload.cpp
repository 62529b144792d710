// What an inference engine waits for at its start: a large matrix-multiply kernel of the kind that
// it has by the hundred, compiled and run for one workgroup.
#include <bit>
#include <chrono>

#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/blocked_matmul.spv.h"

namespace fornax::bench {
namespace {

constexpr uint32_t kSide = 64;  // rows of A, columns of B, and the inner dimension
constexpr uint32_t kBlock = 32;
constexpr uint32_t kBlockWords = 5;
constexpr uint32_t kRowWords = kSide / kBlock * kBlockWords;

// The parameters of blocked_matmul.comp.
struct Parameters {
    uint32_t m = kSide;
    uint32_t n = kSide;
    uint32_t k = kSide;
    uint32_t k_split = kSide;
    uint32_t a_stride = kRowWords;
    uint32_t b_stride = kSide / 4;
    uint32_t d_stride = kSide;
    uint32_t a_batch = 0;
    uint32_t b_batch = 0;
    uint32_t d_batch = 0;
};

class Matmul : public KernelWorkload {
  public:
    explicit Matmul(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(kSide * kRowWords));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(kSide * kSide));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(kSide * kSide));
        // Scales are powers of two and B holds small integers, so that all sums are exact.
        for (uint32_t i = 0; i < kSide * kRowWords; ++i) {
            Data<uint32_t>(0)[i] = i % kBlockWords == 0
                                       ? std::bit_cast<uint32_t>(i % 3 == 0 ? 0.5f : 2.0f)
                                       : i * 2654435761u;
        }
        for (uint32_t i = 0; i < kSide * kSide; ++i) {
            Data<float>(1)[i] = static_cast<float>(i * 7919u % 17) - 8;
        }
        return OkStatus();
    }

    // Everything between asking for the pipeline and the first result.
    Result<double> Run() override {
        const auto start = std::chrono::steady_clock::now();
        FORNAX_RETURN_IF_ERROR(Prepare(spirv::kBlockedMatmul, Parameters(), Grid()));
        Result<double> seconds = KernelWorkload::Run();
        if (!seconds.ok()) {
            return seconds;
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    Status Verify() override {
        for (uint32_t column = 0; column < kSide; ++column) {
            for (uint32_t row = 0; row < kSide; ++row) {
                float expected = 0;
                for (uint32_t k = 0; k < kSide; ++k) {
                    expected += ValueOfA(row, k) * Data<float>(1)[column * kSide + k];
                }
                const uint32_t index = column * kSide + row;
                const float actual = Data<float>(2)[index];
                if (actual != expected) {
                    return WrongResult("matmul", index, actual, expected);
                }
            }
        }
        return OkStatus();
    }

  private:
    float ValueOfA(uint32_t row, uint32_t k) const {
        const uint32_t block = row * kRowWords + k / kBlock * kBlockWords;
        const uint32_t word = Data<uint32_t>(0)[block + 1 + k % kBlock / 8];
        const auto nibble = static_cast<float>(word >> (k % 8 * 4) & 15);
        return std::bit_cast<float>(Data<uint32_t>(0)[block]) * (nibble - 8);
    }
};

}  // namespace

WorkloadResult CreateMatmulPipeline(Device& device, uint32_t size) {
    return CreateWorkload<Matmul>(device, size);
}

}  // namespace fornax::bench
