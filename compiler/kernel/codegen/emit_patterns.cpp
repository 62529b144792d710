// Memory selection for accesses whose lane offsets are compile-time constants. The elements that
// all lanes touch are sorted into runs of neighbours; each run is loaded as a whole and its
// elements are shuffled to their lanes, or shuffled together and stored as a whole. That one rule
// gives contiguous vectors, vec2..vec4 transposes, broadcasts of blocks, small strides and rows of
// two-dimensional tiles.
#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/kernel/analysis/access_limits.h"
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

constexpr uint64_t kLeastPieceBytes = 16;
constexpr uint64_t kLongestShuffle = 8;  // in registers, of a source

// Narrow elements are taken as parts of units where all lanes' elements lie alike in theirs: then
// one shift does what a shuffle of bytes would.
struct Units {
    uint64_t bytes = 0;     // of a unit
    size_t count = 0;       // of a lane
    uint64_t skip = 0;      // bytes of the first unit before the first element
    uint64_t overhang = 0;  // bytes read behind the last element that may lie on another page
};

int64_t Lowest(const Shape& shape) {
    return *std::min_element(shape.offsets.begin(), shape.offsets.end());
}

Units PlanUnits(const Shape& shape, uint64_t element, size_t count) {
    const int64_t lowest = Lowest(shape);
    const uint64_t bytes = element * count;
    for (uint64_t unit : {uint64_t{4}, uint64_t{2}}) {
        if (unit <= element || std::ranges::any_of(shape.offsets, [&](int64_t offset) {
                return static_cast<uint64_t>(offset - lowest) % unit != 0;
            })) {
            continue;
        }
        // Units at multiples of their size never reach another page.
        if (shape.base_zeros >= std::countr_zero(unit)) {
            const uint64_t skip = static_cast<uint64_t>(lowest) % unit;
            if (skip % element == 0) {
                return {unit, (skip + bytes + unit - 1) / unit, skip, 0};
            }
        }
        const uint64_t units = (bytes + unit - 1) / unit;
        return {unit, units, 0, units * unit - bytes};
    }
    return {element, count, 0, 0};
}

// A pattern is one row.
std::optional<LaneLayout> MakeLayout(const Shape& shape, const Units& units) {
    std::optional<LaneLayout> layout =
        MakeLaneLayout(shape, units.bytes, units.count, kRunGapBytes);
    if (layout) {
        layout->rows[0].lowest -= static_cast<int64_t>(units.skip);
    }
    return layout;
}

// Lane after lane, without gaps.
bool InOrder(const LaneLayout& layout, size_t count) {
    bool in_order = layout.num_runs == 1 && layout.dense;
    for (size_t lane = 0; lane < layout.first.size(); ++lane) {
        in_order = in_order && layout.first[lane] == lane * count;
    }
    return in_order;
}

// For the record.
AccessForm FormOf(const LaneLayout& layout, size_t count) {
    return count == 1 && InOrder(layout, 1) ? AccessForm::kContiguous : AccessForm::kRuns;
}

AccessCheck CheckOf(const MemoryRegion& region, const Shape& shape, uint64_t bytes, bool masked) {
    if (region.bounds == Bounds::kClamped) {
        const bool inside = shape.max <= region.known_size &&  //
                            shape.max + bytes <= region.known_size;
        return inside ? AccessCheck::kProven : AccessCheck::kClamped;
    }
    return region.bounds == Bounds::kChecked || masked ? AccessCheck::kSpan : AccessCheck::kNone;
}

// Elements that make up whole words of each lane, neighbouring lanes' side by side: how many lanes
// have theirs in one piece, a power of two; 0 if that is less than `least_bytes`. The pieces of one
// length go where words of memory with gaps would have to be shuffled.
uint32_t LanesOfPieces(const Shape& shape, uint64_t lane_bytes, uint64_t least_bytes) {
    constexpr uint64_t kMostWords = 4;
    const auto lanes = static_cast<uint32_t>(shape.offsets.size());
    if (lane_bytes % 4 != 0 || lane_bytes / 4 > kMostWords || !std::has_single_bit(lane_bytes)) {
        return 0;
    }
    uint32_t piece = lanes / 2;
    for (uint32_t lane = 0; lane + 1 < lanes; ++lane) {
        if (shape.offsets[lane + 1] != shape.offsets[lane] + static_cast<int64_t>(lane_bytes)) {
            piece = std::min(piece, 1u << std::countr_zero(lane + 1));
        }
    }
    return piece > 1 && piece * lane_bytes >= least_bytes ? piece : 0;
}

}  // namespace

// Loading everything between the elements costs more than going lane by lane. LLVM takes shuffles
// of long loads apart into one node for each register and result, and compares them all.
bool Emitter::IsSparse(uint64_t units, uint64_t unit, size_t count, uint64_t element) const {
    const uint64_t wanted = lanes_ * std::max<uint64_t>(count * element, unit);
    if (units * unit > 4 * wanted ||
        (units * unit > 2 * wanted && units * unit * 8 > kLongestShuffle * vector_bits_)) {
        return true;
    }
    if (unit >= 4) {
        return false;
    }
    // Shuffles of bytes cost an instruction a register that they draw from.
    const uint64_t registers =
        (units * unit * 8 + VectorBitsOf(builder_) - 1) / VectorBitsOf(builder_);
    return registers > 1 && registers * count > lanes_ * ((count * element + 3) / 4) / 2;
}

bool Emitter::LoadPattern(const MemoryRegion& region,
                          const Offset& offset,
                          llvm::Type* type,
                          size_t count,
                          LaneOffsets offsets,
                          Values& results,
                          Value*& packed) {
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    packed = nullptr;
    Units units = PlanUnits(*offset.shape, element, count);
    if (units.overhang != 0 && (region.base == push_constants_ || region.is_global)) {
        units = {element, count, 0, 0};
    }
    const std::optional<LaneLayout> made = MakeLayout(*offset.shape, units);
    if (!made) {
        return false;
    }
    const LaneLayout& layout = *made;
    const LayoutRow& row = layout.rows[0];
    int64_t lowest = row.lowest;
    // Far apart, each lane's run is loaded by itself, if it is worth it.
    size_t row_words = 0;
    if (layout.num_runs > kFewRuns || IsSparse(layout.elements, units.bytes, count, element)) {
        row_words = RowWords(count, element);
        if (row_words == 0) {
            return false;
        }
        units = {4, row_words, 0, 0};
        lowest = Lowest(*offset.shape);
    }
    // Of words, with gaps between whole registers.
    const bool narrow = units.bytes < 4;
    const bool words = element == 4 && layout.elements != lanes_ * count;
    const uint32_t piece_lanes = row_words == 0 && (narrow || words) && !region.is_global
                                     ? LanesOfPieces(*offset.shape, count * element,
                                                     narrow ? kLeastPieceBytes : vector_bits_ / 8)
                                     : 0;
    if (piece_lanes != 0) {
        units = {4, count * element / 4, 0, 0};
        lowest = Lowest(*offset.shape);
    }
    llvm::Type* unit_type = units.bytes == element && row_words == 0
                                ? type
                                : builder_.getIntNTy(static_cast<unsigned>(units.bytes * 8));
    llvm::Type* offset_type = offset.scalar->getType();
    Value* first =
        builder_.CreateAdd(offset.scalar, llvm::ConstantInt::getSigned(offset_type, lowest));
    const bool whole_units = units.overhang == 0 && row_words == 0 && piece_lanes == 0;
    const llvm::Align align(whole_units ? units.bytes : element);

    auto* packed_type = llvm::FixedVectorType::get(type, lanes_ * static_cast<unsigned>(count));
    const bool in_order = row_words == 0 && piece_lanes == 0 && PackableRun(count) &&
                          InOrder(layout, units.count) &&
                          units.count * units.bytes == count * element;
    bool masked = false;
    auto load_part = [&](Value* address, uint64_t from, uint64_t length) -> Value* {
        auto* part_type = llvm::FixedVectorType::get(unit_type, static_cast<unsigned>(length));
        Value* at = builder_.CreateConstGEP1_64(unit_type, address, from);
        if (!masked) {
            return Annotate(region, builder_.CreateAlignedLoad(part_type, at, align));
        }
        llvm::SmallVector<int, 128> lane_of(length, static_cast<int>(lanes_));  // a gap: false
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            for (size_t i = 0; i < units.count; ++i) {
                const uint64_t unit = layout.first[lane] + i;
                if (unit >= from && unit < from + length) {
                    lane_of[unit - from] = static_cast<int>(lane);
                }
            }
        }
        Value* mask = builder_.CreateShuffleVector(
            mask_, llvm::Constant::getNullValue(mask_->getType()), lane_of);
        return Annotate(region, builder_.CreateMaskedLoad(part_type, at, align, mask,
                                                          llvm::Constant::getNullValue(part_type)));
    };
    auto load_runs = [&](Value* address) {
        recorder_.Form(FormOf(layout, count),
                       CheckOf(region, *offset.shape, count * element, mask_ != nullptr),
                       layout.num_runs);
        Values loaded;
        if (row_words != 0) {
            if (!mask_ && region.fetch_ahead && row.span <= 4 * lanes_ * count * element) {
                FetchAhead(region, address, row.span, false);
            }
            llvm::SmallVector<uint64_t, 64> lane_bytes;
            for (int64_t lane_offset : offset.shape->offsets) {
                lane_bytes.push_back(static_cast<uint64_t>(lane_offset - lowest));
            }
            loaded = LoadRows(region, address, lane_bytes, row_words, packed);
            if (packed) {
                packed = builder_.CreateBitCast(packed, packed_type);
            }
            if (element == 4) {
                for (Value*& word : loaded) {
                    word = builder_.CreateBitCast(word, VectorOf(type));
                }
            }
            return loaded;
        }
        if (piece_lanes != 0) {
            Values pieces;
            auto* piece_type = llvm::FixedVectorType::get(
                unit_type, piece_lanes * static_cast<unsigned>(units.count));
            for (uint32_t lane = 0; lane < lanes_; lane += piece_lanes) {
                Value* at = builder_.CreateConstGEP1_64(
                    builder_.getInt8Ty(), address,
                    static_cast<uint64_t>(offset.shape->offsets[lane] - lowest));
                pieces.push_back(
                    Annotate(region, builder_.CreateAlignedLoad(piece_type, at, align)));
            }
            if (!mask_ && region.fetch_ahead) {
                FetchAhead(region, address, row.span, false);
            }
            return Unpack(JoinAll(pieces), units.count);
        }
        for (const RowRun& run : row.runs) {
            // A run of any length is one load, or two of one type that overlap.
            const uint64_t part = std::bit_floor(run.count);
            Value* low = load_part(address, run.first, part);
            Value* high = low;
            if (in_order && part == run.count) {
                packed = builder_.CreateBitCast(low, packed_type);
            }
            if (part != run.count) {
                high = load_part(address, run.first + run.count - part, part);
            }
            if (!mask_ && region.fetch_ahead && layout.num_runs == 1) {
                FetchAhead(region, builder_.CreateConstGEP1_64(unit_type, address, run.first),
                           run.count * units.bytes, false);
            }
            for (size_t i = 0; i < units.count; ++i) {
                llvm::SmallVector<int, 64> pick(lanes_, -1);
                llvm::SmallVector<int, 64> choose(lanes_);
                for (uint32_t lane = 0; lane < lanes_; ++lane) {
                    uint64_t at = layout.first[lane] + i;
                    bool mine = at >= run.first && at < run.first + run.count;
                    choose[lane] = static_cast<int>(mine ? lanes_ + lane : lane);
                    if (!mine) {
                        continue;
                    }
                    at -= run.first;
                    pick[lane] =
                        static_cast<int>(at < part ? at : part + (at - (run.count - part)));
                }
                Value* picked = builder_.CreateShuffleVector(low, high, pick);
                if (loaded.size() <= i) {
                    loaded.push_back(picked);
                } else {
                    loaded[i] = builder_.CreateShuffleVector(loaded[i], picked, choose);
                }
            }
        }
        return loaded;
    };
    auto elements_of = [&](const Values& loaded) {
        return units.bytes == element ? loaded : UnpackWords(loaded, units.skip, type, count);
    };
    // The bytes that decide: units at multiples of their size may reach beyond them.
    const uint64_t checked_bytes =
        static_cast<uint64_t>(*std::ranges::max_element(offset.shape->offsets) -
                              Lowest(*offset.shape)) +
        count * element + units.overhang;
    Value* checked = units.skip == 0 ? first
                                     : builder_.CreateAdd(
                                           first, llvm::ConstantInt::get(offset_type, units.skip));

    if (region.bounds == Bounds::kClamped) {
        const bool proven = offset.shape->max <= region.known_size &&
                            offset.shape->max + count * element <= region.known_size &&
                            invocations_ % lanes_ == 0;
        if (!proven) {
            // Inactive lanes may lie outside while active ones do not, so the first lane is only
            // kept within the margins on both sides.
            if (checked_bytes + 4 > hal::kSharedMemoryMargin || !region.has_margins) {
                return false;
            }
            Value* margin = llvm::ConstantInt::get(offset_type, hal::kSharedMemoryMargin);
            Value* limit =
                llvm::ConstantInt::get(offset_type, region.known_size + hal::kSharedMemoryMargin);
            Value* moved = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                                          builder_.CreateAdd(first, margin), limit);
            Value* base = builder_.CreateConstGEP1_64(
                builder_.getInt8Ty(), region.base,
                static_cast<uint64_t>(-static_cast<int64_t>(hal::kSharedMemoryMargin)));
            results = elements_of(load_runs(builder_.CreateGEP(
                builder_.getInt8Ty(), base, builder_.CreateZExt(moved, builder_.getInt64Ty()))));
            return true;
        }
        results = elements_of(load_runs(ByteAddress(region, first)));
        return true;
    }
    if (region.bounds == Bounds::kTrusted && !mask_ && units.overhang == 0) {
        results = elements_of(load_runs(ByteAddress(region, first)));
        return true;
    }
    if (region.is_global && layout.distinct && row_words == 0 && units.bytes >= 4) {
        masked = true;
        results = elements_of(load_runs(ByteAddress(region, first)));
        return true;
    }
    // The whole span lies inside the buffer: nearly always. Otherwise some lanes are outside or
    // inactive; they may even lie below 0, where 32-bit offsets wrap, so each lane goes by its own
    // offset. Where memory is only known to be there for active lanes, all must be active.
    BasicBlock* fast = NewBlock("load_inside");
    BasicBlock* slow = NewBlock("load_edge");
    BasicBlock* end = NewBlock("load_end");
    EmitMaybe(region.is_global ? AllActive() : InBounds(region, checked, checked_bytes), fast, slow,
              true);
    builder_.SetInsertPoint(fast);
    Values inside = load_runs(ByteAddress(region, first));
    builder_.CreateBr(end);
    builder_.SetInsertPoint(slow);
    Values edge = Gather(region, offsets(), type, count);
    Value* edge_packed = packed ? Pack(edge) : nullptr;
    // Words meet words, so that what takes them apart is seen together with what uses the parts.
    if (units.bytes != element) {
        while ((units.skip + edge.size() * element) % units.bytes != 0) {
            edge.push_back(llvm::Constant::getNullValue(edge[0]->getType()));
        }
        for (uint64_t at = 0; at < units.skip; at += element) {
            edge.insert(edge.begin(), llvm::Constant::getNullValue(edge[0]->getType()));
        }
        edge = PackWords(edge, units.bytes);
    }
    BasicBlock* slow_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    Values met;
    for (size_t i = 0; i < inside.size(); ++i) {
        auto* phi = builder_.CreatePHI(inside[i]->getType(), 2);
        phi->addIncoming(inside[i], fast);
        phi->addIncoming(edge[i], slow_end);
        met.push_back(phi);
    }
    if (packed) {
        auto* phi = builder_.CreatePHI(packed->getType(), 2);
        phi->addIncoming(packed, fast);
        phi->addIncoming(edge_packed, slow_end);
        packed = phi;
    }
    results = elements_of(met);
    return true;
}

// Of elements that belong to these lanes, those at the beginning that are stored, where the mask is
// known to cut off the rest: one narrower store, from which the next load can be forwarded, and
// before which less is computed. 0 if the mask is none of that kind.
unsigned Emitter::PrefixLanes(llvm::ArrayRef<int> lane_of) const {
    const auto* mask = llvm::dyn_cast_or_null<llvm::Constant>(mask_);
    if (!mask) {
        return 0;
    }
    const auto active = [&](int lane) {
        const llvm::Constant* bit = mask->getAggregateElement(static_cast<unsigned>(lane));
        return bit && bit->isOneValue();
    };
    const auto end = std::find_if_not(lane_of.begin(), lane_of.end(), active);
    const auto count = static_cast<unsigned>(end - lane_of.begin());
    const bool prefix = std::none_of(end, lane_of.end(), active);
    return prefix && std::has_single_bit(count) ? count : 0;
}

bool Emitter::StorePattern(const MemoryRegion& region,
                           const Offset& offset,
                           llvm::ArrayRef<Value*> values,
                           LaneOffsets offsets,
                           Value* packed) {
    const uint64_t element = values[0]->getType()->getScalarSizeInBits() / 8;
    Units units = PlanUnits(*offset.shape, element, values.size());
    if (units.skip != 0 || units.count * units.bytes != values.size() * element) {
        units = {element, values.size(), 0, 0};
    }
    const std::optional<LaneLayout> made = MakeLayout(*offset.shape, units);
    if (!made || !made->distinct || made->rows[0].span > hal::kSharedMemoryMargin * 16) {
        return false;
    }
    const LaneLayout& layout = *made;
    const LayoutRow& row = layout.rows[0];
    size_t row_words = 0;
    if (!layout.dense || layout.num_runs > kFewRuns) {
        row_words = RowWords(values.size(), element);
        if (row_words == 0) {
            return false;
        }
    }
    const bool in_order = row_words == 0 && InOrder(layout, units.count);
    if (row_words == 0 && !in_order) {
        packed = nullptr;
    }
    Values words(values.begin(), values.end());
    if (row_words != 0 && element == 4) {
        for (Value*& value : words) {
            value = builder_.CreateBitCast(value, VectorOf(builder_.getInt32Ty()));
        }
    } else if (row_words != 0 || units.bytes != element) {
        words = PackWords(values, row_words != 0 ? 4 : units.bytes);
    }
    llvm::Type* type = words[0]->getType()->getScalarType();
    const size_t count = words.size();
    // Neither rows nor, without AVX-512, narrow elements can be stored under a mask.
    const bool plain_only =
        mask_ && (row_words != 0 || (units.bytes < 4 && VectorBitsOf(builder_) < 512));
    if (plain_only && region.bounds == Bounds::kClamped) {
        return false;
    }
    if (region.bounds == Bounds::kClamped && row.span > hal::kSharedMemoryMargin) {
        return false;
    }
    llvm::Type* offset_type = offset.scalar->getType();
    Value* first =
        builder_.CreateAdd(offset.scalar, llvm::ConstantInt::getSigned(offset_type, row.lowest));
    const llvm::Align align(element);

    // All values end to end: element i of lane l is at i * lanes + l.
    llvm::SmallVector<Value*, 16> parts(words.begin(), words.end());
    while (row_words == 0 && !std::has_single_bit(parts.size())) {
        parts.push_back(llvm::PoisonValue::get(parts[0]->getType()));
    }
    while (row_words == 0 && parts.size() > 1) {
        llvm::SmallVector<Value*, 16> joined;
        auto width = llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements();
        llvm::SmallVector<int, 128> all(width * 2);
        for (unsigned i = 0; i < width * 2; ++i) {
            all[i] = static_cast<int>(i);
        }
        for (size_t i = 0; i < parts.size(); i += 2) {
            joined.push_back(builder_.CreateShuffleVector(parts[i], parts[i + 1], all));
        }
        parts = joined;
    }

    auto store_runs = [&](Value* address) {
        recorder_.Form(FormOf(layout, count),
                       CheckOf(region, *offset.shape, count * element, mask_ != nullptr),
                       layout.num_runs);
        if (row_words != 0) {
            llvm::SmallVector<uint64_t, 64> lane_bytes;
            for (int64_t lane_offset : offset.shape->offsets) {
                lane_bytes.push_back(static_cast<uint64_t>(lane_offset - row.lowest));
            }
            if (packed) {
                StorePackedRows(region, address, lane_bytes, packed);
            } else {
                StoreRows(region, address, lane_bytes, words);
            }
            if (!mask_ && region.fetch_ahead) {
                FetchRowsAhead(region, address, lane_bytes);
            }
            return;
        }
        for (const RowRun& run : row.runs) {
            llvm::SmallVector<int, 128> pick(run.count, -1);
            llvm::SmallVector<int, 128> lane_of(run.count, 0);
            for (uint32_t lane = 0; lane < lanes_; ++lane) {
                for (size_t i = 0; i < count; ++i) {
                    uint64_t at = layout.first[lane] + i;
                    if (at < run.first || at >= run.first + run.count) {
                        continue;
                    }
                    pick[at - run.first] = static_cast<int>(i * lanes_ + lane);
                    lane_of[at - run.first] = static_cast<int>(lane);
                }
            }
            auto* run_type = llvm::FixedVectorType::get(type, static_cast<unsigned>(run.count));
            Value* ordered = packed ? builder_.CreateBitCast(packed, run_type)
                                    : builder_.CreateShuffleVector(parts[0], pick);
            Value* at = builder_.CreateConstGEP1_64(type, address, run.first);
            if (const unsigned kept = plain_only ? 0 : PrefixLanes(lane_of); kept != 0) {
                Value* prefix = Slice(ordered, 0, kept);
                Annotate(region, builder_.CreateAlignedStore(prefix, at, align));
            } else if (mask_ && !plain_only) {
                Value* mask = builder_.CreateShuffleVector(mask_, lane_of);
                Annotate(region, builder_.CreateMaskedStore(ordered, at, align, mask));
            } else if (layout.num_runs == 1 && !mask_) {
                StoreRun(region, ordered, at, align);
            } else {
                Annotate(region, builder_.CreateAlignedStore(ordered, at, align));
            }
        }
    };

    if (region.bounds == Bounds::kTrusted && (!mask_ || (region.is_global && !plain_only))) {
        store_runs(ByteAddress(region, first));
        return true;
    }
    if (region.bounds == Bounds::kClamped) {
        Value* margin = llvm::ConstantInt::get(offset_type, hal::kSharedMemoryMargin);
        const bool proven = offset.shape->max <= region.known_size &&
                            offset.shape->max + values.size() * element <= region.known_size &&
                            invocations_ % lanes_ == 0;
        if (proven) {
            store_runs(ByteAddress(region, first));
            return true;
        }
        Value* limit =
            llvm::ConstantInt::get(offset_type, region.known_size + hal::kSharedMemoryMargin);
        Value* moved = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                                      builder_.CreateAdd(first, margin), limit);
        Value* base = builder_.CreateConstGEP1_64(
            builder_.getInt8Ty(), region.base,
            static_cast<uint64_t>(-static_cast<int64_t>(hal::kSharedMemoryMargin)));
        store_runs(builder_.CreateGEP(builder_.getInt8Ty(), base,
                                      builder_.CreateZExt(moved, builder_.getInt64Ty())));
        return true;
    }
    BasicBlock* fast = NewBlock("store_inside");
    BasicBlock* slow = NewBlock("store_edge");
    BasicBlock* end = NewBlock("store_end");
    Value* inside = region.is_global ? AllActive() : InBounds(region, first, row.span);
    if (plain_only && !region.is_global) {
        inside = builder_.CreateAnd(inside, AllActive());
    }
    EmitMaybe(inside, fast, slow, true);
    builder_.SetInsertPoint(fast);
    store_runs(ByteAddress(region, first));
    builder_.CreateBr(end);
    builder_.SetInsertPoint(slow);
    Scatter(region, offsets(),
            packed ? Unpack(packed, values.size()) : Values(values.begin(), values.end()));
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    return true;
}

}  // namespace fornax::kernel
