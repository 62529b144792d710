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
};

}  // namespace

HostKernels Avx512HostKernels() {
    return HostLoops<Avx512>::Table("AVX-512",
                                    [] { return __builtin_cpu_supports("avx512f") != 0; });
}

}  // namespace fornax::bench
