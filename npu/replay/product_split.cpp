#include "npu/replay/product_split.h"

#include <algorithm>
#include <bit>

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

    // Tries every division of the grid that has no more pieces than there are units.
    std::vector<SplitProduct> Best() {
        const uint64_t units = description_.cores.count() * description_.matrix.units;
        const ProductShape& shape = product_.shape;
        for (uint64_t batch = 1; batch <= std::min(product_.batch, units); batch = Next(batch)) {
            for (uint64_t n = 1; n <= std::min(shape.n, units / batch); n = Next(n)) {
                for (uint64_t m = 1; m <= std::min(shape.m, units / (batch * n)); m = Next(m)) {
                    Consider(Divide({batch, m, n}));
                }
            }
        }
        return std::move(best_);
    }

  private:
    // 1 to 16, and then steps of a quarter of the power of two below. The grid does not depend on
    // the description, so that a larger machine has all choices of a smaller.
    static uint64_t Next(uint64_t parts) {
        return parts + (parts < 16 ? 1 : std::bit_floor(parts) / 4);
    }

    void Consider(const SplitProduct& split) {
        const auto is_no_better = [](const SplitProduct& a, const SplitProduct& b) {
            return a.cycles >= b.cycles && a.port_bytes >= b.port_bytes &&
                   a.read_again >= b.read_again && a.cores <= b.cores &&
                   CeilDivide(a.scratchpad_bytes, a.cores) >=
                       CeilDivide(b.scratchpad_bytes, b.cores);
        };
        for (const SplitProduct& other : best_) {
            if (is_no_better(split, other)) {
                return;
            }
        }
        std::erase_if(best_, [&](const SplitProduct& other) { return is_no_better(other, split); });
        best_.push_back(split);
    }

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

    const Description& description_;
    const Product& product_;
    std::vector<SplitProduct> best_;
};

}  // namespace

std::vector<SplitProduct> SplitsOverUnits(const Description& description, const Product& product) {
    if (product.shape.empty() || product.batch == 0) {
        return {};
    }
    return Splitter(description, product).Best();
}

}  // namespace fornax::npu
