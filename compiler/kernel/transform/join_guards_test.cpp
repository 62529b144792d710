// Branches that load neighbouring elements: exact text before and after.
#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

std::string RobustText(const std::string& body) {
    return "kernel \"k\" workgroup_size(4, 1, 1) subgroup_size(8) push_constants(64) robust {\n"
           "  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
           "  binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n"
           "  body {\n" +
           body + "  }\n}\n";
}

void ExpectJoined(const std::string& in, const std::string& out) {
    ir::Kernel kernel = Parsed(in);
    EXPECT_TRUE(JoinGuards(kernel));
    const Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    EliminateDeadCode(kernel);
    kernel.Compact();
    ir::Kernel expected = Parsed(out);
    EliminateDeadCode(expected);
    expected.Compact();
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %four:i32 = const 4
    %i:i32 = builtin local_id_x
    %w:i32 = load_push %z align(4)
    %o:buffer = buffer 0, %z
    %b:buffer = buffer 1, %z
    %at:i32 = imul %i, %four
    %next:i32 = iadd %i, %one
)";

// Texels at i and i + 1, each if it lies inside.
constexpr char kTwo[] = R"(
    %c:bool = ult %i, %w
    %v:i32 = if %c {
      %x:i32 = load_buffer %b, %at align(4)
      yield %x
    } else {
      yield %z
    }
    %v2:i32 = iadd %v, %one
    %d:bool = ult %next, %w
    %u:i32 = if %d {
      %at2:i32 = iadd %at, %four
      %y:i32 = load_buffer %b, %at2 align(4)
      yield %y
    } else {
      yield %one
    }
    store_buffer %o, %at, %v2 align(4)
    store_buffer %o, %z, %u align(4)
    return)";

TEST(JoinGuards, ChooseByTheirConditions) {
    ExpectJoined(RobustText(std::string(kPrologue) + kTwo), RobustText(std::string(kPrologue) + R"(
        %c:bool = ult %i, %w
        %d:bool = ult %next, %w
        %any:bool = or %c, %d
        %v:i32, %u:i32 = if %any {
          %x:i32 = load_buffer %b, %at align(4)
          %xc:i32 = select %c, %x, %z
          %at2:i32 = iadd %at, %four
          %y:i32 = load_buffer %b, %at2 align(4)
          %yc:i32 = select %d, %y, %one
          yield %xc, %yc
        } else {
          yield %z, %one
        }
        %v2:i32 = iadd %v, %one
        store_buffer %o, %at, %v2 align(4)
        store_buffer %o, %z, %u align(4)
        return)"));
}

// What lies behind the end of a buffer that is not robust must not be read.
TEST(JoinGuards, ElementsThatNobodyReadStayUnread) {
    ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + kTwo));
    EXPECT_FALSE(JoinGuards(kernel));
}

// The conditions of the workgroup hold together or go separate ways, whatever the buffer is.
TEST(JoinGuards, SpecializeWhatTheWorkgroupDecides) {
    const char* const kIn = R"(
        %k:i32 = load_push %four align(4)
        %k1:i32 = iadd %k, %one
        %lane:bool = ult %i, %w
        %c0:bool = ult %k, %w
        %c:bool = and %c0, %lane
        %v:i32 = if %c {
          %x:i32 = load_buffer %b, %at align(4)
          yield %x
        } else {
          yield %z
        }
        %d0:bool = ult %k1, %w
        %d:bool = and %lane, %d0
        %u:i32 = if %d {
          %at2:i32 = iadd %at, %four
          %y:i32 = load_buffer %b, %at2 align(4)
          yield %y
        } else {
          yield %z
        }
        store_buffer %o, %at, %v align(4)
        store_buffer %o, %z, %u align(4)
        return)";
    const char* const kOut = R"(
        %k:i32 = load_push %four align(4)
        %k1:i32 = iadd %k, %one
        %lane:bool = ult %i, %w
        %c0:bool = ult %k, %w
        %c:bool = and %c0, %lane
        %d0:bool = ult %k1, %w
        %d:bool = and %lane, %d0
        %lane_c0:bool = and %lane, %c0
        %all:bool = and %lane_c0, %d0
        %v:i32, %u:i32 = if %all {
          %x:i32 = load_buffer %b, %at align(4)
          %at2:i32 = iadd %at, %four
          %y:i32 = load_buffer %b, %at2 align(4)
          yield %x, %y
        } else {
          %v1:i32 = if %c {
            %x1:i32 = load_buffer %b, %at align(4)
            yield %x1
          } else {
            yield %z
          }
          %u1:i32 = if %d {
            %at3:i32 = iadd %at, %four
            %y1:i32 = load_buffer %b, %at3 align(4)
            yield %y1
          } else {
            yield %z
          }
          yield %v1, %u1
        }
        store_buffer %o, %at, %v align(4)
        store_buffer %o, %z, %u align(4)
        return)";
    ExpectJoined(KernelText("", std::string(kPrologue) + kIn),
                 KernelText("", std::string(kPrologue) + kOut));
}

TEST(JoinGuards, OthersStay) {
    const std::pair<const char*, const char*> kOthers[] = {
        // a write between them
        {"store_buffer %o, %z, %i align(4)", "%at2:i32 = iadd %at, %four"},
        // a condition that depends on what was loaded
        {"%n:i32 = iadd %v, %i %e:bool = ult %n, %w", "%at2:i32 = iadd %at, %four"},
        // far away
        {"", "%far:i32 = const 400 %at2:i32 = iadd %at, %far"},
        // nobody knows where
        {"", "%at2:i32 = imul %w, %four"},
    };
    for (const auto& [between, place] : kOthers) {
        const std::string uses = std::string(between).find("%e") != std::string::npos ? "%e" : "%d";
        ir::Kernel kernel = Parsed(RobustText(std::string(kPrologue) + R"(
            %c:bool = ult %i, %w
            %d:bool = ult %next, %w
            %v:i32 = if %c {
              %x:i32 = load_buffer %b, %at align(4)
              yield %x
            } else {
              yield %z
            }
            )" + between + "\n%u:i32 = if " + uses +
                                              " {\n" + place + R"(
              %y:i32 = load_buffer %b, %at2 align(4)
              yield %y
            } else {
              yield %z
            }
            store_buffer %o, %at, %v align(4)
            store_buffer %o, %z, %u align(4)
            return)"));
        EXPECT_FALSE(JoinGuards(kernel)) << between << place;
    }
}

// Two groups whose members stand in turns, each of which needs the other: one is joined.
TEST(JoinGuards, GroupsThatNeedEachOther) {
    ir::Kernel kernel = Parsed(RobustText(std::string(kPrologue) + R"(
        %c:bool = ult %i, %w
        %d:bool = ult %next, %w
        %a1:i32 = if %c {
          %x:i32 = load_buffer %b, %at align(4)
          yield %x
        } else {
          yield %z
        }
        %b1:i32 = if %c {
          %p:i32 = load_buffer %o, %at align(4)
          %q:i32 = iadd %p, %a1
          yield %q
        } else {
          yield %z
        }
        %b2:i32 = if %d {
          %at2:i32 = iadd %at, %four
          %y:i32 = load_buffer %o, %at2 align(4)
          yield %y
        } else {
          yield %z
        }
        %a2:i32 = if %d {
          %at3:i32 = iadd %at, %four
          %y2:i32 = load_buffer %b, %at3 align(4)
          %y3:i32 = iadd %y2, %b2
          yield %y3
        } else {
          yield %z
        }
        store_buffer %o, %at, %b1 align(4)
        store_buffer %o, %z, %a2 align(4)
        return)"));
    EXPECT_TRUE(JoinGuards(kernel));
    const Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
}

// Each step of the first condition uses the one before twice.
TEST(JoinGuards, PartsOfConditionsAreLookedAtOnce) {
    std::string two = kTwo;
    std::string chain = "%c0:bool = ult %i, %w\n%p:bool = ult %z, %w\n%q:bool = ult %one, %w\n";
    for (int i = 1; i <= 64; ++i) {
        chain += fmt::format(
            "%a{0}:bool = and %c{1}, %p\n%b{0}:bool = and %c{1}, %q\n%c{0}:bool = and %a{0}, "
            "%b{0}\n",
            i, i - 1);
    }
    const std::string old = "%c:bool = ult %i, %w";
    two.replace(two.find(old), old.size(), chain + "%c:bool = and %c64, %p");
    ir::Kernel kernel = Parsed(RobustText(kPrologue + two));
    EXPECT_TRUE(JoinGuards(kernel));
    EXPECT_TRUE(ir::Verify(kernel).ok());
}

}  // namespace
}  // namespace fornax::kernel
