#include "compiler/kernel/codegen/order_products.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/MemoryLocation.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace fornax::kernel {

namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::LoadInst;
using llvm::StoreInst;
using llvm::Value;

// Sums of a block, and instructions, that are looked at, which keeps the time of this pass down.
constexpr size_t kMostSums = 256;
constexpr size_t kMostInstructions = 20'000;
// Steps and sums below which the order hardly matters.
constexpr size_t kFewestSteps = 4;
constexpr size_t kFewestSums = 4;
const llvm::Align kSlotAlignment(64);

// One sum: multiply-adds, each of which only the next one uses.
struct Sum {
    llvm::SmallVector<Instruction*, 32> steps;
};

bool IsMultiplyAdd(const Instruction& inst) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
    return call &&
           (call->getIntrinsicID() == llvm::Intrinsic::fma ||
            call->getIntrinsicID() == llvm::Intrinsic::fmuladd) &&
           llvm::isa<llvm::FixedVectorType>(inst.getType());
}

class Order {
  public:
    Order(BasicBlock& block, llvm::AAResults& aliases, unsigned vector_bits)
        : block_(block),
          aliases_(aliases),
          register_bits_(vector_bits),
          registers_(vector_bits >= 512 ? 32 : 16) {}

    // The block behind the sums, where others may follow; null if nothing was changed.
    BasicBlock* Run();

  private:
    void FindSums();
    bool ChooseSums();
    StoreInst* OnlyStore(const Sum& sum) const;
    bool MayMoveDown(const StoreInst& store, const Instruction* end);
    bool SharesOperands() const;
    unsigned MostAlive() const;
    bool Divide();
    std::vector<std::vector<Sum*>> DivideInto(size_t count);
    unsigned RegistersFor(const std::vector<Sum*>& part) const;
    unsigned Registers(const Value* value) const;

    void FindMovable();
    bool CanMove(const Value* value);
    bool IsClobbered(const LoadInst& load);
    void NoteLoads(const Value* value, size_t part);
    Value* Bring(llvm::IRBuilder<>& b, Value* value, size_t part);
    llvm::AllocaInst* NewSlot(llvm::Type* type);
    void BringStores(llvm::IRBuilder<>& b, size_t part, BasicBlock& rest);
    bool MayPrecedeParts(const StoreInst& store, size_t part);

    BasicBlock& block_;
    llvm::BatchAAResults aliases_;
    unsigned register_bits_;
    unsigned registers_;
    llvm::DenseMap<const Instruction*, unsigned> places_;
    std::vector<Sum> all_;
    std::vector<Sum*> sums_;  // those that are ordered, all of one length
    std::vector<std::vector<Sum*>> parts_;
    Instruction* end_ = nullptr;                       // the first that uses a sum
    llvm::SmallPtrSet<const Instruction*, 32> moved_;  // stores of sums that follow all of them
    llvm::DenseMap<const Value*, bool> movable_;
    llvm::DenseMap<const Value*, size_t> last_part_;  // of operands
    llvm::DenseMap<const Value*, Value*> here_;       // what the part has already
    llvm::DenseMap<const Value*, llvm::AllocaInst*> slots_;
    std::vector<std::pair<const LoadInst*, size_t>> loads_;  // and the last part that has it
};

// A value that all lanes share is one register for any number of lanes.
unsigned Order::Registers(const Value* value) const {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (!type) {
        return 0;
    }
    if (llvm::getSplatValue(value)) {
        return 1;
    }
    const uint64_t bits = uint64_t{type->getScalarSizeInBits()} * type->getNumElements();
    return static_cast<unsigned>((bits + register_bits_ - 1) / register_bits_);
}

void Order::FindSums() {
    llvm::DenseMap<const Value*, size_t> ends;
    for (Instruction& inst : block_) {
        places_[&inst] = static_cast<unsigned>(places_.size());
        if (!IsMultiplyAdd(inst)) {
            continue;
        }
        Value* addend = inst.getOperand(2);
        size_t sum = all_.size();
        if (const auto found = ends.find(addend); found != ends.end() && addend->hasOneUse()) {
            sum = found->second;
            ends.erase(found);
        } else {
            all_.emplace_back();
        }
        all_[sum].steps.push_back(&inst);
        ends[&inst] = sum;
    }
}

// The store that is a sum's only use, and that may move; null if there is none.
StoreInst* Order::OnlyStore(const Sum& sum) const {
    const Instruction* last = sum.steps.back();
    if (!last->hasOneUse()) {
        return nullptr;
    }
    auto* store = llvm::dyn_cast<StoreInst>(const_cast<llvm::User*>(*last->user_begin()));
    return store && store->isSimple() && store->getValueOperand() == last &&
                   store->getParent() == &block_
               ? store
               : nullptr;
}

// Nothing from behind the store up to the instruction `end` accesses its memory.
bool Order::MayMoveDown(const StoreInst& store, const Instruction* end) {
    const llvm::MemoryLocation location = llvm::MemoryLocation::get(&store);
    for (const Instruction* inst = store.getNextNode(); inst != end; inst = inst->getNextNode()) {
        if (inst->mayReadOrWriteMemory() &&
            llvm::isModOrRefSet(aliases_.getModRefInfo(inst, location))) {
            return false;
        }
    }
    return true;
}

// The sums of the most common length that are finished before anything uses one of them, but for
// stores that can wait for all of them.
bool Order::ChooseSums() {
    std::map<size_t, size_t> steps_of_length;
    for (const Sum& sum : all_) {
        steps_of_length[sum.steps.size()] += sum.steps.size();
    }
    if (steps_of_length.empty()) {
        return false;
    }
    const size_t length = std::ranges::max_element(steps_of_length, {}, [](const auto& entry) {
                              return entry.second;
                          })->first;
    const auto place_of_last = [&](const Sum* sum) { return places_.at(sum->steps.back()); };
    for (Sum& sum : all_) {
        if (sum.steps.size() == length) {
            sums_.push_back(&sum);
        }
    }
    if (length < kFewestSteps || sums_.size() < kFewestSums || sums_.size() > kMostSums) {
        return false;
    }
    std::ranges::sort(sums_, {}, place_of_last);
    end_ = block_.getTerminator();
    const auto end_at = [&](const Instruction* inst) {
        if (places_.at(inst) < places_.at(end_)) {
            end_ = const_cast<Instruction*>(inst);
        }
    };
    for (const Sum* sum : sums_) {
        if (place_of_last(sum) > places_.at(end_)) {
            break;
        }
        if (OnlyStore(*sum)) {
            continue;
        }
        for (const llvm::User* user : sum->steps.back()->users()) {
            const auto* inst = llvm::cast<Instruction>(user);
            if (inst->getParent() == &block_ && !llvm::isa<llvm::PHINode>(inst)) {
                end_at(inst);
            }
        }
    }
    // The stores end where the last sum does.
    const Instruction* last = nullptr;
    for (const Sum* sum : sums_) {
        if (place_of_last(sum) < places_.at(end_)) {
            last = sum->steps.back();
        }
    }
    if (!last) {
        return false;
    }
    const Instruction* behind = last->getNextNode();
    while (!behind->isTerminator() &&
           llvm::any_of(sums_, [&](const Sum* sum) { return OnlyStore(*sum) == behind; })) {
        behind = behind->getNextNode();
    }
    end_at(behind);
    for (const Sum* sum : sums_) {
        const StoreInst* store = OnlyStore(*sum);
        if (store && places_.at(store) < places_.at(end_) && !MayMoveDown(*store, end_)) {
            end_at(store);
        }
    }
    std::erase_if(sums_, [&](const Sum* sum) { return place_of_last(sum) > places_.at(end_); });
    for (const Sum* sum : sums_) {
        const StoreInst* store = OnlyStore(*sum);
        if (store && places_.at(store) < places_.at(end_)) {
            moved_.insert(store);
        }
    }
    return sums_.size() >= kFewestSums;
}

// As in a product of matrices, where a row meets all columns: half as many operands as there are
// places for them, or fewer.
bool Order::SharesOperands() const {
    llvm::DenseMap<const Value*, unsigned> operands;
    size_t products = 0;
    for (const Sum* sum : sums_) {
        for (const Instruction* step : sum->steps) {
            ++operands[step->getOperand(0)];
            ++operands[step->getOperand(1)];
            ++products;
        }
    }
    return operands.size() <= products;
}

// Registers that the values of the block need in its present order. What only one instruction uses
// may be an operand in memory.
unsigned Order::MostAlive() const {
    llvm::DenseMap<const Value*, unsigned> alive;
    unsigned now = 0;
    unsigned most = 0;
    for (const Instruction& inst : llvm::reverse(block_)) {
        if (const auto found = alive.find(&inst); found != alive.end()) {
            now -= found->second;
            alive.erase(found);
        }
        for (const Value* operand : inst.operands()) {
            const unsigned registers = Registers(operand);
            if (registers == 0 || llvm::isa<llvm::Constant>(operand) ||
                (llvm::isa<LoadInst>(operand) && operand->hasOneUse())) {
                continue;
            }
            if (alive.try_emplace(operand, registers).second) {
                now += registers;
            }
        }
        most = std::max(most, now);
    }
    return most;
}

// The registers of the sums, and of the operands that several of them share within a step.
unsigned Order::RegistersFor(const std::vector<Sum*>& part) const {
    unsigned sums = 0;
    llvm::DenseMap<const Value*, size_t> last_use;
    for (size_t i = 0; i < part.size(); ++i) {
        const Instruction* step = part[i]->steps[0];
        sums += Registers(step);
        last_use[step->getOperand(0)] = i;
        last_use[step->getOperand(1)] = i;
    }
    llvm::DenseMap<const Value*, unsigned> alive;
    unsigned now = 0;
    unsigned most = 0;
    for (size_t i = 0; i < part.size(); ++i) {
        const Instruction* step = part[i]->steps[0];
        for (unsigned k : {0u, 1u}) {
            const unsigned registers = Registers(step->getOperand(k));
            if (alive.try_emplace(step->getOperand(k), registers).second) {
                now += registers;
            }
        }
        most = std::max(most, now);
        for (unsigned k : {0u, 1u}) {
            const auto found = alive.find(step->getOperand(k));
            if (found != alive.end() && last_use[step->getOperand(k)] == i) {
                now -= found->second;
                alive.erase(found);
            }
        }
    }
    return sums + most;
}

// Parts of about equal size, each of sums that share as many operands as possible.
std::vector<std::vector<Sum*>> Order::DivideInto(size_t count) {
    const size_t size = (sums_.size() + count - 1) / count;
    std::vector<Sum*> left = sums_;
    std::vector<std::vector<Sum*>> parts;
    while (!left.empty()) {
        std::vector<Sum*> part;
        llvm::DenseMap<const Value*, bool> operands;
        while (!left.empty() && part.size() < size) {
            auto best = left.begin();
            unsigned fewest = UINT32_MAX;
            for (auto it = left.begin(); it != left.end(); ++it) {
                const Instruction* step = (*it)->steps[0];
                unsigned added = 0;
                for (unsigned k : {0u, 1u}) {
                    added +=
                        operands.contains(step->getOperand(k)) ? 0 : Registers(step->getOperand(k));
                }
                if (added < fewest) {
                    fewest = added;
                    best = it;
                }
            }
            operands[(*best)->steps[0]->getOperand(0)] = true;
            operands[(*best)->steps[0]->getOperand(1)] = true;
            part.push_back(*best);
            left.erase(best);
        }
        parts.push_back(std::move(part));
    }
    return parts;
}

bool Order::Divide() {
    for (size_t count = 1; count <= sums_.size(); ++count) {
        parts_ = DivideInto(count);
        // One register is for the operand that is being loaded.
        if (std::ranges::all_of(
                parts_, [&](const auto& part) { return RegistersFor(part) + 1 <= registers_; })) {
            return true;
        }
    }
    return false;
}

// Something between the load and the place where it is wanted may store to its memory.
bool Order::IsClobbered(const LoadInst& load) {
    const llvm::MemoryLocation location = llvm::MemoryLocation::get(&load);
    for (const Instruction* inst = load.getNextNode(); inst && inst != end_;
         inst = inst->getNextNode()) {
        if (inst->mayWriteToMemory() && !moved_.contains(inst) &&
            llvm::isModSet(aliases_.getModRefInfo(inst, location))) {
            return true;
        }
    }
    return false;
}

// Loads, and what shuffles make of loads, may be made again before `end_`.
bool Order::CanMove(const Value* value) {
    const auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || inst->getParent() != &block_) {
        return true;  // is there at any rate
    }
    if (const auto found = movable_.find(value); found != movable_.end()) {
        return found->second;
    }
    bool can = false;
    if (const auto* load = llvm::dyn_cast<LoadInst>(inst)) {
        can = load->isSimple() && !IsClobbered(*load);
    } else if (llvm::isa<llvm::ShuffleVectorInst, llvm::InsertElementInst, llvm::BitCastInst>(
                   inst)) {
        can = llvm::all_of(inst->operands(), [&](const Value* part) { return CanMove(part); });
    }
    movable_[value] = can;
    return can;
}

void Order::NoteLoads(const Value* value, size_t part) {
    const auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || inst->getParent() != &block_ || !CanMove(value)) {
        return;
    }
    if (const auto* load = llvm::dyn_cast<LoadInst>(inst)) {
        loads_.emplace_back(load, part);
        return;
    }
    for (const Value* operand : inst->operands()) {
        NoteLoads(operand, part);
    }
}

void Order::FindMovable() {
    for (size_t part = 0; part < parts_.size(); ++part) {
        for (const Sum* sum : parts_[part]) {
            NoteLoads(sum->steps[0]->getOperand(2), part);
            for (const Instruction* step : sum->steps) {
                for (unsigned k : {0u, 1u}) {
                    auto [place, added] = last_part_.try_emplace(step->getOperand(k), part);
                    if (added || place->second != part) {
                        place->second = part;
                        NoteLoads(step->getOperand(k), part);
                    }
                }
            }
        }
    }
}

llvm::AllocaInst* Order::NewSlot(llvm::Type* type) {
    BasicBlock& entry = block_.getParent()->getEntryBlock();
    llvm::IRBuilder<> b(&entry, entry.getFirstInsertionPt());
    llvm::AllocaInst* slot = b.CreateAlloca(type, nullptr, "operand");
    slot->setAlignment(kSlotAlignment);
    return slot;
}

// The value at the end of what there is of the part: loaded or shuffled again. What several parts
// need shuffled goes through memory.
Value* Order::Bring(llvm::IRBuilder<>& b, Value* value, size_t part) {
    auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || inst->getParent() != &block_) {
        return value;
    }
    if (const auto found = here_.find(value); found != here_.end()) {
        return found->second;
    }
    if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(inst)) {
        Instruction* copy = address->clone();
        copy->setOperand(0, Bring(b, copy->getOperand(0), part));
        b.Insert(copy);
        return here_[value] = copy;
    }
    if (inst->getType()->isPointerTy() || !CanMove(value)) {
        return value;
    }
    if (const auto found = slots_.find(value); found != slots_.end()) {
        return here_[value] = b.CreateAlignedLoad(value->getType(), found->second, kSlotAlignment);
    }
    Instruction* copy = inst->clone();
    for (llvm::Use& operand : copy->operands()) {
        operand.set(Bring(b, operand.get(), part));
    }
    b.Insert(copy);
    here_[value] = copy;
    const auto last = last_part_.find(value);
    if (llvm::isa<llvm::ShuffleVectorInst>(inst) && !llvm::getSplatValue(inst) &&
        last != last_part_.end() && last->second > part) {
        llvm::AllocaInst* slot = NewSlot(copy->getType());
        b.CreateAlignedStore(copy, slot, kSlotAlignment);
        slots_[value] = slot;
    }
    return copy;
}

// No part behind this one loads what the store writes.
bool Order::MayPrecedeParts(const StoreInst& store, size_t part) {
    const llvm::MemoryLocation location = llvm::MemoryLocation::get(&store);
    return llvm::none_of(loads_, [&](const auto& entry) {
        return entry.second > part &&
               aliases_.alias(location, llvm::MemoryLocation::get(entry.first)) !=
                   llvm::AliasResult::NoAlias;
    });
}

// A sum that is only stored leaves its register at the end of its part.
void Order::BringStores(llvm::IRBuilder<>& b, size_t part, BasicBlock& rest) {
    for (const Sum* sum : parts_[part]) {
        StoreInst* store = OnlyStore(*sum);
        if (!store || !moved_.contains(store)) {
            continue;
        }
        if (MayPrecedeParts(*store, part)) {
            store->setOperand(1, Bring(b, store->getPointerOperand(), part));
            store->moveBefore(&*b.GetInsertPoint());
        } else {
            store->moveBefore(&*rest.getFirstInsertionPt());
        }
    }
}

BasicBlock* Order::Run() {
    if (block_.size() > kMostInstructions) {
        return nullptr;
    }
    FindSums();
    if (!ChooseSums() || !SharesOperands() || MostAlive() <= registers_ || !Divide()) {
        return nullptr;
    }
    FindMovable();
    llvm::SmallVector<llvm::WeakTrackingVH, 64> replaced;
    BasicBlock* rest = block_.splitBasicBlock(end_, "behind_sums");
    BasicBlock* previous = &block_;
    for (size_t number = 0; number < parts_.size(); ++number) {
        auto* block = BasicBlock::Create(block_.getContext(), "sums", block_.getParent(), rest);
        llvm::IRBuilder<> b(block);
        b.SetInsertPoint(b.CreateBr(rest));
        previous->getTerminator()->setSuccessor(0, block);
        previous = block;
        here_.clear();
        for (size_t step = 0; step < sums_[0]->steps.size(); ++step) {
            for (const Sum* sum : parts_[number]) {
                Instruction* product = sum->steps[step];
                for (unsigned k = 0; k < (step == 0 ? 3u : 2u); ++k) {
                    Value* operand = product->getOperand(k);
                    product->setOperand(k, Bring(b, operand, number));
                    replaced.push_back(operand);
                }
                product->moveBefore(block->getTerminator());
            }
        }
        BringStores(b, number, *rest);
    }
    llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(replaced);
    return rest;
}

class OrderProductsPass : public llvm::FunctionPass {
  public:
    static char ID;

    explicit OrderProductsPass(unsigned vector_bits)
        : llvm::FunctionPass(ID), vector_bits_(vector_bits) {}

    llvm::StringRef getPassName() const override { return "Order sums of products"; }

    void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
        usage.addRequired<llvm::AAResultsWrapperPass>();
    }

    bool runOnFunction(llvm::Function& function) override {
        return OrderProducts(function, getAnalysis<llvm::AAResultsWrapperPass>().getAAResults(),
                             vector_bits_);
    }

  private:
    unsigned vector_bits_;
};

char OrderProductsPass::ID = 0;

}  // namespace

bool OrderProducts(llvm::Function& function, llvm::AAResults& aliases, unsigned vector_bits) {
    llvm::SmallVector<BasicBlock*, 32> blocks;
    for (BasicBlock& block : function) {
        blocks.push_back(&block);
    }
    bool changed = false;
    for (BasicBlock* block : blocks) {
        while (block) {
            block = Order(*block, aliases, vector_bits).Run();
            changed |= block != nullptr;
        }
    }
    return changed;
}

llvm::FunctionPass* CreateOrderProductsPass(unsigned vector_bits) {
    return new OrderProductsPass(vector_bits);
}

}  // namespace fornax::kernel
