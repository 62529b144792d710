// The floating-point mode that kernels start in: round to nearest even, denormals preserved, no
// traps. The kernel compiler counts on it.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fornax::hal::model {

inline void SetKernelFloatMode() {
#if defined(__x86_64__)
    constexpr uint32_t kAllMaskedNearest = 0x1f80;
    _mm_setcsr(kAllMaskedNearest);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
#else
#error "Say how this processor's floating-point mode is set."
#endif
}

// Sets the mode for the scope and restores the previous one at its end. Kernels that change the
// mode restore it themselves.
class ScopedKernelFloatMode {
  public:
#if defined(__x86_64__)
    ScopedKernelFloatMode() : saved_(_mm_getcsr()) { SetKernelFloatMode(); }
    ~ScopedKernelFloatMode() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
    ScopedKernelFloatMode() {
        asm volatile("mrs %0, fpcr" : "=r"(saved_));
        SetKernelFloatMode();
    }
    ~ScopedKernelFloatMode() { asm volatile("msr fpcr, %0" : : "r"(uint64_t{saved_})); }
#endif
    ScopedKernelFloatMode(const ScopedKernelFloatMode&) = delete;
    ScopedKernelFloatMode& operator=(const ScopedKernelFloatMode&) = delete;

  private:
#if defined(__x86_64__)
    uint32_t saved_;
#else
    uint64_t saved_;
#endif
};

}  // namespace fornax::hal::model
