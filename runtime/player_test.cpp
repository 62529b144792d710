// The player through the Vulkan loader: steps, sizes, states, threads and errors of plans made by
// hand. player_memory_test.cpp has bound memory and foreign command buffers.
#include <thread>

#include <gmock/gmock.h>

#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::BlockId;
using graph::BlockKind;
using graph::ElementType;
using graph::Expr;
using graph::Symbol;
using graph::Tensor;
using graph::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Symbol kN("n");
const Symbol kM("m");

TensorType F32(graph::Shape shape) {
    return {ElementType::kF32, std::move(shape)};
}

// y = (x + 1) * 2
graph::Plan AddAndDouble() {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId y = builder.Output("y", F32({kN}));
    const BlockId t = builder.Block("t", F32({kN}));
    builder.Dispatch(Elementwise("add", 1), {x, t});
    builder.Dispatch(Elementwise("mul", 2), {t, y});
    return builder.Finish();
}

TEST_F(PlayerTest, OneKernelSeesWhatAnotherWrote) {
    Session session(Make(AddAndDouble()));
    const std::vector<Tensor> outputs = Run(session, {Floats({1, 2, 3})});
    EXPECT_THAT(ToFloats(outputs.at(0)), ElementsAre(4, 6, 8));
    EXPECT_THAT(outputs.at(0).dims, ElementsAre(3));
    EXPECT_THAT(ToFloats(Run(session, {Floats({-1, 0, 5})}).at(0)), ElementsAre(0, 2, 12));
}

TEST_F(PlayerTest, LaunchesHaveBarriersOnlyWhereBytesAreShared) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId y = builder.Output("y", F32({kN}));
    const BlockId a = builder.Block("a", F32({kN})), b = builder.Block("b", F32({kN}));
    builder.Dispatch(Elementwise("add", 1), {x, a});
    builder.Dispatch(Elementwise("add", 2), {x, b});
    builder.Dispatch(Elementwise("add", 3), {a, y});
    const graph::Plan plan = builder.Finish();
    const std::vector<KernelInterface> kernels(3, {{kN}, {Expr(kN), 1, 1}, {}});
    const LaunchLimits limits = {{100, 100, 100}, 1000};
    const std::vector<Place> apart = {{1, 0, 4}, {1, 256, 4}, {2, 0, 4}, {2, 256, 4}};
    const auto launches = PlanLaunches(plan, 0, 3, {{kN, 1}}, apart, kernels, limits);
    ASSERT_TRUE(launches.ok()) << launches.error().message;
    ASSERT_EQ(launches->size(), 3u);
    EXPECT_FALSE((*launches)[0].barrier_before);
    EXPECT_FALSE((*launches)[1].barrier_before);
    EXPECT_TRUE((*launches)[2].barrier_before);
    EXPECT_THAT((*launches)[2].push_constants, ElementsAre(1));

    // Another block at the bytes of one that is still read.
    const std::vector<Place> shared = {{2, 256, 4}, {1, 256, 4}, {2, 0, 4}, {2, 256, 4}};
    const auto more = PlanLaunches(plan, 0, 3, {{kN, 1}}, shared, kernels, limits);
    ASSERT_TRUE(more.ok()) << more.error().message;
    EXPECT_TRUE((*more)[1].barrier_before);

    EXPECT_THAT(*PlanLaunches(plan, 0, 3, {{kN, 0}}, apart, kernels, limits), IsEmpty());
    std::vector<KernelInterface> limited = kernels;
    limited[1].limits = {Expr(kN) * (int64_t{1} << 30)};
    EXPECT_TRUE(PlanLaunches(plan, 0, 3, {{kN, 1}}, apart, limited, limits).ok());
    EXPECT_FALSE(PlanLaunches(plan, 0, 3, {{kN, 2}}, apart, limited, limits).ok());
    const auto many = PlanLaunches(plan, 0, 3, {{kN, 101}}, apart, kernels, limits);
    ASSERT_FALSE(many.ok());
    EXPECT_THAT(many.error().message, HasSubstr("101 workgroups along axis 0 (n is 101)"));
    const std::vector<Place> large(4, {1, 0, 1001});
    const auto wide = PlanLaunches(plan, 0, 3, {{kN, 1}}, large, kernels, limits);
    ASSERT_FALSE(wide.ok());
    EXPECT_THAT(wide.error().message, HasSubstr("1001 bytes; the device binds at most 1000"));
}

TEST_F(PlayerTest, BlocksShareTheArena) {
    PlanBuilder builder;
    BlockId value = builder.Input("x", F32({kN}));
    const BlockId first = value;
    for (int i = 0; i < 9; ++i) {
        const BlockId next = builder.Block("t", F32({kN}));
        builder.Dispatch(Elementwise(i % 2 == 0 ? "add" : "mul", 2), {value, next});
        value = next;
    }
    const BlockId y = builder.Output("y", F32({kN}));
    builder.Dispatch(Elementwise("mul", 1), {value, y});
    (void)first;
    Session session(Make(builder.Finish()));
    std::vector<float> input(1000), expected(1000);
    for (size_t i = 0; i < input.size(); ++i) {
        input[i] = static_cast<float>(i);
        expected[i] = input[i];
        for (int step = 0; step < 9; ++step) {
            expected[i] = step % 2 == 0 ? expected[i] + 2 : expected[i] * 2;
        }
    }
    EXPECT_EQ(ToFloats(Run(session, {Floats(input)}).at(0)), expected);
    Fit fit;
    const Dims dims[] = {{1000}};
    const auto instance = session.For(dims, fit);
    ASSERT_TRUE(instance.ok());
    EXPECT_EQ((*instance)->memory().arena_bytes, 2 * 4096u);
}

TEST_F(PlayerTest, HostStepsRunBetweenDispatches) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId y = builder.Output("y", F32({kN}));
    const BlockId a = builder.Block("a", F32({kN})), b = builder.Block("b", F32({kN}));
    builder.Dispatch(Elementwise("add", 1), {x, a});
    graph::op::Scan scan;
    scan.axis = 0;
    builder.Host(scan, {a}, {b});
    builder.Dispatch(Elementwise("mul", 10), {b, y});
    Session session(Make(builder.Finish()));
    EXPECT_THAT(ToFloats(Run(session, {Floats({0, 1, 2, 3})}).at(0)), ElementsAre(10, 30, 60, 100));

    const auto timed = session.Run(std::vector<Tensor>{Floats({0, 1})}, true);
    ASSERT_TRUE(timed.ok()) << timed.error().message;
    ASSERT_EQ(timed->times.size(), 3u);
    EXPECT_EQ(timed->times[0].step, 0u);
    EXPECT_FALSE(timed->times[0].on_host);
    EXPECT_TRUE(timed->times[1].on_host);
    EXPECT_EQ(timed->times[2].step, 2u);
    EXPECT_THAT(ToFloats(timed->outputs.at(0)), ElementsAre(10, 30));
}

// "positions": the places of what is not 0.
const graph::HostFunctions& Functions() {
    static const graph::HostFunctions functions = {
        {"positions",
         [](const graph::op::HostCall&,
            std::span<const Tensor> operands) -> Result<std::vector<Tensor>> {
             std::vector<int64_t> positions;
             for (int64_t i = 0; i < operands[0].count(); ++i) {
                 if (operands[0].At(i).number != 0) {
                     positions.push_back(i);
                 }
             }
             return std::vector<Tensor>{
                 Tensor::FromIntegers({static_cast<int64_t>(positions.size())}, positions)};
         }},
        {"shout",
         [](const graph::op::HostCall&,
            std::span<const Tensor> operands) -> Result<std::vector<Tensor>> {
             auto strings = std::make_shared<std::vector<std::string>>(*operands[0].strings);
             for (std::string& text : *strings) {
                 text += "!";
             }
             return std::vector<Tensor>{
                 {ElementType::kString, operands[0].dims, nullptr, std::move(strings)}};
         }},
        {"wrong",
         [](const graph::op::HostCall&, std::span<const Tensor>) -> Result<std::vector<Tensor>> {
             return std::vector<Tensor>{Floats({1, 2, 3})};
         }},
    };
    return functions;
}

// y = the sums of position and n, of the elements that are not 0.
graph::Plan Positions() {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId a = builder.Block("a", F32({kN}));
    const TensorType positions = {ElementType::kI64, {kM}};
    const BlockId p = builder.Block("p", positions);
    const BlockId q = builder.Block("q", positions);
    const BlockId y = builder.Output("y", positions);
    builder.Dispatch(Elementwise("mul", 3), {x, a});
    graph::op::HostCall call;
    call.name = "positions";
    call.types = {positions};
    builder.Host(call, {a}, {p});
    const std::string add =
        "kernel add_n(in x: i64[m], in a: f32[n], out y: i64[m])\n"
        "  sizes m in 0..1000000, n in 0..1000000\n  parallel $i < m\n%0 = load x[$i]\n"
        "%1 = index n\n%2 = add %0, %1\nstore y[$i] = %2\n";
    builder.Dispatch(add, {p, a, q});
    builder.Dispatch(add, {q, a, y});
    return builder.Finish();
}

TEST_F(PlayerTest, HostStepsGiveSizes) {
    SessionOptions options;
    options.host_functions = &Functions();
    Session session(Make(Positions()), options);
    const auto run = [&](const std::vector<float>& input) {
        const std::vector<Tensor> outputs = Run(session, {Floats(input)});
        std::vector<int64_t> values;
        for (int64_t i = 0; i < outputs.at(0).count(); ++i) {
            values.push_back(outputs[0].At(i).integer);
        }
        return values;
    };
    EXPECT_THAT(run({0, 5, 0, 7}), ElementsAre(9, 11));
    EXPECT_THAT(run({1, 5, 2, 7}), ElementsAre(8, 9, 10, 11));
    EXPECT_THAT(run({0, 0, 0, 0}), IsEmpty());
    EXPECT_THAT(run({0, 0, 0, 1}), ElementsAre(11));
    EXPECT_THAT(run({1, 0, 0, 0}), ElementsAre(8));  // of the same sizes as before
    EXPECT_THAT(run({1}), ElementsAre(2));
    std::vector<float> many(5000, 1);
    EXPECT_EQ(run(many).size(), 5000u);
    EXPECT_THAT(run({0, 5, 0, 7}), ElementsAre(9, 11));
}

TEST_F(PlayerTest, GuardsOfSizesThatHostStepsGiveAreChecked) {
    graph::Plan plan = Positions();
    plan.guards.push_back({graph::Relation::kLessEqual, Expr(kM), 2});
    SessionOptions options;
    options.host_functions = &Functions();
    Session session(Make(plan), options);
    EXPECT_EQ(Run(session, {Floats({1, 0, 1})}).at(0).count(), 2);
    const auto result = session.Run(std::vector<Tensor>{Floats({1, 1, 1})});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(result.error().message, HasSubstr("m is 3"));
}

TEST_F(PlayerTest, HostStepsThatAnswerWronglyAreErrors) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId y = builder.Output("y", F32({kN}));
    graph::op::HostCall call;
    call.name = "wrong";
    call.types = {F32({kN})};
    builder.Host(call, {x}, {y});
    SessionOptions options;
    options.host_functions = &Functions();
    Session session(Make(builder.Finish()), options);
    EXPECT_THAT(ToFloats(Run(session, {Floats({0, 0, 0})}).at(0)), ElementsAre(1, 2, 3));
    const auto result = session.Run(std::vector<Tensor>{Floats({0, 0})});
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("host_call"));
}

TEST_F(PlayerTest, StringsStayOnTheHost) {
    PlanBuilder builder;
    const TensorType strings = {ElementType::kString, {kN}};
    const BlockId x = builder.Input("x", strings);
    const BlockId t = builder.Block("t", strings);
    const BlockId y = builder.Output("y", strings);
    const auto given =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"constant", ""});
    builder.AddOutput("c", builder.Constant("c", {ElementType::kString, {2}, nullptr, given}));
    graph::op::HostCall call;
    call.name = "shout";
    call.types = {strings};
    builder.Host(call, {x}, {t});
    builder.Host(call, {t}, {y});
    SessionOptions options;
    options.host_functions = &Functions();
    Session session(Make(builder.Finish()), options);
    const auto input =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"a", "b", "c"});
    const std::vector<Tensor> outputs = Run(session, {{ElementType::kString, {3}, nullptr, input}});
    EXPECT_THAT(*outputs.at(0).strings, ElementsAre("a!!", "b!!", "c!!"));
    EXPECT_THAT(*outputs.at(1).strings, ElementsAre("constant", ""));
}

TEST_F(PlayerTest, SizesChangeBetweenRuns) {
    SessionOptions options;
    options.kept_sizes = 2;
    Session session(Make(AddAndDouble()), options);
    EXPECT_THAT(ToFloats(Run(session, {Floats({1})}).at(0)), ElementsAre(4));
    EXPECT_THAT(ToFloats(Run(session, {Floats({1, 2})}).at(0)), ElementsAre(4, 6));
    Fit fit;
    const Dims one[] = {{1}}, two[] = {{2}}, three[] = {{3}};
    const std::shared_ptr<Instance> kept = *session.For(one, fit);
    EXPECT_EQ(*session.For(one, fit), kept);
    EXPECT_NE(*session.For(two, fit), kept);
    EXPECT_EQ(*session.For(one, fit), kept);
    EXPECT_NE(*session.For(three, fit), nullptr);  // two goes
    EXPECT_EQ(*session.For(one, fit), kept);
    EXPECT_THAT(ToFloats(Run(session, {Floats({1, 2})}).at(0)), ElementsAre(4, 6));
}

TEST_F(PlayerTest, EmptyTensorsNeedNoSpecialCare) {
    Session session(Make(AddAndDouble()));
    const std::vector<Tensor> outputs = Run(session, {Floats({})});
    EXPECT_THAT(outputs.at(0).dims, ElementsAre(0));
    EXPECT_THAT(*outputs.at(0).data, IsEmpty());

    // A sum over nothing still writes its result.
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId y = builder.Output("y", F32({1}));
    builder.Dispatch(
        "kernel sum(in x: f32[n], out y: f32[1])\n  sizes n in 0..1000\n  parallel $i < 1\n"
        "%0 = load x[$r]\n%1 = reduce sum $r < n of %0\nstore y[$i] = %1\n",
        {x, y});
    Session sums(Make(builder.Finish()));
    EXPECT_THAT(ToFloats(Run(sums, {Floats({})}).at(0)), ElementsAre(0));
    EXPECT_THAT(ToFloats(Run(sums, {Floats({1, 2})}).at(0)), ElementsAre(3));
}

TEST_F(PlayerTest, OutputsMayBeInputsAndConstants) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    builder.AddOutput("x", x);
    builder.AddOutput("c", builder.Constant("c", Floats({7, 8})));
    builder.AddOutput("again", x);
    builder.AddOutput("empty", builder.Constant("e", Floats({})));
    Session session(Make(builder.Finish()));
    const std::vector<Tensor> outputs = Run(session, {Floats({1, 2, 3})});
    EXPECT_THAT(ToFloats(outputs.at(0)), ElementsAre(1, 2, 3));
    EXPECT_THAT(ToFloats(outputs.at(1)), ElementsAre(7, 8));
    EXPECT_THAT(ToFloats(outputs.at(2)), ElementsAre(1, 2, 3));
    EXPECT_THAT(ToFloats(outputs.at(3)), IsEmpty());
}

TEST_F(PlayerTest, SizesThatThePlanIsNotForAreTold) {
    graph::Plan plan = AddAndDouble();
    plan.guards.push_back({graph::Relation::kLessEqual, Expr(kN), 4});
    plan.guards.push_back({graph::Relation::kNotEqual, Expr(kN), 2});
    plan.ranges[kN] = {0, 100};
    Session session(Make(plan));
    EXPECT_THAT(ToFloats(Run(session, {Floats({1, 2, 3, 4})}).at(0)), ElementsAre(4, 6, 8, 10));
    const auto reason = [&](size_t count) {
        const auto result = session.Run(std::vector<Tensor>{Floats(std::vector<float>(count))});
        EXPECT_TRUE(result.ok());
        EXPECT_FALSE(result->fit.ok);
        EXPECT_THAT(result->outputs, IsEmpty());
        return result->fit.reason;
    };
    EXPECT_THAT(reason(5), HasSubstr("n is 5"));
    EXPECT_THAT(reason(2), HasSubstr("n is 2"));
    EXPECT_EQ(reason(101), "The plan is for n from 0 to 100; it is 101.");
}

TEST_F(PlayerTest, DimensionsThatThePlanFixesAreTold) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN, 3}));
    const BlockId z = builder.Input("z", F32({Expr(kN) + 1}));
    builder.AddOutput("x", x);
    builder.AddOutput("z", z);
    Session session(Make(builder.Finish()));
    Fit fit;
    const std::vector<Dims> good = {{2, 3}, {3}}, fixed = {{2, 4}, {3}}, other = {{2, 3}, {2}};
    EXPECT_NE(*session.For(good, fit), nullptr);
    EXPECT_EQ(*session.For(fixed, fit), nullptr);
    EXPECT_THAT(fit.reason, HasSubstr("its dimension 1 is given as 4"));
    EXPECT_EQ(*session.For(other, fit), nullptr);
    EXPECT_THAT(fit.reason, HasSubstr("where n is 2"));
}

TEST_F(PlayerTest, InputsThatNoPlanTakesAreErrors) {
    Session session(Make(AddAndDouble()));
    const auto message = [&](std::vector<Tensor> inputs) {
        const auto result = session.Run(inputs);
        EXPECT_FALSE(result.ok());
        return result.ok() ? "" : result.error().message;
    };
    EXPECT_THAT(message({}), HasSubstr("0 inputs are given; test has 1"));
    EXPECT_THAT(message({Tensor::FromFloats({1, 1}, std::vector<float>{1})}),
                HasSubstr("with 2 dimensions"));
    EXPECT_THAT(message({Tensor::FromIntegers({1}, std::vector<int64_t>{1})}),
                HasSubstr("given as i64[1]"));
    Tensor small = Floats({1});
    small.dims = {2};
    EXPECT_THAT(message({small}), HasSubstr("4 bytes instead of 8"));
    small.dims = {-1};
    EXPECT_THAT(message({small}), HasSubstr("below 0"));

    PlanBuilder builder;
    builder.AddOutput("c", builder.Constant("c", Floats({7, 8})));
    builder.plan().blocks[0].type = F32({3});
    const auto program = Program::Create(device_, builder.Finish(), {});
    ASSERT_FALSE(program.ok());
    EXPECT_THAT(program.error().message, HasSubstr("8 bytes instead of 12"));
}

// s = s + x; y = s
graph::Plan Counter() {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", F32({kN}));
    const BlockId y = builder.Output("y", F32({1}));
    const BlockId state = builder.Block("total", F32({1}), BlockKind::kState);
    builder.Dispatch(
        "kernel total(in x: f32[n], out s: f32[1])\n  sizes n in 0..1000\n  parallel $i < 1\n"
        "%0 = load x[$r]\n%1 = reduce sum $r < n of %0\n%2 = load s[$i]\n%3 = add %1, %2\n"
        "store s[$i] = %3\n",
        {x, state});
    builder.Dispatch(
        "kernel copy(in s: f32[1], out y: f32[1])\n  parallel $i < 1\n%0 = load s[$i]\n"
        "store y[$i] = %0\n",
        {state, y});
    return builder.Finish();
}

TEST_F(PlayerTest, StatesStayBetweenRunsAndSizes) {
    const auto program = Make(Counter());
    Session session(program), other(program);
    EXPECT_THAT(ToFloats(Run(session, {Floats({1, 2})}).at(0)), ElementsAre(3));
    EXPECT_THAT(ToFloats(Run(session, {Floats({1, 2})}).at(0)), ElementsAre(6));
    EXPECT_THAT(ToFloats(Run(session, {Floats({4})}).at(0)), ElementsAre(10));
    EXPECT_THAT(ToFloats(Run(other, {Floats({4})}).at(0)), ElementsAre(4));
    SessionOptions sharing;
    sharing.states = session.states();
    Session third(Make(Counter()), sharing);
    EXPECT_THAT(ToFloats(Run(third, {Floats({5})}).at(0)), ElementsAre(15));
}

TEST_F(PlayerTest, StatesBeginAsThePlanSays) {
    graph::Plan plan = Counter();
    plan.blocks[2].data = Floats({100}).data;
    Session session(Make(plan));
    EXPECT_THAT(ToFloats(Run(session, {Floats({1})}).at(0)), ElementsAre(101));
    const auto wrong = session.states()->Get("total", 8, {});
    ASSERT_FALSE(wrong.ok());
    EXPECT_THAT(wrong.error().message, HasSubstr("has 4 bytes; for these sizes it would have 8"));
}

TEST_F(PlayerTest, ThreadsMayShareASession) {
    SessionOptions options;
    options.kept_sizes = 2;
    const auto program = Make(AddAndDouble());
    Session shared(program, options);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 6; ++t) {
        threads.emplace_back([&, t] {
            Session own(program);
            for (int repeat = 0; repeat < 20; ++repeat) {
                const std::vector<float> input(static_cast<size_t>(1 + (t + repeat) % 4),
                                               static_cast<float>(t * 100 + repeat));
                const auto result =
                    (t % 2 == 0 ? shared : own).Run(std::vector<Tensor>{Floats(input)});
                std::vector<float> expected(input.size(), (input[0] + 1) * 2);
                if (!result.ok() || ToFloats(result->outputs.at(0)) != expected) {
                    ++wrong;
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
}

TEST_F(PlayerTest, PipelinesComeFromTheirCache) {
    const auto program = Make(AddAndDouble());
    EXPECT_EQ(program->report().pipelines, 2u);
    EXPECT_EQ(program->report().from_cache, 0u);
    const std::vector<std::byte> data = program->PipelineCacheData();
    const auto again = Program::Create(device_, AddAndDouble(), data);
    ASSERT_TRUE(again.ok()) << again.error().message;
    // Other drivers may keep pipelines elsewhere.
    if (device_->name().find("Fornax") != std::string::npos) {
        EXPECT_TRUE((*again)->report().cache_known);
        EXPECT_EQ((*again)->report().from_cache, 2u);
    }
    Session session(*again);
    EXPECT_THAT(ToFloats(Run(session, {Floats({1})}).at(0)), ElementsAre(4));
}

}  // namespace
}  // namespace fornax::runtime
