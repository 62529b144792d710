// Execution modes that change what float arithmetic gives: DenormFlushToZero, RoundingModeRTZ,
// SignedZeroInfNanPreserve and, for products of matrices alone, DenormPreserve
// (SPV_KHR_float_controls). They become ordinary arithmetic of the IR, so they hold for each width
// by itself, in every pass, in the interpreter and on every processor, and no state of the
// processor's has to be set, kept apart and restored.
#pragma once

#include <span>
#include <unordered_set>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::spirv {

// One kernel's modes. Emits through the builder that it is given, which must outlive it.
class FloatModes {
  public:
    explicit FloatModes(ir::Builder& builder) : builder_(builder) {}

    void FlushDenormals(ir::Type type) { flushed_types_ |= Bit(type); }
    void RoundTowardsZero(ir::Type type) { rounded_types_ |= Bit(type); }
    void KeepZeroSigns(ir::Type type) { zero_signs_ |= Bit(type); }
    void PreserveDenormals(ir::Type type) { preserved_types_ |= Bit(type); }
    bool Any() const { return (flushed_types_ | rounded_types_) != 0; }
    bool Flushes(ir::Type type) const { return (flushed_types_ & Bit(type)) != 0; }
    bool RoundsTowardsZero(ir::Type type) const { return (rounded_types_ & Bit(type)) != 0; }

    bool KeepsZeroSigns(ir::Type type) const { return (zero_signs_ & Bit(type)) != 0; }
    bool PreservesDenormals(ir::Type type) const { return (preserved_types_ & Bit(type)) != 0; }

    // The value; a zero of its sign if it is a denormal of a type whose denormals are flushed.
    ir::ValueId Flush(ir::ValueId value);

    // The result of `op` rounded towards zero. Invalid, and nothing emitted, for an operation that
    // does not round or that the specification only gives a precision for.
    ir::ValueId Rounded(ir::Op op, ir::Type type, std::span<const ir::ValueId> operands);

    // `result`, the minimum or maximum of `a` and `b` that `op` gave, with -0 below +0. The IR's
    // operations give either zero, as GLSL.std.450's do where signs of zeros need not be kept.
    ir::ValueId ExtremeOfZeros(ir::Op op, ir::ValueId a, ir::ValueId b, ir::ValueId result);

    // a * b + c, rounded once, as the type's mode says (OpFmaKHR).
    ir::ValueId Fused(ir::ValueId a, ir::ValueId b, ir::ValueId c);

    // `nearest` is one of the two values next to `wide` in its narrower type. Gives the one that
    // does not lie beyond it.
    ir::ValueId TowardsZero(ir::ValueId wide, ir::ValueId nearest);

  private:
    static uint32_t Bit(ir::Type type) { return 1u << static_cast<uint32_t>(type); }
    ir::ValueId Emit(ir::Op op, ir::Type type, std::initializer_list<ir::ValueId> operands);
    ir::ValueId Real(ir::Type type, double value);
    ir::Type TypeOf(ir::ValueId value) const { return builder_.kernel().type(value); }
    ir::ValueId Sum(ir::ValueId a, ir::ValueId b);
    ir::ValueId Product(ir::ValueId a, ir::ValueId b);
    ir::ValueId FusedTowardsZero(ir::ValueId a, ir::ValueId b, ir::ValueId c);
    ir::ValueId Narrowed(ir::ValueId wide, ir::Type type);
    ir::ValueId OfInteger(ir::ValueId value, ir::Type type, bool is_signed);
    ir::ValueId StepBack(ir::ValueId result, ir::ValueId error);
    ir::ValueId StepIf(ir::ValueId condition, ir::ValueId value);

    ir::Builder& builder_;
    uint32_t flushed_types_ = 0;
    uint32_t rounded_types_ = 0;
    uint32_t zero_signs_ = 0;
    uint32_t preserved_types_ = 0;          // only matter where denormals are otherwise not kept
    std::unordered_set<uint32_t> flushed_;  // values that are no denormals
};

}  // namespace fornax::kernel::spirv
