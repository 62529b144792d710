// Loops that multiply matrices by way of workgroup memory take several iterations at once, and
// compute the same.
#include <gtest/gtest.h>

#include "base/half.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kMostIterations = 9;

struct Choice {
    std::string before = "";   // in the iteration, before its first barrier
    std::string between = "";  // between the two
    std::string after = "";    // behind the second
    uint32_t read_at = 0;      // byte in workgroup memory
    uint32_t products = 1;     // of the sum, in an iteration
    uint32_t shared_bytes = 768;
    bool bfloat16 = false;
};

// 64 invocations copy a matrix of 16 x 16 f16 an iteration, and add its square to a sum. The matrix
// before is still there, at byte 512, for who would read it.
std::string Text(const Choice& choice) {
    std::string text = "kernel \"k\" workgroup_size(64, 1, 1) subgroup_size(64) shared(" +
                       std::to_string(choice.shared_bytes) + R"() push_constants(4) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
  local 0: f32[4]
  body {
    %zero:i32 = const 0
    %one:i32 = const 1
    %two:i32 = const 2
    %n2:i32 = const 2
    %n3:i32 = const 3
    %none:f32 = const 0.0
    %line:i32 = const 128
    %all:i32 = const 512
    %read:i32 = const )" +
                       std::to_string(choice.read_at) + R"(
    %in:buffer = buffer 0, %zero
    %out:buffer = buffer 1, %zero
    %iterations:i32 = load_push %zero align(4)
    %lane:i32 = builtin subgroup_lane
    %index:i32 = builtin local_index
    %word:i32 = shl %index, %two
    %half:i32 = shl %lane, %one
    %from:i32 = iadd %half, %read
    store_local 0, %zero, %none
    store_local 0, %one, %none
    store_local 0, %two, %none
    store_local 0, %n3, %none
    loop @0 (%n:i32 = %zero, %at:i32 = %zero) {
      %more:bool = ult %n, %iterations
      if %more {
        yield
      } else {
        exit @0
      }
)" + choice.before;
    for (uint32_t i = 0; i < 2; ++i) {
        const std::string id = std::to_string(i);
        text += "%c" + id + ":i32 = const " + std::to_string(i * 256) + "\n%s" + id +
                ":i32 = iadd %word, %c" + id + "\n%f" + id + ":i32 = iadd %s" + id + ", %at\n%v" +
                id + ":i32 = load_buffer %in, %f" + id + " align(4)\nstore_shared %s" + id +
                ", %v" + id + " align(4)\n";
    }
    text += "barrier\n" + choice.between;
    for (uint32_t product = 0; product < choice.products; ++product) {
        const std::string p = std::to_string(product) + "_";
        std::string a, c, r, stores;
        for (uint32_t e = 0; e < 4; ++e) {
            const std::string id = p + std::to_string(e);
            const std::string place = e == 0 ? "%zero" : e == 1 ? "%one" : "%n" + std::to_string(e);
            text += "%k" + id + ":i32 = const " + std::to_string(e * 128) + "\n%t" + id +
                    ":i32 = iadd %from, %k" + id + "\n%a" + id +
                    (choice.bfloat16 ? ":i16" : ":f16") + " = load_shared %t" + id +
                    " align(2)\n%l" + id + ":f32 = load_local 0, " + place + "\n";
            a += "%a" + id + ", ";
            c += (e ? ", %l" : "%l") + id;
            r += (e ? ", %r" : "%r") + id + ":f32";
            stores += "store_local 0, " + place + ", %r" + id + "\n";
        }
        text += r + " = matrix_muladd " + (choice.bfloat16 ? "16" : "0") + ", " + a + a + c + "\n" +
                stores;
    }
    text += R"(
      barrier
)" + choice.after +
            R"(
      %next:i32 = iadd %at, %all
      continue @0 %next
    } continuing (%q:i32) {
      %m:i32 = iadd %n, %one
      next %m, %q
    }
    %left:i32 = load_shared %word align(4)
    %past:i32 = const 1024
    %left_at:i32 = iadd %word, %past
    store_buffer %out, %left_at, %left align(4)
)";
    for (uint32_t e = 0; e < 4; ++e) {
        const std::string id = std::to_string(e);
        text += "%o" + id + "_n:i32 = const " + std::to_string(e * 256) + "\n%o" + id +
                "_at:i32 = iadd %word, %o" + id + "_n\n%o" + id + ":f32 = load_local 0, " +
                (e == 0   ? "%zero"
                 : e == 1 ? "%one"
                          : "%n" + id) +
                "\nstore_buffer %out, %o" + id + "_at, %o" + id + " align(4)\n";
    }
    return text + "    return\n  }\n}\n";
}

std::vector<uint32_t> Results(const ir::Kernel& kernel,
                              uint32_t iterations,
                              uint64_t* counted = nullptr) {
    std::vector<uint32_t> in(kMostIterations * 128);
    for (uint32_t i = 0; i < in.size(); ++i) {
        const auto half = [&](uint32_t k) {
            return uint32_t{FloatToHalf(static_cast<float>((i * 7 + k * 5) % 11) - 5)};
        };
        in[i] = half(0) | half(1) << 16;
    }
    std::vector<uint32_t> out(320);
    const hal::BufferDescriptor set[] = {{reinterpret_cast<uint64_t>(in.data()), in.size() * 4},
                                         {reinterpret_cast<uint64_t>(out.data()), out.size() * 4}};
    const void* sets[] = {set};
    hal::DispatchFrame frame = {};
    frame.descriptor_sets = sets;
    frame.push_constants = &iterations;
    for (uint32_t& count : frame.workgroup_count) {
        count = 1;
    }
    hal::WorkerFrame worker = {.region_counts = counted};
    const Status status =
        Interpret(kernel, frame, 0, 1, InterpretLimits{.steps = 1'000'000, .worker = &worker});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return out;
}

bool Joins(const Choice& choice) {
    ir::Kernel kernel = Parsed(Text(choice));
    const bool joined = JoinIterations(kernel);
    const Status status = ir::Verify(kernel);
    EXPECT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    return joined;
}

TEST(JoinIterations, ComputesTheSame) {
    for (uint32_t products = 1; products <= 2; ++products) {
        const ir::Kernel before = Parsed(Text({.products = products}));
        ir::Kernel kernel = before;
        ASSERT_TRUE(JoinIterations(kernel));
        Simplify(kernel);
        const Status status = ir::Verify(kernel);
        ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
        EXPECT_EQ(kernel.shared_bytes, 768u + (products == 1 ? 3u : 1u) * 512u);
        for (uint32_t iterations = 0; iterations <= kMostIterations; ++iterations) {
            const std::vector<uint32_t> expected = Results(before, iterations);
            EXPECT_EQ(Results(kernel, iterations), expected) << iterations;
            EXPECT_EQ(expected[0] != 0, iterations != 0);
        }
    }
}

// Each iteration counts once, those that are left over as well.
TEST(JoinIterations, CountsStayExact) {
    for (const char* place : {"before", "after"}) {
        Choice choice;
        (place == std::string("before") ? choice.before : choice.after) = "count 0\n";
        ir::Kernel kernel = Parsed(Text(choice));
        ASSERT_TRUE(JoinIterations(kernel)) << place;
        for (uint32_t iterations = 0; iterations <= kMostIterations; ++iterations) {
            uint64_t counted = 0;
            Results(kernel, iterations, &counted);
            EXPECT_EQ(counted, uint64_t{64} * iterations) << place;
        }
    }
}

TEST(JoinIterations, OfBFloat16Alone) {
    for (const bool bfloat16 : {false, true}) {
        ir::Kernel kernel = Parsed(Text({.bfloat16 = bfloat16}));
        EXPECT_EQ(JoinIterations(kernel, JoinedMmas::kBFloat16), bfloat16);
    }
}

TEST(JoinIterations, WhatOtherIterationsWriteIsRead) {
    EXPECT_TRUE(Joins({}));
    EXPECT_FALSE(Joins({.read_at = 2}));    // an element of no iteration
    EXPECT_FALSE(Joins({.read_at = 256}));  // half of it is from before the loop
}

TEST(JoinIterations, IterationsThatDoMore) {
    const std::string value = "%x:i32 = const 5\n";
    EXPECT_FALSE(Joins({.before = value + "store_buffer %out, %zero, %x align(4)\n"}));
    EXPECT_FALSE(Joins({.before = "%x:i32 = load_shared %word align(4)\n"}));
    EXPECT_FALSE(Joins({.before = value + "if %more { store_shared %word, %x align(4) yield } "
                                          "else { yield }\n"}));
    EXPECT_FALSE(Joins({.between = value + "store_shared %word, %x align(4)\n"}));
    EXPECT_FALSE(Joins({.between = "barrier\n"}));
    // Loads may be anywhere before.
    EXPECT_TRUE(Joins({.before = "%y:i32 = if %more { %x:i32 = load_buffer %in, %zero align(4) "
                                 "yield %x } else { yield %zero }\nstore_shared %word, %y "
                                 "align(4)\n"}));
}

TEST(JoinIterations, AsFarAsMemoryGoes) {
    EXPECT_TRUE(Joins({.shared_bytes = 65'536 - 512}));
    EXPECT_FALSE(Joins({.shared_bytes = 65'536}));
    EXPECT_FALSE(Joins({.products = 3}));  // there are enough
}

}  // namespace
}  // namespace fornax::kernel
