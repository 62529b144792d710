// Numbers come from the plan's own estimates (compiler/graph/loop/costs.h).
#include "tools/fornax/plan_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/file.h"
#include "base/printable.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "tools/fornax/run_report.h"
#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

using Align = TextTable::Align;

constexpr size_t kMaxListedReaders = 3;

std::string_view NameOf(graph::loop::Mapping mapping) {
    constexpr std::string_view kNames[] = {"flat", "row", "product", "attention"};
    const auto index = static_cast<size_t>(mapping);
    return index < std::size(kNames) ? kNames[index] : "other";
}

double BytesOf(const graph::TensorType& type, const graph::Bindings& sizes) {
    return static_cast<double>(type.shape.Volume().Evaluate(sizes).value_or(0)) *
           graph::BytesOf(type.element);
}

// What a step did, or several together.
struct Work {
    double nanoseconds = 0;
    double operations = 0;
    double bytes = 0;
    size_t steps = 0;

    void Add(const Work& other) {
        nanoseconds += other.nanoseconds;
        operations += other.operations;
        bytes += other.bytes;
        steps += other.steps;
    }
};

struct ProfileRow {
    Work work;
    std::string node;
    std::string kernel;
    std::string mapping;
};

// The cells of a rate and its share of a limit; empty where there is nothing to tell.
void AddRate(double amount, double nanoseconds, double limit, std::vector<std::string>& cells) {
    const bool known = amount > 0 && nanoseconds > 0;
    cells.push_back(known ? fmt::format("{:.1f}", amount / nanoseconds) : "");
    cells.push_back(known && limit > 0 ? fmt::format("{:.0f}", 100 * amount / nanoseconds / limit)
                                       : "");
}

std::vector<std::string> Cells(const Work& work, double total, const bench::HostLimits& limits) {
    std::vector<std::string> cells = {
        fmt::format("{:.1f}", work.nanoseconds / 1e3),
        fmt::format("{:.1f}", total > 0 ? 100 * work.nanoseconds / total : 0)};
    AddRate(work.operations, work.nanoseconds, limits.fma_all_threads_gflops, cells);
    AddRate(work.bytes, work.nanoseconds, limits.copy_gbs, cells);
    return cells;
}

std::vector<ProfileRow> RowsOf(const graph::Plan& plan,
                               const graph::Bindings& sizes,
                               const std::vector<runtime::StepTime>& times) {
    std::vector<ProfileRow> rows;
    for (const runtime::StepTime& time : times) {
        ProfileRow& row = rows.emplace_back();
        row.work.nanoseconds = time.nanoseconds;
        row.work.steps = 1;
        const graph::PlanStep& step = plan.steps[time.step];
        if (const auto* host = std::get_if<graph::HostStep>(&step)) {
            row.node = Printable(host->name);
            row.mapping = "host";
            continue;
        }
        const auto& dispatch = std::get<graph::DispatchStep>(step);
        const graph::PlanKernel& kernel = plan.kernels[dispatch.kernel.value()];
        row.node = Printable(dispatch.name);
        row.kernel =
            fmt::format("{} {}", dispatch.kernel.value(), Printable(graph::NameOf(kernel)));
        row.mapping = kernel.of_template ? "template" : NameOf(kernel.loop.mapping);
        const auto number = [&](const graph::Expr& expr) {
            return static_cast<double>(expr.Evaluate(sizes).value_or(0));
        };
        row.work.operations = number(dispatch.operations);
        row.work.bytes = number(dispatch.bytes_read) + number(dispatch.bytes_written);
    }
    return rows;
}

std::string TotalsTable(const std::vector<ProfileRow>& rows,
                        double total,
                        const bench::HostLimits& limits) {
    std::map<std::string, Work> totals;
    for (const ProfileRow& row : rows) {
        totals[row.mapping].Add(row.work);
    }
    TextTable table({"mapping", "steps", "us", "%", "Gop/s", "% FMA", "GB/s", "% copy"},
                    {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                     Align::kRight, Align::kRight, Align::kRight});
    Work all;
    for (const auto& [mapping, work] : totals) {
        std::vector<std::string> cells = {mapping, fmt::format("{}", work.steps)};
        std::ranges::move(Cells(work, total, limits), std::back_inserter(cells));
        table.AddRow(std::move(cells));
        all.Add(work);
    }
    table.AddRule();
    std::vector<std::string> cells = {"all", fmt::format("{}", all.steps)};
    std::ranges::move(Cells(all, total, limits), std::back_inserter(cells));
    table.AddRow(std::move(cells));
    return table.Render(2);
}

}  // namespace

std::string BoundaryTable(const std::vector<graph::Boundary>& boundaries,
                          const graph::Bindings& sizes) {
    TextTable table(
        {"node", "operation", "kept", "bytes", "read by", "because"},
        {Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft});
    for (const graph::Boundary& boundary : boundaries) {
        std::string readers;
        for (size_t i = 0; i < std::min(boundary.readers.size(), kMaxListedReaders); ++i) {
            readers += fmt::format("{}{}", i == 0 ? "" : ", ", boundary.readers[i]);
        }
        if (boundary.readers.size() > kMaxListedReaders) {
            readers += fmt::format(" and {} more", boundary.readers.size() - kMaxListedReaders);
        }
        table.AddRow({Printable(boundary.node), boundary.operation, boundary.type.ToString(),
                      fmt::format("{:.0f}", BytesOf(boundary.type, sizes)), Printable(readers),
                      Printable(boundary.reason)});
    }
    return table.Render(2);
}

std::string NodeList(const std::vector<graph::Boundary>& boundaries) {
    std::string text;
    for (const graph::Boundary& boundary : boundaries) {
        for (const std::string& node : boundary.nodes) {
            text += fmt::format("{}\t{}\n", Printable(node), Printable(boundary.node));
        }
    }
    return text;
}

std::string ProfileTable(const graph::Plan& plan,
                         const graph::Bindings& sizes,
                         const std::vector<runtime::StepTime>& times,
                         const bench::HostLimits& limits,
                         size_t top) {
    std::vector<ProfileRow> rows = RowsOf(plan, sizes, times);
    double total = 0;
    for (const ProfileRow& row : rows) {
        total += row.work.nanoseconds;
    }
    std::string text =
        TotalsTable(rows, total, limits) +
        fmt::format("  limits of {} threads: {:.0f} Gop/s of FMA ({}), copies {:.1f} GB/s\n\n",
                    limits.threads, limits.fma_all_threads_gflops, limits.vector_unit,
                    limits.copy_gbs);
    std::ranges::sort(rows, [](const ProfileRow& a, const ProfileRow& b) {
        return a.work.nanoseconds > b.work.nanoseconds;
    });
    TextTable table({"us", "%", "Gop/s", "% FMA", "GB/s", "% copy", "mapping", "kernel", "node"},
                    {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                     Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft});
    for (size_t i = 0; i < std::min(rows.size(), top); ++i) {
        std::vector<std::string> cells = Cells(rows[i].work, total, limits);
        cells.insert(cells.end(), {rows[i].mapping, rows[i].kernel, rows[i].node});
        table.AddRow(std::move(cells));
    }
    text += table.Render(2);
    if (rows.size() > top) {
        text += fmt::format("  and {} steps more\n", rows.size() - top);
    }
    return text;
}

Status WritePlanReport(const std::string& directory, const PlanReport& report) {
    FORNAX_RETURN_IF_ERROR(CreateDirectories(directory, 0777));
    const std::pair<const char*, std::string> files[] = {
        {"nodes.txt", NodeList(report.boundaries)},
        {"boundaries.txt", BoundaryTable(report.boundaries, report.sizes)},
        {"plan.txt", graph::ToText(report.plan)},
        {"memory.txt", MemorySummary(report.plan, report.memory)},
        {"profile.txt", report.profile},
    };
    for (const auto& [name, text] : files) {
        if (!text.empty()) {
            FORNAX_RETURN_IF_ERROR(WriteOutputFile(fmt::format("{}/{}", directory, name), text));
        }
    }
    return OkStatus();
}

}  // namespace fornax::tool
