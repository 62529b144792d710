// Operators that run on the host.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/index.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Attributes;
using graph::TensorType;

// The number of elements as a hint, where it is a number.
int64_t HintOf(Node& node, const Expr& size) {
    return std::clamp<int64_t>(node.builder().sizes().Hint(size), 0, INT32_MAX);
}

// i64[rank, count] of the places that are not 0.
Val NonZero(Node& node, Val x) {
    Builder& b = node.builder();
    const Expr count = b.UnknownSize("nonzero", HintOf(node, x.shape().Volume()), {0, INT32_MAX});
    return b.HostCall("nonzero", {}, {x}, {{ElementType::kI64, Shape{x.rank(), count}}})[0];
}

void ImportNonZero(Node& node) {
    const Val x = node.In(0);
    node.Out(NonZero(node, x.rank() == 0 ? graph::Reshape(x, Shape{1}) : x));
}

void ImportCompress(Node& node) {
    Val x = node.In(0);
    int64_t axis = node.Int("axis", 0);
    if (!node.HasAttribute("axis")) {
        x = graph::Flatten(x, 0, x.rank());
    }
    axis = Builder::Axis(axis, x.rank());
    Val condition = node.In(1);
    if (condition.rank() != 1) {
        FailInvalid(fmt::format("the condition is {}, not a vector", condition.shape().ToString()));
    }
    node.Out(graph::Take(x, graph::Select(NonZero(node, condition), 0, 0), axis));
}

void ImportUnique(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    Attributes attributes = {{"sorted", int64_t{node.Int("sorted", 1) != 0}}};
    Shape shape;
    Expr places = x.shape().Volume();
    const Expr count = b.UnknownSize("unique", HintOf(node, places), {0, INT32_MAX});
    if (node.HasAttribute("axis")) {
        const int64_t axis = Builder::Axis(node.Int("axis"), x.rank());
        attributes["axis"] = axis;
        shape = x.shape();
        places = shape[static_cast<size_t>(axis)];
        shape[static_cast<size_t>(axis)] = count;
    } else {
        shape = Shape{count};
    }
    const Vals results = b.HostCall("unique", attributes, {x},
                                    {{x.element(), shape},
                                     {ElementType::kI64, Shape{count}},
                                     {ElementType::kI64, Shape{places}},
                                     {ElementType::kI64, Shape{count}}});
    for (size_t i = 0; i < results.size(); ++i) {
        node.Out(i, results[i]);
    }
}

void ImportNonMaxSuppression(Node& node) {
    Builder& b = node.builder();
    const Val boxes = node.In(0), scores = node.In(1);
    if (boxes.rank() != 3 || scores.rank() != 3) {
        FailInvalid(fmt::format("the boxes are {} and the scores {}", boxes.shape().ToString(),
                                scores.shape().ToString()));
    }
    const auto number = [&](size_t input, Val otherwise, ElementType type) {
        return node.Has(input) ? graph::Cast(graph::Reshape(node.In(input), Shape{}), type) : otherwise;
    };
    const Val most = number(2, b.Integer(ElementType::kI64, 0), ElementType::kI64);
    const Val overlap = number(3, b.Scalar(ElementType::kF32, 0), ElementType::kF32);
    const Val least = number(4, b.Scalar(ElementType::kF32, -INFINITY), ElementType::kF32);
    const Expr count =
        b.UnknownSize("selected", HintOf(node, scores.shape().Volume()), {0, INT32_MAX});
    node.Out(b.HostCall("non_max_suppression",
                        {{"centre", int64_t{node.Int("center_point_box", 0) != 0}}},
                        {graph::Cast(boxes, ElementType::kF32), graph::Cast(scores, ElementType::kF32),
                         most, overlap, least},
                        {{ElementType::kI64, Shape{count, 3}}})[0]);
}

// --- Strings -------------------------------------------------------------------------------------

void CheckStrings(Val x) {
    if (x.element() != ElementType::kString) {
        FailInvalid(fmt::format("an input is {}, not strings", graph::Name(x.element())));
    }
}

void ImportStringConcat(Node& node) {
    const Val a = node.In(0), b = node.In(1);
    CheckStrings(a);
    CheckStrings(b);
    const Shape shapes[] = {a.shape(), b.shape()};
    const Shape shape = node.builder().CommonShape(shapes);
    node.Out(node.builder().HostCall("string_concat", {},
                                     {graph::BroadcastTo(a, shape), graph::BroadcastTo(b, shape)},
                                     {{ElementType::kString, shape}})[0]);
}

void ImportStringSplit(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    CheckStrings(x);
    const Expr most = b.UnknownSize("parts", 4, {0, INT32_MAX});
    Shape shape = x.shape();
    shape.mutable_dims().push_back(most);
    const Vals results =
        b.HostCall("string_split",
                   {{"delimiter", node.Text("delimiter", "")},
                    {"most", node.HasAttribute("maxsplit") ? node.Int("maxsplit") : int64_t{-1}}},
                   {x}, {{ElementType::kString, shape}, {ElementType::kI64, x.shape()}});
    node.Out(0, results[0]);
    node.Out(1, results[1]);
}

void ImportStringNormalizer(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    CheckStrings(x);
    if (x.rank() != 1 && !(x.rank() == 2 && b.sizes().Equal(x.dim(0), 1))) {
        FailInvalid(fmt::format("the input is {}, not [n] or [1, n]", x.shape().ToString()));
    }
    const Expr count = b.UnknownSize("words", HintOf(node, x.dim(-1)), {0, INT32_MAX});
    node.Out(b.HostCall("string_normalise",
                        {{"case", node.Text("case_change_action", "NONE")},
                         {"sensitive", int64_t{node.Int("is_case_sensitive", 0) != 0}},
                         {"stopwords", node.Texts("stopwords")}},
                        {x},
                        {{ElementType::kString,
                          x.rank() == 1 ? Shape{count} : Shape{Expr(1), count}}})[0]);
}

void ImportRegexFullMatch(Node& node) {
    const Val x = node.In(0);
    CheckStrings(x);
    node.Out(node.builder().HostCall("string_match", {{"pattern", node.Text("pattern", "")}}, {x},
                                     {{ElementType::kBool, x.shape()}})[0]);
}

void ImportTfIdf(Node& node) {
    const Val x = node.In(0);
    const std::vector<int64_t> columns = node.Ints("ngram_indexes");
    if (columns.empty() || x.rank() > 2 || *std::ranges::min_element(columns) < 0 ||
        *std::ranges::max_element(columns) > INT32_MAX) {
        FailInvalid(fmt::format("the input is {} and it has {} n-grams", x.shape().ToString(),
                                columns.size()));
    }
    Attributes attributes;
    for (const char* name : {"max_gram_length", "min_gram_length", "max_skip_count"}) {
        attributes[name] = node.Int(name);
    }
    attributes["mode"] = node.Text("mode", "TF");
    attributes["ngram_indexes"] = columns;
    attributes["ngram_counts"] = node.Ints("ngram_counts");
    attributes["pool_int64s"] = node.Ints("pool_int64s");
    attributes["pool_strings"] = node.Texts("pool_strings");
    attributes["weights"] = node.Floats("weights");
    const int64_t width = *std::ranges::max_element(columns) + 1;
    Shape shape{width};
    if (x.rank() == 2) {
        shape = Shape{x.dim(0), width};
    }
    const Val input = x.element() == ElementType::kString ? x : graph::Cast(x, ElementType::kI64);
    node.Out(node.builder().HostCall("tf_idf", std::move(attributes), {input},
                                     {{ElementType::kF32, shape}})[0]);
}

constexpr OperatorEntry kOperators[] = {
    {"Compress", 2, ImportCompress},
    {"NonMaxSuppression", 2, ImportNonMaxSuppression},
    {"NonZero", 1, ImportNonZero},
    {"RegexFullMatch", 1, ImportRegexFullMatch},
    {"StringConcat", 2, ImportStringConcat},
    {"StringNormalizer", 1, ImportStringNormalizer},
    {"StringSplit", 1, ImportStringSplit},
    {"TfIdfVectorizer", 1, ImportTfIdf},
    {"Unique", 1, ImportUnique},
};

}  // namespace

std::span<const OperatorEntry> HostOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
