// Memory selection for accesses whose lanes differ by compile-time constants and by multiples of
// one stride that is known at run time only, such as y * width + x. Lanes with the same multiple
// form a row; its elements are sorted into runs of neighbours (analysis/lane_layout.h), and each
// run is loaded as a whole and shuffled to its lanes, or shuffled together and stored as a whole.
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/access_limits.h"
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

// Rows farther apart than this many strides would let the test of their bounds overflow.
constexpr uint64_t kMaxRowDistance = uint64_t{1} << 30;
// Bytes; likewise. Only those of 64-bit offsets can be longer.
constexpr uint64_t kMaxWideStride = uint64_t{1} << 32;
constexpr int64_t kMaxRowOffset = int64_t{1} << 40;

// For the record. Of clamped regions only what is proven inside gets here.
AccessCheck CheckOf(const MemoryRegion& region, bool masked) {
    if (region.bounds == Bounds::kClamped) {
        return AccessCheck::kProven;
    }
    return region.bounds == Bounds::kChecked || masked ? AccessCheck::kSpan : AccessCheck::kNone;
}

// Rows that each start anywhere: all lanes are inside, and no row wraps between its lanes.
Value* GroupsInBounds(llvm::IRBuilder<>& builder,
                      const MemoryRegion& region,
                      const LaneLayout& layout,
                      uint64_t bytes,
                      Value* offsets) {
    uint64_t span = bytes;
    for (const LayoutRow& row : layout.rows) {
        span = std::max(span, row.span);
    }
    llvm::Type* type = offsets->getType()->getScalarType();
    const uint64_t highest = llvm::maxUIntN(type->getIntegerBitWidth()) - span;
    // A region of fewer bytes than a lane takes has no place for one: the difference is below 0.
    Value* last = builder.CreateSub(region.size, builder.getInt64(bytes));
    Value* any = builder.CreateICmpSGE(last, builder.getInt64(0));
    last = builder.CreateBinaryIntrinsic(llvm::Intrinsic::umin, last, builder.getInt64(highest));
    Value* limit = builder.CreateVectorSplat(layout.row.size(), builder.CreateTrunc(last, type));
    Value* inside = builder.CreateICmpULE(offsets, limit);
    return builder.CreateAnd(any, builder.CreateAndReduce(inside));
}

}  // namespace

bool Emitter::AddressRuns(const MemoryRegion& region,
                          const Offset& offset,
                          const LaneLayout& layout,
                          uint64_t bytes,
                          LaneOffsets offsets,
                          RunAddresses& addresses) {
    const Shape& shape = *offset.shape;
    llvm::Type* type = offset.scalar->getType();
    auto constant = [&](int64_t value) { return llvm::ConstantInt::getSigned(type, value); };
    const LayoutRow& low = layout.rows.front();
    const LayoutRow& high = layout.rows.back();
    const uint64_t distance = static_cast<uint64_t>(high.multiple - low.multiple);
    if (distance > kMaxRowDistance || shape.narrow_scale > kMaxRowDistance) {
        return false;
    }
    for (const LayoutRow& row : layout.rows) {
        Value* first = builder_.CreateAdd(offset.scalar, constant(row.lowest));
        if (row.multiple != 0) {
            first = builder_.CreateAdd(first, RowOffset(offset, row, type));
        }
        addresses.firsts.push_back(first);
    }
    Value* first = addresses.firsts[0];

    if (region.is_global) {
        // Memory is only known to be there for active lanes.
        addresses.in_bounds = mask_ ? AllActive() : nullptr;
        return true;
    }
    if (region.bounds == Bounds::kClamped) {
        return shape.max <= region.known_size && shape.max + bytes <= region.known_size &&
               invocations_ % lanes_ == 0;
    }
    if (region.bounds == Bounds::kTrusted && !mask_) {
        return true;
    }
    if (!shape.groups.empty()) {
        addresses.in_bounds = GroupsInBounds(builder_, region, layout, bytes, offsets());
        return true;
    }
    if (layout.rows.size() == 1) {
        addresses.in_bounds = InBounds(region, first, low.span);
        return true;
    }
    // One test for all rows, in 64 bits: from the first one, which did not wrap, to what lies above
    // all others.
    int64_t below = 0;
    int64_t above = 0;
    for (const LayoutRow& row : layout.rows) {
        below = std::min(below, row.lowest - low.lowest);
        above = std::max(above, row.lowest - low.lowest + static_cast<int64_t>(row.span));
    }
    if (below < -kMaxRowOffset || above > kMaxRowOffset) {
        return false;
    }
    llvm::Type* i64 = builder_.getInt64Ty();
    Value* start = builder_.CreateZExt(first, i64);
    Value* stride = Raw(shape.stride);
    const uint64_t scale = std::max<uint64_t>(shape.narrow_scale, 1);
    Value* last = builder_.CreateAdd(
        start,
        builder_.CreateMul(builder_.CreateZExt(stride, i64), builder_.getInt64(distance * scale)));
    Value* end = builder_.CreateAdd(last, llvm::ConstantInt::getSigned(i64, above));
    Value* size = region.size;
    if (type->isIntegerTy(32)) {
        size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size,
                                              builder_.getInt64(uint64_t{1} << 32));
    }
    addresses.in_bounds = builder_.CreateICmpULE(end, size);
    if (!type->isIntegerTy(32) || shape.narrow_scale != 0) {
        // Neither the first row nor the stride lets the sum overflow, nor a narrow multiple wrap.
        uint64_t longest = kMaxWideStride;
        if (shape.narrow_scale != 0) {
            const auto farthest = std::max(std::abs(low.multiple), std::abs(high.multiple));
            const uint64_t greatest =
                (uint64_t{1} << (stride->getType()->getIntegerBitWidth() - 1)) - 1;
            longest = greatest / static_cast<uint64_t>(farthest);
        }
        Value* starts = builder_.CreateICmpULE(start, size);
        Value* is_short =
            builder_.CreateICmpULE(stride, llvm::ConstantInt::get(stride->getType(), longest));
        addresses.in_bounds =
            builder_.CreateAnd(addresses.in_bounds, builder_.CreateAnd(starts, is_short));
    }
    if (below < 0) {
        Value* above_zero =
            builder_.CreateICmpUGE(start, llvm::ConstantInt::getSigned(i64, -below));
        addresses.in_bounds = builder_.CreateAnd(addresses.in_bounds, above_zero);
    }
    return true;
}

bool Emitter::LoadRuns(const MemoryRegion& region,
                       const Offset& offset,
                       llvm::Type* type,
                       size_t count,
                       LaneOffsets offsets,
                       Values& results,
                       Value*& packed) {
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    const std::optional<LaneLayout> layout =
        MakeLaneLayout(*offset.shape, element, count, kRunGapBytes);
    RunAddresses addresses;
    if (!layout || !WorthLoadingRuns(*layout, lanes_, count) ||
        !AddressRuns(region, offset, *layout, element * count, offsets, addresses)) {
        return false;
    }
    const llvm::Align align(element);

    auto load_runs = [&] {
        recorder_.Form(AccessForm::kStrided, CheckOf(region, mask_ != nullptr),
                       static_cast<uint32_t>(layout->rows.size()));
        Values parts;
        std::vector<llvm::SmallVector<int, 64>> pick(count, llvm::SmallVector<int, 64>(lanes_, -1));
        uint64_t loaded = 0;  // elements in the parts so far
        for (size_t r = 0; r < layout->rows.size(); ++r) {
            Value* address = ByteAddress(region, addresses.firsts[r]);
            for (const RowRun& run : layout->rows[r].runs) {
                // A run of any length is one load, or two of one type that overlap.
                const uint64_t part = std::bit_floor(run.count);
                auto* part_type = llvm::FixedVectorType::get(type, static_cast<unsigned>(part));
                auto load = [&](uint64_t first) {
                    Value* at = builder_.CreateConstGEP1_64(type, address, first);
                    parts.push_back(
                        Annotate(region, builder_.CreateAlignedLoad(part_type, at, align)));
                };
                load(run.first);
                if (part != run.count) {
                    load(run.first + run.count - part);
                }
                for (uint32_t lane = 0; lane < lanes_; ++lane) {
                    for (size_t i = 0; i < count && layout->row[lane] == r; ++i) {
                        uint64_t at = layout->first[lane] + i;
                        if (at < run.first || at >= run.first + run.count) {
                            continue;
                        }
                        at -= run.first;
                        if (at >= part) {
                            at = part + (at - (run.count - part));
                        }
                        pick[i][lane] = static_cast<int>(loaded + at);
                    }
                }
                loaded += part == run.count ? part : 2 * part;
            }
        }
        Values values;
        for (size_t i = 0; i < count; ++i) {
            values.push_back(Permute(parts, pick[i]));
        }
        bool in_order =
            PackableRun(count) && loaded == lanes_ * count && std::has_single_bit(parts.size()) &&
            std::ranges::all_of(
                parts, [&](const Value* part) { return part->getType() == parts[0]->getType(); });
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            for (size_t i = 0; i < count; ++i) {
                in_order = in_order && pick[i][lane] == static_cast<int>(lane * count + i);
            }
        }
        packed = in_order ? JoinAll(parts) : nullptr;
        return values;
    };

    if (!addresses.in_bounds) {
        results = load_runs();
        return true;
    }
    // All of it lies inside the buffer: nearly always. Otherwise some lanes are outside or
    // inactive; they may even lie below 0, where 32-bit offsets wrap, so each lane goes by its own
    // offset.
    results = PackedEitherWay(
        addresses.in_bounds, "load", load_runs,
        [&] { return Gather(region, offsets(), type, count); }, packed);
    return true;
}

bool Emitter::StoreRuns(const MemoryRegion& region,
                        const Offset& offset,
                        llvm::ArrayRef<Value*> values,
                        LaneOffsets offsets) {
    llvm::Type* type = values[0]->getType()->getScalarType();
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    const size_t count = values.size();
    if (element < 4 && !offset.shape->has_rows()) {
        return false;  // shuffles of bytes are dear, and a pattern's words are packed elsewhere
    }
    const std::optional<LaneLayout> layout = MakeLaneLayout(*offset.shape, element, count, 0);
    RunAddresses addresses;
    if (!layout || !WorthStoringRuns(*layout, lanes_, count) ||
        !AddressRuns(region, offset, *layout, element * count, offsets, addresses)) {
        return false;
    }
    const llvm::Align align(element);
    const unsigned width =
        std::max<unsigned>(1, vector_bits_ / (8 * static_cast<unsigned>(element)));

    // Element i of lane l is at i * lanes + l of the values. Each run starts where it does not
    // cross a register that it could fit into.
    struct Piece {
        size_t row;
        uint64_t first;     // element of the row
        size_t at;          // in `pick`
        unsigned elements;  // at most a register's
    };
    std::vector<Piece> pieces;
    llvm::SmallVector<int, 128> pick;
    std::vector<std::vector<int>> source(layout->rows.size());
    for (size_t r = 0; r < layout->rows.size(); ++r) {
        source[r].assign(layout->rows[r].span / element, -1);
    }
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
        for (size_t i = 0; i < count; ++i) {
            source[layout->row[lane]][layout->first[lane] + i] =
                static_cast<int>(i * lanes_ + lane);
        }
    }
    for (size_t r = 0; r < layout->rows.size(); ++r) {
        for (const RowRun& run : layout->rows[r].runs) {
            const size_t slot = std::min<size_t>(std::bit_ceil(run.count), width);
            pick.resize((pick.size() + slot - 1) / slot * slot, -1);
            for (uint64_t i = 0; i < run.count; i += width) {
                pieces.push_back({r, run.first + i, pick.size() + i,
                                  static_cast<unsigned>(std::min<uint64_t>(width, run.count - i))});
            }
            pick.append(source[r].begin() + static_cast<int64_t>(run.first),
                        source[r].begin() + static_cast<int64_t>(run.first + run.count));
        }
    }
    auto row_address = [&](size_t r) { return ByteAddress(region, addresses.firsts[r]); };
    auto store_runs = [&] {
        recorder_.Form(AccessForm::kStrided, CheckOf(region, mask_ != nullptr),
                       static_cast<uint32_t>(layout->rows.size()));
        std::vector<Value*> registers = PermuteToRegisters(values, pick);
        Values rows;
        for (size_t r = 0; r < layout->rows.size(); ++r) {
            rows.push_back(row_address(r));
        }
        for (const Piece& piece : pieces) {
            Value* part = Slice(registers[piece.at / width],
                                static_cast<unsigned>(piece.at % width), piece.elements);
            Value* at = builder_.CreateConstGEP1_64(type, rows[piece.row], piece.first);
            Annotate(region, builder_.CreateAlignedStore(part, at, align));
        }
    };

    Value* fits = addresses.in_bounds;
    if (mask_) {
        // Shuffled masks cost more than the values: with lanes missing each goes by its own offset.
        Value* bits = MaskBits(mask_);
        Value* all = builder_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
        fits = fits ? builder_.CreateAnd(fits, all) : all;
    }
    if (!fits) {
        store_runs();
        return true;
    }
    EitherWay(
        fits, "store",
        [&] {
            store_runs();
            return Values();
        },
        [&] {
            Scatter(region, offsets(), values);
            return Values();
        });
    return true;
}

}  // namespace fornax::kernel
