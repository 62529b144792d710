// Child processes for programs that look for crashes: a crash or hang is a finding like any other.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace fornax::kernel::fuzz {

// Ends the process if it takes more processor time than this before the next call.
inline void LimitTime(unsigned seconds) {
    itimerval limit = {};
    limit.it_value.tv_sec = static_cast<time_t>(seconds);
    setitimer(ITIMER_PROF, &limit, nullptr);
}

// Runs `body` in a child; false if it crashes, hangs or returns false.
template <typename Body>
bool InChild(Body&& body) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const bool good = body();
        std::fflush(stdout);
        _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Memory that children share with their parent, so that what they did survives them.
template <typename T>
T* Shared() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) T();
}

}  // namespace fornax::kernel::fuzz
