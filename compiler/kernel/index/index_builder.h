// Index expressions of the values of a kernel.
//
// Each value is looked at once, operands first; what is no index arithmetic becomes a symbol that
// knows what it depends on and how large it can be. Loops' counters are their start plus a constant
// times the loop's iteration. The kernel must be verified, and must not change meanwhile. Not
// thread-safe.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/kernel/index/index_algebra.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// What is taken to be true without proof: for hints only, unless a test at run time makes sure.
struct IndexAssumptions {
    // Values are those of the invocation with this index in its workgroup.
    std::optional<uint32_t> invocation;
    // Values that are not looked into are multiples of 2^this.
    uint8_t symbol_zeros = 0;
    // No sum and no product leaves the range of its type.
    bool no_wrap = false;
    // Workgroups differ only by what they compute from their numbers: loads from one place give one
    // value, and loops that do not count add the same.
    bool alike_workgroups = false;
    // Loops add the same for all lanes.
    bool alike_lanes = false;
    // What loops add that do not count is a multiple of 2^this.
    uint8_t growth_zeros = 0;
    // Neighbouring workgroups are as far apart as the first two: remainders by more than 1 do not
    // wrap between them. Their numbers are not round then.
    bool first_workgroups = false;
};

// Distances of prefetches are those of one invocation, and sizes are taken to be round.
inline constexpr IndexAssumptions kHints = {.invocation = 0,
                                            .symbol_zeros = 12,
                                            .no_wrap = true,
                                            .alike_workgroups = true};

// Distances between workgroups, likewise.
inline constexpr IndexAssumptions kWorkgroupHints = {.invocation = 0,
                                                     .symbol_zeros = 12,
                                                     .no_wrap = true,
                                                     .alike_workgroups = true,
                                                     .first_workgroups = true};

class IndexBuilder {
  public:
    explicit IndexBuilder(const ir::Kernel& kernel, const IndexAssumptions& assumptions = {})
        : kernel_(kernel), assumptions_(assumptions), known_(kernel.num_values()) {}

    IndexAlgebra& algebra() { return algebra_; }

    // An expression that is congruent to the integer modulo 2^width; for other types a symbol,
    // whose axes are those of the value.
    IndexExpr Of(ir::ValueId value);
    // The integer itself, read as unsigned. Invalid if that is too much to say.
    IndexExpr Unsigned(ir::ValueId value);
    // Bounds of the integer, read as unsigned.
    IndexRange UnsignedRange(ir::ValueId value);
    // What the value depends on.
    uint8_t Axes(ir::ValueId value) { return algebra_.axes(Of(value)); }

    // to - from, as the number nearest to 0 of their type, if it is one for all.
    std::optional<int64_t> Distance(ir::ValueId from, ir::ValueId to);
    // From here on the value is taken for the expression, or for one that depends on no more than
    // these axes. What was made of it before stays as it was.
    void Assume(ir::ValueId value, IndexExpr expr) { known_[value.value()] = expr; }
    void Assume(ir::ValueId value, uint8_t axes);

    // What the integer is more by in the next workgroup along x; in the loop's next iteration.
    // Congruent modulo 2^width, invalid if unknown.
    IndexExpr AlongWorkgroupX(ir::ValueId value);
    IndexExpr AlongIteration(ir::ValueId value, ir::InstId loop);
    // What it is more by in one place than in another, of which each says what it has for a symbol.
    IndexExpr Between(ir::ValueId value,
                      const IndexAlgebra::Replacement& from,
                      const IndexAlgebra::Replacement& to);

    // What a parameter of a loop's body grows by from one iteration to the next, if that is one
    // number for all.
    std::optional<int64_t> StepOf(ir::ValueId param);

  private:
    bool PushOperands(ir::ValueId value);
    IndexExpr Compute(ir::ValueId value);
    IndexExpr OfInteger(const ir::Instruction& inst, ir::ValueId value);
    IndexExpr OfBuiltin(ir::BuiltinId builtin);
    IndexExpr OfParameter(ir::ValueId value);
    bool GrowsAlike(const ir::Value& param) const;
    IndexExpr OfDivision(const ir::Instruction& inst, uint32_t bits);
    IndexExpr OfShift(const ir::Instruction& inst, uint32_t bits);
    IndexExpr OfBits(const ir::Instruction& inst, uint32_t bits);
    IndexExpr OfExtreme(const ir::Instruction& inst);
    IndexExpr Masked(IndexExpr exact, uint64_t mask, uint32_t bits);
    IndexExpr Symbol(ir::ValueId value);
    void FindWorkgroupAxes(ir::BlockId block);
    void AddWorkgroupAxesLeaving(ir::BlockId block, ir::InstId construct, bool is_child);
    uint8_t AxesOf(ir::ValueId value, const ir::Instruction* inst);
    uint32_t ZerosOf(const ir::Instruction* inst);
    IndexExpr UnsignedOf(IndexExpr expr, uint32_t bits);
    IndexExpr SignedOf(IndexExpr expr, uint32_t bits);
    IndexRange RangeOf(ir::ValueId value) const;
    IndexExpr Along(ir::ValueId value, IndexSymbol::Kind kind, uint32_t number, uint8_t axis);
    uint32_t Bits(ir::ValueId value) const { return ir::BitWidth(kernel_.type(value)); }

    const ir::Kernel& kernel_;
    const IndexAssumptions assumptions_;
    IndexAlgebra algebra_;
    std::vector<IndexExpr> known_;    // by value; modulo 2^width
    std::vector<ir::ValueId> stack_;  // values to look at
    // By value: on which of the workgroup's numbers it depends. Made when a construct's result is
    // asked for.
    std::vector<uint8_t> workgroup_axes_;
    // By loop: what leads to its continuing block. Made when the first loop is asked for.
    std::optional<std::map<ir::InstId, std::vector<ir::InstId>>> continues_;
};

}  // namespace fornax::kernel
