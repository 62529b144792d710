// Looks for a program that serves a graph's sizes before one is made for them alone.
#include "plugins/ggml/programs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"

namespace fornax::ggml_plugin {
namespace {

graph::CompileOptions Options(std::set<std::string> dynamic_sizes = {}) {
    graph::CompileOptions options;
    options.strict = true;
    options.dynamic_sizes = std::move(dynamic_sizes);
    return options;
}

}  // namespace

struct Programs::Request {
    const graph::Graph& graph;
    const graph::FamilyMember& member;
    std::span<const runtime::Dims> dims;
    std::span<const graph::WeightInput> weights;
    const std::string& what;
};

Result<std::shared_ptr<const runtime::Program>> Programs::Get(
    graph::Graph graph,
    std::span<const runtime::Dims> dims,
    std::span<const graph::WeightInput> weights,
    const std::string& what) {
    const std::optional<graph::FamilyMember> member = graph::SplitSizes(graph);
    if (!member) {
        FORNAX_ASSIGN_OR_RETURN(PlanSource::Found found,
                                plans_.Get(std::move(graph), Options(), what));
        return Create(std::move(found), what);
    }
    const Request request = {graph, *member, dims, weights, what};
    Family& family = FamilyOf(request);
    if (Program program = FindOpen(family, request)) {
        return program;
    }
    // A plan that is there costs nothing. To make one for these sizes alone is the last resort.
    Result<PlanSource::Found> found = plans_.Get(graph, Options(), what, false);
    if (!found.ok()) {
        if (Program program = MakeOpen(family, request)) {
            return program;
        }
        found = plans_.Get(std::move(graph), Options(), what);
    }
    if (!found.ok()) {
        return std::move(found).error();
    }
    FORNAX_ASSIGN_OR_RETURN(Program program, Create(*std::move(found), what));
    if (std::ranges::find(family.record.samples, member->sizes) == family.record.samples.end()) {
        family.record.AddSample(member->sizes);
        plans_.StoreFamily(family.key, family.record);
    }
    return program;
}

Result<Programs::Program> Programs::Create(PlanSource::Found found, const std::string& what) {
    LogInfo("ggml: {} is {} steps ({})", what, found.plan.steps.size(), found.from);
    return runtime::Program::Create(device_, std::move(found.plan), {});
}

Programs::Family& Programs::FamilyOf(const Request& request) {
    const Hash128& key = request.member.family;
    const auto found = std::ranges::find(families_, key, &Family::key);
    if (found != families_.end()) {
        families_.splice(families_.begin(), families_, found);
        return families_.front();
    }
    Family& family = families_.emplace_front();
    family.key = key;
    family.record = plans_.FindFamily(key);
    for (const graph::FamilyRecord::Basis& basis : family.record.bases) {
        Propose(family, request.graph, basis);
    }
    if (families_.size() > kMostFamilies) {
        families_.pop_back();
    }
    return families_.front();
}

bool Programs::Propose(Family& family,
                       const graph::Graph& graph,
                       graph::FamilyRecord::Basis basis) {
    std::optional<graph::Generalization> form =
        basis.size() == 2 ? graph::Generalization::Between(graph, basis[0], basis[1])
                          : graph::Generalization::Among(graph, basis[0], basis[1], basis[2]);
    if (form) {
        family.generalized.push_back(
            {.basis = std::move(basis), .form = *std::move(form), .program = nullptr});
    }
    return form.has_value();
}

Programs::Program Programs::Open(Family& family, Generalized& form, const Request& request) {
    if (form.is_broken || !form.form.Covers(request.member.sizes)) {
        return nullptr;
    }
    const auto serves = [&](const graph::Plan& plan) {
        const Result<runtime::Fit> fit = runtime::FitSizes(plan, request.dims);
        const std::string reason = fit.ok() ? fit->reason : fit.error().message;
        if (!reason.empty()) {
            LogDebug("ggml: {} needs a plan of its own. {}", request.what, reason);
        }
        return reason.empty();
    };
    if (form.program != nullptr) {
        if (!serves(form.program->plan())) {
            return nullptr;
        }
        LogInfo("ggml: {} is {} steps (HIT for other sizes)", request.what,
                form.program->plan().steps.size());
        return form.program;
    }
    const auto make = [&]() -> Result<Program> {
        FORNAX_ASSIGN_OR_RETURN(
            graph::Graph graph,
            form.form.Apply(request.graph,
                            fmt::format("family {}", family.key.ToHex().substr(0, 16)),
                            request.weights));
        FORNAX_ASSIGN_OR_RETURN(
            PlanSource::Found found,
            plans_.Get(std::move(graph), Options(form.form.symbols()), request.what));
        found.from += ", generalized";
        if (!serves(found.plan)) {
            return Program();
        }
        return Create(std::move(found), request.what);
    };
    Result<Program> made = make();
    if (!made.ok()) {
        LogDebug("ggml: {} is not generalized. {}", request.what, made.error().message);
        form.is_broken = true;
        return nullptr;
    }
    form.program = *made;
    if (form.program != nullptr) {
        plans_.ExportFamily(family.key, {.samples = {}, .bases = family.record.bases});
    }
    return form.program;
}

Programs::Program Programs::FindOpen(Family& family, const Request& request) {
    // Those that are loaded first.
    for (const bool is_loaded : {true, false}) {
        for (Generalized& form : family.generalized) {
            if ((form.program != nullptr) != is_loaded) {
                continue;
            }
            if (Program program = Open(family, form, request)) {
                return program;
            }
        }
    }
    return nullptr;
}

Programs::Program Programs::MakeOpen(Family& family, const Request& request) {
    // Those first from which the fewest sizes differ: then it is one that grew.
    std::vector<std::pair<size_t, graph::FamilyRecord::Sizes>> others;
    const auto add = [&](const graph::FamilyRecord::Sizes& sizes) {
        size_t differences = 0;
        for (size_t i = 0; i < std::min(sizes.size(), request.member.sizes.size()); ++i) {
            differences += sizes[i] != request.member.sizes[i] ? 1 : 0;
        }
        others.emplace_back(differences, sizes);
    };
    std::ranges::for_each(family.record.samples, add);
    for (const graph::FamilyRecord::Basis& basis : family.record.bases) {
        std::ranges::for_each(basis, add);
    }
    std::ranges::sort(others);
    const auto repeated = std::ranges::unique(others);
    others.erase(repeated.begin(), repeated.end());
    // A form of one symbol is likely to be right if it serves another member that is known: two
    // that differ in two sizes may happen to have one as well.
    const auto make = [&](bool is_likely) -> Program {
        for (const auto& [differences, sizes] : others) {
            if (!Propose(family, request.graph, {sizes, request.member.sizes})) {
                continue;
            }
            const graph::Generalization& form = family.generalized.back().form;
            const auto is_served = [&](const auto& other) {
                return other.second != sizes && form.Covers(other.second);
            };
            if ((others.size() == 1 || std::ranges::any_of(others, is_served)) != is_likely) {
                family.generalized.pop_back();
            } else if (Program program = OpenLast(family, request)) {
                return program;
            }
        }
        return nullptr;
    };
    if (Program program = make(true)) {
        return program;
    }
    // What is wrong with one form of two symbols would be with the others.
    bool is_found = false;
    for (size_t i = 0; i < others.size() && !is_found; ++i) {
        for (size_t j = i + 1; j < others.size() && !is_found; ++j) {
            is_found = Propose(family, request.graph,
                               {others[i].second, others[j].second, request.member.sizes});
        }
    }
    if (is_found) {
        if (Program program = OpenLast(family, request)) {
            return program;
        }
    }
    return make(false);
}

Programs::Program Programs::OpenLast(Family& family, const Request& request) {
    const graph::FamilyRecord earlier = family.record;
    family.record.AddBasis(family.generalized.back().basis);
    if (Program program = Open(family, family.generalized.back(), request)) {
        plans_.StoreFamily(family.key, family.record);
        if (family.generalized.size() > graph::FamilyRecord::kMostBases) {
            family.generalized.erase(family.generalized.begin());
        }
        return program;
    }
    family.record = earlier;
    family.generalized.pop_back();
    return nullptr;
}

}  // namespace fornax::ggml_plugin
