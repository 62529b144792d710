// Memory selection for offsets that shapes do not follow: index arithmetic with divisions by sizes
// that are known at run time only, as in kernels for tensors of any rank and order, or with shifts
// of sums whose low bits nobody knows, as in kernels for weights in blocks. Most of the time the
// lanes lie as if all of that came out even. One comparison tells, and then the access is that of a
// pattern; otherwise each lane goes by its own offset.
#include <algorithm>
#include <utility>

#include "compiler/kernel/analysis/guessed_offsets.h"
#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

constexpr uint64_t kGapBytes = 64;
constexpr uint32_t kMaxRuns = 8;

}  // namespace

// A pattern that the lanes' offsets probably have, and that would be worth having.
std::optional<Shape> Emitter::GuessPattern(ir::ValueId offset,
                                           llvm::Type* type,
                                           size_t count,
                                           bool store) {
    if (compact_)
        return {};
    std::optional<std::vector<int64_t>> offsets = GuessLaneOffsets(kernel_, shapes_.get(), offset);
    if (!offsets)
        return {};
    Shape shape;
    shape.kind = Shape::Kind::kPattern;
    shape.offsets = std::move(*offsets);
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    const auto layout = MakeLaneLayout(shape, element, count, store ? 0 : kGapBytes);
    if (!layout || layout->num_runs > kMaxRuns ||
        !(store ? WorthStoringRuns(*layout, lanes_, count)
                : WorthLoadingRuns(*layout, lanes_, count)))
        return {};
    return shape;
}

// The base of `pattern` if the offsets have it.
Value* Emitter::GuessedBase(const Shape& pattern, Value* offsets) {
    const auto lowest = static_cast<uint64_t>(
        std::find(pattern.offsets.begin(), pattern.offsets.end(), 0) - pattern.offsets.begin());
    return builder_.CreateExtractElement(offsets, lowest);
}

// All lanes are there, their offsets have the pattern, none wraps, and all of it lies inside.
// `bytes`: what a lane touches.
Value* Emitter::HavePattern(const MemoryRegion& region,
                            const Shape& pattern,
                            Value* offsets,
                            uint64_t bytes) {
    llvm::Type* type = offsets->getType()->getScalarType();
    Value* base = GuessedBase(pattern, offsets);
    Value* wanted = builder_.CreateAdd(Splat(base), LaneConstants(type, pattern.offsets));
    Value* same = builder_.CreateICmpEQ(offsets, wanted);
    if (mask_)
        same = builder_.CreateAnd(same, mask_);
    Value* bits = MaskBits(same);
    Value* all = builder_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
    const int64_t farthest = *std::max_element(pattern.offsets.begin(), pattern.offsets.end());
    const uint64_t span = static_cast<uint64_t>(farthest) + bytes;
    const uint64_t highest = llvm::maxUIntN(type->getIntegerBitWidth()) - span;
    all = builder_.CreateAnd(all,
                             builder_.CreateICmpULE(base, llvm::ConstantInt::get(type, highest)));
    if (region.bounds != Bounds::kTrusted)
        all = builder_.CreateAnd(all, InBounds(region, base, span));
    return all;
}

// An access for which the test has said yes.
void Emitter::AsGuessed(const MemoryRegion& region,
                        const Shape& pattern,
                        Value* offsets,
                        llvm::function_ref<void(const MemoryRegion&, Offset&)> access) {
    MemoryRegion inside = region;
    inside.bounds = Bounds::kTrusted;
    Offset offset;
    offset.shape = &pattern;
    offset.scalar = GuessedBase(pattern, offsets);
    offset.vector = offsets;
    Value* mask = std::exchange(mask_, nullptr);
    access(inside, offset);
    mask_ = mask;
}

bool Emitter::LoadGuessed(const MemoryRegion& region,
                          ir::ValueId offset_id,
                          llvm::Type* type,
                          size_t count,
                          Value* offsets,
                          Values& results) {
    const std::optional<Shape> pattern = GuessPattern(offset_id, type, count, false);
    if (!pattern)
        return false;
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8 * count;
    recorder_.Form(AccessForm::kGuessed, AccessCheck::kSpan, 0);
    results = EitherWay(
        HavePattern(region, *pattern, offsets, bytes), "load_guessed",
        [&] {
            Values values;
            Value* packed = nullptr;
            AsGuessed(region, *pattern, offsets, [&](const MemoryRegion& inside, Offset& offset) {
                if (!LoadPattern(inside, offset, type, count, offsets, values, packed))
                    values = Gather(inside, offsets, type, count);
            });
            return values;
        },
        [&] { return Gather(region, offsets, type, count); });
    return true;
}

bool Emitter::StoreGuessed(const MemoryRegion& region,
                           ir::ValueId offset_id,
                           Value* offsets,
                           llvm::ArrayRef<Value*> values) {
    llvm::Type* type = values[0]->getType()->getScalarType();
    const std::optional<Shape> pattern = GuessPattern(offset_id, type, values.size(), true);
    if (!pattern)
        return false;
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8 * values.size();
    recorder_.Form(AccessForm::kGuessed, AccessCheck::kSpan, 0);
    EitherWay(
        HavePattern(region, *pattern, offsets, bytes), "store_guessed",
        [&] {
            AsGuessed(region, *pattern, offsets, [&](const MemoryRegion& inside, Offset& offset) {
                if (!StorePattern(inside, offset, values, offsets, nullptr))
                    Scatter(inside, offsets, values);
            });
            return Values();
        },
        [&] {
            Scatter(region, offsets, values);
            return Values();
        });
    return true;
}

}  // namespace fornax::kernel
