// Host loops for any processor: vectors of 16 bytes, which is NEON on Arm and SSE on x86.
//
// Compiled with -ffp-contract=fast, so that Fma is one instruction where the processor has it.
#include <cstring>

#include "tools/bench/host_kernels_impl.h"

namespace fornax::bench {
namespace {

struct Portable {
    typedef float Vector __attribute__((vector_size(16)));

    static Vector Broadcast(float value) { return Vector{value, value, value, value}; }
    static Vector Load(const float* from) {
        Vector value;
        std::memcpy(&value, from, sizeof value);
        return value;
    }
    static void Store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }
    static void Stream(float* to, Vector value) {
        Store(to, value);
    }  // nothing portable does better
    static void Fence() {}
    static Vector Fma(Vector a, Vector b, Vector c) { return a * b + c; }
    static Vector Add(Vector a, Vector b) { return a + b; }
    static bool HasDot() { return false; }
    static int32_t DotChains(uint64_t) { return 0; }
};

}  // namespace

HostKernels PortableHostKernels() {
    return HostLoops<Portable>::Table("128 bit", [] { return true; });
}

std::vector<HostKernels> AllHostKernels() {
    return {
#if defined(__x86_64__)
        Avx512HostKernels(),
        Avx2HostKernels(),
#endif
        PortableHostKernels(),
    };
}

}  // namespace fornax::bench
