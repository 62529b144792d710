// Memory selection for offsets that shapes do not follow: index arithmetic with divisions by sizes
// that are known at run time only, as in kernels for tensors of any rank and order. Most of the
// time neighbouring lanes touch neighbouring elements all the same. One comparison tells, and then
// the access is a vector's; otherwise each lane goes by its own offset.
#include <utility>

#include "compiler/kernel/analysis/neighbours.h"
#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

Shape PatternOfNeighbours(uint32_t lanes, uint64_t bytes) {
    Shape shape;
    shape.kind = Shape::Kind::kPattern;
    for (uint32_t lane = 0; lane < lanes; ++lane)
        shape.offsets.push_back(static_cast<int64_t>(lane * bytes));
    return shape;
}

uint64_t BytesOf(const llvm::Type* scalar, size_t count) {
    return scalar->getPrimitiveSizeInBits() / 8 * count;
}

// What is left to know once the test has said yes.
MemoryRegion Inside(const MemoryRegion& region) {
    MemoryRegion inside = region;
    inside.bounds = Bounds::kTrusted;
    return inside;
}

}  // namespace

// All lanes are there, each one's offset is `bytes` behind that of the lane before, none wraps, and
// all of it lies inside.
Value* Emitter::AreNeighbours(const MemoryRegion& region, Value* offsets, uint64_t bytes) {
    llvm::Type* type = offsets->getType()->getScalarType();
    Value* first = builder_.CreateExtractElement(offsets, uint64_t{0});
    const Shape shape = PatternOfNeighbours(lanes_, bytes);
    Value* wanted = builder_.CreateAdd(Splat(first), LaneConstants(type, shape.offsets));
    Value* same = builder_.CreateICmpEQ(offsets, wanted);
    if (mask_)
        same = builder_.CreateAnd(same, mask_);
    Value* bits = MaskBits(same);
    Value* all = builder_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
    const uint64_t highest = llvm::maxUIntN(type->getIntegerBitWidth()) - lanes_ * bytes;
    all = builder_.CreateAnd(all,
                             builder_.CreateICmpULE(first, llvm::ConstantInt::get(type, highest)));
    if (region.bounds != Bounds::kTrusted)
        all = builder_.CreateAnd(all, InBounds(region, first, lanes_ * bytes));
    return all;
}

bool Emitter::LoadNeighbours(const MemoryRegion& region,
                             ir::ValueId offset_id,
                             llvm::Type* type,
                             size_t count,
                             Value* offsets,
                             Values& results) {
    const uint64_t bytes = BytesOf(type, count);
    if (compact_ || !MayBeNeighbours(kernel_, shapes_.get(), offset_id, bytes))
        return false;
    recorder_.Form(AccessForm::kIfContiguous, AccessCheck::kSpan, 0);
    BasicBlock* together = NewBlock("load_neighbours");
    BasicBlock* apart = NewBlock("load_apart");
    BasicBlock* end = NewBlock("load_end");
    EmitMaybe(AreNeighbours(region, offsets, bytes), together, apart, true);
    builder_.SetInsertPoint(together);
    const Shape shape = PatternOfNeighbours(lanes_, bytes);
    Offset offset;
    offset.shape = &shape;
    offset.scalar = builder_.CreateExtractElement(offsets, uint64_t{0});
    offset.vector = offsets;
    Values inside;
    Value* packed = nullptr;
    Value* mask = std::exchange(mask_, nullptr);
    if (!LoadPattern(Inside(region), offset, type, count, offsets, inside, packed))
        inside = Gather(Inside(region), offsets, type, count);
    mask_ = mask;
    BasicBlock* together_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(apart);
    Values each = Gather(region, offsets, type, count);
    BasicBlock* apart_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    for (size_t i = 0; i < count; ++i) {
        auto* phi = builder_.CreatePHI(inside[i]->getType(), 2);
        phi->addIncoming(inside[i], together_end);
        phi->addIncoming(each[i], apart_end);
        results.push_back(phi);
    }
    return true;
}

bool Emitter::StoreNeighbours(const MemoryRegion& region,
                              ir::ValueId offset_id,
                              Value* offsets,
                              llvm::ArrayRef<Value*> values) {
    const uint64_t bytes = BytesOf(values[0]->getType()->getScalarType(), values.size());
    if (compact_ || !MayBeNeighbours(kernel_, shapes_.get(), offset_id, bytes))
        return false;
    recorder_.Form(AccessForm::kIfContiguous, AccessCheck::kSpan, 0);
    BasicBlock* together = NewBlock("store_neighbours");
    BasicBlock* apart = NewBlock("store_apart");
    BasicBlock* end = NewBlock("store_end");
    EmitMaybe(AreNeighbours(region, offsets, bytes), together, apart, true);
    builder_.SetInsertPoint(together);
    const Shape shape = PatternOfNeighbours(lanes_, bytes);
    Offset offset;
    offset.shape = &shape;
    offset.scalar = builder_.CreateExtractElement(offsets, uint64_t{0});
    offset.vector = offsets;
    Value* mask = std::exchange(mask_, nullptr);
    if (!StorePattern(Inside(region), offset, values, offsets, nullptr))
        Scatter(Inside(region), offsets, values);
    mask_ = mask;
    builder_.CreateBr(end);
    builder_.SetInsertPoint(apart);
    Scatter(region, offsets, values);
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    return true;
}

}  // namespace fornax::kernel
