// The copy of a loop that its plan makes, and the tests before it.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/kernel/codegen/likely_branch.h"
#include "compiler/kernel/codegen/loop_version_plan.h"

namespace fornax::kernel {

using llvm::APInt;
using llvm::BasicBlock;
using llvm::BranchInst;
using llvm::Instruction;
using llvm::Value;
namespace match = llvm::PatternMatch;

namespace {

// Keeps one of several limits that differ by constants only.
Recurrences::Limits Tightest(const Recurrences::Limits& limits) {
    Recurrences::Limits tightest;
    for (const Recurrences::Limit& limit : limits) {
        const auto* number = llvm::dyn_cast<llvm::ConstantInt>(limit.last);
        auto* same = llvm::find_if(tightest, [&](const Recurrences::Limit& other) {
            return other == limit || (number && llvm::isa<llvm::ConstantInt>(other.last) &&
                                      other.root == limit.root && other.stride == limit.stride);
        });
        if (same == tightest.end()) {
            tightest.push_back(limit);
        } else if (number &&
                   number->getValue().ult(llvm::cast<llvm::ConstantInt>(same->last)->getValue())) {
            same->last = limit.last;
        }
    }
    return tightest;
}

// Computes the value at the end of the first block, if the second one, which follows, does that.
void MoveTo(BasicBlock& block, const BasicBlock& next, Value* value) {
    auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || inst->getParent() != &next) {
        return;
    }
    for (Value* operand : inst->operands()) {
        MoveTo(block, next, operand);
    }
    inst->moveBefore(block.getTerminator());
}

// What is known of a value where a condition has been tested: all lanes of it are true, or none is.
// `tested` is the block of the test, in which nothing is known yet.
void ReplaceKnown(Value* value, bool all, const BasicBlock& tested) {
    auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || !inst->getType()->isIntOrIntVectorTy(1)) {
        return;
    }
    Value *a = nullptr, *b = nullptr;
    llvm::CmpInst::Predicate predicate = {};
    if (match::match(inst, match::m_Not(match::m_Value(a)))) {
        ReplaceKnown(a, !all, tested);
    } else if (match::match(inst, match::m_Freeze(match::m_Value(a)))) {
        ReplaceKnown(a, all, tested);
    } else if (all ? match::match(inst, match::m_And(match::m_Value(a), match::m_Value(b)))
                   : match::match(inst, match::m_Or(match::m_Value(a), match::m_Value(b)))) {
        ReplaceKnown(a, all, tested);
        ReplaceKnown(b, all, tested);
    } else if (match::match(inst, match::m_ICmp(predicate, match::m_BitCast(match::m_Value(a)),
                                                match::m_Value(b))) &&
               llvm::CmpInst::isEquality(predicate) &&
               all == (predicate == llvm::CmpInst::ICMP_EQ) &&
               (match::match(b, match::m_AllOnes()) || match::match(b, match::m_Zero()))) {
        ReplaceKnown(a, match::match(b, match::m_AllOnes()), tested);
    }
    Value* known = all ? llvm::Constant::getAllOnesValue(inst->getType())
                       : llvm::Constant::getNullValue(inst->getType());
    inst->replaceUsesWithIf(known, [&](const llvm::Use& use) {
        auto* user = llvm::cast<Instruction>(use.getUser());
        const auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
        return (phi ? phi->getIncomingBlock(use) : user->getParent()) != &tested;
    });
}

}  // namespace

// i64: how many iterations pass all tests that are made before the loop.
Value* LoopVersionPlan::PassingIterations() {
    llvm::IRBuilder<> b(loop_.getLoopPreheader()->getTerminator());
    Value* all = b.getTrue();
    Value* iterations = b.getInt64(~uint64_t{0});
    // In the loop's order: where one does not hold, nothing is known of those behind it.
    for (Value* condition : before_) {
        all = b.CreateLogicalAnd(all, condition);
    }
    // One division a stride.
    llvm::SmallVector<std::pair<APInt, Value*>, 4> room;
    for (const Recurrences::Limit& limit : Tightest(limits_)) {
        all = b.CreateLogicalAnd(all, b.CreateICmpULE(limit.root, limit.last));
        if (limit.stride.isZero()) {
            continue;
        }
        Value* left = b.CreateSub(limit.last, limit.root);
        auto* group = llvm::find_if(room, [&](const auto& entry) {
            return entry.first.getBitWidth() == limit.stride.getBitWidth() &&
                   entry.first == limit.stride;
        });
        if (group == room.end()) {
            room.emplace_back(limit.stride, left);
        } else {
            group->second = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, group->second, left);
        }
    }
    for (const auto& [stride, left] : room) {
        Value* more = b.CreateUDiv(left, llvm::ConstantInt::get(left->getType(), stride));
        more = b.CreateZExt(more, b.getInt64Ty());
        iterations = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, iterations, more);
    }
    // `iterations` more than the first one.
    iterations = b.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, iterations, b.getInt64(1));
    // Nothing is known of values that the loop might not have used.
    return b.CreateFreeze(b.CreateSelect(all, iterations, b.getInt64(0)));
}

// Accesses whose indices start from one root and grow alike have one counter, and distances to it
// that an instruction can hold.
void LoopVersionPlan::CountAddresses(llvm::ValueToValueMapTy& copies,
                                     BasicBlock& before,
                                     BasicBlock& first,
                                     BasicBlock& latch) {
    llvm::IRBuilder<> b(&first, first.begin());
    struct Counter {
        Value* root;
        APInt stride;
        Value* value;
    };
    llvm::SmallVector<Counter, 8> counters;
    auto value_of = [&](const Recurrences::Recurrence& index) -> Value* {
        if (index.same()) {
            return index.root;
        }
        for (const Counter& counter : counters) {
            if (counter.root == index.root && counter.stride == index.stride) {
                return counter.value;
            }
        }
        b.SetInsertPoint(&first, first.begin());
        auto* counter = b.CreatePHI(index.root->getType(), 2, "index");
        b.SetInsertPoint(first.getTerminator());
        counter->addIncoming(index.root, &before);
        counter->addIncoming(
            b.CreateAdd(counter, llvm::ConstantInt::get(index.root->getType(), index.stride)),
            &latch);
        counters.push_back({index.root, index.stride, counter});
        return counter;
    };
    for (const Address& address : addresses_) {
        Value* value = value_of(address.index);
        auto* access = llvm::cast<Instruction>(copies[address.access]);
        b.SetInsertPoint(access);
        access->setOperand(
            address.operand,
            b.CreateAdd(value, llvm::ConstantInt::get(value->getType(), address.index.offset)));
    }
}

// What has to hold of the first iteration for the copy to run it, as far as that is known before
// all other tests: each iteration's own tests, and that the loop is not left at once.
llvm::SmallVector<LoopVersionPlan::Wanted, LoopVersionPlan::kMostIterationTests + 1>
LoopVersionPlan::AtFirst() const {
    llvm::SmallVector<Wanted, kMostIterationTests + 1> wanted(each_iteration_.begin(),
                                                              each_iteration_.end());
    BranchInst* branch = BranchOf(loop_.getHeader());
    if (branch && branch->isConditional()) {
        const bool stays_if = loop_.contains(branch->getSuccessor(0));
        llvm::SmallSetVector<Instruction*, 16> operations;
        if (stays_if != loop_.contains(branch->getSuccessor(1)) &&
            FromHeader(branch->getCondition(), operations)) {
            wanted.push_back({branch->getCondition(), stays_if});
        }
    }
    return wanted;
}

// i1: all conditions, with these values in place of the header's phis. What else is computed for
// them is found in `values` afterwards.
Value* LoopVersionPlan::Compute(llvm::IRBuilder<>& b,
                                llvm::ArrayRef<Wanted> wanted,
                                llvm::ValueToValueMapTy& values) const {
    llvm::SmallSetVector<Instruction*, 16> operations;
    for (const Wanted& each : wanted) {
        FromHeader(each.condition, operations);
    }
    for (Instruction* operation : operations) {
        Instruction* copy = operation->clone();
        b.Insert(copy);
        llvm::RemapInstruction(copy, values,
                               llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
        values[operation] = copy;
    }
    Value* all = b.getTrue();
    for (const Wanted& each : wanted) {
        const auto found = values.find(each.condition);
        Value* condition = found == values.end() ? each.condition : &*found->second;
        all = b.CreateAnd(all, each.value ? condition : b.CreateNot(condition));
    }
    return all;
}

void LoopVersionPlan::Carry(llvm::Function& function) {
    BasicBlock* outside = loop_.getLoopPreheader();
    BasicBlock* header = loop_.getHeader();
    BasicBlock* latch = loop_.getLoopLatch();
    Value* iterations = PassingIterations();
    // The tests have a block of their own: a loop that is left at once needs none of them.
    BasicBlock* before = outside->splitBasicBlock(
        last_before_ ? std::next(last_before_->getIterator()) : outside->begin(), "loop.tests");
    llvm::SmallVector<Value*, 8> starts;
    for (llvm::PHINode& phi : header->phis()) {
        starts.push_back(phi.getIncomingValueForBlock(before));
        MoveTo(*outside, *before, starts.back());
    }

    llvm::ValueToValueMapTy copies;
    llvm::SmallVector<BasicBlock*, 32> blocks;
    for (BasicBlock* block : loop_.blocks()) {
        BasicBlock* copy = llvm::CloneBasicBlock(block, copies, ".versioned", &function);
        copies[block] = copy;
        blocks.push_back(copy);
    }
    llvm::remapInstructionsInBlocks(blocks, copies);
    auto copy_of = [&](BasicBlock* block) { return llvm::cast<BasicBlock>(copies[block]); };
    for (BasicBlock* block : loop_.blocks()) {
        for (BasicBlock* next : llvm::successors(block)) {
            if (loop_.contains(next)) {
                continue;
            }
            for (llvm::PHINode& phi : next->phis()) {
                Value* value = phi.getIncomingValueForBlock(block);
                const auto copy = copies.find(value);
                phi.addIncoming(copy == copies.end() ? value : &*copy->second, copy_of(block));
            }
        }
    }

    // The copy comes first, and goes on to the loop as it was.
    BasicBlock* first = copy_of(header);
    BasicBlock* rest = first->splitBasicBlock(first->getFirstNonPHIIt(), "iteration.versioned");
    first->getTerminator()->eraseFromParent();
    llvm::IRBuilder<> b(first, first->begin());
    auto* iteration = b.CreatePHI(b.getInt64Ty(), 2, "iteration");
    b.SetInsertPoint(first);
    Value* passes = b.CreateICmpULT(iteration, iterations);
    llvm::ValueToValueMapTy here;
    for (llvm::PHINode& phi : header->phis()) {
        here[&phi] = copies[&phi];
    }
    passes = b.CreateAnd(passes, Compute(b, each_iteration_, here));
    Value* next_iteration = b.CreateAdd(iteration, b.getInt64(1));
    b.CreateCondBr(passes, rest, header,
                   llvm::MDBuilder(function.getContext()).createBranchWeights(2000, 1));
    iteration->addIncoming(b.getInt64(0), before);
    BasicBlock* last = latch == header ? rest : copy_of(latch);
    iteration->addIncoming(next_iteration, last);
    for (llvm::PHINode& phi : header->phis()) {
        const int index = phi.getBasicBlockIndex(before);
        phi.setIncomingBlock(static_cast<unsigned>(index), first);
        phi.setIncomingValue(static_cast<unsigned>(index), copies[&phi]);
    }
    CountAddresses(copies, *before, *first, *last);
    for (const Wanted& wanted : each_iteration_) {
        if (const auto copy = copies.find(wanted.condition); copy != copies.end()) {
            ReplaceKnown(copy->second, wanted.value, *first);
        }
    }
    before->getTerminator()->replaceSuccessorWith(header, first);
    if (const llvm::SmallVector<Wanted, kMostIterationTests + 1> at_first = AtFirst();
        !at_first.empty()) {
        llvm::ValueToValueMapTy values;
        for (const auto& [phi, start] : llvm::zip_equal(header->phis(), starts)) {
            values[&phi] = start;
            phi.addIncoming(start, outside);
        }
        b.SetInsertPoint(outside->getTerminator());
        Value* starts_here = Compute(b, at_first, values);
        b.CreateCondBr(b.CreateFreeze(starts_here), before, header);
        outside->getTerminator()->eraseFromParent();
    }
    for (BranchInst* branch : decided_) {
        auto* copy = llvm::cast<BranchInst>(copies[branch]);
        copy->setCondition(b.getInt1(*Likely(*branch)));
        llvm::ConstantFoldTerminator(copy->getParent(), /*DeleteDeadConditions=*/true);
    }
}

}  // namespace fornax::kernel
