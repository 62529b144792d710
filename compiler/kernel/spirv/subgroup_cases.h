// Every operation of a subgroup as GLSL, with what it must give: for tests of the reader (in the
// interpreter) and of the whole driver (through the Vulkan loader).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fornax::kernel {

// One subgroup where the operation runs.
struct SubgroupState {
    uint32_t size = 32;
    uint64_t active = 0;
    std::vector<uint32_t> values;  // x of each lane

    bool Has(uint32_t lane) const { return lane < size && (active >> lane & 1); }
};

struct SubgroupCase {
    enum class Needs : uint8_t {
        kCore,
        kSpirv15,   // lanes that are named at run time
        kKhrForms,  // SPV_KHR_shader_ballot, SPV_KHR_subgroup_vote
        kRotate,
        kPartitioned,
        kQuadControl,
        kSmallTypes,  // 8-, 16- and 64-bit integers, 16- and 64-bit floats
    };

    const char* name;
    Needs needs;
    // Sets `uint r`; `x` is the value, `lane` the lane.
    const char* body;
    // Nothing if r is undefined.
    std::optional<uint32_t> (*expected)(const SubgroupState& state, uint32_t lane);
};

std::span<const SubgroupCase> SubgroupCases();
// x of invocation i.
uint32_t SubgroupValue(uint32_t i);

// One dispatch of a shader with all cases of these needs.
struct SubgroupRun {
    // Which invocations run the operations: all, some, few.
    static constexpr uint32_t kConditions = 3;
    static constexpr uint32_t kLocalSize = 88;  // no multiple of most sizes
    static constexpr uint32_t kWorkgroups = 2;

    SubgroupCase::Needs needs;
    uint32_t condition = 0;

    // Binding 0 is the output, binding 1 the input.
    std::string Shader() const;
    std::vector<uint32_t> Input() const;
    std::vector<uint32_t> FreshOutput() const;
    // What is wrong in the output for subgroups of this size; empty if nothing is.
    std::string FirstWrong(uint32_t subgroup_size, std::span<const uint32_t> output) const;
};

}  // namespace fornax::kernel
