// Renders plans and predictions.
#include "tools/fornax/graph_report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

using Align = TextTable::Align;

constexpr size_t kMaxListedMistakes = 20;
constexpr size_t kLineWidth = 100;

std::string Summary(std::span<const size_t> predictions) {
    std::string out;
    size_t column = 0;
    for (size_t i = 0; i < predictions.size(); ++i) {
        const std::string text = fmt::format("{}", predictions[i]);
        if (column == 0) {
            const std::string index = fmt::format("  {:>6}  ", i);
            out += index;
            column = index.size();
        }
        out += text + " ";
        column += text.size() + 1;
        if (column + text.size() > kLineWidth || i + 1 == predictions.size()) {
            out.back() = '\n';
            column = 0;
        }
    }
    return out;
}

}  // namespace

std::string DispatchTable(const legacy_graph::Plan& plan, std::span<const double> nanoseconds) {
    const bool timed = nanoseconds.size() == plan.dispatches.size() && !nanoseconds.empty();
    const double total = std::accumulate(nanoseconds.begin(), nanoseconds.end(), 0.0);
    TextTable table(
        {"#", "nodes", "kernel", "grid", "workgroup", "barrier", "Mop", "KiB", "us", "%", "Gop/s"},
        {Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft,
         Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    for (size_t i = 0; i < plan.dispatches.size(); ++i) {
        const legacy_graph::PlanDispatch& dispatch = plan.dispatches[i];
        const auto operations = static_cast<double>(dispatch.operations);
        const auto bytes = static_cast<double>(dispatch.bytes_read + dispatch.bytes_written);
        std::vector<std::string> row = {
            fmt::format("{}", i),
            dispatch.name,
            std::string(legacy_graph::Kernel(dispatch.kernel).name),
            fmt::format("{}", fmt::join(dispatch.grid, "x")),
            fmt::format("{}x{}", dispatch.parameters[0], dispatch.parameters[1]),
            dispatch.barrier_before ? "before" : "",
            fmt::format("{:.2f}", operations / 1e6),
            fmt::format("{:.1f}", bytes / 1024)};
        if (timed) {
            row.push_back(fmt::format("{:.1f}", nanoseconds[i] / 1e3));
            row.push_back(fmt::format("{:.1f}", total > 0 ? 100 * nanoseconds[i] / total : 0));
            row.push_back(nanoseconds[i] > 0 ? fmt::format("{:.2f}", operations / nanoseconds[i])
                                             : "");
        }
        table.AddRow(std::move(row));
    }
    if (timed) {
        table.AddRule();
        table.AddRow({"", "total", "", "", "", "", "", "", fmt::format("{:.1f}", total / 1e3)});
    }
    return table.Render(2);
}

std::string MemoryTable(const legacy_graph::Plan& plan) {
    TextTable table(
        {"tensor", "kind", "type", "offset", "bytes", "steps"},
        {Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
    auto add_rows = [&](bool constants) {
        for (const legacy_graph::PlanTensor& tensor : plan.tensors) {
            if ((tensor.kind == legacy_graph::TensorKind::kConstant) == constants) {
                table.AddRow({tensor.name, std::string(legacy_graph::Name(tensor.kind)),
                              tensor.type.ToString(), fmt::format("{}", tensor.offset_bytes),
                              fmt::format("{}", tensor.type.size_bytes()),
                              fmt::format("{}..{}", tensor.first_step, tensor.last_step)});
            }
        }
    };
    add_rows(true);
    table.AddRule();
    add_rows(false);
    std::string out = table.Render(2);
    const auto arena = static_cast<double>(plan.arena_bytes);
    const auto unshared = static_cast<double>(plan.unshared_bytes());
    fmt::format_to(std::back_inserter(out),
                   "  weights {}; arena {} for tensors of {} in all ({:.0f} %); no arena can be "
                   "smaller than {}\n",
                   FormatBytes(plan.weights.size()), FormatBytes(plan.arena_bytes),
                   FormatBytes(plan.unshared_bytes()), unshared > 0 ? 100 * arena / unshared : 100,
                   FormatBytes(plan.peak_live_bytes));
    return out;
}

std::string PredictionReport(const HostTensor& scores, std::span<const int64_t> labels) {
    const std::vector<size_t> predictions = ArgMax(scores);
    std::string out = fmt::format("predictions ({} samples)\n", predictions.size());
    out += Summary(predictions);
    if (labels.empty()) {
        return out;
    }
    const size_t classes = scores.floats.size() / std::max<size_t>(predictions.size(), 1);
    size_t right = 0;
    std::vector<std::string> mistakes;
    for (size_t i = 0; i < predictions.size(); ++i) {
        if (static_cast<int64_t>(predictions[i]) == labels[i]) {
            ++right;
        } else {
            mistakes.push_back(fmt::format("  sample {} is {}, taken for {} ({:.3f})\n", i,
                                           labels[i], predictions[i],
                                           scores.floats[i * classes + predictions[i]]));
        }
    }
    for (size_t i = 0; i < std::min(mistakes.size(), kMaxListedMistakes); ++i) {
        out += mistakes[i];
    }
    if (mistakes.size() > kMaxListedMistakes) {
        fmt::format_to(std::back_inserter(out), "  and {} more\n",
                       mistakes.size() - kMaxListedMistakes);
    }
    fmt::format_to(std::back_inserter(out), "accuracy {:.2f} % ({} of {})\n",
                   100.0 * static_cast<double>(right) / static_cast<double>(predictions.size()),
                   right, predictions.size());
    return out;
}

}  // namespace fornax::tool
