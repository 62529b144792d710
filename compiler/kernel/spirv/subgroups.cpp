// Group and Non-Uniform instructions, and those of SPV_KHR_shader_ballot and
// SPV_KHR_subgroup_vote.
//
// Few operations of the IR do for all: a ballot, a value of one lane (known or first), reductions
// and scans. Votes, bits of ballots and everything boolean is arithmetic on ballots; shuffles of
// all kinds differ in how they name the lane.
#include "compiler/kernel/spirv/subgroups.h"

#include <algorithm>

#include "compiler/kernel/ir/group.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

struct Arithmetic {
    Op op;
    ir::GroupOp ir;
    bool logical = false;
};

constexpr Arithmetic kArithmetic[] = {
    {Op::OpGroupNonUniformIAdd, ir::GroupOp::kIAdd},
    {Op::OpGroupNonUniformFAdd, ir::GroupOp::kFAdd},
    {Op::OpGroupNonUniformIMul, ir::GroupOp::kIMul},
    {Op::OpGroupNonUniformFMul, ir::GroupOp::kFMul},
    {Op::OpGroupNonUniformSMin, ir::GroupOp::kSMin},
    {Op::OpGroupNonUniformUMin, ir::GroupOp::kUMin},
    {Op::OpGroupNonUniformFMin, ir::GroupOp::kFMin},
    {Op::OpGroupNonUniformSMax, ir::GroupOp::kSMax},
    {Op::OpGroupNonUniformUMax, ir::GroupOp::kUMax},
    {Op::OpGroupNonUniformFMax, ir::GroupOp::kFMax},
    {Op::OpGroupNonUniformBitwiseAnd, ir::GroupOp::kAnd},
    {Op::OpGroupNonUniformBitwiseOr, ir::GroupOp::kOr},
    {Op::OpGroupNonUniformBitwiseXor, ir::GroupOp::kXor},
    {Op::OpGroupNonUniformLogicalAnd, ir::GroupOp::kAnd, true},
    {Op::OpGroupNonUniformLogicalOr, ir::GroupOp::kOr, true},
    {Op::OpGroupNonUniformLogicalXor, ir::GroupOp::kXor, true},
};

constexpr Op kWithoutScope[] = {
    Op::OpGroupNonUniformQuadAllKHR,
    Op::OpGroupNonUniformQuadAnyKHR,
    Op::OpGroupNonUniformPartitionEXT,
    Op::OpSubgroupBallotKHR,
    Op::OpSubgroupFirstInvocationKHR,
    Op::OpSubgroupReadInvocationKHR,
    Op::OpSubgroupAllKHR,
    Op::OpSubgroupAnyKHR,
    Op::OpSubgroupAllEqualKHR,
};

constexpr Op kOfQuads[] = {
    Op::OpGroupNonUniformQuadBroadcast,
    Op::OpGroupNonUniformQuadSwap,
    Op::OpGroupNonUniformQuadAllKHR,
    Op::OpGroupNonUniformQuadAnyKHR,
};

bool HasScope(Op op) {
    return !std::ranges::count(kWithoutScope, op);
}

}  // namespace

bool Subgroups::IsSubgroupOp(Op op) {
    return (op >= Op::OpGroupNonUniformElect && op <= Op::OpGroupNonUniformQuadSwap) ||
           op == Op::OpGroupNonUniformRotateKHR || !HasScope(op);
}

ir::ValueId Subgroups::LanesWhere(ir::ValueId condition) {
    ir::ValueId set = Emit(ir::Op::kSubgroupBallot, ir::Type::kI64, {condition});
    return invocation_.LaneSetType() == ir::Type::kI64
               ? set
               : Emit(ir::Op::kTrunc, ir::Type::kI32, {set});
}

Result<ir::ValueId> Subgroups::UseLaneSet(const Inst& inst, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Tuple words, values_.UseTuple(inst, id));
    if (words.size() != 4 || kernel_.type(words[0]) != ir::Type::kI32) {
        return Invalid(inst, "takes a ballot that is no vector of four 32-bit integers");
    }
    ir::ValueId set = words[0];
    if (invocation_.LaneSetType() == ir::Type::kI64) {
        const ir::Type i64 = ir::Type::kI64;
        ir::ValueId high = Emit(ir::Op::kZExt, i64, {words[1]});
        high = Emit(ir::Op::kShl, i64, {high, Int(32)});
        set = Emit(ir::Op::kOr, i64, {Emit(ir::Op::kZExt, i64, {set}), high});
    }
    return set;
}

ir::ValueId Subgroups::HasLane(ir::ValueId set, ir::ValueId lane) {
    const ir::Type type = kernel_.type(set);
    ir::ValueId bit = Emit(ir::Op::kLShr, type, {set, lane});
    bit = Emit(ir::Op::kAnd, type, {bit, builder_.Const(type, 1)});
    return Emit(ir::Op::kINe, ir::Type::kBool, {bit, builder_.Const(type, 0)});
}

ir::ValueId Subgroups::IsEmpty(ir::ValueId set) {
    return Emit(ir::Op::kIEq, ir::Type::kBool, {set, builder_.Const(kernel_.type(set), 0)});
}

// The set bits as a 32-bit number.
ir::ValueId Subgroups::LaneSetNumber(ir::Op op, ir::ValueId set) {
    ir::ValueId number = Emit(op, kernel_.type(set), {set});
    return invocation_.LaneSetType() == ir::Type::kI32
               ? number
               : Emit(ir::Op::kTrunc, ir::Type::kI32, {number});
}

Status Subgroups::DefineShuffle(const Inst& inst, Tuple values, ir::ValueId lane) {
    for (ir::ValueId& value : values) {
        value = Emit(ir::Op::kSubgroupShuffle, kernel_.type(value), {value, lane});
    }
    return values_.Define(inst, std::move(values));
}

Status Subgroups::Subgroup(const Inst& inst) {
    const bool has_scope = HasScope(inst.op);
    if (has_scope) {
        FORNAX_ASSIGN_OR_RETURN(uint64_t scope, constants_.Integer(inst, inst[0]));
        if (static_cast<spv::Scope>(scope) != spv::Scope::Subgroup) {
            return Unsupported(inst, "has the scope " + std::to_string(scope) +
                                         "; operations of a subgroup are supported");
        }
    }
    (std::ranges::count(kOfQuads, inst.op) ? code_.sees_quads : code_.sees_subgroups) = true;
    if (std::ranges::count(kArithmetic, inst.op, &Arithmetic::op)) {
        return SubgroupArithmetic(inst);
    }
    const size_t first = has_scope ? 1 : 0;
    const ir::Type i32 = ir::Type::kI32;
    switch (inst.op) {
        case Op::OpGroupNonUniformElect:
            return values_.Define(inst, {Emit(ir::Op::kSubgroupElect, ir::Type::kBool, {})});
        case Op::OpGroupNonUniformBallotBitCount: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId set, UseLaneSet(inst, inst[2]));
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId lanes, GroupLanes(inst, inst[1], 0));
            set = Emit(ir::Op::kAnd, invocation_.LaneSetType(), {set, lanes});
            return values_.Define(inst, {LaneSetNumber(ir::Op::kBitCount, set)});
        }
        case Op::OpGroupNonUniformInverseBallot:
        case Op::OpGroupNonUniformBallotBitExtract: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId set, UseLaneSet(inst, inst[1]));
            ir::ValueId lane;
            if (inst.op == Op::OpGroupNonUniformInverseBallot) {
                lane = invocation_.SubgroupLane();
            } else {
                FORNAX_ASSIGN_OR_RETURN(lane, values_.UseScalar(inst, inst[2]));
            }
            return values_.Define(inst, {HasLane(set, lane)});
        }
        case Op::OpGroupNonUniformBallotFindLSB:
        case Op::OpGroupNonUniformBallotFindMSB: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId set, UseLaneSet(inst, inst[1]));
            set = Emit(ir::Op::kAnd, invocation_.LaneSetType(), {set, invocation_.AllLanes()});
            const bool lowest = inst.op == Op::OpGroupNonUniformBallotFindLSB;
            return values_.Define(
                inst, {LaneSetNumber(lowest ? ir::Op::kFindLsb : ir::Op::kFindUMsb, set)});
        }
        default:
            break;
    }

    FORNAX_ASSIGN_OR_RETURN(Tuple values, values_.UseTuple(inst, inst[first]));
    auto condition = [&]() -> Result<ir::ValueId> {
        if (values.size() != 1 || kernel_.type(values[0]) != ir::Type::kBool) {
            return Invalid(inst, "takes a condition that is no boolean");
        }
        return values[0];
    };
    auto index = [&]() -> Result<ir::ValueId> {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId value, values_.UseScalar(inst, inst[first + 1]));
        if (!ir::IsInteger(kernel_.type(value))) {
            return Invalid(inst, "takes an index that is no integer");
        }
        return ToI32(value, false);
    };
    switch (inst.op) {
        case Op::OpGroupNonUniformAll:
        case Op::OpSubgroupAllKHR: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId holds, condition());
            return values_.Define(inst, {IsEmpty(LanesWhere(BoolNot(holds)))});
        }
        case Op::OpGroupNonUniformAny:
        case Op::OpSubgroupAnyKHR: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId holds, condition());
            return values_.Define(inst, {BoolNot(IsEmpty(LanesWhere(holds)))});
        }
        case Op::OpGroupNonUniformAllEqual:
        case Op::OpSubgroupAllEqualKHR: {
            ir::ValueId equal;
            for (ir::ValueId value : values) {
                const ir::Type type = kernel_.type(value);
                ir::ValueId of_first = Emit(ir::Op::kSubgroupBroadcastFirst, type, {value});
                ir::ValueId same = Emit(ir::IsFloat(type) ? ir::Op::kFOEq : ir::Op::kIEq,
                                        ir::Type::kBool, {value, of_first});
                equal = equal.valid() ? Emit(ir::Op::kAnd, ir::Type::kBool, {equal, same}) : same;
            }
            return values_.Define(inst, {IsEmpty(LanesWhere(BoolNot(equal)))});
        }
        case Op::OpGroupNonUniformBallot:
        case Op::OpSubgroupBallotKHR: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId holds, condition());
            return values_.Define(inst, invocation_.LaneSetToVector(LanesWhere(holds)));
        }
        case Op::OpGroupNonUniformBroadcastFirst:
        case Op::OpSubgroupFirstInvocationKHR:
            for (ir::ValueId& value : values) {
                value = Emit(ir::Op::kSubgroupBroadcastFirst, kernel_.type(value), {value});
            }
            return values_.Define(inst, std::move(values));
        case Op::OpGroupNonUniformBroadcast:
        case Op::OpSubgroupReadInvocationKHR: {
            // "Id must be dynamically uniform": then so is what it reads.
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId lane, index());
            lane = Emit(ir::Op::kSubgroupBroadcastFirst, i32, {lane});
            return DefineShuffle(inst, std::move(values), lane);
        }
        case Op::OpGroupNonUniformShuffle: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId lane, index());
            return DefineShuffle(inst, std::move(values), lane);
        }
        case Op::OpGroupNonUniformShuffleXor:
        case Op::OpGroupNonUniformShuffleUp:
        case Op::OpGroupNonUniformShuffleDown: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId by, index());
            const ir::Op op = inst.op == Op::OpGroupNonUniformShuffleXor  ? ir::Op::kXor
                              : inst.op == Op::OpGroupNonUniformShuffleUp ? ir::Op::kISub
                                                                          : ir::Op::kIAdd;
            return DefineShuffle(inst, std::move(values),
                                 Emit(op, i32, {invocation_.SubgroupLane(), by}));
        }
        case Op::OpGroupNonUniformRotateKHR: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId by, index());
            FORNAX_ASSIGN_OR_RETURN(uint32_t cluster,
                                    ClusterSize(inst, inst.size() > 3 ? inst[3] : 0));
            ir::ValueId lane = invocation_.SubgroupLane();
            ir::ValueId moved = Emit(ir::Op::kIAdd, i32, {lane, by});
            moved = Emit(ir::Op::kAnd, i32, {moved, Int(cluster - 1)});
            lane = Emit(ir::Op::kAnd, i32, {lane, Int(~(cluster - 1))});
            return DefineShuffle(inst, std::move(values), Emit(ir::Op::kOr, i32, {lane, moved}));
        }
        case Op::OpGroupNonUniformQuadBroadcast: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId in_quad, index());
            in_quad = Emit(ir::Op::kAnd, i32, {in_quad, Int(3)});
            ir::ValueId quad = Emit(ir::Op::kAnd, i32, {invocation_.SubgroupLane(), Int(~3u)});
            return DefineShuffle(inst, std::move(values), Emit(ir::Op::kOr, i32, {quad, in_quad}));
        }
        case Op::OpGroupNonUniformQuadSwap: {
            // Horizontally, vertically, diagonally.
            FORNAX_ASSIGN_OR_RETURN(uint64_t direction, constants_.Integer(inst, inst[2]));
            ir::ValueId lane =
                Emit(ir::Op::kXor, i32,
                     {invocation_.SubgroupLane(), Int(static_cast<uint32_t>(direction & 3) + 1)});
            return DefineShuffle(inst, std::move(values), lane);
        }
        case Op::OpGroupNonUniformQuadAllKHR:
        case Op::OpGroupNonUniformQuadAnyKHR: {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId holds, condition());
            const bool all = inst.op == Op::OpGroupNonUniformQuadAllKHR;
            ir::ValueId set = LanesWhere(all ? BoolNot(holds) : holds);
            ir::ValueId empty =
                IsEmpty(Emit(ir::Op::kAnd, invocation_.LaneSetType(), {set, ClusterLanes(4)}));
            return values_.Define(inst, {all ? empty : BoolNot(empty)});
        }
        case Op::OpGroupNonUniformPartitionEXT: {
            ir::ValueId set;
            for (ir::ValueId value : values) {
                ir::ValueId same = Emit(ir::Op::kSubgroupPartition, ir::Type::kI64, {value});
                set = set.valid() ? Emit(ir::Op::kAnd, ir::Type::kI64, {set, same}) : same;
            }
            return values_.Define(inst, invocation_.LaneSetToVector(set));
        }
        default:
            return Unsupported(inst, "is not supported");
    }
}

// A power of two up to the subgroup's size, which is what more means too.
Result<uint32_t> Subgroups::ClusterSize(const Inst& inst, uint32_t id) {
    if (id == 0) {
        return kernel_.subgroup_size;
    }
    FORNAX_ASSIGN_OR_RETURN(uint64_t size, constants_.Integer(inst, id));
    if (size == 0 || (size & (size - 1)) != 0) {
        return Invalid(
            inst, "has clusters of " + std::to_string(size) + " lanes, which is no power of two");
    }
    return static_cast<uint32_t>(std::min<uint64_t>(size, kernel_.subgroup_size));
}

ir::ValueId Subgroups::ClusterLanes(uint32_t cluster) {
    if (cluster == kernel_.subgroup_size) {
        return invocation_.AllLanes();
    }
    const ir::Type type = invocation_.LaneSetType();
    ir::ValueId start =
        Emit(ir::Op::kAnd, ir::Type::kI32, {invocation_.SubgroupLane(), Int(~(cluster - 1))});
    return Emit(ir::Op::kShl, type, {builder_.Const(type, (uint64_t{1} << cluster) - 1), start});
}

// The lanes whose values a Group Operation takes in. `extra` is the id of its last operand: the
// clusters' size or a set of the partition.
Result<ir::ValueId> Subgroups::GroupLanes(const Inst& inst, uint32_t operation, uint32_t extra) {
    using spv::GroupOperation;
    const auto which = static_cast<GroupOperation>(operation);
    ir::ValueId lanes;
    switch (which) {
        case GroupOperation::Reduce:
        case GroupOperation::PartitionedReduceEXT:
            lanes = invocation_.AllLanes();
            break;
        case GroupOperation::InclusiveScan:
        case GroupOperation::PartitionedInclusiveScanEXT:
            lanes = invocation_.LanesAround(spv::BuiltIn::SubgroupLeMask);
            break;
        case GroupOperation::ExclusiveScan:
        case GroupOperation::PartitionedExclusiveScanEXT:
            lanes = invocation_.LanesAround(spv::BuiltIn::SubgroupLtMask);
            break;
        case GroupOperation::ClusteredReduce: {
            FORNAX_ASSIGN_OR_RETURN(uint32_t cluster, ClusterSize(inst, extra));
            return ClusterLanes(cluster);
        }
        default:
            return Unsupported(inst, "has the group operation " + std::to_string(operation) +
                                         ", which is not supported");
    }
    if (which >= GroupOperation::PartitionedReduceEXT) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId set, UseLaneSet(inst, extra));
        lanes = Emit(ir::Op::kAnd, invocation_.LaneSetType(), {lanes, set});
    }
    return lanes;
}

Status Subgroups::SubgroupArithmetic(const Inst& inst) {
    using spv::GroupOperation;
    const auto* arithmetic = std::ranges::find(kArithmetic, inst.op, &Arithmetic::op);
    const auto which = static_cast<GroupOperation>(inst[1]);
    const uint32_t extra = inst.size() > 3 ? inst[3] : 0;
    const bool partitioned = which >= GroupOperation::PartitionedReduceEXT;
    if ((partitioned || which == GroupOperation::ClusteredReduce) && extra == 0) {
        return Invalid(inst, "lacks the last operand of its group operation");
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple values, values_.UseTuple(inst, inst[2]));
    if (arithmetic->logical) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId lanes, GroupLanes(inst, inst[1], extra));
        for (ir::ValueId& value : values) {
            if (kernel_.type(value) != ir::Type::kBool) {
                return Invalid(inst, "takes what is no boolean");
            }
            const bool all = arithmetic->ir == ir::GroupOp::kAnd;
            ir::ValueId set = LanesWhere(all ? BoolNot(value) : value);
            set = Emit(ir::Op::kAnd, invocation_.LaneSetType(), {set, lanes});
            if (arithmetic->ir == ir::GroupOp::kXor) {
                value = HasLane(Emit(ir::Op::kBitCount, invocation_.LaneSetType(), {set}), Int(0));
            } else {
                value = all ? IsEmpty(set) : BoolNot(IsEmpty(set));
            }
        }
        return values_.Define(inst, std::move(values));
    }

    ir::Op op = ir::Op::kSubgroupReduce;
    uint32_t cluster = 0;
    switch (which) {
        case GroupOperation::Reduce:
            break;
        case GroupOperation::InclusiveScan:
            op = ir::Op::kSubgroupInclusiveScan;
            break;
        case GroupOperation::ExclusiveScan:
            op = ir::Op::kSubgroupExclusiveScan;
            break;
        case GroupOperation::ClusteredReduce: {
            FORNAX_ASSIGN_OR_RETURN(cluster, ClusterSize(inst, extra));
            if (cluster == kernel_.subgroup_size) {
                cluster = 0;
            }
            break;
        }
        case GroupOperation::PartitionedReduceEXT:
            op = ir::Op::kPartitionedReduce;
            break;
        case GroupOperation::PartitionedInclusiveScanEXT:
            op = ir::Op::kPartitionedInclusiveScan;
            break;
        case GroupOperation::PartitionedExclusiveScanEXT:
            op = ir::Op::kPartitionedExclusiveScan;
            break;
        default:
            return Unsupported(inst, "has the group operation " + std::to_string(inst[1]) +
                                         ", which is not supported");
    }
    std::vector<ir::ValueId> operands(1);
    if (partitioned) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId set, UseLaneSet(inst, extra));
        if (kernel_.type(set) == ir::Type::kI32) {
            set = Emit(ir::Op::kZExt, ir::Type::kI64, {set});
        }
        operands.push_back(set);
    }
    const bool wants_float = arithmetic->ir >= ir::GroupOp::kFAdd;
    for (ir::ValueId& value : values) {
        const ir::Type type = kernel_.type(value);
        if (wants_float ? !ir::IsFloat(type) : !ir::IsInteger(type)) {
            return Invalid(inst, "takes values of another kind of type");
        }
        operands[0] = value;
        ir::InstId id =
            builder_.Append(op, operands, {&type, 1}, ir::GroupImm(arithmetic->ir, cluster));
        value = kernel_.inst(id).results[0];
    }
    return values_.Define(inst, std::move(values));
}

}  // namespace fornax::kernel::spirv
