// Which sanitizer a build has: FORNAX_ADDRESS_SANITIZER, FORNAX_THREAD_SANITIZER, and
// FORNAX_SANITIZED for either. GCC tells by macros, Clang by features.
//
// Under both, shadow memory takes terabytes of address space, so a limit of that would end the
// process. The thread sanitizer also ends a child of fork that starts a thread, and delays signals
// while code calls nothing.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define FORNAX_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define FORNAX_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORNAX_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define FORNAX_THREAD_SANITIZER
#endif
#endif

#if defined(FORNAX_ADDRESS_SANITIZER) || defined(FORNAX_THREAD_SANITIZER)
#define FORNAX_SANITIZED
#endif
