// Each rule of loop kernels refuses the kernel that breaks it, with the reason.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/limits.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] =
    "kernel k(in x: f32[n,8], in p: i32[8], out y: f32[n,8], out z: i64[8])\n"
    "  sizes n in 0..64\n"
    "  parallel $i < n, $j < 8\n";

// Lines behind kHead, and a part of the error.
TEST(LoopVerify, RefusesLines) {
    const std::pair<const char*, const char*> cases[] = {
        {"%0 = load x[$i]", "in %0: the buffer x of 2 dimensions is accessed with 1 indices"},
        {"%0 = load x[$i,m]", "m in m is neither a size nor a loop's variable"},
        {"%0 = load x[$i,$k]", "$k in $k is neither a size nor a loop's variable"},
        {"%0 = load x[$i,$v1]\n%1 = load p[0]", "its operand %1 is not computed before"},
        {"%0 = load x[$i,$v0]", "its operand %0 is not computed before"},
        {"%0 = load x[$i,$v00]", "$v00 is neither a size nor a loop's variable"},
        {"%0 = load x[0,0]\n%1 = load x[$v0,0]", "$v0 is an index but f32, not an integer"},
        {"%0 = load p[0]\n%1 = load x[0,0] otherwise %0", "it loads f32 and is otherwise i32"},
        {"%0 = load p[0]\n%1 = exp %0", "exp is not defined for i32"},
        {"%0 = load p[0]\n%1 = load x[0,0]\n%2 = add %0, %1", "argument 1 of add is f32, not i32"},
        {"%0 = load p[0]\n%1 = select %0, %0, %0", "argument 0 of select is i32, not bool"},
        {"%0 = load x[0,0]\n%1 = bitcast f64 %0", "f32 and f64 are not of one width"},
        {"%0 = load x[0,0]\n%1 = cast string %0", "its type has no bytes"},
        {"%0 = constant u8 256", "u8 does not have the constant"},
        {"%0 = constant i8 -129", "i8 does not have the constant"},
        {"%0 = constant bool 2", "bool does not have the constant"},
        {"%0 = constant f16 0.1", "f16 does not have the constant"},
        {"%0 = load x[0,$r]\n%1 = reduce and $r < 8 of %0", "and of f32 is not defined"},
        {"%0 = load x[0,$r]\n%1 = reduce replace $r < 8 of %0",
         "a combination that does not exist"},
        {"%0 = load x[0,$r]\n%1 = position sum $r < 8 of %0", "neither the greatest nor the least"},
        {"%0 = load x[0,$j]\n%1 = reduce sum $j < 8 of %0", "two loops have the variable $j"},
        {"%0 = load x[0,0]\n%1 = reduce sum $r < 8, $r < 8 of %0",
         "two loops have the variable $r"},
        {"%0 = load x[0,0]\n%1 = reduce sum $v2 < 8 of %0",
         "'$v2' is no name of a loop's variable"},
        {"%0 = load x[0,0]\n%1 = reduce sum $r < $r + 1 of %0", "depends on $r itself"},
        {"%0 = load x[0,0]\n%1 = reduce sum $q < 3, $r < $q of %0", "depends on $q itself"},
        {"%0 = load x[0,0]\n%1 = reduce sum $r < m of %0", "m in m is neither"},
        {"%0 = load x[$r,0]\n%1 = reduce sum $r < 8 of %0\n%2 = reduce sum $r < 9 of %0",
         "the variable $r has the extents 8 and 9"},
        {"%0 = load x[0,0]\nstore x[0,0] = %0", "in store 0: the buffer x is not written"},
        {"%0 = load x[0,0]\nstore z[0] = %0", "f32 is stored to the buffer z of i64"},
        {"%0 = load x[0,0]\nstore y[0,0] = %0 if %0", "its condition is f32, not bool"},
        {"%0 = load x[0,0]\nstore y[0,0] = %1", "an operand does not exist"},
        // Variables of reductions outside of them: directly, by an index, by a condition.
        {"%0 = load x[0,$r]\n%1 = reduce sum $r < 8 of %0\nstore y[0,0] = %0",
         "store 0 depends on $r outside of its reduction"},
        {"%0 = load x[0,$r]\n%1 = reduce sum $r < 8 of %0\nstore y[0,$r] = %1",
         "store 0 depends on $r outside of its reduction"},
        {"%0 = index $r\n%1 = reduce sum $r < 8 of %0\n%2 = load x[0,$v0]\nstore y[0,0] = %2",
         "store 0 depends on $r outside of its reduction"},
        {"%0 = inrange $r < 4\n%1 = reduce or $r < 8 of %0\n%2 = load x[0,0]\n"
         "store y[0,0] = %2 if %0",
         "store 0 depends on $r outside of its reduction"},
        // An inner reduction takes its own variable only.
        {"%0 = load x[$q,$r]\n%1 = reduce sum $r < 8 of %0\n%2 = reduce sum $q < 8 of %0\n"
         "%3 = add %1, %2\nstore y[0,0] = %3",
         "store 0 depends on $r outside of its reduction"},
    };
    for (const auto& [lines, message] : cases) {
        const Result<Kernel> kernel = ParseKernel(std::string(kHead) + lines);
        ASSERT_FALSE(kernel.ok()) << lines;
        EXPECT_THAT(kernel.error().message, HasSubstr(message)) << lines;
    }
}

TEST(LoopVerify, TakesWhatIsInScope) {
    const char* cases[] = {
        "%0 = load p[$r]\n%1 = load x[$i,$v0]\n%2 = reduce sum $r < 8 of %1\nstore y[$i,$j] = %2",
        "%0 = load x[$i,$r]\n%1 = reduce max $r < 8 of %0\n%2 = sub %0, %1\n"
        "%3 = reduce sum $r < 8 of %2\nstore y[$i,$j] = %3",
        "%0 = load x[$q,$r]\n%1 = reduce sum $r < $q + $i of %0\n%2 = reduce max $q < 8 of %1\n"
        "store y[$i,$j] = %2",
        "%0 = load p[$j]\n%1 = load x[$r,0]\n%2 = reduce sum $r < $v0 of %1\nstore y[$v0,$j] = %2",
        "%0 = load x[$r,0]\n%1 = position min $r < 8 of %0\nstore z[$v1] = %1",
    };
    for (const char* lines : cases) {
        const Result<Kernel> kernel = ParseKernel(std::string(kHead) + lines);
        EXPECT_TRUE(kernel.ok()) << lines << ": " << kernel.error().message;
    }
}

// A change to a kernel in memory that text cannot say.
TEST(LoopVerify, RefusesChanges) {
    const Result<Kernel> good =
        ParseKernel(std::string(kHead) +
                    "%0 = load x[$i,$r]\n%1 = reduce sum $r < 8 of %0\n%2 = neg %1\n"
                    "store y[$i,$j] = %2");
    ASSERT_TRUE(good.ok()) << good.error().message;
    const Symbol n("n");
    Expr doubling(n);
    for (int i = 0; i < 60; ++i) {
        doubling = FloorDiv(doubling * 3 + Mod(doubling, 7), 2);
    }
    const std::pair<std::function<void(Kernel&)>, const char*> cases[] = {
        {[](Kernel& k) { k.name.clear(); }, "a name has 0 bytes, not 1 to 256"},
        {[](Kernel& k) { k.buffers[1].name = "x"; }, "two buffers have the name 'x'"},
        {[](Kernel& k) { k.buffers[0].type.element = ElementType::kString; }, "has no bytes"},
        {[](Kernel& k) { k.buffers[0].type.element = static_cast<ElementType>(200); },
         "has no bytes"},
        {[](Kernel& k) { k.buffers[0].type.shape = Shape(std::vector<Expr>(kMaxRank + 1, 1)); },
         "17 dimensions in a buffer, more than 16"},
        {[](Kernel& k) { k.buffers[0].type.shape[0] = Symbol("$i"); },
         "$i in $i is not one of its sizes"},
        {[](Kernel& k) { k.parallel[1].extent = Symbol("$i"); },
         "$i in $i is not one of its sizes"},
        {[](Kernel& k) { k.parallel[1].variable = Symbol("$i"); },
         "two loops have the variable $i"},
        {[](Kernel& k) { k.parallel[1].variable = Symbol("j"); }, "'j' is no name of a loop's"},
        {[](Kernel& k) { k.parallel.resize(33, k.parallel[0]); }, "it has 33 loops, more than 32"},
        {[](Kernel& k) { k.mapping = static_cast<Mapping>(9); }, "its mapping does not exist"},
        {[](Kernel& k) { k.row_loops = 1; }, "loops of a row without the mapping"},
        {[](Kernel& k) { k.mapping = Mapping::kRow, k.row_loops = 3; },
         "a row has 3 loops of 2 parallel ones"},
        {[&](Kernel& k) { k.sizes[n] = {-1, 4}; }, "the size n is -1 to 4, not within"},
        {[&](Kernel& k) { k.sizes[n] = {5, 4}; }, "the size n is 5 to 4, not within"},
        {[&](Kernel& k) { k.sizes[Symbol("$n")] = {}; }, "'$n' is no name of a size"},
        {[](Kernel& k) { k.sizes.clear(); }, "n in n is not one of its sizes"},
        {[&](Kernel& k) { k.buffers[0].type.shape[0] = doubling; }, "more than 4096 parts"},
        {[](Kernel& k) { std::get<Load>(k.scalars[0].value).buffer = {}; },
         "its buffer does not exist"},
        {[](Kernel& k) { std::get<Load>(k.scalars[0].value).buffer = BufferId(4); },
         "its buffer does not exist"},
        {[](Kernel& k) { std::get<Reduce>(k.scalars[1].value).body = {}; },
         "an operand does not exist"},
        {[](Kernel& k) {
             std::get<Load>(k.scalars[0].value).index[1] = 0;
             std::get<Reduce>(k.scalars[1].value).loops.clear();
         },
         "the reduction has no loop"},
        {[](Kernel& k) { std::get<Reduce>(k.scalars[1].value).combine = static_cast<Combine>(77); },
         "a combination that does not exist"},
        {[](Kernel& k) { std::get<Map>(k.scalars[2].value).arguments.clear(); },
         "neg takes 1 arguments, not 0"},
        {[](Kernel& k) {
             std::get<Map>(k.scalars[2].value).function = static_cast<ScalarFunction>(200);
         },
         "its function does not exist"},
        {[](Kernel& k) { k.scalars[2].value = Cast{ScalarId(1), {}, static_cast<Rounding>(9)}; },
         "its rounding does not exist"},
        {[](Kernel& k) { k.scalars[1].type = ElementType::kF64; }, "its type is f64, not f32"},
        {[](Kernel& k) { k.scalars.resize(kMaxScalars + 1, k.scalars[2]); },
         "it has 4097 scalars, more than 4096"},
        {[](Kernel& k) { k.stores[0].value = {}; }, "an operand does not exist"},
        {[](Kernel& k) { k.stores.resize(kMaxStores + 1, k.stores[0]); },
         "it has 65 stores, more than 64"},
    };
    for (const auto& [change, message] : cases) {
        Kernel kernel = *good;
        change(kernel);
        const Status status = Verify(kernel);
        ASSERT_FALSE(status.ok()) << message;
        EXPECT_THAT(status.error().message, HasSubstr(message));
    }
}

TEST(LoopVerify, BoundsVariablesOfReductions) {
    // Each reduction has a variable of its own and needs the ones before.
    std::string text = std::string(kHead) + "%0 = load x[0,0]\n";
    for (int i = 0; i < 70; ++i) {
        text += "%" + std::to_string(i + 1) + " = reduce sum $r" + std::to_string(i) + " < 1 of %" +
                std::to_string(i) + "\n";
    }
    EXPECT_THAT(ParseKernel(text).error().message,
                HasSubstr("it has 65 variables of loops, more than 64"));
    std::string sum = "0", reductions;
    for (int i = 0; i < 33; ++i) {
        const std::string variable = "$r" + std::to_string(i);
        sum += " + " + variable;
        reductions += "%" + std::to_string(i + 1) + " = reduce sum " + variable + " < 1 of %" +
                      std::to_string(i) + "\n";
    }
    EXPECT_THAT(
        ParseKernel(std::string(kHead) + "%0 = index " + sum + "\n" + reductions).error().message,
        HasSubstr("%0 depends on 33 variables of reductions, more than 32"));
}

// What a load from a written buffer sees depends on who looks.
TEST(LoopScope, FreeVariables) {
    const Result<Kernel> kernel = ParseKernel(
        "kernel k(in x: f32[8,8], out y: f32[8,8])\n"
        "  parallel $i < 8\n"
        "  sequential $s < 8\n"
        "%0 = load x[$i,$r]\n"
        "%1 = reduce sum $r < 8 of %0\n"
        "%2 = load y[0,0]\n"
        "%3 = index $r + $s\n"
        "%4 = load x[0,$v3]\n"
        "%5 = constant f32 1\n"
        "store y[0,0] = %5\n");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Scope scope = FindScope(*kernel);
    ASSERT_EQ(scope.variables.size(), 3u);
    EXPECT_EQ(scope.parallel, 1u);
    EXPECT_EQ(scope.sequential, 2u);
    EXPECT_EQ(scope.free, (std::vector<VariableSet>{5, 1, 3, 6, 6, 0}));
    EXPECT_EQ(ScalarOfSymbol(Symbol("$v12")), ScalarId(12));
    EXPECT_EQ(SymbolOfScalar(ScalarId(12)), Symbol("$v12"));
    EXPECT_EQ(ScalarOfSymbol(Symbol("$v012")), std::nullopt);
    EXPECT_EQ(ScalarOfSymbol(Symbol("$v")), std::nullopt);
    EXPECT_EQ(ScalarOfSymbol(Symbol("$v4294967296")), std::nullopt);
}

}  // namespace
}  // namespace fornax::graph::loop
