// Which values lie in memory, and how kernels are mapped: by the kernels of small graphs.
#include "compiler/graph/schedule/schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/input_gradient.h"
#include "compiler/graph/build/weight_gradient.h"
#include "compiler/graph/ir/text.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/product_tiles.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph {
namespace {

using testing::ElementsAre;

// "product [64,100] exp": the mapping of each kernel, the shape of what it writes, and the costly
// functions in it.
std::vector<std::string> KernelsOf(const std::string& text) {
    const Result<Graph> graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    const Result<Plan> plan = graph.ok() ? Schedule(*graph) : Result<Plan>(graph.error());
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    std::vector<std::string> kernels;
    if (!plan.ok()) {
        return kernels;
    }
    for (const auto& step : plan->steps) {
        const loop::Kernel& kernel =
            plan->kernels[std::get<DispatchStep>(step).kernel.value()].loop;
        std::string said = kernel.mapping == loop::Mapping::kFlat  ? "flat"
                           : kernel.mapping == loop::Mapping::kRow ? "row"
                                                                   : "product";
        for (const loop::Buffer& buffer : kernel.buffers) {
            said += buffer.written ? " " + buffer.type.shape.ToString() : "";
        }
        for (const loop::ScalarNode& scalar : kernel.scalars) {
            const auto* map = std::get_if<loop::Map>(&scalar.value);
            if (map != nullptr && IsTranscendental(map->function)) {
                said += fmt::format(" {}", Name(map->function));
            }
        }
        kernels.push_back(said);
    }
    return kernels;
}

// Windows that lie side by side are columns of a product, also where what follows sees an image.
TEST(Schedule, WindowsSideBySideAreColumns) {
    const Result<Graph> graph = ParseGraph(R"(graph "up" {
    %0 = input "x" f32[1,16,24,12]
    %1 = input "w" f32[16,2,3,20]
    %2 = input "b" f32[1,1,1,20]
    %3 = contract "up" (%0, %1) {a = "ncij", b = "cuvo", result = "niujvo", accumulate = f32} : f32[1,24,2,12,3,20]
    %4 = reshape "image" (%3) {shape = [1,48,36,20]} : f32[1,48,36,20]
    %5 = broadcast "bias" (%2) {shape = [1,48,36,20]} : f32[1,48,36,20]
    %6 = map "sum" (%4, %5) {function = add} : f32[1,48,36,20]
    output "y" %6
}
)");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Result<Plan> plan = Schedule(*graph);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_EQ(plan->kernels.size(), 1u);
    const loop::Kernel& kernel = plan->kernels[0].loop;
    EXPECT_EQ(kernel.mapping, loop::Mapping::kProduct);
    const std::optional<loop::Product> product = loop::FindProduct(kernel, loop::FindScope(kernel));
    ASSERT_TRUE(product);
    EXPECT_THAT(product->batch, testing::IsEmpty());
    EXPECT_EQ(loop::PointsOf(product->m), Expr(24 * 12));
    EXPECT_EQ(loop::PointsOf(product->n), Expr(2 * 3 * 20));
}

// How many products a graph has. Both operands of each are matrices in memory: nothing is staged.
int ProductsOfMatricesInMemory(const Graph& graph) {
    const Result<Plan> plan = Schedule(graph);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    int products = 0;
    for (const PlanStep& step : plan.ok() ? plan->steps : decltype(plan->steps)()) {
        const loop::Kernel& kernel =
            plan->kernels[std::get<DispatchStep>(step).kernel.value()].loop;
        if (kernel.mapping != loop::Mapping::kProduct) {
            continue;
        }
        ++products;
        const loop::Scope scope = loop::FindScope(kernel);
        const std::optional<loop::Product> product = loop::FindProduct(kernel, scope);
        EXPECT_TRUE(product);
        if (!product) {
            continue;
        }
        Domain domain;
        for (const loop::Loop& loop : scope.variables) {
            domain.AddVariable(loop.variable, loop.extent);
        }
        EXPECT_TRUE(loop::FindTileAccess(kernel, domain, product->a, product->m, product->k));
        EXPECT_TRUE(loop::FindTileAccess(kernel, domain, product->b, product->n, product->k));
    }
    return products;
}

TEST(Schedule, GradientsByWeightsAreProductsOfMatricesInMemory) {
    for (const int64_t stride : {1, 2}) {
        for (const WeightGradientForm form :
             {WeightGradientForm::kPlanes, WeightGradientForm::kWindowCopies,
              WeightGradientForm::kWinograd}) {
            if (form == WeightGradientForm::kWinograd && stride != 1) {
                continue;
            }
            Graph graph;
            Builder b(graph);
            const int64_t size = 16 / stride;
            const Val g = b.Input("g", {ElementType::kF32, Shape{2, 32, size, size}});
            const Val x = b.Input("x", {ElementType::kF32, Shape{2, 48, 16, 16}});
            const SpatialWindow window = {{3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}};
            const std::optional<Val> y = WeightGradientOf(form, g, x, window);
            ASSERT_TRUE(y);
            graph.AddOutput("y", y->id());
            graph.Compact();
            EXPECT_EQ(ProductsOfMatricesInMemory(graph),
                      form == WeightGradientForm::kPlanes ? 3 : 1);
        }
    }
}

TEST(Schedule, GradientsByImagesAreProductsOfMatricesInMemory) {
    for (const int64_t stride : {1, 2}) {
        Graph graph;
        Builder b(graph);
        const int64_t size = 8 / stride;
        const Val g = b.Input("g", {ElementType::kF32, Shape{2, 64, size, size}});
        const Val w = b.Input("w", {ElementType::kF32, Shape{64, 32, 3, 3}});
        const SpatialWindow window = {{3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}};
        const std::optional<Val> y = WindowSumInputGradient(g, w, window, Shape{2, 32, 8, 8});
        ASSERT_TRUE(y);
        graph.AddOutput("y", y->id());
        EXPECT_EQ(ProductsOfMatricesInMemory(graph), 1);
    }
}

// Weights that are many beside the places are read as they lie.
TEST(Schedule, InputGradientsOfSmallImagesAreSumsOfWindows) {
    for (const int64_t stride : {1, 2}) {
        for (const int64_t size : {4, 16}) {
            Graph graph;
            Builder b(graph);
            const Val g = b.Input("g", {ElementType::kF32, Shape{4, 256, size, size}});
            const Val w = b.Input("w", {ElementType::kF32, Shape{256, 128, 3, 3}});
            const SpatialWindow window = {{3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}};
            EXPECT_EQ(IsWindowSumFaster(g, w, window), stride == 2 || size == 4);
        }
    }
}

// Small images have so many zeros around them that windows are copied, and so many weights beside
// places that transforms do not pay.
TEST(Schedule, GradientsByWeightsHaveFormsOfTheirSizes) {
    const auto form = [](int64_t channels, int64_t outputs, int64_t size, int64_t stride,
                         ElementType element = ElementType::kF32) {
        Graph graph;
        Builder b(graph);
        const int64_t image = size * stride;
        const Val g = b.Input("g", {element, Shape{4, outputs, size, size}});
        const Val x = b.Input("x", {element, Shape{4, channels, image, image}});
        return FastestWeightGradient(g, x, {{3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}});
    };
    EXPECT_EQ(form(64, 64, 28, 1), WeightGradientForm::kWinograd);
    EXPECT_EQ(form(128, 128, 14, 1), WeightGradientForm::kWinograd);
    EXPECT_EQ(form(256, 256, 7, 1), WeightGradientForm::kWinograd);
    EXPECT_EQ(form(512, 512, 4, 1), WeightGradientForm::kWindowCopies);
    EXPECT_EQ(form(64, 128, 14, 2), WeightGradientForm::kPlanes);
    EXPECT_EQ(form(128, 16, 4, 1), WeightGradientForm::kConvolution);
    EXPECT_EQ(form(64, 64, 28, 1, ElementType::kF64), WeightGradientForm::kConvolution);
}

// Copies do not take a kernel for each image.
TEST(Schedule, CopiedWindowsOfManyImagesTakeAsManySteps) {
    std::vector<size_t> steps;
    for (const int64_t batch : {4, 64}) {
        Graph graph;
        Builder b(graph);
        const Val g = b.Input("g", {ElementType::kF32, Shape{batch, 128, 4, 4}});
        const Val x = b.Input("x", {ElementType::kF32, Shape{batch, 64, 4, 4}});
        const std::optional<Val> y =
            WindowCopyWeightGradient(g, x, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
        ASSERT_TRUE(y);
        graph.AddOutput("y", y->id());
        EXPECT_EQ(ProductsOfMatricesInMemory(graph), 1);
        const Result<Plan> plan = Schedule(graph);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        steps.push_back(plan->steps.size());
    }
    EXPECT_EQ(steps[0], steps[1]);
}

// A matrix whose rows lie as weights that nobody has packed do, times a few vectors.
TEST(Schedule, FewRowsTimesRowsOfAMatrixAreAProduct) {
    for (const int rows : {1, 3}) {
        EXPECT_THAT(KernelsOf(fmt::format(R"(graph "vectors" {{
    %0 = input "x" f32[{0},512]
    %1 = input "w" f32[64,512]
    %2 = contract "products" (%0, %1) {{a = "mk", b = "nk", result = "mn", accumulate = f32}} : f32[{0},64]
    output "y" %2
}}
)",
                                          rows)),
                    ElementsAre(fmt::format("product [{},64]", rows)));
    }
}

// Blocks are decoded in the product's kernel for all rows, and so is what their elements share.
TEST(Schedule, FewRowsTimesBlocksAreAProduct) {
    for (const int rows : {1, 9, 16}) {
        EXPECT_THAT(KernelsOf(fmt::format(R"(graph "blocks" {{
    %0 = input "x" f32[{0},16,32]
    %1 = input "w" u8[64,16,34]
    %2 = slice "bytes" (%1) {{starts = [0,0,2], steps = [1,1,1], shape = [64,16,32]}} : u8[64,16,32]
    %3 = bitcast "codes" (%2) {{to = i8}} : i8[64,16,32]
    %4 = cast "numbers" (%3) {{to = f32}} : f32[64,16,32]
    %5 = slice "exponent" (%1) {{starts = [0,0,1], steps = [1,1,1], shape = [64,16,1]}} : u8[64,16,1]
    %6 = cast "number" (%5) {{to = f32}} : f32[64,16,1]
    %7 = map "a" (%6, %6) {{function = mul}} : f32[64,16,1]
    %8 = map "b" (%7, %7) {{function = add}} : f32[64,16,1]
    %9 = map "c" (%8, %8) {{function = mul}} : f32[64,16,1]
    %10 = broadcast "scale" (%9) {{shape = [64,16,32]}} : f32[64,16,32]
    %11 = map "decoded" (%4, %10) {{function = mul}} : f32[64,16,32]
    %12 = contract "products" (%0, %11) {{a = "mbi", b = "nbi", result = "mn", accumulate = f32}} : f32[{0},64]
    output "y" %12
}}
)",
                                          rows)),
                    ElementsAre(fmt::format("product [{},64]", rows)));
    }
    // Tiles of many rows take them from memory.
    EXPECT_THAT(KernelsOf(R"(graph "many" {
    %0 = input "x" f32[64,16,32]
    %1 = input "w" u8[64,16,32]
    %2 = cast "numbers" (%1) {to = f32} : f32[64,16,32]
    %3 = map "a" (%2, %2) {function = mul} : f32[64,16,32]
    %4 = contract "products" (%0, %3) {a = "mbi", b = "nbi", result = "mn", accumulate = f32} : f32[64,64]
    output "y" %4
}
)"),
                ElementsAre("flat [64,16,32]", "product [64,64]"));
}

// Codes of few bits are taken apart in the kernel of a sum over blocks, once for a tile of rows.
// For many tiles they are in memory.
TEST(Schedule, BytesOfBlocksAreTakenApartInTheProduct) {
    const auto kernels = [](int rows) {
        return KernelsOf(fmt::format(R"(graph "blocks" {{
    %0 = input "x" i8[{0},32,2,2,4]
    %1 = input "w" u8[4,32,2,16,4]
    %2 = reshape "again" (%1) {{shape = [4,32,1,2,16,4]}} : u8[4,32,1,2,16,4]
    %3 = broadcast "codes" (%2) {{shape = [4,32,2,2,16,4]}} : u8[4,32,2,2,16,4]
    %4 = iota "half" () {{element = u8, shape = [4,32,2,2,16,4], axis = 2}} : u8[4,32,2,2,16,4]
    %5 = constant "bits" u8[1,1,1,1,1,1] {{4}}
    %6 = broadcast "four" (%5) {{shape = [4,32,2,2,16,4]}} : u8[4,32,2,2,16,4]
    %7 = map "place" (%4, %6) {{function = mul}} : u8[4,32,2,2,16,4]
    %8 = map "shifted" (%3, %7) {{function = shr}} : u8[4,32,2,2,16,4]
    %9 = constant "mask" u8[1,1,1,1,1,1] {{15}}
    %10 = broadcast "fifteen" (%9) {{shape = [4,32,2,2,16,4]}} : u8[4,32,2,2,16,4]
    %11 = map "nibble" (%8, %10) {{function = and}} : u8[4,32,2,2,16,4]
    %12 = contract "sums" (%0, %11) {{a = "mbhji", b = "pbhjci", result = "mpbc", accumulate = i32}} : i32[{0},4,32,16]
    %13 = cast "floats" (%12) {{to = f32}} : f32[{0},4,32,16]
    %14 = reduce "all" (%13) {{combine = sum, axes = [2]}} : f32[{0},4,16]
    output "y" %14
}}
)",
                                     rows));
    };
    for (const int rows : {1, 9, 12, 24}) {
        EXPECT_THAT(kernels(rows), ElementsAre(fmt::format("product [{},4,16]", rows)));
    }
    EXPECT_THAT(kernels(1024), ElementsAre("flat [4,32,2,2,16,4]", "product [1024,4,16]"));
}

// What two readers make of a sum of products is computed in the products' kernel.
TEST(Schedule, ActivationsOfSeveralReadersJoinTheReduction) {
    EXPECT_THAT(KernelsOf(R"(graph "excite" {
    %0 = input "x" f32[32,400]
    %1 = input "w" f32[64,32]
    %2 = contract "conv" (%1, %0) {a = "ck", b = "kn", result = "cn", accumulate = f32} : f32[64,400]
    %3 = map "sigmoid" (%2) {function = sigmoid} : f32[64,400]
    %4 = map "silu" (%2, %3) {function = mul} : f32[64,400]
    %5 = reduce "sum" (%4) {combine = sum, axes = [1]} : f32[64]
    %6 = reshape "column" (%5) {shape = [64,1]} : f32[64,1]
    %7 = broadcast "all" (%6) {shape = [64,400]} : f32[64,400]
    %8 = map "scaled" (%4, %7) {function = mul} : f32[64,400]
    output "y" %8
    output "s" %5
}
)"),
                ElementsAre("product [64,400] sigmoid", "row [64] [64,400]"));
}

// A concatenation copies: what its operands are made of joins their reductions.
TEST(Schedule, ActivationsBeforeAConcatenationJoinTheReduction) {
    EXPECT_THAT(
        KernelsOf(R"(graph "cat" {
    %0 = input "x" f32[32,400]
    %1 = input "w" f32[64,32]
    %2 = input "y" f32[16,400]
    %3 = input "z" f32[16,400]
    %4 = contract "conv" (%1, %0) {a = "ck", b = "kn", result = "cn", accumulate = f32} : f32[64,400]
    %5 = map "sigmoid" (%4) {function = sigmoid} : f32[64,400]
    %6 = map "silu" (%4, %5) {function = mul} : f32[64,400]
    %7 = concat "cat" (%6, %2, %3) {axis = 0} : f32[96,400]
    output "o" %7
}
)"),
        ElementsAre("product [64,400] sigmoid", "flat [96,400]", "flat [96,400]", "flat [96,400]"));
}

// The queries of an attention may be an integer product with scales: that keeps its kernel.
TEST(Schedule, QueriesOfAnAttentionKeepTheirSums) {
    EXPECT_THAT(KernelsOf(R"(graph "attention" {
    %0 = input "x" u8[2,32,64]
    %1 = input "w" i8[64,64]
    %2 = input "scale" f32[1,1,64]
    %3 = input "k" f32[2,32,64]
    %4 = input "v" f32[2,32,64]
    %5 = contract "product" (%0, %1) {a = "bmk", b = "kn", result = "bmn", accumulate = i32} : i32[2,32,64]
    %6 = cast "floats" (%5) {to = f32} : f32[2,32,64]
    %7 = broadcast "scales" (%2) {shape = [2,32,64]} : f32[2,32,64]
    %8 = map "q" (%6, %7) {function = mul} : f32[2,32,64]
    %9 = contract "scores" (%8, %3) {a = "bmk", b = "bnk", result = "bmn", accumulate = f32} : f32[2,32,32]
    %10 = reduce "max" (%9) {combine = max, axes = [2]} : f32[2,32]
    %11 = reshape "column" (%10) {shape = [2,32,1]} : f32[2,32,1]
    %12 = broadcast "maxima" (%11) {shape = [2,32,32]} : f32[2,32,32]
    %13 = map "less" (%9, %12) {function = sub} : f32[2,32,32]
    %14 = map "exp" (%13) {function = exp} : f32[2,32,32]
    %15 = reduce "sum" (%14) {combine = sum, axes = [2]} : f32[2,32]
    %16 = reshape "column2" (%15) {shape = [2,32,1]} : f32[2,32,1]
    %17 = broadcast "sums" (%16) {shape = [2,32,32]} : f32[2,32,32]
    %18 = map "probabilities" (%14, %17) {function = div} : f32[2,32,32]
    %19 = contract "values" (%18, %4) {a = "bmk", b = "bkn", result = "bmn", accumulate = f32} : f32[2,32,64]
    output "y" %19
}
)"),
                ElementsAre("flat [2,32,64]", "product [2,32,64] exp exp"));
}

// Numbers rounded to bytes in blocks, with the scale of each block and its sum.
std::string RoundedBlocks(int rows) {
    return fmt::format(R"(graph "blocks" {{
    %0 = input "x" f32[{0},64]
    %1 = map "magnitude" (%0) {{function = abs}} : f32[{0},64]
    %2 = reduce "scale" (%1) {{combine = max, axes = [1]}} : f32[{0}]
    %3 = reshape "column" (%2) {{shape = [{0},1]}} : f32[{0},1]
    %4 = broadcast "scales" (%3) {{shape = [{0},64]}} : f32[{0},64]
    %5 = map "part" (%0, %4) {{function = div}} : f32[{0},64]
    %6 = cast "code" (%5) {{to = i8}} : i8[{0},64]
    %7 = cast "number" (%6) {{to = f32}} : f32[{0},64]
    %8 = reduce "sum" (%7) {{combine = sum, axes = [1]}} : f32[{0}]
    output "scale" %2
    output "code" %6
    output "sum" %8
}}
)",
                       rows);
}

TEST(Schedule, ValuesOfTheSameRowsComeFromOneKernel) {
    EXPECT_THAT(KernelsOf(RoundedBlocks(64)), ElementsAre("row [64] [64,64] [64]"));
    // With many rows the sum reads the codes: computing them again would take longer.
    EXPECT_THAT(KernelsOf(RoundedBlocks(512)), ElementsAre("row [512] [512,64]", "row [512]"));
}

TEST(Schedule, AProductKeepsItsTiles) {
    EXPECT_THAT(KernelsOf(R"(graph "wide" {
    %0 = input "x" f32[512,512]
    %1 = input "y" f32[512,512]
    %2 = input "w" f32[512,512,4]
    %3 = contract "product" (%0, %1) {a = "mk", b = "kn", result = "mn", accumulate = f32} : f32[512,512]
    %4 = reshape "column" (%3) {shape = [512,512,1]} : f32[512,512,1]
    %5 = broadcast "all" (%4) {shape = [512,512,4]} : f32[512,512,4]
    %6 = map "scaled" (%2, %5) {function = mul} : f32[512,512,4]
    output "p" %3
    output "s" %6
}
)"),
                ElementsAre("product [512,512]", "flat [512,512,4]"));
}

// A sum that each row reads at another row's place is computed once, by a kernel of its own.
TEST(Schedule, SumsOfOtherRowsAreLoaded) {
    EXPECT_THAT(KernelsOf(R"(graph "shifted" {
    %0 = input "x" f32[64,128]
    %1 = input "y" f32[64,32]
    %2 = reduce "sum" (%0) {combine = sum, axes = [1]} : f32[64]
    %3 = slice "reversed" (%2) {starts = [63], steps = [-1], shape = [64]} : f32[64]
    %4 = reshape "column" (%3) {shape = [64,1]} : f32[64,1]
    %5 = broadcast "all" (%4) {shape = [64,32]} : f32[64,32]
    %6 = map "difference" (%1, %5) {function = sub} : f32[64,32]
    output "s" %2
    output "d" %6
}
)"),
                ElementsAre("row [64]", "flat [64,32]"));
}

TEST(Schedule, ASumThatAStateKeeps) {
    EXPECT_THAT(KernelsOf(R"(graph "kept" {
    %0 = input "x" f32[64,128]
    %1 = reduce "sum" (%0) {combine = sum, axes = [1]} : f32[64]
    write_state "keep" (%1) {state = "total"}
    output "s" %1
}
)"),
                ElementsAre("row [64]", "flat [64]"));
}

// What one kernel uses twice at a point it computes once.
TEST(Schedule, UsesInOneKernelAreOneRead) {
    EXPECT_THAT(KernelsOf(R"(graph "chain" {
    %0 = input "x" f32[64,400]
    %1 = map "a" (%0) {function = exp} : f32[64,400]
    %2 = map "b" (%1) {function = tanh} : f32[64,400]
    %3 = map "c" (%2) {function = sin} : f32[64,400]
    %4 = map "d" (%3) {function = log1p} : f32[64,400]
    %5 = map "e" (%4) {function = sigmoid} : f32[64,400]
    %6 = map "f" (%4, %5) {function = mul} : f32[64,400]
    output "y" %6
}
)"),
                ElementsAre("flat [64,400] exp tanh sin log1p sigmoid"));
}

// A kernel has a bounded number of buffers, whether a chain or a reduction reads them.
TEST(Schedule, ManyOperandsTakeSeveralKernels) {
    for (const bool reduced : {false, true}) {
        std::string text = "graph \"sum\" {\n    %0 = input \"0\" f32[64]\n";
        for (int i = 1; i <= 40; ++i) {
            text += fmt::format("    %{} = input \"{}\" f32[64]\n", i, i);
        }
        for (int i = 1; i <= 40; ++i) {
            text += fmt::format("    %{} = map \"s\" (%{}, %{}) {{function = add}} : f32[64]\n",
                                40 + i, i == 1 ? 0 : 39 + i, i);
        }
        const int half = 60;  // reads 21 inputs
        text += reduced ? fmt::format(
                              "    %81 = map \"t\" (%80) {{function = sin}} : f32[64]\n"
                              "    %82 = contract \"dot\" (%{}, %81) {{a = \"i\", b = "
                              "\"i\", result = \"\", accumulate = f32}} : f32[]\n"
                              "    output \"y\" %82\n}}\n",
                              half)
                        : "    output \"y\" %80\n}\n";
        const Result<Graph> graph = ParseGraph(text);
        ASSERT_TRUE(graph.ok()) << graph.error().message;
        const Result<Plan> plan = Schedule(*graph);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_GT(plan->kernels.size(), 1u);
        const Status valid = ValidatePlan(*plan);
        EXPECT_TRUE(valid.ok()) << valid.error().message;
    }
}

// Operands of a concatenation that read the same share kernels, of which each has a bounded number.
TEST(Schedule, ManyEqualOperandsOfAConcatenation) {
    constexpr int kOperands = 100;
    std::string text = "graph \"repeat\" {\n    %0 = input \"x\" f32[64]\n";
    std::string operands;
    for (int i = 1; i <= kOperands; ++i) {
        text += fmt::format("    %{} = map \"s\" (%0) {{function = sin}} : f32[64]\n", i);
        operands += fmt::format("{}%{}", i == 1 ? "" : ", ", i);
    }
    text += fmt::format(
        "    %{0} = concat \"all\" ({1}) {{axis = 0}} : f32[{2}]\n    output \"y\" %{0}\n}}\n",
        kOperands + 1, operands, kOperands * 64);
    const Result<Graph> graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Result<Plan> plan = Schedule(*graph);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LT(plan->kernels.size(), static_cast<size_t>(kOperands));
    const Status valid = ValidatePlan(*plan);
    EXPECT_TRUE(valid.ok()) << valid.error().message;
}

// The products' kernel keeps what its one reader needs several times of each element.
TEST(Schedule, ActivationsBeforeAWindowJoinTheReduction) {
    EXPECT_THAT(KernelsOf(R"(graph "separable" {
    %0 = input "x" f32[32,400]
    %1 = input "w" f32[64,32]
    %2 = input "k" f32[64,3]
    %3 = contract "conv" (%1, %0) {a = "ck", b = "kn", result = "cn", accumulate = f32} : f32[64,400]
    %4 = map "activation" (%3) {function = tanh} : f32[64,400]
    %5 = window "window" (%4) {axis = 1, size = 3, stride = 1, dilation = 1} : f32[64,398,3]
    %6 = contract "depthwise" (%5, %2) {a = "cnk", b = "ck", result = "cn", accumulate = f32} : f32[64,398]
    output "y" %6
}
)"),
                ElementsAre("product [64,400] tanh", "flat [64,398]"));
}

// A window's sums are no product in tiles, whatever their size.
TEST(Schedule, WindowsAreFlat) {
    EXPECT_THAT(KernelsOf(R"(graph "depthwise" {
    %0 = input "x" f32[64,30,30]
    %1 = input "w" f32[64,3,3]
    %2 = window "rows" (%0) {axis = 1, size = 3, stride = 1, dilation = 1} : f32[64,28,30,3]
    %3 = window "columns" (%2) {axis = 2, size = 3, stride = 1, dilation = 1} : f32[64,28,28,3,3]
    %4 = contract "conv" (%3, %1) {a = "cyxrs", b = "crs", result = "cyx", accumulate = f32} : f32[64,28,28]
    output "y" %4
}
)"),
                ElementsAre("flat [64,28,28]"));
}

// A row is shared by a workgroup where its points lie side by side, and is one invocation's where
// neighbouring rows do.
TEST(Schedule, RowsThatLieAcrossTheMemoryAreFlat) {
    const auto softmax = [](std::string_view axis, std::string_view statistics,
                            std::string_view inserted) {
        return fmt::format(R"(graph "softmax" {{
    %0 = input "x" f32[8,100,200]
    %1 = reduce "max" (%0) {{combine = max, axes = [{0}]}} : f32[{1}]
    %2 = reshape "m" (%1) {{shape = [{2}]}} : f32[{2}]
    %3 = broadcast "all" (%2) {{shape = [8,100,200]}} : f32[8,100,200]
    %4 = map "less" (%0, %3) {{function = sub}} : f32[8,100,200]
    %5 = map "exp" (%4) {{function = exp}} : f32[8,100,200]
    %6 = reduce "sum" (%5) {{combine = sum, axes = [{0}]}} : f32[{1}]
    %7 = reshape "s" (%6) {{shape = [{2}]}} : f32[{2}]
    %8 = broadcast "all" (%7) {{shape = [8,100,200]}} : f32[8,100,200]
    %9 = map "share" (%5, %8) {{function = div}} : f32[8,100,200]
    output "y" %9
}}
)",
                           axis, statistics, inserted);
    };
    EXPECT_THAT(KernelsOf(softmax("1", "8,200", "8,1,200")),
                ElementsAre("flat [8,100,200] exp exp"));
    EXPECT_THAT(KernelsOf(softmax("0", "100,200", "1,100,200")),
                ElementsAre("flat [8,100,200] exp exp"));
    EXPECT_THAT(KernelsOf(softmax("2", "8,100", "8,100,1")),
                ElementsAre("row [8,100,200] exp exp"));
}

// Vectors are full of channels that lie side by side, be they few; fewer than a vector share rows.
TEST(Schedule, MeansOfChannelsAreFlat) {
    const auto mean = [](int channels) {
        return fmt::format(R"(graph "mean" {{
    %0 = input "x" f32[60,60,{0}]
    %1 = reduce "sum" (%0) {{combine = sum, axes = [0, 1]}} : f32[{0}]
    output "y" %1
}}
)",
                           channels);
    };
    EXPECT_THAT(KernelsOf(mean(32)), ElementsAre("flat [32]"));
    EXPECT_THAT(KernelsOf(mean(8)), ElementsAre("row [8]"));
}

// Comparing all elements with each other takes the square of a row's length, so it is for rows that
// no size of the plan makes long.
TEST(Schedule, RowsOfAnyLengthAreNotSortedByComparing) {
    const auto kernels_of = [](int longest) {
        const Result<Graph> graph = ParseGraph(fmt::format(R"(graph "order" {{
    symbol n = 64 in 0..{}
    %0 = input "x" f32[3,n]
    %1, %2 = sort "sorted" (%0) {{axis = 1, descending = false, count = n}} : f32[3,n], i64[3,n]
    output "y" %1
}}
)",
                                                           longest));
        EXPECT_TRUE(graph.ok()) << graph.error().message;
        const Result<Plan> plan = graph.ok() ? Schedule(*graph) : Result<Plan>(graph.error());
        EXPECT_TRUE(plan.ok()) << plan.error().message;
        std::vector<std::string> names;
        if (plan.ok()) {
            for (const PlanKernel& kernel : plan->kernels) {
                names.emplace_back(NameOf(kernel));
            }
        }
        return names;
    };
    EXPECT_THAT(kernels_of(200), testing::Contains("sort_rank"));
    EXPECT_THAT(kernels_of(2147483647), testing::Contains("sort_rows"));
}

}  // namespace
}  // namespace fornax::graph
