// Reads and writes plan files by the hashes of their graphs.
#include "compiler/graph/plan/kernel_directory.h"

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::graph {
namespace {

// A record of the most sizes is larger; graphs have some ten thousands.
constexpr size_t kMaxFamilyBytes = size_t{64} << 20;

}  // namespace

std::optional<KernelDirectory> KernelDirectory::FromEnvironment() {
    std::optional<std::string> path = EnvironmentText("FORNAX_KERNEL_DIR");
    return path ? std::optional<KernelDirectory>(*std::move(path)) : std::nullopt;
}

std::string KernelDirectory::FileOf(const Hash128& key) const {
    return fmt::format("{}/{}.plan", path_, key.ToHex());
}

Result<Plan> KernelDirectory::Find(const Hash128& key) const {
    const std::string file = FileOf(key);
    FORNAX_ASSIGN_OR_RETURN(Plan plan, ReadPlanFile(file));
    if (plan.graph_hash != key.ToHex()) {
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{} holds the plan of the graph {}.", file,
                                 plan.graph_hash.empty() ? "of a model" : plan.graph_hash)};
    }
    return plan;
}

std::string KernelDirectory::FamilyFileOf(const Hash128& family) const {
    return fmt::format("{}/{}.family", path_, family.ToHex());
}

Result<FamilyRecord> KernelDirectory::FindFamily(const Hash128& family) const {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                            ReadFile(FamilyFileOf(family), kMaxFamilyBytes));
    return ParseFamily(bytes, family);
}

Status KernelDirectory::WriteFamily(const Hash128& family, const FamilyRecord& record) const {
    const std::vector<std::byte> bytes = SerializeFamily(family, record);
    FORNAX_RETURN_IF_ERROR(CreateDirectories(path_, 0755));
    return WriteFileAtomically(FamilyFileOf(family), std::span<const std::byte>(bytes), 0644);
}

Status KernelDirectory::Write(const Hash128& key, Plan& plan) const {
    plan.graph_hash = key.ToHex();
    FORNAX_RETURN_IF_ERROR(ValidatePlan(plan));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, SerializePlan(plan));
    FORNAX_RETURN_IF_ERROR(CreateDirectories(path_, 0755));
    return WriteFileAtomically(FileOf(key), std::span<const std::byte>(bytes), 0644);
}

}  // namespace fornax::graph
