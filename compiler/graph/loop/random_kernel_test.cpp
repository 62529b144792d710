// Random kernels are valid, the same for the same seed, and varied; and they read back from text.
#include "compiler/graph/loop/random_kernel.h"

#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace fornax::graph::loop {
namespace {

constexpr uint64_t kSeeds = 2000;

TEST(LoopRandomKernel, AreValidAndReadBackFromText) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const RandomKernel random = MakeRandomKernel(seed);
        const std::string text = ToText(random.kernel);
        const Status status = Verify(random.kernel);
        ASSERT_TRUE(status.ok()) << status.error().message << "\n" << text;
        const Result<Kernel> parsed = ParseKernel(text);
        ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << text;
        ASSERT_EQ(ToText(*parsed), text);
        ASSERT_EQ(ToText(MakeRandomKernel(seed).kernel), text);
    }
}

// The parsed kernel computes the same as the one that was printed, bit by bit.
TEST(LoopRandomKernel, ComputeTheSameWhenReadBack) {
    size_t changed = 0;
    for (uint64_t seed = 0; seed < kSeeds / 4; ++seed) {
        const RandomKernel random = MakeRandomKernel(seed);
        const Result<Kernel> parsed = ParseKernel(ToText(random.kernel));
        ASSERT_TRUE(parsed.ok()) << parsed.error().message;
        std::vector<std::vector<uint8_t>> first = random.buffers, second = random.buffers;
        const Status status = Interpret(random.kernel, random.sizes, first);
        ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ToText(random.kernel);
        ASSERT_TRUE(Interpret(*parsed, random.sizes, second).ok());
        ASSERT_EQ(first, second) << ToText(random.kernel);
        changed += first != random.buffers ? 1 : 0;
    }
    EXPECT_GT(changed, kSeeds / 4 * 6 / 10);  // most do something
}

TEST(LoopRandomKernel, HaveEverythingThatKernelsHave) {
    std::set<size_t> nodes;
    std::set<ElementType> types;
    std::set<ScalarFunction> functions;
    size_t rows = 0, sequential = 0, exact = 0, buffers = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const RandomKernel random = MakeRandomKernel(seed);
        rows += random.kernel.mapping == Mapping::kRow ? 1 : 0;
        sequential += random.kernel.sequential.empty() ? 0 : 1;
        for (const ScalarNode& node : random.kernel.scalars) {
            nodes.insert(node.value.index());
            types.insert(node.type);
            if (const auto* map = std::get_if<Map>(&node.value)) {
                functions.insert(map->function);
            }
        }
        for (size_t i = 0; i < random.kernel.buffers.size(); ++i) {
            const Buffer& buffer = random.kernel.buffers[i];
            if (buffer.written && IsFloat(buffer.type.element)) {
                ++buffers;
                exact += random.tolerances[i] == 0 ? 1 : 0;
            }
        }
    }
    EXPECT_EQ(nodes.size(), std::variant_size_v<decltype(ScalarNode::value)>);
    EXPECT_EQ(types.size(), static_cast<size_t>(ElementType::kString));
    for (size_t i = 0; i <= static_cast<size_t>(kLastScalarFunction); ++i) {
        EXPECT_TRUE(functions.contains(static_cast<ScalarFunction>(i)))
            << Name(static_cast<ScalarFunction>(i));
    }
    EXPECT_GT(rows, kSeeds / 4);
    EXPECT_GT(sequential, kSeeds / 5);
    EXPECT_GT(exact, buffers / 4);
    EXPECT_LT(exact, buffers);
}

TEST(LoopRandomKernel, DifferencesAreFound) {
    RandomKernel random;
    random.kernel.buffers = {{"y", {ElementType::kF32, {2}}, true}};
    random.tolerances = {0.5};
    const auto floats = [](float a, float b) {
        std::vector<uint8_t> bytes(8);
        WriteElement(ElementType::kF32, Scalar::Float(a), bytes.data());
        WriteElement(ElementType::kF32, Scalar::Float(b), bytes.data() + 4);
        return std::vector<std::vector<uint8_t>>(1, bytes);
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(FindDifference(random, floats(1, nan), floats(1.5, nan)), std::nullopt);
    EXPECT_EQ(FindDifference(random, floats(1, 2), floats(1, 2.75)),
              "Element 1 of y (f32) is 2.75, not 2; it may differ by 0.5.");
    EXPECT_TRUE(FindDifference(random, floats(1, 2), floats(1, nan)).has_value());
    random.tolerances = {0};
    EXPECT_TRUE(FindDifference(random, floats(1, 2), floats(1, 2.0000002f)).has_value());
}

}  // namespace
}  // namespace fornax::graph::loop
