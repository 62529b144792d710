// The host loops compute what they say, on every instruction set that this machine has.
#include "tools/bench/host_limits.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "tools/bench/host_kernels.h"

namespace fornax::bench {
namespace {

constexpr size_t kCount = 1024;

struct alignas(64) Array {
    float values[kCount];
};

struct alignas(64) ProductPanels {
    float panels[kProductFloats];
    float tile[kProductTileFloats] = {};
};

TEST(HostKernels, LoopsComputeWhatTheySay) {
    auto a = std::make_unique<Array>();
    auto b = std::make_unique<Array>();
    auto out = std::make_unique<Array>();
    for (size_t i = 0; i < kCount; ++i) {
        a->values[i] = static_cast<float>(i);
        b->values[i] = static_cast<float>(i % 7);
    }
    for (const HostKernels& kernels : AllHostKernels()) {
        if (!kernels.is_supported()) {
            continue;
        }
        SCOPED_TRACE(kernels.name);
        for (auto triad : {kernels.triad, kernels.triad_streaming}) {
            *out = {};
            triad(out->values, a->values, b->values, 3.0f, kCount);
            for (size_t i = 0; i < kCount; ++i) {
                ASSERT_EQ(out->values[i], a->values[i] + 3.0f * b->values[i]);
            }
        }
        for (auto copy : {kernels.copy, kernels.copy_streaming}) {
            *out = {};
            copy(out->values, a->values, kCount);
            for (size_t i = 0; i < kCount; ++i) {
                ASSERT_EQ(out->values[i], a->values[i]);
            }
        }
        EXPECT_EQ(kernels.read(a->values, kCount), kCount * (kCount - 1) / 2.0f);

        // Twelve chains from 0 to 11; after so many steps each is at its fixed point, 0.5 / 0.001.
        float sink = 0;
        const double operations = kernels.fma(100'000, &sink);
        const double lanes = operations / (2.0 * 12 * 100'000);
        EXPECT_EQ(lanes, std::round(lanes));
        EXPECT_NEAR(sink / (12 * lanes), 500, 0.5);
        int32_t dots = 0;
        const double macs = kernels.dot(1000, &dots);
        auto panels = std::make_unique<ProductPanels>();
        std::fill_n(panels->panels, kProductFloats, 0.5f);
        const double product = kernels.product(2, panels->panels, panels->tile);
        // Each element of the tile gains a product of each row of all panels.
        const double elements = 12 * lanes, depth = product / elements;
        EXPECT_EQ(depth, std::round(depth));
        for (size_t i = 0; i < kProductTileFloats; ++i) {
            ASSERT_EQ(panels->tile[i], i < elements ? 0.25 * depth : 0) << i;
        }
        EXPECT_TRUE(macs == 0 || macs == lanes * 12 * 4 * 1000) << macs;
    }
}

TEST(HostLimits, QuickMeasurementGivesEveryLimit) {
    const HostLimits limits = MeasureHostLimits(/*quick=*/true);
    EXPECT_GE(limits.threads, 1);
    EXPECT_FALSE(limits.vector_unit.empty());
    for (Limit limit :
         {Limit::kFmaAllThreads, Limit::kTriad, Limit::kTriadCached, Limit::kCopy, Limit::kRead}) {
        EXPECT_GT(limits.Value(limit), 0);
    }
    EXPECT_EQ(limits.Value(Limit::kNone), 0);
}

TEST(HostUnits, QuickMeasurementGivesEveryUnit) {
    const HostUnits units = MeasureHostUnits(/*quick=*/true, MeasureHostLimits(/*quick=*/true));
    for (const double value : {units.clock_ghz, units.product_gmacs, units.scalar_gops,
                               units.plain_copy_ratio, units.sustained_gbs, units.cache_gbs}) {
        EXPECT_GT(value, 0);
    }
    EXPECT_GE(units.vector_bits, 128U);
}

TEST(HostLimits, BestOfTakesTheBetterOfEach) {
    HostLimits a;
    a.copy_gbs = 2;
    a.read_gbs = 1;
    HostLimits b;
    b.copy_gbs = 1;
    b.read_gbs = 3;
    const HostLimits best = BestOf(a, b);
    EXPECT_EQ(best.copy_gbs, 2);
    EXPECT_EQ(best.read_gbs, 3);
}

}  // namespace
}  // namespace fornax::bench
