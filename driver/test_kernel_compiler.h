// A kernel compiler for tests of the driver: it compiles nothing, so it is fast, counts what it is
// asked and fails on demand. Test programs that contain it do not contain the real one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace fornax::driver_test {

// "SPIR-V" that the test compiler takes. The last word tells programs apart.
using TestProgram = std::array<uint32_t, 2>;
inline constexpr uint32_t kSpirvMagic = 0x07230203;
// One that is not supported.
inline constexpr TestProgram kUnsupportedProgram = {kSpirvMagic, 0xbad};
// One whose kernel reports a fault.
inline constexpr TestProgram kFaultyProgram = {kSpirvMagic, 0xfa17};
// One whose kernel records what it sees: workgroup i writes element i of the buffer that is the
// first descriptor of set 0. All other programs do nothing.
inline constexpr TestProgram kRecordingProgram = {kSpirvMagic, 0x4ec0};

struct DispatchRecord {
    uint32_t runs;  // how often the workgroup ran
    uint32_t workgroup_count[3];
    uint32_t base_workgroup[3];
    uint32_t constants[4];
    uint32_t dynamic_offsets[2];  // if set 1 is bound, else 0
    uint32_t padding;
    uint64_t set1_address;  // what the first descriptor of set 1 names
    uint64_t set1_size_bytes;
};
static_assert(sizeof(DispatchRecord) == 72);

struct TestCompilerCounts {
    std::atomic<uint32_t> compiled = 0;
    std::atomic<uint32_t> loaded = 0;
    std::atomic<uint32_t> load_refused = 0;
};
TestCompilerCounts& CompilerCounts();
void ResetCompilerCounts();

// Makes Load refuse everything, as for data of another machine.
void RefuseToLoad(bool refuse);

}  // namespace fornax::driver_test
