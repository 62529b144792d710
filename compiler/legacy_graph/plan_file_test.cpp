// Plan files: round trips, damage, and plans that are well-formed but would leave their buffers.
#include "compiler/legacy_graph/plan_file.h"

#include <cstring>
#include <functional>
#include <random>

#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "compiler/legacy_graph/compile.h"
#include "compiler/legacy_graph/plan_generated.h"
#include "compiler/legacy_graph/testing/graph_builder.h"

namespace fornax::legacy_graph {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;

Plan MakePlan() {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 3, 8, 8});
    const ValueId conv = b.Relu("relu", b.Conv3x3("conv", x, b.Constant("w", {4, 3, 3, 3})));
    const ValueId flat = b.Node("flat", op::Reshape{testing::ShapeOf({2, 256})}, {conv});
    const ValueId product = b.Node("mm", op::MatMul{}, {flat, b.Constant("m", {256, 5})});
    b.graph.AddOutput("y", b.Node("softmax", op::Softmax{1}, {product}));
    return Compile(std::move(b.graph), {}).value();
}

std::vector<std::byte> Bytes(const Plan& plan) {
    return SerializePlan(plan).value();
}

constexpr size_t kHeaderBytes = 40;

// The size and the checksum of what is behind the header.
void WriteHeader(std::vector<std::byte>& bytes) {
    const std::span<const std::byte> payload = std::span(bytes).subspan(kHeaderBytes);
    const uint64_t payload_bytes = payload.size();
    const Hash128 checksum = HashBytes(payload);
    std::memcpy(bytes.data() + 16, &payload_bytes, sizeof(payload_bytes));
    std::memcpy(bytes.data() + 24, &checksum, sizeof(checksum));
}

TEST(PlanFile, RoundTripKeepsEverything) {
    const Plan plan = MakePlan();
    Result<Plan> read = ParsePlan(Bytes(plan));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToText(*read), ToText(plan));
    EXPECT_EQ(read->weights, plan.weights);
    EXPECT_EQ(read->dispatches[0].operations, plan.dispatches[0].operations);
    EXPECT_EQ(Bytes(*read), Bytes(plan)) << "writing is not deterministic";
}

TEST(PlanFile, EveryTruncationIsRefused) {
    const std::vector<std::byte> good = Bytes(MakePlan());
    for (size_t size = 0; size < good.size(); size += size < 200 ? 1 : 97) {
        EXPECT_FALSE(ParsePlan(std::span(good).first(size)).ok()) << size;
    }
    std::vector<std::byte> longer = good;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(ParsePlan(longer).ok());
}

TEST(PlanFile, EveryFlippedBitIsRefused) {
    const std::vector<std::byte> good = Bytes(MakePlan());
    // The four reserved bytes behind the version carry no meaning.
    for (size_t i = 0; i < good.size(); i += i < 200 ? 1 : 53) {
        if (i >= 12 && i < 16) {
            continue;
        }
        std::vector<std::byte> bad = good;
        bad[i] ^= std::byte{0x04};
        EXPECT_FALSE(ParsePlan(bad).ok()) << i;
    }
}

// Behind a right checksum, whatever the contents are, parsing gives a valid plan or an error.
TEST(PlanFile, RandomContentsNeverPassUnproven) {
    const std::vector<std::byte> good = Bytes(MakePlan());
    std::mt19937 generator(4);
    int accepted = 0;
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> bad = good;
        // The weights make up most of the file; the structure is what is interesting.
        const uint32_t flips = 1 + generator() % 4;
        for (uint32_t i = 0; i < flips; ++i) {
            const size_t structure = bad.size() - 6000;
            size_t position = kHeaderBytes + generator() % structure;
            if (generator() % 8 != 0) {
                position = kHeaderBytes + generator() % std::min<size_t>(structure, 3000);
            }
            bad[position] = static_cast<std::byte>(generator());
        }
        WriteHeader(bad);
        Result<Plan> plan = ParsePlan(bad);
        if (plan.ok()) {
            ++accepted;
            const Status status = ValidatePlan(*plan);
            EXPECT_TRUE(status.ok());
        }
    }
    EXPECT_GT(accepted, 0) << "the checksum is not where this test thinks";
    EXPECT_LT(accepted, 19000) << "the changes do not hit the structure";
}

// FlatBuffers' verifier does not look at the alignment of a vector's elements, so a file may hold
// dimensions of 64 bits at any multiple of 4. The sanitisers see a read that wants more.
TEST(PlanFile, ElementsOfAVectorMayLieAnywhere) {
    const Plan plan = MakePlan();
    for (size_t gap : {0, 4}) {
        std::vector<std::byte> bytes = Bytes(plan);
        bytes.resize((bytes.size() + 7) / 8 * 8 + gap);
        const Shape& shape = plan.tensors[0].type.shape;
        const std::vector<uint64_t> dims(shape.dims().begin(), shape.dims().end());
        const size_t dims_bytes = dims.size() * sizeof(dims[0]);
        const size_t moved = bytes.size();
        const uint32_t rank = static_cast<uint32_t>(dims.size());
        bytes.resize(moved + sizeof(rank) + dims_bytes);
        std::memcpy(&bytes[moved], &rank, sizeof(rank));
        std::memcpy(&bytes[moved + sizeof(rank)], dims.data(), dims_bytes);

        const std::span<std::byte> payload = std::span(bytes).subspan(kHeaderBytes);
        auto* tensor = flatbuffers::GetMutableRoot<stored::Plan>(payload.data())->tensors()->Get(0);
        auto* field =
            const_cast<uint8_t*>(reinterpret_cast<const flatbuffers::Table*>(tensor)->GetAddressOf(
                stored::Tensor::VT_DIMS));
        const auto distance =
            static_cast<uint32_t>(reinterpret_cast<uint8_t*>(&bytes[moved]) - field);
        std::memcpy(field, &distance, sizeof(distance));
        WriteHeader(bytes);

        const Result<Plan> read = ParsePlan(bytes);
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(Bytes(*read), Bytes(plan));
    }
}

TEST(PlanFile, HeaderWithoutContentsIsRefused) {
    std::vector<std::byte> bytes = Bytes(MakePlan());
    bytes.resize(kHeaderBytes);
    WriteHeader(bytes);
    EXPECT_FALSE(ParsePlan(bytes).ok());
}

TEST(PlanFile, AnotherVersionIsRefused) {
    std::vector<std::byte> bytes = Bytes(MakePlan());
    bytes[8] = std::byte{kPlanFormatVersion + 1};
    const Result<Plan> plan = ParsePlan(bytes);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(plan.error().message, HasSubstr("format version 2"));
}

struct Lie {
    const char* name;
    std::function<void(Plan&)> tell;
    const char* answer;
};

TEST(ValidatePlan, FindsEveryLie) {
    ASSERT_TRUE(ValidatePlan(MakePlan()).ok());
    const std::vector<Lie> lies = {
        {"tensor behind the region", [](Plan& p) { p.tensors[0].offset_bytes += 1 << 20; },
         "outside of its region"},
        {"tensor whose end overflows", [](Plan& p) { p.tensors[0].offset_bytes = ~255ull; },
         "outside of its region"},
        {"unaligned tensor", [](Plan& p) { p.tensors[0].offset_bytes += 4; }, "outside"},
        {"activation among the weights",
         [](Plan& p) {
             for (PlanTensor& tensor : p.tensors) {
                 if (tensor.kind == TensorKind::kIntermediate) {
                     tensor.offset_bytes = 0;
                 }
             }
         },
         "outside of its region"},
        {"arena too small", [](Plan& p) { p.arena_bytes = 256; }, "outside of its region"},
        {"arena too large", [](Plan& p) { p.arena_bytes = ~0ull; }, "too large"},
        {"integer tensor", [](Plan& p) { p.tensors[0].type.type = DataType::kI64; }, "not f32"},
        {"lifetime", [](Plan& p) { p.tensors[0].last_step = 99; }, "lives from step"},
        {"set's tensor", [](Plan& p) { p.sets[0].tensors[0] = 99; }, "names tensor 99"},
        {"missing binding", [](Plan& p) { p.sets[0].tensors.pop_back(); }, "binds 3 tensors"},
        {"tensors swapped", [](Plan& p) { std::swap(p.sets[0].tensors[0], p.sets[0].tensors[1]); },
         "touches"},
        {"written constant",
         [](Plan& p) {
             for (PlanTensor& tensor : p.tensors) {
                 tensor.kind =
                     tensor.kind == TensorKind::kOutput ? TensorKind::kConstant : tensor.kind;
             }
         },
         "outside of its region"},
        {"dispatch's set", [](Plan& p) { p.dispatches[0].set = 7; }, "uses set 7"},
        {"grid", [](Plan& p) { ++p.dispatches[0].grid[1]; }, "grid"},
        {"parameter", [](Plan& p) { p.dispatches[0].parameters[6] = 30; }, "touches"},
        {"parameter of 0", [](Plan& p) { p.dispatches[0].parameters[10] = 0; }, "size of 0"},
        {"workgroup", [](Plan& p) { p.dispatches[0].parameters[0] = 4096; }, "workgroup"},
        {"parameter count", [](Plan& p) { p.dispatches[0].parameters.pop_back(); }, "takes 22"},
        {"kernel", [](Plan& p) { p.dispatches[0].kernel = KernelId::kUnary; }, "takes 6"},
        {"input's tensor", [](Plan& p) { p.inputs[0].tensor = 99; }, "tensor 99"},
        {"input's type", [](Plan& p) { p.inputs[0].type.shape = testing::ShapeOf({2, 3, 8, 9}); },
         "does not fit"},
        {"input that is a weight",
         [](Plan& p) {
             for (uint32_t i = 0; i < p.tensors.size(); ++i) {
                 if (p.tensors[i].kind == TensorKind::kConstant) {
                     p.inputs[0] = {"w", p.tensors[i].type, i};
                 }
             }
         },
         "not an input tensor"},
        {"output's type", [](Plan& p) { p.outputs[0].type.shape = testing::ShapeOf({2, 6}); },
         "does not fit"},
    };
    for (const Lie& lie : lies) {
        Plan plan = MakePlan();
        lie.tell(plan);
        const Status status = ValidatePlan(plan);
        ASSERT_FALSE(status.ok()) << lie.name;
        EXPECT_THAT(status.error().message, HasSubstr(lie.answer)) << lie.name;
        EXPECT_FALSE(ParsePlan(Bytes(plan)).ok()) << lie.name;
    }
}

}  // namespace
}  // namespace fornax::legacy_graph
