#include "compiler/kernel/codegen/baseline_split.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace fornax::kernel {

namespace {

using llvm::Constant;
using llvm::FixedVectorType;
using llvm::Instruction;
using llvm::Type;
using llvm::Value;

using Parts = llvm::SmallVector<Value*, 8>;

// What computes each lane by itself and is named by the type of its result.
bool IsByLane(llvm::Intrinsic::ID id) {
    switch (id) {
        case llvm::Intrinsic::fma:
        case llvm::Intrinsic::fmuladd:
        case llvm::Intrinsic::umin:
        case llvm::Intrinsic::umax:
        case llvm::Intrinsic::smin:
        case llvm::Intrinsic::smax:
        case llvm::Intrinsic::minnum:
        case llvm::Intrinsic::maxnum:
        case llvm::Intrinsic::sqrt:
        case llvm::Intrinsic::floor:
        case llvm::Intrinsic::ceil:
        case llvm::Intrinsic::trunc:
        case llvm::Intrinsic::rint:
        case llvm::Intrinsic::nearbyint:
        case llvm::Intrinsic::roundeven:
        case llvm::Intrinsic::fabs:
        case llvm::Intrinsic::copysign:
        case llvm::Intrinsic::abs:
        case llvm::Intrinsic::ctpop:
        case llvm::Intrinsic::ctlz:
        case llvm::Intrinsic::cttz:
        case llvm::Intrinsic::fshl:
        case llvm::Intrinsic::fshr:
        case llvm::Intrinsic::bswap:
        case llvm::Intrinsic::bitreverse:
            return true;
        default:
            return false;
    }
}

class Splitter {
  public:
    Splitter(llvm::Function& function, unsigned lanes, unsigned part_lanes)
        : function_(function),
          all_lanes_(lanes),
          lanes_(part_lanes),
          builder_(function.getContext()) {}

    void Run() {
        llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
        for (llvm::BasicBlock* block : order) {
            for (Instruction& instruction : llvm::make_early_inc_range(*block)) {
                builder_.SetInsertPoint(&instruction);
                if (Visit(instruction)) {
                    split_.push_back(&instruction);
                }
            }
        }
        for (llvm::PHINode* phi : phis_) {
            FillPhi(*phi);
        }
        Finish();
    }

  private:
    bool Splits(const Type* type) const {
        const auto* vector = llvm::dyn_cast<FixedVectorType>(type);
        return vector && vector->getNumElements() == all_lanes_;
    }
    unsigned Count() const { return all_lanes_ / lanes_; }
    Type* PartType(const Type* type) const {
        return FixedVectorType::get(type->getScalarType(), lanes_);
    }
    static unsigned Width(const Value* value) {
        return llvm::cast<FixedVectorType>(value->getType())->getNumElements();
    }

    Parts PartsOf(Value* value) {
        if (auto* constant = llvm::dyn_cast<Constant>(value)) {
            return ConstantParts(constant);
        }
        auto [found, added] = parts_.try_emplace(value);
        if (!added) {
            return found->second;
        }
        // An instruction that stays, or an argument: right behind it.
        llvm::IRBuilder<>::InsertPointGuard guard(builder_);
        if (auto* instruction = llvm::dyn_cast<Instruction>(value)) {
            builder_.SetInsertPoint(instruction->getParent(),
                                    *instruction->getInsertionPointAfterDef());
        } else {
            builder_.SetInsertPoint(&*function_.getEntryBlock().getFirstInsertionPt());
        }
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            llvm::SmallVector<int, 16> numbers;
            for (unsigned i = 0; i < lanes_; ++i) {
                numbers.push_back(static_cast<int>(part * lanes_ + i));
            }
            parts.push_back(builder_.CreateShuffleVector(value, numbers));
        }
        return parts_[value] = parts;
    }
    Parts ConstantParts(Constant* constant) {
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            llvm::SmallVector<Constant*, 16> elements;
            for (unsigned i = 0; i < lanes_; ++i) {
                elements.push_back(constant->getAggregateElement(part * lanes_ + i));
            }
            parts.push_back(llvm::ConstantVector::get(elements));
        }
        return parts;
    }
    // Part `part` of an operand; scalars are the same for all.
    Value* Operand(Value* value, unsigned part) {
        return Splits(value->getType()) ? PartsOf(value)[part] : value;
    }
    bool ConstantsHaveElements(const Instruction& instruction) const {
        for (const Value* operand : instruction.operands()) {
            if (const auto* constant = llvm::dyn_cast<Constant>(operand);
                constant && Splits(constant->getType()) && !constant->getAggregateElement(0u)) {
                return false;
            }
        }
        return true;
    }

    // True if the parts are there and the instruction is to go.
    bool Visit(Instruction& instruction) {
        if (!ConstantsHaveElements(instruction)) {
            return false;
        }
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
            return VisitIntrinsic(*call);
        }
        switch (instruction.getOpcode()) {
            case Instruction::ShuffleVector:
                return VisitShuffle(llvm::cast<llvm::ShuffleVectorInst>(instruction));
            case Instruction::ExtractElement:
                return VisitExtract(llvm::cast<llvm::ExtractElementInst>(instruction));
            case Instruction::Store:
                return VisitStore(llvm::cast<llvm::StoreInst>(instruction));
            case Instruction::BitCast:
                return VisitBitCast(llvm::cast<llvm::BitCastInst>(instruction));
            default:
                break;
        }
        if (!Splits(instruction.getType())) {
            return false;
        }
        switch (instruction.getOpcode()) {
            case Instruction::PHI:
                return VisitPhi(llvm::cast<llvm::PHINode>(instruction));
            case Instruction::Load:
                return VisitLoad(llvm::cast<llvm::LoadInst>(instruction));
            case Instruction::InsertElement:
                return VisitInsert(llvm::cast<llvm::InsertElementInst>(instruction));
            case Instruction::GetElementPtr:
            case Instruction::Select:
            case Instruction::Freeze:
            case Instruction::ICmp:
            case Instruction::FCmp:
                break;
            default:
                if (!instruction.isBinaryOp() && !instruction.isUnaryOp() &&
                    !instruction.isCast()) {
                    return false;
                }
        }
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            Instruction* copy = instruction.clone();
            for (unsigned i = 0; i < copy->getNumOperands(); ++i) {
                copy->setOperand(i, Operand(instruction.getOperand(i), part));
            }
            copy->mutateType(PartType(instruction.getType()));
            parts.push_back(builder_.Insert(copy));
        }
        parts_[&instruction] = parts;
        return true;
    }

    bool VisitPhi(llvm::PHINode& phi) {
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            parts.push_back(
                builder_.CreatePHI(PartType(phi.getType()), phi.getNumIncomingValues()));
        }
        parts_[&phi] = parts;
        phis_.push_back(&phi);
        return true;
    }
    void FillPhi(llvm::PHINode& phi) {
        const Parts parts = parts_[&phi];
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
            const Parts incoming = PartsOf(phi.getIncomingValue(i));
            for (unsigned part = 0; part < parts.size(); ++part) {
                llvm::cast<llvm::PHINode>(parts[part])
                    ->addIncoming(incoming[part], phi.getIncomingBlock(i));
            }
        }
    }

    // Bytes from one part to the next; 0 if they are not whole.
    uint64_t PartBytes(const Type* type) const {
        const uint64_t bits = uint64_t{type->getScalarSizeInBits()} * lanes_;
        return type->isPtrOrPtrVectorTy() || type->getScalarSizeInBits() % 8 != 0 ? 0 : bits / 8;
    }
    Value* PartAddress(Value* address, uint64_t offset) {
        return offset == 0 ? address
                           : builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, offset);
    }
    bool VisitLoad(llvm::LoadInst& load) {
        const uint64_t bytes = PartBytes(load.getType());
        if (!load.isSimple() || bytes == 0) {
            return false;
        }
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            auto* copy = builder_.CreateAlignedLoad(
                PartType(load.getType()), PartAddress(load.getPointerOperand(), part * bytes),
                llvm::commonAlignment(load.getAlign(), part * bytes));
            copy->copyMetadata(load);
            parts.push_back(copy);
        }
        parts_[&load] = parts;
        return true;
    }
    bool VisitStore(llvm::StoreInst& store) {
        Type* type = store.getValueOperand()->getType();
        if (!Splits(type) || !store.isSimple() || PartBytes(type) == 0) {
            return false;
        }
        const uint64_t bytes = PartBytes(type);
        const Parts parts = PartsOf(store.getValueOperand());
        for (unsigned part = 0; part < parts.size(); ++part) {
            auto* copy = builder_.CreateAlignedStore(
                parts[part], PartAddress(store.getPointerOperand(), part * bytes),
                llvm::commonAlignment(store.getAlign(), part * bytes));
            copy->copyMetadata(store);
        }
        return true;
    }

    // Also between a vector of bits and an integer.
    bool VisitBitCast(llvm::BitCastInst& cast) {
        Type* from = cast.getSrcTy();
        Type* to = cast.getDestTy();
        Value* source = cast.getOperand(0);
        if (Splits(from) && Splits(to)) {
            Parts parts;
            for (Value* part : PartsOf(source)) {
                parts.push_back(builder_.CreateBitCast(part, PartType(to)));
            }
            parts_[&cast] = parts;
            return true;
        }
        Type* piece = builder_.getIntNTy(lanes_);
        if (Splits(from) && from->getScalarType()->isIntegerTy(1) && to->isIntegerTy()) {
            Value* all = nullptr;
            unsigned shift = 0;
            for (Value* part : PartsOf(source)) {
                Value* bits = builder_.CreateZExt(builder_.CreateBitCast(part, piece), to);
                all = all ? builder_.CreateOr(all, builder_.CreateShl(bits, shift)) : bits;
                shift += lanes_;
            }
            Replace(cast, all);
            return true;
        }
        if (Splits(to) && to->getScalarType()->isIntegerTy(1) && from->isIntegerTy()) {
            Parts parts;
            for (unsigned part = 0; part < Count(); ++part) {
                Value* bits =
                    builder_.CreateTrunc(builder_.CreateLShr(source, part * lanes_), piece);
                parts.push_back(builder_.CreateBitCast(bits, PartType(to)));
            }
            parts_[&cast] = parts;
            return true;
        }
        return false;
    }

    bool VisitExtract(llvm::ExtractElementInst& extract) {
        const auto* index = llvm::dyn_cast<llvm::ConstantInt>(extract.getIndexOperand());
        if (!Splits(extract.getVectorOperandType()) || !index) {
            return false;
        }
        const uint64_t lane = index->getZExtValue();
        const Parts parts = PartsOf(extract.getVectorOperand());
        if (lane / lanes_ >= parts.size()) {
            return false;
        }
        Replace(extract, builder_.CreateExtractElement(parts[lane / lanes_], lane % lanes_));
        return true;
    }
    bool VisitInsert(llvm::InsertElementInst& insert) {
        const auto* index = llvm::dyn_cast<llvm::ConstantInt>(insert.getOperand(2));
        Parts parts = PartsOf(insert.getOperand(0));
        if (!index || index->getZExtValue() / lanes_ >= parts.size()) {
            return false;
        }
        const uint64_t lane = index->getZExtValue();
        Value*& part = parts[lane / lanes_];
        part = builder_.CreateInsertElement(part, insert.getOperand(1), lane % lanes_);
        parts_[&insert] = parts;
        return true;
    }

    // A register's worth of a shuffle's result; null if it takes more than one instruction.
    Value* ShufflePart(llvm::ShuffleVectorInst& shuffle, llvm::ArrayRef<int> mask) {
        const unsigned width = Width(shuffle.getOperand(0));
        llvm::SmallVector<Value*, 2> sources;
        llvm::SmallVector<int, 16> picks;
        for (int lane : mask) {
            if (lane < 0) {
                picks.push_back(-1);
                continue;
            }
            const unsigned from = static_cast<unsigned>(lane) % width;
            Value* operand = shuffle.getOperand(static_cast<unsigned>(lane) / width);
            const bool whole = !Splits(operand->getType());
            Value* source = whole ? operand : PartsOf(operand)[from / lanes_];
            const unsigned at = whole ? from : from % lanes_;
            auto found = std::find(sources.begin(), sources.end(), source);
            if (found == sources.end()) {
                if (sources.size() == 2 ||
                    (!sources.empty() && sources[0]->getType() != source->getType())) {
                    return nullptr;
                }
                sources.push_back(source);
                found = sources.end() - 1;
            }
            const auto which = static_cast<unsigned>(found - sources.begin());
            picks.push_back(static_cast<int>(which * Width(source) + at));
        }
        if (sources.empty()) {
            return llvm::PoisonValue::get(FixedVectorType::get(shuffle.getType()->getScalarType(),
                                                               static_cast<unsigned>(mask.size())));
        }
        if (sources.size() == 1 && Width(sources[0]) == picks.size() &&
            llvm::ShuffleVectorInst::isIdentityMask(picks, static_cast<int>(picks.size()))) {
            return sources[0];
        }
        return sources.size() == 1 ? builder_.CreateShuffleVector(sources[0], picks)
                                   : builder_.CreateShuffleVector(sources[0], sources[1], picks);
    }
    bool VisitShuffle(llvm::ShuffleVectorInst& shuffle) {
        const llvm::ArrayRef<int> mask = shuffle.getShuffleMask();
        if (!Splits(shuffle.getType())) {
            if (!Splits(shuffle.getOperand(0)->getType())) {
                return false;
            }
            Value* value = ShufflePart(shuffle, mask);
            if (!value) {
                return false;
            }
            Replace(shuffle, value);
            return true;
        }
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            const llvm::ArrayRef<int> picks = mask.slice(part * lanes_, lanes_);
            const bool again = part > 0 && picks == mask.take_front(lanes_);
            Value* value = again ? parts[0] : ShufflePart(shuffle, picks);
            if (!value) {
                return false;
            }
            parts.push_back(value);
        }
        parts_[&shuffle] = parts;
        return true;
    }

    bool VisitIntrinsic(llvm::IntrinsicInst& call) {
        const llvm::Intrinsic::ID id = call.getIntrinsicID();
        switch (id) {
            case llvm::Intrinsic::vector_extract: {
                Value* from = call.getArgOperand(0);
                const uint64_t first =
                    llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->getZExtValue();
                if (!Splits(from->getType()) || lanes_ % Width(&call) != 0) {
                    return false;
                }
                Value* part = PartsOf(from)[first / lanes_];
                if (Width(&call) != lanes_) {
                    part = builder_.CreateExtractVector(call.getType(), part,
                                                        builder_.getInt64(first % lanes_));
                }
                Replace(call, part);
                return true;
            }
            case llvm::Intrinsic::vector_insert: {
                const uint64_t first =
                    llvm::cast<llvm::ConstantInt>(call.getArgOperand(2))->getZExtValue();
                Value* piece = call.getArgOperand(1);
                if (!Splits(call.getType()) || lanes_ % Width(piece) != 0) {
                    return false;
                }
                Parts parts = PartsOf(call.getArgOperand(0));
                Value*& part = parts[first / lanes_];
                part = Width(piece) == lanes_
                           ? piece
                           : builder_.CreateInsertVector(part->getType(), part, piece,
                                                         builder_.getInt64(first % lanes_));
                parts_[&call] = parts;
                return true;
            }
            case llvm::Intrinsic::masked_gather:
                return Splits(call.getType()) &&
                       SplitCall(call, {call.getType(), call.getArgOperand(0)->getType()});
            default:
                return Splits(call.getType()) && IsByLane(id) && SplitCall(call, {call.getType()});
        }
    }
    bool SplitCall(llvm::IntrinsicInst& call, std::initializer_list<Type*> types) {
        llvm::SmallVector<Type*, 2> part_types;
        for (const Type* type : types) {
            part_types.push_back(PartType(type));
        }
        llvm::Function* callee = llvm::Intrinsic::getDeclaration(function_.getParent(),
                                                                 call.getIntrinsicID(), part_types);
        Parts parts;
        for (unsigned part = 0; part < Count(); ++part) {
            llvm::SmallVector<Value*, 4> arguments;
            for (Value* argument : call.args()) {
                arguments.push_back(Operand(argument, part));
            }
            llvm::CallInst* copy = builder_.CreateCall(callee, arguments);
            copy->copyMetadata(call);
            if (llvm::isa<llvm::FPMathOperator>(copy)) {
                copy->copyFastMathFlags(&call);
            }
            parts.push_back(copy);
        }
        parts_[&call] = parts;
        return true;
    }

    // For results that are no parts.
    static void Replace(Instruction& instruction, Value* value) {
        instruction.replaceAllUsesWith(value);
    }

    // Whole vectors for what stays, then the end of what was split.
    void Finish() {
        llvm::SmallPtrSet<const Value*, 32> gone(split_.begin(), split_.end());
        for (Instruction* instruction : split_) {
            auto found = parts_.find(instruction);
            if (found == parts_.end()) {
                continue;
            }
            llvm::SmallVector<llvm::Use*, 4> stay;
            for (llvm::Use& use : instruction->uses()) {
                if (!gone.contains(use.getUser())) {
                    stay.push_back(&use);
                }
            }
            if (stay.empty()) {
                continue;
            }
            if (llvm::isa<llvm::PHINode>(instruction)) {
                builder_.SetInsertPoint(&*instruction->getParent()->getFirstInsertionPt());
            } else {
                builder_.SetInsertPoint(instruction);
            }
            Value* whole = Concatenate(found->second);
            for (llvm::Use* use : stay) {
                use->set(whole);
            }
        }
        for (Instruction* instruction : split_) {
            instruction->dropAllReferences();
        }
        for (Instruction* instruction : split_) {
            instruction->eraseFromParent();
        }
    }
    Value* Concatenate(Parts parts) {
        while (parts.size() > 1) {
            llvm::SmallVector<int, 64> numbers;
            for (unsigned lane = 0; lane < 2 * Width(parts[0]); ++lane) {
                numbers.push_back(static_cast<int>(lane));
            }
            for (size_t i = 0; i < parts.size(); i += 2) {
                parts[i / 2] = builder_.CreateShuffleVector(parts[i], parts[i + 1], numbers);
            }
            parts.resize(parts.size() / 2);
        }
        return parts[0];
    }

    llvm::Function& function_;
    const unsigned all_lanes_;
    const unsigned lanes_;  // of a part
    llvm::IRBuilder<> builder_;
    llvm::DenseMap<const Value*, Parts> parts_;
    std::vector<llvm::PHINode*> phis_;
    std::vector<Instruction*> split_;
};

}  // namespace

void SplitVectors(llvm::Function& function, unsigned lanes, unsigned part_lanes) {
    if (lanes > part_lanes && lanes % part_lanes == 0) {
        Splitter(function, lanes, part_lanes).Run();
    }
}

}  // namespace fornax::kernel
