// The loops by which the host's limits are measured, one set for each vector instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fornax::bench {

// Functions of one instruction set. Arrays are aligned to 64 bytes and their counts are multiples
// of 256.
struct HostKernels {
    const char* name;
    uint32_t vector_bits;
    bool (*is_supported)();
    // Runs independent chains of fused multiply-adds; returns the floating-point operations done
    // and leaves a value that depends on all of them in `sink`.
    double (*fma)(uint64_t steps, float* sink);
    // out = a + factor * b, as in the STREAM benchmark; the second with stores that bypass the
    // caches.
    void (*triad)(float* out, const float* a, const float* b, float factor, size_t count);
    void (*triad_streaming)(float* out, const float* a, const float* b, float factor, size_t count);
    void (*copy)(float* out, const float* in, size_t count);
    void (*copy_streaming)(float* out, const float* in, size_t count);
    float (*read)(const float* in, size_t count);  // the sum
    // Multiplies matrices tile by tile, from kProductFloats that the cores' own caches
    // hold; returns the multiply-adds done.
    double (*product)(uint64_t steps, const float* panels, float* tile);
    // Runs independent chains of int8 dot products as quick as the instruction set has them;
    // returns the multiply-accumulates done, 0 if the processor has none.
    double (*dot)(uint64_t steps, int32_t* sink);
};

// What `product` reads, of all ones or any values, and adds to: floats.
inline constexpr size_t kProductFloats = (256u << 10) / sizeof(float);
inline constexpr size_t kProductTileFloats = 256;

// Every set that this build has; the caller asks is_supported first.
std::vector<HostKernels> AllHostKernels();

// Each is defined in its own file, which is compiled for its instruction set.
HostKernels PortableHostKernels();
#if defined(__x86_64__)
HostKernels Avx2HostKernels();
HostKernels Avx512HostKernels();
#endif

}  // namespace fornax::bench
