#include "compiler/kernel/codegen/version_loops.h"

#include <optional>
#include <utility>

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include "compiler/kernel/codegen/likely_branch.h"
#include "compiler/kernel/codegen/recurrences.h"

namespace fornax::kernel {

using llvm::APInt;
using llvm::BasicBlock;
using llvm::BranchInst;
using llvm::CmpInst;
using llvm::Instruction;
using llvm::Value;
namespace match = llvm::PatternMatch;

namespace {

// A loop is worth a copy for this many tests.
constexpr size_t kLeastTests = 2;
constexpr size_t kMostInstructions = 6000;
constexpr size_t kMostIterationTests = 4;
constexpr size_t kMostIterationTestOperations = 24;

// A condition and what it is nearly always.
struct Wanted {
    Value* condition = nullptr;
    bool value = true;

    bool operator==(const Wanted&) const = default;
};

// An index of an access, which the copy counts instead of computing it.
struct Address {
    llvm::GetElementPtrInst* access = nullptr;
    unsigned operand = 0;
    Recurrences::Recurrence index;
};

// What is tested where.
class Plan {
  public:
    Plan(llvm::Loop& loop, const llvm::PostDominatorTree& ends) : loop_(loop), ends_(ends) {}

    // False if the loop stays as it is.
    bool Make();
    void Carry(llvm::Function& function);

  private:
    void FindPath();
    bool Prove(Recurrences& recurrences, const Wanted& wanted);
    bool ProveEither(Recurrences& recurrences, const Wanted& first, const Wanted& second);
    bool ProveComparison(Recurrences& recurrences,
                         llvm::ICmpInst& compare,
                         CmpInst::Predicate predicate);
    bool TestEachIteration(const Wanted& wanted);
    bool FromHeader(Value* value, llvm::SmallSetVector<Instruction*, 16>& operations) const;
    Value* Incoming(llvm::PHINode& phi) const;
    void FindAddresses(Recurrences& recurrences);
    Value* PassingIterations();
    void CountAddresses(llvm::ValueToValueMapTy& copies,
                        BasicBlock& before,
                        BasicBlock& first,
                        BasicBlock& latch);

    llvm::Loop& loop_;
    const llvm::PostDominatorTree& ends_;
    llvm::SmallSetVector<BranchInst*, 16> candidates_;  // likely ones on each iteration's path
    llvm::SmallPtrSet<BranchInst*, 16> decided_;        // of these, which are not tested again
    llvm::SmallPtrSet<const BasicBlock*, 32> reached_;  // by the copy
    llvm::SmallPtrSet<BasicBlock*, 16> path_;           // of each iteration
    llvm::SmallVector<Value*, 16> before_;              // i1: true, or no iteration passes
    Recurrences::Limits limits_;
    llvm::SmallVector<Wanted, kMostIterationTests> each_iteration_;
    llvm::SmallVector<Address, 16> addresses_;
};

BranchInst* BranchOf(BasicBlock* block) {
    return llvm::dyn_cast<BranchInst>(block->getTerminator());
}

// The blocks that each iteration goes through, and all that can be reached, when decided branches
// only go the usual way.
void Plan::FindPath() {
    reached_.clear();
    llvm::SmallVector<BasicBlock*, 16> open = {loop_.getHeader()};
    while (!open.empty()) {
        BasicBlock* block = open.pop_back_val();
        if (!loop_.contains(block) || !reached_.insert(block).second) {
            continue;
        }
        BranchInst* branch = BranchOf(block);
        if (branch && decided_.contains(branch)) {
            open.push_back(UsualSuccessor(*branch));
            continue;
        }
        for (BasicBlock* next : llvm::successors(block)) {
            open.push_back(next);
        }
    }
    candidates_.clear();
    path_.clear();
    BasicBlock* block = loop_.getHeader();
    while (block && loop_.contains(block) && path_.insert(block).second) {
        BranchInst* branch = BranchOf(block);
        if (!branch) {
            return;
        }
        if (branch->isUnconditional()) {
            block = branch->getSuccessor(0);
            continue;
        }
        const bool first = loop_.contains(branch->getSuccessor(0));
        const bool second = loop_.contains(branch->getSuccessor(1));
        if (!first || !second) {
            block = branch->getSuccessor(first ? 0 : 1);
            continue;
        }
        if (Likely(*branch)) {
            candidates_.insert(branch);
            if (decided_.contains(branch)) {
                block = UsualSuccessor(*branch);
                continue;
            }
        }
        const auto* node = ends_.getNode(block);
        block = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
    }
}

Value* Plan::Incoming(llvm::PHINode& phi) const {
    Value* only = nullptr;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
        BasicBlock* from = phi.getIncomingBlock(i);
        if (!reached_.contains(from)) {
            continue;
        }
        BranchInst* branch = BranchOf(from);
        if (branch && decided_.contains(branch) && UsualSuccessor(*branch) != phi.getParent()) {
            continue;
        }
        if (only && only != phi.getIncomingValue(i)) {
            return nullptr;
        }
        only = phi.getIncomingValue(i);
    }
    return only;
}

// Begins with all branches decided, and takes back those that nothing can be said of; what was said
// of others may have built on them.
bool Plan::Make() {
    if (!loop_.isInnermost() || !loop_.getLoopPreheader() || !loop_.getLoopLatch()) {
        return false;
    }
    size_t instructions = 0;
    for (BasicBlock* block : loop_.blocks()) {
        instructions += block->size();
    }
    if (instructions > kMostInstructions) {
        return false;
    }
    for (BasicBlock* block : loop_.blocks()) {
        BranchInst* branch = BranchOf(block);
        if (branch && Likely(*branch) && llvm::all_of(branch->successors(), [&](BasicBlock* next) {
                return loop_.contains(next);
            })) {
            decided_.insert(branch);
        }
    }
    while (decided_.size() >= kLeastTests) {
        FindPath();
        before_.clear();
        limits_.clear();
        each_iteration_.clear();
        llvm::SmallPtrSet<BranchInst*, 16> proven;
        const auto incoming = [&](llvm::PHINode& phi) { return Incoming(phi); };
        Recurrences recurrences(loop_, incoming);
        for (BranchInst* branch : candidates_) {
            if (!decided_.contains(branch)) {
                continue;
            }
            const size_t before = before_.size();
            const size_t limits = limits_.size();
            const size_t each_iteration = each_iteration_.size();
            if (Prove(recurrences, {branch->getCondition(), *Likely(*branch)})) {
                proven.insert(branch);
                continue;
            }
            before_.truncate(before);
            limits_.truncate(limits);
            each_iteration_.truncate(each_iteration);
        }
        if (proven.size() == decided_.size()) {
            const auto never = [](Value* condition) {
                return match::match(condition, match::m_Zero()) ||
                       llvm::isa<llvm::UndefValue>(condition);
            };
            if (llvm::any_of(before_, never)) {
                return false;
            }
            FindAddresses(recurrences);
            return true;
        }
        decided_ = std::move(proven);
    }
    return false;
}

void Plan::FindAddresses(Recurrences& recurrences) {
    for (BasicBlock* block : loop_.blocks()) {
        if (!path_.contains(block)) {
            continue;
        }
        for (Instruction& inst : *block) {
            auto* access = llvm::dyn_cast<llvm::GetElementPtrInst>(&inst);
            if (!access || access->getNumIndices() != 1 || access->getType()->isVectorTy()) {
                continue;
            }
            auto* index = llvm::dyn_cast<Instruction>(access->getOperand(1));
            const Recurrences::Recurrence* recurrence =
                index && loop_.contains(index) ? recurrences.Of(index) : nullptr;
            if (!recurrence) {
                continue;
            }
            limits_.append(recurrence->limits);
            addresses_.push_back({access, 1, *recurrence});
        }
    }
}

bool Plan::Prove(Recurrences& recurrences, const Wanted& wanted) {
    Value* a = nullptr;
    Value* b = nullptr;
    if (match::match(wanted.condition, match::m_Not(match::m_Value(a)))) {
        return Prove(recurrences, {a, !wanted.value});
    }
    if (wanted.value ? match::match(wanted.condition,
                                    match::m_LogicalAnd(match::m_Value(a), match::m_Value(b)))
                     : match::match(wanted.condition,
                                    match::m_LogicalOr(match::m_Value(a), match::m_Value(b)))) {
        return Prove(recurrences, {a, wanted.value}) && Prove(recurrences, {b, wanted.value});
    }
    if (wanted.value ? match::match(wanted.condition,
                                    match::m_LogicalOr(match::m_Value(a), match::m_Value(b)))
                     : match::match(wanted.condition,
                                    match::m_LogicalAnd(match::m_Value(a), match::m_Value(b)))) {
        return ProveEither(recurrences, {a, wanted.value}, {b, wanted.value});
    }
    auto* inst = llvm::dyn_cast<Instruction>(wanted.condition);
    if (!inst || !loop_.contains(inst)) {
        before_.push_back(wanted.value ? wanted.condition
                                       : recurrences.before().CreateNot(wanted.condition));
        return true;
    }
    if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(inst)) {
        const CmpInst::Predicate predicate =
            wanted.value ? compare->getPredicate() : compare->getInversePredicate();
        if (ProveComparison(recurrences, *compare, predicate)) {
            return true;
        }
    }
    return TestEachIteration(wanted);
}

// One of two is enough: one that other branches test in each iteration as well, if there is one.
bool Plan::ProveEither(Recurrences& recurrences, const Wanted& first, const Wanted& second) {
    if (TestEachIteration(first) || TestEachIteration(second)) {
        return true;
    }
    const size_t before = before_.size();
    const size_t limits = limits_.size();
    const size_t each_iteration = each_iteration_.size();
    if (Prove(recurrences, first)) {
        return true;
    }
    before_.truncate(before);
    limits_.truncate(limits);
    each_iteration_.truncate(each_iteration);
    return Prove(recurrences, second);
}

bool Plan::ProveComparison(Recurrences& recurrences,
                           llvm::ICmpInst& compare,
                           CmpInst::Predicate predicate) {
    const Recurrences::Recurrence* found = recurrences.Of(compare.getOperand(0));
    if (!found) {
        return false;
    }
    Recurrences::Recurrence a = *found;
    found = recurrences.Of(compare.getOperand(1));
    if (!found) {
        return false;
    }
    Recurrences::Recurrence b = *found;
    Recurrences::Builder& builder = recurrences.before();
    auto holds_at_first = [&] {
        before_.push_back(
            builder.CreateICmp(predicate, recurrences.First(a), recurrences.First(b)));
        limits_.append(a.limits);
        limits_.append(b.limits);
        return true;
    };
    if (a.same() && b.same()) {
        return holds_at_first();
    }
    if (CmpInst::isEquality(predicate)) {
        return a.stride == b.stride && holds_at_first();
    }
    if (a.same()) {
        std::swap(a, b);
        predicate = CmpInst::getSwappedPredicate(predicate);
    }
    if (!b.same() || a.stride.isNegative()) {
        return false;
    }
    const bool is_signed = CmpInst::isSigned(predicate);
    if (predicate == CmpInst::ICMP_UGT || predicate == CmpInst::ICMP_UGE ||
        predicate == CmpInst::ICMP_SGT || predicate == CmpInst::ICMP_SGE) {
        const unsigned bits = a.stride.getBitWidth();
        const auto limits = recurrences.Within(
            a, is_signed ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits));
        if (!limits) {
            return false;
        }
        limits_.append(*limits);
        return holds_at_first();
    }
    // "Less than n" is a limit of n - 1.
    const bool strict = CmpInst::isStrictPredicate(predicate);
    if (const APInt* number = nullptr; match::match(recurrences.First(b), match::m_APInt(number))) {
        if ((strict && number->isZero()) || (is_signed && number->isNegative())) {
            return false;
        }
        const auto limits = recurrences.Within(a, strict ? *number - 1 : *number);
        if (!limits) {
            return false;
        }
        limits_.append(*limits);
        return true;
    }
    Value* last = recurrences.First(b);
    if (is_signed) {
        before_.push_back(builder.CreateICmpSGE(last, llvm::ConstantInt::get(last->getType(), 0)));
    }
    if (strict) {
        holds_at_first();  // so that it is not 0
        last = builder.CreateSub(last, llvm::ConstantInt::get(last->getType(), 1));
    }
    limits_.append(a.limits);
    limits_.append(b.limits);
    limits_.push_back({recurrences.First(a), a.stride, last});
    return true;
}

// That all lanes are there is known when an iteration starts.
bool Plan::TestEachIteration(const Wanted& wanted) {
    if (llvm::is_contained(each_iteration_, wanted)) {
        return true;
    }
    llvm::SmallSetVector<Instruction*, 16> operations;
    if (each_iteration_.size() == kMostIterationTests ||
        !FromHeader(wanted.condition, operations)) {
        return false;
    }
    each_iteration_.push_back(wanted);
    return true;
}

// In the order in which they can be computed.
bool Plan::FromHeader(Value* value, llvm::SmallSetVector<Instruction*, 16>& operations) const {
    auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || !loop_.contains(inst) || operations.contains(inst)) {
        return true;
    }
    if (llvm::isa<llvm::PHINode>(inst)) {
        return inst->getParent() == loop_.getHeader();
    }
    switch (inst->getOpcode()) {
        case Instruction::BitCast:
        case Instruction::And:
        case Instruction::Or:
        case Instruction::Xor:
        case Instruction::ICmp:
        case Instruction::Freeze:
        case Instruction::InsertElement:
        case Instruction::ShuffleVector:
            break;
        default:
            return false;
    }
    for (Value* operand : inst->operands()) {
        if (!FromHeader(operand, operations)) {
            return false;
        }
    }
    operations.insert(inst);
    return operations.size() <= kMostIterationTestOperations;
}

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

// i64: how many iterations pass all tests that are made before the loop.
Value* Plan::PassingIterations() {
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
void Plan::CountAddresses(llvm::ValueToValueMapTy& copies,
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

void Plan::Carry(llvm::Function& function) {
    BasicBlock* before = loop_.getLoopPreheader();
    BasicBlock* header = loop_.getHeader();
    BasicBlock* latch = loop_.getLoopLatch();
    Value* iterations = PassingIterations();

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
    llvm::SmallSetVector<Instruction*, 16> operations;
    for (const Wanted& wanted : each_iteration_) {
        FromHeader(wanted.condition, operations);
    }
    llvm::ValueToValueMapTy here;
    for (llvm::PHINode& phi : header->phis()) {
        here[&phi] = copies[&phi];
    }
    for (Instruction* operation : operations) {
        Instruction* copy = operation->clone();
        b.Insert(copy);
        llvm::RemapInstruction(copy, here,
                               llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
        here[operation] = copy;
    }
    for (const Wanted& wanted : each_iteration_) {
        Value* condition = here[wanted.condition];
        passes = b.CreateAnd(passes, wanted.value ? condition : b.CreateNot(condition));
    }
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
    before->getTerminator()->replaceSuccessorWith(header, first);
    for (BranchInst* branch : decided_) {
        auto* copy = llvm::cast<BranchInst>(copies[branch]);
        copy->setCondition(b.getInt1(*Likely(*branch)));
        llvm::ConstantFoldTerminator(copy->getParent(), /*DeleteDeadConditions=*/true);
    }
}

}  // namespace

llvm::PreservedAnalyses VersionLoopsPass::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    auto& order = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    const auto& ends = analyses.getResult<llvm::PostDominatorTreeAnalysis>(function);
    llvm::SmallVector<Plan, 4> plans;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!loop->isLoopSimplifyForm() || !loop->isLCSSAForm(order)) {
            continue;
        }
        if (Plan plan(*loop, ends); plan.Make()) {
            plans.push_back(std::move(plan));
        }
    }
    for (Plan& plan : plans) {
        plan.Carry(function);
    }
    if (!plans.empty()) {
        llvm::removeUnreachableBlocks(function);
    }
    return plans.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace fornax::kernel
