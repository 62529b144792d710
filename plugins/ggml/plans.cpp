// Looks for plans in order, and says where one came from or what is missing.
#include "plugins/ggml/plans.h"

#include <map>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"
#include "base/log.h"
#include "compiler/graph/graph_hash.h"
#include "compiler/graph/plan/plan_cache.h"
#include "plugins/ggml/compile_process.h"

namespace fornax::ggml_plugin {
namespace {

std::optional<graph::KernelDirectory> ExportDirectory() {
    const std::optional<std::string> path = EnvironmentText("FORNAX_GGML_EXPORT");
    const std::string formats =
        "," + EnvironmentText("FORNAX_GGML_EXPORT_FORMATS").value_or("plan") + ",";
    return path && formats.find(",plan,") != std::string::npos
               ? std::optional<graph::KernelDirectory>(*path)
               : std::nullopt;
}

constexpr CacheKind kFamilyCacheKind = {
    .name = "graphfamily",
    .extension = "family",
    .version = graph::kFamilyRecordVersion,
    .executable = false,
};

// The hash of a file's contents. A name that is looked up in PATH has none: its name alone counts.
Hash128 VersionOf(const std::string& compiler) {
    const Result<Hash128> contents = HashFile(compiler);
    return contents.ok() ? *contents : Hash128{};
}

std::string DefaultCacheDirectory() {
    Result<std::string> directory = CacheDirectory();
    return directory.ok() ? *std::move(directory) : std::string();
}

// Sizes that either leaves open are the plan's guards to check.
bool Fits(const graph::TensorType& type, const graph::TensorType& plan) {
    if (type.element != plan.element || type.shape.rank() != plan.shape.rank()) {
        return false;
    }
    for (size_t axis = 0; axis < type.shape.rank(); ++axis) {
        const graph::Expr &a = type.shape[axis], &b = plan.shape[axis];
        if (a.is_constant() && b.is_constant() && a != b) {
            return false;
        }
    }
    return true;
}

}  // namespace

PlanSource::PlanSource()
    : directory_(graph::KernelDirectory::FromEnvironment()),
      exported_(ExportDirectory()),
      compiler_(EnvironmentText("FORNAX_COMPILER")),
      cache_(DefaultCacheDirectory()) {}

Result<PlanSource::Found> PlanSource::Get(graph::Graph graph,
                                          const graph::CompileOptions& options,
                                          const std::string& what,
                                          bool may_compile) {
    const Hash128 key = graph::HashGraph(graph, options);
    FORNAX_ASSIGN_OR_RETURN(Found found, Find(std::move(graph), options, key, what, may_compile));
    if (exported_) {
        const Status written = exported_->Write(key, found.plan);
        if (!written.ok()) {
            LogWarning("ggml: {} is not exported. {}", what, written.error().message);
        }
    }
    return found;
}

Result<PlanSource::Found> PlanSource::Find(graph::Graph graph,
                                           const graph::CompileOptions& options,
                                           const Hash128& key,
                                           const std::string& what,
                                           bool may_compile) {
    if (directory_) {
        Result<graph::Plan> plan = directory_->Find(key);
        if (plan.ok()) {
            const Status fits = CheckInterface(graph, *plan);
            if (fits.ok()) {
                return Found{*std::move(plan), fmt::format("HIT in {}", directory_->path())};
            }
            plan = Error{ErrorCode::kDataLoss,
                         fmt::format("{} is of another graph: {}.", directory_->FileOf(key),
                                     fits.error().message)};
        }
        if (plan.error().code == ErrorCode::kNotFound && may_compile) {
            LogInfo("ggml: {} has no plan {}.", what, directory_->FileOf(key));
        } else if (plan.error().code != ErrorCode::kNotFound) {
            LogWarningOnce(directory_->FileOf(key), "ggml: the plan of {} is skipped. {}", what,
                           plan.error().message);
        }
    }
    const bool is_off = compiler_ == "off";
    if (!HasCompiler()) {
        const std::string_view reason =
            is_off ? "FORNAX_COMPILER is off" : "This build has no graph compiler";
        return Error{
            ErrorCode::kNotFound,
            directory_ ? fmt::format("{}, and {} has no usable plan in FORNAX_KERNEL_DIR, where it "
                                     "is {}.",
                                     reason, what, directory_->FileOf(key))
                       : fmt::format("{}, and FORNAX_KERNEL_DIR is not set to a directory that has "
                                     "{}.plan of {}.",
                                     reason, key.ToHex(), what)};
    }
    Hash128 cache_key = key;
    if (compiler_) {  // its plans are not those of the linked one
        cache_key = Hasher().Append(key).Append(*compiler_).Append(VersionOf(*compiler_)).Finish();
    }
    if (std::optional<graph::Plan> plan = graph::FindPlan(cache_, cache_key)) {
        if (CheckInterface(graph, *plan).ok()) {
            return Found{*std::move(plan), "HIT"};
        }
    }
    if (!may_compile) {
        return Error{ErrorCode::kNotFound, fmt::format("{} has no plan yet.", what)};
    }
    FORNAX_ASSIGN_OR_RETURN(graph::Plan plan, Compile(std::move(graph), options));
    plan.graph_hash = cache_key.ToHex();
    graph::StorePlan(cache_, cache_key, plan);
    return Found{std::move(plan), "MISS"};
}

bool PlanSource::HasCompiler() const {
    return compiler_ ? *compiler_ != "off" : graph::HasCompiler();
}

graph::FamilyRecord PlanSource::FindFamily(const Hash128& family) {
    graph::FamilyRecord record;
    if (HasCompiler()) {
        if (const auto bytes = cache_.Get(kFamilyCacheKind, family)) {
            Result<graph::FamilyRecord> cached = graph::ParseFamily(*bytes, family);
            if (cached.ok()) {
                record = *std::move(cached);
            }
        }
    }
    if (directory_) {
        Result<graph::FamilyRecord> found = directory_->FindFamily(family);
        if (found.ok()) {
            record.Merge(*found);
        } else if (found.error().code != ErrorCode::kNotFound) {
            LogWarningOnce(directory_->FamilyFileOf(family), "ggml: {} is skipped. {}",
                           directory_->FamilyFileOf(family), found.error().message);
        }
    }
    return record;
}

void PlanSource::StoreFamily(const Hash128& family, const graph::FamilyRecord& record) {
    if (HasCompiler() && !cache_.directory().empty()) {
        cache_.Put(kFamilyCacheKind, family, graph::SerializeFamily(family, record));
    }
}

void PlanSource::ExportFamily(const Hash128& family, const graph::FamilyRecord& record) const {
    if (!exported_) {
        return;
    }
    const Status written = exported_->WriteFamily(family, record);
    if (!written.ok()) {
        LogWarning("ggml: what is known of the graphs {} is not exported. {}", family.ToHex(),
                   written.error().message);
    }
}

Result<graph::Plan> PlanSource::Compile(graph::Graph graph,
                                        const graph::CompileOptions& options) const {
    if (!compiler_) {
        return graph::Compile(std::move(graph), options);
    }
    FORNAX_ASSIGN_OR_RETURN(graph::Plan plan, CompileInProcess(*compiler_, graph, options));
    const Status fits = CheckInterface(graph, plan);
    if (!fits.ok()) {
        return Error{
            fits.error().code,
            fmt::format("The compiler {} of FORNAX_COMPILER made another graph's plan: {}.",
                        *compiler_, fits.error().message)};
    }
    return plan;
}

Status CheckInterface(const graph::Graph& graph, const graph::Plan& plan) {
    const auto differ = [](std::string_view kind, std::string_view name) {
        return Error{ErrorCode::kDataLoss, fmt::format("the {} {} differs", kind, name)};
    };
    if (graph.inputs().size() != plan.inputs.size() ||
        graph.outputs().size() != plan.outputs.size()) {
        return Error{
            ErrorCode::kDataLoss,
            fmt::format("it has {} inputs and {} outputs instead of {} and {}", plan.inputs.size(),
                        plan.outputs.size(), graph.inputs().size(), graph.outputs().size())};
    }
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
        if (!Fits(graph.TypeOf(graph.inputs()[i]), plan.inputs[i].type)) {
            return differ("input", plan.inputs[i].name);
        }
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
        if (!Fits(graph.TypeOf(graph.outputs()[i].value), plan.outputs[i].type)) {
            return differ("output", plan.outputs[i].name);
        }
    }
    std::map<std::string_view, const graph::TensorType*> states;
    for (const graph::Node& node : graph.nodes()) {
        if (const auto* read = std::get_if<graph::op::ReadState>(&node.operation)) {
            states[read->state] = &read->type;
        }
    }
    for (const graph::PlanBlock& block : plan.blocks) {
        if (block.kind != graph::BlockKind::kState) {
            continue;
        }
        const auto state = states.find(block.name);
        if (state == states.end() || !Fits(*state->second, block.type)) {
            return differ("state", block.name);
        }
    }
    return OkStatus();
}

}  // namespace fornax::ggml_plugin
