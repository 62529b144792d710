// Cuts samples into batches and puts the results together.
#include "tools/fornax/graph_samples.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::tool {
namespace {

size_t ElementsBehindFirst(const std::vector<int64_t>& dims) {
    size_t elements = 1;
    for (size_t i = 1; i < dims.size(); ++i) {
        elements *= static_cast<size_t>(dims[i]);
    }
    return elements;
}

std::vector<int64_t> DimsOf(const legacy_graph::TensorType& type) {
    return {type.shape.dims().begin(), type.shape.dims().end()};
}

// Whether the shapes agree in everything but the first dimension, which both have.
bool SameButFirst(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    return !a.empty() && a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

}  // namespace

Result<Batching> PlanBatches(const legacy_graph::Plan& plan, std::span<const HostTensor> inputs) {
    if (inputs.size() != plan.inputs.size()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The model has {} inputs, and {} are given.", plan.inputs.size(),
                                 inputs.size())};
    }
    bool exact = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const std::vector<int64_t> wanted = DimsOf(plan.inputs[i].type);
        if (!inputs[i].is_float()) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The data for the input {} are integers; it takes {}.",
                                     plan.inputs[i].name, plan.inputs[i].type.ToString())};
        }
        if (inputs[i].dims != wanted &&
            (!SameButFirst(inputs[i].dims, wanted) || inputs[i].dims[0] != inputs[0].dims[0])) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The data for the input {} have the shape {}; it takes {}.",
                                     plan.inputs[i].name, fmt::join(inputs[i].dims, "x"),
                                     plan.inputs[i].type.shape.ToString())};
        }
        exact = exact && inputs[i].dims == wanted;
    }
    if (exact) {
        const bool has_batch = !inputs.empty() && !inputs[0].dims.empty();
        const size_t samples = has_batch ? static_cast<size_t>(inputs[0].dims[0]) : 1;
        return Batching{samples, samples, 1};
    }
    const auto samples = static_cast<size_t>(inputs[0].dims[0]);
    const size_t per_run = plan.inputs[0].type.shape[0];
    auto fits = [&](const legacy_graph::PlanPort& port) {
        return port.type.shape.rank() >= 1 && port.type.shape[0] == per_run;
    };
    for (const auto* ports : {&plan.inputs, &plan.outputs}) {
        for (const legacy_graph::PlanPort& port : *ports) {
            if (!fits(port)) {
                return Error{ErrorCode::kInvalidArgument,
                             fmt::format("The data hold {} samples, but {} of {} does not take "
                                         "samples {} at a time.",
                                         samples, port.name, port.type.ToString(), per_run)};
            }
        }
    }
    return Batching{samples, per_run, (samples + per_run - 1) / per_run};
}

Result<std::vector<HostTensor>> RunBatches(const legacy_graph::Plan& plan,
                                           const Batching& batching,
                                           std::span<const HostTensor> inputs,
                                           const RunFunction& run) {
    std::vector<std::vector<float>> in, out;
    std::vector<HostTensor> results;
    for (const legacy_graph::PlanPort& port : plan.inputs) {
        in.emplace_back(port.type.shape.elements());
    }
    for (const legacy_graph::PlanPort& port : plan.outputs) {
        out.emplace_back(port.type.shape.elements());
        HostTensor& result = results.emplace_back();
        result.dims = DimsOf(port.type);
        if (batching.runs > 1 || batching.samples != batching.per_run) {
            result.dims[0] = static_cast<int64_t>(batching.samples);
        }
    }
    const std::vector<std::span<const float>> in_spans(in.begin(), in.end());
    const std::vector<std::span<float>> out_spans(out.begin(), out.end());

    for (size_t first = 0, i = 0; i < batching.runs; ++i, first += batching.per_run) {
        const size_t count = std::min(batching.per_run, batching.samples - first);
        const bool whole = batching.runs == 1 && count == batching.per_run;
        for (size_t p = 0; p < in.size(); ++p) {
            const std::vector<float>& source = inputs[p].floats;
            const size_t size = whole ? in[p].size() : ElementsBehindFirst(inputs[p].dims) * count;
            const size_t begin = whole ? 0 : ElementsBehindFirst(inputs[p].dims) * first;
            std::copy_n(source.begin() + static_cast<ptrdiff_t>(begin), size, in[p].begin());
            std::fill(in[p].begin() + static_cast<ptrdiff_t>(size), in[p].end(), 0.0f);
        }
        FORNAX_RETURN_IF_ERROR(run(in_spans, out_spans));
        for (size_t p = 0; p < out.size(); ++p) {
            const size_t size =
                whole ? out[p].size() : ElementsBehindFirst(results[p].dims) * count;
            results[p].floats.insert(results[p].floats.end(), out[p].begin(),
                                     out[p].begin() + static_cast<ptrdiff_t>(size));
        }
    }
    return results;
}

std::vector<size_t> ArgMax(const HostTensor& scores) {
    const size_t classes = ElementsBehindFirst(scores.dims);
    std::vector<size_t> best;
    for (size_t row = 0; row + classes <= scores.floats.size(); row += classes) {
        const auto begin = scores.floats.begin() + static_cast<ptrdiff_t>(row);
        best.push_back(static_cast<size_t>(
            std::max_element(begin, begin + static_cast<ptrdiff_t>(classes)) - begin));
    }
    return best;
}

}  // namespace fornax::tool
