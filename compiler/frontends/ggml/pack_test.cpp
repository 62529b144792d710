// Products with packed weights are those with the weights as they lie.
#include "compiler/frontends/ggml/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "compiler/frontends/ggml/importer.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Tensor;

constexpr int64_t kN = 19, kRows = 17;

// Whole blocks; of floats no multiple of the eight that are transposed together.
int64_t KOf(const TypeInfo& type) {
    return type.is_quantised() ? 256 : 253;
}

Graph Product(const TypeInfo& type, bool is_weights) {
    const auto tensor = [](const TypeInfo& of, int64_t ne0, int64_t ne1, uint32_t storage) {
        ggml_frontend::Tensor made;
        made.type = &of;
        made.ne = {ne0, ne1, 1, 1};
        made.nb[0] = static_cast<uint64_t>(of.block_bytes);
        made.nb[1] = static_cast<uint64_t>(ne0 / of.block_elements * of.block_bytes);
        made.nb[2] = made.nb[3] = made.nb[1] * static_cast<uint64_t>(ne1);
        made.storage = storage;
        return made;
    };
    const TypeInfo& f32 = *FindType("f32");
    Graph graph;
    graph.tensors = {tensor(type, KOf(type), kN, 0), tensor(f32, KOf(type), kRows, 1),
                     tensor(f32, kN, kRows, 2)};
    graph.tensors[2].operation = "MUL_MAT";
    graph.tensors[2].sources = {0, 1};
    graph.nodes = {2};
    for (const ggml_frontend::Tensor& one : graph.tensors) {
        Storage storage;
        storage.type = one.type;
        storage.ne = one.ne;
        graph.storages.push_back(storage);
    }
    graph.storages[0].is_weights = is_weights;
    return graph;
}

// Random bytes whose scales are finite numbers.
std::vector<uint8_t> RandomRows(const TypeInfo& type) {
    std::mt19937 random(3);
    const int64_t blocks = kN * KOf(type) / type.block_elements;
    std::vector<uint8_t> bytes(static_cast<size_t>(blocks * type.block_bytes));
    for (uint8_t& byte : bytes) {
        byte = static_cast<uint8_t>(random());
    }
    const auto set_half = [&](size_t at) { bytes[at + 1] = 0x30 | (bytes[at + 1] & 0x83); };
    for (int64_t block = 0; block < blocks; ++block) {
        const auto at = static_cast<size_t>(block * type.block_bytes);
        if (type.element == ElementType::kF32) {
            const auto value = static_cast<float>(random() % 1000) / 500 - 1;
            std::memcpy(&bytes[at], &value, sizeof(value));
        } else if (!type.is_quantised()) {
            set_half(at);
        } else if (type.name == "q6_K") {
            set_half(at + 208);
        } else if (type.name == "q3_K") {
            set_half(at + 108);
        } else if (type.name == "q2_K") {
            set_half(at + 80);
            set_half(at + 82);
        } else {
            set_half(at);
            const bool two = type.name == "q4_1" || type.name == "q5_1" || type.name == "q4_K" ||
                             type.name == "q5_K";
            if (two) {
                set_half(at + 2);
            }
        }
    }
    return bytes;
}

Tensor Bytes(ElementType element, std::vector<int64_t> dims, const std::vector<uint8_t>& bytes) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(element, std::move(dims), &data);
    EXPECT_EQ(tensor.data->size(), bytes.size());
    std::memcpy(data, bytes.data(), bytes.size());
    return tensor;
}

// The product of rows of weights with others, packed and as it lies.
void CheckProducts(const TypeInfo& type, const std::vector<uint8_t>& rows) {
    ASSERT_TRUE(IsPacked(type, KOf(type), kN));
    std::vector<std::vector<uint8_t>> parts;
    PackTarget to = {};
    for (size_t i = 0; i < kParts; ++i) {
        parts.emplace_back(PackBytes(type, static_cast<Part>(i), KOf(type), kN));
        to[i] = parts[i].empty() ? nullptr : parts[i].data();
    }
    Pack(type, rows.data(), KOf(type), kN, to);
    std::vector<float> numbers(static_cast<size_t>(KOf(type) * kRows));
    std::mt19937 random(5);
    for (float& number : numbers) {
        number = static_cast<float>(random() % 1000) / 500 - 1;
    }
    const Tensor x = Tensor::FromFloats({1, 1, kRows, KOf(type)}, numbers);

    std::vector<Tensor> results;
    for (const bool packed : {false, true}) {
        const Result<ImportedGraph> imported = Import(Product(type, packed), "test");
        ASSERT_TRUE(imported.ok()) << imported.error().message;
        std::vector<Tensor> inputs;
        for (size_t i = 0; i < imported->inputs.size(); ++i) {
            const ImportedGraph::Input& input = imported->inputs[i];
            if (input.storage == 1) {
                inputs.push_back(x);
                continue;
            }
            EXPECT_EQ(input.part != Part::kWhole, packed);
            const graph::TensorType& of = imported->graph.TypeOf(imported->graph.inputs()[i]);
            inputs.push_back(
                Bytes(of.element, *of.shape.Constants(),
                      input.part == Part::kWhole ? rows : parts[static_cast<size_t>(input.part)]));
        }
        const Result<std::vector<Tensor>> outputs = graph::Interpret(imported->graph, inputs);
        ASSERT_TRUE(outputs.ok()) << outputs.error().message;
        results.push_back((*outputs)[0]);
    }
    double squares = 0, errors = 0;
    for (int64_t i = 0; i < kN * kRows; ++i) {
        const double right = results[0].At(i).number, error = results[1].At(i).number - right;
        squares += right * right;
        errors += error * error;
    }
    ASSERT_GT(squares, 0);
    // Quantised weights are multiplied by bytes: ggml allows itself 5e-4.
    EXPECT_LT(errors / squares, type.is_quantised() ? 1e-4 : 1e-10);
}

class PackTest : public testing::TestWithParam<const char*> {};

TEST_P(PackTest, ProductsAreTheSame) {
    const TypeInfo& type = *FindType(GetParam());
    CheckProducts(type, RandomRows(type));
}

// Products of a block's scale with integers of a group are beyond what f16 holds.
TEST(Pack, ScalesBeyondF16AreKept) {
    const TypeInfo& type = *FindType("q4_K");
    std::vector<uint8_t> rows = RandomRows(type);
    for (size_t block = 0; block < kN; ++block) {
        const uint8_t greatest[] = {0xFF, 0x7B, 0xFF, 0x7B};  // 65504
        std::memcpy(rows.data() + block * static_cast<size_t>(type.block_bytes), greatest, 4);
    }
    CheckProducts(type, rows);
}

Graph ProductOfRows(const char* type, int64_t rows, bool in_place) {
    Graph graph = Product(*FindType(type), true);
    for (const size_t index : {size_t{1}, size_t{2}}) {
        graph.tensors[index].ne[1] = graph.storages[index].ne[1] = rows;
    }
    graph.in_place = in_place;
    return graph;
}

bool ReadsPack(const char* type, int64_t rows, bool in_place) {
    const Graph graph = ProductOfRows(type, rows, in_place);
    const Result<ImportedGraph> imported = Import(graph, "test");
    EXPECT_TRUE(imported.ok());
    EXPECT_EQ(MostRowsOfWeights(graph), rows);
    return std::any_of(imported->inputs.begin(), imported->inputs.end(),
                       [](const auto& input) { return input.part != Part::kWhole; });
}

// The first product of a short prompt need not wait for packs of these types.
TEST(Pack, FewRowsMayReadMatricesWhereTheyLie) {
    for (const char* type : {"f16", "bf16", "q8_0"}) {
        for (const int64_t rows : {1, 2, 16}) {
            EXPECT_TRUE(ReadsPack(type, rows, false)) << type;
            EXPECT_FALSE(ReadsPack(type, rows, true)) << type;
        }
        EXPECT_TRUE(ReadsPack(type, 17, true)) << type;
    }
    for (const char* type : {"f32", "q4_0"}) {
        EXPECT_TRUE(ReadsPack(type, 2, true)) << type;
    }
}

TEST(Pack, MatricesInPlaceAreWeightsThatTheGraphKeeps) {
    using Storages = std::vector<uint32_t>;
    EXPECT_EQ(MatricesInPlace(ProductOfRows("q8_0", 2, false)), Storages({0}));
    Graph graph = ProductOfRows("f16", 2, false);
    graph.storages[0].is_weights = false;
    EXPECT_EQ(MatricesInPlace(graph), Storages());
    // A row of the matrix is written.
    graph = ProductOfRows("f16", 2, false);
    graph.tensors.push_back(graph.tensors[0]);
    graph.tensors[3].operation = "SET_ROWS";
    graph.nodes = {3, 2};
    EXPECT_EQ(MatricesInPlace(graph), Storages());
    // Another product has many rows.
    graph = ProductOfRows("f16", 2, false);
    graph.tensors.push_back(graph.tensors[2]);
    graph.tensors[3].ne[1] = 17;
    graph.nodes = {2, 3};
    EXPECT_EQ(MatricesInPlace(graph), Storages());
}

TEST(Pack, ProductsWithMatricesInPlaceAreTheSame) {
    for (const char* name : {"f16", "bf16", "q8_0"}) {
        const TypeInfo& type = *FindType(name);
        constexpr int64_t kFewRows = 9;
        const std::vector<uint8_t> rows = RandomRows(type);
        std::vector<float> numbers(static_cast<size_t>(KOf(type) * kFewRows));
        std::mt19937 random(5);
        for (float& number : numbers) {
            number = static_cast<float>(random() % 1000) / 500 - 1;
        }
        std::vector<Tensor> results;
        for (const bool in_place : {false, true}) {
            Graph graph = ProductOfRows(name, kFewRows, in_place);
            graph.storages[0].is_weights = in_place;
            const Result<ImportedGraph> imported = Import(graph, "test");
            ASSERT_TRUE(imported.ok()) << imported.error().message;
            std::vector<Tensor> inputs;
            for (size_t i = 0; i < imported->inputs.size(); ++i) {
                const graph::TensorType& of = imported->graph.TypeOf(imported->graph.inputs()[i]);
                inputs.push_back(imported->inputs[i].storage == 1
                                     ? Tensor::FromFloats(*of.shape.Constants(), numbers)
                                     : Bytes(of.element, *of.shape.Constants(), rows));
            }
            const Result<std::vector<Tensor>> outputs = graph::Interpret(imported->graph, inputs);
            ASSERT_TRUE(outputs.ok()) << outputs.error().message;
            results.push_back((*outputs)[0]);
        }
        for (int64_t i = 0; i < kN * kFewRows; ++i) {
            const double right = results[0].At(i).number;
            ASSERT_NEAR(results[1].At(i).number, right, 1e-3 + 1e-4 * std::abs(right)) << name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         PackTest,
                         testing::Values("f32",
                                         "f16",
                                         "bf16",
                                         "q4_0",
                                         "q4_1",
                                         "q5_0",
                                         "q5_1",
                                         "q8_0",
                                         "q2_K",
                                         "q3_K",
                                         "q4_K",
                                         "q5_K",
                                         "q6_K"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fornax::ggml_frontend
