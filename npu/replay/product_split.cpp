#include "npu/replay/product_split.h"

#include <utility>

#include "npu/units/core.h"
#include "npu/units/dma_engine.h"
#include "npu/units/dram.h"
#include "npu/units/scratchpad_banks.h"

namespace fornax::npu {
namespace {

struct Parts {
    uint64_t batch = 1;
    uint64_t m = 1;
    uint64_t n = 1;
    uint64_t count() const { return batch * m * n; }
};

class Splitter {
  public:
    Splitter(const Description& description, const Product& product)
        : description_(description), product_(product) {}

    // Of every division into no more pieces than there are units; more in m never slows.
    SplitProduct Best() const {
        const uint64_t units = description_.cores.count() * description_.matrix.units;
        const ProductShape& shape = product_.shape;
        SplitProduct best;
        Cycles least = UINT64_MAX;
        for (uint64_t batch = 1; batch <= std::min(product_.batch, units); ++batch) {
            for (uint64_t n = 1; n <= std::min(shape.n, units / batch); ++n) {
                const uint64_t m = std::min(shape.m, units / (batch * n));
                const SplitProduct split = Divide({batch, m, n});
                const Cycles cycles = LongestOf(split);
                if (std::pair(cycles, split.pieces) < std::pair(least, best.pieces)) {
                    best = split;
                    least = cycles;
                }
            }
        }
        return best;
    }

  private:
    SplitProduct Divide(const Parts& parts) const {
        const ProductShape& shape = product_.shape;
        const ProductShape piece = {CeilDivide(shape.m, parts.m), CeilDivide(shape.n, parts.n),
                                    shape.k};
        const ProductCycles one = CyclesOfProduct(description_, piece, product_.type);
        const uint64_t batches = CeilDivide(product_.batch, parts.batch);
        SplitProduct split;
        split.pieces = parts.count();
        split.cores = std::min(description_.cores.count(), split.pieces);
        split.cycles = batches * one.cycles;
        // As many pieces as it takes, which may be fewer where extents are not divisible.
        const uint64_t used = CeilDivide(product_.batch, batches) * CeilDivide(shape.m, piece.m) *
                              CeilDivide(shape.n, piece.n);
        split.busy = used * split.cycles;
        split.scratchpad_bytes =
            used * batches *
            ScratchpadBytesOfProduct({description_.matrix.rows, description_.matrix.columns}, piece,
                                     one, product_.type);
        AddOperands(parts, batches, split);
        return split;
    }

    // The pieces of a core have operands in common: neighbours in n those of a, in m those of b.
    // The smaller of both, of one product of the batch, stays in a quarter of the scratchpad, in as
    // many parts as that takes; the larger streams through once for each part.
    void AddOperands(const Parts& parts, uint64_t batches, SplitProduct& split) const {
        const uint64_t on_core = CeilDivide(split.pieces, split.cores);
        const uint64_t in_n = std::min(on_core, parts.n);
        const uint64_t in_m = std::min(CeilDivide(on_core, in_n), parts.m);
        const uint64_t in_batch = CeilDivide(on_core, in_n * in_m);
        const uint64_t a = in_m * CeilDivide(product_.a_bytes, parts.batch * parts.m);
        const uint64_t b = in_n * CeilDivide(product_.b_bytes, parts.batch * parts.n);
        const uint64_t room = std::max<uint64_t>(1, description_.scratchpad.bytes / 4);
        const uint64_t smaller = CeilDivide(std::min(a, b), batches);
        const uint64_t times = std::max<uint64_t>(1, CeilDivide(smaller, room));
        split.port_bytes = in_batch * (std::min(a, b) + times * std::max(a, b));
        split.read_again = (times - 1) * (a > b ? product_.a_bytes : product_.b_bytes);
    }

    Cycles LongestOf(const SplitProduct& split) const {
        const UnitCycles units = {
            .matrix = split.cycles,
            .scratchpad =
                CyclesOnBanks(description_, CeilDivide(split.scratchpad_bytes, split.cores), 1)};
        const auto over = [](uint64_t bytes, double rate) {
            return WholeCycles(static_cast<double>(bytes) / rate);
        };
        const uint64_t dram = product_.a_bytes + product_.b_bytes + split.read_again;
        return std::max({CyclesOfWorkgroup(units, description_.cores.overlap),
                         over(split.port_bytes, DmaBytesPerCycle(description_, 1)),
                         over(dram, DramBytesPerCycle(description_))});
    }

    const Description& description_;
    const Product& product_;
};

}  // namespace

SplitProduct SplitOverUnits(const Description& description, const Product& product) {
    if (product.shape.empty() || product.batch == 0) {
        return {};
    }
    return Splitter(description, product).Best();
}

}  // namespace fornax::npu
