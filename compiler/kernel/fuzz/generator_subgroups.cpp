// Operations between the lanes of a subgroup. They may stand in control flow that is not uniform:
// the module asks for maximal reconvergence, so that it is known which lanes run them together.
#include "compiler/kernel/fuzz/generator_subgroups.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr ValueType kLanes{Kind::kU32, 4, 1};

}  // namespace

Id SubgroupStatements::Group(Op op, ValueType type, std::initializer_list<uint32_t> operands) {
    std::vector<uint32_t> all = {b_.Uint(static_cast<uint32_t>(spv::Scope::Subgroup))};
    all.insert(all.end(), operands.begin(), operands.end());
    return b_.Emit(op, b_.Type(type), all);
}

Id SubgroupStatements::LaneIndex() {
    return b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.lane_variable});
}

// What another lane has, where that lane runs this too; else the value itself.
Id SubgroupStatements::FromLane(ValueType type, Id value, Id lane, Id read) {
    Id here = Group(Op::OpGroupNonUniformBallot, kLanes, {b_.Constant(Kind::kBool, 1)});
    Id is_here = Group(Op::OpGroupNonUniformBallotBitExtract, kBool, {here, lane});
    if (type.rows > 1) {
        std::vector<Id> parts(type.rows, is_here);
        is_here = b_.Emit(Op::OpCompositeConstruct, b_.Type(type.WithKind(Kind::kBool)), parts);
    }
    return Emit(Op::OpSelect, type, {is_here, read, value});
}

void SubgroupStatements::ShuffleStatement() {
    ValueType type = AnyType();
    Id value = values_.Value(type, 1);
    const uint32_t size = state_.options.subgroup_size;
    Id own = LaneIndex();
    Id lane = 0;
    Id read = 0;
    switch (Below(state_.options.wide ? 10 : 7)) {
        case 0: {
            lane = Emit(Op::OpBitwiseAnd, kUint, {values_.Value(kUint, 1), b_.Uint(size - 1)});
            read = Group(Op::OpGroupNonUniformShuffle, type, {value, lane});
            break;
        }
        case 1: {
            Id mask = b_.Uint(Below(size));
            lane = Emit(Op::OpBitwiseXor, kUint, {own, mask});
            read = Group(Op::OpGroupNonUniformShuffleXor, type, {value, mask});
            break;
        }
        case 2:
        case 3: {
            // Where the distance leaves the subgroup, a lane reads itself.
            const bool up = Chance(50);
            Id distance = b_.Uint(1 + Below(size / 2));
            Id other = Emit(up ? Op::OpISub : Op::OpIAdd, kUint, {own, distance});
            Id inside = Emit(Op::OpULessThan, kBool, {other, b_.Uint(size)});
            lane = Emit(Op::OpSelect, kUint, {inside, other, own});
            read = Group(up ? Op::OpGroupNonUniformShuffleUp : Op::OpGroupNonUniformShuffleDown,
                         type, {value, distance});
            Id part = inside;
            if (type.rows > 1) {
                std::vector<Id> parts(type.rows, inside);
                part =
                    b_.Emit(Op::OpCompositeConstruct, b_.Type(type.WithKind(Kind::kBool)), parts);
            }
            read = Emit(Op::OpSelect, type, {part, read, value});
            break;
        }
        case 4:
            lane = b_.Uint(Below(size));
            read = Group(Op::OpGroupNonUniformBroadcast, type, {value, lane});
            break;
        case 5: {
            const uint32_t direction = Below(3);
            lane = Emit(Op::OpBitwiseXor, kUint, {own, b_.Uint(direction + 1)});
            read = Group(Op::OpGroupNonUniformQuadSwap, type, {value, b_.Uint(direction)});
            break;
        }
        case 7: {  // by one distance for all, around the subgroup or a cluster
            b_.Capability(spv::Capability::GroupNonUniformRotateKHR);
            b_.Extension("SPV_KHR_subgroup_rotate");
            const uint32_t cluster = Chance(50) ? size : 1u << Below(4);
            Id distance = Chance(60) ? b_.Uint(Below(2 * size)) : values_.UniformWord();
            Id moved = Emit(Op::OpIAdd, kUint, {own, distance});
            moved = Emit(Op::OpBitwiseAnd, kUint, {moved, b_.Uint(cluster - 1)});
            lane = Emit(Op::OpBitwiseAnd, kUint, {own, b_.Uint(~(cluster - 1))});
            lane = Emit(Op::OpBitwiseOr, kUint, {lane, moved});
            read = cluster == size ? Group(Op::OpGroupNonUniformRotateKHR, type, {value, distance})
                                   : Group(Op::OpGroupNonUniformRotateKHR, type,
                                           {value, distance, b_.Uint(cluster)});
            break;
        }
        case 8: {
            const uint32_t index = Below(4);
            lane = Emit(Op::OpBitwiseAnd, kUint, {own, b_.Uint(~3u)});
            lane = Emit(Op::OpBitwiseOr, kUint, {lane, b_.Uint(index)});
            read = Group(Op::OpGroupNonUniformQuadBroadcast, type, {value, b_.Uint(index)});
            break;
        }
        default:
            Add(type, Group(Op::OpGroupNonUniformBroadcastFirst, type, {value}));
            return;
    }
    Add(type, FromLane(type, value, lane, read));
}

void SubgroupStatements::VoteStatement() {
    Id condition = values_.Condition();
    switch (Below(7)) {
        case 0:
            Add(kBool, Group(Op::OpGroupNonUniformElect, kBool, {}));
            return;
        case 1:
            Add(kBool, Group(Op::OpGroupNonUniformAll, kBool, {condition}));
            return;
        case 2:
            Add(kBool, Group(Op::OpGroupNonUniformAny, kBool, {condition}));
            return;
        case 3: {
            ValueType type{AnyIntKind(), 1, 1};
            Add(kBool, Group(Op::OpGroupNonUniformAllEqual, kBool, {values_.Value(type, 1)}));
            return;
        }
        default:
            break;
    }
    Id lanes = Group(Op::OpGroupNonUniformBallot, kLanes, {condition});
    switch (Below(4)) {
        case 0:
            Add(kLanes, lanes);
            break;
        case 1:
            Add(kUint, Group(Op::OpGroupNonUniformBallotBitCount, kUint, {Below(3), lanes}));
            break;
        case 2:
            Add(kBool, Group(Op::OpGroupNonUniformInverseBallot, kBool, {lanes}));
            break;
        default: {
            // The set is not empty: the lane itself is in it.
            lanes = Group(Op::OpGroupNonUniformBallot, kLanes, {b_.Constant(Kind::kBool, 1)});
            const Op op = Chance(50) ? Op::OpGroupNonUniformBallotFindLSB
                                     : Op::OpGroupNonUniformBallotFindMSB;
            Add(kUint, Group(op, kUint, {lanes}));
            break;
        }
    }
}

void SubgroupStatements::ReduceStatement() {
    static constexpr Op kInteger[] = {
        Op::OpGroupNonUniformIAdd, Op::OpGroupNonUniformIMul, Op::OpGroupNonUniformBitwiseAnd,
        Op::OpGroupNonUniformBitwiseOr, Op::OpGroupNonUniformBitwiseXor};
    static constexpr Op kSigned[] = {Op::OpGroupNonUniformSMin, Op::OpGroupNonUniformSMax};
    static constexpr Op kUnsigned[] = {Op::OpGroupNonUniformUMin, Op::OpGroupNonUniformUMax};
    static constexpr Op kLogical[] = {Op::OpGroupNonUniformLogicalAnd,
                                      Op::OpGroupNonUniformLogicalOr,
                                      Op::OpGroupNonUniformLogicalXor};
    ValueType type = AnyType();
    if (Chance(10)) {
        type.kind = Kind::kBool;
    }
    // Sums of floats are exact; their order is free.
    if (IsFloat(type.kind) && (!state_.exact || type.kind == Kind::kF16)) {
        type.kind = Kind::kI32;
    }
    Op op = kInteger[Below(5)];
    if (type.kind == Kind::kBool) {
        op = kLogical[Below(3)];
    } else if (IsFloat(type.kind)) {
        op = Op::OpGroupNonUniformFAdd;
    } else if (Chance(40)) {
        op = IsSigned(type.kind) ? kSigned[Below(2)] : kUnsigned[Below(2)];
    }
    Id value = values_.Value(type, 1);
    Id result = 0;
    if (state_.options.wide && Chance(25)) {
        // Among the lanes that have one value.
        b_.Capability(spv::Capability::GroupNonUniformPartitionedEXT);
        b_.Extension("SPV_NV_shader_subgroup_partitioned");
        Id key = values_.Masked(kUint, 3);
        Id sets = b_.Emit(Op::OpGroupNonUniformPartitionEXT, b_.Type(kLanes), {key});
        static constexpr spv::GroupOperation kForms[] = {
            spv::GroupOperation::PartitionedReduceEXT,
            spv::GroupOperation::PartitionedInclusiveScanEXT,
            spv::GroupOperation::PartitionedExclusiveScanEXT};
        result = Group(op, type, {static_cast<uint32_t>(kForms[Below(3)]), value, sets});
    } else if (Chance(25)) {
        b_.Capability(spv::Capability::GroupNonUniformClustered);
        Id cluster = b_.Uint(1u << Below(4));
        result =
            Group(op, type,
                  {static_cast<uint32_t>(spv::GroupOperation::ClusteredReduce), value, cluster});
    } else {
        result = Group(op, type, {Below(3), value});  // reduce, inclusive, exclusive
    }
    Add(type, IsFloat(type.kind) ? arithmetic_.Small(type, result) : result);
}

void SubgroupStatements::SubgroupStatement() {
    uint32_t choice = Below(10);
    if (choice < 4) {
        ShuffleStatement();
    } else if (choice < 7) {
        VoteStatement();
    } else {
        ReduceStatement();
    }
}

}  // namespace fornax::kernel::fuzz
