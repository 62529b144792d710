// Coverage-guided fuzzing of what a graph's text leads to: reading, checking, writing, and running
// it on zeros. Texts that are read must be written as a text that gives the same.
#include "compiler/graph/interpret/interpreter.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/fuzz_outcomes.h"
#include "compiler/graph/ir/text.h"

namespace {

using namespace fornax::graph;

// Enough for small graphs, and little time for each.
constexpr uint64_t kMaxBytes = 1 << 20;
constexpr uint64_t kMaxSteps = 100'000;

// Zeros for all inputs, with the sizes of the hints; empty if one would take too much.
std::vector<Tensor> InputsOf(const Graph& graph) {
    std::vector<Tensor> inputs;
    for (const ValueId id : graph.inputs()) {
        const TensorType& type = graph.TypeOf(id);
        std::vector<int64_t> dims;
        int64_t count = 1;
        for (const Expr& dim : type.shape.dims()) {
            dims.push_back(graph.sizes().Hint(dim));
            count *= std::max<int64_t>(dims.back(), 1);
            if (dims.back() < 0 || count > int64_t{1000}) {
                return {};
            }
        }
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(type.element, dims, &data);
        if (type.element == ElementType::kString) {
            tensor.data = nullptr;
            tensor.strings = std::make_shared<const std::vector<std::string>>(tensor.count());
        }
        inputs.push_back(std::move(tensor));
    }
    return inputs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const fornax::Result<Graph> graph = ParseGraph(text);
    fornax::FuzzOutcomes::Count(graph.ok());
    if (!graph.ok()) {
        return 0;
    }
    const std::string written = ToText(*graph);
    const fornax::Result<Graph> again = ParseGraph(written);
    if (!again.ok() || ToText(*again) != written) {
        std::fprintf(stderr, "The text differs when it is read again: %s\n%s\n",
                     again.ok() ? "" : again.error().message.c_str(), written.c_str());
        std::abort();
    }
    InterpretOptions options;
    options.max_bytes = kMaxBytes;
    options.max_steps = kMaxSteps;
    const std::vector<Tensor> inputs = InputsOf(*graph);
    const fornax::Result<std::vector<Tensor>> outputs = Interpret(*graph, inputs, options);
    if (outputs.ok() && outputs->size() != graph->outputs().size()) {
        std::abort();
    }
    return 0;
}
