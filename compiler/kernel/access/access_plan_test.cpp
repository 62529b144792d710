// A pattern of lanes in, the plan's text out.
#include "compiler/kernel/access/access_plan.h"

#include <gtest/gtest.h>

namespace fornax::kernel {
namespace {

using Bounds = AccessMemory::Bounds;

LanePattern Pattern(uint32_t lanes, int64_t (*offset)(int64_t lane)) {
    LanePattern pattern{.kind = LanePattern::Kind::kOffsets};
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        pattern.offsets.push_back(offset(lane));
    }
    return pattern;
}

// An access of 16 lanes to 4-byte elements, but for what a test changes.
struct Access {
    LanePattern offset;
    uint64_t element_bytes = 4;
    size_t count = 1;
    bool is_store = false;
    bool is_masked = false;
    AccessMemory memory = {};
    uint32_t vector_bits = 512;
};

std::string PlanOf(const Access& access) {
    const auto lanes = static_cast<uint32_t>(access.offset.offsets.size());
    return Text(PlanAccess({.offset = access.offset,
                            .element_bytes = access.element_bytes,
                            .count = access.count,
                            .is_store = access.is_store,
                            .is_masked = access.is_masked,
                            .memory = access.memory,
                            .target = {.vector_bits = access.vector_bits, .lanes = lanes}}));
}

const LanePattern kContiguous = Pattern(16, [](int64_t lane) { return 4 * lane; });

TEST(AccessPlan, OneAddress) {
    LanePattern uniform{.kind = LanePattern::Kind::kUniform};
    EXPECT_EQ(Text(PlanAccess({.offset = uniform, .target = {.lanes = 16}})),
              "one address; cost 1");
}

TEST(AccessPlan, LanesAnywhere) {
    LanePattern varying{.kind = LanePattern::Kind::kVarying};
    EXPECT_EQ(Text(PlanAccess({.offset = varying, .count = 2, .target = {.lanes = 16}})),
              "lane by lane; cost 48");
    EXPECT_EQ(PlanOf({.offset = kContiguous, .memory = {.by_lane = true}}),
              "lane by lane; cost 24");
}

TEST(AccessPlan, ContiguousLanes) {
    EXPECT_EQ(PlanOf({.offset = kContiguous}), "runs: 16 x 4 bytes at 0; in order; cost 1");
    EXPECT_EQ(PlanOf({.offset = kContiguous, .is_store = true}),
              "runs: 16 x 4 bytes at 0; in order; can stay packed; cost 1");
    EXPECT_EQ(PlanOf({.offset = kContiguous, .vector_bits = 128}),
              "runs: 16 x 4 bytes at 0; in order; cost 4");
}

TEST(AccessPlan, BoundsAndMasks) {
    const AccessMemory checked = {.bounds = Bounds::kChecked};
    EXPECT_EQ(
        PlanOf({.offset = kContiguous, .memory = checked}),
        "runs: 16 x 4 bytes at 0; in order; if 64 bytes are inside, else lane by lane; cost 1");
    EXPECT_EQ(
        PlanOf({.offset = kContiguous, .is_store = true, .is_masked = true, .memory = checked}),
        "runs: 16 x 4 bytes at 0; in order; can stay packed; masked; if 64 bytes are inside, "
        "else lane by lane; cost 1");
    // Nothing is known of where memory at an address ends.
    const AccessMemory global = {.is_global = true, .ends_exactly = true};
    EXPECT_EQ(PlanOf({.offset = kContiguous, .is_masked = true, .memory = global}),
              "runs: 16 x 4 bytes at 0; in order; masked; cost 1");
    const LanePattern pairs = Pattern(16, [](int64_t lane) { return lane / 2 * 4; });
    EXPECT_EQ(PlanOf({.offset = pairs, .is_masked = true, .memory = global}),
              "runs: 8 x 4 bytes at 0; shuffled 0x2 1x2 2x2 3x2 4x2 5x2 ...; if all lanes are "
              "active, else lane by lane; cost 2");
}

TEST(AccessPlan, WorkgroupMemory) {
    const AccessMemory workgroup = {
        .bounds = Bounds::kClamped, .known_size = 1024, .has_margins = true};
    LanePattern bounded = kContiguous;
    EXPECT_EQ(PlanOf({.offset = bounded, .memory = workgroup}),
              "runs: 16 x 4 bytes at 0; in order; 64 bytes moved inside; cost 1");
    bounded.max = 1020;
    EXPECT_EQ(PlanOf({.offset = bounded, .memory = workgroup}),
              "runs: 16 x 4 bytes at 0; in order; proven inside; cost 1");
    // Without margins there is nowhere to move it to.
    bounded.max = 1021;
    EXPECT_EQ(
        PlanOf({.offset = bounded, .memory = {.bounds = Bounds::kClamped, .known_size = 1024}}),
        "lane by lane; cost 24");
}

// Rows are not stored under a mask, so lanes go one by one only where some do not take part.
TEST(AccessPlan, MaskedRowsInWorkgroupMemory) {
    const LanePattern rows = Pattern(16, [](int64_t lane) { return lane / 4 * 48 + lane % 4 * 8; });
    const AccessMemory shared = {
        .bounds = Bounds::kClamped, .known_size = 1024, .has_margins = true};
    const std::string plan =
        "transposed: 2 x 4 bytes at 0, 8, 16, 24, ... 16 in all; can stay packed; 176 bytes moved "
        "inside; ";
    EXPECT_EQ(
        PlanOf(
            {.offset = rows, .element_bytes = 2, .count = 4, .is_store = true, .memory = shared}),
        plan + "cost 18");
    EXPECT_EQ(PlanOf({.offset = rows,
                      .element_bytes = 2,
                      .count = 4,
                      .is_store = true,
                      .is_masked = true,
                      .memory = shared}),
              plan + "if all lanes are active, else lane by lane; cost 18");
}

TEST(AccessPlan, VectorsOfALane) {
    const LanePattern vec4 = Pattern(16, [](int64_t lane) { return 16 * lane; });
    EXPECT_EQ(PlanOf({.offset = vec4, .count = 4}),
              "runs: 64 x 4 bytes at 0; shuffled 0..60/4 1..61/4 2..62/4 3..63/4; can stay packed; "
              "cost 8");
    const LanePattern apart = Pattern(16, [](int64_t lane) { return 1024 * lane; });
    EXPECT_EQ(PlanOf({.offset = apart, .count = 4}),
              "transposed: 4 x 4 bytes at 0, 1024, 2048, 3072, ... 16 in all; can stay packed; "
              "cost 24");
    EXPECT_EQ(PlanOf({.offset = apart}), "lane by lane; cost 24");
    // Three are two loads that overlap.
    const LanePattern vec3 = Pattern(16, [](int64_t lane) { return 12 * lane; });
    EXPECT_EQ(PlanOf({.offset = vec3, .count = 3}),
              "runs: 32 x 4 bytes at 0, 64; shuffled 0..30/3 49..61/3 1..31/3 50..62/3 2..29/3 "
              "48..63/3; cost 10");
}

TEST(AccessPlan, NarrowElementsMoveAsWords) {
    const LanePattern bytes = Pattern(16, [](int64_t lane) { return 4 * lane; });
    EXPECT_EQ(PlanOf({.offset = bytes, .element_bytes = 1, .count = 4}),
              "runs: 16 x 4 bytes at 0; in order; can stay packed; cost 1");
    // One byte of each word: whole words are loaded only where the base is known to be a multiple.
    const LanePattern second = Pattern(16, [](int64_t lane) { return 4 * lane + 1; });
    EXPECT_EQ(PlanOf({.offset = second, .element_bytes = 1, .memory = {.ends_exactly = true}}),
              "runs: 32 x 1 bytes at 0, 29; shuffled 0..28/4 35..63/4; cost 4");
    LanePattern aligned = second;
    aligned.base_zeros = 2;
    EXPECT_EQ(PlanOf({.offset = aligned, .element_bytes = 1, .memory = {.ends_exactly = true}}),
              "runs: 16 x 4 bytes at 0; 1 bytes skipped; shuffled 0..15; cost 1");
}

TEST(AccessPlan, PiecesOfRows) {
    const LanePattern tile =
        Pattern(32, [](int64_t lane) { return lane / 16 * 96 + lane % 16 * 4; });
    EXPECT_EQ(PlanOf({.offset = tile}), "pieces: 16 x 4 bytes at 0, 96; cost 2");
}

TEST(AccessPlan, RowsAtASymbolicStride) {
    LanePattern rows = Pattern(16, [](int64_t lane) { return lane % 8 * 4; });
    rows.kind = LanePattern::Kind::kRows;
    for (int64_t lane = 0; lane < 16; ++lane) {
        rows.rows.push_back(lane / 8);
    }
    EXPECT_EQ(PlanOf({.offset = rows, .memory = {.bounds = Bounds::kChecked}}),
              "rows: 8 x 4 bytes at row 0 + 0, row 1 + 0; shuffled 0..15; if 32 bytes are inside, "
              "else lane by lane; cost 2");
    EXPECT_EQ(PlanOf({.offset = rows, .is_store = true, .is_masked = true}),
              "rows: 8 x 4 bytes at row 0 + 0, row 1 + 0; shuffled 0..15; if 32 bytes are inside "
              "and all lanes are active, else lane by lane; cost 2");
}

TEST(AccessPlan, PrefetchesWholeRuns) {
    const AccessMemory memory = {.prefetches = true};
    EXPECT_EQ(PlanOf({.offset = kContiguous, .memory = memory}),
              "runs: 16 x 4 bytes at 0; in order; prefetched lines: 1; cost 1");
    EXPECT_EQ(
        PlanOf({.offset = kContiguous, .is_masked = true, .memory = memory}),
        "runs: 16 x 4 bytes at 0; in order; if 64 bytes are inside, else lane by lane; cost 1");
    const LanePattern apart = Pattern(16, [](int64_t lane) { return 1024 * lane; });
    EXPECT_EQ(PlanOf({.offset = apart, .count = 4, .is_store = true, .memory = memory}),
              "transposed: 4 x 4 bytes at 0, 1024, 2048, 3072, ... 16 in all; can stay packed; "
              "prefetched lines: 16; cost 24");
    EXPECT_EQ(PlanOf({.offset = apart, .count = 4, .memory = memory}),
              "transposed: 4 x 4 bytes at 0, 1024, 2048, 3072, ... 16 in all; can stay packed; "
              "cost 24");
    EXPECT_EQ(
        PlanOf({.offset = apart, .count = 4, .memory = {.prefetches = true, .each_lane = true}}),
        "transposed: 4 x 4 bytes at 0, 1024, 2048, 3072, ... 16 in all; can stay packed; "
        "prefetched lines: 16; cost 24");
}

}  // namespace
}  // namespace fornax::kernel
