// Plan files: round trips, damage, shared parts, and files of earlier versions.
#include "compiler/graph/plan/plan_file.h"

#include <cstring>

#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"
#include "compiler/graph/plan/packing.h"
#include "compiler/graph/plan/plan_file_header.h"
#include "compiler/graph/plan/plan_generated.h"
#include "compiler/graph/plan/test_plan.h"

namespace fornax::graph {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> FileOf(const Plan& plan) {
    return SerializePlan(plan).value();
}

PlanFileHeader HeaderOf(const std::vector<std::byte>& file) {
    PlanFileHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    return header;
}

// The file of a structure without weights.
std::vector<std::byte> WithHeader(const flatbuffers::FlatBufferBuilder& builder) {
    const auto structure = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    PlanFileHeader header;
    header.structure_bytes = structure.size();
    header.checksum = HashBytes(structure);
    std::vector<std::byte> file(sizeof(header) + structure.size());
    std::memcpy(file.data(), &header, sizeof(header));
    std::memcpy(file.data() + sizeof(header), structure.data(), structure.size());
    return file;
}

TEST(PlanFile, RoundTripKeepsEverything) {
    Plan plan = MakeTestPlan();
    plan.blocks.push_back({"words",
                           {ElementType::kString, Shape({2})},
                           BlockKind::kConstant,
                           nullptr,
                           std::make_shared<std::vector<std::string>>(
                               std::vector<std::string>{"one", std::string("t\0o", 3)}),
                           0,
                           4});
    Graph body("body");
    body.AddOutput("y", body.AddInput("x", {ElementType::kF32, Shape({Symbol("n"), 8})}));
    plan.steps.emplace_back(HostStep{"same",
                                     op::Composite{"same", {}},
                                     {std::make_shared<const Graph>(std::move(body))},
                                     {BlockId(3)},
                                     {plan.blocks[3].type},
                                     {BlockId(9)},
                                     {plan.blocks[3].type},
                                     "of a test"});
    plan.blocks.push_back(
        {"same", plan.blocks[3].type, BlockKind::kTemporary, nullptr, nullptr, 4, 4});
    plan.blocks[3].last = 4;
    for (size_t i = 4; i < 7; ++i) {
        plan.blocks[i].last = 5;
    }
    plan.blocks[1].last = 5;
    ASSERT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).error().message;
    const std::vector<std::byte> file = FileOf(plan);
    const Result<Plan> read = ParsePlan(file);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToText(*read), ToText(plan));
    ASSERT_EQ(read->blocks[1].data->size(), 32u);
    EXPECT_EQ(std::memcmp(read->blocks[1].data->data(), plan.blocks[1].data->data(), 32), 0);
    EXPECT_EQ(*read->blocks[8].strings, *plan.blocks[8].strings);
    EXPECT_EQ(read->guards, plan.guards);
    EXPECT_EQ(read->hints, plan.hints);
    EXPECT_EQ(read->ranges, plan.ranges);
    EXPECT_EQ(FileOf(*read), file) << "writing is not deterministic";
}

TEST(PlanFile, EmptyPlan) {
    const Result<Plan> read = ParsePlan(FileOf(Plan()));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(read->steps.empty());
}

TEST(PlanFile, WeightsAreAlignedStoredOnceAndNotCopied) {
    Plan plan = MakeTestPlan();
    const auto add = [&](int64_t count, float value) {
        const std::vector<float> values(static_cast<size_t>(count), value);
        plan.blocks.push_back({"c",
                               {ElementType::kF32, Shape({count})},
                               BlockKind::kConstant,
                               Tensor::FromFloats({count}, values).data,
                               nullptr,
                               0,
                               4});
    };
    add(1000, 1);
    add(1000, 1);
    add(1000, 2);
    add(0, 0);
    const std::vector<std::byte> bytes = FileOf(plan);
    const PlanFileHeader header = HeaderOf(bytes);
    // 32 bytes once for the constant and the state, 4,000 twice, 0.
    EXPECT_EQ(header.weight_bytes, 256u + 4096 + 4096);
    EXPECT_EQ(WeightsOffset(header) % 4096, 0u);

    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    const auto owner = std::make_shared<std::vector<uint8_t>>(data, data + bytes.size());
    const Result<Plan> read = ParsePlan(Bytes(owner));
    ASSERT_TRUE(read.ok()) << read.error().message;
    for (const PlanBlock& block : read->blocks) {
        if (block.data && !block.data->empty()) {
            const ptrdiff_t offset = block.data->data() - owner->data();
            EXPECT_GE(offset, static_cast<ptrdiff_t>(WeightsOffset(header))) << block.name;
            EXPECT_LT(offset, static_cast<ptrdiff_t>(bytes.size())) << block.name;
            EXPECT_EQ(offset % static_cast<ptrdiff_t>(kTensorAlignment), 0) << block.name;
        }
    }
    EXPECT_EQ(read->blocks[8].data->data(), read->blocks[9].data->data());
    EXPECT_NE(read->blocks[8].data->data(), read->blocks[10].data->data());
}

TEST(PlanFile, IsMappedFromDisk) {
    TestDirectory directory;
    const std::string path = directory / "example.plan";
    ASSERT_TRUE(WriteFileAtomically(path, FileOf(MakeTestPlan()), 0600).ok());
    const Result<Plan> read = ReadPlanFile(path);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToText(*read), ToText(MakeTestPlan()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->blocks[1].data->data()) % kTensorAlignment, 0u);
    ASSERT_TRUE(WriteFileAtomically(path, std::string("no plan"), 0600).ok());
    // The first file lives on.
    EXPECT_EQ(std::memcmp(read->blocks[1].data->data(), MakeTestPlan().blocks[1].data->data(), 32),
              0);
    const Result<Plan> other = ReadPlanFile(path);
    ASSERT_FALSE(other.ok());
    EXPECT_THAT(other.error().message, HasSubstr("example.plan: The data do not begin"));
}

TEST(PlanFile, EveryTruncationIsRefused) {
    const std::vector<std::byte> good = FileOf(MakeTestPlan());
    for (size_t size = 0; size < good.size(); size += size < 200 ? 1 : 97) {
        EXPECT_FALSE(ParsePlan(std::span(good).first(size)).ok()) << size;
    }
    std::vector<std::byte> longer = good;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(ParsePlan(longer).ok());
}

TEST(PlanFile, EveryFlippedBitIsRefused) {
    const std::vector<std::byte> good = FileOf(MakeTestPlan());
    const PlanFileHeader header = HeaderOf(good);
    const size_t end = sizeof(header) + header.structure_bytes;
    for (size_t i = 0; i < good.size(); i += i < 200 ? 1 : 13) {
        if (i >= end && i < WeightsOffset(header)) {
            continue;  // bytes between the structure and the weights' page carry no meaning
        }
        std::vector<std::byte> bad = good;
        bad[i] ^= std::byte{0x04};
        EXPECT_FALSE(ParsePlan(bad).ok()) << i;
    }
    std::vector<std::byte> bad = good;
    bad.back() ^= std::byte{1};
    EXPECT_THAT(ParsePlan(bad).error().message, HasSubstr("The checksum of weight 0"));
    const auto* data = reinterpret_cast<const uint8_t*>(bad.data());
    const Bytes trusted(std::make_shared<std::vector<uint8_t>>(data, data + bad.size()));
    EXPECT_TRUE(ParsePlan(trusted, WeightCheck::kTrust).ok());
}

TEST(PlanFile, OtherVersionsAreToldApart) {
    std::vector<std::byte> file = FileOf(MakeTestPlan());
    for (const uint32_t version : {kOldestPlanFormatVersion - 1, kPlanFormatVersion + 1}) {
        std::memcpy(file.data() + 8, &version, sizeof(version));
        const Result<Plan> read = ParsePlan(file);
        ASSERT_FALSE(read.ok());
        EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
        EXPECT_THAT(read.error().message,
                    HasSubstr("format version " + std::to_string(version) + "; this version"));
    }
    EXPECT_TRUE(LooksLikePlan(file));
    file[0] = std::byte{'G'};
    EXPECT_FALSE(LooksLikePlan(file));
}

TEST(PlanFile, WhatIsNotValidIsRefused) {
    Plan plan = MakeTestPlan();
    DispatchOf(plan, 0).bindings[0] = BlockId(77);
    const Result<Plan> read = ParsePlan(FileOf(plan));
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr("names a block that does not exist"));
}

// A file of a few bytes that uses one text thousands of times would become a large plan.
TEST(PlanFile, PartsAreUsedOnce) {
    flatbuffers::FlatBufferBuilder builder;
    const auto text = builder.CreateString(loop::ToText(MakeTestPlan().kernels[0].loop));
    const std::vector<flatbuffers::Offset<flatbuffers::String>> kernels(2000, text);
    const auto vector = builder.CreateVector(kernels);
    stored::PlanBuilder plan(builder);
    plan.add_kernels(vector);
    builder.Finish(plan.Finish());
    const Result<Plan> read = ParsePlan(WithHeader(builder));
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr("in more than one place"));
}

TEST(PlanFile, StructuresThatMeanNothingAreRefused) {
    const auto refuse = [](const char* message, const auto& make) {
        flatbuffers::FlatBufferBuilder builder;
        make(builder);
        const Result<Plan> read = ParsePlan(WithHeader(builder));
        ASSERT_FALSE(read.ok()) << message;
        EXPECT_THAT(read.error().message, HasSubstr(message));
    };
    using Builder = flatbuffers::FlatBufferBuilder;
    const auto finish = [](Builder& builder, const auto& set) {
        stored::PlanBuilder plan(builder);
        set(plan);
        builder.Finish(plan.Finish());
    };
    refuse("Step 0 of the plan is of no known kind", [&](Builder& builder) {
        const std::vector steps = {stored::CreateStep(builder)};
        const auto vector = builder.CreateVector(steps);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_steps(vector); });
    });
    refuse("Expression 0 of the plan cannot be read", [&](Builder& builder) {
        const auto vector = builder.CreateVectorOfStrings({"n +"});
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_expressions(vector); });
    });
    refuse("The plan uses expression 3 of 0", [&](Builder& builder) {
        const std::vector guards = {stored::CreateGuard(builder, 0, 3, 3)};
        const auto vector = builder.CreateVector(guards);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_guards(vector); });
    });
    refuse("a source of symbol 1 of 0", [&](Builder& builder) {
        const std::vector sources = {stored::CreateSource(builder, 1)};
        const auto vector = builder.CreateVector(sources);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_sources(vector); });
    });
    refuse("a symbol without a name", [&](Builder& builder) {
        const std::vector symbols = {stored::CreateSymbolDirect(builder, "no name")};
        const auto vector = builder.CreateVector(symbols);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_symbols(vector); });
    });
    refuse("Weight 0 of the plan has 1 bytes at 0 of 0", [&](Builder& builder) {
        const std::vector weights = {stored::CreateWeight(builder, 0, 1)};
        const auto vector = builder.CreateVector(weights);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_weights(vector); });
    });
    refuse("A tensor of the plan has no type", [&](Builder& builder) {
        const std::vector blocks = {stored::CreateBlock(builder)};
        const auto vector = builder.CreateVector(blocks);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_blocks(vector); });
    });
    refuse("Block 0 of the plan holds weight 4 of 0", [&](Builder& builder) {
        const std::vector blocks = {
            stored::CreateBlock(builder, 0, stored::CreateType(builder), 0, 5)};
        const auto vector = builder.CreateVector(blocks);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_blocks(vector); });
    });
    refuse("The text of a kernel is empty", [&](Builder& builder) {
        const auto vector = builder.CreateVectorOfStrings({""});
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_kernels(vector); });
    });
    refuse("The host step  of the plan has 0 nodes, not 1", [&](Builder& builder) {
        const auto host = stored::CreateHostDirect(builder, "", "", "graph \"\" {}");
        const std::vector steps = {stored::CreateStep(builder, 0, host)};
        const auto vector = builder.CreateVector(steps);
        finish(builder, [&](stored::PlanBuilder& plan) { plan.add_steps(vector); });
    });
}

}  // namespace
}  // namespace fornax::graph
