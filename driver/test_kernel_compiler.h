// A kernel compiler for tests of the driver: it compiles nothing, so it is fast, counts what it is
// asked and fails on demand. Test programs that contain it do not contain the real one.
#pragma once

#include <array>
#include <cstdint>

namespace fornax::driver_test {

// "SPIR-V" that the test compiler takes. The last word tells programs apart.
using TestProgram = std::array<uint32_t, 2>;
inline constexpr uint32_t kSpirvMagic = 0x07230203;
// One that is not supported.
inline constexpr TestProgram kUnsupportedProgram = {kSpirvMagic, 0xbad};

struct TestCompilerCounts {
    uint32_t compiled = 0;
    uint32_t loaded = 0;
    uint32_t load_refused = 0;
};
TestCompilerCounts& CompilerCounts();

// Makes Load refuse everything, as for data of another machine.
void RefuseToLoad(bool refuse);

}  // namespace fornax::driver_test
