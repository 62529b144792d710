// The host's cores run kernels as the cores of an NPU do, with another machine's words:
//
//   vector unit         the vector instructions: simple ones as a kernel of several kinds has them,
//                       multiply-adds as a product of matrices in a core's own caches
//   special functions   the same instructions: what an exponential of a kernel takes
//   scalar unit         integer operations of a loop
//   matrix unit         the int8 dot product of four bytes a lane, if there is one
//   scratchpad          the second level cache by size, the first by bandwidth
//   cache               what all cores share, of the size and bandwidth that triads see
//   DMA                 the cores' own loads and stores: a part of them waits for computation
//   launch              a submission and a dispatch of the Fornax driver, with all of its workers
//
// Latencies are parts of the measured launch and bandwidths, and 0 in the description.
#include "tools/fornax/npu_host.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "compiler/kernel/streamed_stores.h"
#include "npu/description/fields.h"
#include "npu/description/read.h"
#include "tools/bench/device.h"
#include "tools/bench/host_limits.h"
#include "tools/bench/workload.h"

namespace fornax::tool {
namespace {

// Medians of so many runs of each, in turns, after some that do not count: the optimized tier comes
// meanwhile.
Result<std::vector<double>> MedianSeconds(
    std::span<const std::unique_ptr<bench::Workload>> workloads,
    int runs) {
    std::vector<std::vector<double>> seconds(workloads.size());
    for (int run = 0; run < 2 * runs; ++run) {
        for (size_t i = 0; i < workloads.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const double of_run, workloads[i]->Run());
            if (run >= runs) {
                seconds[i].push_back(of_run);
            }
        }
    }
    std::vector<double> medians;
    for (std::vector<double>& of_one : seconds) {
        std::ranges::nth_element(of_one, of_one.begin() + runs / 2);
        medians.push_back(of_one[runs / 2]);
    }
    return medians;
}

Result<double> MedianSeconds(bench::Device& device,
                             bench::WorkloadFactory create,
                             uint32_t size,
                             int runs) {
    std::vector<std::unique_ptr<bench::Workload>> workloads(1);
    FORNAX_ASSIGN_OR_RETURN(workloads[0], create(device, size));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<double> medians, MedianSeconds(workloads, runs));
    return medians[0];
}

// A dispatch of all workers beyond what its workgroups take: as many workgroups take twice the time
// of half as many, but for that.
Result<double> TeamLaunchSeconds(bench::Device& device, uint32_t threads, int runs) {
    constexpr uint32_t kOfAThread = 8;
    std::vector<std::unique_ptr<bench::Workload>> workloads(2);
    for (uint32_t i = 0; i < 2; ++i) {
        FORNAX_ASSIGN_OR_RETURN(
            workloads[i], bench::CreateTeamDispatches(device, (i + 1) * kOfAThread * threads));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<double> half_and_all, MedianSeconds(workloads, runs));
    return std::max(0.0, (2 * half_and_all[0] - half_and_all[1]) / bench::kTeamDispatches);
}

// How much of the time of streams from and to memory passes beside computation that takes longer:
// what more of the computation does not explain.
Result<double> ExposedShare(bench::Device& device, uint32_t count, int runs) {
    std::vector<std::unique_ptr<bench::Workload>> workloads(3);
    FORNAX_ASSIGN_OR_RETURN(workloads[0], bench::CreateStreamedChains(device, count, 0));
    std::vector<double> seconds;
    constexpr uint32_t kMostSteps = 4096;
    for (uint32_t steps = 4; steps <= kMostSteps; steps *= 2) {
        for (uint32_t i = 1; i < 3; ++i) {
            workloads[i].reset();
            FORNAX_ASSIGN_OR_RETURN(workloads[i], bench::CreateStreamedChains(
                                                      device, count, i == 1 ? steps : 3 * steps));
        }
        FORNAX_ASSIGN_OR_RETURN(seconds, MedianSeconds(workloads, runs));
        if (seconds[1] >= 2 * seconds[0]) {
            break;
        }
    }
    const double computed = (seconds[2] - seconds[1]) / 2;
    return std::clamp((seconds[1] - computed) / seconds[0], 0.0, 1.0);
}

// Stores that miss read their line, but for those of buffers that kernels stream to.
constexpr double kAllocatingCopyRatio = 1.2;

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
    FORNAX_ASSIGN_OR_RETURN(const double operations,
                            MedianSeconds(*device, bench::CreateSimpleOperations, chains, runs));
    FORNAX_ASSIGN_OR_RETURN(const double divisions,
                            MedianSeconds(*device, bench::CreateDivisions, chains, runs));
    FORNAX_ASSIGN_OR_RETURN(const double submission,
                            MedianSeconds(*device, bench::CreateDispatches, 1, submissions));
    FORNAX_ASSIGN_OR_RETURN(const double dispatches,
                            MedianSeconds(*device, bench::CreateDispatches, kDispatches, runs));
    FORNAX_ASSIGN_OR_RETURN(
        const double team_launch,
        TeamLaunchSeconds(*device, static_cast<uint32_t>(before.threads), quick ? 5 : 51));
    FORNAX_ASSIGN_OR_RETURN(
        const double exposed,
        ExposedShare(*device, (quick ? 4U << 20 : 64U << 20) / sizeof(float), quick ? 3 : 9));

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
    const double functions = 1.0 * chains * bench::kUnitChains * bench::kUnitSteps;
    const auto cycles = [&](double seconds) { return seconds * 1e9 * clock * vectors / functions; };
    const double simple = cycles(operations) / bench::kSimpleOperations;
    const auto interval = [&](double seconds) {
        return Rounded(std::max(0.01, cycles(seconds) - simple));
    };
    host.scalar = {.interval = Rounded(clock / units.scalar_gops)};
    host.vector = {.units = 1,
                   .bits = units.vector_bits,
                   .simple_interval = Rounded(simple),
                   .multiply_add_interval = Rounded(vectors * clock / units.product_gmacs),
                   .division_interval = interval(divisions)};
    host.special = {
        .lanes = lanes, .interval = interval(exponentials), .unit = npu::SpecialUnit::kVector};
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
                .efficiency = 1,
                .exposed = Rounded(exposed)};
    host.network = {.bandwidth_gbs = Rounded(units.cache_gbs), .latency_ns = 0};
    host.cache = {.bytes = units.cache_bytes,
                  .write_allocate_bytes =
                      units.plain_copy_ratio > kAllocatingCopyRatio ? kernel::kStreamedBytes : 0};
    const double most =
        std::max({limits.read_gbs, limits.copy_gbs, limits.triad_gbs, units.sustained_gbs});
    host.dram = {.bandwidth_gbs = Rounded(most),
                 .latency_ns = 0,
                 .burst_bytes = 64,
                 .efficiency = Rounded(units.sustained_gbs / most)};
    host.host_link = {.bandwidth_gbs = Rounded(limits.copy_gbs), .latency_ns = 0};
    const double dispatch = dispatches / kDispatches;
    host.command_processor.drain_ns = Rounded(1e9 * std::max(dispatch, team_launch));
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
