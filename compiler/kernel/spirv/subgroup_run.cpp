// The shader around the cases, and the comparison of what it wrote.
#include <algorithm>
#include <iterator>

#include "compiler/kernel/spirv/subgroup_cases.h"

namespace fornax::kernel {

namespace {

using Needs = SubgroupCase::Needs;

const char* Extensions(Needs needs) {
    switch (needs) {
        case Needs::kCore:
        case Needs::kSpirv15:
            return "";
        case Needs::kKhrForms:
            return "#extension GL_ARB_shader_ballot : require\n"
                   "#extension GL_ARB_shader_group_vote : require\n"
                   "#extension GL_ARB_gpu_shader_int64 : require\n";
        case Needs::kRotate:
            return "#extension GL_KHR_shader_subgroup_rotate : require\n";
        case Needs::kPartitioned:
            return "#extension GL_NV_shader_subgroup_partitioned : require\n";
        case Needs::kQuadControl:
            return "#extension GL_EXT_shader_quad_control : require\n";
        case Needs::kSmallTypes:
            return "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
                   "#extension GL_EXT_shader_subgroup_extended_types_int8 : require\n"
                   "#extension GL_EXT_shader_subgroup_extended_types_int16 : require\n"
                   "#extension GL_EXT_shader_subgroup_extended_types_int64 : require\n"
                   "#extension GL_EXT_shader_subgroup_extended_types_float16 : require\n";
    }
    return "";
}

struct Condition {
    const char* glsl;
    bool (*holds)(uint32_t x, uint32_t i);
};
constexpr Condition kWhere[SubgroupRun::kConditions] = {
    {"true", [](uint32_t, uint32_t) { return true; }},
    {"x % 3 != 0", [](uint32_t x, uint32_t) { return x % 3 != 0; }},
    {"i % 11 == 7", [](uint32_t, uint32_t i) { return i % 11 == 7; }},
};

constexpr uint32_t kUntouched = 0xdeadbeef;

std::vector<SubgroupCase> CasesOf(Needs needs) {
    std::vector<SubgroupCase> cases;
    std::ranges::copy_if(SubgroupCases(), std::back_inserter(cases),
                         [needs](const SubgroupCase& one) { return one.needs == needs; });
    return cases;
}

}  // namespace

std::string SubgroupRun::Shader() const {
    const std::vector<SubgroupCase> cases = CasesOf(needs);
    std::string body;
    if (needs == Needs::kPartitioned) {
        body = "        uvec4 set = subgroupPartitionNV(x % 3);\n";
    }
    for (size_t c = 0; c < cases.size(); ++c) {
        body += std::string("        { ") + cases[c].body + " o[i * " +
                std::to_string(cases.size()) + " + " + std::to_string(c) + "] = r; }\n";
    }
    return std::string("#version 450\n") + Extensions(needs) + R"(
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_quad : require
layout(set = 0, binding = 0) buffer Out { uint o[]; };
layout(set = 0, binding = 1) readonly buffer In { uint in_[]; };
layout(local_size_x = )" +
           std::to_string(kLocalSize) + R"() in;
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint lane = gl_SubgroupInvocationID;
    uint x = in_[i];
    float f = float(x & 15) - 4;
    float g = (x & 7) == 0 ? -2.0 : 1.0;
    if ()" +
           kWhere[condition].glsl +
           R"() {
        uint r = 0;
)" + body + "    }\n}\n";
}

std::vector<uint32_t> SubgroupRun::Input() const {
    std::vector<uint32_t> input(kLocalSize * kWorkgroups);
    for (uint32_t i = 0; i < input.size(); ++i) {
        input[i] = SubgroupValue(i);
    }
    return input;
}

std::vector<uint32_t> SubgroupRun::FreshOutput() const {
    return std::vector<uint32_t>(kLocalSize * kWorkgroups * CasesOf(needs).size(), kUntouched);
}

std::string SubgroupRun::FirstWrong(uint32_t subgroup_size,
                                    std::span<const uint32_t> output) const {
    const std::vector<SubgroupCase> cases = CasesOf(needs);
    for (uint32_t i = 0; i < kLocalSize * kWorkgroups; ++i) {
        const uint32_t lane = i % kLocalSize % subgroup_size;
        SubgroupState state{.size = subgroup_size, .active = 0, .values = {}};
        for (uint32_t other = 0; other < subgroup_size; ++other) {
            const uint32_t at = i - lane + other;
            state.values.push_back(SubgroupValue(at));
            if (at / kLocalSize == i / kLocalSize &&
                kWhere[condition].holds(SubgroupValue(at), at)) {
                state.active |= uint64_t{1} << other;
            }
        }
        for (size_t c = 0; c < cases.size(); ++c) {
            std::optional<uint32_t> expected = kUntouched;
            if (state.Has(lane)) {
                expected = cases[c].expected(state, lane);
            }
            const uint32_t got = output[i * cases.size() + c];
            if (expected && got != *expected) {
                return std::string(cases[c].name) + " gives " + std::to_string(got) + " and not " +
                       std::to_string(*expected) + " for invocation " + std::to_string(i) +
                       " in subgroups of " + std::to_string(subgroup_size) + " where " +
                       kWhere[condition].glsl;
            }
        }
    }
    return "";
}

}  // namespace fornax::kernel
