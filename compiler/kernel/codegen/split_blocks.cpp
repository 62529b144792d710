#include "compiler/kernel/codegen/split_blocks.h"

#include <iterator>

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

namespace fornax::kernel {

namespace {

// LLVM IR instructions; each becomes several machine instructions.
constexpr size_t kLongestBlock = 2048;

// A comparison is selected together with the branch or select that uses it, so it stays with it.
bool MayCutBefore(const llvm::Instruction& instruction) {
    const llvm::Instruction* previous = instruction.getPrevNode();
    return !instruction.isTerminator() && !llvm::isa<llvm::PHINode>(instruction) &&
           !llvm::isa<llvm::AllocaInst>(instruction) && previous &&
           !llvm::isa<llvm::CmpInst>(previous);
}

class SplitBlocksPass : public llvm::FunctionPass {
  public:
    static char ID;

    SplitBlocksPass() : llvm::FunctionPass(ID) {}

    llvm::StringRef getPassName() const override { return "Cut long basic blocks"; }

    bool runOnFunction(llvm::Function& function) override {
        bool changed = false;
        // A cut puts the rest behind the block, where this loop comes to it next.
        for (auto block = function.begin(); block != function.end(); ++block) {
            if (block->size() <= kLongestBlock) {
                continue;
            }
            auto at = std::next(block->begin(), kLongestBlock);
            while (at != block->end() && !MayCutBefore(*at)) {
                ++at;
            }
            if (at != block->end()) {
                block->splitBasicBlock(at, "cut");
                changed = true;
            }
        }
        return changed;
    }
};

char SplitBlocksPass::ID = 0;

}  // namespace

llvm::FunctionPass* CreateSplitBlocksPass() {
    return new SplitBlocksPass;
}

}  // namespace fornax::kernel
