// The walk that finds uniformity, shapes and divergence: repeated over the kernel's tree until
// nothing changes. Optimistic: a loop's parameter starts with the shape of its initial value.
#include "compiler/kernel/analysis/shapes.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/ir/group.h"

namespace fornax::kernel {

using ir::Op;
using shape_rules::TypeMax;

namespace {

constexpr uint8_t kWidenAfter = 3;

// Operations between lanes are those of subgroups, whatever the width of the analysis.
bool IsOneSubgroup(const ir::Kernel& kernel) {
    const auto& size = kernel.workgroup_size;
    return uint64_t{size[0]} * size[1] * size[2] <= kernel.subgroup_size;
}

uint32_t IntegerBits(const ir::Kernel& kernel, ir::ValueId value) {
    ir::Type type = kernel.type(value);
    return ir::IsInteger(type) ? ir::BitWidth(type) : 64;
}

}  // namespace

ShapeAnalysis::ShapeAnalysis(const ir::Kernel& kernel,
                             const LaneMap& map,
                             std::vector<bool> workgroup_level)
    : kernel_(kernel),
      map_(map),
      lanes_(map.lanes),
      workgroup_level_(std::move(workgroup_level)),
      shapes_(kernel.num_values()),
      facts_(kernel.num_insts()),
      branch_(kernel.num_insts(), false),
      max_updates_(kernel.num_values(), 0),
      place_(kernel.num_insts(), 0) {
    const auto& size = kernel.workgroup_size;
    single_vector_ = uint64_t{size[0]} * size[1] * size[2] <= lanes_;
    do {
        changed_ = false;
        next_place_ = 0;
        for (ConstructFacts& facts : facts_)
            facts.continue_sites = 0;
        int divergence = -1;
        VisitBlock(kernel.body, 0, divergence);
    } while (changed_);
    for (uint32_t i = 0; i < kernel.num_values(); ++i) {
        if (shapes_[i].kind == Shape::Kind::kUnknown)
            shapes_[i] = Varying(ir::ValueId{i});
    }
}

void ShapeAnalysis::VisitBlock(ir::BlockId block, int depth, int& divergence) {
    for (ir::InstId id : kernel_.block(block).insts)
        VisitInstruction(id, depth, divergence);
}

void ShapeAnalysis::VisitInstruction(ir::InstId id, int depth, int& divergence) {
    const ir::Instruction& inst = kernel_.inst(id);
    place_[id.index] = next_place_++;
    switch (inst.op) {
        case Op::kIf:
        case Op::kSwitch:
        case Op::kLoop:
        case Op::kScope:
            enclosing_.push_back(id);
            VisitConstruct(id, depth + 1, divergence);
            enclosing_.pop_back();
            return;
        case Op::kYield: {
            ir::InstId parent = enclosing_.back();
            const ConstructFacts& facts = facts_[parent.index];
            Merge(kernel_.inst(parent).results, inst.operands,
                  facts.divergent || facts.masked_exits);
            return;
        }
        case Op::kNext: {
            const ir::Instruction& loop = kernel_.inst(enclosing_.back());
            Merge(kernel_.block(loop.blocks[0]).params, inst.operands, false);
            return;
        }
        case Op::kExit:
        case Op::kContinue:
        case Op::kReturn:
        case Op::kUnreachable:
            VisitExit(id, divergence);
            return;
        case Op::kLoadBuffer:
        case Op::kLoadGlobal:
        case Op::kLoadShared:
        case Op::kLoadDescriptor:
        case Op::kLoadPush:
        case Op::kLoadConstant: {
            bool uniform = true;
            bool workgroup = true;
            for (ir::ValueId operand : inst.operands) {
                const Shape& shape = shapes_[operand.index];
                if (shape.kind == Shape::Kind::kUnknown)
                    return;
                uniform &= shape.uniform();
                workgroup &= shape.workgroup;
            }
            for (ir::ValueId result : inst.results) {
                Shape shape = Varying(result);
                if (uniform) {
                    shape.kind = Shape::Kind::kUniform;
                    shape.workgroup = workgroup;
                }
                Update(result, std::move(shape));
            }
            return;
        }
        case Op::kBuiltin:
            Update(inst.results[0], BuiltinShape(static_cast<ir::BuiltinId>(inst.imm)));
            return;
        case Op::kBuffer:
        case Op::kBufferFrom:
        case Op::kBufferSize:
        case Op::kBufferAddress: {
            // One descriptor for all lanes, or one a lane.
            bool uniform = true;
            bool workgroup = true;
            for (ir::ValueId operand : inst.operands) {
                const Shape& shape = shapes_[operand.index];
                if (shape.kind == Shape::Kind::kUnknown)
                    return;
                uniform &= shape.uniform();
                workgroup &= shape.workgroup;
            }
            Shape shape = Varying(inst.results[0]);
            if (uniform || lanes_ == 1) {
                shape.kind = Shape::Kind::kUniform;
                shape.workgroup = uniform && workgroup;
            }
            Update(inst.results[0], std::move(shape));
            return;
        }
        case Op::kSubgroupBallot:
        case Op::kSubgroupBroadcastFirst:
        case Op::kSubgroupShuffle:
        case Op::kSubgroupReduce:
            if (shapes_[inst.operands.back().index].kind == Shape::Kind::kUnknown)
                return;
            if (OneForSubgroup(inst)) {
                // The set of lanes is a subgroup's own, even where operands are the workgroup's.
                Shape shape = Varying(inst.results[0]);
                shape.kind = Shape::Kind::kUniform;
                shape.workgroup = IsOneSubgroup(kernel_);
                if (inst.op == Op::kSubgroupBallot)
                    shape.max = TypeMax(kernel_.subgroup_size);
                Update(inst.results[0], std::move(shape));
                return;
            }
            break;
        default:
            break;
    }
    if (ir::InfoOf(inst.op).properties & ir::kPure) {
        for (ir::ValueId operand : inst.operands) {
            if (shapes_[operand.index].kind == Shape::Kind::kUnknown)
                return;
        }
        if (inst.results.size() == 1) {
            Update(inst.results[0], PureShape(inst));
            return;
        }
        bool uniform = true;
        bool workgroup = true;
        for (ir::ValueId operand : inst.operands) {
            uniform &= shapes_[operand.index].uniform();
            workgroup &= shapes_[operand.index].workgroup;
        }
        for (ir::ValueId result : inst.results) {
            Shape shape = Varying(result);
            if (uniform) {
                shape.kind = Shape::Kind::kUniform;
                shape.workgroup = workgroup;
            }
            Update(result, std::move(shape));
        }
        return;
    }
    // Atomics, private memory and other subgroup operations differ by lane.
    for (ir::ValueId result : inst.results) {
        Shape shape = Varying(result);
        if (lanes_ == 1) {
            shape.kind = Shape::Kind::kUniform;
            shape.workgroup = single_vector_;
        }
        Update(result, std::move(shape));
    }
}

// A subgroup operation gives all lanes that take part one value.
bool ShapeAnalysis::OneForSubgroup(const ir::Instruction& inst) const {
    if (lanes_ > kernel_.subgroup_size && !IsOneSubgroup(kernel_))
        return false;  // code is never emitted at this width
    switch (inst.op) {
        case Op::kSubgroupShuffle:
            return shapes_[inst.operands[1].index].uniform();
        case Op::kSubgroupReduce:
            return ir::ClusterSizeOf(inst) == 0 || ir::ClusterSizeOf(inst) == kernel_.subgroup_size;
        default:
            return true;
    }
}

void ShapeAnalysis::VisitConstruct(ir::InstId id, int depth, int& divergence) {
    const ir::Instruction& inst = kernel_.inst(id);
    ConstructFacts& facts = facts_[id.index];
    facts.depth = static_cast<uint32_t>(depth);
    int entry_divergence = divergence;
    if (inst.op == Op::kLoop) {
        Merge(kernel_.block(inst.blocks[0]).params, inst.operands, false);
        int inside = entry_divergence;
        if (facts.divergent)
            inside = std::max(inside, depth - 1);
        VisitBlock(inst.blocks[0], depth, inside);
        inside = entry_divergence;
        if (facts.divergent)
            inside = std::max(inside, depth);
        VisitBlock(inst.blocks[1], depth, inside);
    } else {
        if (inst.op != Op::kScope && !workgroup_level_[id.index]) {
            const Shape& condition = shapes_[inst.operands[0].index];
            bool divergent = condition.kind != Shape::Kind::kUnknown && !condition.uniform();
            if (divergent && !facts.divergent) {
                facts.divergent = true;
                changed_ = true;
            }
        }
        for (ir::BlockId block : inst.blocks) {
            int inside = facts.divergent ? std::max(entry_divergence, depth) : entry_divergence;
            VisitBlock(block, depth, inside);
        }
    }
    divergence = facts.loses_lanes ? std::max(entry_divergence, depth - 1) : entry_divergence;
}

void ShapeAnalysis::VisitExit(ir::InstId id, int divergence) {
    const ir::Instruction& inst = kernel_.inst(id);
    bool is_return = inst.op == Op::kReturn || inst.op == Op::kUnreachable;
    int target_depth = is_return ? 0 : static_cast<int>(facts_[inst.target.index].depth);
    bool to_workgroup_level = !is_return && workgroup_level_[inst.target.index];
    bool branch = divergence < target_depth || to_workgroup_level;
    branch_[id.index] = branch;

    if (inst.op == Op::kContinue) {
        ConstructFacts& loop = facts_[inst.target.index];
        ++loop.continue_sites;
        bool at_end = enclosing_.back() == inst.target;
        if (!branch && !at_end) {
            changed_ |= !loop.masked_continues;
            loop.masked_continues = true;
            for (ir::InstId construct : enclosing_) {
                ConstructFacts& facts = facts_[construct.index];
                if (static_cast<int>(facts.depth) > target_depth) {
                    changed_ |= !facts.loses_lanes;
                    facts.loses_lanes = true;
                }
            }
        }
        const ir::Instruction& target = kernel_.inst(inst.target);
        Merge(kernel_.block(target.blocks[1]).params, inst.operands,
              loop.masked_continues && loop.continue_sites > 1);
        return;
    }

    if (!branch) {
        for (ir::InstId construct : enclosing_) {
            ConstructFacts& facts = facts_[construct.index];
            int depth = static_cast<int>(facts.depth);
            bool is_loop = kernel_.inst(construct).op == Op::kLoop;
            if (depth > target_depth) {
                changed_ |= !facts.loses_lanes;
                facts.loses_lanes = true;
            }
            if (is_loop && depth >= target_depth && !workgroup_level_[construct.index]) {
                changed_ |= !facts.divergent;
                facts.divergent = true;
            }
        }
    }
    if (inst.op == Op::kExit) {
        ConstructFacts& target = facts_[inst.target.index];
        if (!branch) {
            changed_ |= !target.masked_exits;
            target.masked_exits = true;
        }
        Merge(kernel_.inst(inst.target).results, inst.operands,
              target.divergent || target.masked_exits);
    }
}

void ShapeAnalysis::Merge(std::span<const ir::ValueId> into,
                          std::span<const ir::ValueId> from,
                          bool divergent) {
    for (size_t i = 0; i < into.size(); ++i) {
        const Shape& source = shapes_[from[i].index];
        if (source.kind == Shape::Kind::kUnknown)
            continue;
        const Shape& old = shapes_[into[i].index];
        Shape joined = source;
        ir::InstId construct = kernel_.value(into[i]).inst;
        bool is_result = construct.valid();
        if (!is_result)
            construct = kernel_.block(kernel_.value(into[i]).block).parent;
        // Without a barrier inside, subgroups take a construct one after another: what it gives is
        // one value for the workgroup only where its control is.
        if (!workgroup_level_[construct.index] && !single_vector_)
            joined.workgroup = false;
        if (old.kind != Shape::Kind::kUnknown) {
            joined.workgroup &= old.workgroup;
            joined.base_zeros = std::min(source.base_zeros, old.base_zeros);
            joined.max = std::max(source.max, old.max);
            if (!source.SameLanes(old))
                joined.kind = Shape::Kind::kVarying;
        }
        if (divergent && lanes_ > 1)
            joined.kind = Shape::Kind::kVarying;
        // A stride from inside is not visible outside, and another one in the next iteration.
        if (joined.has_rows() && !DefinedBefore(joined.stride, construct))
            joined.kind = Shape::Kind::kVarying;
        if (joined.varying()) {
            joined.offsets.clear();
            joined.rows.clear();
            joined.stride = {};
            joined.narrow_scale = 0;
            joined.workgroup = false;
            joined.base_zeros = 0;
        }
        Update(into[i], std::move(joined));
    }
}

bool ShapeAnalysis::DefinedBefore(ir::ValueId id, ir::InstId construct) const {
    const ir::Value& value = kernel_.value(id);
    const ir::InstId at = value.inst.valid() ? value.inst : kernel_.block(value.block).parent;
    return place_[at.index] < place_[construct.index];
}

void ShapeAnalysis::Update(ir::ValueId value, Shape shape) {
    Shape& old = shapes_[value.index];
    if (shape.kind < old.kind)
        shape = Varying(value);  // facts only ever get weaker
    if (ir::Type type = kernel_.type(value); ir::IsInteger(type))
        shape.max = std::min(shape.max, TypeMax(ir::BitWidth(type)));
    if (old.kind != Shape::Kind::kUnknown && shape.max > old.max &&
        ++max_updates_[value.index] > kWidenAfter) {
        shape.max = Varying(value).max;
    }
    if (shape == old)
        return;
    old = std::move(shape);
    changed_ = true;
}

Shape ShapeAnalysis::Varying(ir::ValueId value) const {
    Shape shape;
    shape.kind = Shape::Kind::kVarying;
    ir::Type type = kernel_.type(value);
    shape.max = ir::IsInteger(type) ? TypeMax(ir::BitWidth(type)) : UINT64_MAX;
    return shape;
}

Shape ShapeAnalysis::PureShape(const ir::Instruction& inst) const {
    ir::ValueId result = inst.results[0];
    ir::Type type = kernel_.type(result);
    if (inst.op == Op::kConst || inst.op == Op::kUndef) {
        Shape shape;
        shape.kind = Shape::Kind::kUniform;
        shape.workgroup = true;
        shape.max = inst.imm;
        shape.base_zeros = static_cast<uint8_t>(inst.imm == 0 ? 64 : std::countr_zero(inst.imm));
        return shape;
    }

    bool uniform = true;
    bool scalar = true;
    bool workgroup = true;
    for (ir::ValueId operand : inst.operands) {
        uniform &= shapes_[operand.index].uniform();
        scalar &= shapes_[operand.index].scalar();
        workgroup &= shapes_[operand.index].workgroup;
    }
    Shape generic = Varying(result);
    if (uniform) {
        generic.kind = Shape::Kind::kUniform;
        generic.workgroup = workgroup;
    }
    if (inst.op == Op::kSelect && ir::IsInteger(type)) {
        const Shape& a = shapes_[inst.operands[1].index];
        const Shape& b = shapes_[inst.operands[2].index];
        generic.max = std::max(a.max, b.max);
        generic.base_zeros = std::min(a.base_zeros, b.base_zeros);
        if (shapes_[inst.operands[0].index].uniform() && !uniform && a.scalar() && a.SameLanes(b)) {
            generic.kind = a.kind;
            generic.workgroup = workgroup;
            generic.offsets = a.offsets;
            generic.rows = a.rows;
            generic.stride = a.stride;
            generic.narrow_scale = a.narrow_scale;
        }
        if (generic.varying())
            generic.base_zeros = 0;
        return generic;
    }
    if (inst.op == Op::kULt || inst.op == Op::kSLt || inst.op == Op::kULe || inst.op == Op::kSLe) {
        // x < bound, bound <= x: no lane differs if the bound is a multiple of what the lanes add.
        const bool less = inst.op == Op::kULt || inst.op == Op::kSLt;
        const Shape& x = shapes_[inst.operands[less ? 0 : 1].index];
        const Shape& bound = shapes_[inst.operands[less ? 1 : 0].index];
        const bool is_signed = inst.op == Op::kSLt || inst.op == Op::kSLe;
        const uint64_t sign = uint64_t{1} << (IntegerBits(kernel_, inst.operands[0]) - 1);
        if (x.pattern() && bound.uniform() && shape_rules::Disjoint(x) &&
            (!is_signed || (x.max < sign && bound.max < sign)) &&
            (static_cast<uint64_t>(*std::max_element(x.offsets.begin(), x.offsets.end())) >>
             std::min<uint32_t>(bound.base_zeros, 63)) == 0) {
            generic.kind = Shape::Kind::kUniform;
            generic.workgroup = workgroup;
        }
        return generic;
    }
    if (!ir::IsInteger(type) || inst.operands.empty() ||
        !ir::IsInteger(kernel_.type(inst.operands[0]))) {
        return generic;
    }

    const Shape& a = shapes_[inst.operands[0].index];
    const uint32_t bits = IntegerBits(kernel_, inst.operands[0]);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    auto keep = [&](Shape shape) {
        // The rules know offsets; a workgroup-wide base needs every operand's.
        shape.workgroup = !shape.varying() && workgroup;
        if (shape.varying())
            shape.base_zeros = 0;
        return shape;
    };
    if (inst.operands.size() == 1) {
        switch (inst.op) {
            case Op::kTrunc:
            case Op::kZExt:
            case Op::kSExt: {
                bool fits =
                    a.max <= TypeMax(ir::BitWidth(type)) && (inst.op != Op::kSExt || a.max < sign);
                if (fits)
                    generic.max = a.max;
                if (a.has_rows() && a.narrow_scale == 0 && inst.op != Op::kTrunc &&
                    (inst.flags & ir::kNoLaneWrap)) {
                    Shape shape = a;
                    shape.max = generic.max;
                    shape.narrow_scale = 1;
                    return keep(std::move(shape));
                }
                if (!a.pattern())
                    return generic;
                // Widening keeps the pattern only where no lane wraps: the sum stays in range, or
                // the offsets fill bits that the base leaves free.
                int64_t low = *std::min_element(a.offsets.begin(), a.offsets.end());
                int64_t high = *std::max_element(a.offsets.begin(), a.offsets.end());
                uint64_t limit = inst.op == Op::kSExt ? sign - 1 : TypeMax(bits);
                bool no_wrap =
                    low == 0 && a.max <= limit && static_cast<uint64_t>(high) <= limit - a.max;
                const bool free_bits =
                    shape_rules::Disjoint(a) && static_cast<uint64_t>(high) < sign;
                if (inst.op == Op::kTrunc || no_wrap || free_bits ||
                    (inst.flags & ir::kNoLaneWrap)) {
                    Shape shape = a;
                    shape.max = generic.max;
                    for (int64_t& offset : shape.offsets)
                        offset = shape_rules::Wrap(offset, ir::BitWidth(type));
                    return keep(shape_rules::Normalize(std::move(shape)));
                }
                return generic;
            }
            case Op::kBitcast:
                return ir::BitWidth(type) == bits ? keep(a) : generic;
            default:
                return generic;
        }
    }

    const Shape& b = shapes_[inst.operands[1].index];
    uint64_t c = 0;
    const bool is_const = inst.operands.size() == 2 && kernel_.IsConst(inst.operands[1], &c);
    switch (inst.op) {
        case Op::kIAdd:
            return keep(shape_rules::Add(a, b, bits, false));
        case Op::kISub:
            return keep(shape_rules::Add(a, b, bits, true));
        case Op::kIMul: {
            if (is_const)
                return keep(shape_rules::MulConst(a, c, bits));
            if (a.pattern() && b.uniform())
                return keep(shape_rules::MulUniform(a, inst.operands[1], b, bits));
            if (a.uniform() && b.pattern())
                return keep(shape_rules::MulUniform(b, inst.operands[0], a, bits));
            if (a.max != 0 && b.max <= TypeMax(bits) / a.max)
                generic.max = a.max * b.max;
            if (generic.uniform())
                generic.base_zeros =
                    static_cast<uint8_t>(std::min(64, int{a.base_zeros} + int{b.base_zeros}));
            return generic;
        }
        case Op::kShl:
            if (is_const && c < bits)
                return keep(shape_rules::MulConst(a, uint64_t{1} << c, bits));
            return generic;
        case Op::kLShr:
            if (is_const && c < bits)
                return keep(shape_rules::ShiftRightConst(a, static_cast<uint32_t>(c)));
            generic.max = a.max;
            return generic;
        case Op::kAShr:
            if (is_const && c < bits && a.max < sign)
                return keep(shape_rules::ShiftRightConst(a, static_cast<uint32_t>(c)));
            return generic;
        case Op::kUDiv:
        case Op::kSDiv:
            if (!is_const || c == 0 || c >= sign || (inst.op == Op::kSDiv && a.max >= sign))
                return generic;
            if (std::has_single_bit(c))
                return keep(
                    shape_rules::ShiftRightConst(a, static_cast<uint32_t>(std::countr_zero(c))));
            generic.max = a.max / c;
            return generic;
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            if (!is_const || c == 0 || c >= sign || (inst.op != Op::kURem && a.max >= sign))
                return generic;
            if (std::has_single_bit(c))
                return keep(shape_rules::AndConst(a, c - 1));
            generic.max = std::min(a.max, c - 1);
            return generic;
        case Op::kAnd:
            if (is_const)
                return keep(shape_rules::AndConst(a, c));
            generic.max = std::min(a.max, b.max);
            return generic;
        case Op::kOr:
        case Op::kXor: {
            uint64_t high = std::max(a.max, b.max);
            uint32_t width = 64 - static_cast<uint32_t>(std::countl_zero(high));
            generic.max = width >= 64 ? UINT64_MAX : (uint64_t{1} << width) - 1;
            // One operand's bits all lie below the other's: the operation adds.
            auto below = [&](const Shape& low, const Shape& top) {
                uint32_t zeros = top.base_zeros;
                auto trailing = [&](int64_t at) {
                    const auto bits_of = static_cast<uint64_t>(at);
                    zeros = std::min(zeros, static_cast<uint32_t>(std::countr_zero(bits_of)));
                };
                std::for_each(top.offsets.begin(), top.offsets.end(), trailing);
                std::for_each(top.rows.begin(), top.rows.end(), trailing);
                return zeros >= 64 || (low.max >> zeros) == 0;
            };
            if (!uniform && scalar && (below(a, b) || below(b, a)))
                return keep(shape_rules::Add(a, b, bits, false));
            return generic;
        }
        case Op::kUMin:
            generic.max = std::min(a.max, b.max);
            return generic;
        case Op::kUMax:
            generic.max = std::max(a.max, b.max);
            return generic;
        case Op::kSMin:
            if (a.max < sign && b.max < sign)
                generic.max = std::min(a.max, b.max);
            return generic;
        case Op::kSMax:
            if (a.max < sign && b.max < sign)
                generic.max = std::max(a.max, b.max);
            return generic;
        default:
            return generic;
    }
}

}  // namespace fornax::kernel
