#include "npu/replay/dispatch_cost.h"

#include <bit>

#include "npu/replay/product_split.h"
#include "npu/units/barrier_passes.h"
#include "npu/units/dma_engine.h"
#include "npu/units/host_link.h"
#include "npu/units/network.h"
#include "npu/units/scalar_unit.h"
#include "npu/units/scratchpad_banks.h"

namespace fornax::npu {
namespace {

// The engine that copies has the DRAM's whole bandwidth.
uint64_t DramBytesOf(const CopyRecord& copy) {
    return copy.kind == CopyKind::kDevice ? 2 * copy.bytes : copy.bytes;
}

bool HasMatrixUnit(const Description& description, MatrixType type) {
    return description.matrix.units > 0 && description.matrix.rate(type) > 0;
}

class DispatchCost {
  public:
    // `splits` has one for each product that is on matrix units as a whole and not empty.
    DispatchCost(const Description& description,
                 const DispatchRecord& dispatch,
                 const ServedDispatch& served,
                 std::span<const SplitProduct> splits)
        : description_(description),
          dispatch_(dispatch),
          served_(served),
          splits_(splits),
          operations_(dispatch.operations) {
        cost_.passes.resize(dispatch.passes.size());
    }

    Cost Compute() {
        for (const Product& product : dispatch_.products) {
            AddProduct(product);
        }
        ChooseCores();
        AddAccesses();
        AddVectorWork();
        AddServed();
        AddScratchpad();
        return std::move(cost_);
    }

  private:
    void AddProduct(const Product& product) {
        const bool is_whole = dispatch_.split == ProductSplit::kWhole;
        const uint64_t repeats = product.batch * (is_whole ? 1 : dispatch_.workgroups);
        const uint64_t macs = product.shape.m * product.shape.n * product.shape.k * repeats;
        if (macs == 0) {
            return;
        }
        if (!HasMatrixUnit(description_, product.type)) {
            operations_.multiply_add += macs;
            cost_.macs_on_vector_units += macs;
            return;
        }
        cost_.events.multiply_accumulates[static_cast<size_t>(product.type)] += macs;
        if (!is_whole) {
            const ProductCycles cycles = CyclesOfProduct(description_, product.shape, product.type);
            matrix_cycles_ += product.batch * cycles.cycles;
            if (!cost_.passes.empty()) {
                cost_.passes[product.pass].workgroup.matrix += product.batch * cycles.cycles;
            }
            scratchpad_bytes_ +=
                repeats *
                ScratchpadBytesOfProduct({description_.matrix.rows, description_.matrix.columns},
                                         product.shape, cycles, product.type);
            return;
        }
        const SplitProduct& split = splits_[next_split_++];
        split_cores_ = std::max(split_cores_, split.cores);
        matrix_cycles_ += split.cycles;
        cost_.busy.matrix += split.busy;
        cost_.traffic.dram_read += split.read_again;
        read_again_ += split.read_again;
        cost_.traffic.network += split.read_again;
        cost_.traffic.port += split.port_bytes;
        streamed_operands_ += product.a_bytes + product.b_bytes;
        scratchpad_bytes_ += split.scratchpad_bytes;
    }

    // A dispatch with products that the replay divides has a workgroup for each of its cores.
    void ChooseCores() {
        cost_.cores =
            std::min(description_.cores.count(), std::max(split_cores_, dispatch_.workgroups));
        workgroups_ = split_cores_ > 0 ? cost_.cores : dispatch_.workgroups;
        cost_.workgroups = workgroups_;
        cost_.workgroups_of_core = CeilDivide(workgroups_, cost_.cores);
        cost_.workgroup.matrix = matrix_cycles_;
        if (split_cores_ == 0 && matrix_cycles_ > 0) {
            // The units of a core take its workgroups in turns.
            const uint64_t units = std::min(description_.matrix.units, cost_.workgroups_of_core);
            cost_.workgroup.matrix = CeilDivide(matrix_cycles_, units);
            for (PassCost& pass : cost_.passes) {
                pass.workgroup.matrix = CeilDivide(pass.workgroup.matrix, units);
            }
            cost_.busy.matrix = workgroups_ * matrix_cycles_;
        }
    }

    void AddAccesses() {
        uint64_t operands = streamed_operands_;
        for (const Access& whole : dispatch_.accesses) {
            const Access access = Compulsory(description_, dispatch_, whole);
            scratchpad_bytes_ += whole.bytes - access.bytes;
            Traffic traffic = TrafficOf(description_, access, cost_.cores);
            if (access.kind == AccessKind::kStream && !access.writes) {
                // SplitOverUnits() has said what of the operands enters a core.
                const uint64_t covered = std::min(operands, access.bytes);
                operands -= covered;
                traffic.port = CeilDivide(access.bytes - covered, cost_.cores);
            }
            cost_.traffic += traffic;
            if (!cost_.passes.empty()) {
                cost_.passes[access.pass].traffic += traffic;
            }
        }
    }

    static void Serve(const ServedBytes& served, Traffic& traffic) {
        traffic.dram_read = traffic.dram_read - served.asked.read + served.moved.read;
        traffic.dram_written = traffic.dram_written - served.asked.written + served.moved.written;
        traffic.network = traffic.network - served.asked_network + served.moved_network;
        traffic.apart = traffic.apart - served.asked_apart + served.moved_apart;
        traffic.far = traffic.far - served.asked_far + served.moved_far;
    }

    // An operand that is read again has been read just before.
    void AddServed() {
        entered_ = cost_.traffic.network;
        for (size_t i = 0; i < served_.passes.size(); ++i) {
            Serve(served_.passes[i], cost_.traffic);
            if (!cost_.passes.empty()) {
                Serve(served_.passes[i], cost_.passes[i].traffic);
            }
        }
        cost_.traffic.dram_read -= served_.holds_operands ? read_again_ : 0;
        cost_.traffic.over_fetch = std::min(cost_.traffic.over_fetch, cost_.traffic.dram());
    }

    void AddVectorWork() {
        const auto share = [&](uint64_t count) { return CeilDivide(count, workgroups_); };
        const auto add = [&](const Operations& all, UnitCycles& units) {
            const Operations each = {.simple = share(all.simple),
                                     .multiply_add = share(all.multiply_add),
                                     .division = share(all.division),
                                     .special = share(all.special)};
            units.vector = CyclesOnVectorUnits(description_, each, dispatch_.element_bits);
            units.special = CyclesOnSpecialUnit(description_, each);
        };
        add(operations_, cost_.workgroup);
        for (size_t i = 0; i < cost_.passes.size(); ++i) {
            add(dispatch_.passes[i].operations, cost_.passes[i].workgroup);
        }
        cost_.workgroup.scalar =
            CyclesOnScalarUnit(description_, share(dispatch_.scalar_operations));
        cost_.busy.vector = workgroups_ * cost_.workgroup.vector;
        cost_.busy.special = workgroups_ * cost_.workgroup.special;
        cost_.busy.scalar = workgroups_ * cost_.workgroup.scalar;
        cost_.events.vector_operations =
            operations_.simple + operations_.multiply_add + operations_.division;
        cost_.events.special_operations = operations_.special;
    }

    void AddScratchpad() {
        const Traffic& traffic = cost_.traffic;
        // What DMA brings or takes the units read or write as well, without conflicts.
        const uint64_t units = scratchpad_bytes_ + entered_;
        const auto cycles = [&](uint64_t passing, uint64_t bytes, uint64_t accesses) {
            return CyclesOnBanks(description_, CeilDivide(passing, workgroups_), 1) +
                   CyclesOnBanks(description_, CeilDivide(bytes, workgroups_),
                                 dispatch_.scratchpad_stride_words) +
                   CyclesOfSingleAccesses(description_, CeilDivide(accesses, workgroups_));
        };
        cost_.workgroup.scratchpad =
            cycles(units, dispatch_.scratchpad_bytes, dispatch_.scratchpad_accesses);
        for (size_t i = 0; i < cost_.passes.size(); ++i) {
            const Pass& pass = dispatch_.passes[i];
            cost_.passes[i].workgroup.scratchpad = cycles(
                cost_.passes[i].traffic.network, pass.scratchpad_bytes, pass.scratchpad_accesses);
        }
        cost_.busy.scratchpad = workgroups_ * cost_.workgroup.scratchpad;
        constexpr uint64_t kWordBytes = 4;
        cost_.events.scratchpad_bytes = units + entered_ + dispatch_.scratchpad_bytes +
                                        kWordBytes * dispatch_.scratchpad_accesses;
        cost_.events.network_bytes = traffic.network;
        cost_.events.dram_bytes = traffic.dram();
        cost_.request = dispatch_.scratchpad;
        const uint64_t half = description_.scratchpad.bytes / 2;
        if (split_cores_ > 0) {
            // The replay's own tiles: a half of the scratchpad at most, so that there can be two.
            cost_.request.least_bytes = std::min(cost_.request.least_bytes, half);
            cost_.request.preferred_bytes =
                std::max(cost_.request.least_bytes, std::min(half, traffic.port));
        }
        cost_.request.workgroups = cost_.workgroups_of_core;
    }

    const Description& description_;
    const DispatchRecord& dispatch_;
    const ServedDispatch& served_;
    const std::span<const SplitProduct> splits_;
    size_t next_split_ = 0;
    Operations operations_;
    Cost cost_;
    uint64_t workgroups_ = 1;
    uint64_t split_cores_ = 0;  // of products that the replay divides
    Cycles matrix_cycles_ = 0;  // on one matrix unit, of a workgroup
    uint64_t streamed_operands_ = 0;
    uint64_t read_again_ = 0;        // operands that a core could not keep
    uint64_t scratchpad_bytes_ = 0;  // of products
    uint64_t entered_ = 0;           // or left the cores, through whatever caches
};

// So many combinations of the divisions of a dispatch's products are tried.
constexpr size_t kMostCombinations = 4096;

// More tiles are only tried where they have to be as small.
constexpr uint64_t kMostTiles = 1 << 16;

void AddPhase(std::vector<Phase>& phases, const Phase& phase) {
    if (phase.compute + phase.delay + phase.dram_bytes + phase.network_bytes + phase.host_bytes >
        0) {
        phases.push_back(phase);
    }
}

class DispatchPhases {
  public:
    DispatchPhases(const Description& description, const Cost& cost, const Grant& grant)
        : description_(description), traffic_(cost.traffic) {
        compute_ =
            CyclesOfWorkgroups(cost.workgroup, description.cores.overlap, cost.workgroups_of_core,
                               std::max<uint64_t>(1, grant.occupancy));
        latency_ = DmaLatency(description);
        const uint64_t cores = std::max<uint64_t>(1, cost.cores);
        port_cycles_ = DmaCycles(description, traffic_, cores);
        exposed_ = description.dma.exposed;
        if (!cost.passes.empty() && description.dma.barrier_exposed > 0) {
            std::vector<PassCycles> passes;
            for (const PassCost& pass : cost.passes) {
                const Cycles of_workgroup =
                    CyclesOfWorkgroup(pass.workgroup, description.cores.overlap);
                passes.push_back(
                    {.compute = static_cast<double>(cost.workgroups_of_core * of_workgroup),
                     .move = MoveCycles(pass.traffic, cores)});
            }
            const PassCycles all = {.compute = static_cast<double>(compute_),
                                    .move = MoveCycles(traffic_, cores)};
            exposed_ = ExposedByBarriers(description, passes, all, cost.workgroups_of_core,
                                         grant.occupancy);
        }
    }

    std::vector<Phase> Overlapped(uint64_t tiles) const {
        const uint64_t first = CeilDivide(traffic_.dram_read, tiles);
        const uint64_t last = CeilDivide(traffic_.dram_written, tiles);
        const uint64_t first_network = NetworkPart(first), last_network = NetworkPart(last);
        const uint64_t middle = traffic_.dram() - first - last;
        const uint64_t middle_network = traffic_.network - first_network - last_network;
        const uint64_t exposed = ExposedPart(middle);
        const uint64_t exposed_network = ExposedPart(middle_network);
        std::vector<Phase> phases;
        AddPhase(phases, Make(0, latency_, first, first_network));
        AddPhase(phases, Make(0, 0, exposed, exposed_network));
        AddPhase(phases, Make(compute_, DmaSetups(description_, tiles - 1), middle - exposed,
                              middle_network - exposed_network));
        AddPhase(phases, Make(0, latency_, last, last_network));
        return phases;
    }

    std::vector<Phase> InTurns(uint64_t tiles) const {
        const Cycles latencies = tiles * latency_;
        const uint64_t read_network = NetworkPart(traffic_.dram_read);
        std::vector<Phase> phases;
        AddPhase(phases, Make(0, latencies, traffic_.dram_read, read_network));
        AddPhase(phases, Make(compute_, 0, 0, 0));
        AddPhase(phases,
                 Make(0, latencies, traffic_.dram_written, traffic_.network - read_network));
        return phases;
    }

    Cycles CyclesAlone(std::span<const Phase> phases) const {
        const auto flow = [](uint64_t bytes, double cap, double bandwidth) {
            return bytes == 0 ? 0
                              : WholeCycles(static_cast<double>(bytes) / std::min(cap, bandwidth));
        };
        Cycles cycles = 0;
        for (const Phase& phase : phases) {
            const Cycles dram =
                flow(phase.dram_bytes, phase.dram_cap, DramBytesPerCycle(description_));
            const Cycles network =
                flow(phase.network_bytes, phase.network_cap, NetworkBytesPerCycle(description_));
            cycles += std::max(phase.compute, phase.delay + std::max(dram, network));
        }
        return cycles;
    }

  private:
    Phase Make(Cycles compute, Cycles delay, uint64_t dram, uint64_t network) const {
        return {.compute = compute,
                .delay = dram + network > 0 ? delay : 0,
                .dram_bytes = dram,
                .network_bytes = network,
                .dram_cap = static_cast<double>(traffic_.dram()) / port_cycles_,
                .network_cap = static_cast<double>(traffic_.network) / port_cycles_};
    }

    // What all bytes take if nothing else moves.
    double MoveCycles(const Traffic& traffic, uint64_t cores) const {
        if (traffic.port + traffic.network + traffic.dram() == 0) {
            return 0;
        }
        return std::max({static_cast<double>(traffic.dram()) / DramBytesPerCycle(description_),
                         static_cast<double>(traffic.network) / NetworkBytesPerCycle(description_),
                         DmaCycles(description_, traffic, cores)});
    }

    uint64_t ExposedPart(uint64_t bytes) const {
        return static_cast<uint64_t>(static_cast<double>(bytes) * exposed_);
    }

    // As large a part of the network's bytes as `bytes` are of DRAM's.
    uint64_t NetworkPart(uint64_t bytes) const {
        return bytes == 0 ? 0
                          : static_cast<uint64_t>(static_cast<double>(traffic_.network) *
                                                  (static_cast<double>(bytes) /
                                                   static_cast<double>(traffic_.dram())));
    }

    const Description& description_;
    const Traffic& traffic_;
    Cycles compute_ = 0;
    Cycles latency_ = 0;
    double port_cycles_ = 0;  // of all bytes that enter and leave a core
    double exposed_ = 0;      // of the bytes between the first load and the last store
};

}  // namespace

Cost CostOf(const Description&, const CopyRecord& copy) {
    Cost cost;
    const bool from_device = copy.kind == CopyKind::kDevice || copy.kind == CopyKind::kToHost;
    const bool to_device = copy.kind != CopyKind::kToHost;
    cost.traffic.dram_read = from_device ? copy.bytes : 0;
    cost.traffic.dram_written = to_device ? copy.bytes : 0;
    if (copy.kind == CopyKind::kFromHost || copy.kind == CopyKind::kToHost) {
        cost.host_bytes = copy.bytes;
    }
    cost.events.dram_bytes = DramBytesOf(copy);
    cost.events.host_link_bytes = cost.host_bytes;
    return cost;
}

void AddSpill(const Grant& grant, Cost& cost) {
    if (grant.spill_bytes == 0) {
        return;
    }
    const uint64_t of_core = grant.spill_bytes * cost.workgroups_of_core;
    const uint64_t bytes = grant.spill_bytes * cost.workgroups;
    cost.traffic.dram_read += bytes;
    cost.traffic.dram_written += bytes;
    cost.traffic.network += 2 * bytes;
    cost.traffic.port += 2 * of_core;
    cost.traffic.spill += 2 * bytes;
    cost.events.dram_bytes += 2 * bytes;
    cost.events.network_bytes += 2 * bytes;
    cost.events.scratchpad_bytes += 2 * bytes;
}

std::vector<Phase> PhasesOf(const Description& description, const Cost& cost, const Grant& grant) {
    const DispatchPhases phases(description, cost, grant);
    const uint64_t port = std::max<uint64_t>(1, cost.traffic.port);
    // What asks for no scratchpad has it all.
    const uint64_t granted = grant.bytes > 0 ? grant.bytes : description.scratchpad.bytes;
    if (!grant.double_buffered && grant.occupancy < 2) {
        return phases.InTurns(CeilDivide(port, granted));
    }
    // The dispatch has its cores alone: what the grant leaves of their scratchpads holds tiles as
    // well. Doubling keeps to one grid, so that a larger scratchpad has all choices of a smaller.
    const uint64_t least =
        CeilDivide(port, std::max<uint64_t>(1, description.scratchpad.bytes / 2));
    std::vector<Phase> best;
    Cycles best_cycles = 0;
    uint64_t tiles = std::bit_ceil(least);
    do {
        std::vector<Phase> made = phases.Overlapped(tiles);
        const Cycles cycles = phases.CyclesAlone(made);
        if (best.empty() || cycles < best_cycles) {
            best = std::move(made);
            best_cycles = cycles;
        }
        tiles *= 2;
    } while (tiles <= kMostTiles);
    return best;
}

std::vector<Phase> PhasesOf(const Description& description, const CopyRecord& copy) {
    Phase phase;
    phase.dram_bytes = DramBytesOf(copy);
    phase.dram_cap = DramBytesPerCycle(description);
    phase.delay = WholeCycles(description.CyclesOf(description.dram.latency_ns));
    if (copy.kind == CopyKind::kFromHost || copy.kind == CopyKind::kToHost) {
        phase.host_bytes = copy.bytes;
        phase.delay += HostLinkLatency(description);
    }
    std::vector<Phase> phases;
    if (copy.bytes > 0) {
        AddPhase(phases, phase);
    }
    return phases;
}

namespace {

Cycles CyclesAlone(const Description& description, Cost cost) {
    const Grant grant = ScratchpadAllocator(description)
                            .Request(cost.request, description.cores.workgroup_slots, 0, 0);
    AddSpill(grant, cost);
    return DispatchPhases(description, cost, grant).CyclesAlone(PhasesOf(description, cost, grant));
}

}  // namespace

Cost CostOf(const Description& description,
            const DispatchRecord& dispatch,
            const ServedDispatch& served) {
    std::vector<std::vector<SplitProduct>> choices;
    size_t combinations = 1;
    for (const Product& product : dispatch.products) {
        if (dispatch.split != ProductSplit::kWhole || !HasMatrixUnit(description, product.type)) {
            continue;
        }
        std::vector<SplitProduct> splits = SplitsOverUnits(description, product);
        if (splits.empty()) {
            continue;
        }
        // A dispatch of many products has too many to try them all.
        splits.resize(std::clamp<size_t>(kMostCombinations / combinations, 1, splits.size()));
        combinations *= splits.size();
        choices.push_back(std::move(splits));
    }
    Cost best;
    Cycles least = UINT64_MAX;
    for (size_t number = 0; number < combinations; ++number) {
        std::vector<SplitProduct> splits;
        size_t rest = number;
        for (const std::vector<SplitProduct>& of_product : choices) {
            splits.push_back(of_product[rest % of_product.size()]);
            rest /= of_product.size();
        }
        Cost cost = DispatchCost(description, dispatch, served, splits).Compute();
        const Cycles cycles = combinations == 1 ? 0 : CyclesAlone(description, cost);
        if (cycles < least) {
            least = cycles;
            best = std::move(cost);
        }
    }
    return best;
}

std::array<Cycles, kBounds> FloorsOf(const Description& description,
                                     const Cost& cost,
                                     Cycles launch) {
    const auto over = [](uint64_t bytes, double rate) {
        return WholeCycles(static_cast<double>(bytes) / rate);
    };
    const uint64_t count = cost.workgroups_of_core;
    std::array<Cycles, kBounds> floors = {};
    floors[static_cast<size_t>(Bound::kLaunch)] = launch;
    floors[static_cast<size_t>(Bound::kMatrix)] = count * cost.workgroup.matrix;
    floors[static_cast<size_t>(Bound::kVector)] = count * cost.workgroup.vector;
    floors[static_cast<size_t>(Bound::kSpecial)] = count * cost.workgroup.special;
    floors[static_cast<size_t>(Bound::kScalar)] = count * cost.workgroup.scalar;
    floors[static_cast<size_t>(Bound::kScratchpad)] = count * cost.workgroup.scratchpad;
    if (cost.cores > 0 && cost.traffic.network > 0) {
        floors[static_cast<size_t>(Bound::kDma)] =
            WholeCycles(DmaCycles(description, cost.traffic, cost.cores)) + DmaLatency(description);
        floors[static_cast<size_t>(Bound::kNetwork)] =
            over(cost.traffic.network, NetworkBytesPerCycle(description));
    }
    floors[static_cast<size_t>(Bound::kDram)] =
        over(cost.traffic.dram(), DramBytesPerCycle(description));
    floors[static_cast<size_t>(Bound::kHostLink)] =
        over(cost.host_bytes, HostLinkBytesPerCycle(description));
    return floors;
}

}  // namespace fornax::npu
