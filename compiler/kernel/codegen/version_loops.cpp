#include "compiler/kernel/codegen/version_loops.h"

#include <optional>
#include <utility>

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/kernel/codegen/likely_branch.h"
#include "compiler/kernel/codegen/loop_version_plan.h"

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
constexpr size_t kMostIterationTestOperations = 24;

}  // namespace

// The blocks that each iteration goes through, and all that can be reached, when decided branches
// only go the usual way.
void LoopVersionPlan::FindPath() {
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

Value* LoopVersionPlan::Incoming(llvm::PHINode& phi) const {
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
bool LoopVersionPlan::Make() {
    if (!loop_.isInnermost() || !loop_.getLoopPreheader() || !loop_.getLoopLatch()) {
        return false;
    }
    last_before_ = loop_.getLoopPreheader()->getTerminator()->getPrevNode();
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
            if (TryToProve(recurrences, {branch->getCondition(), *Likely(*branch)})) {
                proven.insert(branch);
            }
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

void LoopVersionPlan::FindAddresses(Recurrences& recurrences) {
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
            const auto recurrence =
                index && loop_.contains(index) ? recurrences.Of(index) : std::nullopt;
            if (!recurrence) {
                continue;
            }
            limits_.append(recurrence->limits);
            addresses_.push_back({access, 1, *recurrence});
        }
    }
}

bool LoopVersionPlan::Prove(Recurrences& recurrences, const Wanted& wanted) {
    Value* a = nullptr;
    Value* b = nullptr;
    if (match::match(wanted.condition, match::m_Not(match::m_Value(a)))) {
        return Prove(recurrences, {a, !wanted.value});
    }
    const bool is_and =
        match::match(wanted.condition, match::m_LogicalAnd(match::m_Value(a), match::m_Value(b)));
    if (is_and ||
        match::match(wanted.condition, match::m_LogicalOr(match::m_Value(a), match::m_Value(b)))) {
        const Wanted first{a, wanted.value};
        const Wanted second{b, wanted.value};
        return is_and == wanted.value ? Prove(recurrences, first) && Prove(recurrences, second)
                                      : ProveEither(recurrences, first, second);
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
bool LoopVersionPlan::ProveEither(Recurrences& recurrences,
                                  const Wanted& first,
                                  const Wanted& second) {
    return TestEachIteration(first) || TestEachIteration(second) ||
           TryToProve(recurrences, first) || Prove(recurrences, second);
}

// Takes back what was to be tested if that is not enough.
bool LoopVersionPlan::TryToProve(Recurrences& recurrences, const Wanted& wanted) {
    const size_t before = before_.size();
    const size_t limits = limits_.size();
    const size_t each_iteration = each_iteration_.size();
    const bool proven = Prove(recurrences, wanted);
    if (!proven) {
        before_.truncate(before);
        limits_.truncate(limits);
        each_iteration_.truncate(each_iteration);
    }
    return proven;
}

bool LoopVersionPlan::ProveComparison(Recurrences& recurrences,
                                      llvm::ICmpInst& compare,
                                      CmpInst::Predicate predicate) {
    const auto first = recurrences.Of(compare.getOperand(0));
    const auto second = first ? recurrences.Of(compare.getOperand(1)) : std::nullopt;
    if (!second) {
        return false;
    }
    Recurrences::Recurrence a = *first;
    Recurrences::Recurrence b = *second;
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
bool LoopVersionPlan::TestEachIteration(const Wanted& wanted) {
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
bool LoopVersionPlan::FromHeader(Value* value,
                                 llvm::SmallSetVector<Instruction*, 16>& operations) const {
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

llvm::PreservedAnalyses VersionLoopsPass::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    auto& order = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    const auto& ends = analyses.getResult<llvm::PostDominatorTreeAnalysis>(function);
    llvm::SmallVector<LoopVersionPlan, 4> plans;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!loop->isLoopSimplifyForm() || !loop->isLCSSAForm(order)) {
            continue;
        }
        if (LoopVersionPlan plan(*loop, ends); plan.Make()) {
            plans.push_back(std::move(plan));
        }
    }
    for (LoopVersionPlan& plan : plans) {
        plan.Carry(function);
    }
    if (!plans.empty()) {
        llvm::removeUnreachableBlocks(function);
    }
    return plans.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace fornax::kernel
