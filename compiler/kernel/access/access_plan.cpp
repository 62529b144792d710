#include "compiler/kernel/access/access_plan.h"

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <utility>

#include "compiler/kernel/analysis/access_limits.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using Bounds = AccessMemory::Bounds;
using Method = AccessPlan::Method;

namespace {

constexpr uint64_t kMargin = hal::kSharedMemoryMargin;

class Planner {
  public:
    explicit Planner(const AccessRequest& request)
        : request_(request),
          pattern_(request.offset),
          memory_(request.memory),
          lanes_(request.target.lanes),
          vector_bytes_(request.target.vector_bits / 8),
          lane_bytes_(request.element_bytes * request.count) {
        if (!pattern_.offsets.empty()) {
            const auto [low, high] = std::ranges::minmax_element(pattern_.offsets);
            lowest_ = *low;
            reach_bytes_ = static_cast<uint64_t>(*high - *low) + lane_bytes_;
        }
    }

    AccessPlan Run() {
        const bool one_base = !memory_.by_lane;
        if (one_base && (pattern_.uniform() || lanes_ == 1)) {
            plan_.method = Method::kOneAddress;
            plan_.cost = 1;
            return plan_;
        }
        const bool is_planned =
            one_base && ((pattern_.constant_offsets() && Try(&Planner::PlanPattern)) ||
                         ((request_.is_store ? !pattern_.varying() : pattern_.has_rows()) &&
                          Try(&Planner::PlanRows)));
        if (is_planned) {
            const bool in_order = plan_.layout.num_runs == 1 && IsInOrder();
            plan_.is_contiguous = plan_.method == Method::kRuns && plan_.count == 1 && in_order &&
                                  plan_.unit_bytes == lane_bytes_;
            FindCost();
        } else {
            plan_ = {.method = Method::kLanes, .layout = {}};
            plan_.cost = kElementCost * lanes_ * static_cast<double>(request_.count);
        }
        return plan_;
    }

  private:
    bool Try(bool (Planner::*plan)()) {
        plan_ = {.count = request_.count,
                 .unit_bytes = request_.element_bytes,
                 .align = request_.element_bytes,
                 .layout = {}};
        return (this->*plan)();
    }

    // --- a pattern: one row, of units ---

    bool PlanPattern() {
        TakeUnits();
        auto layout = MakeLaneLayout(pattern_, plan_.unit_bytes, plan_.count, kRunGapBytes);
        if (!layout) {
            return false;
        }
        plan_.layout = std::move(*layout);
        row().lowest -= static_cast<int64_t>(plan_.skipped_bytes);
        const bool is_planned = request_.is_store ? PlanStore() : PlanLoad();
        if (is_planned) {
            FindPrefetches();
        }
        return is_planned;
    }

    // Units that are not multiples of their size may reach behind the last element.
    void TakeUnits() {
        for (uint64_t unit : {uint64_t{4}, uint64_t{2}}) {
            const bool alike = std::ranges::all_of(pattern_.offsets, [&](int64_t offset) {
                return static_cast<uint64_t>(offset - lowest_) % unit == 0;
            });
            if (unit <= request_.element_bytes || !alike) {
                continue;
            }
            // Units at multiples of their size never reach another page.
            const uint64_t skipped = static_cast<uint64_t>(lowest_) % unit;
            const bool is_aligned = pattern_.base_zeros >= std::countr_zero(unit) &&
                                    skipped % request_.element_bytes == 0;
            const uint64_t skip = is_aligned ? skipped : 0;
            const uint64_t units = (skip + lane_bytes_ + unit - 1) / unit;
            const uint64_t overhang = is_aligned ? 0 : units * unit - lane_bytes_;
            const bool is_whole = skip == 0 && units * unit == lane_bytes_;
            if (request_.is_store ? is_whole : overhang == 0 || !memory_.ends_exactly) {
                plan_.count = units;
                plan_.unit_bytes = unit;
                plan_.skipped_bytes = skip;
                overhang_bytes_ = overhang;
                plan_.align = overhang == 0 ? unit : request_.element_bytes;
            }
            return;
        }
    }

    bool PlanLoad() {
        const LaneLayout& layout = plan_.layout;
        const uint64_t span = row().span;
        const bool is_far = layout.num_runs > kFewRuns || IsSparse();
        if (is_far && !Transpose()) {
            return false;
        }
        const uint32_t piece = is_far ? 0 : LanesOfPieces();
        // Units at multiples of their size may reach beyond the bytes that decide.
        plan_.span_bytes = reach_bytes_;
        if (is_far) {
            prefetched_ = span <= 4 * lanes_ * lane_bytes_ ? span : 0;
        } else if (piece != 0) {
            plan_.method = Method::kPieces;
            TakeWords();
            AddPieces(piece);
            prefetched_ = span;
        } else {
            plan_.span_bytes += overhang_bytes_;
            plan_.method = Method::kRuns;
            AddLoads();
            plan_.is_packed = PackableRun(request_.count) && layout.num_runs == 1 && IsInOrder() &&
                              plan_.count * plan_.unit_bytes == lane_bytes_;
            prefetched_ = layout.num_runs == 1 ? span : 0;
        }
        if (memory_.bounds == Bounds::kClamped) {
            // Inactive lanes may lie outside while active ones do not, so the first lane is only
            // kept within the margins on both sides.
            plan_.is_proven = IsProven();
            plan_.is_moved = !plan_.is_proven;
            return plan_.is_proven || (plan_.span_bytes + 4 <= kMargin && memory_.has_margins);
        }
        if (memory_.bounds == Bounds::kTrusted && !request_.is_masked && overhang_bytes_ == 0) {
            return true;
        }
        plan_.is_masked = memory_.is_global && plan_.layout.distinct &&
                          plan_.method == Method::kRuns && plan_.unit_bytes >= 4;
        if (!plan_.is_masked) {
            // Lanes that are outside or inactive may even lie below 0, where 32-bit offsets wrap.
            // Where memory is only known to be there for active lanes, all must be active.
            plan_.needs_inside = !memory_.is_global;
            plan_.needs_active = memory_.is_global;
        }
        return true;
    }

    bool PlanStore() {
        const LaneLayout& layout = plan_.layout;
        const uint64_t span = row().span;
        if (!layout.distinct || span > kMargin * 16) {
            return false;
        }
        plan_.span_bytes = span;
        const uint64_t unit = plan_.unit_bytes;
        const bool is_far = !layout.dense || layout.num_runs > kFewRuns;
        if (is_far) {
            if (!Transpose()) {
                return false;
            }
        } else {
            plan_.method = Method::kRuns;
            plan_.align = request_.element_bytes;
            AddStores(UINT32_MAX);
            plan_.is_packed = layout.num_runs == 1 && IsInOrder();
            prefetched_ = layout.num_runs == 1 ? span : 0;
        }
        // Neither rows nor, without AVX-512, narrow elements can be stored under a mask.
        const bool plain_only =
            request_.is_masked && (is_far || (unit < 4 && request_.target.vector_bits < 512));
        plan_.is_masked = request_.is_masked && !plain_only;
        if (memory_.bounds == Bounds::kClamped) {
            plan_.is_proven = IsProven();
            plan_.is_moved = !plan_.is_proven;
            plan_.needs_active = plain_only;
            return span <= kMargin;
        }
        if (memory_.bounds != Bounds::kTrusted || (request_.is_masked && !memory_.is_global) ||
            plain_only) {
            plan_.needs_inside = !memory_.is_global;
            plan_.needs_active = memory_.is_global || plain_only;
        }
        return true;
    }

    // Loading everything between the elements costs more than going lane by lane. LLVM takes
    // shuffles of long loads apart into one node for each register and result, and compares them
    // all.
    bool IsSparse() const {
        const uint64_t unit = plan_.unit_bytes;
        const uint64_t loaded = plan_.layout.elements * unit;
        const uint64_t wanted = lanes_ * std::max(lane_bytes_, unit);
        if (loaded > 4 * wanted ||
            (loaded > 2 * wanted && loaded > kLongestShuffle * vector_bytes_)) {
            return true;
        }
        // Shuffles of bytes cost an instruction a register that they draw from.
        const uint64_t registers = (loaded + vector_bytes_ - 1) / vector_bytes_;
        return unit < 4 && registers > 1 &&
               registers * request_.count > lanes_ * ((lane_bytes_ + 3) / 4) / 2;
    }

    // Units are words from each lane's first element on.
    void TakeWords() {
        plan_.unit_bytes = 4;
        plan_.count = lane_bytes_ / 4;
        plan_.skipped_bytes = 0;
        overhang_bytes_ = 0;
        plan_.align = request_.element_bytes;
        row().lowest = lowest_;
    }

    void AddPieces(uint32_t lanes) {
        for (uint32_t lane = 0; lane < lanes_; lane += lanes) {
            plan_.moves.push_back({.offset = ByteOf(lane),
                                   .count = lanes * static_cast<uint32_t>(plan_.count),
                                   .at = lane * static_cast<uint32_t>(plan_.count)});
        }
        for (size_t i = 0; i < plan_.count; ++i) {
            for (uint32_t lane = 0; lane < lanes_; ++lane) {
                plan_.shuffle.push_back(static_cast<int>(lane * plan_.count + i));
            }
        }
    }

    // Far apart, each lane's words are moved by themselves, if it is worth it.
    bool Transpose() {
        const bool fits = request_.element_bytes <= 4 && lane_bytes_ % 4 == 0 && lane_bytes_ >= 8 &&
                          lane_bytes_ / 4 <= kMaxTransposedWords;
        if (fits) {
            plan_.method = Method::kTransposed;
            TakeWords();
            AddPieces(1);
            plan_.is_packed = request_.is_store || std::has_single_bit(plan_.count);
        }
        return fits;
    }

    // Elements that make up whole words of each lane, neighbouring lanes' side by side: how many
    // lanes have theirs in one piece, a power of two; 0 if that is too little. The pieces of one
    // length go where words of memory with gaps would have to be shuffled, or narrow elements.
    uint32_t LanesOfPieces() const {
        const bool narrow = plan_.unit_bytes < 4;
        const bool words =
            request_.element_bytes == 4 && plan_.layout.elements != lanes_ * request_.count;
        if (memory_.is_global || (!narrow && !words) || lane_bytes_ % 4 != 0 ||
            lane_bytes_ / 4 > kMaxPieceWords || !std::has_single_bit(lane_bytes_)) {
            return 0;
        }
        uint32_t piece = lanes_ / 2;
        for (uint32_t lane = 0; lane + 1 < lanes_; ++lane) {
            if (ByteOf(lane + 1) != ByteOf(lane) + lane_bytes_) {
                piece = std::min(piece, 1u << std::countr_zero(lane + 1));
            }
        }
        const uint64_t least = narrow ? kLeastPieceBytes : vector_bytes_;
        return piece > 1 && piece * lane_bytes_ >= least ? piece : 0;
    }

    void FindPrefetches() {
        if (!memory_.prefetches || request_.is_masked) {
            return;
        }
        const bool each_lane =
            request_.is_store || (memory_.each_lane && lane_bytes_ >= kLeastPrefetchedLaneBytes);
        if (each_lane && plan_.method == Method::kTransposed) {
            std::set<uint64_t> lines;
            for (uint32_t lane = 0; lane < lanes_; ++lane) {
                lines.insert(ByteOf(lane) / kCacheLineBytes * kCacheLineBytes);
            }
            plan_.prefetches.assign(lines.begin(), lines.end());
        } else if (prefetched_ >= kLeastPrefetchedBytes) {
            for (uint64_t line = 0; line < prefetched_; line += kCacheLineBytes) {
                plan_.prefetches.push_back(line);
            }
        }
    }

    // --- rows at a symbolic stride ---

    bool PlanRows() {
        const bool is_store = request_.is_store;
        if (is_store && request_.element_bytes < 4 && !pattern_.has_rows()) {
            return false;  // shuffles of bytes are dear, and a pattern's words are packed above
        }
        auto layout = MakeLaneLayout(pattern_, request_.element_bytes, request_.count,
                                     is_store ? 0 : kRunGapBytes);
        if (!layout || !(is_store ? WorthStoringRuns(*layout, lanes_, request_.count)
                                  : WorthLoadingRuns(*layout, lanes_, request_.count))) {
            return false;
        }
        plan_.method = Method::kRows;
        plan_.layout = std::move(*layout);
        if (!PlanBoundsOfRows()) {
            return false;
        }
        if (is_store) {
            const auto width = static_cast<uint32_t>(vector_bytes_ / request_.element_bytes);
            AddStores(std::max(width, 1u));
            // Shuffled masks cost more than the values.
            plan_.needs_active = request_.is_masked;
        } else {
            AddLoads();
            plan_.is_packed = PackableRun(request_.count) && IsInOrder() &&
                              std::has_single_bit(plan_.moves.size()) &&
                              std::ranges::all_of(plan_.moves, [&](const AccessPlan::Move& move) {
                                  return move.count == plan_.moves[0].count;
                              });
        }
        return true;
    }

    bool PlanBoundsOfRows() {
        const std::vector<LayoutRow>& rows = plan_.layout.rows;
        const auto distance = static_cast<uint64_t>(rows.back().multiple - rows.front().multiple);
        if (distance > kMaxRowDistance || pattern_.narrow_scale > kMaxRowDistance) {
            return false;
        }
        if (memory_.is_global) {
            plan_.needs_active = request_.is_masked;
            return true;
        }
        if (memory_.bounds == Bounds::kClamped) {
            plan_.is_proven = IsProven();
            return plan_.is_proven;
        }
        plan_.needs_inside = memory_.bounds != Bounds::kTrusted || request_.is_masked;
        int64_t begin = 0;
        int64_t end = 0;
        for (const LayoutRow& row : rows) {
            const int64_t first = pattern_.groups.empty() ? row.lowest - rows[0].lowest : 0;
            begin = std::min(begin, first);
            end = std::max(end, first + static_cast<int64_t>(row.span));
        }
        plan_.span_begin = begin;
        plan_.span_bytes = static_cast<uint64_t>(end - begin);
        const bool one_test = plan_.needs_inside && pattern_.groups.empty() && rows.size() > 1;
        return !one_test || (begin >= -kMaxRowOffset && end <= kMaxRowOffset);
    }

    // --- runs of both ---

    // A run of any length is one load, or two of one type that overlap.
    void AddLoads() {
        const LaneLayout& layout = plan_.layout;
        plan_.shuffle.assign(plan_.count * lanes_, -1);
        uint32_t loaded = 0;
        for (uint32_t r = 0; r < layout.rows.size(); ++r) {
            for (const RowRun& run : layout.rows[r].runs) {
                const auto part = static_cast<uint32_t>(std::bit_floor(run.count));
                const auto rest = static_cast<uint32_t>(run.count) - part;
                plan_.moves.push_back({r, run.first * plan_.unit_bytes, part, loaded});
                if (rest != 0) {
                    plan_.moves.push_back(
                        {r, (run.first + rest) * plan_.unit_bytes, part, loaded + part});
                }
                ForUnitsOf(r, run, [&](uint32_t unit, size_t of_lane) {
                    plan_.shuffle[of_lane] =
                        static_cast<int>(loaded + (unit < part ? unit : unit + part - rest));
                });
                loaded += rest == 0 ? part : 2 * part;
            }
        }
    }

    // Each run starts where it does not cross a register of `width` units that it could fit into.
    void AddStores(uint32_t width) {
        const LaneLayout& layout = plan_.layout;
        std::vector<int>& shuffle = plan_.shuffle;
        for (uint32_t r = 0; r < layout.rows.size(); ++r) {
            for (const RowRun& run : layout.rows[r].runs) {
                const uint64_t slot = std::min<uint64_t>(std::bit_ceil(run.count), width);
                const size_t start = (shuffle.size() + slot - 1) / slot * slot;
                shuffle.resize(start + run.count, -1);
                for (uint64_t i = 0; i < run.count; i += width) {
                    plan_.moves.push_back(
                        {r, (run.first + i) * plan_.unit_bytes,
                         static_cast<uint32_t>(std::min<uint64_t>(width, run.count - i)),
                         static_cast<uint32_t>(start + i)});
                }
                ForUnitsOf(r, run, [&](uint32_t unit, size_t of_lane) {
                    shuffle[start + unit] = static_cast<int>(of_lane);
                });
            }
        }
    }

    // Moves and shuffles of a register each.
    void FindCost() {
        const auto registers = [&](uint64_t units) {
            return (units * plan_.unit_bytes + vector_bytes_ - 1) / vector_bytes_;
        };
        uint64_t cost = 0;
        for (const AccessPlan::Move& move : plan_.moves) {
            cost += registers(move.count);
        }
        const uint64_t all = registers(lanes_) * plan_.count;
        if (plan_.method == Method::kTransposed) {
            cost += all * static_cast<uint64_t>(std::bit_width(plan_.count - 1));
        } else if (request_.is_store || plan_.method == Method::kPieces) {
            cost += plan_.count == 1 && IsInOrder() ? 0 : all;
        } else if (plan_.count != 1 || !IsInOrder()) {
            // Each vector draws from the moves that its lanes' units lie in.
            for (size_t i = 0; i < plan_.count; ++i) {
                const std::span units = std::span(plan_.shuffle).subspan(i * lanes_, lanes_);
                for (const AccessPlan::Move& move : plan_.moves) {
                    const bool draws = std::ranges::any_of(units, [&](int unit) {
                        return static_cast<uint32_t>(unit) - move.at < move.count;
                    });
                    cost += draws ? registers(lanes_) : 0;
                }
            }
        }
        plan_.cost = static_cast<double>(cost);
    }

    // Calls visit(unit of the run, unit of the lane * lanes + lane) for all that lie in the run.
    template <typename Visit>
    void ForUnitsOf(uint32_t row, const RowRun& run, Visit visit) const {
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            for (size_t i = 0; i < plan_.count && plan_.layout.row[lane] == row; ++i) {
                const uint64_t unit = plan_.layout.first[lane] + i - run.first;
                if (unit < run.count) {
                    visit(static_cast<uint32_t>(unit), i * lanes_ + lane);
                }
            }
        }
    }

    // The moved units are the lanes' elements, lane after lane and without gaps.
    bool IsInOrder() const {
        const AccessPlan::Move& last = plan_.moves.back();
        if (last.at + last.count != lanes_ * plan_.count) {
            return false;
        }
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            for (size_t i = 0; i < plan_.count; ++i) {
                const size_t of_lane = i * lanes_ + lane;
                const size_t at = lane * plan_.count + i;
                const bool same = request_.is_store
                                      ? plan_.shuffle[at] == static_cast<int>(of_lane)
                                      : plan_.shuffle[of_lane] == static_cast<int>(at);
                if (!same) {
                    return false;
                }
            }
        }
        return true;
    }

    bool IsProven() const {
        return pattern_.max <= memory_.known_size &&
               pattern_.max + lane_bytes_ <= memory_.known_size && request_.all_lanes_exist;
    }
    uint64_t ByteOf(uint32_t lane) const {
        return static_cast<uint64_t>(pattern_.offsets[lane] - lowest_);
    }
    LayoutRow& row() { return plan_.layout.rows[0]; }

    const AccessRequest& request_;
    const LanePattern& pattern_;
    const AccessMemory& memory_;
    const uint32_t lanes_;
    const uint64_t vector_bytes_;
    const uint64_t lane_bytes_;
    int64_t lowest_ = 0;        // of the lanes' offsets
    uint64_t reach_bytes_ = 0;  // from the lowest to the end of the highest lane's elements
    AccessPlan plan_;
    uint64_t overhang_bytes_ = 0;  // read behind the last element; may lie on another page
    uint64_t prefetched_ = 0;      // bytes
};

}  // namespace

AccessPlan PlanAccess(const AccessRequest& request) {
    return Planner(request).Run();
}

bool PackableRun(size_t count) {
    return count >= 2 && count <= kMostPackedElements && std::has_single_bit(count);
}

AccessForm FormOf(const AccessPlan& plan) {
    switch (plan.method) {
        case Method::kOneAddress:
            return AccessForm::kScalar;
        case Method::kRows:
            return AccessForm::kStrided;
        case Method::kLanes:
            return AccessForm::kGather;
        default:
            return plan.is_contiguous ? AccessForm::kContiguous : AccessForm::kRuns;
    }
}

AccessCheck CheckOf(const AccessPlan& plan) {
    if (plan.has_fallback()) {
        return AccessCheck::kSpan;
    }
    if (plan.is_moved) {
        return AccessCheck::kClamped;
    }
    return plan.is_proven ? AccessCheck::kProven : AccessCheck::kNone;
}

}  // namespace fornax::kernel
