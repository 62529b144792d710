// Plans as one line of text.
#include <fmt/format.h>

#include "compiler/kernel/access/access_plan.h"

namespace fornax::kernel {

namespace {

constexpr size_t kMaxMoves = 4;
constexpr size_t kMaxSeries = 6;

const char* MethodName(AccessPlan::Method method) {
    switch (method) {
        case AccessPlan::Method::kOneAddress:
            return "one address";
        case AccessPlan::Method::kRuns:
            return "runs";
        case AccessPlan::Method::kPieces:
            return "pieces";
        case AccessPlan::Method::kTransposed:
            return "transposed";
        case AccessPlan::Method::kRows:
            return "rows";
        case AccessPlan::Method::kLanes:
            return "lane by lane";
    }
    return "?";
}

// "16 x 4 bytes at 0", "8 x 4 bytes at 0, 128", "8 x 4 bytes at row 0 + 0, row 1 + 0"
std::string MovesText(const AccessPlan& plan) {
    std::string text;
    for (size_t i = 0; i < plan.moves.size(); ++i) {
        const AccessPlan::Move& move = plan.moves[i];
        if (i == kMaxMoves) {
            return text + fmt::format(", ... {} in all", plan.moves.size());
        }
        if (i == 0 || move.count != plan.moves[i - 1].count) {
            text += fmt::format("{}{} x {} bytes at ", i == 0 ? ": " : ", ", move.count,
                                plan.unit_bytes);
        } else {
            text += ", ";
        }
        if (plan.layout.rows.size() > 1) {
            text += fmt::format("row {} + ", move.row);
        }
        text += std::to_string(move.offset);
    }
    return text;
}

// Arithmetic series: "0..15", "0..60/4", "3x8" for eight times 3.
std::string SeriesText(const std::vector<int>& numbers) {
    std::string text;
    size_t series = 0;
    for (size_t i = 0; i < numbers.size();) {
        if (series++ == kMaxSeries) {
            return text + " ...";
        }
        size_t end = i + 1;
        const int step = end < numbers.size() ? numbers[end] - numbers[i] : 0;
        while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) {
            ++end;
        }
        if (step != 0 && end - i < 3) {
            end = i + 1;
        }
        text += fmt::format(" {}", numbers[i]);
        if (end - i > 1 && step == 0) {
            text += fmt::format("x{}", end - i);
        } else if (end - i > 1) {
            text += fmt::format("..{}", numbers[end - 1]);
            text += step == 1 ? "" : fmt::format("/{}", step);
        }
        i = end;
    }
    return text;
}

}  // namespace

std::string Text(const AccessPlan& plan) {
    std::string text = MethodName(plan.method) + MovesText(plan);
    if (plan.skipped_bytes != 0) {
        text += fmt::format("; {} bytes skipped", plan.skipped_bytes);
    }
    if (plan.is_contiguous) {
        text += "; in order";
    } else if (plan.method == AccessPlan::Method::kRuns ||
               plan.method == AccessPlan::Method::kRows) {
        text += "; shuffled" + SeriesText(plan.shuffle);
    }
    if (plan.is_packed) {
        text += "; can stay packed";
    }
    if (plan.is_masked) {
        text += "; masked";
    }
    if (plan.is_proven) {
        text += "; proven inside";
    }
    if (plan.is_moved) {
        text += fmt::format("; {} bytes moved inside", plan.span_bytes);
    }
    if (plan.has_fallback()) {
        const std::string inside = fmt::format("{} bytes are inside", plan.span_bytes);
        text += fmt::format("; if {}{}{}, else lane by lane", plan.needs_inside ? inside : "",
                            plan.needs_inside && plan.needs_active ? " and " : "",
                            plan.needs_active ? "all lanes are active" : "");
    }
    if (!plan.prefetches.empty()) {
        text += fmt::format("; prefetched lines: {}", plan.prefetches.size());
    }
    return text + fmt::format("; cost {}", plan.cost);
}

}  // namespace fornax::kernel
