// What a device counts while it works: the raw material of reports and of tests that prove that
// work was done. Modelled cycles, stalls and energy are those of npu/.
#pragma once

#include <cstdint>

namespace fornax::hal {

// What a query may count: a queue's part of the totals below.
enum class CounterId : uint8_t {
    kInvocations,
    kDispatches,
    kWorkgroups,
    kParallelDispatches,
    kBarriers,
    kBytesCopied,
    kBytesFilled,
    kMultiplyAddsF16,
    kMultiplyAddsBF16,
    kMultiplyAddsInt8,
    kMultiplyAddsF32,
    kMatrixCommands,
    kMatrixFactorsLoaded,
    kMatrixSumsLoaded,
    kMatrixSumsStored,
};
inline constexpr uint32_t kCounterIds = 15;

// Kinds of multiplications that the matrix unit counts apart, in the order of MatrixFormat
// (hal/matrix_unit.h): f16, bf16, int8, f32.
inline constexpr uint32_t kMultiplyAddKinds = 4;

// Totals since the device was created, over all its queues. A snapshot: fields may be of slightly
// different moments while work is running, and are exact once a timeline wait has returned.
struct Counters {
    uint64_t submissions = 0;
    uint64_t packets = 0;      // decoded, ring and streams together
    uint64_t invocations = 0;  // of kernels
    uint64_t dispatches = 0;   // direct and indirect, with a grid that is not empty
    uint64_t workgroups = 0;
    uint64_t parallel_dispatches = 0;  // those that more than one worker was invited to
    uint64_t barriers = 0;
    uint64_t bytes_copied = 0;  // COPY and UPDATE
    uint64_t bytes_filled = 0;
    // What the matrix units did. Scalar multiplications depend on the kernels alone; the commands
    // that load and store are what the compiler made of them.
    uint64_t matrix_multiply_adds[kMultiplyAddKinds] = {};
    uint64_t matrix_commands = 0;  // of every kind
    uint64_t matrix_factors_loaded = 0;
    uint64_t matrix_sums_loaded = 0;
    uint64_t matrix_sums_stored = 0;

    uint64_t of(CounterId id) const {
        switch (id) {
            case CounterId::kInvocations:
                return invocations;
            case CounterId::kDispatches:
                return dispatches;
            case CounterId::kWorkgroups:
                return workgroups;
            case CounterId::kParallelDispatches:
                return parallel_dispatches;
            case CounterId::kBarriers:
                return barriers;
            case CounterId::kBytesCopied:
                return bytes_copied;
            case CounterId::kBytesFilled:
                return bytes_filled;
            case CounterId::kMultiplyAddsF16:
                return matrix_multiply_adds[0];
            case CounterId::kMultiplyAddsBF16:
                return matrix_multiply_adds[1];
            case CounterId::kMultiplyAddsInt8:
                return matrix_multiply_adds[2];
            case CounterId::kMultiplyAddsF32:
                return matrix_multiply_adds[3];
            case CounterId::kMatrixCommands:
                return matrix_commands;
            case CounterId::kMatrixFactorsLoaded:
                return matrix_factors_loaded;
            case CounterId::kMatrixSumsLoaded:
                return matrix_sums_loaded;
            case CounterId::kMatrixSumsStored:
                return matrix_sums_stored;
        }
        return 0;
    }
};

// A counter as people read of it.
struct CounterInfo {
    CounterId id;
    const char* name;
    const char* category;
    const char* description;
    bool bytes = false;  // else a number of something
};

inline constexpr CounterInfo kCounterInfos[kCounterIds] = {
    {CounterId::kInvocations, "Invocations", "Kernels", "Invocations of kernels"},
    {CounterId::kDispatches, "Dispatches", "Kernels", "Dispatches with a grid that is not empty"},
    {CounterId::kWorkgroups, "Workgroups", "Kernels", "Workgroups of dispatches"},
    {CounterId::kParallelDispatches, "Parallel dispatches", "Kernels",
     "Dispatches that were worth inviting more than one worker to"},
    {CounterId::kBarriers, "Barriers", "Command processor",
     "Barriers between commands, those of the driver's own among them"},
    {CounterId::kBytesCopied, "Bytes copied", "Memory",
     "Bytes that copies and updates wrote; kernels are not counted", true},
    {CounterId::kBytesFilled, "Bytes filled", "Memory", "Bytes that fills wrote", true},
    {CounterId::kMultiplyAddsF16, "Matrix multiply-adds, f16", "Matrix unit",
     "Multiplications of f16 by the matrix unit, each added to a sum"},
    {CounterId::kMultiplyAddsBF16, "Matrix multiply-adds, bf16", "Matrix unit",
     "Multiplications of bfloat16 by the matrix unit, each added to a sum"},
    {CounterId::kMultiplyAddsInt8, "Matrix multiply-adds, int8", "Matrix unit",
     "Multiplications of 8-bit integers by the matrix unit, each added to a sum"},
    {CounterId::kMultiplyAddsF32, "Matrix multiply-adds, f32", "Matrix unit",
     "Multiplications of f32 by the matrix unit, each added to a sum"},
    {CounterId::kMatrixCommands, "Matrix commands", "Matrix unit",
     "Commands to the matrix unit, those that load and store among them"},
    {CounterId::kMatrixFactorsLoaded, "Matrix factors loaded", "Matrix unit",
     "Matrices of 16 x 16 that became factor registers of the matrix unit"},
    {CounterId::kMatrixSumsLoaded, "Matrix sums loaded", "Matrix unit",
     "Matrices of 16 x 16 that became sum registers of the matrix unit"},
    {CounterId::kMatrixSumsStored, "Matrix sums stored", "Matrix unit",
     "Sum registers of the matrix unit that were read"},
};
static_assert([] {
    for (uint32_t i = 0; i < kCounterIds; ++i) {
        if (static_cast<uint32_t>(kCounterInfos[i].id) != i) {
            return false;
        }
    }
    return true;
}());

}  // namespace fornax::hal
