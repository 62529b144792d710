// Random numbers. A model without a seed gets one of the node's name: the same in each run.
#include <cstring>
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/random.h"

namespace fornax::onnx_frontend {
namespace {

uint64_t ReadSeed(Node& node) {
    if (node.HasAttribute("seed")) {
        const float seed = static_cast<float>(node.Float("seed", 0));
        uint32_t bits = 0;
        std::memcpy(&bits, &seed, sizeof(bits));
        return bits;
    }
    // FNV-1a.
    uint64_t hash = 0xCBF29CE484222325;
    for (const char c : node.builder().name()) {
        hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
    }
    return hash;
}

Shape ReadShape(Node& node) {
    const std::vector<int64_t> dims = node.Ints("shape");
    for (const int64_t dim : dims) {
        if (dim < 0) {
            FailInvalid(fmt::format("its shape has a dimension of {}", dim));
        }
    }
    return Shape::Of(dims);
}

ElementType ReadType(Node& node, ElementType otherwise) {
    const ElementType type = node.Type("dtype", otherwise);
    return type;
}

void Uniform(Node& node, const Shape& shape, ElementType type) {
    const double low = node.Float("low", 0), high = node.Float("high", 1);
    const Val x = graph::RandomUniform(node.builder(), shape, ReadSeed(node), ElementType::kF32);
    node.Out(graph::Cast(x * (high - low) + low, type));
}

void Normal(Node& node, const Shape& shape, ElementType type) {
    const Val x = graph::RandomNormal(node.builder(), shape, ReadSeed(node), ElementType::kF32);
    node.Out(graph::Cast(x * node.Float("scale", 1) + node.Float("mean", 0), type));
}

void ImportUniform(Node& node) {
    Uniform(node, ReadShape(node), ReadType(node, ElementType::kF32));
}
void ImportUniformLike(Node& node) {
    Uniform(node, node.In(0).shape(), ReadType(node, node.In(0).element()));
}
void ImportNormal(Node& node) {
    Normal(node, ReadShape(node), ReadType(node, ElementType::kF32));
}
void ImportNormalLike(Node& node) {
    Normal(node, node.In(0).shape(), ReadType(node, node.In(0).element()));
}

void ImportBernoulli(Node& node) {
    const Val p = node.In(0);
    const Val x = graph::RandomUniform(node.builder(), p.shape(), ReadSeed(node), ElementType::kF32);
    node.Out(graph::Cast(graph::map::Less(x, graph::Cast(p, ElementType::kF32)),
                         ReadType(node, p.element())));
}

void ImportMultinomial(Node& node) {
    node.Out(graph::Multinomial(node.In(0), node.Int("sample_size", 1), ReadSeed(node),
                                ReadType(node, ElementType::kI32)));
}

constexpr OperatorEntry kOperators[] = {
    {"Bernoulli", 1, ImportBernoulli},       {"Multinomial", 1, ImportMultinomial},
    {"RandomNormal", 0, ImportNormal},       {"RandomNormalLike", 1, ImportNormalLike},
    {"RandomUniform", 0, ImportUniform},     {"RandomUniformLike", 1, ImportUniformLike},
};

}  // namespace

std::span<const OperatorEntry> RandomOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
