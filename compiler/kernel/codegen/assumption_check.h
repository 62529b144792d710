// The test of what is assumed about lanes (analysis/lane_speculation.h), in scalar registers.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <map>

#include "compiler/kernel/analysis/lane_speculation.h"

namespace fornax::kernel {

// How an access' offsets probably differ between the lanes.
struct SpeculatedPattern {
    LanePattern pattern;
    int64_t lowest = 0;  // what the lowest lane's offset lies behind the lanes' base
    LaneSpeculation lanes;
    llvm::Value* base = nullptr;    // the lowest offset, when the test is there
    llvm::Value* stride = nullptr;  // likewise, if there are rows
};

// Computes what the lanes' values share by the operations that computed the values, and collects
// the assumptions that were made at each of them. Where no rule is known, or an operand cannot be
// used at the current point, the lanes' own values are compared.
class AssumptionCheck {
  public:
    // What the emitter has of a value at the current point.
    struct Source {
        // Whether it can be used there.
        llvm::function_ref<bool(ir::ValueId)> is_here;
        // The value of one that is held in a scalar register.
        llvm::function_ref<llvm::Value*(ir::ValueId)> scalar;
        // A lane each.
        llvm::function_ref<llvm::Value*(ir::ValueId)> vector;
        // The lanes that count, or null for all; the others' values may be anything.
        llvm::Value* mask = nullptr;
    };

    AssumptionCheck(const ir::Kernel& kernel,
                    const LaneAnalysis& patterns,
                    LaneSpeculation& lanes,
                    llvm::IRBuilder<>& builder,
                    Source source)
        : kernel_(kernel), patterns_(patterns), lanes_(lanes), b_(builder), source_(source) {}

    // The value of each lane less its offset and its multiple of the stride, if the assumptions
    // hold. There are such.
    llvm::Value* Base(ir::ValueId value) { return Shared(value).base; }
    // What its rows are multiples of; null if there are none.
    llvm::Value* Stride(ir::ValueId value) { return Shared(value).stride; }
    // i1: all assumptions hold that the bases which were asked for rest on.
    llvm::Value* Holds();

  private:
    // What lanes have in common.
    struct Common {
        llvm::Value* base = nullptr;
        llvm::Value* stride = nullptr;
    };

    const Common& Shared(ir::ValueId value);
    Common Compute(ir::ValueId value);
    Common OfRows(ir::ValueId value, const LaneForm& lanes);
    Common OfOperation(const ir::Instruction& inst, const LaneForm& lanes);
    Common Compare(ir::ValueId value, const LaneForm& lanes);
    llvm::Value* OnFirstLanes(const ir::Instruction& inst, uint32_t result);
    bool OperandsAreHere(const Speculation& found, ir::ValueId value) const;
    llvm::Value* Condition(const Assumption& assumed);
    void Require(llvm::Value* condition) { conditions_.push_back(condition); }

    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    LaneSpeculation& lanes_;
    llvm::IRBuilder<>& b_;
    const Source source_;
    std::map<uint32_t, Common> shared_;  // by value
    llvm::SmallVector<llvm::Value*, 8> conditions_;
};

}  // namespace fornax::kernel
