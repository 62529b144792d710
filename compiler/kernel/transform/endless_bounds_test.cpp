// Tests that end loops after 2^64 iterations go, and only those: exact text before and after.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kLocals[] = "local 0: i32[2]\nlocal 1: i32[1]\n";

// A loop of 16 iterations as naga writes it, with its counter's words in local 0. The pieces are
// what tests change.
struct NagaLoop {
    std::string first = "-1", second = "-1";
    std::string low_step = "%one", zero = "%z", borrow = "%one";
    std::string between_loads, between_stores;
    std::string low = "%one", high = "%z";  // the elements

    std::string Text(const std::string& end = "and %h0, %l0") const {
        return fmt::format(R"(
            %z:i32 = const 0
            %one:i32 = const 1
            %n:i32 = const 16
            %o:buffer = buffer 0, %z
            %a:i32 = const {first}
            %b:i32 = const {second}
            store_local 0, %z, %a
            store_local 0, %one, %b
            store_local 1, %z, %z
            loop @0 () {{
                %h:i32 = load_local 0, {high}
                {between_loads}
                %l:i32 = load_local 0, {low}
                %h0:bool = ieq {zero}, %h
                %l0:bool = ieq {zero}, %l
                %end:bool = {end}
                if %end {{
                    exit @0
                }}
                %borrow:i32 = select %l0, {borrow}, %z
                %h1:i32 = isub %h, %borrow
                %l1:i32 = isub %l, {low_step}
                store_local 0, {high}, %h1
                {between_stores}
                store_local 0, {low}, %l1
                %i:i32 = load_local 1, %z
                %stays:bool = ult %i, %n
                if %stays {{
                    yield
                }} else {{
                    exit @0
                }}
                store_buffer %o, %z, %i align(4)
                continue @0
            }} continuing () {{
                %i1:i32 = load_local 1, %z
                %i2:i32 = iadd %i1, %one
                store_local 1, %z, %i2
                next
            }}
            return)",
                           fmt::arg("first", first), fmt::arg("second", second),
                           fmt::arg("high", high), fmt::arg("low", low), fmt::arg("zero", zero),
                           fmt::arg("between_loads", between_loads), fmt::arg("end", end),
                           fmt::arg("borrow", borrow), fmt::arg("low_step", low_step),
                           fmt::arg("between_stores", between_stores));
    }
};

void ExpectTestGone(const NagaLoop& loop) {
    ExpectPass(RemoveEndlessBounds, kLocals, loop.Text(), kLocals, loop.Text("const false"));
}

void ExpectNoChange(const NagaLoop& loop) {
    ExpectPass(RemoveEndlessBounds, kLocals, loop.Text(), kLocals, loop.Text());
}

TEST(EndlessBounds, CountersOfTwoWordsAreNeverZero) {
    ExpectTestGone({});
    ExpectTestGone({.low = "%z", .high = "%one"});
}

// So the loop's trip count is known, and nothing is left of the counter.
TEST(EndlessBounds, LoopsAreWhatTheyWereWithoutABound) {
    ir::Kernel kernel = Parsed(KernelText(kLocals, NagaLoop().Text()));
    RunPipeline(kernel);
    const std::string text = ir::PrintKernel(kernel);
    EXPECT_EQ(text.find("select"), std::string::npos) << text;
    EXPECT_EQ(text.find("exit"), text.rfind("exit")) << text;
}

TEST(EndlessBounds, CountersThatMayEndStay) {
    ExpectNoChange({.first = "7"});
    ExpectNoChange({.second = "0"});
    ExpectNoChange({.low_step = "%n"});
    ExpectNoChange({.borrow = "%n"});
    ExpectNoChange({.zero = "%n"});
    // One word both times.
    ExpectNoChange({.low = "%z"});
}

TEST(EndlessBounds, WordsOfDifferentTimesMayBothBeZero) {
    ExpectNoChange({.between_loads = "store_local 0, %z, %z"});
    ExpectNoChange(
        {.between_stores = "%x:i32 = load_local 0, %z store_buffer %o, %z, %x align(4)"});
    ExpectNoChange({.between_stores = "store_local 0, %n, %z"});
}

// The counter of a function that is called in a loop begins anew in each iteration; one that
// begins within a branch is not known to have begun.
TEST(EndlessBounds, CountersBeginBeforeTheirLoops) {
    const std::string begin = R"(store_local 0, %z, %a
            store_local 0, %one, %b)";
    std::string text = NagaLoop().Text();
    text.replace(text.find(begin), begin.size(),
                 "%c:bool = ult %z, %a if %c { " + begin + " yield }");
    ExpectPass(RemoveEndlessBounds, kLocals, text, kLocals, text);
}

}  // namespace
}  // namespace fornax::kernel
