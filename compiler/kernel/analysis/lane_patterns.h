// Uniformity, patterns and divergence of a kernel that runs `lanes` invocations side by side.
//
// The pattern of a value says how it differs between the lanes of one vector:
//   uniform   one value for all lanes: lives in a scalar register
//   offsets   a uniform base plus an offset per lane that is a compile-time constant: the base
//             lives in a scalar register. This holds affine values (lane * stride) and piecewise
//             ones (lane % 16, lane / 16) alike, and memory selection looks straight at the
//             constants.
//   rows      offsets plus a compile-time multiple per lane of one uniform value, the symbolic
//             stride: y * width + x, where lanes differ in y. The base lives in a scalar register.
//             The stride may also be in a vector register if some lanes share it, as the rows of a
//             tile share (y * width) >> 3.
//   varying   anything else: a vector register
// Offsets wrap with the type, so a pattern says nothing about wrapping; upper bounds are kept
// beside it.
//
// Divergence says which constructs lanes may leave at different times. The mask at a point may
// differ from the mask at the entry of the enclosing constructs up to some depth; an exit to a
// construct below that depth is a branch, every other exit only takes lanes out of the mask.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Which invocations run side by side.
struct LaneMap {
    uint32_t lanes = 1;  // a power of two of at most 64
    // A vector takes a tile of this width from the x-y plane of the workgroup, the tiles in rows;
    // both sides divide the workgroup's. 0: consecutive local invocation indices.
    uint32_t tile_width = 0;
    // More than 1: a vector takes this many workgroups, neighbours in x, one after the other.
    uint32_t workgroups = 1;
};

struct LanePattern {
    enum class Kind : uint8_t { kUnknown, kUniform, kOffsets, kRows, kVarying };

    Kind kind = Kind::kUnknown;
    bool workgroup = false;  // the value (or its base) is one for the whole workgroup
    uint8_t base_zeros = 0;  // known trailing zero bits of the uniform value or base; 64 for zero
    uint64_t max = UINT64_MAX;     // upper bound of the value, read as unsigned; only for integers
    std::vector<int64_t> offsets;  // kOffsets, kRows: by lane, sign extended from the type
    std::vector<int64_t> rows;     // kRows: by lane, what `stride` is multiplied with
    ir::ValueId stride;            // kRows: a uniform value of the same type, or see `groups`
    // By lane, or empty: lanes with the same number have the same value (kVarying), or the same
    // stride, which then is varying (kRows; `rows` are all the same there).
    std::vector<uint8_t> groups;
    // kRows: if not 0, the stride is narrower: its multiples are computed in its own type, sign
    // extended and multiplied with this.
    uint64_t narrow_scale = 0;

    bool uniform() const { return kind == Kind::kUniform; }
    bool constant_offsets() const { return kind == Kind::kOffsets; }
    bool has_rows() const { return kind == Kind::kRows; }
    bool varying() const { return kind == Kind::kVarying; }
    // Held in a scalar register by the emitter.
    bool scalar() const { return uniform() || constant_offsets() || has_rows(); }
    // The lanes differ from the base in the same way.
    bool SameLanes(const LanePattern& other) const {
        return kind == other.kind && offsets == other.offsets && rows == other.rows &&
               stride == other.stride && groups == other.groups &&
               narrow_scale == other.narrow_scale;
    }
    // Whether any two lanes may have different values.
    bool DiffersEverywhere() const { return varying() && groups.empty(); }
    // Whether two lanes may have different values.
    bool Differs(size_t lane, size_t other) const {
        auto differs = [&](const auto& by_lane) {
            return !by_lane.empty() && by_lane[lane] != by_lane[other];
        };
        return DiffersEverywhere() || differs(offsets) || differs(rows) || differs(groups);
    }
    friend bool operator==(const LanePattern&, const LanePattern&) = default;
};

struct ConstructFacts {
    // If, Switch: the condition differs between lanes. Loop: lanes leave in different iterations.
    bool divergent = false;
    // Some exit to this construct only takes lanes out of the mask, so their values are blended.
    bool masked_exits = false;
    // Lanes that enter may leave for an outer construct while others stay: the mask shrinks.
    bool loses_lanes = false;
    bool masked_continues = false;  // Loop: likewise for `continue`
    uint32_t continue_sites = 0;    // Loop
    uint32_t depth = 0;
};

class LaneAnalysis {
  public:
    // Constructs in `workgroup_level` (indexed by instruction) hold barriers, so their control is
    // the same for the whole workgroup by the rules of OpControlBarrier.
    LaneAnalysis(const ir::Kernel& kernel, const LaneMap& map, std::vector<bool> workgroup_level);
    LaneAnalysis(const ir::Kernel& kernel, uint32_t lanes, std::vector<bool> workgroup_level)
        : LaneAnalysis(kernel, LaneMap{.lanes = lanes}, std::move(workgroup_level)) {}

    const LanePattern& pattern(ir::ValueId value) const { return patterns_[value.value()]; }
    const ConstructFacts& facts(ir::InstId construct) const { return facts_[construct.value()]; }
    // Exit, Continue, Return: a branch for all lanes that are active, rather than a change of the
    // mask.
    bool IsBranch(ir::InstId exit) const { return branch_[exit.value()]; }
    uint32_t lanes() const { return lanes_; }
    const LaneMap& map() const { return map_; }
    // The workgroup takes up one vector, or part of one.
    bool single_vector() const { return single_vector_; }

  private:
    void VisitBlock(ir::BlockId block, int depth, int& divergence);
    void VisitInstruction(ir::InstId id, int depth, int& divergence);
    bool OneForSubgroup(const ir::Instruction& inst) const;
    void VisitConstruct(ir::InstId id, int depth, int& divergence);
    void VisitExit(ir::InstId id, int divergence);
    void Merge(std::span<const ir::ValueId> into,
               std::span<const ir::ValueId> from,
               bool divergent);
    void Update(ir::ValueId value, LanePattern pattern);
    bool AreKnown(std::span<const ir::ValueId> values) const;
    void UpdateByOperands(const ir::Instruction& inst, bool uniform);
    LanePattern BuiltinPattern(ir::BuiltinId builtin) const;
    LanePattern PurePattern(const ir::Instruction& inst) const;
    LanePattern ScalarPattern(const ir::Instruction& inst) const;
    bool LanesCompareAlike(const ir::Instruction& inst) const;
    // Nothing more is known of the value.
    LanePattern Varying(ir::ValueId value) const {
        return {.kind = LanePattern::Kind::kVarying, .max = MaxOf(value)};
    }
    LanePattern Uniform(ir::ValueId value, bool workgroup) const {
        return {.kind = LanePattern::Kind::kUniform, .workgroup = workgroup, .max = MaxOf(value)};
    }
    uint64_t MaxOf(ir::ValueId value) const;
    void Learn(bool& fact) {
        changed_ |= !fact;
        fact = true;
    }
    bool DefinedBefore(ir::ValueId value, ir::InstId construct) const;

    const ir::Kernel& kernel_;
    LaneMap map_;
    uint32_t lanes_;
    std::vector<bool> workgroup_level_;
    bool single_vector_;
    std::vector<LanePattern> patterns_;
    std::vector<ConstructFacts> facts_;
    std::vector<bool> branch_;
    std::vector<uint8_t> max_updates_;   // by value: how often the bound grew, for widening
    std::vector<ir::InstId> enclosing_;  // constructs around the current point, outermost first
    std::vector<uint32_t> place_;        // by instruction: its place in the text
    uint32_t next_place_ = 0;
    bool changed_ = false;
};

namespace lane_patterns {
inline uint64_t TypeMax(uint32_t bits) {
    return ~uint64_t{0} >> (64 - bits);
}
// Offsets and base share no bits: base | offset == base + offset.
bool Disjoint(const LanePattern& pattern);
// Offsets wrap with the type, and what is 0 for all lanes is left out.
LanePattern Normalize(LanePattern pattern, uint32_t bits);
}  // namespace lane_patterns

}  // namespace fornax::kernel
