// Sums of one and tanh: text before and after, and what comes out.
#include <cmath>

#include <gtest/gtest.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %one:f32 = const 1.0
    %l:i32 = builtin local_id_x
    %x:f32 = utof %l
    %o:buffer = buffer 0, %z
)";
constexpr char kEnd[] = " store_buffer %o, %z, %s align(4) return";

void ExpectReplaced(const std::string& before, const std::string& after) {
    ExpectPassAndCompact([](ir::Kernel& kernel) { ReplaceTanhSums(kernel); }, kPrologue + before,
                         kPrologue + after);
}

TEST(TanhSums, BecomeQuotients) {
    const std::string quotient = std::string(
                                     "%c:f32 = const -2.88539\n"
                                     "%y:f32 = fmul %x, %c\n"
                                     "%e:f32 = exp2 %y\n"
                                     "%i:f32 = const 1.0\n"
                                     "%d:f32 = fadd %e, %i\n"
                                     "%two:f32 = const 2.0\n"
                                     "%s:f32 = fdiv %two, %d\n") +
                                 kEnd;
    ExpectReplaced(std::string("%t:f32 = tanh %x %s:f32 = fadd %t, %one") + kEnd, quotient);
    ExpectReplaced(std::string("%t:f32 = tanh %x %s:f32 = fadd %one, %t") + kEnd, quotient);
}

TEST(TanhSums, OthersStay) {
    auto stays = [](const std::string& text) { ExpectReplaced(text + kEnd, text + kEnd); };
    stays("%t:f32 = tanh %x %s:f32 = fadd %t, %one no_contraction");
    stays("%t:f32 = tanh %x %s:f32 = fadd %t, %x");
    stays("%t:f32 = tanh %x %s:f32 = fsub %t, %one");
    stays("%t:f32 = tanh %x store_buffer %o, %l, %t align(4) %s:f32 = fadd %t, %one");
}

}  // namespace
}  // namespace fornax::kernel
