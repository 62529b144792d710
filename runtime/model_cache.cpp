#include "runtime/model_cache.h"

#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include <flatbuffers/flexbuffers.h>
#include <fmt/format.h>

#include "base/file.h"
#include "compiler/graph/plan/plan_cache.h"

namespace fornax::runtime {
namespace {

// Counts changes of what keys mean.
constexpr uint32_t kKeyVersion = 2;

struct Dependencies {
    std::set<std::string> files;   // of external data, below the model's directory
    std::set<std::string> inputs;  // whose values were looked at
};

// What compiling looks at whatever the model is. Not the values of inputs: few models look at them.
Result<Hash128> RequestKey(const ModelCompiler& compiler, const CompileRequest& request) {
    // All members by name, so that a new one is not forgotten. Progress changes nothing, and
    // requests with boundaries are not looked up.
    [[maybe_unused]] const auto& [file, dims, input_shapes, input_values, precision,
                                  bfloat16_products, strict, serial, dynamic_sizes, progress,
                                  with_boundaries] = request;
    Hasher hasher;
    hasher.Append("fornax model").Append(kKeyVersion).Append(compiler.digest);
    if (file.path.empty()) {
        ByteHasher contents;
        contents.Append(std::as_bytes(std::span(*file.bytes)));
        for (const graph::Bytes& piece : file.pieces) {
            contents.Append(std::as_bytes(*piece));
        }
        hasher.Append(contents.Finish());
    } else {
        FORNAX_ASSIGN_OR_RETURN(const Hash128 contents, HashFile(file.path));
        hasher.Append(contents);
    }
    hasher.AppendListSize(dims.size());
    for (const auto& [name, size] : dims) {
        hasher.Append(name).Append(size);
    }
    hasher.AppendListSize(input_shapes.size());
    for (const auto& [name, shape] : input_shapes) {
        hasher.Append(name).AppendArray(std::span(shape));
    }
    hasher.AppendListSize(input_values.size());
    for (const auto& [name, value] : input_values) {
        hasher.Append(name).Append(value.element).AppendArray(std::span(value.dims));
    }
    hasher.Append(precision).Append(bfloat16_products).Append(strict).Append(serial);
    hasher.Append(dynamic_sizes.all).AppendListSize(dynamic_sizes.names.size());
    for (const std::string& name : dynamic_sizes.names) {
        hasher.Append(name);
    }
    return hasher.Finish();
}

// The key of the plan itself. Fails if an external file cannot be read.
Result<Hash128> PlanKey(const Hash128& request_key,
                        const Dependencies& dependencies,
                        const CompileRequest& request) {
    Hasher hasher;
    hasher.Append(request_key);
    hasher.AppendListSize(dependencies.files.size());
    for (const std::string& file : dependencies.files) {
        const std::filesystem::path path = request.file.directory();
        FORNAX_ASSIGN_OR_RETURN(const Hash128 contents, HashFile((path / file).string()));
        hasher.Append(file).Append(contents);
    }
    hasher.AppendListSize(dependencies.inputs.size());
    for (const std::string& name : dependencies.inputs) {
        hasher.Append(name);
        const auto value = request.input_values.find(name);
        if (value == request.input_values.end()) {
            continue;
        }
        if (value->second.data) {
            hasher.AppendBytes(std::as_bytes(*value->second.data));
        }
        if (value->second.strings != nullptr) {
            hasher.AppendListSize(value->second.strings->size());
            for (const std::string& text : *value->second.strings) {
                hasher.Append(text);
            }
        }
    }
    return hasher.Finish();
}

std::optional<Dependencies> FindDependencies(DiskCache& cache, const Hash128& request_key) {
    const auto entry = cache.Get(kDependenciesCacheKind, request_key);
    if (!entry) {
        return std::nullopt;
    }
    const auto* data = reinterpret_cast<const uint8_t*>(entry->data());
    if (!flexbuffers::VerifyBuffer(data, entry->size())) {
        return std::nullopt;
    }
    Dependencies dependencies;
    const flexbuffers::Map map = flexbuffers::GetRoot(data, entry->size()).AsMap();
    const auto read = [&](const char* name, std::set<std::string>& into) {
        const flexbuffers::Vector names = map[name].AsVector();
        for (size_t i = 0; i < names.size(); ++i) {
            into.insert(names[i].AsString().str());
        }
    };
    read("files", dependencies.files);
    read("inputs", dependencies.inputs);
    return dependencies;
}

bool StoreDependencies(DiskCache& cache,
                       const Hash128& request_key,
                       const Dependencies& dependencies) {
    flexbuffers::Builder builder;
    const auto write = [&](const char* name, const std::set<std::string>& from) {
        builder.Vector(name, [&] {
            for (const std::string& text : from) {
                builder.String(text);
            }
        });
    };
    builder.Map([&] {
        write("files", dependencies.files);
        write("inputs", dependencies.inputs);
    });
    builder.Finish();
    return cache.Put(kDependenciesCacheKind, request_key,
                     std::as_bytes(std::span(builder.GetBuffer())));
}

// File systems date changes by this clock, some of them a few milliseconds too early.
timespec Now() {
    timespec now = {};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

bool ChangedSince(const std::filesystem::path& path, const timespec& time) {
    struct stat info;
    return ::stat(path.c_str(), &info) != 0 ||
           std::pair(info.st_ctim.tv_sec, info.st_ctim.tv_nsec) >
               std::pair(time.tv_sec, time.tv_nsec);
}

bool FilesChangedSince(const ModelFile& file, const Dependencies& dependencies, timespec time) {
    if (file.path.empty()) {
        return false;
    }
    for (const std::string& external : dependencies.files) {
        if (ChangedSince(std::filesystem::path(file.directory()) / external, time)) {
            return true;
        }
    }
    return ChangedSince(file.path, time);
}

}  // namespace

std::string ModelFile::directory() const {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    return path.empty() ? "" : parent.empty() ? "." : parent.string();
}

Result<bool> IsPlanFile(const ModelFile& file) {
    if (file.path.empty()) {
        return graph::LooksLikePlan(std::as_bytes(std::span(*file.bytes)));
    }
    FORNAX_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(file.path));
    return graph::LooksLikePlan(mapped->bytes());
}

Result<CompiledModel> CompileThroughCache(DiskCache& cache,
                                          const ModelCompiler& compiler,
                                          CompileRequest request) {
    FORNAX_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(request.file));
    if (is_plan) {
        return compiler.compile(std::move(request));
    }
    const timespec start = Now();
    FORNAX_ASSIGN_OR_RETURN(const Hash128 request_key, RequestKey(compiler, request));
    Dependencies dependencies;
    if (std::optional<Dependencies> found = FindDependencies(cache, request_key)) {
        const Result<Hash128> key = PlanKey(request_key, *found, request);
        if (key.ok() && !request.with_boundaries) {
            if (std::optional<graph::Plan> plan = graph::FindPlan(cache, *key)) {
                return CompiledModel{*std::move(plan), compiler.host_functions, {}, {}, {}};
            }
        }
        // Values of other inputs may be looked at when those of the first are others: all count.
        dependencies.inputs = std::move(found->inputs);
    }
    const CompileRequest asked = request;
    FORNAX_ASSIGN_OR_RETURN(CompiledModel compiled, compiler.compile(std::move(request)));
    for (const uint32_t input : compiled.plan.fixed_inputs) {
        dependencies.inputs.insert(compiled.plan.inputs[input].name);
    }
    dependencies.files = compiled.external_files;
    const Result<Hash128> key = PlanKey(request_key, dependencies, asked);
    if (key.ok() && !FilesChangedSince(asked.file, dependencies, start)) {
        compiled.plan.graph_hash = key->ToHex();
        if (graph::StorePlan(cache, *key, compiled.plan)) {
            StoreDependencies(cache, request_key, dependencies);
        }
    }
    return compiled;
}

}  // namespace fornax::runtime
