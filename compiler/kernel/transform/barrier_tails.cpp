// Keeps exits that depend on the invocation apart from barriers.
//
// Code generation runs a construct that holds a barrier once for the workgroup, and takes an exit
// from it to be uniform: an invocation that left before a barrier would miss it. What follows the
// last barrier is another matter, as in an inlined function that returns early at its end:
//   scope @0 { ...; barrier; if %c { exit @0 } ...; yield }
// becomes
//   scope { ...; barrier; scope @1 { if %c { exit @1 } ...; yield } yield }
// whose inner scope holds no barrier. Loops need nothing: after an exit that is not uniform, the
// others would meet the barrier again.
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

class TailIsolator {
  public:
    explicit TailIsolator(Kernel& kernel) : kernel_(kernel) {}

    // True if the block holds a barrier.
    bool VisitBlock(BlockId block) {
        InstId parent = kernel_.block(block).parent;
        size_t tail = 0;  // first instruction after all barriers
        for (size_t i = 0; i < kernel_.block(block).insts.size(); ++i) {
            InstId id = kernel_.block(block).insts[i];
            bool barrier = kernel_.inst(id).op == Op::kBarrier;
            for (BlockId inner : std::vector(kernel_.inst(id).blocks)) {
                barrier |= VisitBlock(inner);
            }
            if (barrier) {
                tail = i + 1;
            }
        }
        if (tail != 0 && parent.valid() && kernel_.inst(parent).op != Op::kLoop) {
            Isolate(parent, block, tail);
        }
        return tail != 0;
    }

  private:
    // Points the exits to `from` that the instruction holds to `to`; only looks if that is invalid.
    bool Retarget(InstId id, InstId from, InstId to) {
        Instruction& inst = kernel_.inst(id);
        bool found = inst.op == Op::kExit && inst.target == from;
        if (found && to.valid()) {
            inst.target = to;
        }
        for (BlockId block : inst.blocks) {
            for (InstId inner : kernel_.block(block).insts) {
                found |= Retarget(inner, from, to);
            }
        }
        return found;
    }

    void Isolate(InstId construct, BlockId block, size_t tail) {
        const std::vector<InstId> insts = kernel_.block(block).insts;
        bool exits = false;
        for (size_t i = tail; i < insts.size(); ++i) {
            exits |= Retarget(insts[i], construct, InstId{});
        }
        if (!exits) {
            return;
        }
        std::vector<Type> types;
        for (ValueId result : kernel_.inst(construct).results) {
            types.push_back(kernel_.type(result));
        }
        InstId scope = kernel_.NewInst(Op::kScope, {}, types);
        BlockId contents = kernel_.NewBlock(scope);
        kernel_.inst(scope).blocks = {contents};
        kernel_.block(contents).insts.assign(insts.begin() + static_cast<ptrdiff_t>(tail),
                                             insts.end());
        for (size_t i = tail; i < insts.size(); ++i) {
            Retarget(insts[i], construct, scope);
        }
        InstId yield = kernel_.NewInst(Op::kYield, kernel_.inst(scope).results, {});
        auto& rest = kernel_.block(block).insts;
        rest.resize(tail);
        rest.push_back(scope);
        rest.push_back(yield);
    }

    Kernel& kernel_;
};

}  // namespace

void IsolateBarrierTails(Kernel& kernel) {
    TailIsolator(kernel).VisitBlock(kernel.body);
}

}  // namespace fornax::kernel
