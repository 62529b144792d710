// Executes the plans of accesses (access/access_plan.h): moves runs of memory as a whole, shuffles
// their elements to the lanes or together, and goes lane by lane where the plan's test fails.
#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/kernel/codegen/emit_memory.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::Value;
using Method = AccessPlan::Method;
using Move = AccessPlan::Move;

namespace {

// Longer strides in bytes would let the test of the rows' bounds overflow. Only those of 64-bit
// offsets can be longer.
constexpr uint64_t kMaxWideStride = uint64_t{1} << 32;

llvm::SmallVector<uint64_t, 64> OffsetsOf(const AccessPlan& plan) {
    llvm::SmallVector<uint64_t, 64> offsets;
    for (const Move& move : plan.moves) {
        offsets.push_back(move.offset);
    }
    return offsets;
}

// Rows that each start anywhere: all lanes are inside, and no row wraps between its lanes.
Value* GroupsInBounds(llvm::IRBuilder<>& builder,
                      const MemoryRegion& region,
                      const AccessPlan& plan,
                      Value* offsets) {
    const uint64_t bytes = plan.count * plan.unit_bytes;
    llvm::Type* type = offsets->getType()->getScalarType();
    const uint64_t highest = llvm::maxUIntN(type->getIntegerBitWidth()) - plan.span_bytes;
    // A region of fewer bytes than a lane takes has no place for one: the difference is below 0.
    Value* last = builder.CreateSub(region.size, builder.getInt64(bytes));
    Value* any = builder.CreateICmpSGE(last, builder.getInt64(0));
    last = builder.CreateBinaryIntrinsic(llvm::Intrinsic::umin, last, builder.getInt64(highest));
    Value* limit =
        builder.CreateVectorSplat(plan.layout.row.size(), builder.CreateTrunc(last, type));
    Value* inside = builder.CreateICmpULE(offsets, limit);
    return builder.CreateAnd(any, builder.CreateAndReduce(inside));
}

}  // namespace

AccessPlan AccessEmitter::PlanOf(const MemoryRegion& region,
                                 const LanePattern& offset,
                                 llvm::Type* type,
                                 size_t count,
                                 bool is_store,
                                 bool is_masked) {
    return PlanAccess({.offset = offset,
                       .element_bytes = type->getPrimitiveSizeInBits() / 8,
                       .count = count,
                       .is_store = is_store,
                       .is_masked = is_masked,
                       .all_lanes_exist = code_.invocations % code_.lanes == 0,
                       .memory = region,
                       .target = {.vector_bits = code_.vector_bits, .lanes = code_.lanes}});
}

// One test for all rows, in 64 bits: from the first one, which did not wrap, to what lies above all
// others.
Value* AccessEmitter::RowsInBounds(const PlannedAccess& access, Value* first) {
    const auto& [region, offset, plan, offsets] = access;
    const LanePattern& pattern = *offset.pattern;
    const LayoutRow& low = plan.layout.rows.front();
    const LayoutRow& high = plan.layout.rows.back();
    llvm::Type* i64 = builder_.getInt64Ty();
    Value* start = builder_.CreateZExt(first, i64);
    Value* stride = values_.Raw(pattern.stride);
    const auto distance = static_cast<uint64_t>(high.multiple - low.multiple);
    const uint64_t scale = std::max<uint64_t>(pattern.narrow_scale, 1);
    Value* last = builder_.CreateAdd(
        start,
        builder_.CreateMul(builder_.CreateZExt(stride, i64), builder_.getInt64(distance * scale)));
    const int64_t above = plan.span_begin + static_cast<int64_t>(plan.span_bytes);
    Value* end = builder_.CreateAdd(last, llvm::ConstantInt::getSigned(i64, above));
    Value* size = region.size;
    const bool is_narrow = first->getType()->isIntegerTy(32);
    if (is_narrow) {
        size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size,
                                              builder_.getInt64(uint64_t{1} << 32));
    }
    Value* inside = builder_.CreateICmpULE(end, size);
    if (!is_narrow || pattern.narrow_scale != 0) {
        // Neither the first row nor the stride lets the sum overflow, nor a narrow multiple wrap.
        uint64_t longest = kMaxWideStride;
        if (pattern.narrow_scale != 0) {
            const auto farthest = std::max(std::abs(low.multiple), std::abs(high.multiple));
            const uint64_t greatest =
                (uint64_t{1} << (stride->getType()->getIntegerBitWidth() - 1)) - 1;
            longest = greatest / static_cast<uint64_t>(farthest);
        }
        Value* starts = builder_.CreateICmpULE(start, size);
        Value* is_short =
            builder_.CreateICmpULE(stride, llvm::ConstantInt::get(stride->getType(), longest));
        inside = builder_.CreateAnd(inside, builder_.CreateAnd(starts, is_short));
    }
    if (plan.span_begin < 0) {
        Value* above_zero =
            builder_.CreateICmpUGE(start, llvm::ConstantInt::getSigned(i64, -plan.span_begin));
        inside = builder_.CreateAnd(inside, above_zero);
    }
    return inside;
}

// The lowest offset of each row.
AccessEmitter::Values AccessEmitter::FirstOffsets(const PlannedAccess& access) {
    const auto& [region, offset, plan, offsets] = access;
    llvm::Type* type = offset.scalar->getType();
    Values firsts;
    for (const LayoutRow& row : plan.layout.rows) {
        Value* first =
            builder_.CreateAdd(offset.scalar, llvm::ConstantInt::getSigned(type, row.lowest));
        firsts.push_back(row.multiple == 0
                             ? first
                             : builder_.CreateAdd(first, values_.RowOffset(offset, row, type)));
    }
    return firsts;
}

// The plan's test; null if it has none.
Value* AccessEmitter::PlanHolds(const PlannedAccess& access, Value* first) {
    const auto& [region, offset, plan, offsets] = access;
    Value* holds = nullptr;
    if (plan.needs_inside) {
        if (!offset.pattern->groups.empty()) {
            holds = GroupsInBounds(builder_, region, plan, offsets());
        } else if (plan.layout.rows.size() > 1) {
            holds = RowsInBounds(access, first);
        } else {
            if (plan.skipped_bytes != 0) {
                Value* skip = llvm::ConstantInt::get(first->getType(), plan.skipped_bytes);
                first = builder_.CreateAdd(first, skip);
            }
            holds = memory_.InBounds(region, first, plan.span_bytes);
        }
    }
    if (plan.needs_active) {
        holds = holds ? builder_.CreateAnd(holds, code_.AllActive()) : code_.AllActive();
    }
    return holds;
}

Value* AccessEmitter::PlannedAddress(const PlannedAccess& access, Value* first) {
    const MemoryRegion& region = access.region;
    if (!access.plan.is_moved) {
        return memory_.ByteAddress(region, first);
    }
    llvm::Type* type = first->getType();
    llvm::Type* i8 = builder_.getInt8Ty();
    constexpr uint64_t kMargin = hal::kSharedMemoryMargin;
    Value* moved = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::umin, builder_.CreateAdd(first, llvm::ConstantInt::get(type, kMargin)),
        llvm::ConstantInt::get(type, region.known_size + kMargin));
    Value* base = builder_.CreateConstGEP1_64(i8, region.base, uint64_t{0} - kMargin);
    return builder_.CreateGEP(i8, base, builder_.CreateZExt(moved, builder_.getInt64Ty()));
}

// Which lane each of the moved units belongs to; `code_.lanes` for none.
llvm::SmallVector<int, 128> AccessEmitter::LanesOf(const AccessPlan& plan, const Move& move) const {
    llvm::SmallVector<int, 128> lane_of(move.count, static_cast<int>(code_.lanes));
    const uint64_t begin = move.offset / plan.unit_bytes;
    for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
        for (size_t i = 0; i < plan.count; ++i) {
            const uint64_t unit = plan.layout.first[lane] + i - begin;
            if (unit < move.count) {
                lane_of[unit] = static_cast<int>(lane);
            }
        }
    }
    return lane_of;
}

Value* AccessEmitter::LoadMove(const PlannedAccess& access,
                               const Move& move,
                               Value* address,
                               llvm::Type* type) {
    const auto& [region, offset, plan, offsets] = access;
    auto* vector = llvm::FixedVectorType::get(type, move.count);
    const llvm::Align align(plan.align);
    Value* at = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, move.offset);
    if (!plan.is_masked) {
        return memory_.Annotate(region, builder_.CreateAlignedLoad(vector, at, align));
    }
    Value* mask = builder_.CreateShuffleVector(
        code_.mask, llvm::Constant::getNullValue(code_.mask->getType()), LanesOf(plan, move));
    return memory_.Annotate(
        region,
        builder_.CreateMaskedLoad(vector, at, align, mask, llvm::Constant::getNullValue(vector)));
}

// Lanes that lie closer together than what each of them loads, as the windows of a convolution:
// parts of what they lie apart by are in the order of the lanes, and take few shuffles each, where
// every vector of the whole draws from many registers. False if they do not lie like that.
bool AccessEmitter::LoadOverlapping(const PlannedAccess& access,
                                    llvm::ArrayRef<Value*> firsts,
                                    llvm::Type* unit,
                                    Values& units) {
    const auto& [region, offset, plan, offsets] = access;
    const std::vector<int64_t>& lanes = offset.pattern->offsets;
    const int64_t apart = lanes[1] - lanes[0];
    if (plan.is_packed || plan.is_masked || plan.skipped_bytes != 0 || plan.unit_bytes != 4 ||
        unit->getPrimitiveSizeInBits() != 32 || apart <= 8 || apart % 4 != 0 ||
        plan.count % static_cast<size_t>(apart / 4) != 0) {
        return false;
    }
    const auto count = static_cast<size_t>(apart / 4);
    MemoryRegion inside = region;
    inside.bounds = MemoryRegion::Bounds::kTrusted;
    const AccessPlan part = PlanOf(inside, *offset.pattern, unit, count, false, false);
    if (!part.is_packed || part.count != count || part.method == Method::kTransposed ||
        part.has_fallback() || part.layout.rows.size() != plan.layout.rows.size()) {
        return false;
    }
    for (size_t first = 0; first < plan.count; first += count) {
        Values parts;
        for (const Move& move : part.moves) {
            Value* address = PlannedAddress(access, firsts[move.row]);
            address = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, 4 * first);
            parts.push_back(LoadMove({region, offset, part, offsets}, move, address, unit));
        }
        units.append(memory_.ColumnsOf(parts, count));
    }
    return true;
}

// A vector for each unit of a lane. `packed`: see emit_packed.cpp.
AccessEmitter::Values AccessEmitter::LoadUnits(const PlannedAccess& access,
                                               llvm::ArrayRef<Value*> firsts,
                                               llvm::Type* type,
                                               size_t count,
                                               Value*& packed) {
    const auto& [region, offset, plan, offsets] = access;
    recorder_.Plan(plan);
    const bool are_elements = plan.unit_bytes * 8 == type->getPrimitiveSizeInBits();
    auto* packed_type =
        llvm::FixedVectorType::get(type, code_.lanes * static_cast<unsigned>(count));
    packed = nullptr;
    Value* address = nullptr;
    Values units;
    if (plan.method == Method::kTransposed) {
        address = PlannedAddress(access, firsts[0]);
        prefetch_.Prefetch(region, address, plan.prefetches, false);
        units = memory_.LoadRows(region, address, OffsetsOf(plan), plan.count, packed);
        packed = packed ? builder_.CreateBitCast(packed, packed_type) : nullptr;
        for (Value*& word : units) {
            word = are_elements ? builder_.CreateBitCast(word, code_.VectorOf(type)) : word;
        }
        return units;
    }
    llvm::Type* unit =
        are_elements ? type : builder_.getIntNTy(static_cast<unsigned>(plan.unit_bytes * 8));
    if (LoadOverlapping(access, firsts, unit, units)) {
        return units;
    }
    Values parts;
    for (size_t i = 0; i < plan.moves.size(); ++i) {
        const Move& move = plan.moves[i];
        if (i == 0 || move.row != plan.moves[i - 1].row) {
            address = PlannedAddress(access, firsts[move.row]);
        }
        parts.push_back(LoadMove(access, move, address, unit));
    }
    prefetch_.Prefetch(region, address, plan.prefetches, false);
    // Four words a lane share shuffles in vectors::Permute().
    const bool in_order =
        plan.is_packed && plan.unit_bytes == 4 && plan.count > 2 && plan.count != 4;
    if (in_order) {
        units = memory_.ColumnsOf(parts, plan.count);
    }
    for (size_t i = 0; i < plan.count && !in_order; ++i) {
        units.push_back(
            vectors::Permute(builder_, code_.vector_bits, parts,
                             llvm::ArrayRef(plan.shuffle).slice(i * code_.lanes, code_.lanes)));
    }
    if (plan.is_packed) {
        packed = builder_.CreateBitCast(vectors::JoinAll(builder_, parts), packed_type);
    }
    return units;
}

AccessEmitter::Values AccessEmitter::LoadPlanned(const PlannedAccess& access,
                                                 llvm::Type* type,
                                                 size_t count,
                                                 Value*& packed) {
    const AccessPlan& plan = access.plan;
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    const bool are_elements = plan.unit_bytes == element;
    const Values firsts = FirstOffsets(access);
    Value* holds = PlanHolds(access, firsts[0]);
    Values units;
    if (!holds) {
        units = LoadUnits(access, firsts, type, count, packed);
    } else {
        units = memory_.EitherWay(
            holds, "load",
            [&] {
                Values inside = LoadUnits(access, firsts, type, count, packed);
                if (packed) {
                    inside.push_back(packed);
                }
                return inside;
            },
            [&] {
                Values edge = memory_.Gather(access.region, access.offsets(), type, count);
                Value* edge_packed = packed ? vectors::Pack(builder_, edge) : nullptr;
                if (!are_elements) {
                    edge = UnitsOf(edge, plan);
                }
                if (packed) {
                    edge.push_back(edge_packed);
                }
                return edge;
            });
        if (packed) {
            packed = units.pop_back_val();
        }
    }
    return are_elements ? units
                        : vectors::UnpackWords(builder_, units, plan.skipped_bytes, type, count);
}

// Elements as the plan's units, so that what takes these apart is seen together with what uses the
// parts.
AccessEmitter::Values AccessEmitter::UnitsOf(Values elements, const AccessPlan& plan) {
    const uint64_t bytes = elements[0]->getType()->getScalarSizeInBits() / 8;
    Value* none = llvm::Constant::getNullValue(elements[0]->getType());
    elements.insert(elements.begin(), plan.skipped_bytes / bytes, none);
    elements.resize(plan.count * plan.unit_bytes / bytes, none);
    return vectors::PackWords(builder_, elements, plan.unit_bytes);
}

// How many elements at the beginning are stored, where the mask is known to cut off the rest; each
// belongs to one of `lane_of`. They are one narrower store, from which the next load can be
// forwarded, and before which less is computed. 0 if the mask is none of that kind.
unsigned AccessEmitter::PrefixLanes(llvm::ArrayRef<int> lane_of) const {
    const auto* mask = llvm::dyn_cast_or_null<llvm::Constant>(code_.mask);
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

// Unit i of lane l is at i * lanes + l of `units`, which for runs are one vector.
void AccessEmitter::StoreUnits(const PlannedAccess& access,
                               llvm::ArrayRef<Value*> firsts,
                               llvm::ArrayRef<Value*> units,
                               Value* packed) {
    const auto& [region, offset, plan, offsets] = access;
    recorder_.Plan(plan);
    if (plan.method == Method::kTransposed) {
        Value* address = PlannedAddress(access, firsts[0]);
        if (packed) {
            memory_.StorePackedRows(region, address, OffsetsOf(plan), packed);
        } else {
            memory_.StoreRows(region, address, OffsetsOf(plan), units);
        }
        prefetch_.Prefetch(region, address, plan.prefetches, true);
        return;
    }
    const unsigned width =
        std::max<unsigned>(1, code_.vector_bits / (8 * static_cast<unsigned>(plan.unit_bytes)));
    const bool is_rows = plan.method == Method::kRows;
    std::vector<Value*> registers;
    if (is_rows) {
        registers = vectors::PermuteToRegisters(builder_, code_.vector_bits, units, plan.shuffle);
    }
    Values addresses;
    for (Value* first : firsts) {
        addresses.push_back(PlannedAddress(access, first));
    }
    for (const Move& move : plan.moves) {
        auto* type = llvm::FixedVectorType::get(units[0]->getType()->getScalarType(), move.count);
        const llvm::Align align(plan.align);
        Value* part =
            is_rows
                ? vectors::Slice(builder_, registers[move.at / width], move.at % width, move.count)
            : packed ? builder_.CreateBitCast(packed, type)
                     : builder_.CreateShuffleVector(
                           units[0], llvm::ArrayRef(plan.shuffle).slice(move.at, move.count));
        Value* at =
            builder_.CreateConstGEP1_64(builder_.getInt8Ty(), addresses[move.row], move.offset);
        if (plan.is_masked) {
            const llvm::SmallVector<int, 128> lane_of = LanesOf(plan, move);
            if (const unsigned kept = PrefixLanes(lane_of); kept != 0) {
                memory_.Annotate(region, builder_.CreateAlignedStore(
                                             vectors::Slice(builder_, part, 0, kept), at, align));
            } else {
                Value* mask = builder_.CreateShuffleVector(code_.mask, lane_of);
                memory_.Annotate(region, builder_.CreateMaskedStore(part, at, align, mask));
            }
        } else if (plan.method == Method::kRuns && plan.moves.size() == 1 && !code_.mask) {
            prefetch_.StoreRun(region, part, at, align, plan.prefetches);
        } else {
            memory_.Annotate(region, builder_.CreateAlignedStore(part, at, align));
        }
    }
}

void AccessEmitter::StorePlanned(const PlannedAccess& access,
                                 llvm::ArrayRef<Value*> values,
                                 Value* packed) {
    const AccessPlan& plan = access.plan;
    const uint64_t element = values[0]->getType()->getScalarSizeInBits() / 8;
    packed = plan.is_packed ? packed : nullptr;
    Values units(values.begin(), values.end());
    if (plan.unit_bytes != element) {
        units = vectors::PackWords(builder_, values, plan.unit_bytes);
    } else if (plan.method == Method::kTransposed) {
        for (Value*& value : units) {
            value = builder_.CreateBitCast(value, code_.VectorOf(builder_.getInt32Ty()));
        }
    }
    const Values firsts = FirstOffsets(access);
    if (plan.method == Method::kRuns) {
        units.resize(std::bit_ceil(units.size()), llvm::PoisonValue::get(units[0]->getType()));
        units = {vectors::JoinAll(builder_, units)};
    }
    Value* holds = PlanHolds(access, firsts[0]);
    if (!holds) {
        StoreUnits(access, firsts, units, packed);
        return;
    }
    memory_.EitherWay(
        holds, "store",
        [&] {
            StoreUnits(access, firsts, units, packed);
            return Values();
        },
        [&] {
            memory_.Scatter(access.region, access.offsets(),
                            packed ? vectors::Unpack(builder_, packed, values.size())
                                   : Values(values.begin(), values.end()));
            return Values();
        });
}

}  // namespace fornax::kernel
