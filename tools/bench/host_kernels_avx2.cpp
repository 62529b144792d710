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
};

}  // namespace

HostKernels Avx2HostKernels() {
    return HostLoops<Avx2>::Table("AVX2", [] {
        return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    });
}

}  // namespace fornax::bench
