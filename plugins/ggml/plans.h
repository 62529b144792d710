// Where plans of captured graphs come from: the directory of kernels, the cache, the compiler.
#pragma once

#include <optional>
#include <string>

#include "base/disk_cache.h"
#include "base/result.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/generalize/family_record.h"
#include "compiler/graph/plan/kernel_directory.h"

namespace fornax::ggml_plugin {

class PlanSource {
  public:
    PlanSource();

    struct Found {
        graph::Plan plan;
        std::string from;  // for messages: "HIT", "MISS", "HIT in DIR"
    };
    // The plan of a verified graph. FORNAX_KERNEL_DIR wins over the cache. What is damaged there is
    // told and made anew. FORNAX_COMPILER names a compiler to run in place of the linked one, or is
    // "off". Without any the directory is all there is: the error names the graph, which messages
    // call `what`, and the file that is missing. FORNAX_GGML_EXPORT gets the
    // plan as well. kNotFound, and nothing is told, for what is to be compiled and `may_compile` is
    // not set. For one thread at a time.
    Result<Found> Get(graph::Graph graph,
                      const graph::CompileOptions& options,
                      const std::string& what,
                      bool may_compile = true);

    // What is known of a family of graphs, from the directory of kernels and the cache; an empty
    // record of what is not known or is damaged.
    graph::FamilyRecord FindFamily(const Hash128& family);
    // Keeps it in the cache.
    void StoreFamily(const Hash128& family, const graph::FamilyRecord& record);
    // Writes it beside the plans that FORNAX_GGML_EXPORT gets.
    void ExportFamily(const Hash128& family, const graph::FamilyRecord& record) const;

  private:
    Result<Found> Find(graph::Graph graph,
                       const graph::CompileOptions& options,
                       const Hash128& key,
                       const std::string& what,
                       bool may_compile);
    // Without one, the cache is not used either.
    bool HasCompiler() const;
    Result<graph::Plan> Compile(graph::Graph graph, const graph::CompileOptions& options) const;

    const std::optional<graph::KernelDirectory> directory_;
    const std::optional<graph::KernelDirectory> exported_;
    const std::optional<std::string> compiler_;  // FORNAX_COMPILER
    DiskCache cache_;
};

// Whether a plan that was read from a file has the inputs, outputs and states of the graph that it
// is to compute. The error is a clause.
Status CheckInterface(const graph::Graph& graph, const graph::Plan& plan);

}  // namespace fornax::ggml_plugin
