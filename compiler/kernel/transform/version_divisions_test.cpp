// Specializations for vectors whose lanes share every quotient: what is asked, and what is left
// alone.
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %four:i32 = const 4
    %l:i32 = builtin local_id_x
    %w:i32 = builtin workgroup_id_x
    %first:i32 = imul %w, %four
    %i:i32 = iadd %first, %l
    %s:i32 = load_push %z align(4)
    %o:buffer = buffer 1, %z
)";

// The kernel after the pass.
std::string After(const std::string& body) {
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + body));
    if (!VersionDivisions(kernel)) {
        return "";
    }
    EXPECT_TRUE(ir::Verify(kernel).ok()) << ir::PrintKernel(kernel);
    Simplify(kernel);
    kernel.Compact();
    return ir::PrintKernel(kernel);
}

size_t Count(const std::string& text, const std::string& word) {
    size_t count = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        ++count;
    }
    return count;
}

TEST(VersionDivisions, AQuotientIsAskedFor) {
    ExpectPassAndCompact([](ir::Kernel& kernel) { VersionDivisions(kernel); },
                         std::string(kPrologue) + R"(
    %q:i32 = udiv %i, %s
    store_buffer %o, %q, %l align(4)
    return
)",
                         std::string(kPrologue) + R"(
    %low:i32, %span:i32 = lane_range %i
    %shared:i32 = udiv %low, %s
    %whole:i32 = imul %shared, %s
    %lowest:i32 = isub %low, %whole
    %room:i32 = isub %s, %lowest
    %not:i32 = not %low
    %apart:bool = ule %span, %not
    %fits:bool = ult %span, %room
    %all:bool = and %apart, %fits
    if %all {
      store_buffer %o, %shared, %l align(4)
      yield
    } else {
      %q:i32 = udiv %i, %s
      store_buffer %o, %q, %l align(4)
      yield
    }
    return
)");
}

TEST(VersionDivisions, GuardsBelongToTheQuestion) {
    const std::string text = After(R"(
    scope @0 {
      %out:bool = ule %s, %i
      if %out { exit @0 }
      %q:i32 = urem %i, %s
      %at:i32 = shl %q, %four
      store_buffer %o, %at, %l align(4)
      yield
    }
    return
)");
    // In the specialization only.
    EXPECT_EQ(Count(text, "exit @"), 1u) << text;
    EXPECT_EQ(Count(text, "urem"), 1u) << text;
    EXPECT_EQ(Count(text, "store_buffer"), 2u) << text;
}

TEST(VersionDivisions, GuardsOneAfterAnother) {
    const std::string part = R"(
      %out#:bool = ule %s, %i#
      if %out# { exit @# %i# }
      %q#:i32 = udiv %i#, %s
      store_buffer %o, %q#, %l align(4)
      %next#:i32 = iadd %i#, %four
      yield %next#
    }
)";
    auto numbered = [&](char number) {
        std::string text = part;
        std::replace(text.begin(), text.end(), '#', number);
        return text;
    };
    const std::string text = After("%i0:i32 = iadd %i, %four %i1:i32 = scope @0 {" + numbered('0') +
                                   "%i2:i32 = scope @1 {" + numbered('1') + "return\n");
    EXPECT_EQ(Count(text, "lane_range"), 2u) << text;
    EXPECT_EQ(Count(text, "exit @"), 2u) << text;
    EXPECT_EQ(Count(text, "store_buffer"), 4u) << text;
}

TEST(VersionDivisions, OnesThatAreSparedOrMultiplied) {
    const std::string text = After(R"(
    %less:bool = ult %i, %s
    %q:i32 = if %less {
      yield %z
    } else {
      %d:i32 = udiv %i, %s
      yield %d
    }
    %n:i32 = load_push %four align(4)
    %one:i32 = const -1
    %r:i32 = scope @0 {
      %m:i32 = iadd %n, %one
      %b:i32 = and %n, %m
      %p:bool = ieq %b, %z
      if %p {
        %a:i32 = and %q, %m
        exit @0 %a
      }
      %u:i32 = urem %q, %n
      yield %u
    }
    %lo:i32, %h:i32 = umul_extended %i, %n
    %sum:i32 = iadd %i, %h
    %by:i32 = lshr %sum, %s
    %at0:i32 = iadd %q, %r
    %at:i32 = iadd %at0, %by
    store_buffer %o, %at, %l align(4)
    return
)");
    EXPECT_EQ(Count(text, "lane_range"), 1u) << text;
    // Before the question, where all lanes have one, and in the original.
    EXPECT_EQ(Count(text, "udiv"), 2u) << text;
    EXPECT_EQ(Count(text, "urem"), 2u) << text;
    EXPECT_EQ(Count(text, "umul_extended"), 3u) << text;
}

TEST(VersionDivisions, OthersStay) {
    const std::string store = " store_buffer %o, %q, %l align(4) return";
    EXPECT_EQ(After("%q:i32 = udiv %w, %s" + store), "");
    EXPECT_EQ(After("%q:i32 = udiv %i, %four" + store), "");
    EXPECT_EQ(After("%q:i32 = udiv %s, %i" + store), "");
    EXPECT_EQ(After("%x:i32 = load_buffer %o, %l align(4) %q:i32 = udiv %x, %s" + store), "");
    EXPECT_EQ(After("%q:i32 = udiv %i, %s barrier" + store), "");
    EXPECT_EQ(After("%q:i32 = udiv %i, %s %e:bool = subgroup_elect" + store), "");
}

}  // namespace
}  // namespace fornax::kernel
