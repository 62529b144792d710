// Packs of weights, one for each matrix, shared by all graphs of a device.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
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

// A matrix [k, n] in memory.
struct WeightMatrix {
    const ggml_frontend::TypeInfo* type = nullptr;
    const void* rows = nullptr;
    uint64_t size_bytes = 0;
    int64_t k = 0, n = 0;

    bool operator==(const WeightMatrix&) const = default;
};

// Immutable.
struct PackedWeights {
    WeightMatrix matrix;  // what it was made of
    // By Part; null for a part that the type does not have.
    std::array<std::unique_ptr<Pages>, ggml_frontend::kParts> parts;

    const Pages* part(ggml_frontend::Part part) const {
        return parts[static_cast<size_t>(part)].get();
    }
};

// Thread-safe.
//
// Graphs of few rows may read matrices where they lie, so that the first token of a process does
// not wait for packs. Their packs are put off: each run of such a graph but its first makes a part
// of them, so that no token waits for all. How many runs that takes depends on the matrices alone,
// and so does what is computed with which kernels.
class WeightStore {
  public:
    // The pack of a matrix, made when it is first asked for.
    Result<std::shared_ptr<const PackedWeights>> Get(const WeightMatrix& matrix);
    // Whether a graph reads these matrices where they lie, until all of them are packed. A prompt
    // puts off those that are not; other graphs do not begin to.
    bool PutOff(std::span<const WeightMatrix> matrices, bool is_prompt);
    // Makes a part of the packs that are put off.
    Status PackSome();
    bool is_any_put_off() const { return is_any_put_off_.load(std::memory_order_acquire); }
    // Lets go of the packs of matrices with a byte in [begin, begin + size).
    void Forget(const void* begin, uint64_t size);

  private:
    using Packs = std::vector<std::shared_ptr<const PackedWeights>>;

    Packs::const_iterator Find(const WeightMatrix& matrix) const;
    // With the mutex locked.
    Result<std::shared_ptr<const PackedWeights>> GetLocked(const WeightMatrix& matrix);
    void NotePutOff();

    std::mutex mutex_;
    Packs packs_;
    std::deque<WeightMatrix> put_off_;
    uint64_t part_bytes_ = 0;  // of the matrices that a run packs
    std::atomic<bool> is_any_put_off_ = false;
};

// Whether two pieces of memory have a byte in common.
bool Overlap(const void* a, uint64_t size_a, const void* b, uint64_t size_b);

}  // namespace fornax::ggml_plugin
