// FORNAX_SANITIZED is defined under the address and the thread sanitiser, whose shadow memory takes
// terabytes of address space: a limit of that would end the process. FORNAX_FINDS_LEAKS is defined
// under the first.
#pragma once

#if defined(__SANITIZE_ADDRESS__)  // by GCC
#define FORNAX_FINDS_LEAKS
#elif defined(__SANITIZE_THREAD__)
#define FORNAX_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORNAX_FINDS_LEAKS
#elif __has_feature(thread_sanitizer)
#define FORNAX_SANITIZED
#endif
#endif

#ifdef FORNAX_FINDS_LEAKS
#define FORNAX_SANITIZED
#endif
