// Reading and writing by indices.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/index.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Combine;
namespace map = graph::map;

void ImportGather(Node& node) {
    node.Out(graph::Take(node.In(0), node.In(1), node.Int("axis", 0)));
}

void ImportGatherElements(Node& node) {
    node.Out(graph::TakeAlong(node.In(0), node.In(1), node.Int("axis", 0)));
}

void ImportGatherNd(Node& node) {
    node.Out(graph::TakeNd(node.In(0), node.In(1), node.Int("batch_dims", 0)));
}

Combine ReadReduction(Node& node) {
    const std::string name = node.Text("reduction", "none");
    if (name == "none") {
        return Combine::kReplace;
    }
    if (name == "add") {
        return Combine::kSum;
    }
    if (name == "mul") {
        return Combine::kProduct;
    }
    if (name == "max") {
        return Combine::kMax;
    }
    if (name == "min") {
        return Combine::kMin;
    }
    FailInvalid(fmt::format("its reduction is \"{}\"", name));
}

void ImportScatterElements(Node& node) {
    node.Out(graph::PutAlong(node.In(0), node.In(1), node.In(2), node.Int("axis", 0),
                             ReadReduction(node)));
}

void ImportScatterNd(Node& node) {
    node.Out(graph::PutNd(node.In(0), node.In(1), node.In(2), ReadReduction(node)));
}

void ImportOneHot(Node& node) {
    Val indices = node.In(0);
    const Val count = graph::Cast(node.In(1), ElementType::kI64);
    const std::vector<Expr> depth = node.builder().RequireSizes(count, "the depth");
    const Val values = node.In(2);
    if (depth.size() != 1 || values.rank() != 1) {
        FailInvalid(fmt::format("the depth has {} elements, the values are {}", depth.size(),
                                values.shape().ToString()));
    }
    node.Out(graph::OneHot(indices, depth[0], graph::Select(values, 0, 0),
                           graph::Select(values, 0, 1), node.Int("axis", -1)));
}

// Writes a block at a place of its own in each batch.
void ImportTensorScatter(Node& node) {
    Builder& b = node.builder();
    const Val cache = node.In(0), update = node.In(1);
    const int64_t axis = Builder::Axis(node.Int("axis", -2), cache.rank());
    if (axis == 0 || update.rank() != cache.rank()) {
        FailInvalid(fmt::format("the axis {} of {} cannot be written with {}", axis,
                                cache.shape().ToString(), update.shape().ToString()));
    }
    const std::string mode = node.Text("mode", "linear");
    Val place = b.Iota(ElementType::kI64, update.shape(), axis);
    if (node.Has(2)) {
        std::vector<Expr> dims(static_cast<size_t>(cache.rank()), Expr(1));
        dims[0] = node.In(2).dim(0);
        place = place + graph::Reshape(graph::Cast(node.In(2), ElementType::kI64), Shape(dims));
    }
    if (mode == "circular") {
        place = map::Mod(place, b.Size(cache.dim(axis)));
    }
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < cache.rank(); ++i) {
        sources.push_back(i == axis ? -1 : i);
    }
    node.Out(graph::Scatter(cache, update, sources, {place}));
}

constexpr OperatorEntry kOperators[] = {
    {"Gather", 2, ImportGather},           {"GatherElements", 2, ImportGatherElements},
    {"GatherND", 2, ImportGatherNd},       {"OneHot", 3, ImportOneHot},
    {"Scatter", 3, ImportScatterElements}, {"ScatterElements", 3, ImportScatterElements},
    {"ScatterND", 3, ImportScatterNd},     {"TensorScatter", 2, ImportTensorScatter},
};

}  // namespace

std::span<const OperatorEntry> IndexOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
