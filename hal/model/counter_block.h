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

static_assert(kMultiplyAddKinds == kMatrixFormats);
static_assert(static_cast<uint32_t>(MatrixFormat::kF16) == 0);
static_assert(static_cast<uint32_t>(MatrixFormat::kBF16) == 1);
static_assert(static_cast<uint32_t>(MatrixFormat::kInt8) == 2);
static_assert(static_cast<uint32_t>(MatrixFormat::kF32) == 3);

struct alignas(64) CounterBlock {
    Counter submissions;
    Counter packets;
    Counter invocations;
    Counter dispatches;
    Counter workgroups;
    Counter parallel_dispatches;
    Counter barriers;
    Counter bytes_copied;
    Counter bytes_filled;
    Counter matrix_multiply_adds[kMatrixFormats];
    Counter matrix_commands;
    Counter matrix_factors_loaded;
    Counter matrix_sums_loaded;
    Counter matrix_sums_stored;

    void AddMatrix(const MatrixCounts& counts) {
        for (uint32_t i = 0; i < kMatrixFormats; ++i) {
            matrix_multiply_adds[i].Add(counts.products[i] * kMultiplyAddsPerProduct);
        }
        matrix_commands.Add(counts.commands());
        matrix_factors_loaded.Add(counts.factors_loaded);
        matrix_sums_loaded.Add(counts.sums_loaded);
        matrix_sums_stored.Add(counts.sums_stored);
    }

    void AddTo(Counters& totals) const {
        totals.submissions += submissions.value();
        totals.packets += packets.value();
        totals.invocations += invocations.value();
        totals.dispatches += dispatches.value();
        totals.workgroups += workgroups.value();
        totals.parallel_dispatches += parallel_dispatches.value();
        totals.barriers += barriers.value();
        totals.bytes_copied += bytes_copied.value();
        totals.bytes_filled += bytes_filled.value();
        for (uint32_t i = 0; i < kMatrixFormats; ++i) {
            totals.matrix_multiply_adds[i] += matrix_multiply_adds[i].value();
        }
        totals.matrix_commands += matrix_commands.value();
        totals.matrix_factors_loaded += matrix_factors_loaded.value();
        totals.matrix_sums_loaded += matrix_sums_loaded.value();
        totals.matrix_sums_stored += matrix_sums_stored.value();
    }
};

}  // namespace fornax::hal::model
