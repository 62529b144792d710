#include "compiler/kernel/interface/kernel_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace fornax::kernel {

namespace {

// What a workgroup's tile may take of a scratchpad, as in runtime/npu/plan_records.cpp.
constexpr uint64_t kMostTileBytes = uint64_t{64} << 10;
// Numbers that a replay takes (npu/replay/records.h).
constexpr uint64_t kMost = npu::kMaxCount;

uint64_t Times(uint64_t a, uint64_t b) {
    return b != 0 && a > kMost / b ? kMost : a * b;
}
uint64_t Plus(uint64_t a, uint64_t b) {
    return std::min(kMost, a + b);
}
uint64_t DivideUp(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

// --- text ----------------------------------------------------------------------------------------

std::string TextOf(const CostCount& count) {
    std::string text;
    const auto add = [&](int64_t factor, const std::string& what) {
        if (factor == 0) {
            return;
        }
        const uint64_t magnitude = factor < 0 ? 0 - static_cast<uint64_t>(factor) : factor;
        text += text.empty() ? (factor < 0 ? "-" : "") : (factor < 0 ? " - " : " + ");
        text += magnitude == 1 ? what : fmt::format("{}*{}", magnitude, what);
    };
    add(count.invocations, "invocations");
    for (const auto& [counter, factor] : count.counters) {
        add(factor, fmt::format("c{}", counter));
    }
    return text.empty() ? "0" : text;
}

std::string TextOf(const CostAccess& access) {
    std::string text =
        fmt::format("{} {} {}", access.writes ? "write" : "read",
                    npu::kAccessKindNames[static_cast<size_t>(access.kind)], access.bytes);
    if (access.sharers > 1) {
        text += fmt::format("/{}", access.sharers);
    }
    if (access.element_bytes != 0) {
        text += fmt::format(" by {}", access.element_bytes);
    }
    text += access.apart ? " apart" : "";
    text += access.far ? " far" : "";
    text += access.in_parts ? " in parts" : "";
    return access.all_workgroups ? text + " once" : text;
}

// --- records -------------------------------------------------------------------------------------

void AddAccess(const CostAccess& access,
               uint64_t count,
               uint32_t pass,
               uint64_t workgroups,
               const npu::MemoryRange& range,
               npu::DispatchRecord& record) {
    uint64_t bytes = DivideUp(Times(count, access.bytes), access.sharers);
    if (access.all_workgroups) {
        bytes = DivideUp(bytes, workgroups);
    }
    if (bytes == 0) {
        return;
    }
    const uint32_t element = access.element_bytes != 0 ? access.element_bytes : 4;
    const auto same = [&](const npu::Access& other) {
        return other.kind == access.kind && other.writes == access.writes &&
               other.element_bytes == element && other.pass == pass && other.range == range &&
               other.apart == access.apart && other.far == access.far &&
               other.in_parts == access.in_parts;
    };
    const auto found = std::ranges::find_if(record.accesses, same);
    if (found != record.accesses.end()) {
        found->bytes = Plus(found->bytes, bytes);
        return;
    }
    record.accesses.push_back({.kind = access.kind,
                               .writes = access.writes,
                               .bytes = bytes,
                               .element_bytes = element,
                               .apart = access.apart,
                               .far = access.far,
                               .in_parts = access.in_parts,
                               .pass = pass,
                               .range = range});
}

// What workgroups access of a range of which each has a part of its own.
struct Parts {
    npu::MemoryRange range;
    bool are_apart = true;
    uint64_t read_bytes = 0, written_bytes = 0;
    uint32_t first_read = kNone, first_write = kNone;
};

void AddToParts(const CostAccess& access,
                uint64_t bytes,
                const npu::MemoryRange& range,
                bool is_apart,
                std::vector<Parts>& all) {
    auto parts = std::ranges::find(all, range, &Parts::range);
    if (parts == all.end()) {
        parts = all.insert(all.end(), Parts{.range = range});
    }
    parts->are_apart = parts->are_apart && is_apart;
    uint64_t& sum = access.writes ? parts->written_bytes : parts->read_bytes;
    uint32_t& first = access.writes ? parts->first_write : parts->first_read;
    sum = Plus(sum, bytes);
    first = std::min(first, access.order);
}

// More bytes than the range has are accessed again, and what a workgroup has written as a whole it
// need not read. The first pass reads what comes from memory, the last one writes what goes there.
void FindRepeated(const Parts& parts, npu::DispatchRecord& record) {
    const auto beyond = [&](uint64_t bytes) {
        return bytes > parts.range.bytes ? bytes - parts.range.bytes : 0;
    };
    uint64_t written = beyond(parts.written_bytes), read = beyond(parts.read_bytes);
    if (parts.first_write < parts.first_read && parts.written_bytes >= parts.range.bytes) {
        read = parts.read_bytes;
    }
    const auto repeat = [&](npu::Access& access, bool writes, uint64_t& left) {
        const bool is_part =
            access.kind == npu::AccessKind::kStream || access.kind == npu::AccessKind::kReuse;
        if (is_part && access.writes == writes && access.range == parts.range) {
            access.repeated_bytes = std::min(left, access.bytes);
            left -= access.repeated_bytes;
        }
    };
    const bool has_passes = record.passes.size() > 1;
    for (size_t i = 0; i < record.accesses.size(); ++i) {
        repeat(record.accesses[i], true, written);
        repeat(record.accesses[has_passes ? record.accesses.size() - 1 - i : i], false, read);
    }
}

// `runs` and `sums` are of all subgroups.
void AddProduct(const CostProduct& product,
                uint64_t runs,
                uint64_t sums,
                uint32_t pass,
                uint64_t workgroups,
                npu::DispatchRecord& record) {
    if (runs == 0) {
        return;
    }
    sums = std::clamp<uint64_t>(sums, 1, runs);
    const npu::ProductShape shape = {
        .m = product.m, .n = product.n, .k = Times(product.k, DivideUp(runs, sums))};
    const uint64_t batch = DivideUp(sums, workgroups);
    for (npu::Product& other : record.products) {
        if (other.type == product.type && other.pass == pass && other.shape.m == shape.m &&
            other.shape.n == shape.n && other.shape.k == shape.k) {
            other.batch += batch;
            return;
        }
    }
    record.products.push_back({.shape = shape, .batch = batch, .type = product.type, .pass = pass});
}

// The passes that do anything, by those of the kernel's text; none of a kernel with one.
class Passes {
  public:
    // `counts`: how often each region ran.
    Passes(const KernelCost& cost, std::span<const uint64_t> counts) {
        for (size_t i = 0; i < cost.regions.size(); ++i) {
            const CostRegion& region = cost.regions[i];
            const bool works = region.operations.total() + region.shared_atomics > 0 ||
                               !region.shared_bytes.empty() || !region.accesses.empty() ||
                               !region.products.empty();
            if (works && counts[i] > 0) {
                numbers_.try_emplace(region.pass, 0);
            }
        }
        uint32_t next = 0;
        for (auto& [pass, number] : numbers_) {
            number = next++;
        }
    }

    uint32_t NumberOf(const CostRegion& region) const {
        const auto found = numbers_.find(region.pass);
        return size() > 0 && found != numbers_.end() ? found->second : 0;
    }
    size_t size() const { return numbers_.size() > 1 ? numbers_.size() : 0; }

  private:
    std::map<uint32_t, uint32_t> numbers_;
};

// What each line does, and of each kind of work the line that does most of it.
class Lines {
  public:
    // Not `wanted`: none has done anything.
    Lines(const std::vector<std::string>& sources, bool wanted)
        : sources_(sources), work_(wanted ? sources.size() : 0) {}

    void Add(uint32_t source, npu::LineWork kind, uint64_t amount) {
        uint64_t& all = all_[static_cast<size_t>(kind)];
        all = Plus(all, amount);
        if (source < work_.size()) {
            uint64_t& of_line = work_[source][static_cast<size_t>(kind)];
            of_line = Plus(of_line, amount);
        }
    }

    std::vector<npu::SourceLine> Most() const {
        std::vector<npu::SourceLine> lines;
        for (size_t kind = 0; kind < kKinds; ++kind) {
            size_t most = 0;
            for (size_t i = 1; i < work_.size(); ++i) {
                most = work_[i][kind] > work_[most][kind] ? i : most;
            }
            if (!work_.empty() && work_[most][kind] > 0) {
                const double part =
                    static_cast<double>(work_[most][kind]) / static_cast<double>(all_[kind]);
                lines.push_back({.work = static_cast<npu::LineWork>(kind),
                                 .line = sources_[most],
                                 .percent = static_cast<uint64_t>(std::lround(100 * part))});
            }
        }
        return lines;
    }

  private:
    static constexpr size_t kKinds = npu::kLineWorkNames.size();
    const std::vector<std::string>& sources_;
    std::vector<std::array<uint64_t, kKinds>> work_;
    std::array<uint64_t, kKinds> all_ = {};
};

// What CheckRecords() bounds.
void Bound(npu::DispatchRecord& record) {
    uint64_t left = kMost;
    for (npu::Access& access : record.accesses) {
        access.bytes = std::min(access.bytes, left);
        access.repeated_bytes = std::min(access.repeated_bytes, access.bytes);
        left -= access.bytes;
    }
    uint64_t macs = npu::kMaxMultiplyAccumulates;
    for (npu::Product& product : record.products) {
        const uint64_t one = Times(Times(product.shape.m, product.shape.n),
                                   Times(product.shape.k, record.workgroups));
        // Products that are too large for the limit count as none.
        product.batch =
            one == kMost ? 0 : std::min(product.batch, macs / std::max<uint64_t>(1, one));
        macs -= product.batch * one;
    }
    std::erase_if(record.products, [](const npu::Product& product) { return product.batch == 0; });
}

}  // namespace

CostCount& CostCount::Add(const CostCount& other, int64_t factor) {
    invocations += other.invocations * factor;
    for (const auto& [counter, times] : other.counters) {
        const auto [found, is_new] = counters.try_emplace(counter, 0);
        found->second += times * factor;
        if (found->second == 0) {
            counters.erase(found);
        }
    }
    return *this;
}

uint64_t CostCount::Evaluate(uint64_t all_invocations, std::span<const uint64_t> counted) const {
    // Modulo 2^64 on the way, exact at the end.
    uint64_t sum = static_cast<uint64_t>(invocations) * all_invocations;
    for (const auto& [counter, factor] : counters) {
        sum += static_cast<uint64_t>(factor) * counted[counter];
    }
    return std::bit_cast<int64_t>(sum) < 0 ? 0 : std::min(sum, kMost);
}

std::string CostText(const KernelCost& cost) {
    std::string text;
    for (const CostRegion& region : cost.regions) {
        text += TextOf(region.count);
        text += region.pass > 0 ? fmt::format(", pass {}:", region.pass) : ":";
        const auto add = [&](const std::string& what) { text += "\n  " + what; };
        const npu::Operations& operations = region.operations;
        if (operations.total() != 0) {
            const std::string fused =
                operations.multiply_add == 0
                    ? ""
                    : fmt::format("{} multiply-add, ", operations.multiply_add);
            add(fmt::format("operations {} simple, {}{} division, {} special, {} bits",
                            operations.simple, fused, operations.division, operations.special,
                            region.operation_bits / operations.total()));
        }
        for (const CostAccess& access : region.accesses) {
            add(TextOf(access));
        }
        for (const auto& [stride, bytes] : region.shared_bytes) {
            add(fmt::format("workgroup memory {}, stride {}", bytes, stride));
        }
        if (region.shared_atomics != 0) {
            add(fmt::format("workgroup memory, {} atomics", region.shared_atomics));
        }
        for (const CostProduct& product : region.products) {
            add(fmt::format("product {} {}x{}x{}, sums {}",
                            npu::kMatrixTypeNames[static_cast<size_t>(product.type)], product.m,
                            product.n, product.k, TextOf(product.sums)));
        }
        if (region.barriers != 0) {
            add(fmt::format("barriers {}", region.barriers));
        }
        text += '\n';
    }
    if (!cost.scalar_operations.empty()) {
        text += "scalar:\n";
        for (const auto& [count, operations] : cost.scalar_operations) {
            text += fmt::format("  {} of {}\n", operations, TextOf(count));
        }
    }
    return text;
}

npu::DispatchRecord DispatchRecordOf(const KernelCost& cost,
                                     std::string name,
                                     uint64_t workgroups,
                                     std::span<const uint64_t> counters,
                                     std::span<const npu::MemoryRange> ranges,
                                     uint32_t grid_axes,
                                     bool with_lines) {
    npu::DispatchRecord record = {.name = std::move(name),
                                  .workgroups = std::max<uint64_t>(1, workgroups)};
    record.split = npu::ProductSplit::kWorkgroup;
    const uint64_t invocations = Times(record.workgroups, cost.workgroup_invocations);
    uint64_t bits = 0;
    std::map<uint32_t, uint64_t> shared_bytes;
    Lines lines(cost.sources, with_lines);
    std::vector<Parts> parts;
    std::vector<uint64_t> counts;
    counts.reserve(cost.regions.size());
    for (const CostRegion& region : cost.regions) {
        counts.push_back(region.count.Evaluate(invocations, counters));
    }
    const Passes passes(cost, counts);
    record.passes.resize(passes.size());
    for (size_t i = 0; i < cost.regions.size(); ++i) {
        const CostRegion& region = cost.regions[i];
        const uint64_t count = counts[i];
        if (count == 0) {
            continue;
        }
        const uint32_t number = passes.NumberOf(region);
        npu::Pass only;
        npu::Pass& pass = record.passes.empty() ? only : record.passes[number];
        const auto add = [&](uint64_t& to, uint64_t each) { to = Plus(to, Times(count, each)); };
        const auto add_both = [&](uint64_t& to, uint64_t& of_pass, uint64_t each) {
            add(to, each);
            add(of_pass, each);
        };
        npu::Operations& in_pass = pass.operations;
        add_both(record.operations.simple, in_pass.simple, region.operations.simple);
        add_both(record.operations.multiply_add, in_pass.multiply_add,
                 region.operations.multiply_add);
        add_both(record.operations.division, in_pass.division, region.operations.division);
        add_both(record.operations.special, in_pass.special, region.operations.special);
        add(bits, region.operation_bits);
        // Each reads and writes its bank.
        add_both(record.scratchpad_accesses, pass.scratchpad_accesses, 2 * region.shared_atomics);
        for (const auto& [stride, bytes] : region.shared_bytes) {
            add_both(shared_bytes[stride], pass.scratchpad_bytes, bytes);
        }
        for (const CostAccess& access : region.accesses) {
            const bool has_range = access.buffer < ranges.size();
            const npu::MemoryRange range = has_range ? ranges[access.buffer] : npu::MemoryRange();
            AddAccess(access, count, number, record.workgroups, range, record);
            const uint64_t bytes = DivideUp(Times(count, access.bytes), access.sharers);
            lines.Add(access.source, npu::LineWork::kBytes, bytes);
            if (range.memory != 0) {
                const bool is_apart = (grid_axes & ~access.grid_axes) == 0 &&
                                      (access.kind == npu::AccessKind::kStream ||
                                       access.kind == npu::AccessKind::kReuse);
                AddToParts(access, bytes, range, is_apart, parts);
            }
        }
        for (const CostProduct& product : region.products) {
            AddProduct(product, DivideUp(count, cost.subgroup_size),
                       product.sums.Evaluate(invocations, counters) / cost.subgroup_size, number,
                       record.workgroups, record);
            lines.Add(product.source, npu::LineWork::kProducts,
                      Times(DivideUp(count, cost.subgroup_size),
                            Times(Times(product.m, product.n), product.k)));
        }
        if (with_lines) {
            for (const auto& [source, line] : region.lines) {
                lines.Add(
                    source, npu::LineWork::kOperations,
                    Times(count, Plus(Plus(line.operations.simple, line.operations.multiply_add),
                                      line.operations.division)));
                lines.Add(source, npu::LineWork::kSpecial, Times(count, line.operations.special));
                lines.Add(source, npu::LineWork::kScratchpad, Times(count, line.shared_bytes));
            }
        }
    }
    for (const auto& [count, operations] : cost.scalar_operations) {
        const uint64_t of_workgroups =
            DivideUp(count.Evaluate(invocations, counters), cost.workgroup_invocations);
        record.scalar_operations = Plus(record.scalar_operations, Times(of_workgroups, operations));
    }
    record.lines = lines.Most();
    for (const Parts& of_range : parts) {
        if (of_range.are_apart) {
            FindRepeated(of_range, record);
        }
    }
    if (const uint64_t operations = record.operations.total(); operations != 0) {
        // The nearest of the widths that vector units have.
        const uint64_t mean = bits / operations;
        record.element_bits = mean <= 12 ? 8 : mean <= 24 ? 16 : mean <= 48 ? 32 : 64;
    }
    // The record has one stride: that of most bytes.
    uint64_t most = 0;
    for (const auto& [stride, bytes] : shared_bytes) {
        record.scratchpad_bytes = Plus(record.scratchpad_bytes, bytes);
        if (bytes > most) {
            most = bytes;
            record.scratchpad_stride_words = stride;
        }
    }
    uint64_t moved = 0;
    for (const npu::Access& access : record.accesses) {
        moved = Plus(moved, access.bytes);
    }
    const uint64_t tile = std::min(kMostTileBytes, DivideUp(moved, record.workgroups));
    record.scratchpad = {.least_bytes = cost.shared_bytes + std::min<uint64_t>(tile, 1024),
                         .preferred_bytes = cost.shared_bytes + tile};
    record.scratchpad.preferred_bytes =
        std::min(record.scratchpad.preferred_bytes, kMost / record.workgroups);
    record.scratchpad.least_bytes =
        std::min(record.scratchpad.least_bytes, record.scratchpad.preferred_bytes);
    Bound(record);
    return record;
}

}  // namespace fornax::kernel
