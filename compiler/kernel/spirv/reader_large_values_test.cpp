// Values of thousands of scalars: what they give, and that no instruction is made for each scalar.
#include <gtest/gtest.h>

#include <numeric>

#include "compiler/kernel/spirv/large_value_cases.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kInvocations = 16;  // of two workgroups

void CheckChain(uint32_t elements, uint32_t functions) {
    const Words module = AssembleSpirv(LargeValueChain(elements, functions));
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data;
    data.output.resize(kInvocations);
    Status status = RunShader(*kernel, data);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (uint32_t x = 0; x < kInvocations; ++x) {
        ASSERT_EQ(data.output[x], LargeValueResult(elements, functions, x))
            << x << " of " << elements;
    }
}

TEST(ReaderLargeValues, FunctionsOverArrays) {
    CheckChain(20, 5);  // small ones are scalars
    CheckChain(100, 5);
    CheckChain(300, 2);
    const Words some = AssembleSpirv(LargeValueChain(300, 5));
    const Words many = AssembleSpirv(LargeValueChain(4096, 5));
    Result<ir::Kernel> short_kernel = ReadSpirv(MakeRequest(some));
    Result<ir::Kernel> long_kernel = ReadSpirv(MakeRequest(many));
    ASSERT_TRUE(short_kernel.ok()) << short_kernel.error().message;
    ASSERT_TRUE(long_kernel.ok()) << long_kernel.error().message;
    EXPECT_EQ(short_kernel->num_insts(), long_kernel->num_insts());
    EXPECT_LT(long_kernel->num_insts(), 1500u);
}

// Through memory of every kind and layout, and by every way that GLSL has.
TEST(ReaderLargeValues, MemoryOfEveryKind) {
    const std::string source = R"(#version 460
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 1) in;
struct Part { mat3x2 m; vec3 v; uint words[5]; };
struct Whole { Part parts[40]; bvec2 flags[70]; uint last; };
struct Stored { Part parts[40]; uint last; };
layout(set = 0, binding = 0) buffer Out { uint o[]; };
layout(set = 0, binding = 1, std430) buffer In { Stored in_[2]; };
shared Whole kept;
Whole Changed(Whole w, uint k) {
    w.parts[k].words[k % 5] += 1000;
    w.flags[k + 1] = bvec2(true, false);
    return w;
}
void main() {
    Whole w;
    w.parts = in_[gl_WorkGroupID.x].parts;
    for (int i = 0; i < 70; ++i)
        w.flags[i] = bvec2(i % 3 == 0, i % 2 == 0);
    w.last = in_[gl_WorkGroupID.x].last;
    Whole first = w;
    kept = Changed(w, gl_WorkGroupID.x + 7);
    barrier();
    w = kept;
    Whole chosen[2] = Whole[2](w, first);
    in_[gl_WorkGroupID.x].parts = chosen[gl_WorkGroupID.x].parts;
    uint count = 0;
    for (int i = 0; i < 70; ++i)
        count += uint(w.flags[i].x) * 1000 + uint(w.flags[i].y);
    o[gl_WorkGroupID.x] = count + uint(first.parts[3].v.z) + w.last;
}
)";
    for (const char* options : {"", "--target-env spirv1.4"}) {
        const Words module = CompileGlsl(source, options);
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        // A part in std430 has a matrix of three columns of two floats at 0, a vector at 32, five
        // words at 44, 64 bytes in all.
        constexpr uint32_t kPartWords = 16;
        constexpr uint32_t kWords = 40 * kPartWords + 4;
        ShaderData data;
        data.output.resize(2);
        data.storage.resize(2 * kWords);
        std::iota(data.storage.begin(), data.storage.end(), 0x40000000u);
        std::vector<uint32_t> expected = data.storage;
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        expected[7 * kPartWords + 11 + 7 % 5] +=
            1000;  // the second workgroup takes the first value
        EXPECT_EQ(data.storage, expected);
        for (uint32_t group = 0; group < 2; ++group) {
            uint32_t count = 0;
            for (uint32_t i = 0; i < 70; ++i) {
                const bool changed = i == group + 8;
                count += (changed || i % 3 == 0 ? 1000 : 0) + (!changed && i % 2 == 0 ? 1 : 0);
            }
            EXPECT_EQ(data.output[group],
                      count + 2 + 0x40000000u + group * kWords + 40 * kPartWords);
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
