#include "compiler/graph/plan/packing.h"

#include <random>

#include <gtest/gtest.h>

namespace fornax::graph {
namespace {

// Whether no two buffers that live at the same time share bytes, all are aligned, and the arena
// holds them all.
void Check(std::span<const Lifetime> buffers, const Packing& packing, uint64_t alignment) {
    ASSERT_EQ(packing.offsets.size(), buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
        EXPECT_EQ(packing.offsets[i] % alignment, 0u);
        EXPECT_LE(packing.offsets[i] + buffers[i].size_bytes, packing.total_bytes);
        for (size_t j = 0; j < i; ++j) {
            const bool together =
                buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
            const bool shared = packing.offsets[i] < packing.offsets[j] + buffers[j].size_bytes &&
                                packing.offsets[j] < packing.offsets[i] + buffers[i].size_bytes;
            EXPECT_FALSE(together && shared) << i << " and " << j;
        }
    }
    EXPECT_GE(packing.total_bytes, packing.lower_bound_bytes);
}

void ExpectTight(std::span<const Lifetime> buffers) {
    const Packing packing = Pack(buffers);
    Check(buffers, packing, kTensorAlignment);
    EXPECT_LE(static_cast<double>(packing.total_bytes),
              1.1 * static_cast<double>(packing.lower_bound_bytes));
}

// The lifetimes of a network: tensors in the order of their steps, with their last uses.
class Network {
  public:
    // A step that reads `operands` and writes a new tensor.
    uint32_t Step(uint64_t bytes, std::initializer_list<uint32_t> operands) {
        for (const uint32_t operand : operands) {
            buffers_[operand].last = step_;
        }
        buffers_.push_back({bytes, step_, step_});
        ++step_;
        return static_cast<uint32_t>(buffers_.size()) - 1;
    }
    std::span<const Lifetime> buffers() const { return buffers_; }

  private:
    std::vector<Lifetime> buffers_;
    uint32_t step_ = 0;
};

constexpr uint64_t Image(uint64_t channels, uint64_t width) {
    return channels * width * width * 4;
}

TEST(PackTest, NothingTakesNothing) {
    const Packing none = Pack({});
    EXPECT_EQ(none.total_bytes, 0u);
    const Lifetime empty[] = {{0, 0, 5}, {0, 2, 3}};
    const Packing packing = Pack(empty);
    EXPECT_EQ(packing.total_bytes, 0u);
    EXPECT_EQ(packing.lower_bound_bytes, 0u);
}

TEST(PackTest, LifetimesIncludeTheirLastStep) {
    const Lifetime touching[] = {{100, 0, 1}, {100, 1, 2}};
    EXPECT_EQ(Pack(touching, 4).total_bytes, 200u);
    const Lifetime apart[] = {{100, 0, 1}, {100, 2, 3}};
    EXPECT_EQ(Pack(apart, 4).total_bytes, 100u);
}

TEST(PackTest, SizesAreRoundedUpToTheAlignment) {
    const Lifetime buffers[] = {{1, 0, 0}, {257, 0, 0}};
    const Packing packing = Pack(buffers);
    Check(buffers, packing, 256);
    EXPECT_EQ(packing.total_bytes, 768u);
    EXPECT_EQ(packing.lower_bound_bytes, 768u);
}

TEST(PackTest, LargestFirstAloneIsNotEnough) {
    // Placed by size, the buffers of 5 come to lie at 0 and that of 3 above one; then there is no
    // gap for that of 2 below 8.
    const Lifetime buffers[] = {{5, 5, 7}, {2, 4, 5}, {3, 2, 4}, {5, 2, 3}};
    const Packing packing = Pack(buffers, 1);
    Check(buffers, packing, 1);
    EXPECT_EQ(packing.total_bytes, 8u);
}

TEST(PackTest, ResidualNetworkIsTight) {
    Network network;
    uint32_t x = network.Step(Image(64, 112), {});
    x = network.Step(Image(64, 56), {x});
    const struct {
        uint64_t blocks, channels, width;
    } groups[] = {{3, 256, 56}, {4, 512, 28}, {6, 1024, 14}, {3, 2048, 7}};
    for (const auto& group : groups) {
        for (uint64_t block = 0; block < group.blocks; ++block) {
            const uint64_t before = block == 0 && group.width != 56 ? group.width * 2 : group.width;
            const uint32_t a = network.Step(Image(group.channels / 4, before), {x});
            const uint32_t b = network.Step(Image(group.channels / 4, group.width), {a});
            const uint32_t side =
                block == 0 ? network.Step(Image(group.channels, group.width), {x}) : x;
            x = network.Step(Image(group.channels, group.width), {b, side});
        }
    }
    network.Step(4000, {x});
    ExpectTight(network.buffers());
}

TEST(PackTest, NetworkWithLongSkipsIsTight) {
    Network network;
    std::vector<uint32_t> skips;
    uint32_t x = network.Step(Image(64, 256), {});
    for (uint64_t level = 0; level < 4; ++level) {
        x = network.Step(Image(64 << level, 256 >> level), {x});
        x = network.Step(Image(64 << level, 256 >> level), {x});
        skips.push_back(x);
        x = network.Step(Image(64 << level, 128 >> level), {x});
    }
    x = network.Step(Image(1024, 16), {x});
    for (uint64_t level = 4; level-- > 0;) {
        x = network.Step(Image(64 << level, 256 >> level), {x});
        x = network.Step(Image(128 << level, 256 >> level), {x, skips[level]});
        x = network.Step(Image(64 << level, 256 >> level), {x});
        x = network.Step(Image(64 << level, 256 >> level), {x});
    }
    ExpectTight(network.buffers());
}

TEST(PackTest, DenselyConnectedNetworkIsTight) {
    Network network;
    uint32_t x = network.Step(Image(64, 56), {});
    for (uint64_t group = 0; group < 4; ++group) {
        const uint64_t width = 56 >> group;
        uint64_t channels = 64;
        for (uint64_t block = 0; block < 12; ++block) {
            const uint32_t a = network.Step(Image(128, width), {x});
            const uint32_t b = network.Step(Image(32, width), {a});
            channels += 32;
            x = network.Step(Image(channels, width), {x, b});
        }
        x = network.Step(Image(64, width / 2), {x});
    }
    ExpectTight(network.buffers());
}

TEST(PackTest, TransformerIsTight) {
    Network network;
    const uint64_t rows = 384, model = 768, heads = 12;
    uint32_t x = network.Step(rows * model * 4, {});
    for (int layer = 0; layer < 12; ++layer) {
        const uint32_t q = network.Step(rows * model * 4, {x});
        const uint32_t k = network.Step(rows * model * 4, {x});
        const uint32_t v = network.Step(rows * model * 4, {x});
        const uint32_t scores = network.Step(heads * rows * rows * 4, {q, k});
        const uint32_t weights = network.Step(heads * rows * rows * 4, {scores});
        const uint32_t mixed = network.Step(rows * model * 4, {weights, v});
        const uint32_t y = network.Step(rows * model * 4, {mixed, x});
        const uint32_t hidden = network.Step(rows * model * 16, {y});
        x = network.Step(rows * model * 4, {hidden, y});
    }
    ExpectTight(network.buffers());
}

TEST(PackTest, DetectorWithPyramidIsTight) {
    Network network;
    std::vector<uint32_t> levels;
    uint32_t x = network.Step(Image(32, 320), {});
    for (uint64_t level = 0; level < 5; ++level) {
        const uint64_t width = 320 >> level;
        x = network.Step(Image(32 << level, width), {x});
        for (int block = 0; block < 3; ++block) {
            const uint32_t a = network.Step(Image(16 << level, width), {x});
            x = network.Step(Image(32 << level, width), {a, x});
        }
        levels.push_back(x);
        x = network.Step(Image(64 << level, width / 2), {x});
    }
    for (uint64_t level = 5; level-- > 2;) {
        const uint64_t width = 320 >> level;
        x = network.Step(Image(32 << level, width), {x, levels[level]});
        const uint32_t boxes = network.Step(Image(64, width), {x});
        const uint32_t classes = network.Step(Image(80, width), {x});
        levels[level] = network.Step(Image(144, width), {boxes, classes});
    }
    network.Step(8400 * 84 * 4, {levels[2], levels[3], levels[4]});
    ExpectTight(network.buffers());
}

TEST(PackTest, RandomLifetimesNeverCollide) {
    std::mt19937 random(7);
    for (int repeat = 0; repeat < 200; ++repeat) {
        std::vector<Lifetime> buffers(random() % 60);
        for (Lifetime& buffer : buffers) {
            buffer.size_bytes = random() % 5 == 0 ? 0 : random() % 5000;
            buffer.first = random() % 50;
            buffer.last = buffer.first + random() % (random() % 2 == 0 ? 4 : 40);
        }
        const uint64_t alignment = uint64_t{1} << random() % 9;
        Check(buffers, Pack(buffers, alignment), alignment);
    }
}

TEST(PackTest, TheSameInputGivesTheSamePacking) {
    std::vector<Lifetime> buffers;
    for (uint32_t i = 0; i < 300; ++i) {
        buffers.push_back({uint64_t{i} * 7919 % 10007, i, i + 1 + i * 31 % 9});
    }
    EXPECT_EQ(Pack(buffers).offsets, Pack(buffers).offsets);
}

}  // namespace
}  // namespace fornax::graph
