// Atomics. One address for all lanes: the lanes are combined, then one locked operation; each
// lane's old value follows from those before it. Anything else: a loop over the active lanes.
// Workgroup memory needs no lock, because one worker runs the whole workgroup.
#include <functional>

#include "compiler/kernel/codegen/emitter.h"
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
Value* Emitter::Combine(AtomicOp op, Value* old, Value* value) {
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
Value* Emitter::ActiveOrNeutral(AtomicOp op, Value* vector) {
    if (!mask_) {
        return vector;
    }
    llvm::Type* type = vector->getType()->getScalarType();
    if (OnFloats(op)) {
        llvm::Constant* nan = type->isIntegerTy() ? llvm::ConstantInt::get(type, kHalfNan)
                                                  : llvm::ConstantFP::getNaN(type);
        return builder_.CreateSelect(mask_, vector, Splat(nan));
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
    return builder_.CreateSelect(mask_, vector, Splat(llvm::ConstantInt::get(type, neutral)));
}

// All active lanes' values as one operand of the operation.
Value* Emitter::ReduceLanes(AtomicOp op, ir::ValueId value) {
    const bool adds = op == AtomicOp::kAdd || op == AtomicOp::kSub;
    if (shapes_.shape(value).uniform() && op != AtomicOp::kXor) {
        Value* scalar = Raw(value);
        if (!adds) {
            return scalar;
        }
        Value* active = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, MaskBits(Mask()));
        return builder_.CreateMul(scalar, builder_.CreateZExtOrTrunc(active, scalar->getType()));
    }
    Value* vector = ActiveOrNeutral(op, Vector(value));
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
    for (uint32_t half = lanes_ / 2; half > 0; half /= 2) {
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
Value* Emitter::LoopUntilExchanged(Value* address,
                                   llvm::Type* type,
                                   llvm::function_ref<Value*(Value*)> update) {
    const auto bytes = type->getPrimitiveSizeInBits() / 8;
    llvm::Type* bits = builder_.getIntNTy(static_cast<unsigned>(bytes * 8));
    const auto order = llvm::AtomicOrdering::SequentiallyConsistent;
    Value* first = builder_.CreateAlignedLoad(bits, address, llvm::Align(bytes));
    BasicBlock* before = builder_.GetInsertBlock();
    BasicBlock* loop = NewBlock("exchange");
    BasicBlock* end = NewBlock("exchanged");
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    auto* expected = builder_.CreatePHI(bits, 2);
    expected->addIncoming(first, before);
    Value* updated = update(builder_.CreateBitCast(expected, type));
    Value* pair = builder_.CreateAtomicCmpXchg(
        address, expected, builder_.CreateBitCast(updated, bits), llvm::Align(bytes), order, order);
    expected->addIncoming(builder_.CreateExtractValue(pair, 0), builder_.GetInsertBlock());
    EmitMaybe(builder_.CreateExtractValue(pair, 1), end, loop, true);
    builder_.SetInsertPoint(end);
    return builder_.CreateBitCast(expected, type);
}

Value* Emitter::AtomicOnScalar(const AtomicPlace& place,
                               Value* offset,
                               Value* value,
                               Value* comparand) {
    llvm::Type* type = value->getType();
    if (place.region.bounds == Bounds::kClamped) {
        offset = ClampScalar(place.region, offset, place.bytes);
    }
    Value* address = ByteAddress(place.region, offset);
    const llvm::Align align(place.bytes);
    if (place.shared) {
        Value* old =
            Annotate(place.region, builder_.CreateAlignedLoad(type, address, llvm::Align(1)));
        Value* updated =
            place.op == AtomicOp::kCompareExchange
                ? builder_.CreateSelect(builder_.CreateICmpEQ(old, comparand), value, old)
                : Combine(place.op, old, value);
        Annotate(place.region, builder_.CreateAlignedStore(updated, address, llvm::Align(1)));
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
void Emitter::AtomicOnUniform(const ir::Instruction& inst,
                              const AtomicPlace& place,
                              Value* offset,
                              ir::ValueId value_id) {
    recorder_.Form(lanes_ == 1 ? AccessForm::kScalar : AccessForm::kReduced, AccessCheck::kScalar);
    ir::ValueId result = inst.results[0];
    auto guarded = [&](auto&& body) -> Value* {
        // Robust: nothing happens outside the range, and the result is zero.
        if (place.region.bounds != Bounds::kChecked) {
            return body();
        }
        BasicBlock* inside = NewBlock("atomic");
        BasicBlock* end = NewBlock("atomic_end");
        BasicBlock* before = builder_.GetInsertBlock();
        EmitMaybe(InBounds(place.region, offset, place.bytes), inside, end, true);
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
    if (lanes_ == 1) {
        Value* comparand =
            place.op == AtomicOp::kCompareExchange ? Raw(inst.operands.back()) : nullptr;
        Set(result,
            guarded([&] { return AtomicOnScalar(place, offset, Raw(value_id), comparand); }));
        return;
    }
    if (uses_[result.index] == 0) {
        guarded([&] {
            return AtomicOnScalar(place, offset, ReduceLanes(place.op, value_id), nullptr);
        });
        Set(result, llvm::Constant::getNullValue(RawType(result)));
        return;
    }
    // What the lanes before each have together done, by doubling the distance.
    const bool subtracts = place.op == AtomicOp::kSub;
    const AtomicOp op = subtracts ? AtomicOp::kAdd : place.op;
    Value* sums = ActiveOrNeutral(op, Vector(value_id));
    auto shifted = [&](Value* vector, Value* filler, uint32_t distance) {
        llvm::SmallVector<int, 64> pick;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            pick.push_back(static_cast<int>(lane < distance ? lanes_ + lane : lane - distance));
        }
        return builder_.CreateShuffleVector(vector, filler, pick);
    };
    for (uint32_t distance = 1; distance < lanes_; distance *= 2) {
        // Lanes that have none so far before them keep what they have.
        llvm::SmallVector<int, 64> keep;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            keep.push_back(static_cast<int>(lane < distance ? lane : lanes_ + lane));
        }
        Value* both = Combine(op, shifted(sums, sums, distance), sums);
        sums = builder_.CreateShuffleVector(sums, both, keep);
    }
    Value* total = builder_.CreateExtractElement(sums, uint64_t{lanes_ - 1});
    Value* old = guarded([&] { return AtomicOnScalar(place, offset, total, nullptr); });
    // A lane sees the old value with the lanes before it: the first one sees it as it was.
    Value* olds = Splat(old);
    Value* seen = subtracts ? builder_.CreateSub(olds, sums) : Combine(op, olds, sums);
    Value* results = shifted(seen, olds, 1);
    if (place.region.bounds == Bounds::kChecked) {
        Value* inside = Splat(InBounds(place.region, offset, place.bytes));
        results = builder_.CreateSelect(inside, results,
                                        llvm::Constant::getNullValue(results->getType()));
    }
    Set(result, results);
}

void Emitter::AtomicByLane(const ir::Instruction& inst,
                           const AtomicPlace& at,
                           Value* offsets,
                           ir::ValueId value_id,
                           ir::ValueId comparand_id) {
    recorder_.Form(AccessForm::kLaneLoop, AccessCheck::kLanes);
    ir::ValueId result = inst.results[0];
    llvm::Type* type = ScalarType(context_, kernel_.type(result));
    AtomicPlace place = at;
    Value* mask = Mask();
    if (place.region.lane_bases) {
        offsets = LaneAddresses(place.region, offsets, place.bytes, 0, mask);
        place.region.is_global = true;
    } else if (place.region.bounds == Bounds::kChecked) {
        mask = builder_.CreateAnd(mask, LanesInBounds(place.region, offsets, place.bytes));
    } else if (place.region.bounds == Bounds::kClamped) {
        offsets = ClampScalar(place.region, offsets, place.bytes);
    }
    place.region.bounds = Bounds::kTrusted;
    const LaneArray places = SpillLanes(offsets);
    // A value of the lane, or the one that all have.
    auto by_lane = [&](ir::ValueId id) -> std::function<Value*(Value*)> {
        if (!id.valid()) {
            return [](Value*) -> Value* { return nullptr; };
        }
        if (shapes_.shape(id).uniform()) {
            Value* scalar = Raw(id);
            return [scalar](Value*) { return scalar; };
        }
        const LaneArray array = SpillLanes(Vector(id));
        return [this, array](Value* lane) { return LoadLane(array, lane); };
    };
    const auto values = by_lane(value_id);
    const auto comparands = by_lane(comparand_id);
    const bool used = uses_[result.index] != 0;
    LaneArray olds;
    if (used) {
        olds = SpillLanes(llvm::Constant::getNullValue(VectorOf(type)));
    }
    EmitLaneLoop(mask, [&](Value* lane) {
        Value* old = AtomicOnScalar(place, LoadLane(places, lane), values(lane), comparands(lane));
        if (used) {
            StoreLane(olds, lane, old);
        }
    });
    Value* seen = llvm::Constant::getNullValue(VectorOf(type));
    if (used) {
        seen = builder_.CreateLoad(VectorOf(type), olds.slot);
    }
    Set(result, seen);
}

void Emitter::EmitAtomic(const ir::Instruction& inst) {
    const size_t first = inst.op == Op::kAtomicBuffer ? 1 : 0;
    const ir::ValueId offset_id = inst.operands[first];
    const ir::ValueId value_id = inst.operands[first + 1];
    AtomicPlace place;
    place.op = static_cast<AtomicOp>(inst.imm);
    place.shared = inst.op == Op::kAtomicShared;
    place.region = place.shared                   ? SharedRegion(inst)
                   : inst.op == Op::kAtomicGlobal ? GlobalRegion(inst)
                                                  : BufferRegion(inst, inst.operands[0]);
    place.region.is_volatile = true;
    ir::ValueId result = inst.results[0];
    place.bytes = ir::ByteSize(kernel_.type(result));

    // An aligned element is read and written whole on the host, in the order of the program as far
    // as acquire and release ask for it, so atomic loads and stores are plain ones that the
    // compiler may not move.
    if (place.op == AtomicOp::kLoad) {
        EmitLoad(inst, place.region, offset_id);
        return;
    }
    if (place.op == AtomicOp::kStore) {
        EmitStore(place.region, offset_id, {&value_id, 1});
        Set(result, llvm::Constant::getNullValue(RawType(result)));
        return;
    }
    Offset offset = OffsetOf(offset_id);
    const bool uniform = offset.shape->uniform() && !place.region.lane_bases;
    if (lanes_ == 1 || (uniform && Associative(place.op))) {
        AtomicOnUniform(inst, place, offset.scalar, value_id);
        return;
    }
    const bool compares = place.op == AtomicOp::kCompareExchange;
    AtomicByLane(inst, place, Vector(offset_id), value_id,
                 compares ? inst.operands[first + 2] : ir::ValueId{});
}

}  // namespace fornax::kernel
