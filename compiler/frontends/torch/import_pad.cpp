// Padding.
#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/index.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;

struct Pads {
    std::vector<Expr> low, high;  // of every axis
};

// Pairs of low and high, the last axis' first.
Pads ReadPads(Node& node, std::string_view name, int64_t rank) {
    const std::vector<Expr> given = node.Sizes(name);
    if (given.size() % 2 != 0 || given.size() / 2 > static_cast<size_t>(rank)) {
        FailInvalid(fmt::format("it pads by {} numbers along {} axes", given.size(), rank));
    }
    Pads pads{std::vector<Expr>(static_cast<size_t>(rank), Expr(0)),
              std::vector<Expr>(static_cast<size_t>(rank), Expr(0))};
    for (size_t i = 0; i < given.size() / 2; ++i) {
        pads.low[static_cast<size_t>(rank) - 1 - i] = given[2 * i];
        pads.high[static_cast<size_t>(rank) - 1 - i] = given[2 * i + 1];
    }
    return pads;
}

void ImportConstantPad(Node& node) {
    const Val x = node.In("self");
    const Pads pads = ReadPads(node, "pad", x.rank());
    node.Out(graph::Pad(x, node.As("value", x.element()), pads.low, pads.high));
}

// Axes that are padded by their own elements: each result's element has an index there.
template <bool reflects>
void ImportMirrorPad(Node& node) {
    Val x = node.In("self");
    Builder& b = node.builder();
    const Pads pads = ReadPads(node, "padding", x.rank());
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        const Expr low = pads.low[static_cast<size_t>(axis)];
        const Expr high = pads.high[static_cast<size_t>(axis)];
        if (low == Expr(0) && high == Expr(0)) {
            continue;
        }
        const Expr size = x.dim(axis), count = size + low + high;
        const Val last = b.Size(size - 1), zero = b.Integer(ElementType::kI64, 0);
        Val index = b.Iota(ElementType::kI64, Shape{count}, 0) - b.Size(low);
        if (reflects) {
            index = last - map::Abs(last - map::Abs(index));
        } else {
            index = map::Min(map::Max(index, zero), last);
        }
        x = graph::Take(x, index, axis);
    }
    node.Out(x);
}

constexpr OperatorEntry kOperators[] = {
    {"constant_pad_nd.default", ImportConstantPad},
    {"reflection_pad1d.default", ImportMirrorPad<true>},
    {"reflection_pad2d.default", ImportMirrorPad<true>},
    {"reflection_pad3d.default", ImportMirrorPad<true>},
    {"replication_pad1d.default", ImportMirrorPad<false>},
    {"replication_pad2d.default", ImportMirrorPad<false>},
    {"replication_pad3d.default", ImportMirrorPad<false>},
};

}  // namespace

std::span<const OperatorEntry> PadOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
