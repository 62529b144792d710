// Every text about modelled times carries their stamp.
#include "tools/fornax/npu_report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/printable.h"
#include "npu/description/fields.h"
#include "tools/fornax/text_table.h"
#include "tools/replay/profile.h"

namespace fornax::tool {
namespace {

using Align = TextTable::Align;

constexpr uint64_t kMostDrawnCores = 4;

// A frame around lines of one width.
std::string Framed(const std::vector<std::string>& lines, size_t indent) {
    size_t width = 0;
    for (const std::string& line : lines) {
        width = std::max(width, line.size());
    }
    const std::string margin(indent, ' ');
    const std::string edge = margin + "+" + std::string(width + 2, '-') + "+\n";
    std::string text = edge;
    for (const std::string& line : lines) {
        text += fmt::format("{}| {:<{}} |\n", margin, line, width);
    }
    return text + edge;
}

std::string BoundsTable(const runtime::Modelled& modelled, npu::Cycles all) {
    std::array<npu::Cycles, npu::kBounds> cycles = {};
    std::array<size_t, npu::kBounds> steps = {};
    for (const npu::RecordTime& time : modelled.result.records) {
        cycles[static_cast<size_t>(time.bound)] += time.ended - time.ready;
        ++steps[static_cast<size_t>(time.bound)];
    }
    TextTable table({"bound by", "steps", "us", "%"},
                    {Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
    for (uint32_t i = 0; i < npu::kBounds; ++i) {
        if (steps[i] > 0) {
            const double us =
                modelled.description.Nanoseconds(static_cast<double>(cycles[i])) / 1e3;
            table.AddRow({std::string(npu::kBoundNames[i]), fmt::format("{}", steps[i]),
                          fmt::format("{:.1f}", us), Percent(cycles[i], all)});
        }
    }
    return table.Render(2);
}

std::string RecordsTable(const runtime::Modelled& modelled, npu::Cycles all, size_t top) {
    const npu::Description& description = modelled.description;
    const std::vector<npu::RecordTime>& times = modelled.result.records;
    std::vector<size_t> order(times.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // The longest first; of equal ones the earlier.
    std::ranges::sort(order, {},
                      [&](size_t i) { return std::pair(~(times[i].ended - times[i].ready), i); });
    TextTable table(
        {"us", "%", "bound by", "cores", "% MMA", "% DRAM", "KiB DRAM", "scratchpad", "node"},
        {Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
         Align::kRight, Align::kLeft, Align::kLeft});
    for (size_t row = 0; row < std::min(top, order.size()); ++row) {
        const npu::RecordTime& time = times[order[row]];
        const npu::Cycles cycles = time.ended - time.ready;
        const double ns = description.Nanoseconds(static_cast<double>(cycles));
        const npu::Cycles units =
            cycles * description.cores.count() * std::max<uint64_t>(1, description.matrix.units);
        const auto dram = static_cast<double>(time.cost.traffic.dram());
        table.AddRow(
            {fmt::format("{:.1f}", ns / 1e3), Percent(cycles, all),
             std::string(npu::kBoundNames[static_cast<size_t>(time.bound)]),
             fmt::format("{}", time.cost.cores),
             time.cost.busy.matrix == 0 ? "" : Percent(time.cost.busy.matrix, units),
             ns > 0 ? fmt::format("{:.1f}", 100 * dram / ns / description.dram.bandwidth_gbs) : "",
             fmt::format("{:.1f}", dram / 1024),
             std::string(npu::kGrantStepNames[static_cast<size_t>(time.grant.step)]),
             Printable(modelled.plan.records[order[row]].name())});
    }
    std::string text = table.Render(2);
    if (times.size() > top) {
        text += fmt::format("  and {} steps more\n", times.size() - top);
    }
    return text;
}

// What a reader has to know to believe the numbers.
std::string Notes(const runtime::Modelled& modelled) {
    std::string text;
    uint64_t macs = 0;
    size_t products = 0;
    for (const npu::RecordTime& time : modelled.result.records) {
        macs += time.cost.macs_on_vector_units;
        products += time.cost.macs_on_vector_units > 0 ? 1 : 0;
    }
    if (products > 0) {
        text += fmt::format(
            "  Steps with products of a type that the matrix units have no rate for: {} ({:.1f} "
            "million multiply-accumulates).\n  They are on the vector units; --precision medium "
            "makes bf16 of products with constant f32 matrices.\n",
            products, static_cast<double>(macs) / 1e6);
    }
    if (modelled.plan.host_steps > 0) {
        text += fmt::format("  Steps on the host, which are not in these times: {}.\n",
                            modelled.plan.host_steps);
    }
    if (modelled.plan.unknown_steps > 0) {
        text += fmt::format("  Steps of unknown sizes, which are not in these times: {}.\n",
                            modelled.plan.unknown_steps);
    }
    return text;
}

}  // namespace

std::string MachinePicture(const npu::Description& description) {
    const npu::Description& d = description;
    const uint64_t clusters = d.cores.clusters, cores = d.cores.per_cluster;
    std::string text =
        Framed({fmt::format("host ring: doorbell {} ns", d.command_processor.doorbell_ns),
                fmt::format("host link {} GB/s, {} ns", d.host_link.bandwidth_gbs,
                            d.host_link.latency_ns)},
               2);
    text += "          |\n";
    text += Framed({fmt::format("command processor: decode {} ns, allocation {} ns, drain {} ns",
                                d.command_processor.decode_ns, d.command_processor.allocation_ns,
                                d.command_processor.drain_ns)},
                   2);
    text += "          |\n";
    std::vector<std::string> core = {
        fmt::format("{} cluster{} of {} core{} at {} GHz; of each core:", clusters,
                    clusters == 1 ? "" : "s", cores, cores == 1 ? "" : "s", d.cores.clock_ghz),
        fmt::format("  matrix       {} x {} x {}, {}; {:.4g} int8, {:.4g} f16 TOPS in all",
                    d.matrix.units, d.matrix.rows, d.matrix.columns,
                    npu::kDataflowNames[static_cast<size_t>(d.matrix.dataflow)],
                    d.PeakTops(npu::MatrixType::kInt8), d.PeakTops(npu::MatrixType::kF16)),
        fmt::format("  vector       {} x {} bit", d.vector.units, d.vector.bits),
        d.special.unit == npu::SpecialUnit::kOwn
            ? fmt::format("  special      {} lanes", d.special.lanes)
            : fmt::format("  special      {} lanes of the vector units", d.special.lanes),
        fmt::format("  scalar       {} cycles an operation", d.scalar.interval),
        fmt::format("  scratchpad   {} in {} banks, {}", FormatBytes(d.scratchpad.bytes),
                    d.scratchpad.banks,
                    npu::kScratchpadPolicyNames[static_cast<size_t>(d.scratchpad.policy)]),
        fmt::format("  DMA          {} x {} GB/s", d.dma.engines, d.dma.port_gbs)};
    text += Framed(core, 2);
    std::string lines = "     ";
    for (uint64_t i = 0; i < std::min(d.cores.count(), kMostDrawnCores); ++i) {
        lines += "     |";
    }
    text += lines + (d.cores.count() > kMostDrawnCores ? "  ...\n" : "\n");
    text += Framed(
        {fmt::format("network {} GB/s, {} ns", d.network.bandwidth_gbs, d.network.latency_ns)}, 2);
    text += "          |\n";
    if (d.cache.bytes > 0) {
        text += Framed({fmt::format("cache {} KiB", d.cache.bytes / 1024)}, 2) + "          |\n";
    }
    text += Framed({fmt::format("DRAM {} GB/s, {} ns, bursts of {} bytes", d.dram.bandwidth_gbs,
                                d.dram.latency_ns, d.dram.burst_bytes)},
                   2);
    return text;
}

std::string DescribeMachine(const npu::Description& description) {
    std::string text = fmt::format("{}, description {}, model {}\n\n", description.name,
                                   description.Hash().ToHex(), npu::kModelVersion);
    text += MachinePicture(description) + "\n";
    TextTable table({"key", "value", "unit", "meaning"},
                    {Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft});
    std::string_view last;
    for (const npu::Field& field : npu::Fields()) {
        if (!last.empty() && last != field.table) {
            table.AddRule();
        }
        last = field.table;
        table.AddRow({fmt::format("{}.{}", field.table, field.key),
                      npu::TextOf(field, field.get(description)), std::string(field.unit),
                      std::string(field.meaning)});
    }
    return text + table.Render(2);
}

std::string ModelledTable(const runtime::Modelled& modelled, size_t top) {
    const npu::ReplayResult& result = modelled.result;
    const npu::Description& description = modelled.description;
    npu::Cycles all = 0;  // of all records, which may overlap
    for (const npu::RecordTime& time : result.records) {
        all += time.ended - time.ready;
    }
    const double ns = description.Nanoseconds(static_cast<double>(result.total));
    const double driver_us = description.command_processor.driver_us;
    std::string text = fmt::format("  {}\n", npu::StampOf(description));
    text += fmt::format(
        "  {:.1f} us in {} dispatches, {:.1f} us of it the driver's; {:.1f} uJ, {:.2f} W\n",
        ns / 1e3, result.records.size(), driver_us, result.energy.total_nj() / 1e3,
        ns > 0 ? result.energy.total_nj() / ns : 0);
    text += fmt::format(
        "  DRAM {:.1f} KiB read, {:.1f} KiB written; {:.1f} KiB over-fetch, "
        "{:.1f} KiB spilt\n\n",
        static_cast<double>(result.traffic.dram_read) / 1024,
        static_cast<double>(result.traffic.dram_written) / 1024,
        static_cast<double>(result.traffic.over_fetch) / 1024,
        static_cast<double>(result.traffic.spill) / 1024);
    text += BoundsTable(modelled, all) + "\n" + UnitsTable(result) + "\n";
    text += RecordsTable(modelled, all, top);
    return text + Notes(modelled);
}

}  // namespace fornax::tool
