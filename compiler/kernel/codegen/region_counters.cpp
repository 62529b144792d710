#include "compiler/kernel/codegen/region_counters.h"

#include <cstddef>

#include "hal/kernel_abi.h"

namespace fornax::kernel {

void RegionCounters::Count(llvm::IRBuilder<>& builder,
                           llvm::BasicBlock& entry,
                           uint64_t counter,
                           llvm::Value* invocations) {
    llvm::Type* i64 = builder.getInt64Ty();
    llvm::AllocaInst*& count = counters_[counter];
    if (count == nullptr) {
        llvm::IRBuilder<> at(&entry, entry.begin());
        count = at.CreateAlloca(i64, nullptr, "region_count");
        at.CreateStore(at.getInt64(0), count);
    }
    builder.CreateStore(builder.CreateAdd(builder.CreateLoad(i64, count), invocations), count);
}

void RegionCounters::Finish(llvm::Function& kernel) const {
    if (counters_.empty()) {
        return;
    }
    for (llvm::BasicBlock& block : kernel) {
        if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator())) {
            continue;
        }
        llvm::IRBuilder<> at(block.getTerminator());
        llvm::Type* i64 = at.getInt64Ty();
        llvm::Value* field = at.CreateConstInBoundsGEP1_64(
            at.getInt8Ty(), kernel.getArg(1), offsetof(hal::WorkerFrame, region_counts));
        llvm::Value* words = at.CreateLoad(at.getPtrTy(), field, "region_counts");
        for (const auto& [counter, count] : counters_) {
            llvm::Value* word = at.CreateConstInBoundsGEP1_64(i64, words, counter);
            at.CreateStore(at.CreateAdd(at.CreateLoad(i64, word), at.CreateLoad(i64, count)), word);
        }
    }
}

}  // namespace fornax::kernel
