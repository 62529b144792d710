#include "compiler/kernel/spirv/derivative_cases.h"

#include <bit>
#include <cmath>
#include <random>

namespace fornax::kernel {

namespace {

constexpr uint32_t kUntouched = 0xdeadbeef;

// The four values of a quad and the index of the invocation in it.
struct Quad {
    float p[4];
    uint32_t at = 0;

    float Dx(bool coarse) const {
        const uint32_t row = coarse ? 0 : at & 2;
        return p[row + 1] - p[row];
    }
    float Dy(bool coarse) const {
        const uint32_t column = coarse ? 0 : at & 1;
        return p[column + 2] - p[column];
    }
    float Width(bool coarse) const { return std::fabs(Dx(coarse)) + std::fabs(Dy(coarse)); }
    // For components of vectors that are not the value itself.
    Quad Squared() const {
        Quad quad = *this;
        for (float& value : quad.p) {
            value *= value;
        }
        return quad;
    }
};

struct Case {
    const char* glsl;
    float (*expected)(const Quad& quad);
};

// Those without a suffix may be either; that they are the fine ones is this compiler's choice.
constexpr Case kCases[] = {
    {"dFdx(p)", [](const Quad& q) { return q.Dx(false); }},
    {"dFdy(p)", [](const Quad& q) { return q.Dy(false); }},
    {"fwidth(p)", [](const Quad& q) { return q.Width(false); }},
    {"dFdxFine(p)", [](const Quad& q) { return q.Dx(false); }},
    {"dFdyFine(p)", [](const Quad& q) { return q.Dy(false); }},
    {"fwidthFine(p)", [](const Quad& q) { return q.Width(false); }},
    {"dFdxCoarse(p)", [](const Quad& q) { return q.Dx(true); }},
    {"dFdyCoarse(p)", [](const Quad& q) { return q.Dy(true); }},
    {"fwidthCoarse(p)", [](const Quad& q) { return q.Width(true); }},
    {"dFdyFine(vec3(1, p, p * p)).z", [](const Quad& q) { return q.Squared().Dy(false); }},
    {"dFdxCoarse(vec2(p * p, p)).x", [](const Quad& q) { return q.Squared().Dx(true); }},
    {"subgroupQuadSwapHorizontal(p)", [](const Quad& q) { return q.p[q.at ^ 1]; }},
    {"subgroupQuadSwapVertical(p)", [](const Quad& q) { return q.p[q.at ^ 2]; }},
    {"subgroupQuadSwapDiagonal(p)", [](const Quad& q) { return q.p[q.at ^ 3]; }},
    {"subgroupQuadBroadcast(p, 2)", [](const Quad& q) { return q.p[2]; }},
    {"float(gl_SubgroupInvocationID & 3)", [](const Quad& q) { return float(q.at); }},
};

// Behind the cases: whether the ids agree with one another.
constexpr size_t kWords = std::size(kCases) + 1;

}  // namespace

std::string DerivativeRun::Shader() const {
    const std::string suffix = vendor_name ? "NV" : "KHR";
    std::string source = "#version 450\n#extension GL_" + suffix +
                         "_compute_shader_derivatives : require\n"
                         "#extension GL_KHR_shader_subgroup_basic : require\n"
                         "#extension GL_KHR_shader_subgroup_quad : require\n"
                         "layout(local_size_x = " +
                         std::to_string(size[0]) + ", local_size_y = " + std::to_string(size[1]) +
                         ", local_size_z = " + std::to_string(size[2]) +
                         ") in;\n"
                         "layout(derivative_group_" +
                         (quads ? "quads" : "linear") + suffix +
                         ") in;\n"
                         "layout(set = 0, binding = 0) buffer Out { uint o[]; };\n"
                         "layout(set = 0, binding = 1) readonly buffer In { uint in_[]; };\n"
                         "void main() {\n"
                         "    uvec3 size = gl_WorkGroupSize;\n"
                         "    uvec3 at = gl_LocalInvocationID;\n"
                         "    uint index = at.x + size.x * (at.y + size.y * at.z);\n"
                         "    uint i = gl_WorkGroupID.x * (size.x * size.y * size.z) + index;\n"
                         "    float p = uintBitsToFloat(in_[i]);\n"
                         "    uint quad = " +
                         (quads ? "at.x / 2 + at.y / 2 + at.z" : "index / 4") + ";\n    if (" +
                         (some_quads ? "quad % 3 != 0" : "true") + ") {\n";
    uint32_t word = 0;
    for (const Case& one : kCases) {
        source += "        o[i * " + std::to_string(kWords) + " + " + std::to_string(word++) +
                  "] = floatBitsToUint(" + one.glsl + ");\n";
    }
    return source + "        o[i * " + std::to_string(kWords) + " + " + std::to_string(word) +
           "] = uint(gl_LocalInvocationIndex == index && all(lessThan(at, size)) &&\n"
           "            gl_GlobalInvocationID == gl_WorkGroupID * size + at &&\n"
           "            gl_SubgroupID < gl_NumSubgroups);\n"
           "    }\n}\n";
}

std::vector<uint32_t> DerivativeRun::Input() const {
    std::mt19937 random(7);
    std::vector<uint32_t> input;
    for (uint32_t i = 0; i < Invocations() * kWorkgroups; ++i) {
        const auto value = static_cast<float>(random() % 4096);
        input.push_back(std::bit_cast<uint32_t>(value / 16 - 100));
    }
    return input;
}

std::vector<uint32_t> DerivativeRun::FreshOutput() const {
    return std::vector<uint32_t>(Invocations() * kWorkgroups * kWords, kUntouched);
}

std::array<uint32_t, 4> DerivativeRun::QuadOf(uint32_t index) const {
    if (!quads) {
        const uint32_t first = index & ~3u;
        return {first, first + 1, first + 2, first + 3};
    }
    const uint32_t x = index % size[0] & ~1u;
    const uint32_t y = index / size[0] % size[1] & ~1u;
    const uint32_t z = index / (size[0] * size[1]);
    const uint32_t first = x + size[0] * (y + size[1] * z);
    return {first, first + 1, first + size[0], first + size[0] + 1};
}

bool DerivativeRun::Runs(uint32_t index) const {
    if (!some_quads) {
        return true;
    }
    const uint32_t quad =
        quads ? index % size[0] / 2 + index / size[0] % size[1] / 2 + index / (size[0] * size[1])
              : index / 4;
    return quad % 3 != 0;
}

std::string DerivativeRun::FirstWrong(std::span<const uint32_t> output) const {
    const std::vector<uint32_t> input = Input();
    for (uint32_t i = 0; i < Invocations() * kWorkgroups; ++i) {
        const uint32_t start = i - i % Invocations();
        const std::array<uint32_t, 4> members = QuadOf(i - start);
        Quad quad;
        for (uint32_t k = 0; k < 4; ++k) {
            quad.p[k] = std::bit_cast<float>(input[start + members[k]]);
            if (start + members[k] == i) {
                quad.at = k;
            }
        }
        for (size_t word = 0; word < kWords; ++word) {
            const bool is_case = word < std::size(kCases);
            uint32_t wanted = 1;
            if (is_case) {
                wanted = std::bit_cast<uint32_t>(kCases[word].expected(quad));
            }
            if (!Runs(i - start)) {
                wanted = kUntouched;
            }
            const uint32_t got = output[i * kWords + word];
            if (got != wanted) {
                return std::string(is_case ? kCases[word].glsl : "the comparison of ids") +
                       " gives " + std::to_string(std::bit_cast<float>(got)) + " and not " +
                       std::to_string(std::bit_cast<float>(wanted)) + " for invocation " +
                       std::to_string(i) + " of workgroups of " + std::to_string(size[0]) + " x " +
                       std::to_string(size[1]) + " x " + std::to_string(size[2]) +
                       (quads ? " in quads" : " in linear groups");
            }
        }
    }
    return "";
}

std::vector<DerivativeRun> DerivativeRuns() {
    std::vector<DerivativeRun> runs;
    constexpr std::array<uint32_t, 3> kQuads[] = {{8, 4, 1},  {2, 2, 1},  {6, 4, 2},  {64, 2, 1},
                                                  {2, 64, 1}, {10, 6, 3}, {16, 16, 1}};
    constexpr std::array<uint32_t, 3> kLinear[] = {
        {32, 1, 1}, {4, 1, 1}, {3, 4, 1}, {5, 2, 6}, {1, 1, 60}};
    for (const auto& size : kQuads) {
        runs.push_back({.quads = true, .size = size, .some_quads = size[0] > 6});
    }
    for (const auto& size : kLinear) {
        runs.push_back({.quads = false, .size = size, .some_quads = size[0] > 3});
    }
    runs.push_back({.quads = true, .size = {8, 4, 1}});
    runs.push_back({.quads = true, .size = {12, 2, 2}, .vendor_name = true});
    runs.push_back({.quads = false, .size = {12, 3, 1}, .vendor_name = true});
    return runs;
}

}  // namespace fornax::kernel
