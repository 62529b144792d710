// Takes down what the emitter decides, for `fornax explain-kernel`.
//
// The emitter opens an access, tells its form where it falls, and closes it; the first form told
// counts, because later ones are the fallback for the edge. Without a record every call does
// nothing.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <string>

#include "compiler/kernel/access/access_plan.h"
#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/explain/explain.h"

namespace fornax::kernel {

class ExplainRecorder {
  public:
    // `record` may be null.
    ExplainRecorder(const ir::Kernel& kernel,
                    const LaneAnalysis& patterns,
                    const BarrierRegions& regions,
                    KernelExplanation* record)
        : kernel_(kernel), patterns_(&patterns), regions_(regions), record_(record) {}

    bool enabled() const { return record_ != nullptr; }

    // The kernel as a whole: its regions and what lives across them.
    void Begin();

    // What is emitted between them is a region with a lane map of its own.
    void BeginRegionMap(uint32_t region, const LaneAnalysis& patterns);
    void EndRegionMap(const LaneAnalysis& patterns) { patterns_ = &patterns; }

    // What the current access became. `runs`: vector accesses of kRuns.
    void Form(AccessForm form, AccessCheck check, uint32_t runs = 0);
    // The plan that it is made by. A speculation keeps its form.
    void Plan(const AccessPlan& plan);
    // It is a speculation; the text says which.
    void Speculation(llvm::function_ref<std::string()> text);

    // A basic block begins to issue commands to the matrix unit; what it issues, so far.
    void BeginMatrixCommands();
    void MatrixCommands(const hal::MatrixCounts& counts);
    void MatrixTiles();  // the host's tile registers carry them out

    // The emission of one instruction, while it lives. `epoch` is the emitter's: 0 outside of
    // regions, else the region + 1.
    class Scope {
      public:
        Scope(ExplainRecorder& recorder,
              ir::InstId id,
              uint32_t epoch,
              bool masked,
              bool workgroup_level = false)
            : recorder_(recorder), id_(id) {
            if (recorder_.enabled()) {
                recorder_.Enter(id, epoch, masked, workgroup_level);
            }
        }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() {
            if (recorder_.enabled()) {
                recorder_.Leave(id_);
            }
        }

      private:
        ExplainRecorder& recorder_;
        ir::InstId id_;
    };

  private:
    void Enter(ir::InstId id, uint32_t epoch, bool masked, bool workgroup_level);
    void Leave(ir::InstId id);
    void BeginAccess(const ir::Instruction& inst, uint32_t region, bool masked);
    void BeginConstruct(ir::InstId id, uint32_t region, bool workgroup_level);
    std::string Memory(const ir::Instruction& inst) const;

    const ir::Kernel& kernel_;
    const LaneAnalysis* patterns_;
    const BarrierRegions& regions_;
    KernelExplanation* record_;
    ir::InstId current_;
    uint32_t region_ = 0;          // of it
    bool in_access_ = false;       // the last of `accesses` is open
    std::vector<uint32_t> loops_;  // around the current point: 1 + index of their records
};

// "lane * 4 + base", "4 of 16 lanes differ", ... for a person.
std::string DescribePattern(const LanePattern& pattern);

}  // namespace fornax::kernel
