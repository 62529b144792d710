// Graphs as text and back: everything that a graph holds survives, and bad texts give errors.
#include "compiler/graph/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "compiler/graph/ir/text_reader.h"

namespace fornax::graph {
namespace {

using testing::HasSubstr;

// Every operation, in the form that the writer gives it.
constexpr std::string_view kEverything = R"(graph "everything" {
    symbol k = 3 in 0..2147483647
    symbol n = 4 in 1..512
    guard n <= 512
    %0 = input "x" f32[n,8]
    %1 = input "flag" bool[]
    %2 = constant "zero" f32[] {0}
    %3 = map "neg" (%0) {function = neg} : f32[n,8]
    %4 = cast "cast" (%3) {to = f8e4m3fn, overflow = saturate, rounding = nearest_even} : f8e4m3fn[n,8]
    %5 = bitcast "bits" (%4) {to = u8} : u8[n,8]
    %6 = reduce "reduce" (%0) {combine = max, axes = [0, 1]} : f32[]
    %7 = arg_reduce "arg" (%0) {combine = min, axis = 1, last = true} : i64[n]
    %8 = scan "scan" (%0) {combine = sum, axis = 0, exclusive = true, reverse = false} : f32[n,8]
    %9, %10 = sort "sort" (%0) {axis = 1, descending = true, count = 2} : f32[n,2], i64[n,2]
    %11 = reshape "reshape" (%0) {shape = [8*n]} : f32[8*n]
    %12 = permute "permute" (%0) {order = [1, 0]} : f32[8,n]
    %13 = reshape "row" (%0) {shape = [n,8,1]} : f32[n,8,1]
    %14 = broadcast "broadcast" (%13) {shape = [n,8,5]} : f32[n,8,5]
    %15 = slice "slice" (%12) {starts = [7, 0], steps = [-2, 1], shape = [3,1]} : f32[3,1]
    %16 = pad "pad" (%0, %2) {low = [1, 0], high = [0, n], interior = [0, 0]} : f32[n + 1,n + 8]
    %17 = window "window" (%0) {axis = 1, size = 3, stride = 1, dilation = 2} : f32[n,4,3]
    %18 = concat "concat" (%0, %3) {axis = 0} : f32[2*n,8]
    %19 = gather "gather" (%0, %7) {sources = [0, -1], shape = [n]} : f32[n]
    %20 = scatter "scatter" (%0, %19, %7) {sources = [0, -1], combine = sum} : f32[n,8]
    %21 = contract "contract" (%0, %12) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[n,n]
    %22 = iota "iota" () {element = i32, shape = [n,2], axis = 1} : i32[n,2]
    %23 = size "size" () {value = 2*n - 1} : i64[]
    %24 = constant "key" u32[2] {1, 4294967295}
    %25 = random_bits "random" (%24) {shape = [n]} : u32[n]
    %26 = composite "composite" (%2) {name = "twice", attributes = {"axes" = ints[1, -2], "empty" = floats[], "eps" = 1e-05, "mode" = "a \"b\"\n", "names" = strings["p", "q"], "one" = 1.0, "rank" = 4}} : f32[]
        graph "body" {
            %0 = input "x" f32[]
            %1 = map "sum" (%0, %0) {function = add} : f32[]
            output "y" %1
        }
    %27 = if "if" (%1, %2) {} : f32[]
        graph "then" {
            %0 = input "x" f32[]
            output "y" %0
        }
        graph "else" {
            %0 = input "x" f32[]
            output "y" %0
        }
    %28 = constant "most" i64[] {5}
    %29 = loop "loop" (%28, %1, %2) {carried = 1} : f32[]
        graph "iteration" {
            %0 = input "i" i64[]
            %1 = input "carried" f32[]
            %2 = constant "go on" bool[] {1}
            output "go on" %2
            output "carried" %1
        }
    %30, %31 = host_call "host" (%0) {name = "unique", attributes = {}, types = [f32[k], string[]]} : f32[k], string[]
    %32 = read_state "read" () {state = "cache", type = f32[n,8]} : f32[n,8]
    write_state "write" (%3) {state = "cache"}
    output "first" %9
    output "second" %9
}
)";

std::string ErrorOf(std::string_view text) {
    Result<Graph> graph = ParseGraph(text);
    return graph.ok() ? "no error" : graph.error().message;
}

Graph Parsed(std::string_view text) {
    Result<Graph> graph = ParseGraph(text);
    if (!graph.ok()) {
        ADD_FAILURE() << graph.error().message;
        return Graph("failed");
    }
    return std::move(graph).value();
}

TEST(Text, ABodysInputsMayHaveItsOwnSymbols) {
    const Graph graph = Parsed(R"(graph "outer" {
    %0 = input "x" f32[4]
    %1 = composite "same" (%0) {name = "same", attributes = {}}
        graph "body" {
            symbol k = 4 in 0..100
            %0 = input "x" f32[k]
            output "y" %0
        }
    output "y" %1
})");
    ASSERT_EQ(graph.sizes().guards().size(), 1u);
    EXPECT_EQ(graph.sizes().guards()[0].ToString(), "k == 4");
}

TEST(Text, TheGreatestOfNothingIsAnError) {
    EXPECT_THAT(ErrorOf("graph \"g\" {\n%0 = input \"x\" f32[2,0]\n"
                        "%1 = arg_reduce \"arg\" (%0) {combine = max, axis = 1, last = false}\n}"),
                HasSubstr("axis 1 of [2,0] has no elements to choose from"));
    // Where there are no elements of the result, it is none.
    const Graph graph = Parsed(R"(graph "g" {
    symbol n = 4 in 0..100
    %0 = input "x" f32[0,0]
    %1 = arg_reduce "arg" (%0) {combine = max, axis = 1, last = false}
    %2 = input "y" f32[2,n]
    %3 = arg_reduce "arg" (%2) {combine = max, axis = 1, last = false}
})");
    ASSERT_EQ(graph.sizes().guards().size(), 1u);
    EXPECT_EQ(graph.sizes().guards()[0].ToString(), "0 < n");
}

TEST(Text, EveryOperationIsReadAndWritten) {
    const Graph graph = Parsed(kEverything);
    EXPECT_EQ(ToText(graph), kEverything);
    size_t kinds = 0;
    for (size_t kind = 0; kind < std::variant_size_v<Operation>; ++kind) {
        for (const Node& node : graph.nodes()) {
            if (node.operation.index() == kind) {
                ++kinds;
                break;
            }
        }
    }
    EXPECT_EQ(kinds, std::variant_size_v<Operation>);
}

TEST(Text, FieldsArriveInTheirStructures) {
    const Graph graph = Parsed(kEverything);
    const auto* scan = graph.ProducerAs<op::Scan>(ValueId(8));
    ASSERT_NE(scan, nullptr);
    EXPECT_TRUE(scan->exclusive && !scan->reverse && scan->combine == Combine::kSum);
    const auto* slice = graph.ProducerAs<op::Slice>(ValueId(15));
    ASSERT_NE(slice, nullptr);
    EXPECT_THAT(slice->steps, testing::ElementsAre(-2, 1));
    EXPECT_EQ(slice->starts[0], Expr(7));
    const auto* composite = graph.ProducerAs<op::Composite>(ValueId(26));
    ASSERT_NE(composite, nullptr);
    EXPECT_EQ(std::get<double>(composite->attributes.at("one")), 1.0);
    EXPECT_EQ(std::get<int64_t>(composite->attributes.at("rank")), 4);
    EXPECT_EQ(std::get<std::string>(composite->attributes.at("mode")), "a \"b\"\n");
    EXPECT_TRUE(std::get<std::vector<double>>(composite->attributes.at("empty")).empty());
    EXPECT_EQ(graph.sizes().hints().at(Symbol("n")), 4);
    EXPECT_EQ(graph.sizes().ranges().at(Symbol("n")), (Range{1, 512}));
    EXPECT_EQ(graph.sizes().guards()[0].ToString(), "n <= 512");
}

TEST(Text, FieldsMayBeInAnyOrderOrLeftOut) {
    const Graph graph = Parsed(R"(
        # A comment, and a node without types.
        graph "g" { %0 = input "x" f32[2,3]
            %1 = scan "s" (%0) {axis = 1, combine = max} # another
            output "y" %1 } # the last)");
    const auto* scan = graph.ProducerAs<op::Scan>(ValueId(1));
    ASSERT_NE(scan, nullptr);
    EXPECT_EQ(scan->axis, 1);
    EXPECT_EQ(scan->combine, Combine::kMax);
    EXPECT_FALSE(scan->exclusive);
}

Tensor FromBytes(ElementType element, std::vector<uint8_t> bytes) {
    const auto count = static_cast<int64_t>(bytes.size() / BytesOf(element));
    return {
        element, {count}, std::make_shared<const std::vector<uint8_t>>(std::move(bytes)), nullptr};
}

// The constant as it comes back, and its text.
std::string ExpectConstantSurvives(const Tensor& tensor) {
    Graph graph;
    graph.AddConstant("c", tensor);
    const std::string text = ToText(graph);
    const Graph read = Parsed(text);
    if (read.values().size() == 1) {
        const Tensor& constant = read.values()[0].constant;
        EXPECT_EQ(constant.type(), tensor.type());
        EXPECT_TRUE(tensor.data ? std::ranges::equal(*constant.data, *tensor.data)
                                : *constant.strings == *tensor.strings)
            << text;
    }
    return text;
}

TEST(Text, ConstantsOfEveryTypeSurvive) {
    for (size_t t = 0; t < static_cast<size_t>(ElementType::kString); ++t) {
        const auto type = static_cast<ElementType>(t);
        // 0, 1, then codes that need not be numbers.
        std::vector<uint8_t> bytes(BytesOf(type) * 6);
        WriteElement(type, Scalar::Integer(1), bytes.data() + BytesOf(type));
        for (size_t i = BytesOf(type) * 2; i < bytes.size(); ++i) {
            bytes[i] = static_cast<uint8_t>(i * 57);
        }
        ExpectConstantSurvives(FromBytes(type, bytes));
        bytes.resize(BytesOf(type) * 2);
        EXPECT_THAT(ExpectConstantSurvives(FromBytes(type, bytes)), HasSubstr("] {")) << Name(type);
        ExpectConstantSurvives(FromBytes(type, {}));
        std::vector<uint8_t> ones(BytesOf(type) * 100, 0xFF);
        ExpectConstantSurvives(FromBytes(type, ones));
    }
}

TEST(Text, FloatsSurvive) {
    const std::vector<float> special = {-0.0F,
                                        std::numeric_limits<float>::infinity(),
                                        -std::numeric_limits<float>::infinity(),
                                        std::numeric_limits<float>::quiet_NaN(),
                                        std::numeric_limits<float>::denorm_min(),
                                        std::numeric_limits<float>::max(),
                                        0.1F,
                                        16777216.0F};
    EXPECT_THAT(ExpectConstantSurvives(Tensor::FromFloats({8}, special)),
                HasSubstr("{-0, inf, -inf, nan, 1e-45, 3.4028235e+38, 0.1, 16777216}"));
    const std::vector<float> payload = {std::bit_cast<float>(0x7FC12345U)};
    EXPECT_THAT(ExpectConstantSurvives(Tensor::FromFloats({1}, payload)),
                HasSubstr("hex \"4523c17f\""));
    const std::array<double, 2> doubles = {0.1, 1e300};
    std::vector<uint8_t> bytes(sizeof(doubles));
    std::memcpy(bytes.data(), doubles.data(), sizeof(doubles));
    EXPECT_THAT(ExpectConstantSurvives(FromBytes(ElementType::kF64, bytes)),
                HasSubstr("{0.1, 1e+300}"));
}

TEST(Text, LargeConstantsAreFilledOrHexadecimal) {
    std::vector<float> values(100, 2.5F);
    EXPECT_THAT(ExpectConstantSurvives(Tensor::FromFloats({100}, values)),
                HasSubstr("f32[100] fill 2.5"));
    values[99] = 1;
    EXPECT_THAT(ExpectConstantSurvives(Tensor::FromFloats({100}, values)),
                HasSubstr("f32[100] hex \"00002040"));
    Graph graph;
    graph.AddConstant("c", Tensor::FromFloats({100}, values));
    TextOptions options;
    options.elide_constants = true;
    const std::string text = ToText(graph, options);
    EXPECT_THAT(text, HasSubstr("f32[100] elided 400 bytes"));
    EXPECT_THAT(ErrorOf(text), HasSubstr("left out"));
}

TEST(Text, StringsSurvive) {
    const Tensor strings = {
        ElementType::kString,
        {4},
        nullptr,
        std::make_shared<const std::vector<std::string>>(
            std::vector<std::string>{"", "a\"b\\c", std::string("\0\x7F\n", 3), "\xC3\xA9"})};
    ExpectConstantSurvives(strings);
}

TEST(Text, FoldedAndRenamedValuesSurvive) {
    Graph graph("folded");
    const ValueId x = graph.AddInput("x", {ElementType::kF32, {2}});
    Result<NodeId> sort = graph.AddNode("sort", op::Sort{0, false, 2}, {x});
    ASSERT_TRUE(sort.ok());
    const std::vector<int64_t> positions = {1, 0};
    graph.MakeConstant(graph[*sort].results[1], Tensor::FromIntegers({2}, positions));
    graph.Rename(graph[*sort].results[0], "sorted values");
    Result<NodeId> write = graph.AddNode("write", op::WriteState{"s"},
                                         {graph.AddConstant("c", graph[ValueId(2)].constant)});
    ASSERT_TRUE(write.ok());
    graph.AddConstant("unused", Tensor::FromIntegers({2}, positions));
    graph.AddOutput("y", graph[*sort].results[0]);
    const std::string text = ToText(graph);
    EXPECT_THAT(text, HasSubstr("fold %2 i64[2] {1, 0}"));
    EXPECT_THAT(text, HasSubstr("name %1 \"sorted values\""));
    const Graph read = Parsed(text);
    EXPECT_EQ(ToText(read), text);
    ASSERT_EQ(read.values().size(), graph.values().size());
    EXPECT_EQ(read[ValueId(2)].kind, ValueKind::kConstant);
    EXPECT_EQ(read[ValueId(1)].name, "sorted values");
}

TEST(Text, OperationsHaveATextOfTheirOwn) {
    EXPECT_EQ(ToText(Operation(op::Reduce{Combine::kSum, {1}})),
              "reduce {combine = sum, axes = [1]}");
}

TEST(Text, SizesSurvive) {
    const Expr n = Symbol("n"), m = Symbol("m"), odd = Symbol("batch size"), mod = Symbol("mod");
    const Expr long_sum = [&] {
        Expr sum;
        for (int i = 0; i < 20; ++i) {
            sum += Symbol(fmt::format("s{}", i));
        }
        return sum;
    }();
    for (const Expr& size :
         {Expr(0), Expr(INT64_MIN), Expr(INT64_MAX), n, -n, n * m * 3 - 4, n * INT64_MIN,
          n * n - m * INT64_MIN, FloorDiv(n + 1, m * 2), Mod(n - m, 7), Min(n, m) * Max(n, 4),
          odd * 2 + mod, CeilDiv(FloorDiv(n, 3) + m, 5), FloorDiv(n, 0), long_sum * long_sum}) {
        Graph graph;
        ASSERT_TRUE(graph.AddNode("size", op::SizeOf{size}, {}).ok());
        const Graph read = Parsed(ToText(graph));
        const auto* value = read.ProducerAs<op::SizeOf>(ValueId(0));
        ASSERT_NE(value, nullptr);
        EXPECT_EQ(value->value, size) << ToText(graph);
    }
}

Result<Expr> ParseSize(std::string_view text) {
    TextReader reader(text);
    FORNAX_ASSIGN_OR_RETURN(Expr size, reader.Size());
    if (!reader.AtEnd()) {
        return reader.Failure("the size is complete");
    }
    return size;
}

TEST(Text, SizesAreParsed) {
    const Expr n = Symbol("n");
    const auto parsed = [](std::string_view text) {
        Result<Expr> size = ParseSize(text);
        return size.ok() ? *size : Expr(Symbol(size.error().message));
    };
    EXPECT_EQ(parsed(" 2 * (n + 1) - -3 "), n * 2 + 5);
    EXPECT_EQ(parsed("-(n)*\"n\""), -(n * n));
    EXPECT_EQ(parsed("floor(n, 2) + mod(n, 2)*4"), FloorDiv(n, 2) + Mod(n, 2) * 4);
    const auto error = [](std::string_view text) {
        Result<Expr> size = ParseSize(text);
        return size.ok() ? "no error" : size.error().message;
    };
    EXPECT_EQ(error("n +"), "Line 1: an integer is expected, but the text ends.");
    EXPECT_THAT(error("n n"), HasSubstr("the size is complete, but the text goes on with 'n'"));
    EXPECT_THAT(error("min(n)"), HasSubstr("',' is expected"));
    EXPECT_THAT(error("9223372036854775808"), HasSubstr("does not fit into 64 bits"));
    EXPECT_THAT(error(std::string(1000, '(')), HasSubstr("nested in more than 64"));
    std::string sum = "n";
    for (int i = 0; i < 2000; ++i) {
        sum += fmt::format("*n{}", i);
    }
    EXPECT_THAT(error(sum), HasSubstr("more than 1000 parts"));
}

struct BadText {
    const char* statements;
    const char* error;
};

TEST(Text, ErrorsNameTheLine) {
    const BadText bad_texts[] = {
        {"%0 = input \"x\" f33[2]", "Line 2: 'f33' is no element type."},
        {"%1 = input \"x\" f32[2]", "Line 2: %1 is defined, the next value is %0."},
        {"%0 = input \"x\" f32[-1]", "Line 2: an input is f32[-1], which has a negative size"},
        {"%0 = input \"x\" f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
         "a shape has 17 dimensions, at most 16"},
        {"\n\n%0 = turn \"x\" () {}", "Line 4: 'turn' is no statement and no operation."},
        {"%0 = map \"m\" (%0) {}", "%0 is used, the graph has 0 values so far"},
        {"%0 = iota \"i\" () {size = [2]}", "iota has no field size"},
        {"%0 = iota \"i\" () {axis = 0, axis = 0}", "the field axis is given twice"},
        {"%0 = iota \"i\" () {axis = 3, shape = [2]}",
         "the node i (iota) is wrong, the axis 3 is not one of [2]"},
        {"%0 = iota \"i\" () {shape = [2]} : i64[3]",
         "result 0 of the node i is i64[2], the text says i64[3]"},
        {"%0, %1 = iota \"i\" () {shape = [2]}", "has 1 results, the text names 2"},
        {"iota \"i\" () {shape = [2]}", "has 1 results, the text names 0"},
        {"%0 = constant \"c\" u8[2] {1}", "u8[2] has 2 elements, 1 are given"},
        {"%0 = constant \"c\" u8[1] {256}", "'256' is no u8"},
        {"%0 = constant \"c\" i8[1] {1.5}", "'1.5' is no i8"},
        {"%0 = constant \"c\" f32[1] {x}", "'x' is no f32"},
        {"%0 = constant \"c\" u8[2] hex \"0g00\"", "not hexadecimal"},
        {"%0 = constant \"c\" u8[2] hex \"000\"", "u8[2] has 2 bytes, 1 are given"},
        {"%0 = constant \"c\" u8[n] {}", "u8[n] is no type of a constant"},
        {"%0 = constant \"c\" u8[1099511627776,2,0] {}", "is no type of a constant"},
        {"%0 = constant \"c\" f32[1000000,1000] fill 0", "4000000000 bytes are filled beside 0"},
        {"%0 = constant \"c\" string[1] {\"a\", \"b\"}", "string[1] has 1 strings, 2 are given"},
        {"%0 = constant \"c\" string[1] {\"a}", "a string has no end"},
        {"%0 = constant \"c\" string[1] {\"\\q\"}", "is followed by none of"},
        {"symbol n = 1 in 0..2\nsymbol n = 1 in 0..2", "Line 3: the symbol n is declared twice."},
        {"guard n > 2", "one of ==, !=, < and <= is expected"},
        {"output \"y\" %0", "%0 is used"},
        {"%0 = input \"x\" f32[1]\nfold %0 f32[1] {0}", "cannot be folded"},
        {"%0 = composite \"c\" () {attributes = {\"a\" = 1, \"a\" = 2}}",
         "the attribute a is given twice"},
        {"%0 = composite \"c\" () {attributes = {\"a\" = 99999999999999999999}}",
         "is no attribute's value"},
    };
    for (const BadText& bad : bad_texts) {
        EXPECT_THAT(ErrorOf(fmt::format("graph \"g\" {{\n{}\n}}", bad.statements)),
                    HasSubstr(bad.error))
            << bad.statements;
    }
    EXPECT_THAT(ErrorOf(""), HasSubstr("'graph' is expected, but the text ends"));
    EXPECT_THAT(ErrorOf("graph \"g\" {} x"), HasSubstr("the graph is complete"));
}

TEST(Text, DepthIsBounded) {
    std::string text;
    for (int i = 0; i < 100000; ++i) {
        text += "graph \"g\" { %0 = composite \"c\" () {}\n";
    }
    EXPECT_THAT(ErrorOf(text), HasSubstr("a body is nested in more than 64 others"));
}

// Every beginning of a good text, and the text with each of its bytes changed: what is accepted is
// a graph that can be written and read again.
TEST(Text, DamagedTextsAreHarmless) {
    size_t accepted = 0, refused = 0;
    const auto read = [&](std::string_view text) {
        Result<Graph> graph = ParseGraph(text);
        if (graph.ok()) {
            ++accepted;
            const std::string again = ToText(*graph);
            EXPECT_EQ(ToText(Parsed(again)), again);
        } else {
            ++refused;
            EXPECT_THAT(graph.error().message, HasSubstr("."));
        }
    };
    for (size_t length = 0; length < kEverything.size(); length += 3) {
        read(kEverything.substr(0, length));
    }
    std::string text(kEverything);
    for (size_t i = 0; i < text.size(); i += 3) {
        const char original = text[i];
        text[i] = "%9-(\"a"[i / 3 % 6];
        read(text);
        text[i] = original;
    }
    EXPECT_GT(accepted, 50U);
    EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace fornax::graph
