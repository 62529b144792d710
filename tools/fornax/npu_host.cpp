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
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/kernel/interface/streamed_stores.h"
#include "npu/description/fields.h"
#include "npu/description/read.h"
#include "tools/bench/device.h"
#include "tools/bench/host_limits.h"
#include "tools/bench/workload.h"

namespace fornax::tool {
namespace {

struct Measured {
    std::unique_ptr<bench::Workload> workload;
    int runs = 0;  // in a pass
    double seconds = INFINITY;
};

// What the driver is measured with.
enum What : size_t {
    kExponentials,
    kOperations,
    kDivisions,
    kSubmission,
    kDispatches,
    kTeamHalf,  // half as many workgroups as kTeamAll
    kTeamAll,
    kStream,      // without computation
    kChains,      // computation that takes longer than memory
    kChains3,     // three times as much
    kPassStream,  // the same with a barrier between memory and computation
    kPassChains,
    kPassChains3,
    kWhats
};
constexpr uint32_t kDispatchesOfABuffer = 1000;
constexpr uint32_t kTeamWorkgroups = 16;  // of a thread

class Measurements {
  public:
    explicit Measurements(bool quick) : quick_(quick) {}

    Status Prepare(bench::Device& device, int threads) {
        const auto workgroups = kTeamWorkgroups * static_cast<uint32_t>(threads);
        FORNAX_RETURN_IF_ERROR(Add(kExponentials, bench::CreateExponentials(device, chains()), 25));
        FORNAX_RETURN_IF_ERROR(
            Add(kOperations, bench::CreateSimpleOperations(device, chains()), 25));
        FORNAX_RETURN_IF_ERROR(Add(kDivisions, bench::CreateDivisions(device, chains()), 25));
        FORNAX_RETURN_IF_ERROR(Add(kSubmission, bench::CreateDispatches(device, 1), 200));
        FORNAX_RETURN_IF_ERROR(
            Add(kDispatches, bench::CreateDispatches(device, kDispatchesOfABuffer), 25));
        FORNAX_RETURN_IF_ERROR(
            Add(kTeamHalf, bench::CreateTeamDispatches(device, workgroups), 400));
        FORNAX_RETURN_IF_ERROR(
            Add(kTeamAll, bench::CreateTeamDispatches(device, 2 * workgroups), 400));
        FORNAX_RETURN_IF_ERROR(
            PrepareStreams(device, bench::CreateStreamedChains, kStream, kChains, kChains3));
        return PrepareStreams(device, bench::CreateBarrierChains, kPassStream, kPassChains,
                              kPassChains3);
    }

    // One pass. What belongs together takes turns.
    Status Run() {
        FORNAX_RETURN_IF_ERROR(Run({kExponentials, kOperations, kDivisions}));
        FORNAX_RETURN_IF_ERROR(Run({kTeamHalf, kTeamAll, kSubmission}));
        FORNAX_RETURN_IF_ERROR(Run({kDispatches}));
        FORNAX_RETURN_IF_ERROR(Run({kStream, kChains, kChains3}));
        return Run({kPassStream, kPassChains, kPassChains3});
    }

    uint32_t chains() const { return quick_ ? 4096 : 65536; }
    double seconds(What what) const { return all_[what].seconds; }
    double dispatch() const { return seconds(kDispatches) / kDispatchesOfABuffer; }

    // A dispatch of all workers beyond what its workgroups take: as many workgroups take twice the
    // time of half as many, but for that and the submission.
    double team_launch() const {
        const double launches = 2 * seconds(kTeamHalf) - seconds(kTeamAll) - seconds(kSubmission);
        return std::max(0.0, launches / bench::kTeamDispatches);
    }

    // How much of the time of streams from and to memory passes beside computation that takes
    // longer: what more of the computation does not explain.
    double exposed() const { return Exposed(kStream, kChains, kChains3); }
    double barrier_exposed() const { return Exposed(kPassStream, kPassChains, kPassChains3); }

  private:
    double Exposed(What stream, What chains, What chains3) const {
        const double computed = (seconds(chains3) - seconds(chains)) / 2;
        return std::clamp((seconds(chains) - computed) / seconds(stream), 0.0, 1.0);
    }

    Status Add(What what, bench::WorkloadResult workload, int runs) {
        if (!workload.ok()) {
            return std::move(workload).error();
        }
        all_[what] = {.workload = std::move(*workload), .runs = quick_ ? 5 : runs};
        return OkStatus();
    }

    // `create` makes a workload of so many elements and steps.
    using CreateChains = bench::WorkloadResult(bench::Device&, uint32_t, uint32_t);
    Status PrepareStreams(bench::Device& device,
                          CreateChains create,
                          What stream,
                          What chains,
                          What chains3) {
        const uint32_t count = (quick_ ? 4U << 20 : 64U << 20) / sizeof(float);
        constexpr uint32_t kMostSteps = 65536;
        FORNAX_RETURN_IF_ERROR(Add(stream, create(device, count, 0), 9));
        FORNAX_RETURN_IF_ERROR(Run({stream}));
        for (uint32_t steps = 4; steps <= kMostSteps; steps *= 2) {
            all_[chains] = {};
            FORNAX_RETURN_IF_ERROR(Add(chains, create(device, count, steps), 3));
            FORNAX_RETURN_IF_ERROR(Run({chains}));
            if (seconds(chains) >= 2 * seconds(stream)) {
                all_[chains].runs = all_[stream].runs;
                return Add(chains3, create(device, count, 3 * steps), 9);
            }
        }
        return Error{ErrorCode::kInternal, "No computation takes longer than memory."};
    }

    // In turns. Of a pass counts what a quarter of the runs were faster than, as of kernels that
    // are compared (fornax npu reality): the fastest of many short runs is a rare one.
    Status Run(std::initializer_list<What> whats) {
        std::vector<std::vector<double>> seconds(whats.size());
        for (int run = 0; run < all_[*whats.begin()].runs; ++run) {
            size_t i = 0;
            for (const What what : whats) {
                FORNAX_ASSIGN_OR_RETURN(const double of_run, all_[what].workload->Run());
                seconds[i++].push_back(of_run);
            }
        }
        size_t i = 0;
        for (const What what : whats) {
            std::vector<double>& runs = seconds[i++];
            const auto quarter = runs.begin() + static_cast<ptrdiff_t>(runs.size() / 4);
            std::ranges::nth_element(runs, quarter);
            all_[what].seconds = std::min(all_[what].seconds, *quarter);
        }
        return OkStatus();
    }

    const bool quick_;
    Measured all_[kWhats];
};

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

Result<npu::Description> MeasureHostDescription(const HostMeasurement& how) {
    const bool quick = how.quick;
    FORNAX_ASSIGN_OR_RETURN(const std::unique_ptr<bench::Device> device,
                            bench::Device::Create(/*validate=*/false));
    Measurements measured(quick);
    FORNAX_RETURN_IF_ERROR(measured.Prepare(*device, bench::AvailableThreads()));
    bench::HostLimits limits;
    bench::HostUnits units;
    for (uint32_t pass = 0; pass < (quick ? 1 : how.passes); ++pass) {
        limits = bench::BestOf(limits, bench::MeasureHostLimits(quick));
        FORNAX_RETURN_IF_ERROR(measured.Run());
        units = bench::BestOf(units, bench::MeasureHostUnits(quick, limits));
    }

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
    const double functions = 1.0 * measured.chains() * bench::kUnitChains * bench::kUnitSteps;
    const auto cycles = [&](double seconds) { return seconds * 1e9 * clock * vectors / functions; };
    const double simple = cycles(measured.seconds(kOperations)) / bench::kSimpleOperations;
    const auto interval = [&](double seconds) {
        return Rounded(std::max(0.01, cycles(seconds) - simple));
    };
    host.scalar = {.interval = Rounded(clock / units.scalar_gops)};
    host.vector = {.units = 1,
                   .bits = units.vector_bits,
                   .simple_interval = Rounded(simple),
                   .multiply_add_interval = Rounded(vectors * clock / units.product_gmacs),
                   .division_interval = interval(measured.seconds(kDivisions))};
    host.special = {.lanes = lanes,
                    .interval = interval(measured.seconds(kExponentials)),
                    .unit = npu::SpecialUnit::kVector};
    // The nearest power of two.
    const double width = std::exp2(std::round(std::log2(units.core_cache_gbs / clock)));
    host.scratchpad = {.bytes = BytesOfCoresCache(),
                       .banks = 1,
                       .bank_bytes = static_cast<uint64_t>(std::clamp(width, 1.0, 4096.0)),
                       .alignment_bytes = 64,
                       .policy = npu::ScratchpadPolicy::kBump};
    const double cache_gbs = units.CacheGbs(limits);
    host.dma = {.engines = 1,
                .port_gbs = Rounded(std::max(limits.triad_cached_gbs, cache_gbs) / threads),
                .setup_ns = 0,
                .outstanding = 1024,
                .efficiency = 1,
                .exposed = Rounded(measured.exposed()),
                .barrier_exposed = Rounded(measured.barrier_exposed()),
                .stream_gbs = Rounded(limits.read_gbs / threads),
                .apart_gbs = Rounded(units.apart_gbs),
                .far_gbs = Rounded(units.far_gbs)};
    host.network = {.bandwidth_gbs = Rounded(cache_gbs), .latency_ns = 0};
    host.cache = {.bytes = units.CacheBytes(limits),
                  .core_bytes = BytesOfCoresCache(),
                  .write_allocate_bytes =
                      units.copy_streaming_gbs > kAllocatingCopyRatio * units.copy_plain_gbs
                          ? kernel::kStreamedBytes
                          : 0};
    const double most =
        std::max({limits.read_gbs, limits.copy_gbs, limits.triad_gbs, units.sustained_gbs});
    host.dram = {.bandwidth_gbs = Rounded(most),
                 .latency_ns = 0,
                 .burst_bytes = 64,
                 .efficiency = Rounded(units.sustained_gbs / most)};
    host.host_link = {.bandwidth_gbs = Rounded(limits.copy_gbs), .latency_ns = 0};
    host.command_processor.drain_ns =
        Rounded(1e9 * std::max(measured.dispatch(), measured.team_launch()));
    host.command_processor.driver_us =
        Rounded(1e6 * std::max(0.0, measured.seconds(kSubmission) - measured.dispatch()));
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
