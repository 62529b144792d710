// Sequences and optionals: they exist at import only, as lists of values.
#include <fmt/format.h>

#include "compiler/frontends/onnx/graph_importer.h"
#include "compiler/frontends/onnx/operator_families.h"

namespace fornax::onnx_frontend {
namespace {

// A place in a sequence of `size` items; up to `size` itself if `behind`.
size_t Position(Node& node, size_t input, size_t size, bool behind) {
    const int64_t count = static_cast<int64_t>(size);
    const int64_t given = node.Integer(input, "the position");
    const int64_t place = given < 0 ? given + count : given;
    if (place < 0 || place > (behind ? count : count - 1)) {
        FailInvalid(fmt::format("the position {} is not in a sequence of {}", given, size));
    }
    return static_cast<size_t>(place);
}

void ImportSequenceEmpty(Node& node) {
    node.Out(0, Item(std::vector<Item>()));
}

void ImportSequenceConstruct(Node& node) {
    std::vector<Item> items;
    for (const Val& value : node.All()) {
        items.emplace_back(value);
    }
    node.Out(0, Item(std::move(items)));
}

void ImportSequenceInsert(Node& node) {
    std::vector<Item> items = node.InSequence(0);
    const size_t place = node.Has(2) ? Position(node, 2, items.size(), true) : items.size();
    items.insert(items.begin() + static_cast<int64_t>(place), node.InItem(1));
    node.Out(0, Item(std::move(items)));
}

void ImportSequenceErase(Node& node) {
    std::vector<Item> items = node.InSequence(0);
    if (items.empty()) {
        FailInvalid("the sequence is empty");
    }
    const size_t place = node.Has(1) ? Position(node, 1, items.size(), false) : items.size() - 1;
    items.erase(items.begin() + static_cast<int64_t>(place));
    node.Out(0, Item(std::move(items)));
}

void ImportSequenceAt(Node& node) {
    const std::vector<Item>& items = node.InSequence(0);
    node.Out(0, items[Position(node, 1, items.size(), false)]);
}

void ImportSequenceLength(Node& node) {
    node.Out(
        node.builder().Integer(ElementType::kI64, static_cast<int64_t>(node.InSequence(0).size())));
}

void ImportConcatFromSequence(Node& node) {
    Vals values;
    for (const Item& item : node.InSequence(0)) {
        if (item.kind != Item::Kind::kTensor) {
            FailInvalid("the sequence's items are not tensors");
        }
        values.push_back(item.tensor);
    }
    if (values.empty()) {
        FailInvalid("the sequence is empty");
    }
    node.Out(node.Int("new_axis", 0) != 0 ? graph::Stack(values, node.Int("axis"))
                                          : graph::Concat(values, node.Int("axis")));
}

void ImportSplitToSequence(Node& node) {
    constexpr int64_t kMaxItems = 65536;
    Builder& b = node.builder();
    const Val x = node.In(0);
    const int64_t axis = node.Int("axis", 0);
    const int64_t size = b.sizes().Fix(x.dim(axis));
    std::vector<Expr> parts;
    const bool single = !node.Has(1);
    if (single || node.In(1).rank() == 0) {
        const int64_t part = single ? 1 : node.Integer(1, "the size of the parts");
        if (part < 1 || size / part >= kMaxItems) {
            FailInvalid(fmt::format("{} elements are split into parts of {}", size, part));
        }
        for (int64_t at = 0; at < size; at += part) {
            parts.emplace_back(std::min(part, size - at));
        }
    } else {
        parts = node.Sizes(1, "the sizes of the parts");
    }
    std::vector<Item> items;
    for (const Val& part : graph::Split(x, axis, parts)) {
        const bool squeeze = single && node.Int("keepdims", 1) == 0;
        items.emplace_back(squeeze ? graph::Squeeze(part, axis) : part);
    }
    node.Out(0, Item(std::move(items)));
}

// The body for each item; further inputs are sequences as long, or tensors.
void ImportSequenceMap(Node& node) {
    const onnx::GraphProto& graph = node.Subgraph("body");
    const size_t length = node.InSequence(0).size();
    std::vector<std::vector<Item>> outputs(node.output_count());
    for (size_t i = 0; i < length; ++i) {
        std::vector<Item> inputs;
        for (size_t input = 0; input < node.input_count(); ++input) {
            const Item& item = node.InItem(input);
            if (item.kind != Item::Kind::kSequence) {
                inputs.push_back(item);
                continue;
            }
            if (item.sequence->size() != length) {
                FailInvalid(fmt::format("its sequences have {} and {} items", length,
                                        item.sequence->size()));
            }
            inputs.push_back((*item.sequence)[i]);
        }
        const std::vector<Item> results = node.importer().Inline(graph, inputs);
        for (size_t output = 0; output < outputs.size() && output < results.size(); ++output) {
            outputs[output].push_back(results[output]);
        }
    }
    for (size_t output = 0; output < outputs.size(); ++output) {
        node.Out(output, Item(std::move(outputs[output])));
    }
}

void ImportOptional(Node& node) {
    node.Out(0, node.Has(0) ? node.InItem(0) : Item());
}

void ImportOptionalHasElement(Node& node) {
    node.Out(node.builder().Integer(ElementType::kBool, node.Has(0) ? 1 : 0));
}

void ImportOptionalGetElement(Node& node) {
    if (!node.Has(0)) {
        FailInvalid("the optional is empty");
    }
    node.Out(0, node.InItem(0));
}

constexpr OperatorEntry kOperators[] = {
    {"ConcatFromSequence", 1, ImportConcatFromSequence},
    {"Optional", 0, ImportOptional},
    {"OptionalGetElement", 0, ImportOptionalGetElement},
    {"OptionalHasElement", 0, ImportOptionalHasElement},
    {"SequenceAt", 2, ImportSequenceAt},
    {"SequenceConstruct", 0, ImportSequenceConstruct},
    {"SequenceEmpty", 0, ImportSequenceEmpty},
    {"SequenceErase", 1, ImportSequenceErase},
    {"SequenceInsert", 2, ImportSequenceInsert},
    {"SequenceLength", 1, ImportSequenceLength},
    {"SequenceMap", 1, ImportSequenceMap},
    {"SplitToSequence", 1, ImportSplitToSequence},
};

}  // namespace

std::span<const OperatorEntry> SequenceOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
