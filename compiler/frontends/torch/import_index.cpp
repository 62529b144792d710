// Reading and writing by indices.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/index.h"

namespace fornax::torch_frontend {
namespace {

using graph::Combine;
namespace map = graph::map;

// With a tensor without dimensions as one of one element, and back.
Val LikeRank(Val result, Val x) {
    return x.rank() == 0 ? graph::Reshape(result, Shape{}) : result;
}

void ImportGather(Node& node) {
    const Val x = node.In("self"), index = node.In("index");
    const int64_t axis = AxisOf(node.Int("dim"), x);
    node.Out(LikeRank(graph::TakeAlong(AtLeastOne(x), AtLeastOne(index), axis), index));
}

void ImportIndexSelect(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = AxisOf(node.Int("dim"), x);
    node.Out(LikeRank(graph::Take(AtLeastOne(x), AtLeastOne(node.In("index")), axis), x));
}

void ImportEmbedding(Node& node) {
    node.Out(graph::Take(node.In("weight"), node.In("indices"), 0));
}

// Sums, means or greatest elements of the rows of bags, which begin at the offsets. The other
// results are for gradients.
void ImportEmbeddingBag(Node& node) {
    Builder& b = node.builder();
    const Val weight = node.In("weight"), indices = node.In("indices");
    const Val given = node.In("offsets");
    const int64_t mode = node.Int("mode", 0);
    if (mode < 0 || mode > 2 || indices.rank() != 1 || given.rank() != 1 || weight.rank() != 2) {
        FailInvalid(
            fmt::format("its mode is {}, its indices are {}", mode, indices.shape().ToString()));
    }
    const Expr count = indices.dim(0), bags = node.ResultType().shape[0], width = weight.dim(1);
    const Val offsets = graph::SliceAxis(graph::Cast(given, ElementType::kI64), 0, 0, bags);
    const Shape pairs{count, bags};
    const Val begun =
        map::LessEqual(graph::Unsqueeze(offsets, 0), b.Iota(ElementType::kI64, pairs, 0));
    const Val bag = graph::Unsqueeze(
        graph::Reduce(Combine::kSum, graph::Cast(begun, ElementType::kI64), {1}, false) - 1.0, 1);
    const ElementType compute = graph::ComputeType(weight.element());
    Val rows = graph::Cast(graph::Take(weight, indices, 0), compute);
    if (node.Has("per_sample_weights")) {
        rows = rows * graph::Unsqueeze(node.As("per_sample_weights", compute), 1);
    }
    const int64_t padding = node.Int("padding_idx", -1);
    const Val kept = graph::Not(
        map::Equal(graph::Cast(indices, ElementType::kI64), b.Integer(ElementType::kI64, padding)));
    const Val keeps = graph::Unsqueeze(kept, 1);
    const double neutral = mode == 2 ? -std::numeric_limits<double>::infinity() : 0;
    rows = graph::Where(keeps, rows, graph::Like(rows, neutral));
    Val result = graph::Scatter(b.Full(compute, Shape{bags, width}, neutral), rows, {-1, 1}, {bag},
                                mode == 2 ? Combine::kMax : Combine::kSum);
    if (mode != 0) {
        const Val sizes =
            graph::Scatter(b.Full(compute, Shape{bags, 1}, 0), graph::Cast(keeps, compute), {-1, 1},
                           {bag}, Combine::kSum);
        result = mode == 1 ? result / graph::Max(sizes, 1)
                           : graph::Where(graph::Equal(sizes, 0), graph::Like(result, 0), result);
    }
    node.Out(0, result);
}

// Where the coordinates of each axis of a tensor that is indexed by several tensors come from.
struct Indexing {
    std::vector<int64_t> sources;
    Vals indices;  // in the result's shape or broadcast to it
    Shape shape;   // of the result
};

Indexing IndexingOf(Node& node, Val x, const Vals& given) {
    Builder& b = node.builder();
    if (given.size() > static_cast<size_t>(x.rank())) {
        FailInvalid(fmt::format("it has {} indices for {}", given.size(), x.shape().ToString()));
    }
    std::vector<Shape> shapes;
    std::vector<int64_t> places;  // axes with an index
    for (size_t axis = 0; axis < given.size(); ++axis) {
        if (!given[axis]) {
            continue;
        }
        if (given[axis].element() == ElementType::kBool) {
            FailUnsupported("its index is a mask, so how large its result is depends on the data");
        }
        shapes.push_back(given[axis].shape());
        places.push_back(static_cast<int64_t>(axis));
    }
    const Shape common = b.CommonShape(shapes);
    const int64_t common_rank = static_cast<int64_t>(common.rank());
    // Axes of indices that are neighbours are replaced where they are; others come first.
    const bool together = !places.empty() &&
                          places.back() - places.front() + 1 == static_cast<int64_t>(places.size());
    const int64_t first = together ? places.front() : 0;
    Indexing result;
    std::vector<Expr> dims;
    std::vector<Expr> outer, inner;
    int64_t before = 0;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        const bool indexed = std::ranges::binary_search(places, axis);
        if (!indexed) {
            (together && axis < first ? outer : inner).push_back(x.dim(axis));
            before += together && axis < first ? 1 : 0;
        }
    }
    dims = outer;
    dims.insert(dims.end(), common.dims().begin(), common.dims().end());
    dims.insert(dims.end(), inner.begin(), inner.end());
    if (dims.size() > graph::kMaxRank) {
        FailUnsupported(fmt::format("its result has {} dimensions", dims.size()));
    }
    result.shape = Shape(std::move(dims));
    int64_t left = 0, right = before + common_rank, index = 0;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        if (std::ranges::binary_search(places, axis)) {
            result.sources.push_back(-1 - index++);
            Val place = graph::WrapIndex(given[static_cast<size_t>(axis)], x.dim(axis));
            // Behind the common dimensions come those of the axes after them.
            const Shape shape = place.shape();
            std::vector<Expr> spread(shape.dims().begin(), shape.dims().end());
            spread.resize(spread.size() + inner.size(), Expr(1));
            result.indices.push_back(graph::Reshape(place, Shape(std::move(spread))));
        } else {
            result.sources.push_back(together && axis < first ? left++ : right++);
        }
    }
    return result;
}

void ImportIndex(Node& node) {
    const Val x = node.In("self");
    const Indexing indexing = IndexingOf(node, x, node.List("indices"));
    node.Out(graph::Gather(x, indexing.sources, indexing.indices, indexing.shape));
}

void ImportIndexPut(Node& node) {
    const Val x = node.In("self");
    const Val values = node.As("values", x.element());
    const Vals indices = node.List("indices");
    const bool accumulate = node.Bool("accumulate", false);
    // A mask that a single value is written under is a choice.
    const bool mask =
        indices.size() == 1 && indices[0] && indices[0].element() == ElementType::kBool;
    if (mask && node.builder().sizes().Equal(values.shape().Volume(), 1)) {
        Shape shape = indices[0].shape();
        shape.mutable_dims().resize(static_cast<size_t>(x.rank()), Expr(1));
        const Val value = graph::Reshape(values, Shape{});
        return node.Out(
            graph::Where(graph::Reshape(indices[0], shape), accumulate ? x + value : value, x));
    }
    const Indexing indexing = IndexingOf(node, x, indices);
    node.Out(graph::Scatter(
        x, graph::BroadcastTo(values, indexing.shape), indexing.sources, indexing.indices,
        accumulate ? x.element() == ElementType::kBool ? Combine::kOr : Combine::kSum
                   : Combine::kReplace));
}

// The part of `src` that has an index, since it may be larger.
Val Fitting(Val src, Val index) {
    for (int64_t axis = 0; axis < src.rank(); ++axis) {
        src = graph::SliceAxis(src, axis, 0, index.dim(axis));
    }
    return src;
}

Val SourceOf(Node& node, Val x, Val index) {
    if (node.Has("src")) {
        const Val src = AtLeastOne(node.As("src", x.element()));
        if (src.rank() != index.rank()) {
            FailInvalid(fmt::format("the source {} does not fit the indices {}",
                                    src.shape().ToString(), index.shape().ToString()));
        }
        return Fitting(src, index);
    }
    return graph::BroadcastTo(node.As("value", x.element()), index.shape());
}

Combine ReductionOf(std::string_view name) {
    constexpr std::pair<std::string_view, Combine> kNames[] = {
        {"sum", Combine::kSum},          {"add", Combine::kSum},  {"prod", Combine::kProduct},
        {"multiply", Combine::kProduct}, {"amax", Combine::kMax}, {"amin", Combine::kMin},
    };
    for (const auto& [known, combine] : kNames) {
        if (name == known) {
            return combine;
        }
    }
    FailUnsupported(fmt::format("its reduction is \"{}\"", name));
}

// Bools are reduced as integers: their sum is their maximum, and their product their minimum.
Val ReducedAs(Val x, Combine& combine) {
    if (x.element() != ElementType::kBool || combine == Combine::kReplace) {
        return x;
    }
    if (combine == Combine::kSum) {
        combine = Combine::kMax;
    } else if (combine == Combine::kProduct) {
        combine = Combine::kMin;
    }
    return graph::Cast(x, ElementType::kI32);
}

template <bool adds>
void ImportScatter(Node& node) {
    Combine combine = adds                 ? Combine::kSum
                      : node.Has("reduce") ? ReductionOf(node.Text("reduce", ""))
                                           : Combine::kReplace;
    const Val x = ReducedAs(node.In("self"), combine), index = AtLeastOne(node.In("index"));
    const int64_t axis = AxisOf(node.Int("dim"), x);
    node.Out(LikeRank(
        graph::PutAlong(AtLeastOne(x), index, SourceOf(node, x, index), axis, combine), x));
}

void ImportScatterReduce(Node& node) {
    const std::string reduce = node.Text("reduce", "");
    const bool mean = reduce == "mean";
    Combine combine = mean ? Combine::kSum : ReductionOf(reduce);
    Val x = node.In("self");
    if (!mean) {
        x = ReducedAs(x, combine);
    }
    const Val index = AtLeastOne(node.In("index"));
    const int64_t axis = AxisOf(node.Int("dim"), x);
    if (!graph::Accepts(combine, x.element())) {
        FailUnsupported(fmt::format("it reduces {} by {}", graph::Name(x.element()), reduce));
    }
    const Val src = SourceOf(node, x, index);
    Val base = AtLeastOne(x);
    const auto put = [&](Val into, Val updates, Combine how) {
        return graph::PutAlong(into, index, updates, axis, how);
    };
    Builder& b = node.builder();
    const Val zeros = b.Full(ElementType::kI64, base.shape(), 0);
    const Val hits = put(zeros, b.Full(ElementType::kI64, src.shape(), 1), Combine::kSum);
    const Val original = base;
    if (!node.Bool("include_self", true)) {
        // Elements that something is written to begin with what changes nothing.
        uint8_t* data = nullptr;
        Tensor neutral = Tensor::Zeros(x.element(), {}, &data);
        graph::WriteElement(x.element(), graph::NeutralElement(combine, x.element()), data);
        base = graph::Where(graph::Greater(hits, 0), b.Constant(std::move(neutral)), base);
    }
    Val result = put(base, src, combine);
    if (mean) {
        const Val count = node.Bool("include_self", true) ? hits + 1.0 : graph::Max(hits, 1);
        const Val divisor = graph::Cast(count, x.element());
        result = graph::IsFloat(x.element()) ? result / divisor : map::FloorDiv(result, divisor);
        result = graph::Where(graph::Greater(hits, 0), result, original);
    }
    node.Out(LikeRank(result, x));
}

// Adds or writes whole slices at places along an axis.
template <Combine combine>
void ImportIndexAdd(Node& node) {
    const Val x = node.In("self"), index = AtLeastOne(node.In("index"));
    const int64_t axis = AxisOf(node.Int("dim"), x);
    Val source = AtLeastOne(node.As("source", x.element()));
    if (node.Has("alpha")) {
        source = source * node.As("alpha", x.element());
    }
    std::vector<Expr> dims(static_cast<size_t>(source.rank()), Expr(1));
    if (static_cast<size_t>(axis) >= dims.size()) {
        FailInvalid(fmt::format("its source is {}", source.shape().ToString()));
    }
    dims[static_cast<size_t>(axis)] = index.dim(0);
    const Val places = graph::BroadcastTo(graph::Reshape(index, Shape(dims)), source.shape());
    node.Out(LikeRank(graph::PutAlong(AtLeastOne(x), places, source, axis, combine), x));
}

// Slices at places along an axis become one number.
void ImportIndexFill(Node& node) {
    const Val x = node.In("self"), index = AtLeastOne(node.In("index"));
    const int64_t axis = AxisOf(node.Int("dim"), x);
    const Val base = AtLeastOne(x);
    Shape shape = base.shape();
    shape[static_cast<size_t>(axis)] = index.dim(0);
    std::vector<Expr> dims(shape.rank(), Expr(1));
    dims[static_cast<size_t>(axis)] = index.dim(0);
    const Val places = graph::BroadcastTo(graph::Reshape(index, Shape(dims)), shape);
    const Val updates = graph::BroadcastTo(node.As("value", x.element()), shape);
    node.Out(LikeRank(graph::PutAlong(base, places, updates, axis, Combine::kReplace), x));
}

// Elements of `source` in order, where the mask is true.
void ImportMaskedScatter(Node& node) {
    const Val x = node.In("self");
    const Shape shape = node.ResultType().shape;
    const Val mask = graph::Reshape(graph::BroadcastTo(node.As("mask", ElementType::kBool), shape),
                                    Shape{shape.Volume()});
    const Val source = node.As("source", x.element());
    const Val flat = graph::Reshape(source, Shape{source.shape().Volume()});
    const Val place = graph::Scan(graph::Combine::kSum, graph::Cast(mask, ElementType::kI64), 0,
                                  /*exclusive=*/true);
    const Val taken = graph::Gather(flat, {-1}, {place}, place.shape());
    node.Out(graph::Reshape(
        graph::Where(mask, taken,
                     graph::Reshape(graph::BroadcastTo(x, shape), Shape{shape.Volume()})),
        shape));
}

constexpr OperatorEntry kOperators[] = {
    {"_embedding_bag.default", ImportEmbeddingBag},
    {"_embedding_bag_forward_only.default", ImportEmbeddingBag},
    {"_unsafe_index.Tensor", ImportIndex},
    {"_unsafe_index_put.default", ImportIndexPut},
    {"embedding.default", ImportEmbedding},
    {"gather.default", ImportGather},
    {"index.Tensor", ImportIndex},
    {"index_add.default", ImportIndexAdd<Combine::kSum>},
    {"index_copy.default", ImportIndexAdd<Combine::kReplace>},
    {"index_fill.int_Scalar", ImportIndexFill},
    {"index_put.default", ImportIndexPut},
    {"index_select.default", ImportIndexSelect},
    {"masked_scatter.default", ImportMaskedScatter},
    {"scatter.reduce", ImportScatter<false>},
    {"scatter.src", ImportScatter<false>},
    {"scatter.value", ImportScatter<false>},
    {"scatter.value_reduce", ImportScatter<false>},
    {"scatter_add.default", ImportScatter<true>},
    {"scatter_reduce.two", ImportScatterReduce},
};

}  // namespace

std::span<const OperatorEntry> IndexOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
