// Copies of what follows a place in a construct, up to the construct's end and without barriers:
// for invocations that went apart there and meet no barrier before they come together again.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/transform/barrier_paths.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

class BarrierRest {
  public:
    explicit BarrierRest(ir::Kernel& kernel) : kernel_(kernel), cloner_(kernel) {}

    // Makes a scope, in no block yet, with the results of construct `around`: the branch inside of
    // it, and all that comes after until the construct ends, loops' further iterations included.
    // `around` may be the branch. Nothing of the kernel has changed since `structure` was made.
    void Copy(const Structure& structure, ir::InstId around, ir::InstId branch);
    // Appends to the block what keeps the values that the copy needs. That is where the branch is.
    void Keep(ir::BlockId block);
    // Appends the copy to the block, ways out of `around` included. The results are the copy's.
    std::vector<ir::ValueId> Append(ir::BlockId block);

  private:
    // A construct around the branch, and where in it the way to the branch goes on.
    struct Step {
        ir::InstId construct;
        ir::BlockId block;
        size_t index = 0;
    };
    struct Exit {
        Way way;
        std::vector<uint32_t> locals;  // one for each value
    };

    ir::InstId NewScope(std::span<const ir::ValueId> results, ir::BlockId& contents);
    ir::InstId CopyFrom(size_t level, ir::BlockId into);
    void CopyRest(size_t level, ir::BlockId into, bool with_terminator);
    void DropVotes(ir::BlockId block);
    void Detach(ir::BlockId block, std::vector<ir::InstId>& inside);
    void LeaveLater(ir::BlockId block);
    void UseKept(ir::BlockId block, ir::Builder& before);
    ir::ValueId Kept(ir::ValueId value, ir::Builder& before);
    uint32_t NewLocal(ir::Type type);
    ir::ValueId LoadLocal(ir::Builder& builder, uint32_t local);
    void StoreLocal(ir::Builder& builder, uint32_t local, ir::ValueId value);

    ir::Kernel& kernel_;
    Cloner cloner_;
    std::vector<Step> steps_;  // outermost first
    ir::InstId branch_;
    ir::InstId scope_;
    ir::BlockId head_;                                      // what comes before the scope
    std::unordered_map<uint32_t, ir::ValueId> kept_;        // by value; invalid if not yet needed
    std::vector<std::pair<uint32_t, ir::ValueId>> stores_;  // of values to locals
    uint32_t way_local_ = UINT32_MAX;  // the number of the exit taken, from 1; 0 for none
    std::vector<Exit> exits_;
};

}  // namespace fornax::kernel
