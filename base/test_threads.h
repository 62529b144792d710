// For tests: how many threads the process has.
#pragma once

#include <cstdio>

namespace fornax {

// As the system counts them: one that was joined may still be there for a moment.
inline int CountThreads() {
    int threads = 0;
    char line[256];
    FILE* file = std::fopen("/proc/self/status", "r");
    while (file != nullptr && std::fgets(line, sizeof(line), file) != nullptr) {
        std::sscanf(line, "Threads: %d", &threads);
    }
    if (file != nullptr) {
        std::fclose(file);
    }
    return threads;
}

}  // namespace fornax
