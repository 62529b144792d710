// One walk through each block leaves a load of a slot at most, which LLVM's updater then connects
// with what the blocks before it stored.
#include "compiler/kernel/codegen/promote_slots.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include <utility>
#include <vector>

namespace fornax::kernel {

namespace {

class SlotPromoter {
  public:
    explicit SlotPromoter(llvm::Function& function) : function_(function) {}

    void Run() {
        for (llvm::Instruction& instruction : function_.getEntryBlock()) {
            auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
            if (slot && IsPromotable(*slot)) {
                numbers_[slot] = static_cast<unsigned>(slots_.size());
                slots_.push_back({slot, {}, {}});
            }
        }
        if (slots_.empty()) {
            return;
        }
        for (llvm::BasicBlock& block : function_) {
            ForwardInside(block);
        }
        for (Slot& slot : slots_) {
            Connect(slot);
        }
        for (llvm::Instruction* instruction : dead_) {
            instruction->eraseFromParent();
        }
    }

  private:
    struct Slot {
        llvm::AllocaInst* alloca = nullptr;
        // By block, what the slot holds at its end. Values may be loads that are replaced later.
        std::vector<std::pair<llvm::BasicBlock*, llvm::WeakTrackingVH>> stored;
        std::vector<llvm::LoadInst*> loads;  // of what a block finds there
    };

    static bool IsPromotable(const llvm::AllocaInst& slot) {
        llvm::Type* type = slot.getAllocatedType();
        for (const llvm::User* user : slot.users()) {
            const auto* load = llvm::dyn_cast<llvm::LoadInst>(user);
            const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
            const bool whole = (load && load->isSimple() && load->getType() == type) ||
                               (store && store->isSimple() && store->getValueOperand() != &slot &&
                                store->getValueOperand()->getType() == type);
            if (!whole) {
                return false;
            }
        }
        return !slot.isArrayAllocation();
    }

    // The number of the slot behind a pointer, or -1.
    int SlotOf(const llvm::Value* pointer) const {
        const auto* slot = llvm::dyn_cast<llvm::AllocaInst>(pointer);
        const auto found = slot ? numbers_.find(slot) : numbers_.end();
        return found == numbers_.end() ? -1 : static_cast<int>(found->second);
    }

    // Leaves one load of a slot in the block at most, which sees what was stored before the block.
    void ForwardInside(llvm::BasicBlock& block) {
        llvm::SmallDenseMap<unsigned, llvm::Value*, 8> now;
        llvm::SmallVector<unsigned, 8> written;
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
            if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                const int slot = SlotOf(load->getPointerOperand());
                if (slot < 0) {
                    continue;
                }
                llvm::Value*& value = now[static_cast<unsigned>(slot)];
                if (value) {
                    load->replaceAllUsesWith(value);
                    load->eraseFromParent();
                } else {
                    value = load;
                    slots_[static_cast<unsigned>(slot)].loads.push_back(load);
                    dead_.push_back(load);
                }
            } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
                const int slot = SlotOf(store->getPointerOperand());
                if (slot < 0) {
                    continue;
                }
                written.push_back(static_cast<unsigned>(slot));
                now[static_cast<unsigned>(slot)] = store->getValueOperand();
                store->eraseFromParent();
            }
        }
        for (unsigned slot : written) {
            // A slot that is written twice is there twice, with one value.
            auto& stored = slots_[slot].stored;
            if (stored.empty() || stored.back().first != &block) {
                stored.emplace_back(&block, now[slot]);
            }
        }
    }

    void Connect(Slot& slot) {
        llvm::SSAUpdater updater;
        updater.Initialize(slot.alloca->getAllocatedType(), slot.alloca->getName());
        for (auto& [block, value] : slot.stored) {
            updater.AddAvailableValue(block, value);
        }
        for (llvm::LoadInst* load : slot.loads) {
            llvm::Value* value = updater.GetValueInMiddleOfBlock(load->getParent());
            // Only a block that nothing leads to can find its own value.
            load->replaceAllUsesWith(value == load ? llvm::UndefValue::get(load->getType())
                                                   : value);
        }
        dead_.push_back(slot.alloca);
    }

    llvm::Function& function_;
    llvm::DenseMap<const llvm::AllocaInst*, unsigned> numbers_;
    std::vector<Slot> slots_;
    std::vector<llvm::Instruction*> dead_;
};

}  // namespace

void PromoteSlots(llvm::Module& module) {
    for (llvm::Function& function : module) {
        if (!function.isDeclaration()) {
            SlotPromoter(function).Run();
        }
    }
}

}  // namespace fornax::kernel
