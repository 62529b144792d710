// How often a loop runs, if that does not depend on anything unknown.
#pragma once

#include <optional>
#include <vector>

#include "compiler/kernel/analysis/known_values.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

class TripCounter {
  public:
    TripCounter(const ir::Kernel& kernel, const Structure& structure)
        : kernel_(kernel), structure_(structure), values_(kernel) {}

    // The number of iterations that are begun, the one that ends the loop included: found by
    // running the known part of the loop (parameters with constant initial values, and what
    // follows from them) up to `limit` times. Other exits may end the loop before.
    std::optional<uint32_t> Count(ir::InstId loop, uint32_t limit);

    // The value follows from constants and from loops' parameters alone, one of them the loop's.
    bool DependsOnLoopOnly(ir::InstId loop, ir::ValueId value) const;

  private:
    struct Test {
        ir::ValueId condition;
        bool exits_if;
    };

    void FindTests(ir::InstId loop);
    void FindOnlyContinue(ir::InstId loop);
    void FindTestsIn(ir::InstId loop, ir::BlockId block, uint32_t end);
    std::optional<uint64_t> Common(ir::InstId loop, size_t param);
    bool DependsOn(ir::InstId loop, ir::ValueId value, uint32_t depth, bool* on_loop) const;

    const ir::Kernel& kernel_;
    const Structure& structure_;
    std::vector<Test> tests_;
    KnownValues values_;  // of the current iteration
};

}  // namespace fornax::kernel
