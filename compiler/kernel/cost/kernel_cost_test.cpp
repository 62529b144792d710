// Costs in their stored form, and the records that they become.
#include "compiler/kernel/interface/kernel_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

KernelCost Example() {
    CostCount rest{.invocations = 1, .counters = {{0, -1}}};
    CostRegion all{.count = {.invocations = 1, .counters = {}},
                   .operations = {.simple = 3, .multiply_add = 4, .division = 1, .special = 2},
                   .operation_bits = 10 * 32,
                   .barriers = 1,
                   .shared_bytes = {{1, 8}, {16, 4}},
                   .accesses = {{.bytes = 4, .buffer = 0, .source = 1},
                                {.kind = npu::AccessKind::kBroadcast,
                                 .bytes = 4,
                                 .sharers = 64,
                                 .all_workgroups = true}},
                   .lines = {{0, {.operations = {.simple = 3, .special = 1}}},
                             {1, {.operations = {.special = 1}, .shared_bytes = 12}}}};
    CostRegion some{.count = CostCount::Of(0),
                    .accesses = {{.kind = npu::AccessKind::kScatter,
                                  .writes = true,
                                  .bytes = 4,
                                  .element_bytes = 4}},
                    .products = {{.type = npu::MatrixType::kF16,
                                  .m = 32,
                                  .n = 16,
                                  .k = 16,
                                  .sums = {.invocations = 1, .counters = {}}}}};
    return {
        .counters = 1,
        .workgroup_invocations = 64,
        .subgroup_size = 32,
        .shared_bytes = 1024,
        .regions = {all, some, {.count = rest, .operations = {.simple = 1}, .operation_bits = 32}},
        .scalar_operations = {{{.invocations = 1, .counters = {}}, 5}, {CostCount::Of(0), 2}},
        .buffers = {{.set = 1, .offset_bytes = 32, .dynamic_offset = 0}},
        .sources = {"k.comp:12", "OpLoad at word 345"}};
}

TEST(KernelCost, ComesBackFromItsStoredForm) {
    KernelCost cost = Example();
    cost.regions[1].pass = 2;
    cost.regions[1].accesses[0].apart = cost.regions[1].accesses[0].in_parts = true;
    const std::vector<uint8_t> bytes = SerializeCost(cost);
    const Result<KernelCost> read = ParseCost(bytes);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(CostText(*read), CostText(cost));
    EXPECT_EQ(SerializeCost(*read), bytes);
    for (size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(ParseCost(std::span(bytes).first(size)).ok()) << size;
    }
    std::vector<uint8_t> other = bytes;
    other.push_back(0);
    EXPECT_FALSE(ParseCost(other).ok());
    for (size_t at = 0; at < bytes.size(); at += 8) {
        other = bytes;
        other[at + 7] = 0xff;  // a number that is too large, or another cost
        const Result<KernelCost> changed = ParseCost(other);
        EXPECT_TRUE(!changed.ok() || SerializeCost(*changed) == other) << at;
    }
}

TEST(KernelCost, TextNamesEverything) {
    EXPECT_EQ(CostText(Example()),
              "invocations:\n"
              "  operations 3 simple, 4 multiply-add, 1 division, 2 special, 32 bits\n"
              "  read stream 4\n"
              "  read broadcast 4/64 once\n"
              "  workgroup memory 8, stride 1\n"
              "  workgroup memory 4, stride 16\n"
              "  barriers 1\n"
              "c0:\n"
              "  write scatter 4 by 4\n"
              "  product f16 32x16x16, sums invocations\n"
              "invocations - c0:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "scalar:\n"
              "  2 of c0\n"
              "  5 of invocations\n");
}

// 10 workgroups of 64; a region ran 3 times for each of them.
TEST(KernelCost, RecordsAddUpWhatRegionsDid) {
    const uint64_t counters[] = {3 * 640};
    const npu::MemoryRange range = {.memory = 3, .begin = 0, .bytes = 9000};
    const npu::DispatchRecord record =
        DispatchRecordOf(Example(), "k", 10, counters, std::span(&range, 1));
    EXPECT_EQ(record.name, "k");
    EXPECT_EQ(record.workgroups, 10u);
    EXPECT_EQ(record.split, npu::ProductSplit::kWorkgroup);
    EXPECT_EQ(record.operations.simple, 3u * 640);  // the last region's count is negative: none
    EXPECT_EQ(record.operations.multiply_add, 4u * 640);
    EXPECT_EQ(record.operations.division, 640u);
    EXPECT_EQ(record.scalar_operations, 10u * 5 + 30 * 2);
    EXPECT_EQ(record.operations.special, 2u * 640);
    EXPECT_EQ(record.element_bits, 32u);
    EXPECT_EQ(record.scratchpad_bytes, 12u * 640);
    EXPECT_EQ(record.scratchpad_stride_words, 1u);
    EXPECT_THAT(record.accesses,
                ElementsAre(npu::Access{.bytes = 4 * 640, .range = range},
                            npu::Access{.kind = npu::AccessKind::kBroadcast, .bytes = 4},
                            npu::Access{.kind = npu::AccessKind::kScatter,
                                        .writes = true,
                                        .bytes = 3 * 640 * 4,
                                        .element_bytes = 4}));
    // 60 steps of 20 sums: two subgroups a workgroup, each a product of three steps.
    ASSERT_EQ(record.products.size(), 1u);
    EXPECT_EQ(record.products[0].shape.m, 32u);
    EXPECT_EQ(record.products[0].shape.n, 16u);
    EXPECT_EQ(record.products[0].shape.k, 48u);
    EXPECT_EQ(record.products[0].batch, 2u);
    // Half of the special operations are on each of two lines, and the first of equals counts.
    using npu::LineWork;
    EXPECT_THAT(record.lines,
                ElementsAre(npu::SourceLine{LineWork::kOperations, "k.comp:12", 100},
                            npu::SourceLine{LineWork::kSpecial, "k.comp:12", 50},
                            npu::SourceLine{LineWork::kScratchpad, "OpLoad at word 345", 100},
                            npu::SourceLine{LineWork::kBytes, "OpLoad at word 345", 25}));
    const npu::DispatchRecord without =
        DispatchRecordOf(Example(), "k", 10, counters, std::span(&range, 1), 7, false);
    EXPECT_TRUE(without.lines.empty());
    EXPECT_EQ(without.accesses, record.accesses);
    EXPECT_EQ(without.operations.total(), record.operations.total());
    EXPECT_EQ(record.scratchpad.least_bytes, 2048u);
    EXPECT_EQ(record.scratchpad.preferred_bytes, 1024u + (4 * 640 + 4 + 12 * 640 + 9) / 10);
}

// Twice the bytes of what is a workgroup's own are accessed again; what it wrote it has.
TEST(KernelCost, PartsOfWorkgroupsAreAccessedAgain) {
    const CostAccess twice = {.bytes = 8, .buffer = 0, .grid_axes = 1, .order = 0};
    CostAccess written = {.writes = true, .bytes = 8, .buffer = 1, .grid_axes = 1, .order = 1};
    CostAccess read = {.bytes = 4, .buffer = 1, .grid_axes = 1, .order = 2};
    KernelCost cost{.workgroup_invocations = 64,
                    .subgroup_size = 32,
                    .regions = {{.count = {.invocations = 1, .counters = {}},
                                 .accesses = {twice, written, read}}},
                    .buffers = {{}, {.offset_bytes = 16}}};
    const npu::MemoryRange ranges[] = {{.memory = 1, .bytes = 2560}, {.memory = 2, .bytes = 2560}};
    const auto repeated = [&](uint32_t grid_axes) {
        std::vector<uint64_t> bytes;
        for (const npu::Access& access :
             DispatchRecordOf(cost, "k", 10, {}, ranges, grid_axes).accesses) {
            bytes.push_back(access.repeated_bytes);
        }
        return bytes;
    };
    EXPECT_THAT(repeated(1), ElementsAre(2560, 2560, 2560));
    // Workgroups along another axis have the same parts.
    EXPECT_THAT(repeated(3), ElementsAre(0, 0, 0));
    // In place: what is read first has to come from memory.
    std::swap(cost.regions[0].accesses[1].order, cost.regions[0].accesses[2].order);
    EXPECT_THAT(repeated(1), ElementsAre(2560, 2560, 0));
}

// A pass that reads, one that only waits, and one that reads again and writes.
TEST(KernelCost, RecordsHaveThePassesThatWork) {
    const CostCount each = {.invocations = 1, .counters = {}};
    KernelCost cost{.workgroup_invocations = 64,
                    .subgroup_size = 32,
                    .regions = {{.count = each,
                                 .operations = {.simple = 3},
                                 .operation_bits = 3 * 32,
                                 .accesses = {{.bytes = 4, .buffer = 0, .grid_axes = 1}}},
                                {.count = each, .pass = 1, .barriers = 1},
                                {.count = each,
                                 .pass = 3,
                                 .operations = {.special = 2},
                                 .operation_bits = 2 * 32,
                                 .shared_bytes = {{1, 8}},
                                 .shared_atomics = 1,
                                 .accesses = {{.bytes = 4, .buffer = 0, .grid_axes = 1, .order = 1},
                                              {.writes = true, .bytes = 4, .buffer = 1}},
                                 .products = {{.m = 1, .n = 1, .k = 1, .sums = each}}}},
                    .buffers = {{}, {.offset_bytes = 16}}};
    const npu::MemoryRange ranges[] = {{.memory = 1, .bytes = 2560}, {.memory = 2, .bytes = 2560}};
    const npu::DispatchRecord record = DispatchRecordOf(cost, "k", 10, {}, ranges, 1);
    ASSERT_EQ(record.passes.size(), 2u);
    EXPECT_EQ(record.passes[0].operations.simple, 3u * 640);
    EXPECT_EQ(record.passes[1].operations.special, 2u * 640);
    EXPECT_EQ(record.passes[1].scratchpad_bytes, 8u * 640);
    EXPECT_EQ(record.passes[1].scratchpad_accesses, 2u * 640);
    EXPECT_EQ(record.operations.total(), 5u * 640);
    // The second pass finds what the first one read.
    EXPECT_THAT(
        record.accesses,
        ElementsAre(
            npu::Access{.bytes = 2560, .range = ranges[0]},
            npu::Access{.bytes = 2560, .repeated_bytes = 2560, .pass = 1, .range = ranges[0]},
            npu::Access{.writes = true, .bytes = 2560, .pass = 1, .range = ranges[1]}));
    ASSERT_EQ(record.products.size(), 1u);
    EXPECT_EQ(record.products[0].pass, 1u);
    cost.regions.erase(cost.regions.begin());
    const npu::DispatchRecord one = DispatchRecordOf(cost, "k", 10, {}, ranges, 1);
    EXPECT_TRUE(one.passes.empty());
    EXPECT_EQ(one.accesses[0].pass, 0u);
}

// Whatever was counted, a replay takes the record.
TEST(KernelCost, RecordsStayWithinTheReplaysLimits) {
    const uint64_t counters[] = {uint64_t{1} << 62};
    npu::Record record = {.work = DispatchRecordOf(Example(), "k", uint64_t{1} << 47, counters),
                          .queue = npu::QueueId(0)};
    const Status status = npu::CheckRecords(std::span(&record, 1));
    EXPECT_TRUE(status.ok()) << status.error().message;
}

}  // namespace
}  // namespace fornax::kernel
