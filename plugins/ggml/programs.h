// Programs of imported graphs: one for all sizes of a graph where that is possible.
//
// llama.cpp gives the same graph again and again with a larger cache of keys and values. The second
// graph that differs from an earlier one in its sizes alone is generalized
// (compiler/graph/generalize/), and its program serves all that follow, in other processes too.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/generalize/generalize.h"
#include "compiler/graph/generalize/sizes_of_graph.h"
#include "plugins/ggml/plans.h"
#include "runtime/plan/sizes.h"
#include "runtime/program.h"

namespace fornax::ggml_plugin {

// For one thread at a time.
class Programs {
  public:
    explicit Programs(std::shared_ptr<vulkan::Device> device) : device_(std::move(device)) {}

    // The program of a verified graph with constant sizes, which messages call `what`. `dims` are
    // its inputs' dimensions.
    Result<std::shared_ptr<const runtime::Program>> Get(graph::Graph graph,
                                                        std::span<const runtime::Dims> dims,
                                                        std::span<const graph::WeightInput> weights,
                                                        const std::string& what);

  private:
    using Program = std::shared_ptr<const runtime::Program>;
    static constexpr size_t kMostFamilies = 64;

    struct Generalized {
        graph::FamilyRecord::Basis basis;
        graph::Generalization form;
        Program program;  // null before the first use
        bool is_broken = false;
    };
    struct Family {
        Hash128 key;
        graph::FamilyRecord record;
        std::vector<Generalized> generalized;
    };
    struct Request;

    Family& FamilyOf(const Request& request);
    // False if the members are none that have a graph in common.
    static bool Propose(Family& family,
                        const graph::Graph& graph,
                        graph::FamilyRecord::Basis basis);
    // The program of a generalized graph if it serves the request. Null if it does not.
    Program Open(Family& family, Generalized& form, const Request& request);
    Program FindOpen(Family& family, const Request& request);
    Program MakeOpen(Family& family, const Request& request);
    // The same of the last form that was proposed, which goes if it does not serve.
    Program OpenLast(Family& family, const Request& request);
    Result<Program> Create(PlanSource::Found found, const std::string& what);

    const std::shared_ptr<vulkan::Device> device_;
    PlanSource plans_;
    std::list<Family> families_;  // the last used first
};

}  // namespace fornax::ggml_plugin
