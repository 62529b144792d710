// Host loops for AVX-512. Only this file is compiled with -mavx512f.
#include <immintrin.h>

#include "tools/bench/host_kernels_impl.h"

namespace fornax::bench {
namespace {

struct Avx512 {
    using Vector = __m512;

    static Vector Broadcast(float value) { return _mm512_set1_ps(value); }
    static Vector Load(const float* from) { return _mm512_load_ps(from); }
    static void Store(float* to, Vector value) { _mm512_store_ps(to, value); }
    static void Stream(float* to, Vector value) { _mm512_stream_ps(to, value); }
    static void Fence() { _mm_sfence(); }
    static Vector Fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
    static Vector Add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
    static bool HasDot() { return __builtin_cpu_supports("avx512vnni") != 0; }
    __attribute__((target("avx512vnni"))) static int32_t DotChains(uint64_t steps) {
        __m512i chains[kDotChains];
        for (int i = 0; i < kDotChains; ++i) {
            chains[i] = _mm512_set1_epi32(i);
        }
        const __m512i a = _mm512_set1_epi32(0x01020304), b = _mm512_set1_epi32(0x01ff01ff);
        for (uint64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
            for (__m512i& chain : chains) {
                chain = _mm512_dpbusd_epi32(chain, a, b);
            }
        }
        for (int i = 1; i < kDotChains; ++i) {
            chains[0] = _mm512_add_epi32(chains[0], chains[i]);
        }
        return _mm_cvtsi128_si32(_mm512_castsi512_si128(chains[0]));
    }
};

}  // namespace

HostKernels Avx512HostKernels() {
    return HostLoops<Avx512>::Table("AVX-512",
                                    [] { return __builtin_cpu_supports("avx512f") != 0; });
}

}  // namespace fornax::bench
