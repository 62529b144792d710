// LSTM, GRU and RNN.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/frontends/onnx/recurrent_attributes.h"

namespace fornax::onnx_frontend {
namespace {

using graph::RecurrentActivation;
using graph::RecurrentKind;

std::string Lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

// An activation with what it has where the model says nothing.
struct ActivationForm {
    RecurrentActivation activation;
    bool has_alpha = false;
    bool has_beta = false;
};

ActivationForm FormOf(const std::string& name) {
    const std::string lower = Lower(name);
    if (lower == "leakyrelu") {
        return {{lower, 0.01F, 0}, true, false};
    }
    if (lower == "elu" || lower == "thresholdedrelu") {
        return {{lower, 1, 0}, true, false};
    }
    if (lower == "hardsigmoid") {
        return {{lower, 0.2F, 0.5}, true, true};
    }
    if (lower == "scaledtanh" || lower == "affine") {
        return {{lower, 1, lower == "affine" ? 0.0 : 1.0}, true, true};
    }
    return {{lower, 0, 0}, false, false};
}

void ReadActivations(Node& node, graph::RecurrentOptions& options) {
    std::vector<std::string> names = node.Texts("activations");
    if (names.empty()) {
        for (size_t i = 0; i < options.reversed.size(); ++i) {
            if (options.kind == RecurrentKind::kRnn) {
                names.insert(names.end(), {"Tanh"});
            } else if (options.kind == RecurrentKind::kGru) {
                names.insert(names.end(), {"Sigmoid", "Tanh"});
            } else {
                names.insert(names.end(), {"Sigmoid", "Tanh", "Tanh"});
            }
        }
    }
    // The lists of numbers have entries for those activations alone that take one.
    const std::vector<double> alphas = node.Floats("activation_alpha");
    const std::vector<double> betas = node.Floats("activation_beta");
    size_t next_alpha = 0, next_beta = 0;
    for (const std::string& name : names) {
        ActivationForm form = FormOf(name);
        if (form.has_alpha && next_alpha < alphas.size()) {
            form.activation.alpha = alphas[next_alpha++];
        }
        if (form.has_beta && next_beta < betas.size()) {
            form.activation.beta = betas[next_beta++];
        }
        options.activations.push_back(std::move(form.activation));
    }
}

}  // namespace

graph::RecurrentOptions ReadRecurrentOptions(Node& node, RecurrentKind kind) {
    graph::RecurrentOptions options;
    options.kind = kind;
    const std::string direction = node.Text("direction", "forward");
    if (direction == "bidirectional") {
        options.reversed = {false, true};
    } else if (direction == "forward" || direction == "reverse") {
        options.reversed = {direction == "reverse"};
    } else {
        FailInvalid(fmt::format("its direction is \"{}\"", direction));
    }
    ReadActivations(node, options);
    if (kind == RecurrentKind::kRnn) {
        options.activations.resize(std::min(options.activations.size(), options.reversed.size()));
    }
    options.clip = node.Float("clip", 0);
    options.linear_before_reset = node.Int("linear_before_reset", 0) != 0;
    options.input_forget = node.Int("input_forget", 0) != 0;
    return options;
}

namespace {

template <RecurrentKind kind>
void ImportRecurrent(Node& node) {
    const graph::RecurrentOptions options = ReadRecurrentOptions(node, kind);
    // With layout 1 the batch comes first.
    const bool batch_first = node.Int("layout", 0) != 0;
    const auto swap = [&](Val v) { return v && batch_first ? graph::Permute(v, {1, 0, 2}) : v; };
    const bool lstm = kind == RecurrentKind::kLstm;
    const graph::RecurrentResult result = graph::Recurrent(
        {swap(node.In(0)), node.In(1), node.In(2), node.Opt(3), node.Opt(4), swap(node.Opt(5)),
         lstm ? swap(node.Opt(6)) : Val(), lstm ? node.Opt(7) : Val()},
        options);
    node.Out(0, batch_first ? graph::Permute(result.y, {2, 0, 1, 3}) : result.y);
    node.Out(1, swap(result.h));
    if (lstm) {
        node.Out(2, swap(result.c));
    }
}

constexpr OperatorEntry kOperators[] = {
    {"GRU", 3, ImportRecurrent<RecurrentKind::kGru>},
    {"LSTM", 3, ImportRecurrent<RecurrentKind::kLstm>},
    {"RNN", 3, ImportRecurrent<RecurrentKind::kRnn>},
};

}  // namespace

std::span<const OperatorEntry> RecurrentOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
