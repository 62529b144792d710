// Compares what plans of a random graph compute with what the interpreter does.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph::testing {
namespace {

bool Hold(std::span<const Guard> guards, const Bindings& sizes) {
    return std::all_of(guards.begin(), guards.end(),
                       [&](const Guard& guard) { return guard.Holds(sizes); });
}

// Whether a plan serves inputs of these sizes: as the runtime decides it.
bool Fits(const Plan& plan, const RandomCase& inputs) {
    Bindings sizes;
    for (const SymbolSource& source : plan.sources) {
        sizes.emplace(source.symbol,
                      *ValueOf(plan, source, inputs.inputs[source.port].dims[source.axis]));
    }
    for (size_t port = 0; port < plan.inputs.size(); ++port) {
        const Shape& shape = plan.inputs[port].type.shape;
        for (size_t axis = 0; axis < shape.rank(); ++axis) {
            if (shape[axis].Evaluate(sizes) != inputs.inputs[port].dims[axis]) {
                return false;
            }
        }
    }
    return Hold(plan.guards, sizes);
}

class Check {
  public:
    Check(const RandomGraph& random, const LoadPlan& load, size_t* runs)
        : random_(random), load_(load), runs_(runs) {}

    // Which of the cases were run, or an error.
    Result<std::vector<bool>> Run() {
        FORNAX_RETURN_IF_ERROR(Verify(random_.graph));
        FORNAX_ASSIGN_OR_RETURN(Plan plan,
                                Compile(random_.graph, {.dynamic_sizes = random_.dynamic_sizes}));
        FORNAX_RETURN_IF_ERROR(ValidatePlan(plan));
        std::vector<bool> fits;
        for (const RandomCase& inputs : random_.cases) {
            fits.push_back(Hold(random_.graph.sizes().guards(), inputs.sizes) &&
                           Fits(plan, inputs));
        }
        if (!fits[0]) {
            return Error{ErrorCode::kInternal, "The plan does not serve the graph's own hints."};
        }
        FORNAX_ASSIGN_OR_RETURN(run_, load_(std::move(plan)));
        for (size_t i = 0; i < fits.size(); ++i) {
            for (int time = 0; fits[i] && time < (random_.has_state ? 2 : 1); ++time) {
                FORNAX_RETURN_IF_ERROR(Compare(random_.cases[i]));
            }
        }
        return fits;
    }

  private:
    Status Compare(const RandomCase& inputs) {
        FORNAX_ASSIGN_OR_RETURN(const std::vector<Tensor> expected,
                                Interpret(random_.graph, inputs.inputs, {.states = &states_}));
        FORNAX_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, run_(inputs.inputs));
        *runs_ += 1;
        for (size_t i = 0; i < expected.size(); ++i) {
            const std::string difference =
                Difference(actual[i], expected[i], random_.exact[i] ? 0 : random_.tolerance[i]);
            if (!difference.empty()) {
                std::string sizes;
                for (const auto& [symbol, value] : inputs.sizes) {
                    sizes += fmt::format(" {}={}", symbol.name(), value);
                }
                return Error{ErrorCode::kInternal,
                             fmt::format("Output {} for{}: {}", i, sizes, difference)};
            }
        }
        return OkStatus();
    }

    const RandomGraph& random_;
    const LoadPlan& load_;
    size_t* runs_;
    RunPlan run_;
    States states_;
};

}  // namespace

std::string CheckRandomGraph(uint64_t seed, const LoadPlan& load, size_t* runs) {
    size_t count = 0;
    std::vector<bool> done(kRandomCases, false);
    for (size_t first = 0; first < kRandomCases; ++first) {
        if (done[first]) {
            continue;
        }
        const RandomGraph random = MakeRandomGraph(seed, first);
        const Result<std::vector<bool>> fits = Check(random, load, &count).Run();
        if (!fits.ok()) {
            return fmt::format("Seed {}, case {}: {}", seed, first, fits.error().message);
        }
        for (size_t i = 0; i < random.cases.size(); ++i) {
            done[(first + i) % kRandomCases] = done[(first + i) % kRandomCases] || (*fits)[i];
        }
        if (random.dynamic_sizes.empty() && random.cases[0].sizes.empty()) {
            break;  // all cases are of one size
        }
    }
    if (runs != nullptr) {
        *runs = count;
    }
    return "";
}

std::string CheckRandomGraphOnHost(uint64_t seed, size_t* runs) {
    const LoadPlan load = [](Plan plan) -> Result<RunPlan> {
        return RunPlan([kept = std::make_shared<const Plan>(std::move(plan)),
                        states = std::make_shared<PlanStates>()](std::span<const Tensor> inputs) {
            return InterpretPlan(*kept, inputs, {}, {}, states.get());
        });
    };
    return CheckRandomGraph(seed, load, runs);
}

}  // namespace fornax::graph::testing
