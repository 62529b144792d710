// ValidatePlan: each rule of symbols, blocks and ports, broken once.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/plan/limits.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/test_plan.h"

namespace fornax::graph {
namespace {

using ::testing::HasSubstr;

struct Case {
    const char* message;
    std::function<void(Plan&)> breaks;
};

void ExpectAllRefused(const std::vector<Case>& cases) {
    for (const Case& test : cases) {
        Plan plan = MakeTestPlan();
        test.breaks(plan);
        const Status status = ValidatePlan(plan);
        ASSERT_FALSE(status.ok()) << test.message;
        EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
        EXPECT_THAT(status.error().message, HasSubstr(test.message));
        EXPECT_TRUE(status.error().message.ends_with('.')) << status.error().message;
    }
}

const Symbol n("n"), m("m");

TEST(ValidatePlanTest, TheExampleIsValid) {
    const Status status = ValidatePlan(MakeTestPlan());
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_TRUE(ValidatePlan(Plan()).ok());
}

TEST(ValidatePlanTest, Counts) {
    ExpectAllRefused({
        {"it has 65537 blocks, more than 65536",
         [](Plan& plan) { plan.blocks.resize(kMaxPlanBlocks + 1, plan.blocks[2]); }},
        {"65537 steps", [](Plan& plan) { plan.steps.resize(kMaxPlanSteps + 1, plan.steps[0]); }},
        {"65537 kernels",
         [](Plan& plan) { plan.kernels.resize(kMaxPlanKernels + 1, plan.kernels[0]); }},
        {"16385 inputs", [](Plan& plan) { plan.inputs.resize(kMaxPlanPorts + 1); }},
        {"16385 outputs", [](Plan& plan) { plan.outputs.resize(kMaxPlanPorts + 1); }},
        {"65537 sources",
         [](Plan& plan) { plan.sources.resize(kMaxPlanSources + 1, plan.sources[0]); }},
        {"4097 guards", [](Plan& plan) { plan.guards.resize(kMaxPlanGuards + 1, plan.guards[0]); }},
        {"symbols, more than 4096",
         [](Plan& plan) {
             for (size_t i = 0; i < kMaxPlanSymbols; ++i) {
                 plan.ranges[Symbol("s" + std::to_string(i))] = {0, 1};
             }
         }},
        {"hints, more than 4096",
         [](Plan& plan) {
             for (size_t i = 0; i < kMaxPlanSymbols; ++i) {
                 plan.hints[Symbol("s" + std::to_string(i))] = 0;
             }
         }},
        {"a name of 65537 bytes",
         [](Plan& plan) { plan.name = std::string(kMaxPlanName + 1, 'a'); }},
        {"block 3 has a name of",
         [](Plan& plan) { plan.blocks[3].name = std::string(kMaxPlanName + 1, 'a'); }},
        {"32 hexadecimal digits", [](Plan& plan) { plan.graph_hash = "0123"; }},
    });
}

TEST(ValidatePlanTest, SymbolsAndGuards) {
    ExpectAllRefused({
        {"the symbol n is -1 to 100", [](Plan& plan) { plan.ranges[n].low = -1; }},
        {"the symbol n is 1 to 4294967296",
         [](Plan& plan) { plan.ranges[n].high = int64_t{1} << 32; }},
        {"the symbol n is 5 to 4", [](Plan& plan) { plan.ranges[n] = {5, 4}; }},
        {"'$i0' is no name of a symbol", [](Plan& plan) { plan.ranges[Symbol("$i0")] = {0, 1}; }},
        {"'a b' is no name of a symbol", [](Plan& plan) { plan.hints[Symbol("a b")] = 1; }},
        {"a guard's relation does not exist",
         [](Plan& plan) { plan.guards[0].relation = static_cast<Relation>(4); }},
        {"a guard uses k, which is not one of its symbols",
         [](Plan& plan) { plan.guards[0].a = Symbol("k"); }},
        {"a guard uses k, which has no value by then",
         [](Plan& plan) {
             plan.ranges[Symbol("k")] = {0, 1};
             plan.guards[0].b = Symbol("k");
         }},
        {"the symbol k has a source and no range",
         [](Plan& plan) { plan.sources.push_back({Symbol("k"), 0, 0}); }},
        {"the symbol n is dimension 0 of input 1, which does not exist",
         [](Plan& plan) { plan.sources[0].port = 1; }},
        {"the symbol n is dimension 2 of input 0, which does not exist",
         [](Plan& plan) { plan.sources[0].axis = 2; }},
        {"the symbol n is dimension 1 of the input x, which is 8",
         [](Plan& plan) { plan.sources[0].axis = 1; }},
        {"the input x uses n, which has no value by then",
         [](Plan& plan) { plan.sources.clear(); }},
        {"an expression has more than",
         [](Plan& plan) {
             Expr large = n;
             for (int i = 0; i < 40; ++i) {
                 large = FloorDiv(large + 1, large + 2);
             }
             plan.guards[0].a = large;
         }},
    });
    // A symbol that a host step gives its value may be guarded.
    Plan plan = MakeTestPlan();
    plan.guards.push_back({Relation::kLess, m, 100});
    EXPECT_TRUE(ValidatePlan(plan).ok());
}

TEST(ValidatePlanTest, Blocks) {
    ExpectAllRefused({
        {"block 2 (sum) is of a type that does not exist",
         [](Plan& plan) { plan.blocks[2].type.element = static_cast<ElementType>(200); }},
        {"block 2 (sum) is of a kind that does not exist",
         [](Plan& plan) { plan.blocks[2].kind = static_cast<BlockKind>(5); }},
        {"block 2 (sum) has 17 dimensions",
         [](Plan& plan) { plan.blocks[2].type.shape = Shape(std::vector<Expr>(17, Expr(1))); }},
        {"block 2 (sum) uses k",
         [](Plan& plan) { plan.blocks[2].type.shape = Shape({Symbol("k")}); }},
        {"block 2 (sum) lives from step 2 to 1 of 4", [](Plan& plan) { plan.blocks[2].first = 2; }},
        {"block 2 (sum) lives from step 0 to 5 of 4", [](Plan& plan) { plan.blocks[2].last = 5; }},
        {"block 0 (x) is an input and lives from step 1 on",
         [](Plan& plan) { plan.blocks[0].first = plan.blocks[0].last = 1; }},
        {"block 1 (w) of f32[8] is without its elements",
         [](Plan& plan) { plan.blocks[1].data.reset(); }},
        {"block 1 (w) of string[8] is without its elements",
         [](Plan& plan) { plan.blocks[1].type.element = ElementType::kString; }},
        {"block 1 (w) of string[8] holds 3 strings, not 8",
         [](Plan& plan) {
             plan.blocks[1].type.element = ElementType::kString;
             plan.blocks[1].data.reset();
             plan.blocks[1].strings = std::make_shared<std::vector<std::string>>(3);
         }},
        {"block 1 (w) of f32[9] holds 32 bytes, not 36",
         [](Plan& plan) { plan.blocks[1].type.shape = Shape({9}); }},
        {"block 1 (w) of f32[-1,-8] has a negative size",
         [](Plan& plan) { plan.blocks[1].type.shape = Shape({-1, -8}); }},
        {"block 1 (w) of f32[4294967296,4294967296,0] has a negative size or more",
         [](Plan& plan) {
             plan.blocks[1].type.shape = Shape({int64_t{1} << 32, int64_t{1} << 32, 0});
         }},
        {"no constant size", [](Plan& plan) { plan.blocks[1].type.shape = Shape({n}); }},
        {"block 2 (sum) holds data but is no constant",
         [](Plan& plan) { plan.blocks[2].data = plan.blocks[1].data; }},
        {"block 7 (s) of f32[9] holds 32 bytes",
         [](Plan& plan) { plan.blocks[7].type.shape = Shape({9}); }},
    });
}

TEST(ValidatePlanTest, Ports) {
    ExpectAllRefused({
        {"the input x names a block that does not exist",
         [](Plan& plan) { plan.inputs[0].block = BlockId(8); }},
        {"the output y names a block that does not exist",
         [](Plan& plan) { plan.outputs[0].block = BlockId(); }},
        {"the input x is in block 2 (sum), which is no input block",
         [](Plan& plan) { plan.inputs[0].block = BlockId(2); }},
        {"the input x is in block 0 (x), which is no input block of its own",
         [](Plan& plan) { plan.inputs.push_back(plan.inputs[0]); }},
        {"block 0 (x) is an input that has no port",
         [](Plan& plan) {
             plan.inputs.clear();
             plan.sources.clear();
             plan.guards.clear();
         }},
        {"the input x sees block 0 (x) as f32[n,9], but it is f32[n,8]",
         [](Plan& plan) { plan.inputs[0].type.shape[1] = 9; }},
        {"the output y sees block 4 (y) as f32[n,9], but it is f32[4,2*n]",
         [](Plan& plan) { plan.outputs[0].type.shape[1] = 9; }},
        {"the output y sees block 4 (y) as i32[n,8]",
         [](Plan& plan) { plan.outputs[0].type.element = ElementType::kI32; }},
        {"the output y is in block 3 (sorted), which is a temporary",
         [](Plan& plan) { plan.outputs[0].block = BlockId(3); }},
        {"the output w is in block 7 (s), which is a state",
         [](Plan& plan) { plan.outputs[3].block = BlockId(7); }},
        {"the output y: block 4 (y) lives from step 2 to 3",
         [](Plan& plan) { plan.blocks[4].last = 3; }},
        {"the output y: block 4 (y) is read before it is written",
         [](Plan& plan) {
             plan.steps.erase(plan.steps.begin() + 2);
             for (PlanBlock& block : plan.blocks) {
                 block.last = std::min(block.last, 3u);
             }
             plan.blocks[3].last = plan.blocks[6].first = 2;
         }},
        {"the output unique uses k",
         [](Plan& plan) { plan.outputs[2].type.shape[0] = Symbol("k"); }},
    });
}

}  // namespace
}  // namespace fornax::graph
