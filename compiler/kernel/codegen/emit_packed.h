// Runs of elements without transposition. What a lane loads as a run, computes alike for each
// element and stores as a run can stay in the order of memory, lane after lane, instead of one
// vector an element: then neither side shuffles. Such a value is "packed": element i of lane l is
// at l * count + i. Loads leave their packed form beside the vectors of lanes, a store asks whether
// all of its values can be had packed, and LLVM deletes the forms that nobody used.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "compiler/kernel/codegen/emit_values.h"

namespace fornax::kernel {

class PackedValues : FunctionPart {
  public:
    PackedValues(FunctionCode& code, ValueCode& values) : FunctionPart(code), values_(values) {}

    void KeepPacked(const ir::Instruction& load, llvm::Value* packed);
    llvm::Value* Packed(std::span<const ir::ValueId> values);

  private:
    struct PackedLoad {
        llvm::Value* packed = nullptr;
        llvm::Value* column = nullptr;  // the first element's vector, of the same emission
    };

    // The values of one run, by number.
    using Run = std::vector<uint32_t>;
    struct Search {
        uint32_t budget = 0;
        bool loads = false;
        std::map<Run, bool> known;
    };

    bool FindPacked(std::span<const ir::ValueId> values, Search& search) const;
    bool CanBePacked(std::span<const ir::ValueId> values, Search& search) const;
    bool IsOneComparison(std::span<const ir::ValueId> values) const;
    llvm::Value* EmitPacked(std::span<const ir::ValueId> values,
                            std::map<Run, llvm::Value*>& emitted);
    llvm::Value* MakePacked(std::span<const ir::ValueId> values,
                            std::map<Run, llvm::Value*>& emitted);

    ValueCode& values_;
    std::map<uint32_t, PackedLoad> packed_loads_;  // by a load's first result
};

}  // namespace fornax::kernel
