// Host loops for AVX2 with FMA. Only this file is compiled with -mavx2 -mfma.
#include <immintrin.h>

#include "tools/bench/host_kernels_impl.h"

namespace fornax::bench {
namespace {

struct Avx2 {
    using Vector = __m256;

    static Vector Broadcast(float value) { return _mm256_set1_ps(value); }
    static Vector Load(const float* from) { return _mm256_load_ps(from); }
    static void Store(float* to, Vector value) { _mm256_store_ps(to, value); }
    static void Stream(float* to, Vector value) { _mm256_stream_ps(to, value); }
    static void Fence() { _mm_sfence(); }
    static Vector Fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
    static Vector Add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
    static bool HasDot() { return true; }
    static int32_t DotChains(uint64_t steps) {
        __m256i chains[kDotChains];
        for (int i = 0; i < kDotChains; ++i) {
            chains[i] = _mm256_set1_epi32(i);
        }
        const __m256i a = _mm256_set1_epi32(0x01020304), ones = _mm256_set1_epi16(1);
        for (uint64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
            for (__m256i& chain : chains) {
                // The chain is an operand, so that no product is taken out of the loop.
                const __m256i pairs = _mm256_maddubs_epi16(a, chain);
                chain = _mm256_add_epi32(chain, _mm256_madd_epi16(pairs, ones));
            }
        }
        for (int i = 1; i < kDotChains; ++i) {
            chains[0] = _mm256_add_epi32(chains[0], chains[i]);
        }
        return _mm256_extract_epi32(chains[0], 0);
    }
};

}  // namespace

HostKernels Avx2HostKernels() {
    return HostLoops<Avx2>::Table("AVX2", [] {
        return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    });
}

}  // namespace fornax::bench
