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
    const HostLimits limits = MeasureHostLimits(/*quick=*/true);
    const HostUnits units = MeasureHostUnits(/*quick=*/true, limits);
    for (const double value : {units.clock_ghz, units.product_gmacs, units.scalar_gops,
                               units.copy_plain_gbs, units.copy_streaming_gbs, units.sustained_gbs,
                               units.apart_gbs, units.far_gbs, units.CacheGbs(limits)}) {
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

TEST(HostUnits, BestOfTakesTheFastestOfEach) {
    // The first one's memory was disturbed, the second one's cores.
    const HostUnits a = {.clock_ghz = 3,
                         .vector_bits = 512,
                         .product_gmacs = 100,
                         .sustained_gbs = 20,
                         .triad_gbs = {{1, 90}, {2, 15}}};
    const HostUnits b = {.clock_ghz = 2,
                         .vector_bits = 256,
                         .product_gmacs = 102,
                         .sustained_gbs = 50,
                         .triad_gbs = {{1, 40}, {2, 30}}};
    for (const HostUnits& best : {BestOf(a, b), BestOf(b, a)}) {
        EXPECT_EQ(best.clock_ghz, 3);
        EXPECT_EQ(best.sustained_gbs, 50);
        EXPECT_EQ(best.triad_gbs, (std::map<uint64_t, double>{{1, 90}, {2, 30}}));
    }
    // About as fast: what came first stays, with what belongs to it.
    EXPECT_EQ(BestOf(a, b).vector_bits, 512U);
    EXPECT_EQ(BestOf(a, b).product_gmacs, 100);
    HostUnits faster = b;
    faster.product_gmacs = 200;
    EXPECT_EQ(BestOf(a, faster).vector_bits, 256U);
}

TEST(HostUnits, TheCacheIsWhatIsFasterThanMemory) {
    HostLimits limits;
    limits.triad_cached_gbs = 160;
    HostUnits units;
    units.sustained_gbs = 40;
    units.triad_gbs = {{8 << 20, 150}, {16 << 20, 120}, {32 << 20, 70}};
    EXPECT_EQ(units.CacheBytes(limits), 16U << 20);  // 80 GB/s and more
    EXPECT_EQ(units.CacheGbs(limits), 150);
    units.triad_gbs = {{8 << 20, 50}};
    EXPECT_EQ(units.CacheBytes(limits), 0U);
    EXPECT_EQ(units.CacheGbs(limits), 160);
}

}  // namespace
}  // namespace fornax::bench
