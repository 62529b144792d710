// FORNAX_SANITIZED is defined under the address and the thread sanitiser, whose shadow memory takes
// terabytes of address space: a limit of that would end the process.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORNAX_SANITIZED  // by GCC
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FORNAX_SANITIZED
#endif
#endif
