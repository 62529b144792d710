// Operators of ai.onnx.ml: encoders, trees.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/index.h"

namespace fornax::onnx_frontend {
namespace {

namespace map = graph::map;

constexpr std::string_view kDomain = "ai.onnx.ml";

void ImportArrayFeatureExtractor(Node& node) {
    const Val x = node.In(0);
    const Val index = graph::Flatten(node.In(1), 0, node.In(1).rank());
    const Val y = graph::Take(x, index, -1);
    node.Out(x.rank() == 1 ? graph::Unsqueeze(y, 0) : y);
}

void ImportBinarizer(Node& node) {
    const Val x = node.In(0);
    node.Out(graph::Cast(graph::Greater(x, node.Float("threshold", 0)), x.element()));
}

// --- Label encoder -------------------------------------------------------------------------------

// The list among attributes of these names: as a tensor.
Val ReadList(Node& node, const std::string& prefix) {
    Builder& b = node.builder();
    if (node.HasAttribute(prefix + "_tensor")) {
        return b.Constant(node.TensorAttribute(prefix + "_tensor"));
    }
    if (node.HasAttribute(prefix + "_strings")) {
        std::vector<std::string> texts = node.Texts(prefix + "_strings");
        Tensor tensor{ElementType::kString, {static_cast<int64_t>(texts.size())}, nullptr, nullptr};
        tensor.strings = std::make_shared<const std::vector<std::string>>(std::move(texts));
        return b.Constant(std::move(tensor));
    }
    if (node.HasAttribute(prefix + "_int64s")) {
        return b.Integers(node.Ints(prefix + "_int64s"));
    }
    if (node.HasAttribute(prefix + "_floats")) {
        const std::vector<double> numbers = node.Floats(prefix + "_floats");
        const std::vector<float> floats(numbers.begin(), numbers.end());
        return b.Constant(Tensor::FromFloats({static_cast<int64_t>(floats.size())}, floats));
    }
    FailInvalid(fmt::format("it has no {}", prefix));
}

void ImportLabelEncoder(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0), keys = ReadList(node, "keys"), values = ReadList(node, "values");
    Val otherwise;
    if (node.HasAttribute("default_tensor")) {
        otherwise = b.Constant(node.TensorAttribute("default_tensor"));
    } else if (values.element() == ElementType::kString) {
        otherwise = b.Text(node.Text("default_string", "_Unused"));
    } else if (graph::IsFloat(values.element())) {
        otherwise = graph::Like(values, node.Float("default_float", -0.0));
    } else {
        otherwise = b.Integer(values.element(), node.Int("default_int64", -1));
    }
    node.Out(b.HostCall("label_encode", {}, {x, keys, values, otherwise},
                        {{values.element(), x.shape()}})[0]);
}

// --- Trees ---------------------------------------------------------------------------------------

// Nodes of all trees in tables. Leaves are entries of their own behind the nodes, which lead to
// themselves.
struct TreeTables {
    std::vector<int64_t> feature, mode, when_true, when_false, target;
    std::vector<double> split, weight;
    std::vector<int64_t> missing;
    std::vector<int64_t> roots;
    int64_t depth = 0;
};

TreeTables ReadTrees(Node& node) {
    TreeTables t;
    const std::vector<int64_t> true_ids = node.Ints("nodes_truenodeids");
    const std::vector<int64_t> false_ids = node.Ints("nodes_falsenodeids");
    const std::vector<int64_t> true_leaf = node.Ints("nodes_trueleafs");
    const std::vector<int64_t> false_leaf = node.Ints("nodes_falseleafs");
    const std::vector<int64_t> targets = node.Ints("leaf_targetids");
    const Tensor splits = node.TensorAttribute("nodes_splits");
    const Tensor modes = node.TensorAttribute("nodes_modes");
    const Tensor weights = node.TensorAttribute("leaf_weights");
    t.feature = node.Ints("nodes_featureids");
    t.missing = node.Ints("nodes_missing_value_tracks_true");
    const int64_t nodes = static_cast<int64_t>(t.feature.size());
    const int64_t leaves = static_cast<int64_t>(targets.size());
    t.missing.resize(t.missing.empty() ? static_cast<size_t>(nodes) : t.missing.size(), 0);
    for (const size_t size : {true_ids.size(), false_ids.size(), true_leaf.size(), false_leaf.size(),
                              t.missing.size(), static_cast<size_t>(splits.count()),
                              static_cast<size_t>(modes.count())}) {
        if (static_cast<int64_t>(size) != nodes) {
            FailInvalid(fmt::format("its tables have {} and {} nodes", nodes, size));
        }
    }
    if (weights.count() != leaves || nodes + leaves > INT32_MAX) {
        FailInvalid(fmt::format("it has {} leaves and {} weights", leaves, weights.count()));
    }
    const auto child = [&](int64_t id, bool leaf) {
        if (id < 0 || id >= (leaf ? leaves : nodes)) {
            FailInvalid(fmt::format("a branch leads to {}", id));
        }
        return leaf ? nodes + id : id;
    };
    for (int64_t i = 0; i < nodes; ++i) {
        const size_t n = static_cast<size_t>(i);
        t.split.push_back(splits.At(i).ToDouble(splits.element));
        t.mode.push_back(modes.At(i).integer);
        t.when_true.push_back(child(true_ids[n], true_leaf[n] != 0));
        t.when_false.push_back(child(false_ids[n], false_leaf[n] != 0));
    }
    t.target.assign(static_cast<size_t>(nodes), 0);
    t.weight.assign(static_cast<size_t>(nodes), 0);
    for (int64_t i = 0; i < leaves; ++i) {
        t.split.push_back(0);
        t.mode.push_back(0);
        t.feature.push_back(0);
        t.missing.push_back(0);
        t.when_true.push_back(nodes + i);
        t.when_false.push_back(nodes + i);
        t.target.push_back(targets[static_cast<size_t>(i)]);
        t.weight.push_back(weights.At(i).ToDouble(weights.element));
    }
    for (const int64_t root : node.Ints("tree_roots")) {
        const bool single = root >= 0 && root < nodes && true_leaf[static_cast<size_t>(root)] != 0 &&
                            false_leaf[static_cast<size_t>(root)] != 0 &&
                            true_ids[static_cast<size_t>(root)] == false_ids[static_cast<size_t>(root)];
        t.roots.push_back(single ? t.when_true[static_cast<size_t>(root)] : child(root, false));
    }
    // The greatest depth, level by level; a cycle never ends.
    std::vector<int64_t> level = t.roots;
    while (std::ranges::any_of(level, [&](int64_t n) { return n < nodes; })) {
        if (++t.depth > std::min<int64_t>(nodes, 512)) {
            FailInvalid(fmt::format("its trees are deeper than {} nodes, or have a cycle", t.depth - 1));
        }
        std::vector<int64_t> next;
        for (const int64_t n : level) {
            if (n < nodes) {
                next.push_back(t.when_true[static_cast<size_t>(n)]);
                next.push_back(t.when_false[static_cast<size_t>(n)]);
            }
        }
        std::ranges::sort(next);
        next.erase(std::unique(next.begin(), next.end()), next.end());
        level = std::move(next);
    }
    return t;
}

Val NumberTable(Builder& b, std::span<const double> values, ElementType element) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(element, {static_cast<int64_t>(values.size())}, &data);
    for (size_t i = 0; i < values.size(); ++i) {
        graph::WriteElement(element, graph::Scalar::Float(values[i]), data + i * graph::BytesOf(element));
    }
    return b.Constant(std::move(tensor));
}

// For each node of mode MEMBER whether x is one of its values: the sets, separated by NaN, in the
// order in which a walk through the trees meets these nodes.
std::vector<std::vector<double>> ReadMembers(Node& node, const TreeTables& t) {
    std::vector<std::vector<double>> sets(t.mode.size());
    if (!node.HasAttribute("membership_values")) {
        return sets;
    }
    const Tensor values = node.TensorAttribute("membership_values");
    int64_t next = 0;
    std::vector<int64_t> open(t.roots.rbegin(), t.roots.rend());
    std::vector<bool> seen(t.mode.size(), false);
    while (!open.empty()) {
        const size_t at = static_cast<size_t>(open.back());
        open.pop_back();
        if (seen[at]) {
            continue;
        }
        seen[at] = true;
        if (t.when_true[at] == static_cast<int64_t>(at)) {
            continue;
        }
        if (t.mode[at] == 6) {
            for (; next < values.count(); ++next) {
                const double value = values.At(next).ToDouble(values.element);
                if (std::isnan(value)) {
                    ++next;
                    break;
                }
                sets[at].push_back(value);
            }
        }
        open.push_back(t.when_false[at]);
        open.push_back(t.when_true[at]);
    }
    return sets;
}

void ImportTreeEnsemble(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    const TreeTables t = ReadTrees(node);
    const int64_t targets = node.Int("n_targets", 1);
    const int64_t aggregate = node.Int("aggregate_function", 1);
    if (x.rank() != 2 || targets < 1 || aggregate < 0 || aggregate > 3 || t.roots.empty()) {
        FailInvalid(fmt::format("the input is {} for {} targets of {} trees", x.shape().ToString(),
                                targets, t.roots.size()));
    }
    if (node.Int("post_transform", 0) != 0) {
        FailUnsupported("it has a post_transform");
    }
    const Shape shape{x.dim(0), static_cast<int64_t>(t.roots.size())};
    const Val feature = b.Integers(t.feature), mode = b.Integers(t.mode);
    const Val when_true = b.Integers(t.when_true), when_false = b.Integers(t.when_false);
    const Val split = NumberTable(b, t.split, x.element());
    const Val missing = b.Integers(t.missing);
    const std::vector<std::vector<double>> sets = ReadMembers(node, t);
    const auto look_up = [&](Val table, Val index) { return graph::Gather(table, {-1}, {index}, shape); };
    Val at = graph::BroadcastTo(b.Integers(t.roots), shape);
    for (int64_t level = 0; level < t.depth; ++level) {
        const Val value = graph::Gather(x, {0, -1}, {look_up(feature, at)}, shape);
        const Val threshold = look_up(split, at), kind = look_up(mode, at);
        const Val less = map::Less(value, threshold), equal = map::Equal(value, threshold);
        const Val greater = map::Less(threshold, value);
        const auto is = [&](double number) { return graph::Equal(kind, number); };
        Val holds = And(is(0), Or(less, equal));
        holds = Or(holds, And(is(1), less));
        holds = Or(holds, And(is(2), Or(greater, equal)));
        holds = Or(holds, And(is(3), greater));
        holds = Or(holds, And(is(4), equal));
        holds = Or(holds, And(is(5), Not(equal)));
        for (size_t n = 0; n < sets.size(); ++n) {
            Val member;
            for (const double number : sets[n]) {
                const Val one = graph::Equal(value, number);
                member = member ? Or(member, one) : one;
            }
            if (member) {
                holds = Or(holds, And(graph::Equal(at, static_cast<double>(n)), member));
            }
        }
        holds = Or(holds, And(map::IsNan(value), Not(graph::Equal(look_up(missing, at), 0))));
        at = graph::Where(holds, look_up(when_true, at), look_up(when_false, at));
    }
    const Val weight = look_up(NumberTable(b, t.weight, x.element()), at);
    const Val target = look_up(b.Integers(t.target), at);
    // Each tree's weight goes to its target.
    constexpr graph::Combine kCombines[] = {graph::Combine::kSum, graph::Combine::kSum,
                                            graph::Combine::kMin, graph::Combine::kMax};
    const Shape result{x.dim(0), targets};
    double neutral = 0;
    if (aggregate >= 2) {
        neutral = x.element() == ElementType::kF64 ? std::numeric_limits<double>::max()
                                                   : static_cast<double>(std::numeric_limits<float>::max());
        neutral = aggregate == 2 ? neutral : -neutral;
    }
    Val y = graph::Scatter(b.Full(x.element(), result, neutral), weight, {0, -1}, {target},
                           kCombines[aggregate]);
    if (aggregate == 0) {
        y = y / static_cast<double>(t.roots.size());
    }
    node.Out(y);
}

constexpr OperatorEntry kOperators[] = {
    {"ArrayFeatureExtractor", 2, ImportArrayFeatureExtractor, 1, kDomain},
    {"Binarizer", 1, ImportBinarizer, 1, kDomain},
    {"LabelEncoder", 1, ImportLabelEncoder, 2, kDomain},
    {"TreeEnsemble", 1, ImportTreeEnsemble, 5, kDomain},
};

}  // namespace

std::span<const OperatorEntry> ClassicOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
