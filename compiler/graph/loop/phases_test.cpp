// Kernels of phases: their text, what the rules refuse, and what they mean.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/text.h"

namespace fornax::graph::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two groups; each keeps two numbers, and in every iteration gives them to each other and adds x.
constexpr char kExchange[] =
    R"(kernel exchange(in x: i32[n,2,2], out y: i32[n,2,2], out last: i32[2,2])
  sizes n in 0..100
  local h: i32[2,2]
  parallel $g < 2
  sequential $t < n
  %0 = constant i32 0
  %1 = load x[$t,$g,$i]
  %2 = load h[mod($t, 2),-$i + 1]
  %3 = add %1, %2
  %4 = load h[mod(n, 2),$z]
  before $a < 2
  store h[0,$a] = %0
  each $i < 2
  store h[mod($t + 1, 2),$i] = %3
  store y[$t,$g,$i] = %3
  after $z < 2
  store last[$g,$z] = %4
)";

TEST(LoopPhases, TextReadsBack) {
    const Result<Kernel> kernel = ParseKernel(kExchange);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(ToText(*kernel), kExchange);
    ASSERT_EQ(kernel->phases.size(), 3U);
    EXPECT_EQ(kernel->phases[1].when, When::kEach);
    EXPECT_EQ(kernel->phases[1].stores.size(), 2U);
    EXPECT_TRUE(Kernel::IsLocal(kernel->phases[0].stores[0].buffer));
}

std::vector<std::vector<int32_t>> Computed(const std::string& text,
                                           std::vector<std::vector<int32_t>> values,
                                           const Bindings& sizes) {
    const Result<Kernel> kernel = ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    std::vector<std::vector<uint8_t>> buffers;
    for (const std::vector<int32_t>& numbers : values) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(numbers.data());
        buffers.emplace_back(bytes, bytes + numbers.size() * sizeof(int32_t));
    }
    const Status status = Interpret(*kernel, sizes, buffers);
    EXPECT_TRUE(status.ok()) << status.error().message;
    for (size_t i = 0; i < values.size(); ++i) {
        // An empty vector's data may be null, which memcpy must not be given.
        if (!buffers[i].empty()) {
            std::memcpy(values[i].data(), buffers[i].data(), buffers[i].size());
        }
    }
    return values;
}

TEST(LoopPhases, CarryLocalTensorsFromIterationToIteration) {
    const auto values = Computed(
        kExchange,
        {{1, 2, 10, 20, 3, 4, 30, 40, 5, 6, 50, 60}, std::vector<int32_t>(12), {-1, -1, -1, -1}},
        {{Symbol("n"), 3}});
    EXPECT_THAT(values[1], ElementsAre(1, 2, 10, 20, 5, 5, 50, 50, 10, 11, 100, 110));
    EXPECT_THAT(values[2], ElementsAre(10, 11, 100, 110));
}

TEST(LoopPhases, RunBeforeAndAfterNoIterations) {
    const auto values = Computed(kExchange, {{}, {}, {-1, -1, -1, -1}}, {{Symbol("n"), 0}});
    EXPECT_THAT(values[2], ElementsAre(0, 0, 0, 0));
}

TEST(LoopPhases, AreOutsideOfLocalTensorsWhereAnyTensorWouldBe) {
    std::string text = kExchange;
    text.replace(text.find("-$i + 1]"), 8, "$i + 1]");  // the second place reads outside: 0
    const auto values =
        Computed(text, {{1, 2, 10, 20, 3, 4, 30, 40}, std::vector<int32_t>(8), {0, 0, 0, 0}},
                 {{Symbol("n"), 2}});
    EXPECT_THAT(values[1], ElementsAre(1, 2, 10, 20, 5, 4, 50, 40));
}

TEST(LoopPhases, RulesRefuse) {
    const struct {
        const char* from;
        const char* to;
        const char* reason;
    } cases[] = {
        {"local h: i32[2,2]", "local h: i32[n,2]", "has not 1 to"},
        {"local h: i32[2,2]", "local h: i32[0,2]", "has not 1 to"},
        {"local h: i32[2,2]", "local h: i32[2,9999999]", "has not 1 to"},
        {"local h: i32[2,2]", "local h: i8[2,2]", "has not 4 or 8 bytes"},
        {"  before $a < 2\n", "", "it has phases beside stores or another mapping"},
        {"  before $a < 2\n", "  after $a < 2\n", "its phases are not in order"},
        {"  before $a < 2\n", "  before\n", "neither a size nor a loop's variable"},
        {"store last[$g,$z] = %4", "store last[$g,$z] = %3", "depends on $t outside of its phase"},
        {"store last[$g,$z] = %4", "store h[$t,$z] = %4", "depends on $t outside of its phase"},
        {"%1 = load x[$t,$g,$i]", "%1 = load y[$t,$g,$i]",
         "a kernel of phases loads from y, to which it stores"},
        {"load h[mod(n, 2),$z]", "load h[0]", "2 dimensions is accessed with 1"},
        {"after $z < 2", "after $i < 2", "two loops have the variable $i"},
    };
    for (const auto& [from, to, reason] : cases) {
        std::string text = kExchange;
        const size_t at = text.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        text.replace(at, std::strlen(from), to);
        const Result<Kernel> kernel = ParseKernel(text);
        ASSERT_FALSE(kernel.ok()) << to;
        EXPECT_THAT(kernel.error().message, HasSubstr(reason)) << to;
    }
}

TEST(LoopPhases, RulesRefuseKernelsThatNoTextIs) {
    const Result<Kernel> whole = ParseKernel(kExchange);
    ASSERT_TRUE(whole.ok());
    Kernel mapped = *whole;
    mapped.mapping = Mapping::kRow;
    EXPECT_FALSE(Verify(mapped).ok());
    Kernel both = *whole;
    both.stores = both.phases[2].stores;
    EXPECT_FALSE(Verify(both).ok());
    Kernel no_local = *whole;
    no_local.locals.clear();
    EXPECT_FALSE(Verify(no_local).ok());
    Kernel no_when = *whole;
    no_when.phases[1].when = static_cast<When>(7);
    EXPECT_FALSE(Verify(no_when).ok());
    Kernel no_phases = *whole;
    no_phases.phases.clear();
    EXPECT_FALSE(Verify(no_phases).ok());
}

}  // namespace
}  // namespace fornax::graph::loop
