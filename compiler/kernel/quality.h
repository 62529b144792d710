// What code is made for. Both kinds compute the same, to the last bit.
#pragma once

#include <cstdint>

namespace fornax::kernel {

enum class CodeQuality : uint8_t {
    kQuick,  // soon: several times faster to make, several times slower to run
    kFull,   // to run fast
};

}  // namespace fornax::kernel
