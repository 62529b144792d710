#include "compiler/kernel/codegen/emit_atomic.h"

#include <functional>

#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

using ir::AtomicOp;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

constexpr uint64_t kHalfNan = 0x7e00;

llvm::AtomicRMWInst::BinOp RmwOp(AtomicOp op) {
    switch (op) {
        case AtomicOp::kAdd:
            return llvm::AtomicRMWInst::Add;
        case AtomicOp::kSub:
            return llvm::AtomicRMWInst::Sub;
        case AtomicOp::kUMin:
            return llvm::AtomicRMWInst::UMin;
        case AtomicOp::kUMax:
            return llvm::AtomicRMWInst::UMax;
        case AtomicOp::kSMin:
            return llvm::AtomicRMWInst::Min;
        case AtomicOp::kSMax:
            return llvm::AtomicRMWInst::Max;
        case AtomicOp::kAnd:
            return llvm::AtomicRMWInst::And;
        case AtomicOp::kOr:
            return llvm::AtomicRMWInst::Or;
        case AtomicOp::kXor:
            return llvm::AtomicRMWInst::Xor;
        default:
            return llvm::AtomicRMWInst::Xchg;
    }
}

bool OnFloats(AtomicOp op) {
    return op >= AtomicOp::kFAdd;
}

// Lanes can be combined in any order, or in theirs.
bool Associative(AtomicOp op) {
    return op >= AtomicOp::kAdd && op != AtomicOp::kFAdd;
}

}  // namespace

// What an operation leaves in memory; scalars or vectors.
Value* AtomicEmitter::Combine(AtomicOp op, Value* old, Value* value) {
    llvm::Type* type = old->getType();
    const bool half = OnFloats(op) && type->getScalarType()->isIntegerTy();
    if (half) {
        llvm::Type* halves = type->getWithNewType(builder_.getHalfTy());
        old = FloatFromHalf(builder_, builder_.CreateBitCast(old, halves));
        value = FloatFromHalf(builder_, builder_.CreateBitCast(value, halves));
    }
    Value* result = value;
    switch (op) {
        case AtomicOp::kAdd:
            return builder_.CreateAdd(old, value);
        case AtomicOp::kSub:
            return builder_.CreateSub(old, value);
        case AtomicOp::kUMin:
            return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, old, value);
        case AtomicOp::kUMax:
            return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, old, value);
        case AtomicOp::kSMin:
            return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, old, value);
        case AtomicOp::kSMax:
            return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, old, value);
        case AtomicOp::kAnd:
            return builder_.CreateAnd(old, value);
        case AtomicOp::kOr:
            return builder_.CreateOr(old, value);
        case AtomicOp::kXor:
            return builder_.CreateXor(old, value);
        case AtomicOp::kFAdd:
            result = builder_.CreateFAdd(old, value);
            break;
        case AtomicOp::kFMin:
        case AtomicOp::kFMax: {
            // A NaN loses against a number.
            Value* keep = op == AtomicOp::kFMin ? builder_.CreateFCmpOLE(old, value)
                                                : builder_.CreateFCmpOGE(old, value);
            keep = builder_.CreateOr(keep, builder_.CreateFCmpUNO(value, value));
            result = builder_.CreateSelect(keep, old, value);
            break;
        }
        default:
            break;
    }
    return half ? builder_.CreateBitCast(HalfFromFloat(builder_, result), type) : result;
}

// The vector, with what changes nothing in the lanes that are not active.
Value* AtomicEmitter::ActiveOrNeutral(AtomicOp op, Value* vector) {
    if (!code_.mask) {
        return vector;
    }
    llvm::Type* type = vector->getType()->getScalarType();
    if (OnFloats(op)) {
        llvm::Constant* nan = type->isIntegerTy() ? llvm::ConstantInt::get(type, kHalfNan)
                                                  : llvm::ConstantFP::getNaN(type);
        return builder_.CreateSelect(code_.mask, vector, code_.Splat(nan));
    }
    const uint32_t bits = type->getIntegerBitWidth();
    llvm::APInt neutral(bits, 0);
    if (op == AtomicOp::kUMin || op == AtomicOp::kAnd) {
        neutral = llvm::APInt::getAllOnes(bits);
    } else if (op == AtomicOp::kSMin) {
        neutral = llvm::APInt::getSignedMaxValue(bits);
    } else if (op == AtomicOp::kSMax) {
        neutral = llvm::APInt::getSignedMinValue(bits);
    }
    return builder_.CreateSelect(code_.mask, vector,
                                 code_.Splat(llvm::ConstantInt::get(type, neutral)));
}

// All active lanes' values as one operand of the operation.
Value* AtomicEmitter::ReduceLanes(AtomicOp op, ir::ValueId value) {
    const bool adds = op == AtomicOp::kAdd || op == AtomicOp::kSub;
    if (patterns_.pattern(value).uniform() && op != AtomicOp::kXor) {
        Value* scalar = values_.Raw(value);
        if (!adds) {
            return scalar;
        }
        Value* active =
            builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, code_.MaskBits(code_.Mask()));
        return builder_.CreateMul(scalar, builder_.CreateZExtOrTrunc(active, scalar->getType()));
    }
    Value* vector = ActiveOrNeutral(op, values_.Vector(value));
    switch (op) {
        case AtomicOp::kAdd:
        case AtomicOp::kSub:
            return builder_.CreateAddReduce(vector);
        case AtomicOp::kUMin:
            return builder_.CreateIntMinReduce(vector, false);
        case AtomicOp::kUMax:
            return builder_.CreateIntMaxReduce(vector, false);
        case AtomicOp::kSMin:
            return builder_.CreateIntMinReduce(vector, true);
        case AtomicOp::kSMax:
            return builder_.CreateIntMaxReduce(vector, true);
        case AtomicOp::kAnd:
            return builder_.CreateAndReduce(vector);
        case AtomicOp::kOr:
            return builder_.CreateOrReduce(vector);
        case AtomicOp::kXor:
            return builder_.CreateXorReduce(vector);
        default:
            break;
    }
    for (uint32_t half = code_.lanes / 2; half > 0; half /= 2) {
        llvm::SmallVector<int, 64> low;
        llvm::SmallVector<int, 64> high;
        for (uint32_t lane = 0; lane < half; ++lane) {
            low.push_back(static_cast<int>(lane));
            high.push_back(static_cast<int>(lane + half));
        }
        vector = Combine(op, builder_.CreateShuffleVector(vector, low),
                         builder_.CreateShuffleVector(vector, high));
    }
    return builder_.CreateExtractElement(vector, uint64_t{0});
}

// Gives what was in memory when the new contents took its place.
Value* AtomicEmitter::LoopUntilExchanged(Value* address,
                                         llvm::Type* type,
                                         llvm::function_ref<Value*(Value*)> update) {
    const auto bytes = type->getPrimitiveSizeInBits() / 8;
    llvm::Type* bits = builder_.getIntNTy(static_cast<unsigned>(bytes * 8));
    const auto order = llvm::AtomicOrdering::SequentiallyConsistent;
    Value* first = builder_.CreateAlignedLoad(bits, address, llvm::Align(bytes));
    BasicBlock* before = builder_.GetInsertBlock();
    BasicBlock* loop = code_.NewBlock("exchange");
    BasicBlock* end = code_.NewBlock("exchanged");
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    auto* expected = builder_.CreatePHI(bits, 2);
    expected->addIncoming(first, before);
    Value* updated = update(builder_.CreateBitCast(expected, type));
    Value* pair = builder_.CreateAtomicCmpXchg(
        address, expected, builder_.CreateBitCast(updated, bits), llvm::Align(bytes), order, order);
    expected->addIncoming(builder_.CreateExtractValue(pair, 0), builder_.GetInsertBlock());
    code_.EmitMaybe(builder_.CreateExtractValue(pair, 1), end, loop, true);
    builder_.SetInsertPoint(end);
    return builder_.CreateBitCast(expected, type);
}

Value* AtomicEmitter::AtomicOnScalar(const AtomicPlace& place,
                                     Value* offset,
                                     Value* value,
                                     Value* comparand) {
    llvm::Type* type = value->getType();
    if (place.region.bounds == Bounds::kClamped) {
        offset = memory_.ClampScalar(place.region, offset, place.bytes);
    }
    Value* address = memory_.ByteAddress(place.region, offset);
    const llvm::Align align(place.bytes);
    if (place.shared) {
        Value* old = memory_.Annotate(place.region,
                                      builder_.CreateAlignedLoad(type, address, llvm::Align(1)));
        Value* updated =
            place.op == AtomicOp::kCompareExchange
                ? builder_.CreateSelect(builder_.CreateICmpEQ(old, comparand), value, old)
                : Combine(place.op, old, value);
        memory_.Annotate(place.region,
                         builder_.CreateAlignedStore(updated, address, llvm::Align(1)));
        return old;
    }
    const auto order = llvm::AtomicOrdering::SequentiallyConsistent;
    if (place.op == AtomicOp::kCompareExchange) {
        Value* pair = builder_.CreateAtomicCmpXchg(address, comparand, value, align, order, order);
        return builder_.CreateExtractValue(pair, 0);
    }
    if (OnFloats(place.op)) {
        return LoopUntilExchanged(address, type,
                                  [&](Value* old) { return Combine(place.op, old, value); });
    }
    llvm::Type* bits = builder_.getIntNTy(static_cast<unsigned>(place.bytes * 8));
    Value* old = builder_.CreateAtomicRMW(RmwOp(place.op), address,
                                          builder_.CreateBitCast(value, bits), align, order);
    return builder_.CreateBitCast(old, type);
}

// One address for all lanes.
void AtomicEmitter::AtomicOnUniform(const ir::Instruction& inst,
                                    const AtomicPlace& place,
                                    Value* offset,
                                    ir::ValueId value_id) {
    recorder_.Form(code_.lanes == 1 ? AccessForm::kScalar : AccessForm::kReduced,
                   AccessCheck::kScalar);
    ir::ValueId result = inst.results[0];
    auto guarded = [&](auto&& body) -> Value* {
        // Robust: nothing happens outside the range, and the result is zero.
        if (place.region.bounds != Bounds::kChecked) {
            return body();
        }
        BasicBlock* inside = code_.NewBlock("atomic");
        BasicBlock* end = code_.NewBlock("atomic_end");
        BasicBlock* before = builder_.GetInsertBlock();
        code_.EmitMaybe(memory_.InBounds(place.region, offset, place.bytes), inside, end, true);
        builder_.SetInsertPoint(inside);
        Value* old = body();
        BasicBlock* from = builder_.GetInsertBlock();
        builder_.CreateBr(end);
        builder_.SetInsertPoint(end);
        auto* phi = builder_.CreatePHI(old->getType(), 2);
        phi->addIncoming(old, from);
        phi->addIncoming(llvm::Constant::getNullValue(old->getType()), before);
        return phi;
    };
    if (code_.lanes == 1) {
        Value* comparand =
            place.op == AtomicOp::kCompareExchange ? values_.Raw(inst.operands.back()) : nullptr;
        values_.Set(result, guarded([&] {
                        return AtomicOnScalar(place, offset, values_.Raw(value_id), comparand);
                    }));
        return;
    }
    if (values_.uses(result) == 0) {
        guarded([&] {
            return AtomicOnScalar(place, offset, ReduceLanes(place.op, value_id), nullptr);
        });
        values_.Set(result, llvm::Constant::getNullValue(values_.RawType(result)));
        return;
    }
    // What the lanes before each have together done, by doubling the distance.
    const bool subtracts = place.op == AtomicOp::kSub;
    const AtomicOp op = subtracts ? AtomicOp::kAdd : place.op;
    Value* sums = ActiveOrNeutral(op, values_.Vector(value_id));
    auto shifted = [&](Value* vector, Value* filler, uint32_t distance) {
        llvm::SmallVector<int, 64> pick;
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            pick.push_back(
                static_cast<int>(lane < distance ? code_.lanes + lane : lane - distance));
        }
        return builder_.CreateShuffleVector(vector, filler, pick);
    };
    for (uint32_t distance = 1; distance < code_.lanes; distance *= 2) {
        // Lanes that have none so far before them keep what they have.
        llvm::SmallVector<int, 64> keep;
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            keep.push_back(static_cast<int>(lane < distance ? lane : code_.lanes + lane));
        }
        Value* both = Combine(op, shifted(sums, sums, distance), sums);
        sums = builder_.CreateShuffleVector(sums, both, keep);
    }
    Value* total = builder_.CreateExtractElement(sums, uint64_t{code_.lanes - 1});
    Value* old = guarded([&] { return AtomicOnScalar(place, offset, total, nullptr); });
    // A lane sees the old value with the lanes before it: the first one sees it as it was.
    Value* olds = code_.Splat(old);
    Value* seen = subtracts ? builder_.CreateSub(olds, sums) : Combine(op, olds, sums);
    Value* results = shifted(seen, olds, 1);
    if (place.region.bounds == Bounds::kChecked) {
        Value* inside = code_.Splat(memory_.InBounds(place.region, offset, place.bytes));
        results = builder_.CreateSelect(inside, results,
                                        llvm::Constant::getNullValue(results->getType()));
    }
    values_.Set(result, results);
}

void AtomicEmitter::AtomicByLane(const ir::Instruction& inst,
                                 const AtomicPlace& at,
                                 Value* offsets,
                                 ir::ValueId value_id,
                                 ir::ValueId comparand_id) {
    recorder_.Form(AccessForm::kLaneLoop, AccessCheck::kLanes);
    ir::ValueId result = inst.results[0];
    llvm::Type* type = ScalarType(code_.context, kernel_.type(result));
    AtomicPlace place = at;
    Value* mask = code_.Mask();
    if (place.region.lane_bases) {
        offsets = memory_.LaneAddresses(place.region, offsets, place.bytes, 0, mask);
        place.region.is_global = true;
    } else if (place.region.bounds == Bounds::kChecked) {
        mask = builder_.CreateAnd(mask, memory_.LanesInBounds(place.region, offsets, place.bytes));
    } else if (place.region.bounds == Bounds::kClamped) {
        offsets = memory_.ClampScalar(place.region, offsets, place.bytes);
    }
    place.region.bounds = Bounds::kTrusted;
    const MemoryCode::LaneArray places = memory_.SpillLanes(offsets);
    // A value of the lane, or the one that all have.
    auto by_lane = [&](ir::ValueId id) -> std::function<Value*(Value*)> {
        if (!id.valid()) {
            return [](Value*) -> Value* { return nullptr; };
        }
        if (patterns_.pattern(id).uniform()) {
            Value* scalar = values_.Raw(id);
            return [scalar](Value*) { return scalar; };
        }
        const MemoryCode::LaneArray array = memory_.SpillLanes(values_.Vector(id));
        return [this, array](Value* lane) { return memory_.LoadLane(array, lane); };
    };
    const auto values = by_lane(value_id);
    const auto comparands = by_lane(comparand_id);
    const bool used = values_.uses(result) != 0;
    MemoryCode::LaneArray olds;
    if (used) {
        olds = memory_.SpillLanes(llvm::Constant::getNullValue(code_.VectorOf(type)));
    }
    memory_.EmitLaneLoop(mask, [&](Value* lane) {
        Value* old =
            AtomicOnScalar(place, memory_.LoadLane(places, lane), values(lane), comparands(lane));
        if (used) {
            memory_.StoreLane(olds, lane, old);
        }
    });
    Value* seen = llvm::Constant::getNullValue(code_.VectorOf(type));
    if (used) {
        seen = builder_.CreateLoad(code_.VectorOf(type), olds.slot);
    }
    values_.Set(result, seen);
}

void AtomicEmitter::EmitAtomic(const ir::Instruction& inst) {
    const size_t first = inst.op == Op::kAtomicBuffer ? 1 : 0;
    const ir::ValueId offset_id = inst.operands[first];
    const ir::ValueId value_id = inst.operands[first + 1];
    AtomicPlace place;
    place.op = static_cast<AtomicOp>(inst.imm);
    place.shared = inst.op == Op::kAtomicShared;
    place.region = place.shared ? memory_regions_.SharedRegion(inst)
                   : inst.op == Op::kAtomicGlobal
                       ? memory_regions_.GlobalRegion(inst)
                       : memory_regions_.BufferRegion(inst, inst.operands[0]);
    place.region.is_volatile = true;
    ir::ValueId result = inst.results[0];
    place.bytes = ir::ByteSize(kernel_.type(result));

    // An aligned element is read and written whole on the host, in the order of the program as far
    // as acquire and release ask for it, so atomic loads and stores are plain ones that the
    // compiler may not move.
    if (place.op == AtomicOp::kLoad) {
        accesses_.EmitLoad(inst, place.region, offset_id);
        return;
    }
    if (place.op == AtomicOp::kStore) {
        accesses_.EmitStore(place.region, offset_id, {&value_id, 1});
        values_.Set(result, llvm::Constant::getNullValue(values_.RawType(result)));
        return;
    }
    Offset offset = values_.OffsetOf(offset_id);
    const bool uniform = offset.pattern->uniform() && !place.region.lane_bases;
    if (code_.lanes == 1 || (uniform && Associative(place.op))) {
        AtomicOnUniform(inst, place, offset.scalar, value_id);
        return;
    }
    const bool compares = place.op == AtomicOp::kCompareExchange;
    AtomicByLane(inst, place, values_.Vector(offset_id), value_id,
                 compares ? inst.operands[first + 2] : ir::ValueId{});
}

}  // namespace fornax::kernel
