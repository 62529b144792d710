// The loops of HostKernels over a vector type V, for the files that define V for one instruction
// set.
//
// V must live in the including file's anonymous namespace: these instantiations are compiled for an
// instruction set that other files may not use, so the linker must not merge them with others.
#pragma once

#include "tools/bench/host_kernels.h"

namespace fornax::bench {

// Each chain adds four products to each lane.
inline constexpr int kDotChains = 12;

template <typename V>
struct HostLoops {
    using Vector = typename V::Vector;
    static constexpr size_t kLanes = sizeof(Vector) / sizeof(float);

    static double Fma(uint64_t steps, float* sink) {
        // Enough chains to cover four cycles of latency on two units, and few enough for 16
        // registers.
        constexpr int kChains = 12;
        Vector chains[kChains];
        for (int i = 0; i < kChains; ++i) {
            chains[i] = V::Broadcast(static_cast<float>(i));
        }
        const Vector factor = V::Broadcast(0.999f);
        const Vector addend = V::Broadcast(0.5f);
        for (uint64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
            for (int i = 0; i < kChains; ++i) {
                chains[i] = V::Fma(chains[i], factor, addend);
            }
        }
        alignas(64) float lanes[kLanes];
        for (int i = 1; i < kChains; ++i) {
            chains[0] = V::Add(chains[0], chains[i]);
        }
        V::Store(lanes, chains[0]);
        for (float lane : lanes) {
            *sink += lane;
        }
        return 2.0 * kChains * kLanes * static_cast<double>(steps);
    }

    static void Triad(float* out, const float* a, const float* b, float factor, size_t count) {
        const Vector factors = V::Broadcast(factor);
        for (size_t i = 0; i < count; i += kLanes) {
            V::Store(out + i, V::Fma(factors, V::Load(b + i), V::Load(a + i)));
        }
    }

    static void TriadStreaming(float* out,
                               const float* a,
                               const float* b,
                               float factor,
                               size_t count) {
        const Vector factors = V::Broadcast(factor);
        for (size_t i = 0; i < count; i += kLanes) {
            V::Stream(out + i, V::Fma(factors, V::Load(b + i), V::Load(a + i)));
        }
        V::Fence();
    }

    static void Copy(float* out, const float* in, size_t count) {
        for (size_t i = 0; i < count; i += kLanes) {
            V::Store(out + i, V::Load(in + i));
        }
    }

    static void CopyStreaming(float* out, const float* in, size_t count) {
        for (size_t i = 0; i < count; i += kLanes) {
            V::Stream(out + i, V::Load(in + i));
        }
        V::Fence();
    }

    static float Read(const float* in, size_t count) {
        constexpr size_t kSums = 8;  // independent, so that additions do not wait for each other
        Vector sums[kSums];
        for (Vector& sum : sums) {
            sum = V::Broadcast(0.0f);
        }
        for (size_t i = 0; i < count; i += kSums * kLanes) {
#pragma GCC unroll 8
            for (size_t j = 0; j < kSums; ++j) {
                sums[j] = V::Add(sums[j], V::Load(in + i + j * kLanes));
            }
        }
        for (size_t j = 1; j < kSums; ++j) {
            sums[0] = V::Add(sums[0], sums[j]);
        }
        alignas(64) float lanes[kLanes];
        V::Store(lanes, sums[0]);
        float total = 0;
        for (float lane : lanes) {
            total += lane;
        }
        return total;
    }

    // The rows of a tile and its columns in vectors are what compilers of kernels choose: as many
    // accumulators as there are chains in Fma().
    static double Product(uint64_t steps, const float* panels, float* tile) {
        constexpr size_t kRows = 6, kColumns = 2, kDepth = 256;
        constexpr size_t kOfA = kRows * kDepth, kOfB = kColumns * kLanes * kDepth;
        constexpr size_t kPanels = (kProductFloats - kOfA) / kOfB;
        static_assert(kRows * kColumns * kLanes <= kProductTileFloats && kPanels > 0);
        const float* const b = panels + kOfA;
        for (uint64_t step = 0; step < steps; ++step) {
            for (size_t panel = 0; panel < kPanels; ++panel) {
                Vector sums[kRows * kColumns];
#pragma GCC unroll 12
                for (size_t i = 0; i < kRows * kColumns; ++i) {
                    sums[i] = V::Load(tile + i * kLanes);
                }
                for (size_t k = 0; k < kDepth; ++k) {
                    const float* const row_of_b = b + panel * kOfB + k * kColumns * kLanes;
                    const Vector left = V::Load(row_of_b), right = V::Load(row_of_b + kLanes);
#pragma GCC unroll 6
                    for (size_t row = 0; row < kRows; ++row) {
                        const Vector a = V::Broadcast(panels[k * kRows + row]);
                        sums[2 * row] = V::Fma(a, left, sums[2 * row]);
                        sums[2 * row + 1] = V::Fma(a, right, sums[2 * row + 1]);
                    }
                }
#pragma GCC unroll 12
                for (size_t i = 0; i < kRows * kColumns; ++i) {
                    V::Store(tile + i * kLanes, sums[i]);
                }
            }
        }
        return 1.0 * kRows * kColumns * kLanes * kDepth * kPanels * static_cast<double>(steps);
    }

    static double Dot(uint64_t steps, int32_t* sink) {
        if (!V::HasDot()) {
            return 0;
        }
        *sink += V::DotChains(steps);
        return double{kDotChains} * kLanes * 4 * static_cast<double>(steps);
    }

    static HostKernels Table(const char* name, bool (*is_supported)()) {
        return {name, kLanes * 32,   is_supported, Fma,     Triad, TriadStreaming,
                Copy, CopyStreaming, Read,         Product, Dot};
    }
};

}  // namespace fornax::bench
