// Values of the kernel in their two forms: held in a scalar register (uniform, or the base of a
// pattern) or a lane each; and the pure operations on them.
#pragma once

#include <map>
#include <vector>

#include "compiler/kernel/analysis/address_values.h"
#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/codegen/function_code.h"
#include "compiler/kernel/codegen/memory_region.h"

namespace fornax::kernel {

// Where a buffer lies. For all lanes a ptr and an i64; where lanes have their own, two vectors of
// i64.
struct Descriptor {
    llvm::Value* address = nullptr;
    llvm::Value* size = nullptr;
    bool by_lane() const { return address && address->getType()->isVectorTy(); }
};

// What was emitted for a value.
struct HeldValue {
    llvm::Value* raw = nullptr;
    Descriptor descriptor;  // of Buffer values
    uint32_t epoch = UINT32_MAX;
    bool late = false;  // computed where it is used
};

class ValueCode : FunctionPart {
  public:
    ValueCode(FunctionCode& code, const BarrierRegions& regions);

    llvm::Type* RawType(ir::ValueId value) const;  // of the form in which the value is held
    llvm::Value* Raw(ir::ValueId value);           // scalar or base if scalar-held, else vector
    llvm::Value* Scalar(ir::ValueId value);        // of a uniform value
    llvm::Value* Vector(ir::ValueId value);        // a lane each
    llvm::Value* Convert(ir::ValueId from, ir::ValueId into);  // raw form of `from` for `into`
    llvm::Value* FromFirstActive(ir::ValueId value);
    Offset OffsetOf(ir::ValueId value);
    llvm::Value* RowOffset(const Offset& offset, const LayoutRow& row, llvm::Type* type);

    void Set(ir::ValueId value, llvm::Value* raw);
    void SetDescriptor(ir::ValueId buffer, const Descriptor& descriptor);
    const HeldValue& held(ir::ValueId value) const { return held_[value.value()]; }
    void Restore(ir::ValueId value, const HeldValue& held) { held_[value.value()] = held; }
    // Whether it can be used at the current point.
    bool IsHere(ir::ValueId value) const;

    // An operation that is not about memory.
    void EmitOperation(const ir::Instruction& inst);

    uint32_t uses(ir::ValueId value) const { return uses_[value.value()]; }
    bool is_fusable(ir::ValueId value) const { return fusable_[value.value()]; }

  private:
    void FindFusable();
    llvm::Value* EmitLate(ir::ValueId value);
    void EmitLaneRange(const ir::Instruction& inst);
    bool DividesByInverse(const ir::Instruction& inst) const;
    llvm::Value* EmitFused(const ir::Instruction& inst, bool scalar);
    llvm::Value* EmitBuiltin(ir::BuiltinId builtin, ir::ValueId result);
    llvm::Value* LocalIdBase(uint32_t dimension);
    llvm::Value* LocalIdVector(uint32_t dimension);

    const BarrierRegions& regions_;
    std::vector<HeldValue> held_;  // by value
    std::vector<uint32_t> uses_;   // by value
    // By value: a product that all its uses may fuse with an addition.
    std::vector<bool> fusable_;
    // By value: only says where lanes access memory, and is computed where one has to look at each.
    std::vector<bool> address_only_;
    std::map<uint32_t, llvm::Value*> late_;  // by value, while one is computed
    uint32_t late_depth_ = 0;
};

}  // namespace fornax::kernel
