// The counters of one command processor, which alone writes them; anyone may read a snapshot.
#pragma once

#include <atomic>
#include <cstdint>

#include "hal/counters.h"
#include "hal/matrix_unit.h"

namespace fornax::hal::model {

// Incremented by one thread: a plain load and store, made atomic for the readers' sake.
class Counter {
  public:
    void Add(uint64_t amount) {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    uint64_t value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> value_{0};
};

static_assert(MultiplyAddsOf(static_cast<uint32_t>(MatrixFormat::kF16)) ==
              CounterId::kMultiplyAddsF16);
static_assert(MultiplyAddsOf(static_cast<uint32_t>(MatrixFormat::kBF16)) ==
              CounterId::kMultiplyAddsBF16);
static_assert(MultiplyAddsOf(static_cast<uint32_t>(MatrixFormat::kInt8)) ==
              CounterId::kMultiplyAddsInt8);
static_assert(MultiplyAddsOf(static_cast<uint32_t>(MatrixFormat::kF32)) ==
              CounterId::kMultiplyAddsF32);
static_assert(kMatrixFormats == 4);

struct alignas(64) CounterBlock {
#define FORNAX_TOTAL(field) Counter field;
#define FORNAX_COUNTER(id, field, unit, name, category, description) Counter field;
#include "hal/counters.def"

    void AddMatrix(const MatrixCounts& counts) {
        Counter* const multiply_adds[kMatrixFormats] = {&multiply_adds_f16, &multiply_adds_bf16,
                                                        &multiply_adds_int8, &multiply_adds_f32};
        for (uint32_t i = 0; i < kMatrixFormats; ++i) {
            multiply_adds[i]->Add(counts.mmas[i] * kMultiplyAddsPerMma);
        }
        matrix_commands.Add(counts.commands());
        matrix_operands_loaded.Add(counts.operands_loaded);
        matrix_accumulators_loaded.Add(counts.accumulators_loaded);
        matrix_accumulators_stored.Add(counts.accumulators_stored);
    }

    void AddTo(Counters& totals) const {
#define FORNAX_TOTAL(field) totals.field += field.value();
#define FORNAX_COUNTER(id, field, unit, name, category, description) FORNAX_TOTAL(field)
#include "hal/counters.def"
    }
};

}  // namespace fornax::hal::model
