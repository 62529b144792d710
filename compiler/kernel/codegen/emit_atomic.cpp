// Atomics. One address for all lanes and no use of the old value: reduce over the lanes, then one
// locked operation. Anything else: a loop over the active lanes. Workgroup memory needs no lock,
// because one worker runs the whole workgroup.
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::AtomicOp;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

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

Value* PlainUpdate(llvm::IRBuilder<>& builder, AtomicOp op, Value* old, Value* value) {
    switch (op) {
        case AtomicOp::kAdd:
            return builder.CreateAdd(old, value);
        case AtomicOp::kSub:
            return builder.CreateSub(old, value);
        case AtomicOp::kUMin:
            return builder.CreateBinaryIntrinsic(llvm::Intrinsic::umin, old, value);
        case AtomicOp::kUMax:
            return builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, old, value);
        case AtomicOp::kSMin:
            return builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, old, value);
        case AtomicOp::kSMax:
            return builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, old, value);
        case AtomicOp::kAnd:
            return builder.CreateAnd(old, value);
        case AtomicOp::kOr:
            return builder.CreateOr(old, value);
        case AtomicOp::kXor:
            return builder.CreateXor(old, value);
        default:
            return value;
    }
}

bool Reducible(AtomicOp op) {
    return op >= AtomicOp::kAdd && op <= AtomicOp::kXor;
}

}  // namespace

Value* Emitter::Reduce(AtomicOp op, Value* vector) {
    llvm::Type* type = vector->getType()->getScalarType();
    const uint32_t bits = type->getIntegerBitWidth();
    llvm::APInt neutral(bits, 0);
    if (op == AtomicOp::kUMin || op == AtomicOp::kAnd)
        neutral = llvm::APInt::getAllOnes(bits);
    else if (op == AtomicOp::kSMin)
        neutral = llvm::APInt::getSignedMaxValue(bits);
    else if (op == AtomicOp::kSMax)
        neutral = llvm::APInt::getSignedMinValue(bits);
    if (mask_)
        vector = builder_.CreateSelect(mask_, vector, Splat(llvm::ConstantInt::get(type, neutral)));
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
        default:
            return builder_.CreateXorReduce(vector);
    }
}

Value* Emitter::AtomicOnScalar(const ir::Instruction& inst,
                               const MemoryRegion& region,
                               Value* offset,
                               Value* value,
                               Value* comparand,
                               bool shared) {
    auto op = static_cast<AtomicOp>(inst.imm);
    llvm::Type* type = value->getType();
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8;
    if (region.bounds == MemoryRegion::Bounds::kClamped)
        offset = ClampScalar(region, offset, bytes);
    Value* address = ByteAddress(region, offset);
    llvm::Align align(bytes);
    if (shared) {
        Value* old = Annotate(region, builder_.CreateAlignedLoad(type, address, llvm::Align(1)));
        Value* updated =
            op == AtomicOp::kCompareExchange
                ? builder_.CreateSelect(builder_.CreateICmpEQ(old, comparand), value, old)
                : PlainUpdate(builder_, op, old, value);
        Annotate(region, builder_.CreateAlignedStore(updated, address, llvm::Align(1)));
        return old;
    }
    if (op == AtomicOp::kCompareExchange) {
        Value* pair = builder_.CreateAtomicCmpXchg(address, comparand, value, align,
                                                   llvm::AtomicOrdering::SequentiallyConsistent,
                                                   llvm::AtomicOrdering::SequentiallyConsistent);
        return builder_.CreateExtractValue(pair, 0);
    }
    return builder_.CreateAtomicRMW(RmwOp(op), address, value, align,
                                    llvm::AtomicOrdering::SequentiallyConsistent);
}

void Emitter::EmitAtomic(const ir::Instruction& inst) {
    const bool shared = inst.op == Op::kAtomicShared;
    const size_t first = shared ? 0 : 1;
    auto op = static_cast<AtomicOp>(inst.imm);
    ir::ValueId offset_id = inst.operands[first];
    ir::ValueId value_id = inst.operands[first + 1];
    MemoryRegion region = shared ? SharedRegion(inst) : BufferRegion(inst, inst.operands[0]);
    region.is_volatile = true;
    ir::ValueId result = inst.results[0];
    llvm::Type* type = ScalarType(context_, kernel_.type(result));
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8;

    // An aligned element is read and written whole on the host, so atomic loads and stores are
    // plain ones that the compiler may not move.
    if (op == AtomicOp::kLoad) {
        EmitLoad(inst, region, offset_id);
        return;
    }
    if (op == AtomicOp::kStore) {
        EmitStore(region, offset_id, {&value_id, 1});
        Set(result, llvm::Constant::getNullValue(RawType(result)));
        return;
    }

    auto guarded = [&](Value* offset, auto&& body) -> Value* {
        // Robust: nothing happens outside the range, and the result is zero.
        if (region.bounds != MemoryRegion::Bounds::kChecked)
            return body();
        BasicBlock* inside = NewBlock("atomic");
        BasicBlock* end = NewBlock("atomic_end");
        BasicBlock* before = builder_.GetInsertBlock();
        EmitMaybe(InBounds(region, offset, bytes), inside, end, true);
        builder_.SetInsertPoint(inside);
        Value* old = body();
        BasicBlock* from = builder_.GetInsertBlock();
        builder_.CreateBr(end);
        builder_.SetInsertPoint(end);
        auto* phi = builder_.CreatePHI(type, 2);
        phi->addIncoming(old, from);
        phi->addIncoming(llvm::Constant::getNullValue(type), before);
        return phi;
    };

    Offset offset = OffsetOf(offset_id);
    const bool uniform = offset.shape->uniform() || lanes_ == 1;
    if (lanes_ == 1) {
        Value* comparand =
            op == AtomicOp::kCompareExchange ? Raw(inst.operands[first + 2]) : nullptr;
        Set(result, guarded(offset.scalar, [&] {
                return AtomicOnScalar(inst, region, offset.scalar, Raw(value_id), comparand,
                                      shared);
            }));
        return;
    }
    if (uniform && uses_[result.index] == 0 && Reducible(op)) {
        guarded(offset.scalar, [&]() -> Value* {
            Value* reduced = Reduce(op, Vector(value_id));
            return AtomicOnScalar(inst, region, offset.scalar, reduced, nullptr, shared);
        });
        Set(result, llvm::Constant::getNullValue(RawType(result)));
        return;
    }

    Value* offsets = OffsetVector(offset_id, offset);
    Value* values = Vector(value_id);
    Value* comparands =
        op == AtomicOp::kCompareExchange ? Vector(inst.operands[first + 2]) : nullptr;
    Value* mask = Mask();
    if (region.bounds == MemoryRegion::Bounds::kChecked)
        mask = builder_.CreateAnd(mask, LanesInBounds(region, offsets, bytes));
    llvm::Type* bits_type = builder_.getIntNTy(lanes_);
    Value* bits = MaskBits(mask);
    BasicBlock* before = builder_.GetInsertBlock();
    BasicBlock* loop = NewBlock("atomic_lane");
    BasicBlock* end = NewBlock("atomic_end");
    Value* none = llvm::ConstantInt::get(bits_type, 0);
    Value* zeros = llvm::Constant::getNullValue(VectorOf(type));
    builder_.CreateCondBr(builder_.CreateICmpNE(bits, none), loop, end);
    builder_.SetInsertPoint(loop);
    auto* remaining = builder_.CreatePHI(bits_type, 2);
    auto* olds = builder_.CreatePHI(VectorOf(type), 2);
    remaining->addIncoming(bits, before);
    olds->addIncoming(zeros, before);
    Value* lane =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, remaining, builder_.getTrue());
    lane = builder_.CreateZExtOrTrunc(lane, builder_.getInt64Ty());
    MemoryRegion inside = region;
    if (inside.bounds == MemoryRegion::Bounds::kChecked)
        inside.bounds = MemoryRegion::Bounds::kTrusted;
    Value* old = AtomicOnScalar(
        inst, inside, builder_.CreateExtractElement(offsets, lane),
        builder_.CreateExtractElement(values, lane),
        comparands ? builder_.CreateExtractElement(comparands, lane) : nullptr, shared);
    Value* next_olds = builder_.CreateInsertElement(olds, old, lane);
    Value* next = builder_.CreateAnd(
        remaining, builder_.CreateSub(remaining, llvm::ConstantInt::get(bits_type, 1)));
    BasicBlock* last = builder_.GetInsertBlock();
    remaining->addIncoming(next, last);
    olds->addIncoming(next_olds, last);
    builder_.CreateCondBr(builder_.CreateICmpNE(next, none), loop, end);
    builder_.SetInsertPoint(end);
    auto* final_olds = builder_.CreatePHI(VectorOf(type), 2);
    final_olds->addIncoming(zeros, before);
    final_olds->addIncoming(next_olds, last);
    Set(result, final_olds);
}

}  // namespace fornax::kernel
