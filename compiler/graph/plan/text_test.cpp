// ToText of a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/test_plan.h"

namespace fornax::graph {
namespace {

TEST(PlanText, ShowsEverything) {
    Plan plan = MakeTestPlan();
    plan.blocks[2].name = "a \"sum\"\n";
    EXPECT_EQ(ToText(plan), R"(plan "example" of graph 0123456789abcdef0123456789abcdef
symbol m: 8 at first, in 0..800
symbol n: 4 at first, in 1..100, dimension 0 of input 0
guard n <= 64
input 0 "x": f32[n,8] in block 0
output 0 "y": f32[n,8] in block 4
output 1 "positions": i64[n,8] in block 5
output 2 "unique": f32[m] in block 6
output 3 "w": f32[2,4] in block 1
block 0 "x": input f32[n,8], steps 0..0
block 1 "w": constant f32[8], 32 bytes
block 2 "a \"sum\"\x0a": temporary f32[n,8], steps 0..1
block 3 "sorted": temporary f32[n,8], steps 1..3
block 4 "y": output f32[4,2*n], steps 2..4
block 5 "positions": output i64[n,8], steps 1..4
block 6 "unique": output f32[m], steps 3..4
block 7 "s": state f32[8], first of 32 bytes
kernel 0
  kernel add(in a: f32[n,8], in b: f32[8], out c: f32[n,8])
    sizes n in 1..100
    parallel $i0 < n, $i1 < 8
    %0 = load a[$i0,$i1]
    %1 = load b[$i1]
    %2 = add %0, %1
    store c[$i0,$i1] = %2
kernel 1
  kernel copy(in a: f32[8*n], out c: f32[8*n])
    sizes n in 1..100
    parallel $i0 < 8*n
    %0 = load a[$i0]
    store c[$i0] = %0
step 0 "sum": kernel 0 (add), a = block 0, b = block 1, out c = block 2; 8*n operations, 32*n + 32 bytes read, 32*n written
step 1 "sort": host, sort {axis = 0, descending = true, count = n} (block 2: f32[n,8]) -> (block 3: f32[n,8], block 5: i64[n,8]), because it is a test
step 2 "copy": kernel 1 (copy), a = block 3, out c = block 4; 0 operations, 32*n bytes read, 32*n written
step 3 "unique": host, host_call {name = "Unique", attributes = {"axis" = 0}, types = [f32[m]]} (block 3: f32[8*n]) -> (block 6: f32[m]), because its size is known afterwards
memory at first: constants 256, inputs and outputs 1024, arena 512 of at least 512 bytes
)");
}

}  // namespace
}  // namespace fornax::graph
