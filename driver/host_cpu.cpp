// The processor's name, from the processor itself where it can tell.
#include "driver/host_cpu.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fornax::driver {
namespace {

std::string ReadHostCpuName() {
#if defined(__x86_64__)
    // The brand string: three leaves of four registers, padded with spaces and zeros.
    constexpr unsigned kFirstLeaf = 0x80000002;
    std::array<unsigned, 12> registers = {};
    if (__get_cpuid_max(0x80000000, nullptr) >= kFirstLeaf + 2) {
        for (unsigned i = 0; i < 3; ++i) {
            unsigned* r = registers.data() + 4 * i;
            __get_cpuid(kFirstLeaf + i, r, r + 1, r + 2, r + 3);
        }
        const auto* text = reinterpret_cast<const char*>(registers.data());
        std::string name(text, strnlen(text, sizeof(registers)));
        name.erase(0, name.find_first_not_of(' '));
        name.erase(name.find_last_not_of(' ') + 1);
        if (!name.empty()) {
            return name;
        }
    }
#endif
    return "unknown processor";
}

}  // namespace

const std::string& HostCpuName() {
    static const auto* const name = new std::string(ReadHostCpuName());  // for threads at exit()
    return *name;
}

}  // namespace fornax::driver
