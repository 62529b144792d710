// Parts of variables: pointers to them, loads, indices, values that are fit to be stored there.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/kernel/fuzz/generator_types.h"
#include "compiler/kernel/fuzz/generator_values.h"

namespace fornax::kernel::fuzz {

class VariableAccess : GeneratorPart {
  public:
    // A part of a variable, as the steps that lead to it.
    struct Step {
        enum class Form : uint8_t { kMember, kElement, kRuntimeElement, kColumn, kComponent };
        Form form;
        uint32_t count;  // of elements, or the member's number
    };
    struct Part {
        MemoryType type;
        std::vector<Step> steps;
    };
    using PartTest = std::function<bool(const MemoryType&)>;

    VariableAccess(GeneratorState& state, ValueGenerator& values)
        : GeneratorPart(state), values_(values) {}

    std::optional<Part> FindPart(const Variable& variable, const PartTest& test);
    Id PointerTo(const Variable& variable, const Part& part, bool writes);
    bool Usable(const Variable& variable, bool writes) const;
    Variable* AnyVariable(bool writes);
    Id Load(const Variable& variable, const Part& part);
    std::optional<Id> LoadOf(ValueType type);
    Id ValueFor(const MemoryType& type, bool observable);
    std::pair<ValueType, Id> ExtractLeaf(const MemoryType& type, Id value);
    void AddAccess(std::vector<uint32_t>& operands,
                   const Variable& variable,
                   const MemoryType& part,
                   bool is_volatile);
    bool HoldsFloat(const MemoryType& type) const;
    bool InMatrix(const Variable& variable, const Part& part) const;

  private:
    void CollectParts(const MemoryType& type, std::vector<Step>& steps, std::vector<Part>& parts);
    Id Index(Step step, const Variable& variable);
    Id RuntimeIndex(Step step, const Variable& variable);
    Id IndexBelow(uint32_t count, ValueType type);
    Id PatternIndex();
    Id Widened(Id index, const Variable& variable);
    uint32_t ScalarAlign(const MemoryType& type) const;

    ValueGenerator& values_;
};

}  // namespace fornax::kernel::fuzz
