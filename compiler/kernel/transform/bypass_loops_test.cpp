// What follows a loop has a copy for subgroups of which no lane enters the loop: exact text before
// and after, and what is left alone.
#include <gtest/gtest.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %four:i32 = const 4
    %l:i32 = builtin local_id_x
    %n:i32 = load_push %z align(4)
    %in:buffer = buffer 0, %z
    %out:buffer = buffer 1, %z
)";

// Four words an iteration.
std::string Loop(const std::string& test) {
    return R"(
    %left:i32, %at:i32, %sum:i32 = loop @0 (%m:i32 = %n, %i:i32 = %l, %s:i32 = %z) {
)" + test +
           R"(
      %p:i32 = imul %i, %four
      %v:i32 = load_buffer %in, %p align(4)
      %t:i32 = iadd %s, %v
      %j:i32 = iadd %i, %four
      %k:i32 = isub %m, %four
      continue @0 %k, %j, %t
    } continuing (%d:i32, %e:i32, %f:i32) {
      next %d, %e, %f
    }
)";
}

const std::string kEnters = R"(
      %b:bool = ule %four, %m
      if %b { yield } else { exit @0 %m, %i, %s }
)";
const std::string kLeaves = R"(
      %b:bool = ult %m, %four
      if %b { exit @0 %m, %i, %s } else { yield }
)";

// The rest, a word.
constexpr char kRest[] = R"(
    %any:bool = ine %left, %z
    %all:i32 = if %any {
      %q:i32 = imul %at, %four
      %w:i32 = load_buffer %in, %q align(4)
      %x:i32 = iadd %sum, %w
      yield %x
    } else {
      yield %sum
    }
)";
constexpr char kReduce[] = "%r:i32 = subgroup_reduce iadd, %all\n";
constexpr char kStore[] = "store_buffer %out, %z, %r align(4)\n";

std::string Bypassed(const std::string& body) {
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + body));
    if (!BypassLoops(kernel)) {
        return "";
    }
    Simplify(kernel);
    Status status = ir::Verify(kernel);
    EXPECT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    return ir::PrintKernel(kernel);
}

TEST(BypassLoops, TheRestGoesOnByWhatTheLoopBeganWith) {
    const std::string before = Loop(kEnters) + kRest + kReduce + kStore + "return";
    const std::string after = R"(
    %enters:bool = ule %four, %n
    %lanes:i64 = subgroup_ballot %enters
    %none:i64 = const 0
    %some:bool = ine %lanes, %none
    if %some {
)" + Loop(kEnters) + kRest + kReduce +
                              kStore + R"(
      yield
    } else {
      %any2:bool = ine %n, %z
      %all2:i32 = if %any2 {
        %q2:i32 = imul %l, %four
        %w2:i32 = load_buffer %in, %q2 align(4)
        %x2:i32 = iadd %z, %w2
        yield %x2
      } else {
        yield %z
      }
      %r2:i32 = subgroup_reduce iadd, %all2
      store_buffer %out, %z, %r2 align(4)
      yield
    }
    return
)";
    ExpectPassAndCompact([](ir::Kernel& kernel) { EXPECT_TRUE(BypassLoops(kernel)); },
                         kPrologue + before, kPrologue + after);
}

// What the block gives to its construct comes out of either form.
TEST(BypassLoops, ResultsOfTheBlock) {
    const std::string inside = Loop(kLeaves) + kRest + kReduce;
    const std::string before = "%c:bool = ine %n, %one\n%a0:i32, %a1:i32, %a2:i32 = if %c {" +
                               inside + "yield %r, %one, %r } else { yield %z, %z, %one }\n";
    const std::string stores =
        "%y:i32 = iadd %a0, %a1 %h:i32 = iadd %y, %a2\n"
        "store_buffer %out, %z, %h align(4) return";
    const std::string after = R"(
    %c:bool = ine %n, %one
    %a0:i32, %a1:i32, %a2:i32 = if %c {
      %leaves:bool = ult %n, %four
      %enters:bool = not %leaves
      %lanes:i64 = subgroup_ballot %enters
      %none:i64 = const 0
      %some:bool = ine %lanes, %none
      %result:i32 = if %some {
)" + inside + R"(
        yield %r
      } else {
        %any2:bool = ine %n, %z
        %all2:i32 = if %any2 {
          %q2:i32 = imul %l, %four
          %w2:i32 = load_buffer %in, %q2 align(4)
          %x2:i32 = iadd %z, %w2
          yield %x2
        } else {
          yield %z
        }
        %r2:i32 = subgroup_reduce iadd, %all2
        yield %r2
      }
      yield %result, %one, %result
    } else {
      yield %z, %z, %one
    }
)";
    ExpectPassAndCompact([](ir::Kernel& kernel) { EXPECT_TRUE(BypassLoops(kernel)); },
                         kPrologue + before + stores, kPrologue + after + stores);
}

TEST(BypassLoops, WhatIsLeftAlone) {
    EXPECT_NE(Bypassed(Loop(kEnters) + kRest + kReduce + kStore + "return"), "");
    // No subgroup could be asked.
    EXPECT_EQ(Bypassed(Loop(kEnters) + kRest + "store_buffer %out, %z, %all align(4) return"), "");
    // Nothing behind the loop goes on where it ended.
    EXPECT_EQ(Bypassed(Loop(kEnters) + "%r:i32 = subgroup_reduce iadd, %sum\n" + kStore + "return"),
              "");
    // The rest is a loop or waits for other subgroups.
    EXPECT_EQ(Bypassed(Loop(kEnters) + kRest + kReduce + kStore + "barrier return"), "");
    EXPECT_EQ(Bypassed(Loop(kEnters) + kRest + kReduce + kStore + R"(
        loop @1 () { exit @1 } continuing () { next }
        return)"),
              "");
    // It would be asked in each iteration.
    EXPECT_EQ(Bypassed("loop @1 () {" + Loop(kEnters) + kRest + kReduce + kStore +
                       "exit @1 } continuing () { next } return"),
              "");
    // Iterations begin with more than a test.
    EXPECT_EQ(Bypassed(Loop("%y:i32 = load_buffer %in, %z align(4)" + kEnters) + kRest + kReduce +
                       kStore + "return"),
              "");
}

}  // namespace
}  // namespace fornax::kernel
