// FX graphs as files: what they compute, and what is said of those that are wrong.
#include "compiler/frontends/torch/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/frontends/torch/test_program.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/ir/text.h"

namespace fornax::torch_frontend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ImportedGraph> Import(const TestProgram& program,
                             std::span<const uint8_t> weights = {},
                             const ImportOptions& options = {}) {
    FORNAX_ASSIGN_OR_RETURN(const GraphFile file,
                            ReadGraphFile(ToBytes(FileOf(program.program, weights)), "net", ""));
    return ImportGraph(file, "net", options);
}

std::vector<float> FloatsOf(const graph::Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.count()));
    std::memcpy(values.data(), tensor.data->data(), tensor.data->size());
    return values;
}

std::string MessageOf(const TestProgram& program, std::span<const uint8_t> weights = {}) {
    const Result<ImportedGraph> result = Import(program, weights);
    return result.ok() ? "" : result.error().message;
}

// relu(x W + b) with W and b in the file.
TestProgram Layer() {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {1, 2}));
    const uint32_t w = p.Value("w", {2, 2}), b = p.Value("b", {2});
    p.AsWeight(w, 0, 16);
    p.AsWeight(b, 64, 8);
    const uint32_t sum = p.Value("addmm", {1, 2}), y = p.Value("relu", {1, 2});
    p.Node("aten.addmm.default", {sum}, p.Tensor("self", b), p.Tensor("mat1", x),
           p.Tensor("mat2", w), p.Int("beta", 1), p.Int("alpha", 1));
    p.Node("aten.relu.default", {y}, p.Tensor("self", sum));
    p.AsOutput(y);
    return p;
}

std::vector<uint8_t> LayerWeights() {
    const float w[] = {1, 2, 3, 4}, b[] = {10, -100};
    std::vector<uint8_t> weights(128);
    std::memcpy(weights.data(), w, sizeof w);
    std::memcpy(weights.data() + 64, b, sizeof b);
    return weights;
}

TEST(Importer, ComputesALayer) {
    const Result<ImportedGraph> imported = Import(Layer(), LayerWeights());
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    ASSERT_TRUE(graph::Verify(imported->graph).ok());
    const std::vector<float> x = {1, 2};
    const Result<std::vector<graph::Tensor>> results = graph::Interpret(
        imported->graph, std::vector<graph::Tensor>{graph::Tensor::FromFloats({1, 2}, x)});
    ASSERT_TRUE(results.ok()) << results.error().message;
    EXPECT_THAT(FloatsOf((*results)[0]), ElementsAre(17, 0));
}

TEST(Importer, KeepsSizesAsSymbols) {
    TestProgram p;
    const uint32_t n = p.Symbol("s0", 4);
    const uint32_t x = p.AsInput(p.ValueOf("x", {n, p.Constant(3)}));
    const uint32_t y = p.ValueOf("view", {p.Operation(SizeKind::kMul, n, p.Constant(3))});
    p.Node("aten.view.default", {y}, p.Tensor("self", x));
    p.AsOutput(y);
    ImportOptions options;
    options.input_shapes["x"] = {7, 3};
    const Result<ImportedGraph> imported = Import(p, {}, options);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    EXPECT_EQ(imported->graph.TypeOf(imported->graph.outputs()[0].value).ToString(), "f32[3*s0]");
    EXPECT_EQ(imported->graph.sizes().hints().at(graph::Symbol("s0")), 7);
}

// All nodes that are not supported are told at once, with counts and lines.
TEST(Importer, TellsAllThatIsNotSupported) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {2}));
    const uint32_t a = p.Value("a", {2}), b = p.Value("b", {2}), c = p.Value("c", {2});
    p.Node("aten.frobnicate.default", {a}, p.Tensor("self", x));
    p.Node("aten.frobnicate.default", {b}, p.Tensor("self", a));
    p.Node("aten.select.int", {c}, p.Tensor("self", b), p.Int("dim", 5), p.Int("index", 0));
    p.AsOutput(c);
    const std::string message = MessageOf(p);
    EXPECT_THAT(message, HasSubstr("2 nodes as a (aten.frobnicate.default) at model.py:1: Fornax "
                                   "does not have this operator"));
    EXPECT_THAT(message, HasSubstr("the node c (aten.select.int) at model.py:3: the axis 5 is not "
                                   "in -1..0"));
    const Result<GraphFile> file = ReadGraphFile(ToBytes(FileOf(p.program)), "net", "");
    std::vector<std::string> reasons;
    const Result<std::vector<uint32_t>> nodes = UnsupportedNodes(*file, "net", &reasons);
    ASSERT_TRUE(nodes.ok());
    EXPECT_THAT(*nodes, ElementsAre(0, 1, 2));
    EXPECT_THAT(reasons[2], HasSubstr("the axis 5"));
}

TEST(Importer, RefusesResultsOfAnotherShape) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {2}));
    const uint32_t y = p.Value("y", {3});
    p.Node("aten.relu.default", {y}, p.Tensor("self", x));
    p.AsOutput(y);
    EXPECT_THAT(MessageOf(p), HasSubstr("its result is f32[2], where the file says f32[3]"));
}

TEST(Importer, RefusesReferencesToNothing) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {2}));
    const uint32_t y = p.Value("y", {2});
    p.Node("aten.relu.default", {y}, p.Tensor("self", 77));
    p.AsOutput(y);
    (void)x;
    EXPECT_THAT(MessageOf(p), HasSubstr("it uses the value 77"));
    p.program.nodes.clear();
    EXPECT_THAT(MessageOf(p), HasSubstr("its output y is not a value"));
    p.program.outputs.clear();
    p.program.values[0]->dims = {99};
    EXPECT_THAT(MessageOf(p), HasSubstr("it uses the size 99"));
}

TEST(Importer, RefusesWeightsOutsideOfTheFile) {
    EXPECT_THAT(MessageOf(Layer(), {}), HasSubstr("the weight w"));
    TestProgram p = Layer();
    p.program.weights[1]->offset = UINT64_MAX - 63;
    EXPECT_THAT(MessageOf(p, LayerWeights()), HasSubstr("the weight b"));
}

// Each size doubles the one before; written out they would have 2^64 terms.
TEST(Importer, RefusesSizesThatGrowBeyondMeasure) {
    TestProgram p;
    uint32_t size = p.Operation(SizeKind::kAdd, p.Symbol("a", 1), p.Symbol("b", 1));
    for (int i = 0; i < 64; ++i) {
        size = p.Operation(SizeKind::kMul, size, size);
    }
    EXPECT_THAT(MessageOf(p), HasSubstr("operations"));
}

TEST(Importer, GuardsSayForWhichSizesAGraphIs) {
    TestProgram p;
    const uint32_t n = p.Symbol("s0", 4);
    auto guard = std::make_unique<stored::GuardT>();
    guard->relation = static_cast<uint8_t>(graph::Relation::kLess);
    guard->a = n;
    guard->b = p.Constant(8);
    p.program.guards.push_back(std::move(guard));
    p.AsOutput(p.AsInput(p.ValueOf("x", {n})));
    const Result<ImportedGraph> imported = Import(p);
    ASSERT_TRUE(imported.ok());
    ASSERT_EQ(imported->graph.sizes().guards().size(), 1U);
    EXPECT_EQ(imported->graph.sizes().guards()[0].ToString(), "s0 < 8");
    ImportOptions options;
    options.dims["s0"] = 9;
    EXPECT_FALSE(Import(p, {}, options).ok());
}

// There are names for the scales of three axes.
TEST(Importer, RefusesToResizeManyAxes) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {1, 1, 2, 2, 2, 2}));
    const uint32_t y = p.Value("y", {1, 1, 4, 4, 4, 4});
    p.Node("aten.upsample_nearest3d.default", {y}, p.Tensor("self", x));
    p.AsOutput(y);
    EXPECT_THAT(MessageOf(p), HasSubstr("[1,1,2,2,2,2] is to become"));
}

TEST(Importer, RefusesImagesOfFewerSizesThanTheWindow) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {1, 4, 4})), y = p.Value("col2im", {1, 1, 3, 3});
    p.Node("aten.col2im.default", {y}, p.Tensor("self", x), p.Ints("output_size", {3}),
           p.Ints("kernel_size", {2, 2}), p.Ints("dilation", {1, 1}), p.Ints("padding", {0, 0}),
           p.Ints("stride", {1, 1}));
    p.AsOutput(y);
    EXPECT_THAT(MessageOf(p), HasSubstr("the image has 1 sizes, the window 2"));
}

TEST(Importer, RefusesMeansOfBools) {
    using graph::ElementType;
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {4}, ElementType::kBool));
    const uint32_t index = p.AsInput(p.Value("index", {4}, ElementType::kI64));
    const uint32_t y = p.Value("scattered", {4}, ElementType::kBool);
    auto reduce = TestProgram::Make("reduce", ArgumentKind::kText);
    reduce->text = "mean";
    auto include = TestProgram::Make("include_self", ArgumentKind::kBool);
    p.Node("aten.scatter_reduce.two", {y}, p.Tensor("self", x), p.Int("dim", 0),
           p.Tensor("index", index), p.Tensor("src", x), std::move(reduce), std::move(include));
    p.AsOutput(y);
    EXPECT_THAT(MessageOf(p), HasSubstr("it reduces bool by mean"));
}

TEST(Importer, RefusesSizesWhoseNamesAreNoIdentifiers) {
    TestProgram p;
    p.AsOutput(p.AsInput(p.ValueOf("x", {p.Symbol(std::string("s\0'", 3), 4)})));
    EXPECT_THAT(MessageOf(p), HasSubstr("the name of its size 0 is no identifier"));
}

TEST(Importer, RefusesSizesThatNoInputTells) {
    TestProgram p;
    const uint32_t n = p.Symbol("s0", 4);
    const uint32_t x = p.AsInput(p.Value("x", {1}));
    const uint32_t y = p.ValueOf("expand", {n});
    p.Node("aten.expand.default", {y}, p.Tensor("self", x), p.Ints("size", {4}));
    p.AsOutput(y);
    EXPECT_THAT(MessageOf(p), HasSubstr("no dimension of an input is the size s0"));
}

TEST(Importer, InputsThatChangeBecomeOutputs) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("cache", {2}));
    const uint32_t y = p.Value("y", {2});
    p.Node("aten.relu.default", {y}, p.Tensor("self", x));
    auto mutation = std::make_unique<stored::MutationT>();
    mutation->input = 0;
    mutation->value = y;
    p.program.mutations.push_back(std::move(mutation));
    const Result<ImportedGraph> imported = Import(p);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    EXPECT_EQ(imported->graph.outputs()[0].name, "mutated.cache");
}

TEST(Importer, InputsThatChangeInPlaceAreStates) {
    TestProgram p;
    const uint32_t x = p.AsInput(p.Value("x", {2}));
    const uint32_t cache = p.AsInput(p.Value("cache", {2})), y = p.Value("y", {2});
    p.Node("aten.mul.Tensor", {y}, p.Tensor("self", cache), p.Tensor("other", x));
    auto mutation = std::make_unique<stored::MutationT>();
    mutation->input = 1;
    mutation->value = y;
    mutation->in_place = true;
    p.program.mutations.push_back(std::move(mutation));
    const Result<ImportedGraph> imported = Import(p);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    EXPECT_EQ(imported->graph.inputs().size(), 1u);
    EXPECT_TRUE(imported->graph.outputs().empty());
    EXPECT_THAT(graph::ToText(imported->graph), HasSubstr("{state = \"cache\"}"));

    const Result<GraphFile> file = ReadGraphFile(ToBytes(FileOf(p.program)), "net", "");
    ASSERT_TRUE(file.ok());
    const Result<GraphPorts> ports = ReadGraphPorts(*file, "net");
    ASSERT_TRUE(ports.ok());
    EXPECT_THAT(ports->names, ElementsAre("x"));
    EXPECT_EQ(ports->output_count, 0u);
}

TEST(Importer, StatesHaveNamesOfTheirOwn) {
    TestProgram p;
    for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t cache = p.AsInput(p.Value("cache", {2 + i}));
        auto mutation = std::make_unique<stored::MutationT>();
        mutation->input = i;
        mutation->value = cache;
        mutation->in_place = true;
        p.program.mutations.push_back(std::move(mutation));
    }
    EXPECT_THAT(MessageOf(p), HasSubstr("two inputs that change in place are called cache"));
}

TEST(Importer, StatesHaveSizesThatAreNumbers) {
    TestProgram p;
    const uint32_t cache = p.AsInput(p.ValueOf("cache", {p.Symbol("s0", 4)}));
    auto mutation = std::make_unique<stored::MutationT>();
    mutation->value = cache;
    mutation->in_place = true;
    p.program.mutations.push_back(std::move(mutation));
    EXPECT_THAT(MessageOf(p), HasSubstr("the input cache, which changes in place, is f32[s0]"));
}

TEST(GraphFile, RefusesDamage) {
    const std::vector<uint8_t> whole = FileOf(Layer().program, LayerWeights());
    for (size_t size = 0; size < whole.size(); ++size) {
        std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<int64_t>(size));
        EXPECT_FALSE(ReadGraphFile(ToBytes(part), "net", "").ok()) << size;
    }
    std::vector<uint8_t> changed = whole;
    changed[kHeaderBytes + 9] ^= 1;
    const auto damaged = ReadGraphFile(ToBytes(changed), "net", "");
    ASSERT_FALSE(damaged.ok());
    EXPECT_EQ(damaged.error().code, ErrorCode::kDataLoss);
    changed = whole;
    changed[8] = 2;
    const auto newer = ReadGraphFile(ToBytes(changed), "net", "");
    ASSERT_FALSE(newer.ok());
    EXPECT_THAT(newer.error().message, HasSubstr("has version 2"));
}

// The file of Layer() in pieces that end at these bytes of its weights.
Result<GraphFile> InPieces(const std::vector<size_t>& ends) {
    const std::vector<uint8_t> whole = FileOf(Layer().program, LayerWeights());
    std::vector<graph::Bytes> pieces;
    size_t begin = 0;
    for (const size_t end : ends) {
        const size_t last = whole.size() - LayerWeights().size() + end;
        pieces.push_back(ToBytes({whole.begin() + static_cast<int64_t>(begin),
                                  whole.begin() + static_cast<int64_t>(last)}));
        begin = last;
    }
    return ReadGraphFile(pieces[0], "net", "", std::span(pieces).subspan(1));
}

TEST(GraphFile, WeightsMayLieInPieces) {
    for (const std::vector<size_t>& ends : std::vector<std::vector<size_t>>{
             {0, 128}, {0, 64, 128}, {0, 16, 64, 72, 128}, {64, 128}, {0, 0, 128, 128}}) {
        const Result<GraphFile> file = InPieces(ends);
        ASSERT_TRUE(file.ok()) << file.error().message;
        const Result<ImportedGraph> in_pieces = ImportGraph(*file, "net", {});
        const Result<ImportedGraph> whole = Import(Layer(), LayerWeights());
        ASSERT_TRUE(in_pieces.ok() && whole.ok());
        EXPECT_EQ(graph::ToText(in_pieces->graph), graph::ToText(whole->graph));
    }
    // A weight of 16 bytes ends in another piece than it begins in.
    const Result<ImportedGraph> split = ImportGraph(*InPieces({0, 8, 128}), "net", {});
    ASSERT_FALSE(split.ok());
    EXPECT_THAT(split.error().message, HasSubstr("the weight w"));
    EXPECT_FALSE(InPieces({0, 64}).ok());
}

// The checksum is that of zlib, which the writer uses.
// All behind the first word lies four bytes later, and so do sizes, which have numbers of 64 bits.
TEST(GraphFile, RefusesSizesThatAreNotAligned) {
    TestProgram p;
    p.AsOutput(p.AsInput(p.Value("x", {3})));
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(stored::Program::Pack(builder, &p.program));
    std::vector<uint8_t> structure(builder.GetBufferPointer(),
                                   builder.GetBufferPointer() + builder.GetSize());
    ASSERT_TRUE(ReadGraphFile(ToBytes(FileWith(structure)), "net", "").ok());
    uint32_t root = 0;
    std::memcpy(&root, structure.data(), sizeof root);
    root += sizeof root;
    structure.insert(structure.begin(), sizeof root, 0);
    std::memcpy(structure.data(), &root, sizeof root);
    const Result<GraphFile> file = ReadGraphFile(ToBytes(FileWith(structure)), "net", "");
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.error().message, HasSubstr("its sizes are not aligned"));
}

TEST(GraphFile, ChecksumIsThatOfZlib) {
    const std::string text = "123456789";
    EXPECT_EQ(Crc32({reinterpret_cast<const uint8_t*>(text.data()), text.size()}), 0xcbf43926U);
}

TEST(OperatorTable, NoOperatorIsThereTwice) {
    std::set<std::string> names;
    for (const std::span<const OperatorEntry> family : OperatorFamilies()) {
        for (const OperatorEntry& entry : family) {
            EXPECT_TRUE(names.insert(std::string(entry.name)).second) << entry.name;
            EXPECT_EQ(FindOperator("aten." + std::string(entry.name)), entry.import);
        }
    }
    EXPECT_EQ(FindOperator("prims.relu.default"), nullptr);
}

}  // namespace
}  // namespace fornax::torch_frontend
