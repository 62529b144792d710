// The text form: what the printer writes, the parser reads back to the same text; mistakes name
// their line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel::ir {
namespace {

using ::testing::HasSubstr;

// Every kind of instruction and declaration that has syntax of its own, as printed.
constexpr char kEverything[] =
    R"(kernel "ma\"in" workgroup_size(64, 2, 1) subgroup_size(32) shared(1024) zero_shared push_constants(8) robust {
  binding 0: storage_buffer set(0) binding(1) count(1) offset(0)
  binding 1: uniform_buffer set(1) binding(0) count(4) offset(16) stride(64) dynamic(2) readonly
  local 0: f32[16]
  local 1: bool[1]
  data "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
  data "20"
  body {
    %0:i32 = builtin local_id_x
    %1:i32 = const -1
    %2:i64 = const 4294967296
    %3:f32 = const 0.1
    %4:f32 = const 2.0
    %5:f32 = const 0x7fc00001
    %6:f32 = const 1e+30
    %7:f16 = const 0.33325195
    %8:f64 = const -1e-300
    %9:bool = const true
    %10:f32 = undef
    %11:i8 = const -128
    %12:f32 = fadd %3, %4 no_contraction
    %13:i32, %14:i32 = uadd_carry %0, %1
    %15:buffer = buffer 0, %0
    %16:buffer = buffer 1, %0 nonuniform
    %17:f32, %18:f32 = load_buffer %16, %0 align(4) volatile
    store_buffer %15, %2, %17, %18 align(8)
    store_shared %0, %11 align(1)
    %19:i32 = load_push %0 align(4)
    %20:i16 = load_constant %0 align(2)
    %21:f32 = load_local 0, %0
    store_local 1, %0, %9
    %22:i32 = atomic_buffer compare_exchange, %15, %0, %1, %0
    %23:i32 = atomic_shared add, %0, %1 volatile
    barrier
    memory_barrier
    %24:bool = subgroup_elect
    if dont_flatten %24 {
      return
    }
    %25:f32, %26:i32 = loop @0 unroll (%27:i32 = %1, %28:f32 = %3) {
      %29:i32 = switch @1 %27 default {
        exit @0 %28, %27
      } case 3 {
        %30:i32 = scope @2 {
          %31:bool = ieq %27, %0
          if %31 {
            exit @2 %0
          } else {
            exit @1 %27
          }
          unreachable
        }
        yield %30
      } case 4294967295 {
        continue @0 %28
      }
      continue @0 %4
    } continuing (%32:f32) {
      %33:i32 = iadd %27, %1
      next %33, %32
    }
    loop @3 () {
      exit @3
    } continuing () {
      next
    }
    return
  }
}
)";

TEST(Text, PrintedTextComesBackUnchanged) {
    auto kernel = ParseKernel(kEverything);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(PrintKernel(*kernel), kEverything);
    EXPECT_EQ(kernel->name, "ma\"in");
    EXPECT_EQ(kernel->constant_data.size(), 33u);
    EXPECT_EQ(kernel->bindings[1].layout.first_dynamic_offset, 2u);
}

TEST(Text, CompactKeepsTheTextAndForgetsTheRest) {
    auto kernel = ParseKernel(kEverything);
    ASSERT_TRUE(kernel.ok());
    uint32_t insts = kernel->num_insts();
    for (int i = 0; i < 10; ++i) {
        kernel->NewInst(Op::kReturn, {}, {});
    }
    kernel->Compact();
    EXPECT_EQ(kernel->num_insts(), insts);
    EXPECT_TRUE(Verify(*kernel).ok());
    EXPECT_EQ(PrintKernel(*kernel), kEverything);
}

std::string WithBody(const std::string& body) {
    return "kernel \"k\" workgroup_size(1, 1, 1) subgroup_size(8) {\n"
           "  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
           "  body {\n" +
           body + "  }\n}\n";
}

TEST(Text, NamesAndCommentsAreFree) {
    auto kernel = ParseKernel(WithBody(R"(
        // a comment
        %zero:i32 = const 0x0  ; another
        %x:f32 = const 1
        %y:f32 = fadd %x, %x return)"));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(PrintKernel(*kernel), WithBody("    %0:i32 = const 0\n"
                                             "    %1:f32 = const 1.0\n"
                                             "    %2:f32 = fadd %1, %1\n"
                                             "    return\n"));
}

TEST(Text, EveryFloatConstantIsExact) {
    for (uint32_t bits : {0x00000001u, 0x3f800001u, 0x7f7fffffu, 0x7f800000u, 0xff800000u,
                          0x80000000u, 0x7fc00000u, 0xffffffffu, 0x33d6bf95u}) {
        Kernel kernel;
        kernel.body = kernel.NewBlock({});
        Builder builder(kernel, kernel.body);
        builder.Const(Type::kF32, bits);
        builder.Append(Op::kReturn, {}, {});
        auto again = ParseKernel(PrintKernel(kernel));
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(again->inst(InstId{0}).imm, bits);
    }
}

struct Mistake {
    const char* text;
    const char* message;
};

TEST(Text, MistakesNameTheirLine) {
    const Mistake kMistakes[] = {
        {"%a:i32 = const 1\n%a:i32 = const 2\nreturn\n",
         "line 5: the value %a is defined a second"},
        {"%a:i32 = ineg %b\nreturn\n", "line 4: the value %b is not defined before"},
        {"%a:i32 = frobnicate\nreturn\n", "expected an operation but found 'frobnicate'"},
        {"%a:i32 = const 4294967296\nreturn\n", "the constant 4294967296 does not fit into i32"},
        {"%a:i8 = const -129\nreturn\n", "does not fit into i8"},
        {"%a:f32 = const 1e99\nreturn\n", "expected a float within the type's range"},
        {"%a:i32 = const 99999999999999999999999\nreturn\n", "expected an integer"},
        {"%a:i7 = const 1\nreturn\n", "expected a type but found 'i7'"},
        {"scope { exit @5 }\nreturn\n", "no enclosing construct has the label @5"},
        {"%a:i32 = builtin nose\nreturn\n", "expected a builtin but found 'nose'"},
        {"return $\n", "expected an operation but found '$'"},
        {"%a:i32 = const 1\n%b:i32 = load_push %a\nreturn\n",
         "expected 'align' but found 'return'"},
    };
    for (const Mistake& mistake : kMistakes) {
        auto kernel = ParseKernel(WithBody(mistake.text));
        ASSERT_FALSE(kernel.ok()) << mistake.text;
        EXPECT_THAT(kernel.error().message, HasSubstr(mistake.message));
    }
}

// Cutting or damaging valid text anywhere gives an error or another valid kernel, never a crash.
TEST(Text, DamagedTextIsHarmless) {
    std::string text = kEverything;
    for (size_t i = 0; i < text.size(); ++i) {
        EXPECT_FALSE(ParseKernel(text.substr(0, i)).ok() && i + 2 < text.size());
        std::string damaged = text;
        damaged[i] = "}%0\"(-"[i % 6];
        auto kernel = ParseKernel(damaged);
        if (kernel.ok()) {
            EXPECT_TRUE(ParseKernel(PrintKernel(*kernel)).ok());
        }
    }
}

TEST(Text, NestingIsBounded) {
    std::string deep = WithBody("");
    deep.resize(deep.find("body {") + 6);
    for (int i = 0; i < 100000; ++i) {
        deep += "scope {";
    }
    auto kernel = ParseKernel(deep);
    ASSERT_FALSE(kernel.ok());
    EXPECT_THAT(kernel.error().message, HasSubstr("nested more than"));
}

}  // namespace
}  // namespace fornax::kernel::ir
