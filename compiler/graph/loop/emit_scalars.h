// Scalars: each is emitted where it is asked for, once in a scope, and what a loop does not change
// before it.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/loop/emit_convert.h"
#include "compiler/graph/loop/emit_functions.h"
#include "compiler/graph/loop/emit_index.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

struct Quantised;

// What computes a kernel's reductions: they are scalars, too.
class ReductionSource {
  public:
    virtual Id ReductionValue(ScalarId id) = 0;

  protected:
    ~ReductionSource() = default;
};

// Values that a mapping keeps beside the scopes: in workgroup memory, or of points before.
class ScalarStorage {
  public:
    virtual Id Find(ScalarId id) = 0;  // 0: it has none
    // Is told each scalar that has been computed.
    virtual void Keep(ScalarId id, Id value) = 0;

  protected:
    ~ScalarStorage() = default;
};

class ScalarCode final : KernelPart, public ScalarSource {
  public:
    ScalarCode(KernelCode& code,
               ScalarFunctions& functions,
               Conversions& conversions,
               IndexCode& index)
        : KernelPart(code), functions_(functions), conversions_(conversions), index_(index) {
        index.UseScalars(*this);
    }
    void UseReductions(ReductionSource& reductions) { reductions_ = &reductions; }

    Id Value(ScalarId id) override;
    // Emits what is needed and has only variables that are bound.
    void Hoist(const std::vector<bool>& needed);
    void HoistScalar(ScalarId id);
    // The scalars that `roots` need, themselves included, up to those that are staged.
    std::vector<bool> Needed(std::span<const ScalarId> roots) const;
    // The same without `end` and what only that needs.
    std::vector<bool> NeededBefore(std::span<const ScalarId> roots, ScalarId end) const;

    // Where values are kept beside the scopes from now on; null: nowhere.
    void SetStorage(ScalarStorage* storage) { storage_ = storage; }
    // Scalars whose values a mapping has, so that what they need is not.
    void SetStaged(std::span<const ScalarId> staged) {
        staged_.assign(staged.begin(), staged.end());
    }
    std::span<const ScalarId> staged() const { return staged_; }

  private:
    Id Compute(const ScalarNode& node, const Constant& constant);
    Id Compute(const ScalarNode& node, const Load& load);
    Id Compute(const ScalarNode& node, const Index& index);
    Id Compute(const ScalarNode& node, const InRange& range);
    Id Compute(const ScalarNode& node, const Map& map);
    Id Compute(const ScalarNode& node, const Cast& cast);
    Id Compute(const ScalarNode& node, const Bitcast& cast);
    Id Compute(const ScalarNode& node, const Reduce& reduce);
    Id Compute(const ScalarNode& node, const ArgReduce& reduce);
    // The f32 of an integer that was quantised, without the integer; 0 if it was not.
    Id Dequantised(const Cast& cast);
    // The whole number of a quotient, clamped; without the zero point.
    Id WholeQuotient(ScalarId id, const Quantised& quantised);
    bool IsSumOfSoftmax(ScalarId id) const;
    // The reciprocal of a softmax's sum that was hoisted; 0 if there is none.
    Id HoistedReciprocal(ScalarId sum) const;

    ScalarFunctions& functions_;
    Conversions& conversions_;
    IndexCode& index_;
    ReductionSource* reductions_ = nullptr;
    ScalarStorage* storage_ = nullptr;
    std::vector<ScalarId> staged_;
};

// A mapping's values, as long as this lives.
class StorageScope {
  public:
    StorageScope(ScalarCode& scalars, ScalarStorage& storage) : scalars_(scalars) {
        scalars.SetStorage(&storage);
    }
    ~StorageScope() { scalars_.SetStorage(nullptr); }
    StorageScope(const StorageScope&) = delete;
    StorageScope& operator=(const StorageScope&) = delete;

  private:
    ScalarCode& scalars_;
};

// Scalars that are staged, as long as this lives.
class StagedScope {
  public:
    StagedScope(ScalarCode& scalars, std::span<const ScalarId> staged) : scalars_(scalars) {
        scalars.SetStaged(staged);
    }
    ~StagedScope() { scalars_.SetStaged({}); }
    StagedScope(const StagedScope&) = delete;
    StagedScope& operator=(const StagedScope&) = delete;

  private:
    ScalarCode& scalars_;
};

}  // namespace fornax::graph::loop
