#include "compiler/kernel/codegen/baseline_constants.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <bit>

namespace fornax::kernel {

namespace {

using llvm::Constant;
using llvm::Instruction;
using llvm::Type;

// The bits of an element; lanes that may hold anything hold zero.
bool ElementBits(const Constant* element, uint64_t& bits) {
    bits = 0;
    if (llvm::isa<llvm::UndefValue>(element)) {
        return true;
    }
    if (const auto* integer = llvm::dyn_cast<llvm::ConstantInt>(element)) {
        bits = integer->getZExtValue();
        return true;
    }
    if (const auto* real = llvm::dyn_cast<llvm::ConstantFP>(element)) {
        bits = real->getValueAPF().bitcastToAPInt().getZExtValue();
        return true;
    }
    return false;
}

class ConstantLoader {
  public:
    explicit ConstantLoader(llvm::Module& module) : module_(module) {}

    void Run() {
        for (llvm::Function& function : module_) {
            for (llvm::BasicBlock& block : function) {
                loaded_.clear();
                for (Instruction& instruction : llvm::make_early_inc_range(block)) {
                    Visit(instruction);
                }
            }
        }
        Finish();
    }

  private:
    void Visit(Instruction& instruction) {
        switch (instruction.getOpcode()) {
            case Instruction::Mul:
                // Wider and narrower ones become other operations, shorter ones for some constants.
                if (instruction.getType()->getScalarSizeInBits() != 32) {
                    return;
                }
                break;
            case Instruction::Add:
            case Instruction::Sub:
            case Instruction::And:
            case Instruction::Or:
            case Instruction::Xor:
            case Instruction::FAdd:
            case Instruction::FSub:
            case Instruction::FMul:
            case Instruction::FDiv:
            case Instruction::ICmp:
            case Instruction::FCmp:
            case Instruction::Select:
                break;
            case Instruction::Call: {
                const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
                if (!intrinsic || !TakesAnyOperand(intrinsic->getIntrinsicID())) {
                    return;
                }
                break;
            }
            default:
                return;
        }
        for (llvm::Use& use : instruction.operands()) {
            if (auto* constant = llvm::dyn_cast<Constant>(use.get())) {
                if (llvm::Value* value = Load(constant, instruction)) {
                    use.set(value);
                }
            }
        }
    }

    static bool TakesAnyOperand(llvm::Intrinsic::ID id) {
        switch (id) {
            case llvm::Intrinsic::fma:
            case llvm::Intrinsic::fmuladd:
            case llvm::Intrinsic::umin:
            case llvm::Intrinsic::umax:
            case llvm::Intrinsic::smin:
            case llvm::Intrinsic::smax:
            case llvm::Intrinsic::minnum:
            case llvm::Intrinsic::maxnum:
                return true;
            default:
                return false;
        }
    }

    // Before `user`, or earlier in its block. Null if the constant is to stay.
    llvm::Value* Load(Constant* constant, Instruction& user) {
        auto* type = llvm::dyn_cast<llvm::FixedVectorType>(constant->getType());
        if (!type || constant->isNullValue() || constant->isAllOnesValue()) {
            return nullptr;
        }
        Type* element = type->getElementType();
        if (element->isPointerTy() || element->getPrimitiveSizeInBits() % 8 != 0) {
            return nullptr;
        }
        llvm::Value*& loaded = loaded_[constant];
        if (loaded) {
            return loaded;
        }
        uint64_t offset = 0;
        if (!Place(constant, *type, offset)) {
            return nullptr;
        }
        if (!table_) {
            // Its size is not known yet.
            table_ = new llvm::GlobalVariable(
                module_, llvm::Type::getInt8Ty(module_.getContext()), /*isConstant=*/true,
                llvm::GlobalValue::PrivateLinkage, nullptr, "vector_constants");
        }
        llvm::IRBuilder<> builder(&user);
        llvm::Value* address =
            builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), table_, offset);
        const uint64_t bytes = type->getPrimitiveSizeInBits() / 8;
        loaded = builder.CreateAlignedLoad(
            type, address, llvm::Align(std::min(std::bit_floor(bytes), kAlignment)));
        return loaded;
    }

    bool Place(const Constant* constant, llvm::FixedVectorType& type, uint64_t& offset) {
        auto [known, added] = offsets_.try_emplace(constant, 0);
        offset = known->second;
        if (!added) {
            return true;
        }
        const uint64_t bytes = type.getScalarSizeInBits() / 8;
        std::vector<uint8_t> contents;
        for (unsigned i = 0; i < type.getNumElements(); ++i) {
            const Constant* element = constant->getAggregateElement(i);
            uint64_t bits = 0;
            if (!element || bytes > sizeof(bits) || !ElementBits(element, bits)) {
                offsets_.erase(constant);
                return false;
            }
            for (uint64_t byte = 0; byte < bytes; ++byte) {
                contents.push_back(static_cast<uint8_t>(bits >> (8 * byte)));
            }
        }
        const uint64_t alignment = std::min(std::bit_floor(contents.size()), kAlignment);
        bytes_.resize((bytes_.size() + alignment - 1) & ~(alignment - 1), 0);
        offset = known->second = bytes_.size();
        bytes_.insert(bytes_.end(), contents.begin(), contents.end());
        return true;
    }

    void Finish() {
        if (!table_) {
            return;
        }
        Constant* contents = llvm::ConstantDataArray::get(module_.getContext(), bytes_);
        auto* table = new llvm::GlobalVariable(module_, contents->getType(), /*isConstant=*/true,
                                               llvm::GlobalValue::PrivateLinkage, contents,
                                               "vector_constants");
        table->setAlignment(llvm::Align(kAlignment));
        table_->replaceAllUsesWith(table);
        table_->eraseFromParent();
    }

    static constexpr uint64_t kAlignment = 64;

    llvm::Module& module_;
    llvm::GlobalVariable* table_ = nullptr;
    std::vector<uint8_t> bytes_;
    llvm::DenseMap<const Constant*, uint64_t> offsets_;
    llvm::DenseMap<const Constant*, llvm::Value*> loaded_;  // in the current block
};

}  // namespace

void LoadVectorConstants(llvm::Module& module) {
    ConstantLoader(module).Run();
}

}  // namespace fornax::kernel
