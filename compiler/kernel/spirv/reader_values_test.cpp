// Values and memory through the reader: composites, layouts, conversions, constants, atomics,
// builtins.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

using Expected = std::function<uint32_t(uint32_t)>;

ShaderData Data() {
    ShaderData data;
    data.output.assign(16, 0xdeadbeef);
    for (uint32_t k = 0; k < 64; ++k) {
        data.storage.push_back(std::bit_cast<uint32_t>(static_cast<float>(k)));
        data.uniform.push_back(std::bit_cast<uint32_t>(static_cast<float>(100 + k)));
    }
    for (uint32_t a = 0; a < 4; ++a) {
        data.array[a] = {10 * a, 10 * a + 1, 10 * a + 2, 10 * a + 3};
    }
    for (uint32_t k = 0; k < 32; ++k) {
        data.push[k] = 1000 + k;
    }
    return data;
}

void CheckModule(const Words& module,
                 const Expected& expected,
                 const std::vector<SpecializationValue>& specialization = {}) {
    for (const Variant& variant : Variants(module)) {
        SCOPED_TRACE(variant.name);
        CompileRequest request = MakeRequest(variant.module);
        request.specialization = specialization;
        Result<ir::Kernel> kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ShaderData data = Data();
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message;
        for (uint32_t i = 0; i < 16; ++i) {
            ASSERT_EQ(data.output[i], expected(i)) << "invocation " << i << "\n"
                                                   << ir::PrintKernel(*kernel);
        }
    }
}

void Check(std::string_view body, const Expected& expected, std::string_view declarations = "") {
    CheckModule(CompileGlsl(Shader(body, declarations)), expected);
}

uint32_t Bits(float value) {
    return std::bit_cast<uint32_t>(value);
}

TEST(ReaderValues, TheOnlyDeviceOfAGroupHasIndexZero) {
    CheckModule(CompileGlsl(Shader("o[i] = uint(gl_DeviceIndex) * 100u + i;",
                                   "#extension GL_EXT_device_group : require")),
                [](uint32_t i) { return i; });
}

TEST(ReaderValues, MatrixLayoutsOfBlocks) {
    Check(
        R"(
        mat3x2 m = columns[1];
        float a = rows[i % 3][i % 2];
        rows2[1][2] = vec3(7, 8, 9);
        vec3 back = rows2[1][2];
        o[i] = floatBitsToUint(m[2].y + a * 100 + rows2[1][2].y * 10000 + tail + back.z);)",
        [](uint32_t i) {
            // std140: mat3x2 columns of 16 bytes; row_major mat3x2 has 2 rows of 16 bytes.
            float column = 100 + (48 + 2 * 16) / 4.0f + 1;
            float row = 100 + (96 + (i % 2) * 16) / 4.0f + i % 3;
            return Bits(column + row * 100 + 80000 + (100 + 128 / 4.0f) + 9);
        },
        R"(
        layout(set = 0, binding = 2) uniform U {
            mat3x2 columns[2];
            layout(row_major) mat3x2 rows;
            float tail;
        };
        layout(set = 0, binding = 1) buffer S { float pad; layout(row_major) mat3 rows2[2]; };)");
}

TEST(ReaderValues, ColumnsThatAreWrittenByComponent) {
    Check(R"(
        mat2x3 m = mat2x3(1, 2, 3, 4, 5, 6);
        m[i & 1][i % 3] = 50;
        vec3 v = m[1];
        v[i % 3] += 100;
        v.zx = v.xy;
        o[i] = uint(m[0][0] + m[0].y * 2 + m[0].z * 3 + v.x * 5 + v.y * 7 + v.z * 11);)",
          [](uint32_t i) {
              float m[6] = {1, 2, 3, 4, 5, 6};
              m[(i & 1) * 3 + i % 3] = 50;
              float v[3] = {m[3], m[4], m[5]};
              v[i % 3] += 100;
              float x = v[0], y = v[1];
              v[2] = x;
              v[0] = y;
              return static_cast<uint32_t>(m[0] + m[1] * 2 + m[2] * 3 + v[0] * 5 + v[1] * 7 +
                                           v[2] * 11);
          });
}

TEST(ReaderValues, StructuresAndArraysInPrivateMemory) {
    Check(
        R"(
        Thing t[3];
        for (uint k = 0; k < 3; ++k) {
            t[k].id = k * 10;
            for (uint j = 0; j < 2; ++j) t[k].part[j] = Inner(vec2(k, j), k > j);
        }
        Thing copy = t[i % 3];
        copy.part[i % 2].p.y += 5;
        t[1] = copy;
        g[i % 4] += 3;
        Inner last = t[1].part[i % 2];
        o[i] = t[1].id + uint(last.p.x * 100 + last.p.y * 1000) + uint(last.b) + uint(g[i % 4]) * 100000;)",
        [](uint32_t i) {
            uint32_t k = i % 3, j = i % 2;
            return k * 10 + k * 100 + (j + 5) * 1000 + (k > j ? 1 : 0) + (i % 4 + 4) * 100000;
        },
        R"(
        struct Inner { vec2 p; bool b; };
        struct Thing { uint id; Inner part[2]; };
        int g[4] = int[](1, 2, 3, 4);)");
}

TEST(ReaderValues, ConstantTablesIndexedDynamically) {
    Check(
        "const vec2 table[4] = vec2[](vec2(1, 2), vec2(3, 4), vec2(5, 6), vec2(7, 8));"
        " o[i] = uint(table[i % 4].y * 10 + table[3 - i % 4].x);",
        [](uint32_t i) { return (i % 4 * 2 + 2) * 10 + 7 - i % 4 * 2; });
}

TEST(ReaderValues, SharedStructuresAndBooleans) {
    Check(
        R"(
        uint l = gl_LocalInvocationIndex;
        cells[l].f = vec3(l, l + 1, l + 2);
        cells[l].odd = (l & 1) == 1;
        cells[l].m = mat2(l);
        barrier();
        Cell c = cells[(l + 3) % 8];
        o[i] = uint(c.f.z) + (c.odd ? 100 : 0) + (cells[(l + 1) % 8].odd ? 1000 : 0)
             + uint(c.m[1][1] * 10000) + uint(c.m[0][1]);)",
        [](uint32_t i) {
            uint32_t n = (i + 3) % 8, next = (i + 1) % 8;
            return n + 2 + (n & 1) * 100 + (next & 1) * 1000 + n * 10000;
        },
        "struct Cell { vec3 f; bool odd; mat2 m; }; shared Cell cells[8];");
}

TEST(ReaderValues, ArraysOfBuffersAndTheirLengths) {
    Check(
        "uint n = i & 3; o[i] = b[n].d[i % 4] + b[1].d[0] * 100 + b[n].d.length() * 10000;",
        [](uint32_t i) { return (i & 3) * 10 + i % 4 + 1000 + 40000; },
        "layout(set = 0, binding = 3) buffer B { uint d[]; } b[4];");
}

TEST(ReaderValues, PushConstants) {
    Check(
        "o[i] = n * 100 + v[i % 3].y;", [](uint32_t i) { return 100000 + 1003 + i % 3 * 2; },
        "layout(push_constant) uniform P { uint n; layout(offset = 8) uvec2 v[3]; };");
}

TEST(ReaderValues, SpecializationConstantsAndTheirOperations) {
    Words module = CompileGlsl(
        Shader("uint a[kSize * 2 + 1]; for (uint k = 0; k < a.length(); ++k) a[k] = k * kScale;"
               " o[i] = a[i % a.length()] + (kFlag ? 1000 : 0) + uint(kHalf.y) * 10000 + (kSize > "
               "3 ? 7 : 5);",
               "layout(constant_id = 1) const uint kSize = 2; layout(constant_id = 2) const int "
               "kScale = -3;"
               "layout(constant_id = 3) const bool kFlag = false;"
               "const ivec2 kHalf = ivec2(kSize, (int(kSize) << 2) - kScale / 2);"));
    auto expected = [](uint32_t size, int32_t scale, bool flag) {
        return [=](uint32_t i) {
            auto s = static_cast<int32_t>(size);
            return i % (size * 2 + 1) * static_cast<uint32_t>(scale) + (flag ? 1000 : 0) +
                   static_cast<uint32_t>((s << 2) - scale / 2) * 10000 + (size > 3 ? 7 : 5);
        };
    };
    CheckModule(module, expected(2, -3, false));
    CheckModule(module, expected(5, 9, true), {{1, 4, 5}, {2, 4, 9}, {3, 4, 1}});
}

TEST(ReaderValues, WorkgroupSizeFromSpecialization) {
    Words module = CompileGlsl(R"(#version 460
        layout(local_size_x_id = 0, local_size_y = 2) in;
        layout(set = 0, binding = 0) buffer Out { uint o[]; };
        void main() { o[0] = gl_WorkGroupSize.x * 10 + gl_WorkGroupSize.y; })");
    CompileRequest request = MakeRequest(module);
    request.specialization = {{0, 4, 16}};
    Result<ir::Kernel> kernel = ReadSpirv(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->workgroup_size, (std::array<uint32_t, 3>{16, 2, 1}));
    ShaderData data = Data();
    ASSERT_TRUE(RunShader(*kernel, data).ok());
    EXPECT_EQ(data.output[0], 162u);
    request.specialization = {{0, 4, 0}};
    EXPECT_FALSE(ReadSpirv(request).ok());
}

TEST(ReaderValues, IntegerArithmetic) {
    Check(R"(
        int a = int(i) - 7; uint u = i * 2654435761u;
        uint carry, borrow, high, low; int shigh, slow;
        uint sum = uaddCarry(u, 0xc0000000u, carry);
        uint diff = usubBorrow(u, 0x80000000u, borrow);
        umulExtended(u, u + 1, high, low);
        imulExtended(a, int(u), shigh, slow);
        o[i] = sum + carry * 3 + diff * 5 + borrow * 7 + high * 11 + low * 13 + uint(shigh) * 17 + uint(slow) * 19
             + uint(a / 3) * 23 + uint(a >> 1) * 29 + (u >> (i & 7)) * 31 + uint(abs(a)) * 37 + uint(sign(a)) * 41
             + bitfieldExtract(u, 3, 9) * 43 + uint(bitfieldExtract(int(u), 5, 7)) * 47
             + bitfieldInsert(u, i, 4, 6) * 53 + bitfieldReverse(u) * 59 + uint(bitCount(u)) * 61
             + uint(findLSB(u)) * 67 + uint(findMSB(u)) * 71 + uint(findMSB(a)) * 73
             + uint(clamp(a, -2, 3)) * 79 + min(u, 77u) * 83 + uint(max(a, 1)) * 89;)",
          [](uint32_t i) {
              int32_t a = static_cast<int32_t>(i) - 7;
              uint32_t u = i * 2654435761u;
              uint64_t wide = uint64_t{u} * (u + 1);
              int64_t swide = int64_t{a} * static_cast<int32_t>(u);
              auto U = [](int64_t v) { return static_cast<uint32_t>(v); };
              auto msb = [](uint32_t v) { return v ? 31 - std::countl_zero(v) : -1; };
              uint32_t reversed = 0;
              for (int b = 0; b < 32; ++b) {
                  reversed |= (u >> b & 1) << (31 - b);
              }
              uint32_t r = (u + 0xc0000000u) + ((uint64_t{u} + 0xc0000000u) >> 32) * 3;
              r += (u - 0x80000000u) * 5 + (u < 0x80000000u ? 7 : 0);
              r += U(wide >> 32) * 11 + U(wide) * 13 + U(swide >> 32) * 17 + U(swide) * 19;
              r += U(a / 3) * 23 + U(a >> 1) * 29 + (u >> (i & 7)) * 31 + U(std::abs(a)) * 37;
              r += U((a > 0) - (a < 0)) * 41 + (u >> 3 & 511) * 43;
              r += U(static_cast<int32_t>(u << 20) >> 25) * 47;
              r += ((u & ~(63u << 4)) | (i & 63) << 4) * 53 + reversed * 59;
              r += U(std::popcount(u)) * 61 + U(u ? std::countr_zero(u) : -1) * 67;
              r += U(msb(u)) * 71 + U(msb(a < 0 ? ~U(a) : U(a))) * 73;
              r += U(std::clamp(a, -2, 3)) * 79 + std::min(u, 77u) * 83 + U(std::max(a, 1)) * 89;
              return r;
          });
}

TEST(ReaderValues, PackingAndBitcasts) {
    Check(R"(
        vec4 v = vec4(float(i) / 8.0 - 1.0, 0.5, -2.0, 0.25);
        uint a = packSnorm4x8(v), b = packUnorm4x8(v), c = packSnorm2x16(v.xy), d = packUnorm2x16(v.zw);
        uint e = packHalf2x16(v.xw);
        vec2 h = unpackHalf2x16(e);
        double wide = packDouble2x32(uvec2(i, 0x40000000u));
        uvec2 parts = unpackDouble2x32(wide * 2.0);
        o[i] = a ^ b * 3 ^ c * 5 ^ d * 7 ^ e * 11 ^ floatBitsToUint(h.x + h.y) ^ parts.x * 13 ^ parts.y * 17
             ^ uint(unpackSnorm4x8(a).z * 10.0 + 20.0) * 19 ^ uint(unpackUnorm2x16(d).y * 1000.0) * 23;)",
          [](uint32_t i) {
              float x = static_cast<float>(i) / 8 - 1;
              auto snorm = [](float v, float s) {
                  return static_cast<int32_t>(std::nearbyint(std::clamp(v, -1.f, 1.f) * s));
              };
              auto unorm = [](float v, float s) {
                  return static_cast<uint32_t>(std::nearbyint(std::clamp(v, 0.f, 1.f) * s));
              };
              auto byte = [&](float v) { return static_cast<uint32_t>(snorm(v, 127)) & 255; };
              auto half = [&](float v) { return static_cast<uint32_t>(snorm(v, 32767)) & 65535; };
              uint32_t a = byte(x) | byte(.5f) << 8 | byte(-2) << 16 | byte(.25f) << 24;
              uint32_t b = unorm(x, 255) | unorm(.5f, 255) << 8 | unorm(.25f, 255) << 24;
              uint32_t c = half(x) | half(.5f) << 16;
              uint32_t d = unorm(.25f, 65535) << 16;
              // Multiples of 1/8 in [-1, 1) are exact halves.
              uint32_t bits = Bits(x);
              uint32_t h = x == 0 ? 0
                                  : (bits >> 31) << 15 | ((bits >> 23 & 255) - 112) << 10 |
                                        (bits >> 13 & 1023);
              uint32_t e = h | 0x3400u << 16;
              uint32_t z = static_cast<uint32_t>(-1.f * 10 + 20);
              uint32_t w = static_cast<uint32_t>(static_cast<float>(16384) / 65535.f * 1000);
              return a ^ b * 3 ^ c * 5 ^ d * 7 ^ e * 11 ^ Bits(x + .25f) ^ i * 13 ^
                     0x40100000u * 17 ^ z * 19 ^ w * 23;
          });
}

TEST(ReaderValues, MatrixProductsAndInverses) {
    Check(R"(
        mat2x3 a = mat2x3(1, 2, 3, 4, 5, 6);
        mat3x2 b = transpose(a);
        mat3 p = a * b;
        mat3 m = mat3(2, 0, 1, 1, 3, 0, 0, 1, float(i + 1));
        mat3 unit = m * inverse(m);
        vec3 v = vec3(i, 1, 2);
        float error = 0.0;
        for (int c = 0; c < 3; ++c)
            for (int r = 0; r < 3; ++r) error = max(error, abs(unit[c][r] - (c == r ? 1.0 : 0.0)));
        mat2x3 outer = outerProduct(v, vec2(3, 4));
        o[i] = uint(p[2][1] + dot(m * v, vec3(1, 10, 100)) + dot(v * m, vec3(1000, 10000, 100000))
             + determinant(m) * 7 + outer[1].z * 3 + cross(v, vec3(1, 2, 3)).y * 5 + (a * 2)[1][2])
             + (error < 1e-5 ? 0u : 1u);)",
          [](uint32_t i) {
              float n = static_cast<float>(i + 1), x = static_cast<float>(i);
              float p = 2 * 3 + 5 * 6;
              float mv[3] = {2 * x + 1, 3 + 2, x + 2 * n};
              float vm[3] = {2 * x + 2, x + 3, 1 + 2 * n};
              float det = 2 * 3 * n + 1;
              float sum = p + mv[0] + 10 * mv[1] + 100 * mv[2] + 1000 * vm[0] + 10000 * vm[1] +
                          100000 * vm[2] + det * 7 + 8 * 3 + (2 - 3 * x) * 5 + 12;
              return static_cast<uint32_t>(sum);
          });
}

TEST(ReaderValues, FloatFunctions) {
    Check(R"(
        float x = float(i) - 7.5;
        int e; float m = frexp(x, e);
        float whole; float part = modf(x, whole);
        vec2 n = normalize(vec2(3, 4));
        float sum = m * 1024.0 + float(e) + part * 64.0 + whole * 8.0 + ldexp(x, 3) + mix(1.0, 3.0, 0.25)
            + step(0.0, x) * 128.0 + smoothstep(0.0, 4.0, 2.0) + clamp(x, -1.0, 2.0) * 16.0 + sign(x)
            + floor(x) + ceil(x) * 2.0 + trunc(x) * 4.0 + fract(x) + length(vec2(3, 4)) + distance(vec2(1, 1), vec2(4, 5))
            + reflect(vec2(1, -1), vec2(0, 1)).y + faceforward(vec2(1, 0), vec2(x, 0), vec2(1, 0)).x
            + mod(x, 3.0) + radians(180.0) - radians(180.0);
        bvec3 c = lessThan(vec3(x, 0, 1), vec3(0));
        o[i] = floatBitsToUint(sum + (abs(n.y - 0.8) < 1e-6 ? 0.0 : 99.0)) + uint(any(c)) * 2 + uint(all(c)) * 4
             + uint(isnan(x)) * 8 + uint(isinf(x)) * 16;)",
          [](uint32_t i) {
              float x = static_cast<float>(i) - 7.5f;
              int e;
              float m = std::frexp(x, &e);
              float whole;
              float part = std::modf(x, &whole);
              float sum = m * 1024 + static_cast<float>(e) + part * 64 + whole * 8 + x * 8 + 1.5f +
                          (x < 0 ? 0.f : 128.f) + 0.5f + std::clamp(x, -1.f, 2.f) * 16 +
                          (x < 0 ? -1.f : 1.f) + std::floor(x) + std::ceil(x) * 2 +
                          std::trunc(x) * 4 + (x - std::floor(x)) + 5 + 5 + 1 +
                          (x < 0 ? 1.f : -1.f) + (x - 3 * std::floor(x / 3));
              return Bits(sum) + (x < 0 ? 2u : 0u);
          });
}

TEST(ReaderValues, AtomicsOnBuffersAndSharedMemory) {
    Words module = CompileGlsl(Shader(R"(
        if (gl_LocalInvocationIndex == 0) s = 0;
        barrier();
        atomicAdd(a, i); atomicMax(b, i); atomicMin(c, int(i) - 20); atomicOr(d, 1u << i);
        atomicExchange(e, 5u); atomicCompSwap(f, 0u, 9u);
        uint before = atomicAdd(s, 1u);
        barrier();
        o[i] = s + uint(before < 8) * 100;)",
                                      R"(
        shared uint s;
        layout(set = 0, binding = 1) buffer C { uint a; uint b; int c; uint d; uint e; uint f; };)"));
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ShaderData data = Data();
    data.storage.assign(8, 0);
    ASSERT_TRUE(RunShader(*kernel, data).ok());
    EXPECT_EQ(data.storage[0], 120u);
    EXPECT_EQ(data.storage[1], 15u);
    EXPECT_EQ(static_cast<int32_t>(data.storage[2]), -20);
    EXPECT_EQ(data.storage[3], 0xffffu);
    EXPECT_EQ(data.storage[4], 5u);
    EXPECT_EQ(data.storage[5], 9u);
    for (uint32_t value : data.output) {
        EXPECT_EQ(value, 108u);
    }
}

TEST(ReaderValues, BuiltinsWithDynamicComponents) {
    Check(
        "o[i] = gl_GlobalInvocationID[i % 3 == 0 ? 0 : 1] + gl_NumWorkGroups.x * 100"
        " + gl_WorkGroupID.x * 1000 + gl_LocalInvocationID.x * 10000 + gl_WorkGroupSize.x * "
        "1000000;",
        [](uint32_t i) {
            return (i % 3 == 0 ? i : 0) + 200 + i / 8 * 1000 + i % 8 * 10000 + 8000000;
        });
}

TEST(ReaderValues, NullInitialisedWorkgroupMemoryIsZero) {
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(CompileGlsl(
        Shader("o[i] = z[i % 4];",
               "#extension GL_EXT_null_initializer : require\nshared uint z[4] = {};"))));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_TRUE(kernel->zero_shared);
}

TEST(ReaderValues, MetadataOfTheKernel) {
    Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(CompileGlsl(Shader(
        "t[i % 8] = a; barrier(); precise float x = float(t[0]) * 3.0 + 1.0; o[i] = uint(x);",
        "layout(set = 0, binding = 1) readonly buffer In { uint a; }; shared uint t[9];"))));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->shared_bytes, 36u);
    EXPECT_EQ(kernel->push_constant_bytes, 128u);
    ASSERT_EQ(kernel->bindings.size(), 2u);
    for (const ir::Binding& binding : kernel->bindings) {
        EXPECT_EQ(binding.writable, binding.binding == 0);
    }
    EXPECT_NE(ir::PrintKernel(*kernel).find("no_contraction"), std::string::npos)
        << ir::PrintKernel(*kernel);
}

}  // namespace
}  // namespace fornax::kernel
