// Packs of weights, one for each matrix, shared by all graphs of a device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/ggml/pack.h"

namespace fornax::ggml_plugin {

// Whole pages of memory, which devices import.
class Pages {
  public:
    static Result<std::unique_ptr<Pages>> Allocate(uint64_t size_bytes);
    ~Pages();

    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    uint8_t* data() const { return data_; }
    uint64_t size_bytes() const { return size_bytes_; }

  private:
    Pages() = default;

    uint8_t* data_ = nullptr;
    uint64_t size_bytes_ = 0;
};

// Immutable.
struct PackedWeights {
    const ggml_frontend::TypeInfo* type = nullptr;
    const void* rows = nullptr;  // what it was made of
    uint64_t row_bytes = 0;      // all of them
    int64_t k = 0, n = 0;
    // By Part; null for a part that the type does not have.
    std::array<std::unique_ptr<Pages>, ggml_frontend::kParts> parts;

    const Pages* part(ggml_frontend::Part part) const {
        return parts[static_cast<size_t>(part)].get();
    }
};

// Thread-safe.
class WeightStore {
  public:
    // The pack of the matrix [k, n] at an address, made when it is first asked for.
    Result<std::shared_ptr<const PackedWeights>> Get(const ggml_frontend::TypeInfo& type,
                                                     const void* rows,
                                                     uint64_t size_bytes,
                                                     int64_t k,
                                                     int64_t n);
    // Lets go of the packs of matrices with a byte in [begin, begin + size).
    void Forget(const void* begin, uint64_t size);

  private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<const PackedWeights>> packs_;
};

// Whether two pieces of memory have a byte in common.
bool Overlap(const void* a, uint64_t size_a, const void* b, uint64_t size_b);

}  // namespace fornax::ggml_plugin
