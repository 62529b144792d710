// The stored form of a kernel's cost, which the cache keeps beside its code: numbers of 8 bytes.
#include <algorithm>
#include <bit>
#include <iterator>

#include <fmt/format.h>

#include "compiler/kernel/interface/kernel_cost.h"

namespace fornax::kernel {

namespace {

class Writer {
  public:
    void Number(uint64_t number) {
        for (int i = 0; i < 8; ++i) {
            bytes_.push_back(static_cast<uint8_t>(number >> (8 * i)));
        }
    }
    void Count(const CostCount& count) {
        Number(std::bit_cast<uint64_t>(count.invocations));
        Number(count.counters.size());
        for (const auto& [counter, factor] : count.counters) {
            Number(counter);
            Number(std::bit_cast<uint64_t>(factor));
        }
    }
    void Text(const std::string& text) {
        Number(text.size());
        for (size_t i = 0; i < text.size(); i += 8) {
            uint64_t number = 0;
            for (size_t j = i; j < std::min(i + 8, text.size()); ++j) {
                number |= uint64_t{static_cast<uint8_t>(text[j])} << (8 * (j - i));
            }
            Number(number);
        }
    }
    std::vector<uint8_t> Take() { return std::move(bytes_); }

  private:
    std::vector<uint8_t> bytes_;
};

// Gives zeros behind the end, and says so.
class Reader {
  public:
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    uint64_t Number(uint64_t most = UINT64_MAX) {
        if (bytes_.size() < 8) {
            ok_ = false;
            return 0;
        }
        uint64_t number = 0;
        for (int i = 0; i < 8; ++i) {
            number |= uint64_t{bytes_[i]} << (8 * i);
        }
        bytes_ = bytes_.subspan(8);
        ok_ = ok_ && number <= most;
        return ok_ ? number : 0;
    }
    uint32_t Word() { return static_cast<uint32_t>(Number(UINT32_MAX)); }
    // Reads the number of things that take 8 bytes at least.
    uint64_t Size() { return Number(bytes_.size() / 8); }
    CostCount Count(uint32_t counters) {
        CostCount count{.invocations = std::bit_cast<int64_t>(Number()), .counters = {}};
        for (uint64_t left = Size(); left > 0 && ok_; --left) {
            const uint32_t counter = Word();
            ok_ = ok_ && counter < counters;
            count.counters[counter] = std::bit_cast<int64_t>(Number());
        }
        return count;
    }
    std::string Text() {
        const uint64_t size = Number(bytes_.size());
        std::string text;
        for (uint64_t i = 0; i < size && ok_; i += 8) {
            const uint64_t number = Number();
            for (uint64_t j = 0; j < 8; ++j) {
                const auto byte = static_cast<char>(number >> (8 * j));
                if (i + j < size) {
                    text.push_back(byte);
                } else {
                    ok_ = ok_ && byte == 0;
                }
            }
        }
        return text;
    }
    // The number of something in a list, or kNone.
    uint32_t Place(size_t size) {
        const uint32_t place = Word();
        ok_ = ok_ && (place == kNone || place < size);
        return place;
    }
    bool ok() const { return ok_; }
    bool ended() const { return bytes_.empty(); }

  private:
    std::span<const uint8_t> bytes_;
    bool ok_ = true;
};

constexpr uint64_t kAccessKinds = npu::kAccessKindNames.size();

}  // namespace

std::vector<uint8_t> SerializeCost(const KernelCost& cost) {
    Writer out;
    for (const uint32_t number :
         {cost.counters, cost.workgroup_invocations, cost.subgroup_size, cost.shared_bytes}) {
        out.Number(number);
    }
    out.Number(cost.buffers.size());
    for (const CostBuffer& buffer : cost.buffers) {
        for (const uint32_t number : {buffer.set, buffer.offset_bytes, buffer.dynamic_offset}) {
            out.Number(number);
        }
    }
    out.Number(cost.sources.size());
    for (const std::string& source : cost.sources) {
        out.Text(source);
    }
    out.Number(cost.regions.size());
    for (const CostRegion& region : cost.regions) {
        out.Count(region.count);
        out.Number(region.pass);
        for (const uint64_t number :
             {region.operations.simple, region.operations.multiply_add, region.operations.division,
              region.operations.special, region.operation_bits, region.barriers,
              region.shared_atomics, uint64_t{region.shared_bytes.size()}}) {
            out.Number(number);
        }
        for (const auto& [stride, bytes] : region.shared_bytes) {
            out.Number(stride);
            out.Number(bytes);
        }
        out.Number(region.accesses.size());
        for (const CostAccess& access : region.accesses) {
            for (const uint64_t number :
                 {static_cast<uint64_t>(access.kind), uint64_t{access.writes}, access.bytes,
                  uint64_t{access.sharers}, uint64_t{access.all_workgroups},
                  uint64_t{access.element_bytes}, uint64_t{access.buffer},
                  uint64_t{access.grid_axes}, uint64_t{access.order}, uint64_t{access.apart},
                  uint64_t{access.far}, uint64_t{access.in_parts}, uint64_t{access.source}}) {
                out.Number(number);
            }
        }
        out.Number(region.products.size());
        for (const CostProduct& product : region.products) {
            for (const uint64_t number : {static_cast<uint64_t>(product.type), uint64_t{product.m},
                                          uint64_t{product.n}, uint64_t{product.k}}) {
                out.Number(number);
            }
            out.Count(product.sums);
            out.Number(product.source);
        }
        out.Number(region.lines.size());
        for (const auto& [source, line] : region.lines) {
            for (const uint64_t number :
                 {uint64_t{source}, line.operations.simple, line.operations.multiply_add,
                  line.operations.division, line.operations.special, line.shared_bytes}) {
                out.Number(number);
            }
        }
    }
    out.Number(cost.scalar_operations.size());
    for (const auto& [count, operations] : cost.scalar_operations) {
        out.Count(count);
        out.Number(operations);
    }
    return out.Take();
}

Result<KernelCost> ParseCost(std::span<const uint8_t> bytes) {
    Reader in(bytes);
    KernelCost cost;
    bool in_order = true;
    cost.counters = in.Word();
    cost.workgroup_invocations = in.Word();
    cost.subgroup_size = in.Word();
    cost.shared_bytes = in.Word();
    for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
        CostBuffer& buffer = cost.buffers.emplace_back();
        buffer.set = in.Word();
        buffer.offset_bytes = in.Word();
        buffer.dynamic_offset = in.Word();
    }
    for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
        cost.sources.push_back(in.Text());
    }
    for (uint64_t regions = in.Size(); regions > 0 && in.ok(); --regions) {
        CostRegion& region = cost.regions.emplace_back();
        region.count = in.Count(cost.counters);
        region.pass = static_cast<uint32_t>(in.Number(kMostPasses - 1));
        region.operations.simple = in.Number();
        region.operations.multiply_add = in.Number();
        region.operations.division = in.Number();
        region.operations.special = in.Number();
        region.operation_bits = in.Number();
        region.barriers = in.Number();
        region.shared_atomics = in.Number();
        for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
            const uint32_t stride = in.Word();
            region.shared_bytes[stride] = in.Number();
        }
        for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
            CostAccess& access = region.accesses.emplace_back();
            access.kind = static_cast<npu::AccessKind>(in.Number(kAccessKinds - 1));
            access.writes = in.Number(1) != 0;
            access.bytes = in.Number();
            access.sharers = std::max(1U, in.Word());
            access.all_workgroups = in.Number(1) != 0;
            access.element_bytes = in.Word();
            access.buffer = in.Place(cost.buffers.size());
            access.grid_axes = in.Word();
            access.order = in.Word();
            access.apart = in.Number(1) != 0;
            access.far = in.Number(1) != 0;
            access.in_parts = in.Number(1) != 0;
            access.source = in.Place(cost.sources.size());
        }
        for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
            CostProduct& product = region.products.emplace_back();
            product.type = static_cast<npu::MatrixType>(in.Number(npu::kMatrixTypes - 1));
            product.m = in.Word();
            product.n = in.Word();
            product.k = in.Word();
            product.sums = in.Count(cost.counters);
            product.source = in.Place(cost.sources.size());
        }
        for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
            CostLine& line = region.lines[in.Place(cost.sources.size())];
            line.operations.simple = in.Number();
            line.operations.multiply_add = in.Number();
            line.operations.division = in.Number();
            line.operations.special = in.Number();
            line.shared_bytes = in.Number();
        }
    }
    for (uint64_t left = in.Size(); left > 0 && in.ok(); --left) {
        const CostCount count = in.Count(cost.counters);
        const auto last = cost.scalar_operations.end();
        const size_t before = cost.scalar_operations.size();
        const auto at = cost.scalar_operations.emplace_hint(last, count, in.Number());
        in_order = in_order && cost.scalar_operations.size() > before && std::next(at) == last;
    }
    if (!in.ok() || !in_order || !in.ended() || cost.workgroup_invocations == 0 ||
        cost.subgroup_size == 0) {
        return Error{ErrorCode::kDataLoss,
                     fmt::format("The {} bytes of a kernel's cost are not what this version "
                                 "writes.",
                                 bytes.size())};
    }
    return cost;
}

}  // namespace fornax::kernel
