// The program of environment_test.cpp: says whether it runs with privileges that its user lacks,
// and what it reads from the environment then.
#include <fmt/format.h>
#include <sys/auxv.h>

#include "base/environment.h"

int main() {
    const auto text = [](const char* name) {
        return fornax::EnvironmentText(name).value_or("nothing");
    };
    const auto number = fornax::EnvironmentNumber("FORNAX_THREADS", {1, 8}, 2);
    fmt::print("secure {}\nbackend {}\nhome {}\nthreads {}\ncounters {}\n", ::getauxval(AT_SECURE),
               text("FORNAX_BACKEND"), text("HOME"), number.ok() ? *number : 0,
               fornax::EnvironmentFlag("FORNAX_COUNTERS"));
}
