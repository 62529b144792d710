// Random operations between the lanes of a subgroup. All give the same on every correct
// implementation: shuffles are asked whether their lane is there, sums of floats are exact.
#include "compiler/kernel/interpret/random_values.h"
#include "compiler/kernel/ir/group.h"

namespace fornax::kernel {

using namespace ir;

ValueId RandomValues::Shuffled(ValueId value) {
    const Type i32 = Type::kI32;
    const uint32_t last = kernel_.subgroup_size - 1;
    ValueId lane = b_.Emit(Op::kBuiltin, i32, {}, static_cast<uint64_t>(BuiltinId::kSubgroupLane));
    switch (random_.Below(4)) {
        case 0:
            lane = b_.ConstI32(random_.Below(last + 1));
            break;
        case 1:
            lane = Emit(Op::kXor, i32, {lane, b_.ConstI32(random_.Below(last + 1))});
            break;
        case 2:
            lane = Emit(Op::kIAdd, i32, {lane, Masked(i32, last)});
            lane = Emit(Op::kAnd, i32, {lane, b_.ConstI32(last)});
            break;
        default:
            lane = Masked(i32, last);
            break;
    }
    ValueId there = b_.Emit(Op::kSubgroupBallot, Type::kI64, {b_.ConstBool(true)});
    there = Emit(Op::kLShr, Type::kI64, {there, lane});
    there = Emit(Op::kTrunc, Type::kI8, {there});
    there = Emit(Op::kAnd, Type::kI8, {there, b_.Const(Type::kI8, 1)});
    there = Emit(Op::kINe, Type::kBool, {there, b_.Const(Type::kI8, 0)});
    const Type type = kernel_.type(value);
    ValueId shuffled = b_.Emit(Op::kSubgroupShuffle, type, {value, lane});
    return Emit(Op::kSelect, type, {there, shuffled, b_.Const(type, 0)});
}

ValueId RandomValues::Grouped() {
    Type type = AnyType();
    if (type == Type::kBool) {
        type = Type::kI32;
    }
    GroupOp op;
    ValueId value;
    if (IsFloat(type)) {
        op = static_cast<GroupOp>(static_cast<uint32_t>(GroupOp::kFAdd) + random_.Below(4));
        if (op == GroupOp::kFMul) {
            value = Emit(Op::kAnd, Type::kI32, {Masked(Type::kI32, 15), b_.ConstI32(8)});
            value = Emit(Op::kIEq, Type::kBool, {value, b_.ConstI32(0)});
            value = Emit(Op::kSelect, type,
                         {value, Emit(Op::kSToF, type, {b_.ConstI32(1)}),
                          Emit(Op::kSToF, type, {b_.ConstI32(static_cast<uint32_t>(-2))})});
        } else {
            value = Emit(Op::kSToF, type, {Masked(Type::kI32, 15)});
        }
    } else {
        op = static_cast<GroupOp>(random_.Below(static_cast<uint32_t>(GroupOp::kFAdd)));
        value = Pick(type);
    }
    static constexpr Op kWhole[] = {Op::kSubgroupReduce, Op::kSubgroupReduce,
                                    Op::kSubgroupInclusiveScan, Op::kSubgroupExclusiveScan};
    static constexpr Op kPartitioned[] = {Op::kPartitionedReduce, Op::kPartitionedInclusiveScan,
                                          Op::kPartitionedExclusiveScan};
    if (random_.Chance(20)) {
        ValueId set = b_.Emit(Op::kSubgroupPartition, Type::kI64, {Masked(Type::kI32, 3)});
        return b_.Emit(kPartitioned[random_.Below(3)], type, {value, set}, GroupImm(op));
    }
    const Op which = kWhole[random_.Below(4)];
    uint32_t cluster = 0;
    if (which == Op::kSubgroupReduce && random_.Chance(50)) {
        cluster = 1u << random_.Below(4);
    }
    return b_.Emit(which, type, {value}, GroupImm(op, cluster));
}

void RandomValues::SubgroupStatement() {
    switch (random_.Below(8)) {
        case 0:
            Add(b_.Emit(Op::kSubgroupElect, Type::kBool, {}));
            return;
        case 1:
            Add(b_.Emit(Op::kSubgroupBallot, Type::kI64, {Pick(Type::kBool)}));
            return;
        case 2: {  // a vote
            ValueId lanes = b_.Emit(Op::kSubgroupBallot, Type::kI64, {Pick(Type::kBool)});
            Add(Emit(Op::kINe, Type::kBool, {lanes, b_.Const(Type::kI64, 0)}));
            return;
        }
        case 3: {
            ValueId value = Pick(AnyType());
            Add(b_.Emit(Op::kSubgroupBroadcastFirst, kernel_.type(value), {value}));
            return;
        }
        case 4:
            Add(b_.Emit(Op::kSubgroupPartition, Type::kI64,
                        {random_.Chance(50) ? Masked(Type::kI32, 7) : Pick(Type::kBool)}));
            return;
        case 5:
            Add(Shuffled(Pick(AnyType())));
            return;
        default:
            Add(Grouped());
            return;
    }
}

}  // namespace fornax::kernel
