// Memory selection for offsets that patterns do not follow: index arithmetic with divisions by
// sizes that are known at run time only, as in kernels for tensors of any rank and order, or with
// shifts of sums whose low bits nobody knows, as in kernels for weights in blocks. Most of the time
// all of that is divisible (analysis/lane_speculation.h). One test of all assumptions tells, and
// then the access is that of a pattern; otherwise each lane goes by its own offset.
#include <algorithm>
#include <utility>

#include "compiler/kernel/analysis/access_limits.h"
#include "compiler/kernel/codegen/assumption_check.h"
#include "compiler/kernel/codegen/emit_memory.h"

namespace fornax::kernel {

using llvm::Value;
using Bounds = MemoryRegion::Bounds;

// A pattern that the lanes' offsets probably have.
std::optional<SpeculatedPattern> AccessEmitter::SpeculatePattern(ir::ValueId offset) {
    if (code_.compact || code_.lanes == 1 || patterns_.pattern(offset).uniform()) {
        return {};
    }
    SpeculatedPattern speculated{.lanes = LaneSpeculation(kernel_, patterns_.get())};
    const Speculation* found = speculated.lanes.Of(offset);
    if (!found || (found->lanes.HasRows() && kernel_.type(offset) != ir::Type::kI32)) {
        return {};
    }
    speculated.lowest = found->lanes.Lowest();
    speculated.pattern.kind =
        found->lanes.HasRows() ? LanePattern::Kind::kRows : LanePattern::Kind::kOffsets;
    speculated.pattern.rows = found->lanes.rows;
    for (int64_t lane : found->lanes.offsets) {
        speculated.pattern.offsets.push_back(lane - speculated.lowest);
    }
    return speculated;
}

// The active lanes' offsets have the pattern, none wraps, and all of it lies inside, what lanes
// touch that are not active included. `bytes`: what a lane touches.
Value* AccessEmitter::PatternHolds(const MemoryRegion& region,
                                   SpeculatedPattern& speculated,
                                   ir::ValueId offset,
                                   uint64_t bytes,
                                   bool is_store) {
    // Loads for other lanes do no harm inside of a buffer. Of an address nothing is known but that
    // active lanes may use it.
    const bool all_active = code_.mask && (is_store || region.is_global);
    const bool inside = region.bounds != Bounds::kTrusted || (code_.mask && !all_active);
    // Active lanes are inside of memory that is trusted, which saves a loop all tests of its end
    // (version_loops.h).
    const bool in_loop = std::ranges::any_of(code_.constructs, [&](const Construct& around) {
        return kernel_.inst(around.inst).op == ir::Op::kLoop;
    });
    const auto in_bounds = [&](Value* at, uint64_t span) {
        Value* holds = memory_.InBounds(region, at, span);
        return region.bounds == Bounds::kTrusted && in_loop
                   ? builder_.CreateOr(code_.AllActive(), holds)
                   : holds;
    };
    const auto is_here = [&](ir::ValueId value) { return values_.IsHere(value); };
    const auto scalar = [&](ir::ValueId value) { return values_.Raw(value); };
    const auto vector = [&](ir::ValueId value) { return values_.Vector(value); };
    AssumptionCheck check(kernel_, patterns_.get(), speculated.lanes, builder_,
                          {is_here, scalar, vector, all_active ? nullptr : code_.mask});
    Value* base = check.Base(offset);
    speculated.stride = check.Stride(offset);
    llvm::Type* type = base->getType();
    speculated.base =
        builder_.CreateAdd(base, llvm::ConstantInt::getSigned(type, speculated.lowest));
    Value* all = check.Holds();
    if (all_active) {
        all = builder_.CreateAnd(all, code_.AllActive());
    }
    const int64_t farthest = *std::ranges::max_element(speculated.pattern.offsets);
    const uint64_t span = static_cast<uint64_t>(farthest) + bytes;
    const uint64_t highest = llvm::maxUIntN(type->getIntegerBitWidth()) - span;
    if (speculated.stride) {
        // The last row's end, in 64 bits.
        const int64_t rows = *std::ranges::max_element(speculated.pattern.rows);
        llvm::Type* i64 = builder_.getInt64Ty();
        Value* last = builder_.CreateMul(builder_.CreateZExt(speculated.stride, i64),
                                         llvm::ConstantInt::getSigned(i64, rows));
        last = builder_.CreateAdd(last, builder_.CreateZExt(speculated.base, i64));
        all = builder_.CreateAnd(all, builder_.CreateICmpULE(last, builder_.getInt64(highest)));
        if (inside) {
            all = builder_.CreateAnd(all, in_bounds(last, span));
        }
        return all;
    }
    all = builder_.CreateAnd(
        all, builder_.CreateICmpULE(speculated.base, llvm::ConstantInt::get(type, highest)));
    if (inside) {
        all = builder_.CreateAnd(all, in_bounds(speculated.base, span));
    }
    return all;
}

// Each workgroup loads what the one before did not, and its lanes take most of the bytes that they
// span: rows of weights, for instance. A row may end before the processor has seen that it is one.
bool AccessEmitter::IsStreamed(const SpeculatedPattern& speculated,
                               ir::ValueId offset,
                               uint64_t bytes) {
    const bool between_barriers =
        std::ranges::any_of(code_.constructs, [&](const Construct& around) {
            return around.workgroup_level && kernel_.inst(around.inst).op == ir::Op::kLoop;
        });
    if (between_barriers || speculated.pattern.has_rows() ||
        !prefetch_.DiffersByWorkgroup(offset)) {
        return false;
    }
    std::vector<int64_t> firsts = speculated.pattern.offsets;
    std::ranges::sort(firsts);
    uint64_t taken = bytes;
    for (size_t i = 0; i + 1 < firsts.size(); ++i) {
        taken += std::min(bytes, static_cast<uint64_t>(firsts[i + 1] - firsts[i]));
    }
    return 2 * taken > static_cast<uint64_t>(firsts.back()) + bytes;
}

// Where the pattern is tested, all lanes are inside, and what others than the active ones load is
// not looked at.
bool AccessEmitter::LoadSpeculated(const MemoryRegion& region,
                                   ir::ValueId offset_id,
                                   llvm::Type* type,
                                   size_t count,
                                   Values& results,
                                   Value*& packed) {
    std::optional<SpeculatedPattern> speculated = SpeculatePattern(offset_id);
    if (!speculated) {
        return false;
    }
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8 * count;
    MemoryRegion inside = region;
    inside.bounds = Bounds::kTrusted;
    const bool streamed = IsStreamed(*speculated, offset_id, bytes);
    inside.prefetches |= streamed;
    const AccessPlan plan = PlanOf(inside, speculated->pattern, type, count, false, false);
    if (plan.by_lane() || plan.layout.num_runs > kMaxAssumedRuns) {
        return false;
    }
    if (streamed && !inside.prefetch.distance) {
        inside.prefetch = prefetch_.NextWorkgroup(offset_id);
    }
    const auto offsets = [&] { return values_.Vector(offset_id); };
    recorder_.Speculation([&] { return speculated->lanes.Text(offset_id); });
    Value* holds = PatternHolds(region, *speculated, offset_id, bytes, false);
    const Offset offset{
        .pattern = &speculated->pattern, .scalar = speculated->base, .stride = speculated->stride};
    results = memory_.PackedEitherWay(
        holds, "load_speculated",
        [&] {
            const MaskScope unmasked(code_, nullptr);
            return LoadPlanned({inside, offset, plan, offsets}, type, count, packed);
        },
        [&] { return memory_.GatherRuns(region, offsets(), type, count); }, packed);
    return true;
}

bool AccessEmitter::StoreSpeculated(const MemoryRegion& region,
                                    ir::ValueId offset_id,
                                    llvm::ArrayRef<Value*> values) {
    llvm::Type* type = values[0]->getType()->getScalarType();
    std::optional<SpeculatedPattern> speculated = SpeculatePattern(offset_id);
    if (!speculated) {
        return false;
    }
    MemoryRegion inside = region;
    inside.bounds = Bounds::kTrusted;
    const AccessPlan plan = PlanOf(inside, speculated->pattern, type, values.size(), true, false);
    if (plan.by_lane() || !plan.layout.dense || plan.layout.num_runs > kMaxAssumedRuns) {
        return false;
    }
    const auto offsets = [&] { return values_.Vector(offset_id); };
    recorder_.Speculation([&] { return speculated->lanes.Text(offset_id); });
    Value* holds = PatternHolds(region, *speculated, offset_id,
                                type->getPrimitiveSizeInBits() / 8 * values.size(), true);
    const Offset offset{
        .pattern = &speculated->pattern, .scalar = speculated->base, .stride = speculated->stride};
    memory_.EitherWay(
        holds, "store_speculated",
        [&] {
            const MaskScope unmasked(code_, nullptr);
            StorePlanned({inside, offset, plan, offsets}, values, nullptr);
            return Values();
        },
        [&] {
            memory_.Scatter(region, offsets(), values);
            return Values();
        });
    return true;
}

}  // namespace fornax::kernel
