// The host's cores run kernels as the cores of an NPU do, with another machine's words:
//
//   vector unit         the vector instructions, at the measured rate of fused multiply-adds
//   special functions   the same instructions: what an exponential of a kernel takes
//   matrix unit         the int8 dot product of four bytes a lane, if there is one
//   scratchpad          the second level cache by size, the first by bandwidth
//   cache               what all cores share, of the size and bandwidth that triads see
//   launch              a submission and a dispatch of the Fornax driver
//
// Latencies are parts of the measured launch and bandwidths, and 0 in the description.
#include "tools/fornax/npu_host.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "npu/description/fields.h"
#include "npu/description/read.h"
#include "tools/bench/device.h"
#include "tools/bench/host_limits.h"
#include "tools/bench/workload.h"

namespace fornax::tool {
namespace {

// The median of so many runs, after some that do not count: the optimized tier comes meanwhile.
Result<double> MedianSeconds(bench::Device& device,
                             bench::WorkloadFactory create,
                             uint32_t size,
                             int runs) {
    FORNAX_ASSIGN_OR_RETURN(const std::unique_ptr<bench::Workload> workload, create(device, size));
    std::vector<double> seconds;
    for (int run = 0; run < 2 * runs; ++run) {
        FORNAX_ASSIGN_OR_RETURN(const double of_run, workload->Run());
        if (run >= runs) {
            seconds.push_back(of_run);
        }
    }
    std::ranges::nth_element(seconds, seconds.begin() + runs / 2);
    return seconds[runs / 2];
}

double Rounded(double value) {
    return value == 0 ? 0 : std::stod(fmt::format("{:.3e}", value));
}

uint64_t BytesOfCoresCache() {
    const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::bit_floor(static_cast<uint64_t>(std::max(bytes, 256L << 10)));
}

}  // namespace

Result<npu::Description> MeasureHostDescription(bool quick) {
    const bench::HostLimits before = bench::MeasureHostLimits(quick);
    FORNAX_ASSIGN_OR_RETURN(const std::unique_ptr<bench::Device> device,
                            bench::Device::Create(/*validate=*/false));
    const uint32_t chains = quick ? 4096 : 65536;
    const int runs = quick ? 5 : 25;
    const int submissions = quick ? 20 : 500;
    constexpr uint32_t kDispatches = 1000;
    FORNAX_ASSIGN_OR_RETURN(const double exponentials,
                            MedianSeconds(*device, bench::CreateExponentials, chains, runs));
    FORNAX_ASSIGN_OR_RETURN(const double divisions,
                            MedianSeconds(*device, bench::CreateDivisions, chains, runs));
    FORNAX_ASSIGN_OR_RETURN(const double submission,
                            MedianSeconds(*device, bench::CreateDispatches, 1, submissions));
    FORNAX_ASSIGN_OR_RETURN(const double dispatches,
                            MedianSeconds(*device, bench::CreateDispatches, kDispatches, runs));

    // Others may have taken a part of the bandwidth for a while.
    const bench::HostLimits limits = bench::BestOf(before, bench::MeasureHostLimits(quick));
    const bench::HostUnits units = bench::MeasureHostUnits(quick, limits);

    npu::Description host;
    host.name = "host";
    const double threads = limits.threads;
    const double clock = Rounded(units.clock_ghz);
    const uint32_t lanes = units.vector_bits / 32;
    const double vectors = threads * lanes;
    host.cores = {.clock_ghz = clock,
                  .clusters = static_cast<uint64_t>(limits.threads),
                  .per_cluster = 1,
                  .workgroup_slots = 1,
                  .overlap = 1};
    host.matrix = {.units = units.int8_gmacs > 0 ? 1U : 0U,
                   .rows = 4,
                   .columns = lanes,
                   .dataflow = npu::Dataflow::kBest,
                   .rate_int8 = Rounded(units.int8_gmacs / (vectors * 4 * clock))};
    // Cycles between two vectors; each function of a chain comes with one simple operation.
    const double simple = vectors * clock / (limits.fma_all_threads_gflops / 2);
    const double functions = 1.0 * chains * bench::kUnitChains * bench::kUnitSteps;
    const auto interval = [&](double seconds) {
        return Rounded(std::max(0.01, seconds * 1e9 * clock * vectors / functions - simple));
    };
    host.vector = {.units = 1,
                   .bits = units.vector_bits,
                   .simple_interval = Rounded(simple),
                   .division_interval = interval(divisions)};
    host.special = {.lanes = lanes, .interval = interval(exponentials)};
    // The nearest power of two.
    const double width = std::exp2(std::round(std::log2(units.core_cache_gbs / clock)));
    host.scratchpad = {.bytes = BytesOfCoresCache(),
                       .banks = 1,
                       .bank_bytes = static_cast<uint64_t>(std::clamp(width, 1.0, 4096.0)),
                       .alignment_bytes = 64,
                       .policy = npu::ScratchpadPolicy::kBump};
    host.dma = {.engines = 1,
                .port_gbs = Rounded(std::max(limits.triad_cached_gbs, units.cache_gbs) / threads),
                .setup_ns = 0,
                .outstanding = 1024,
                .efficiency = 1};
    host.network = {.bandwidth_gbs = Rounded(units.cache_gbs), .latency_ns = 0};
    host.cache = {.bytes = units.cache_bytes};
    const double most =
        std::max({limits.read_gbs, limits.copy_gbs, limits.triad_gbs, units.sustained_gbs});
    host.dram = {.bandwidth_gbs = Rounded(most),
                 .latency_ns = 0,
                 .burst_bytes = 64,
                 .efficiency = Rounded(units.sustained_gbs / most)};
    host.host_link = {.bandwidth_gbs = Rounded(limits.copy_gbs), .latency_ns = 0};
    const double dispatch = dispatches / kDispatches;
    host.command_processor.drain_ns = Rounded(1e9 * dispatch);
    host.command_processor.driver_us = Rounded(1e6 * std::max(0.0, submission - dispatch));
    FORNAX_RETURN_IF_ERROR(npu::CheckDescription(host));
    return host;
}

std::string DescriptionText(const npu::Description& description, const std::string& comment) {
    std::string text = fmt::format("# {}\nname = \"{}\"\n", comment, description.name);
    std::string_view table;
    for (const npu::Field& field : npu::Fields()) {
        if (field.table != table) {
            table = field.table;
            text += fmt::format("\n[{}]\n", table);
        }
        const std::string value = npu::TextOf(field, field.get(description));
        const std::string shown =
            field.kind == npu::FieldKind::kWord ? fmt::format("\"{}\"", value) : value;
        text += fmt::format("{:<28} # {}{}{}\n", fmt::format("{} = {}", field.key, shown),
                            field.unit, field.unit.empty() ? "" : ": ", field.meaning);
    }
    return text;
}

}  // namespace fornax::tool
