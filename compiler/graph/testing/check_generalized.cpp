// Compares what the plan of a generalized random graph computes with what the interpreter makes of
// the graphs that it stands for.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/compile.h"
#include "compiler/graph/generalize/generalize.h"
#include "compiler/graph/generalize/sizes_of_graph.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph::testing {
namespace {

// A random graph of one size.
struct Member {
    RandomGraph random;
    Graph graph;
    FamilyMember split;
};

Result<Member> MakeMember(uint64_t seed, size_t number) {
    RandomGraph random = MakeRandomGraph(seed, number);
    FORNAX_ASSIGN_OR_RETURN(Graph graph, SpecializeSizes(random.graph, {}));
    std::optional<FamilyMember> split = SplitSizes(graph);
    if (!split) {
        return Error{ErrorCode::kInternal, "A size is left."};
    }
    return Member{std::move(random), std::move(graph), *std::move(split)};
}

bool Serves(const Plan& plan, std::span<const Tensor> inputs) {
    Bindings sizes;
    for (const SymbolSource& source : plan.sources) {
        sizes.emplace(source.symbol, *ValueOf(plan, source, inputs[source.port].dims[source.axis]));
    }
    for (size_t port = 0; port < plan.inputs.size(); ++port) {
        const Shape& shape = plan.inputs[port].type.shape;
        for (size_t axis = 0; axis < shape.rank(); ++axis) {
            if (shape[axis].Evaluate(sizes) != inputs[port].dims[axis]) {
                return false;
            }
        }
    }
    return std::ranges::all_of(plan.guards, [&](const Guard& guard) { return guard.Holds(sizes); });
}

std::string Compare(const Plan& plan, const Member& member) {
    const RandomCase& inputs = member.random.cases[0];
    States states;
    PlanStates plan_states;
    for (int time = 0; time < (member.random.has_state ? 2 : 1); ++time) {
        const Result<std::vector<Tensor>> expected =
            Interpret(member.graph, inputs.inputs, {.states = &states});
        const Result<std::vector<Tensor>> actual =
            InterpretPlan(plan, inputs.inputs, {}, {}, &plan_states);
        if (!expected.ok() || !actual.ok()) {
            return (!expected.ok() ? expected : actual).error().message;
        }
        for (size_t i = 0; i < expected->size(); ++i) {
            std::string difference =
                Difference((*actual)[i], (*expected)[i],
                           member.random.exact[i] ? 0 : member.random.tolerance[i]);
            if (!difference.empty()) {
                return difference;
            }
        }
    }
    return "";
}

}  // namespace

std::string CheckGeneralizedOnHost(uint64_t seed, size_t* served) {
    std::vector<Member> members;
    for (size_t number = 0; number < kRandomCases; ++number) {
        Result<Member> member = MakeMember(seed, number);
        if (!member.ok()) {
            return fmt::format("Seed {}, case {}: {}", seed, number, member.error().message);
        }
        members.push_back(*std::move(member));
    }
    for (size_t a = 0; a < members.size(); ++a) {
        for (size_t b = 0; b < members.size(); ++b) {
            const FamilyMember &first = members[a].split, &second = members[b].split;
            const std::optional<Generalization> form =
                a == b || first.family != second.family
                    ? std::nullopt
                    : Generalization::Between(members[a].graph, first.sizes, second.sizes);
            if (!form) {
                continue;
            }
            Result<Graph> graph = form->Apply(members[a].graph, "general", {});
            if (!graph.ok()) {
                continue;
            }
            const Result<Plan> plan =
                Compile(*std::move(graph), {.dynamic_sizes = form->symbols()});
            if (!plan.ok()) {
                continue;
            }
            if (const Status valid = ValidatePlan(*plan); !valid.ok()) {
                return fmt::format("Seed {}: {}", seed, valid.error().message);
            }
            for (size_t c = 0; c < members.size(); ++c) {
                const Member& member = members[c];
                if (member.split.family != first.family || !form->Covers(member.split.sizes) ||
                    !Serves(*plan, member.random.cases[0].inputs)) {
                    continue;
                }
                *served += c != a && c != b ? 1 : 0;
                const std::string difference = Compare(*plan, member);
                if (!difference.empty()) {
                    return fmt::format("Seed {}, cases {} and {}, run with {}: {}", seed, a, b, c,
                                       difference);
                }
            }
        }
    }
    return "";
}

}  // namespace fornax::graph::testing
