// Kernels of phases on a device against the interpreter: lanes fewer and more than invocations,
// sums of what is kept, and what strangers make of them.
#include <random>

#include <fmt/format.h>

#include "tests/graph/kernel_check.h"
#include "tests/graph/spirv_check.h"

namespace fornax::graph::loop {
namespace {

class Phases : public test::KernelCheck {
  protected:
    // A recurrence of `width` numbers for each of two groups: h = tanh(x + h * w).
    static std::string Recurrence(int width) {
        return fmt::format(
            "kernel recurrence(in x: f32[n,2,{0}], in w: f32[{0},{0}], out y: f32[n,2,{0}], "
            "out last: f32[2,{0}])\n"
            "  sizes n in 0..100\n"
            "  local h: f32[2,{0}]\n"
            "  parallel $g < 2\n"
            "  sequential $t < n\n"
            "  %0 = constant f32 0.5\n"
            "  %1 = load x[$t,$g,$i]\n"
            "  %2 = load h[mod($t, 2),$k]\n"
            "  %3 = load w[$k,$i]\n"
            "  %4 = mul %2, %3\n"
            "  %5 = reduce sum $k < {0} of %4\n"
            "  %6 = add %1, %5\n"
            "  %7 = tanh %6\n"
            "  %8 = load h[mod(n, 2),$z]\n"
            "  before $a < {0}\n"
            "  store h[0,$a] = %0\n"
            "  each $i < {0}\n"
            "  store h[mod($t + 1, 2),$i] = %7\n"
            "  store y[$t,$g,$i] = %7\n"
            "  after $z < {0}\n"
            "  store last[$g,$z] = %8\n",
            width);
    }
};

TEST_F(Phases, OfLanesFewerAndMoreThanInvocations) {
    for (const int width : {1, 3, 16, 31, 64, 100, 300}) {
        for (const int64_t count : {0, 1, 5}) {
            SCOPED_TRACE(fmt::format("{} numbers, {} iterations", width, count));
            Check(Recurrence(width), {{Symbol("n"), count}}, {1e-3, 1});
        }
    }
}

// Loops of several variables, no loops, conditions, several phases in an iteration.
TEST_F(Phases, OfSeveralInAnIteration) {
    Check(R"(kernel several(in x: i32[6,3,5], out y: i32[6,3], out z: i32[1])
  local a: i32[3,5]
  local b: i32[3]
  sequential $t < 6
  %0 = constant i32 1
  %1 = load x[$t,$i,$j]
  %2 = load a[$i,$j]
  %3 = add %1, %2
  %4 = load a[$m,$r]
  %5 = reduce sum $r < 5 of %4
  %6 = load b[$m]
  %7 = add %5, %6
  %8 = inrange $i - 1 < 2
  %9 = load b[2]
  before $c < 3, $d < 5
  store a[$c,$d] = %0
  before $e < 3
  store b[$e] = %0
  each $i < 3, $j < 5
  store a[$i,$j] = %3 if %8
  each $m < 3
  store b[$m] = %7
  store y[$t,$m] = %7
  after
  store z[0] = %9
)");
}

// A valid kernel with other numbers is valid SPIR-V, and computes what the interpreter does as long
// as no invocation reads what another one stores in the same phase.
TEST_F(Phases, FromStrangersAreValidModules) {
    size_t valid = 0;
    for (uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        std::string text = Recurrence(20);
        for (int change = 0; change < 3; ++change) {
            size_t at = random() % text.size();
            while ((at = text.find_first_of("0123456789", at)) != std::string::npos &&
                   text[at - 1] == '%') {
                ++at;
            }
            if (at != std::string::npos) {
                text[at] = static_cast<char>('0' + random() % 10);
            }
        }
        const Result<Kernel> kernel = ParseKernel(text);
        if (!kernel.ok()) {
            continue;
        }
        const Result<Module> module = EmitSpirv(*kernel, runner_->target());
        if (!module.ok()) {
            EXPECT_EQ(module.error().code, ErrorCode::kUnsupported) << text;
            continue;
        }
        ++valid;
        EXPECT_EQ(test::Validate(module->words), "") << text;
    }
    EXPECT_GT(valid, 50U);
}

}  // namespace
}  // namespace fornax::graph::loop
