// Constants of a module, specialisation constants frozen to their values.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/kernel/spirv/types.h"

namespace fornax::kernel::spirv {

// What a descriptor of the type takes in a descriptor heap; none of other types.
std::optional<uint32_t> HeapDescriptorBytes(const Inst* type);

struct Constant {
    uint32_t type = 0;
    std::vector<uint64_t> bits;  // of each flattened scalar
};

class ConstantTable {
  public:
    ConstantTable(const Module& module, const CompileRequest& request)
        : module_(module), request_(request) {}

    // Reads the module-scope declarations of types and constants in order.
    Status Read(TypeTable& types);

    const Constant* Find(uint32_t id) const {
        auto it = constants_.find(id);
        return it == constants_.end() ? nullptr : &it->second;
    }
    // A scalar integer constant's value.
    Result<uint64_t> Integer(const Inst& user, uint32_t id) const;

  private:
    Status Add(const Inst& inst, const TypeTable& types);
    Result<std::vector<uint64_t>> EvaluateSpecOp(const Inst& inst, const TypeTable& types);
    uint64_t Specialized(const Inst& inst, uint64_t bits, ir::Type type) const;

    const Module& module_;
    const CompileRequest& request_;
    std::unordered_map<uint32_t, Constant> constants_;
    uint64_t total_scalars_ = 0;
};

}  // namespace fornax::kernel::spirv
