// Finds what depends on a counter alone, and moves it into tables.
#include "compiler/kernel/codegen/iteration_tables.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

namespace fornax::kernel {

namespace {

using llvm::Instruction;
using llvm::Value;

constexpr uint64_t kFewestIterations = 4;
constexpr uint64_t kMostIterations = 64;
// Loads of a loop.
constexpr size_t kMostTables = 16;
// All tables of a function, which lie on its stack.
constexpr size_t kMostTableBytes = 16384;
// Cycles, roughly, from which on a value is loaded rather than computed.
constexpr unsigned kLongLatency = 20;
// Values of counters that go from one loop into the next.
constexpr int kMostCounters = 3;

bool IsElement(const llvm::Type* type) {
    return type->isFloatTy() || type->isIntegerTy(32);
}

// Cycles that a pure operation on elements takes; none if it is no such operation, or traps.
std::optional<unsigned> LatencyOf(const Instruction& inst) {
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst)) {
        switch (call->getIntrinsicID()) {
            case llvm::Intrinsic::smin:
            case llvm::Intrinsic::smax:
            case llvm::Intrinsic::umin:
            case llvm::Intrinsic::umax:
            case llvm::Intrinsic::fabs:
                return 1;
            case llvm::Intrinsic::fma:
            case llvm::Intrinsic::fmuladd:
                return 4;
            case llvm::Intrinsic::floor:
            case llvm::Intrinsic::ceil:
            case llvm::Intrinsic::trunc:
            case llvm::Intrinsic::roundeven:
                return 8;
            default:
                return std::nullopt;
        }
    }
    switch (inst.getOpcode()) {
        case Instruction::Add:
        case Instruction::Sub:
        case Instruction::And:
        case Instruction::Or:
        case Instruction::Xor:
        case Instruction::Shl:
        case Instruction::LShr:
        case Instruction::AShr:
        case Instruction::BitCast:
        case Instruction::FNeg:
        case Instruction::Freeze:
        case Instruction::ICmp:
        case Instruction::FCmp:
        case Instruction::Select:
            return 1;
        case Instruction::Mul:
            return 3;
        case Instruction::FAdd:
        case Instruction::FSub:
        case Instruction::FMul:
            return 4;
        case Instruction::SIToFP:
        case Instruction::UIToFP:
        case Instruction::FPToSI:
        case Instruction::FPToUI:
            return 7;
        case Instruction::FDiv:
            return 11;
        default:
            return std::nullopt;
    }
}

// How many values a counter has: from constants on, in steps of 1, as long as it is below a
// constant. It may go on from where another such counter has stopped.
std::optional<uint64_t> CountOf(const llvm::PHINode& counter, int depth = kMostCounters) {
    namespace m = llvm::PatternMatch;
    if (depth == 0 || !counter.getType()->isIntegerTy(32)) {
        return std::nullopt;
    }
    uint64_t count = 0;
    for (const llvm::BasicBlock* from : counter.blocks()) {
        const Value* value = counter.getIncomingValueForBlock(from);
        if (const auto* start = llvm::dyn_cast<llvm::ConstantInt>(value)) {
            count = std::max(count, start->getZExtValue() + 1);
            continue;
        }
        if (const auto* other = llvm::dyn_cast<llvm::PHINode>(value)) {
            const std::optional<uint64_t> before = CountOf(*other, depth - 1);
            if (!before) {
                return std::nullopt;
            }
            count = std::max(count, *before);
            continue;
        }
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
        const llvm::APInt* limit = nullptr;
        if (!m::match(value, m::m_Add(m::m_Specific(&counter), m::m_One())) || !branch ||
            !branch->isConditional() || branch->getSuccessor(0) != counter.getParent() ||
            branch->getSuccessor(1) == counter.getParent() ||
            !m::match(branch->getCondition(),
                      m::m_SpecificICmp(llvm::ICmpInst::ICMP_ULT, m::m_Specific(&counter),
                                        m::m_APInt(limit)))) {
            return std::nullopt;
        }
        count = std::max(count, limit->getZExtValue() + 1);
    }
    return count;
}

// The vectors of all loops: copies of one loop want the same ones.
class Vectors {
  public:
    explicit Vectors(llvm::Function& function) : function_(function) {}

    // A lane for each of the first so many numbers.
    Value* Numbers(llvm::Type* type, unsigned lanes) {
        llvm::SmallVector<llvm::Constant*, 64> numbers;
        for (unsigned i = 0; i < lanes; ++i) {
            numbers.push_back(llvm::ConstantInt::get(type, i));
        }
        return llvm::ConstantVector::get(numbers);
    }

    Value* Splat(llvm::BasicBlock* block, Value* scalar, unsigned lanes) {
        return Cached({block, scalar, reinterpret_cast<void*>(uintptr_t{lanes})}, [&]() -> Value* {
            llvm::IRBuilder<> b(block->getTerminator());
            return b.CreateVectorSplat(lanes, scalar);
        });
    }

    // The operation on vectors.
    Value* Widened(llvm::BasicBlock* block,
                   const Instruction& inst,
                   llvm::ArrayRef<Value*> operands,
                   unsigned lanes) {
        uintptr_t kind = inst.getOpcode();
        if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&inst)) {
            kind |= uintptr_t{compare->getPredicate()} << 32;
        } else if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst)) {
            kind |= uintptr_t{call->getIntrinsicID()} << 32;
        }
        // Flags are part of what it does: rounding once or twice.
        const uintptr_t flags = inst.getRawSubclassOptionalData();
        auto* type = llvm::FixedVectorType::get(inst.getType(), lanes);
        std::vector<void*> key = {block, reinterpret_cast<void*>(kind),
                                  reinterpret_cast<void*>(flags), type};
        key.insert(key.end(), operands.begin(), operands.end());
        return Cached(std::move(key), [&]() -> Value* {
            llvm::IRBuilder<> b(block->getTerminator());
            if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst)) {
                auto* made = b.CreateIntrinsic(call->getIntrinsicID(), {type}, operands);
                made->copyIRFlags(&inst);
                return made;
            }
            Instruction* made = inst.clone();
            made->dropUnknownNonDebugMetadata();
            made->mutateType(type);
            for (unsigned i = 0; i < operands.size(); ++i) {
                made->setOperand(i, operands[i]);
            }
            return b.Insert(made);
        });
    }

    // Whether so many more tables of so many lanes may be made.
    bool HasRoom(size_t tables, unsigned lanes) const {
        return tables * lanes * sizeof(uint32_t) <= kMostTableBytes - table_bytes_;
    }

    // Memory that has the vector from where it is computed on. If HasRoom.
    llvm::AllocaInst* Table(llvm::BasicBlock* block, Value* vector) {
        llvm::AllocaInst*& table = tables_[vector];
        if (!table) {
            llvm::BasicBlock& entry = function_.getEntryBlock();
            llvm::IRBuilder<> at_entry(&entry, entry.begin());
            table = at_entry.CreateAlloca(vector->getType(), nullptr, "iterations");
            table->setAlignment(llvm::Align(64));
            const auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
            table_bytes_ += type->getNumElements() * sizeof(uint32_t);
            llvm::IRBuilder<> b(block->getTerminator());
            b.CreateAlignedStore(vector, table, table->getAlign());
        }
        return table;
    }

  private:
    template <typename Make>
    Value* Cached(std::vector<void*> key, Make&& make) {
        Value*& value = made_[std::move(key)];
        if (!value) {
            value = make();
        }
        return value;
    }

    llvm::Function& function_;
    std::map<std::vector<void*>, Value*> made_;
    llvm::DenseMap<Value*, llvm::AllocaInst*> tables_;
    size_t table_bytes_ = 0;
};

// A loop and its counter.
class CountedLoop {
  public:
    CountedLoop(llvm::Loop& loop, llvm::PHINode& counter, uint64_t count, Vectors& vectors)
        : counter_(counter),
          lanes_(static_cast<unsigned>(std::bit_ceil(count))),
          vectors_(vectors) {
        for (llvm::Loop* around = &loop; around; around = around->getParentLoop()) {
            around_.insert(around_.begin(), around);
        }
        members_[&counter] = Member();
    }

    // `blocks`: those of the loop, each behind those that dominate it.
    bool Run(llvm::ArrayRef<llvm::BasicBlock*> blocks) {
        llvm::SmallVector<Instruction*, 32> slow;
        for (llvm::BasicBlock* block : blocks) {
            for (Instruction& inst : *block) {
                if (const std::optional<Member> member = Find(inst)) {
                    members_[&inst] = *member;
                    if (member->latency >= kLongLatency && IsElement(inst.getType())) {
                        slow.push_back(&inst);
                    }
                }
            }
        }
        llvm::erase_if(slow, [&](Instruction* inst) {
            return llvm::all_of(inst->users(),
                                [&](const llvm::User* user) { return IsInTable(user); });
        });
        if (slow.empty() || slow.size() > kMostTables || !vectors_.HasRoom(slow.size(), lanes_)) {
            return false;
        }
        llvm::SmallVector<Value*, 16> loads;
        for (Instruction* inst : slow) {
            llvm::AllocaInst* table = vectors_.Table(PlaceOf(*inst), VectorOf(inst));
            llvm::IRBuilder<> b(inst);
            Value* at = b.CreateInBoundsGEP(inst->getType(), table,
                                            b.CreateZExt(&counter_, b.getInt64Ty()));
            loads.push_back(b.CreateAlignedLoad(inst->getType(), at, llvm::Align(4)));
        }
        for (size_t i = 0; i < slow.size(); ++i) {
            slow[i]->replaceAllUsesWith(loads[i]);
        }
        for (Instruction* inst : llvm::reverse(slow)) {
            llvm::RecursivelyDeleteTriviallyDeadInstructions(inst);
        }
        return true;
    }

  private:
    struct Member {
        size_t level = 0;      // the outermost of the loops before which it can be computed
        unsigned latency = 0;  // from what is computed or loaded in any case
    };

    // The outermost loop before which a value is there that is no member.
    std::optional<size_t> LevelOf(const Value* value) const {
        for (size_t i = 0; i < around_.size(); ++i) {
            if (around_[i]->isLoopInvariant(value) && around_[i]->getLoopPreheader()) {
                return i;
            }
        }
        return std::nullopt;
    }

    std::optional<Member> Find(const Instruction& inst) const {
        const std::optional<unsigned> latency = LatencyOf(inst);
        const bool is_condition = inst.getType()->isIntegerTy(1);
        if (!latency ||
            !(IsElement(inst.getType()) || (is_condition && llvm::isa<llvm::CmpInst>(inst)))) {
            return std::nullopt;
        }
        Member result;
        bool depends = false;
        const auto operands = llvm::isa<llvm::CallBase>(inst)
                                  ? llvm::cast<llvm::CallBase>(inst).args()
                                  : inst.operands();
        llvm::SmallVector<const Member*, 4> members;
        for (const Value* operand : operands) {
            const auto member = members_.find(operand);
            if (member != members_.end()) {
                if (is_condition && !IsElement(operand->getType())) {
                    return std::nullopt;  // IsInTable looks through one comparison
                }
                depends = true;
                members.push_back(&member->second);
                result.level = std::max(result.level, member->second.level);
                continue;
            }
            const std::optional<size_t> level =
                IsElement(operand->getType()) ? LevelOf(operand) : std::nullopt;
            if (!level) {
                return std::nullopt;
            }
            result.level = std::max(result.level, *level);
        }
        if (!depends) {
            return std::nullopt;
        }
        for (const Member* member : members) {
            // What is loaded is there at once.
            const bool is_loaded = member->latency >= kLongLatency && member->level < result.level;
            result.latency = std::max(result.latency, is_loaded ? 0 : member->latency);
        }
        result.latency += *latency;
        return result;
    }

    // Whether a user of a slow value is computed before the loop itself.
    bool IsInTable(const llvm::User* user) const {
        const auto member = members_.find(user);
        return member != members_.end() && member->second.latency >= kLongLatency &&
               (IsElement(user->getType()) ||
                llvm::all_of(user->users(),
                             [&](const llvm::User* next) { return IsInTable(next); }));
    }

    llvm::BasicBlock* PlaceOf(const Value& value) const {
        return around_[members_.lookup(&value).level]->getLoopPreheader();
    }

    Value* VectorOf(Value* value) {
        if (value == &counter_) {
            return vectors_.Numbers(counter_.getType(), lanes_);
        }
        if (Value* known = vector_of_.lookup(value)) {
            return known;
        }
        auto* inst = llvm::cast<Instruction>(value);
        llvm::BasicBlock* place = PlaceOf(*inst);
        llvm::SmallVector<Value*, 4> operands;
        const auto given = llvm::isa<llvm::CallBase>(inst)
                               ? llvm::cast<llvm::CallBase>(inst)->args()
                               : inst->operands();
        for (Value* operand : given) {
            operands.push_back(members_.contains(operand) ? VectorOf(operand)
                                                          : vectors_.Splat(place, operand, lanes_));
        }
        Value* vector = vectors_.Widened(place, *inst, operands, lanes_);
        vector_of_[value] = vector;
        return vector;
    }

    llvm::PHINode& counter_;
    const unsigned lanes_;
    Vectors& vectors_;
    std::vector<llvm::Loop*> around_;  // the outermost first
    llvm::DenseMap<const Value*, Member> members_;
    llvm::DenseMap<const Value*, Value*> vector_of_;
};

}  // namespace

llvm::PreservedAnalyses IterationTablesPass::run(llvm::Function& function,
                                                 llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    std::map<llvm::Loop*, llvm::SmallVector<llvm::BasicBlock*, 16>> blocks;
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal(&function)) {
        if (llvm::Loop* loop = loops.getLoopFor(block)) {
            blocks[loop].push_back(block);
        }
    }
    Vectors vectors(function);
    bool changed = false;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        for (llvm::PHINode& phi : loop->getHeader()->phis()) {
            const std::optional<uint64_t> count = CountOf(phi);
            if (count && *count >= kFewestIterations && *count <= kMostIterations) {
                changed |= CountedLoop(*loop, phi, *count, vectors).Run(blocks[loop]);
            }
        }
    }
    if (!changed) {
        return llvm::PreservedAnalyses::all();
    }
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
}

}  // namespace fornax::kernel
