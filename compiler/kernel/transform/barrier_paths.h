// Where control goes from a branch, and whether it meets a barrier on all ways: what tells branches
// that invocations of a valid kernel take together from those that they may take apart.
//
// OpControlBarrier is met by all invocations of the workgroup or by none. So a branch is taken
// together if the invocations of one side of it certainly meet a barrier before they come together
// with those of the other side.
#pragma once

#include <compare>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

// A way out of a branch: an exit from a construct or a `continue` of a loop around it.
struct Way {
    ir::InstId target;
    bool continues = false;
    friend auto operator<=>(const Way&, const Way&) = default;
};

// Where a side of a branch leads.
struct SideWays {
    std::vector<Way> leaves;  // each once, in the order of the text
    bool falls = false;       // to what follows the branch
    bool returns = false;     // ends the invocation
};

class BarrierPaths {
  public:
    BarrierPaths(const ir::Kernel& kernel, const Structure& structure)
        : kernel_(kernel), structure_(structure) {}

    std::vector<SideWays> Sides(ir::InstId branch) const;
    // The way that leads least far out; the list is not empty.
    Way Innermost(const std::vector<Way>& ways) const;
    // True if all invocations of a valid kernel take the branch together.
    bool TakenTogether(ir::InstId branch);

  private:
    // What a construct without barriers on the way may do.
    struct Through {
        bool falls = false;
        std::vector<ir::InstId> leaves;  // terminators
    };

    bool Meets(ir::BlockId block, size_t index, Way region);
    bool MeetsAfter(ir::InstId terminator, Way region);
    bool Inside(ir::BlockId block, Way region) const;
    const Through& GoThrough(ir::InstId construct);
    void Walk(ir::BlockId block, ir::InstId construct, Through& found);

    const ir::Kernel& kernel_;
    const Structure& structure_;
    std::unordered_map<uint32_t, Through> through_;     // by construct
    std::set<std::pair<ir::BlockId, size_t>> visited_;  // of one question
};

}  // namespace fornax::kernel
