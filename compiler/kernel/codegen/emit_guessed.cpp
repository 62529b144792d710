// Memory selection for offsets that shapes do not follow: index arithmetic with divisions by sizes
// that are known at run time only, as in kernels for tensors of any rank and order, or with shifts
// of sums whose low bits nobody knows, as in kernels for weights in blocks. Most of the time the
// lanes lie as if all of that came out even. One comparison tells, and then the access is that of a
// pattern; otherwise each lane goes by its own offset.
#include <algorithm>
#include <utility>

#include "compiler/kernel/analysis/access_limits.h"
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/guess_check.h"

namespace fornax::kernel {

using llvm::Value;
using Bounds = MemoryRegion::Bounds;

// A pattern that the lanes' offsets probably have, and that would be worth having.
std::optional<GuessedPattern> Emitter::GuessPattern(ir::ValueId offset,
                                                    llvm::Type* type,
                                                    size_t count,
                                                    bool store) {
    if (compact_ || lanes_ == 1 || shapes_.shape(offset).uniform()) {
        return {};
    }
    GuessedPattern pattern{.guesses = LaneGuesses(kernel_, shapes_.get())};
    const LaneGuesses::Guess guess = pattern.guesses.Of(offset);
    if (!guess || pattern.guesses.IsSame(offset)) {
        return {};
    }
    if (guess->HasRows() && kernel_.type(offset) != ir::Type::kI32) {
        return {};
    }
    pattern.lowest = *std::ranges::min_element(guess->offsets);
    pattern.shape.kind = guess->HasRows() ? Shape::Kind::kRows : Shape::Kind::kPattern;
    pattern.shape.rows = guess->rows;
    for (int64_t lane : guess->offsets) {
        pattern.shape.offsets.push_back(lane - pattern.lowest);
    }
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    const auto layout = MakeLaneLayout(pattern.shape, element, count, store ? 0 : kRunGapBytes);
    if (!layout || layout->num_runs > kMaxAssumedRuns ||
        !(store ? WorthStoringRuns(*layout, lanes_, count)
                : WorthLoadingRuns(*layout, lanes_, count))) {
        return {};
    }
    return pattern;
}

// All lanes are there, their offsets have the pattern, none wraps, and all of it lies inside.
// `bytes`: what a lane touches.
Value* Emitter::HavePattern(const MemoryRegion& region,
                            GuessedPattern& pattern,
                            ir::ValueId offset,
                            uint64_t bytes) {
    const auto is_here = [&](ir::ValueId value) {
        const Held& held = held_[value.index];
        return (held.raw != nullptr || held.late) && (held.epoch == epoch_ || held.epoch == 0);
    };
    const auto scalar = [&](ir::ValueId value) { return Raw(value); };
    const auto vector = [&](ir::ValueId value) { return Vector(value); };
    GuessCheck check(kernel_, shapes_.get(), pattern.guesses, builder_, {is_here, scalar, vector});
    Value* base = check.Base(offset);
    pattern.stride = check.Stride(offset);
    llvm::Type* type = base->getType();
    pattern.base = builder_.CreateAdd(base, llvm::ConstantInt::getSigned(type, pattern.lowest));
    Value* all = check.Holds();
    if (mask_) {
        all = builder_.CreateAnd(all, AllActive());
    }
    const int64_t farthest = *std::ranges::max_element(pattern.shape.offsets);
    const uint64_t span = static_cast<uint64_t>(farthest) + bytes;
    const uint64_t highest = llvm::maxUIntN(type->getIntegerBitWidth()) - span;
    if (pattern.stride) {
        // The last row's end, in 64 bits.
        const int64_t rows = *std::ranges::max_element(pattern.shape.rows);
        llvm::Type* i64 = builder_.getInt64Ty();
        Value* last = builder_.CreateMul(builder_.CreateZExt(pattern.stride, i64),
                                         llvm::ConstantInt::getSigned(i64, rows));
        last = builder_.CreateAdd(last, builder_.CreateZExt(pattern.base, i64));
        all = builder_.CreateAnd(all, builder_.CreateICmpULE(last, builder_.getInt64(highest)));
        if (region.bounds != Bounds::kTrusted) {
            all = builder_.CreateAnd(all, InBounds(region, last, span));
        }
        return all;
    }
    all = builder_.CreateAnd(
        all, builder_.CreateICmpULE(pattern.base, llvm::ConstantInt::get(type, highest)));
    if (region.bounds != Bounds::kTrusted) {
        all = builder_.CreateAnd(all, InBounds(region, pattern.base, span));
    }
    return all;
}

// An access for which the test has said yes.
void Emitter::AsGuessed(const MemoryRegion& region,
                        const GuessedPattern& pattern,
                        llvm::function_ref<void(const MemoryRegion&, Offset&)> access) {
    MemoryRegion inside = region;
    inside.bounds = Bounds::kTrusted;
    Offset offset{.shape = &pattern.shape, .scalar = pattern.base, .stride = pattern.stride};
    Value* mask = std::exchange(mask_, nullptr);
    access(inside, offset);
    mask_ = mask;
}

// Each workgroup loads what the one before did not, and its lanes take most of the bytes that they
// span: rows of weights, for instance. A row may end before the processor has seen that it is one.
bool Emitter::IsStreamed(const GuessedPattern& pattern, ir::ValueId offset, uint64_t bytes) const {
    const bool between_barriers = std::ranges::any_of(constructs_, [&](const Construct& around) {
        return around.workgroup_level && kernel_.inst(around.inst).op == ir::Op::kLoop;
    });
    if (between_barriers || pattern.shape.has_rows() || !steps_.Differs(offset)) {
        return false;
    }
    std::vector<int64_t> firsts = pattern.shape.offsets;
    std::ranges::sort(firsts);
    uint64_t taken = bytes;
    for (size_t i = 0; i + 1 < firsts.size(); ++i) {
        taken += std::min(bytes, static_cast<uint64_t>(firsts[i + 1] - firsts[i]));
    }
    return 2 * taken > static_cast<uint64_t>(firsts.back()) + bytes;
}

bool Emitter::LoadGuessed(const MemoryRegion& region,
                          ir::ValueId offset_id,
                          llvm::Type* type,
                          size_t count,
                          Values& results,
                          Value*& packed) {
    std::optional<GuessedPattern> pattern = GuessPattern(offset_id, type, count, false);
    if (!pattern) {
        return false;
    }
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8 * count;
    const auto offsets = [&] { return Vector(offset_id); };
    recorder_.Form(AccessForm::kGuessed, AccessCheck::kSpan, 0);
    MemoryRegion streamed = region;
    if (IsStreamed(*pattern, offset_id, bytes)) {
        streamed.fetch_ahead = true;
        if (!streamed.fetch_distance) {
            streamed.fetch_distance = WorkgroupDistance(offset_id);
        }
    }
    Value* guessed = HavePattern(region, *pattern, offset_id, bytes);
    results = PackedEitherWay(
        guessed, "load_guessed",
        [&] {
            Values values;
            AsGuessed(streamed, *pattern, [&](const MemoryRegion& inside, Offset& offset) {
                if (!(offset.shape->has_rows()
                          ? LoadRuns(inside, offset, type, count, offsets, values, packed)
                          : LoadPattern(inside, offset, type, count, offsets, values, packed))) {
                    values = Gather(inside, offsets(), type, count);
                }
            });
            return values;
        },
        [&] { return Gather(region, offsets(), type, count); }, packed);
    return true;
}

bool Emitter::StoreGuessed(const MemoryRegion& region,
                           ir::ValueId offset_id,
                           llvm::ArrayRef<Value*> values) {
    llvm::Type* type = values[0]->getType()->getScalarType();
    std::optional<GuessedPattern> pattern = GuessPattern(offset_id, type, values.size(), true);
    if (!pattern) {
        return false;
    }
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8 * values.size();
    const auto offsets = [&] { return Vector(offset_id); };
    recorder_.Form(AccessForm::kGuessed, AccessCheck::kSpan, 0);
    Value* guessed = HavePattern(region, *pattern, offset_id, bytes);
    EitherWay(
        guessed, "store_guessed",
        [&] {
            AsGuessed(region, *pattern, [&](const MemoryRegion& inside, Offset& offset) {
                if (!(offset.shape->has_rows()
                          ? StoreRuns(inside, offset, values, offsets)
                          : StorePattern(inside, offset, values, offsets, nullptr))) {
                    Scatter(inside, offsets(), values);
                }
            });
            return Values();
        },
        [&] {
            Scatter(region, offsets(), values);
            return Values();
        });
    return true;
}

}  // namespace fornax::kernel
