// Values that become narrower on their way to memory: f16 from f32, bytes from clamped words.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/half.h"
#include "compiler/kernel/codegen/kernel_harness.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

using Buffers = std::vector<std::vector<uint32_t>>;

constexpr uint32_t kGroups = 8;
constexpr uint32_t kCount = kGroups * 128;

// out[i] = body(in[i]) for i below the push constant, an element an invocation.
template <typename Check>
void ForEachTarget(const std::string& body, const std::vector<uint32_t>& in, Check check) {
    const std::string text =
        "kernel \"test\" workgroup_size(128, 1, 1) push_constants(4) {\n"
        "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
        "binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n"
        "body {\n"
        "%zero:i32 = const 0\n"
        "%one:i32 = const 1\n"
        "%two:i32 = const 2\n"
        "%width:i32 = const 128\n"
        "%a:buffer = buffer 0, %zero\n"
        "%b:buffer = buffer 1, %zero\n"
        "%l:i32 = builtin local_id_x\n"
        "%w:i32 = builtin workgroup_id_x\n"
        "%start:i32 = imul %w, %width\n"
        "%i:i32 = iadd %start, %l\n"
        "%n:i32 = load_push %zero align(4)\n"
        "%inside:bool = ult %i, %n\n"
        "if %inside {\n"
        "%o:i32 = shl %i, %two\n" +
        body + "yield\n}\nreturn\n}\n}\n";
    Result<ir::Kernel> kernel = ir::ParseKernel(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (const std::string& cpu : TestCpus()) {
        for (uint32_t lanes : {0u, 1u, 8u, 16u, 32u, 64u}) {
            Result<RunnableKernel> native = RunnableKernel::Create(*kernel, lanes, cpu);
            ASSERT_TRUE(native.ok()) << native.error().message;
            for (uint32_t n : {kCount, kCount - 37}) {
                Buffers buffers = {in, std::vector<uint32_t>(kCount, 0xa5a5a5a5)};
                Status status = native->Run(buffers, {n}, {kGroups, 1, 1});
                ASSERT_TRUE(status.ok()) << status.error().message;
                SCOPED_TRACE(testing::Message() << cpu << ", " << lanes << " lanes, " << n);
                check(buffers[1], n);
                if (testing::Test::HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST(Narrowing, HalvesAreRoundedInMemory) {
    static const float kSpecial[] = {
        0.0f,       -0.0f,      INFINITY,     -INFINITY,      65504.0f, 65519.0f,   65520.0f,
        -1e9f,      0x1p-14f,   0x1.ffep-15f, 0x1p-24f,       0x1p-25f, 0x1.8p-25f, 0x1.001p0f,
        0x1.002p0f, 0x1.003p0f, 0x1.006p0f,   0x1.0010002p0f, 1e-30f,   -3.14159f};
    std::vector<uint32_t> in(kCount);
    std::mt19937 random(7);
    for (size_t i = 0; i < in.size(); ++i) {
        in[i] = i < std::size(kSpecial)
                    ? std::bit_cast<uint32_t>(kSpecial[i])
                    : (static_cast<uint32_t>(random()) & 0x87ffffff) + 0x34000000;
    }
    ForEachTarget(
        "%x:f32 = load_buffer %a, %o align(4)\n"
        "%h:f16 = fconvert %x\n"
        "%p:i32 = shl %i, %one\n"
        "store_buffer %b, %p, %h align(2)\n",
        in, [&](const std::vector<uint32_t>& out, uint32_t n) {
            for (uint32_t i = 0; i < 2 * kCount; ++i) {
                const uint32_t found = out[i / 2] >> (i % 2 * 16) & 0xffff;
                const uint32_t expected = i < n ? FloatToHalf(std::bit_cast<float>(in[i])) : 0xa5a5;
                ASSERT_EQ(found, expected) << "of " << std::bit_cast<float>(in[i % kCount]);
            }
        });
}

TEST(Narrowing, ClampedWordsBecomeBytes) {
    std::vector<uint32_t> in(kCount);
    std::mt19937 random(11);
    for (size_t i = 0; i < in.size(); ++i) {
        const auto any = static_cast<uint32_t>(random());
        in[i] = i % 3 == 0 ? any : static_cast<uint32_t>(static_cast<int32_t>(any % 700) - 350);
    }
    in[0] = 0x7fffffff;
    in[1] = 0x80000000;
    for (size_t i = 2; i < 8; ++i) {
        in[i] = static_cast<uint32_t>((i % 2 ? 32767 : -32768) + static_cast<int>(i / 2) - 2);
    }
    const std::string load = "%x:i32 = load_buffer %a, %o align(4)\n";
    const std::string store = "%t:i8 = trunc %c\nstore_buffer %b, %i, %t align(1)\n";
    struct Case {
        int32_t low, high;
        bool low_first;
    };
    for (const Case& which :
         {Case{-128, 127, true}, {-128, 127, false}, {0, 255, true}, {-100, 127, true}}) {
        const std::string low = "%low:i32 = const " + std::to_string(which.low) + "\n";
        const std::string high = "%high:i32 = const " + std::to_string(which.high) + "\n";
        const std::string clamp = which.low_first
                                      ? "%m:i32 = smax %x, %low\n%c:i32 = smin %m, %high\n"
                                      : "%m:i32 = smin %x, %high\n%c:i32 = smax %m, %low\n";
        ForEachTarget(load + low + high + clamp + store, in,
                      [&](const std::vector<uint32_t>& out, uint32_t n) {
                          for (uint32_t i = 0; i < kCount; ++i) {
                              const uint32_t found = out[i / 4] >> (i % 4 * 8) & 0xff;
                              const int32_t clamped =
                                  std::clamp(static_cast<int32_t>(in[i]), which.low, which.high);
                              const uint32_t expected =
                                  i < n ? static_cast<uint32_t>(clamped) & 0xff : 0xa5;
                              ASSERT_EQ(found, expected) << "of " << static_cast<int32_t>(in[i]);
                          }
                      });
    }
}

}  // namespace
}  // namespace fornax::kernel
