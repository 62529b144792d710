// The kernels' parameters against their SPIR-V, and footprints of hostile parameters.
#include "compiler/legacy_graph/kernel_library.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "shaders/embedded_kernels.h"

namespace fornax::legacy_graph {
namespace {

// Calls visit(opcode, words) for every instruction of a module.
template <typename Visit>
void ForEachInstruction(std::span<const uint32_t> spirv, Visit visit) {
    for (size_t at = 5; at < spirv.size();) {
        const uint32_t count = spirv[at] >> 16;
        ASSERT_NE(count, 0u);
        visit(spirv[at] & 0xFFFF, spirv.subspan(at, count));
        at += count;
    }
}

constexpr uint32_t kOpDecorate = 71, kSpecId = 1, kBinding = 33;

TEST(KernelLibrary, TableMatchesTheShaders) {
    ASSERT_EQ(shaders::EmbeddedKernels().size(), static_cast<size_t>(kLastKernelId) + 1);
    for (uint32_t i = 0; i <= static_cast<uint32_t>(kLastKernelId); ++i) {
        const KernelInfo& kernel = Kernel(KernelId{i});
        SCOPED_TRACE(kernel.name);
        EXPECT_EQ(shaders::EmbeddedKernels()[i].name, kernel.name);
        std::set<uint32_t> constants, bindings;
        ForEachInstruction(kernel.spirv, [&](uint32_t opcode, std::span<const uint32_t> words) {
            if (opcode == kOpDecorate && words[2] == kSpecId) {
                constants.insert(words[3]);
            }
            if (opcode == kOpDecorate && words[2] == kBinding) {
                bindings.insert(words[3]);
            }
        });
        ASSERT_FALSE(constants.empty());
        EXPECT_EQ(*constants.rbegin() + 1, kernel.parameter_count);
        EXPECT_EQ(bindings.size(), kernel.binding_count);
        EXPECT_EQ(*bindings.rbegin() + 1, kernel.binding_count);
    }
}

TEST(Footprint, OfAConvolution) {
    parameters::Conv2d conv;
    conv.window = {2, 6, 9, 8, 4, 6, 3, 3, 2, 1, 1, 1, 0, 0};
    conv.out_channels = 12;
    conv.groups = 2;
    conv.has_bias = 1;
    const KernelFootprint footprint = Footprint(KernelId::kConv2d, ToWords(conv)).value();
    EXPECT_EQ(footprint.elements,
              (std::vector<uint64_t>{2 * 6 * 9 * 8, 12 * 3 * 9, 12, 2 * 12 * 24}));
    EXPECT_EQ(footprint.grid, (std::array<uint32_t, 3>{1, 2, 1}));  // 48 pixels, 2 groups of 1 tile
    EXPECT_EQ(footprint.operations, 2u * 2 * 12 * 24 * 27);
    // One output value an invocation instead of eight.
    EXPECT_EQ(Footprint(KernelId::kConv2dDepthwise, ToWords(conv)).value().grid[1], 12u);
}

TEST(Footprint, OfABatchedProduct) {
    parameters::MatMul matmul;
    matmul.workgroup = {16, 4};
    matmul.rows = 70;
    matmul.depth = 5;
    matmul.columns = 20;
    matmul.batch = {1, 1, 3, 4};
    matmul.strides_a = {0, 0, 350, 0};
    matmul.strides_b = {0, 0, 0, 100};
    const KernelFootprint footprint = Footprint(KernelId::kMatMul, ToWords(matmul)).value();
    EXPECT_EQ(footprint.elements, (std::vector<uint64_t>{3 * 350, 4 * 100, 1, 12 * 1400}));
    EXPECT_EQ(footprint.grid, (std::array<uint32_t, 3>{2, 3, 12}));
}

TEST(Footprint, SplitsLongRangesOverTwoDirections) {
    parameters::Unary unary;
    unary.elements = 1 << 26;
    EXPECT_EQ(Footprint(KernelId::kUnary, ToWords(unary))->grid,
              (std::array<uint32_t, 3>{65535, 1, 17}));
    unary.elements = (1 << 30) + 1;
    EXPECT_FALSE(Footprint(KernelId::kUnary, ToWords(unary)).ok());
}

// Any parameters at all: an error, or sizes and grids within the limits.
TEST(Footprint, HostileParametersStayWithinLimits) {
    std::mt19937 generator(6);
    auto any = [&]() -> uint32_t {
        switch (generator() % 6) {
            case 0:
                return 0;
            case 1:
                return UINT32_MAX - generator() % 3;
            case 2:
                return uint32_t{1} << (generator() % 32);
            default:
                return 1 + generator() % 8;
        }
    };
    int good = 0;
    for (int round = 0; round < 200000; ++round) {
        const auto id =
            static_cast<KernelId>(generator() % (static_cast<uint32_t>(kLastKernelId) + 1));
        std::vector<uint32_t> parameters(Kernel(id).parameter_count);
        const bool mild = generator() % 2 == 0;
        for (uint32_t& parameter : parameters) {
            parameter = mild ? 1 + generator() % 4 : any();
        }
        Result<KernelFootprint> footprint = Footprint(id, parameters);
        if (!footprint.ok()) {
            continue;
        }
        ++good;
        ASSERT_EQ(footprint->elements.size(), Kernel(id).binding_count);
        for (uint64_t elements : footprint->elements) {
            ASSERT_GE(elements, 1u);
            ASSERT_LE(elements, static_cast<uint64_t>(Shape::kMaxElements));
        }
        for (uint32_t extent : footprint->grid) {
            ASSERT_GE(extent, 1u);
            ASSERT_LE(extent, 65535u);
        }
        ASSERT_LE(parameters[0] * parameters[1], 128u);
    }
    EXPECT_GT(good, 1000);
}

}  // namespace
}  // namespace fornax::legacy_graph
