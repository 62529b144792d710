// What a device counts while it works: the raw material of reports and of tests that prove that
// work was done. The timed model will add cycles, stalls and energy beside these.
#pragma once

#include <cstdint>

#include "hal/matrix_unit.h"

namespace fornax::hal {

// Totals since the device was created, over all its queues. A snapshot: fields may be of slightly
// different moments while work is running, and are exact once a timeline wait has returned.
struct Counters {
    uint64_t submissions = 0;
    uint64_t packets = 0;     // decoded, ring and streams together
    uint64_t dispatches = 0;  // direct and indirect, with a grid that is not empty
    uint64_t workgroups = 0;
    uint64_t parallel_dispatches = 0;  // those that more than one worker was invited to
    uint64_t barriers = 0;
    uint64_t bytes_copied = 0;  // COPY and UPDATE
    uint64_t bytes_filled = 0;
    // Of the matrix units. Scalar multiplications depend on the kernels alone; the commands that
    // load and store are what the compiler made of them.
    uint64_t matrix_multiply_adds[kMatrixFormats] = {};  // by MatrixFormat
    uint64_t matrix_commands = 0;                        // of every kind
    uint64_t matrix_factors_loaded = 0;
    uint64_t matrix_sums_loaded = 0;
    uint64_t matrix_sums_stored = 0;
};

}  // namespace fornax::hal
