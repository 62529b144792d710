// A directory of plans that were made before: a plan file for each graph, named by the graph's
// hash, and what is known of families of graphs that have one plan.
//
// Such a directory is given to others, so it differs from the plan cache: its files are whole plans
// with their weights, may belong to any user, and are never changed or removed by reading. Plans
// hold no code and pass ValidatePlan().
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/graph/generalize/family_record.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

class KernelDirectory {
  public:
    explicit KernelDirectory(std::string path) : path_(std::move(path)) {}
    // The one that FORNAX_KERNEL_DIR names, if it is set.
    static std::optional<KernelDirectory> FromEnvironment();

    const std::string& path() const { return path_; }
    // DIR/<32 hex digits>.plan.
    std::string FileOf(const Hash128& key) const;

    // The plan that Write() stored under the key, its weights mapped. kNotFound without one,
    // kDataLoss or kUnsupported, as ParsePlan(), for a file that is not such a plan.
    Result<Plan> Find(const Hash128& key) const;

    // Replaces the plan under the key, whose graph_hash it gets; makes the directory.
    Status Write(const Hash128& key, Plan& plan) const;

    // The same for what is known of a family of graphs: DIR/<32 hex digits>.family.
    std::string FamilyFileOf(const Hash128& family) const;
    Result<FamilyRecord> FindFamily(const Hash128& family) const;
    Status WriteFamily(const Hash128& family, const FamilyRecord& record) const;

  private:
    std::string path_;
};

}  // namespace fornax::graph
