#include "compiler/kernel/codegen/recurrences.h"

#include <utility>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

namespace fornax::kernel {

using llvm::APInt;
using llvm::Instruction;
using llvm::Value;
namespace match = llvm::PatternMatch;

namespace {

constexpr uint32_t kMaxDepth = 64;
// The longest chain of instructions from one iteration's value to the next one's.
constexpr uint32_t kMaxChain = 64;

bool Handles(const llvm::Type* type) {
    return type->isIntegerTy() && type->getIntegerBitWidth() <= 64;
}

Recurrences::Limits Joined(const Recurrences::Limits& a, const Recurrences::Limits& b) {
    Recurrences::Limits all = a;
    for (const Recurrences::Limit& limit : b) {
        if (!llvm::is_contained(all, limit)) {
            all.push_back(limit);
        }
    }
    return all;
}

}  // namespace

Recurrences::Recurrences(const llvm::Loop& loop,
                         llvm::function_ref<Value*(llvm::PHINode&)> incoming_of)
    : loop_(loop),
      incoming_of_(incoming_of),
      before_(loop.getLoopPreheader(),
              loop.getLoopPreheader()->getTerminator()->getIterator(),
              llvm::InstSimplifyFolder(loop.getHeader()->getModule()->getDataLayout())) {}

std::optional<Recurrences::Recurrence> Recurrences::Of(Value* value) {
    if (!Handles(value->getType()) || depth_ == kMaxDepth) {
        return {};
    }
    // A cycle that is no counter's has none.
    if (known_.try_emplace(value).second) {
        ++depth_;
        std::optional<Recurrence> found = Compute(value);
        --depth_;
        known_[value] = std::move(found);
    }
    return known_[value];
}

Value* Recurrences::Binary(Instruction::BinaryOps op, Value* a, Value* b) {
    Value*& result = computed_[{op, a, b}];
    if (!result) {
        result = before_.CreateBinOp(op, a, b);
    }
    return result;
}

Value* Recurrences::Sum(Value* root, const APInt& offset) {
    return Binary(Instruction::Add, root, llvm::ConstantInt::get(root->getType(), offset));
}

// The offset becomes a part of the root.
void Recurrences::Settle(Recurrence& recurrence) {
    recurrence.root = First(recurrence);
    recurrence.offset.clearAllBits();
}

// A sum that wraps before the loop would break the limit, too, so an offset is not negative.
std::optional<Recurrences::Limits> Recurrences::Within(const Recurrence& recurrence,
                                                       const APInt& last) {
    if (recurrence.stride.isNegative()) {
        return {};
    }
    Recurrence settled = recurrence;
    if (recurrence.offset.isNegative() || recurrence.offset.ugt(last)) {
        Settle(settled);
    }
    if (settled.same() && settled.offset.isZero() && last.isAllOnes()) {
        return settled.limits;
    }
    Value* most = llvm::ConstantInt::get(settled.root->getType(), last - settled.offset);
    return Joined(settled.limits, {{settled.root, settled.stride, most}});
}

std::optional<Recurrences::Recurrence> Recurrences::Compute(Value* value) {
    const APInt zero = APInt::getZero(value->getType()->getIntegerBitWidth());
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
        return Recurrence{
            llvm::ConstantInt::get(value->getType(), 0), constant->getValue(), zero, {}};
    }
    auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || !loop_.contains(inst)) {
        return Recurrence{value, zero, zero, {}};
    }
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(inst)) {
        if (phi->getParent() == loop_.getHeader()) {
            return OfHeaderPhi(*phi);
        }
        Value* incoming = incoming_of_(*phi);
        return incoming ? Of(incoming) : std::nullopt;
    }
    std::optional<Recurrence> found;
    if (auto* cast = llvm::dyn_cast<llvm::CastInst>(inst)) {
        found = OfCast(*cast);
    } else if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(inst)) {
        found = OfBinary(*binary);
    } else if (llvm::isa<llvm::FreezeInst>(inst)) {
        found = Of(inst->getOperand(0));
    }
    return found ? found : OfRepeated(*inst);
}

// How much more a phi of the header is in the next iteration.
std::optional<APInt> Recurrences::StrideOf(llvm::PHINode& phi) {
    APInt stride = APInt::getZero(phi.getType()->getIntegerBitWidth());
    Value* next = phi.getIncomingValueForBlock(loop_.getLoopLatch());
    for (uint32_t length = 0; next && next != &phi && length < kMaxChain; ++length) {
        const APInt* more = nullptr;
        Value* rest = nullptr;
        if (auto* other = llvm::dyn_cast<llvm::PHINode>(next)) {
            const bool inside = loop_.contains(other) && other->getParent() != loop_.getHeader();
            next = inside ? incoming_of_(*other) : nullptr;
        } else if (match::match(next, match::m_Add(match::m_Value(rest), match::m_APInt(more)))) {
            stride += *more;
            next = rest;
        } else if (auto* freeze = llvm::dyn_cast<llvm::FreezeInst>(next)) {
            next = freeze->getOperand(0);
        } else {
            next = nullptr;
        }
    }
    return next == &phi ? std::optional(stride) : std::nullopt;
}

std::optional<Recurrences::Recurrence> Recurrences::OfHeaderPhi(llvm::PHINode& phi) {
    const std::optional<APInt> stride = StrideOf(phi);
    if (!stride) {
        return {};
    }
    // A freeze inside of the loop has to mean what one before it means.
    Value* first = phi.getIncomingValueForBlock(loop_.getLoopPreheader());
    if (!llvm::isGuaranteedNotToBeUndefOrPoison(first)) {
        first = before_.CreateFreeze(first);
        phi.setIncomingValueForBlock(loop_.getLoopPreheader(), first);
    }
    std::optional<Recurrence> start = Of(first);
    if (start) {
        start->stride = *stride;
    }
    return start;
}

std::optional<Recurrences::Recurrence> Recurrences::OfCast(llvm::CastInst& cast) {
    if (!Handles(cast.getSrcTy())) {
        return {};
    }
    const std::optional<Recurrence> found = Of(cast.getOperand(0));
    if (!found) {
        return {};
    }
    Recurrence a = *found;
    const unsigned from_bits = a.stride.getBitWidth();
    const unsigned bits = cast.getType()->getIntegerBitWidth();
    llvm::Type* type = cast.getType();
    if (llvm::isa<llvm::TruncInst>(cast)) {
        return Recurrence{before_.CreateTrunc(a.root, type), a.offset.trunc(bits),
                          a.stride.trunc(bits), a.limits};
    }
    const bool is_signed = llvm::isa<llvm::SExtInst>(cast);
    if (!is_signed && !llvm::isa<llvm::ZExtInst>(cast)) {
        return {};
    }
    if (a.same() || a.offset.isNegative()) {
        Settle(a);
    }
    if (a.same()) {
        Value* wide =
            is_signed ? before_.CreateSExt(a.root, type) : before_.CreateZExt(a.root, type);
        return Recurrence{wide, APInt::getZero(bits), APInt::getZero(bits), a.limits};
    }
    const auto limits =
        Within(a, is_signed ? APInt::getSignedMaxValue(from_bits) : APInt::getMaxValue(from_bits));
    if (!limits) {
        return {};
    }
    return Recurrence{before_.CreateZExt(a.root, type), a.offset.zext(bits), a.stride.zext(bits),
                      *limits};
}

std::optional<Recurrences::Recurrence> Recurrences::OfBinary(llvm::BinaryOperator& inst) {
    const std::optional<Recurrence> first = Of(inst.getOperand(0));
    const std::optional<Recurrence> second = first ? Of(inst.getOperand(1)) : std::nullopt;
    if (!second) {
        return {};
    }
    const Recurrence& a = *first;
    const Recurrence& b = *second;
    const Limits both = Joined(a.limits, b.limits);
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(inst.getOperand(1));
    const auto sum = [&] {
        return Recurrence{Binary(Instruction::Add, a.root, b.root), a.offset + b.offset,
                          a.stride + b.stride, both};
    };
    switch (inst.getOpcode()) {
        case Instruction::Add:
            return sum();
        case Instruction::Sub:
            return Recurrence{Binary(Instruction::Sub, a.root, b.root), a.offset - b.offset,
                              a.stride - b.stride, both};
        case Instruction::Mul:
        case Instruction::Shl: {
            const unsigned bits = a.stride.getBitWidth();
            if (!constant || (inst.getOpcode() == Instruction::Shl && constant->uge(bits))) {
                return {};
            }
            const APInt by =
                inst.getOpcode() == Instruction::Mul
                    ? constant->getValue()
                    : APInt::getOneBitSet(bits, static_cast<unsigned>(constant->getZExtValue()));
            Value* root =
                Binary(Instruction::Mul, a.root, llvm::ConstantInt::get(a.root->getType(), by));
            return Recurrence{root, a.offset * by, a.stride * by, both};
        }
        case Instruction::LShr:
            if (!constant || constant->uge(a.stride.getBitWidth())) {
                return {};
            }
            return OfQuotient(inst, a,
                              APInt::getOneBitSet(a.stride.getBitWidth(),
                                                  static_cast<unsigned>(constant->getZExtValue())));
        case Instruction::UDiv:
        case Instruction::URem:
            if (!constant || constant->isZero()) {
                return {};
            }
            return OfQuotient(inst, a, constant->getValue());
        case Instruction::And:
            return constant ? OfAnd(a, constant->getValue()) : std::nullopt;
        case Instruction::Or: {
            if (llvm::cast<llvm::PossiblyDisjointInst>(inst).isDisjoint()) {
                return sum();
            }
            // Only bits that are always the same in one and in the other.
            const llvm::KnownBits known =
                llvm::computeKnownBits(inst.getOperand(1), inst.getModule()->getDataLayout());
            if (!b.same() || known.countMaxActiveBits() > a.stride.countr_zero()) {
                return {};
            }
            Recurrence either = a;
            Settle(either);
            either.root = Binary(Instruction::Or, either.root, First(b));
            either.limits = both;
            return either;
        }
        default:
            return {};
    }
}

std::optional<Recurrences::Recurrence> Recurrences::OfAnd(Recurrence value, const APInt& mask) {
    const unsigned steady_bits = value.stride.countr_zero();  // the low ones, in all iterations
    const bool low = mask.getActiveBits() <= steady_bits;
    if (!low && (~mask).getActiveBits() > steady_bits) {
        return {};
    }
    // An offset without the bits in question goes by.
    if (value.offset.countr_zero() < (low ? mask : ~mask).getActiveBits()) {
        Settle(value);
    }
    value.root =
        Binary(Instruction::And, value.root, llvm::ConstantInt::get(value.root->getType(), mask));
    if (low) {
        value.offset.clearAllBits();
        value.stride.clearAllBits();
    }
    return value;
}

std::optional<Recurrences::Recurrence> Recurrences::OfQuotient(llvm::BinaryOperator& inst,
                                                               Recurrence value,
                                                               const APInt& by) {
    const bool rest = inst.getOpcode() == Instruction::URem;
    if (!value.stride.urem(by).isZero()) {
        return {};
    }
    if (value.offset.isNegative() || !value.offset.urem(by).isZero()) {
        Settle(value);
    }
    const auto limits = Within(value, APInt::getMaxValue(by.getBitWidth()));
    if (!limits) {
        return {};
    }
    const Instruction::BinaryOps op = rest ? Instruction::URem : Instruction::UDiv;
    Value* root = Binary(op, value.root, llvm::ConstantInt::get(value.root->getType(), by));
    const APInt none = APInt::getZero(by.getBitWidth());
    return Recurrence{root, rest ? none : value.offset.udiv(by),
                      rest ? none : value.stride.udiv(by), *limits};
}

// A value whose operands are the same in each iteration.
std::optional<Recurrences::Recurrence> Recurrences::OfRepeated(Instruction& inst) {
    if (inst.mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(&inst)) {
        return {};
    }
    llvm::SmallVector<Value*, 3> operands;
    Limits limits;
    for (Value* operand : inst.operands()) {
        if (llvm::isa<llvm::Constant>(operand)) {
            operands.push_back(operand);
            continue;
        }
        const std::optional<Recurrence> recurrence = Of(operand);
        if (!recurrence || !recurrence->same()) {
            return {};
        }
        limits = Joined(limits, recurrence->limits);
        operands.push_back(First(*recurrence));
    }
    const APInt zero = APInt::getZero(inst.getType()->getIntegerBitWidth());
    if (inst.isBinaryOp()) {
        return Recurrence{
            Binary(llvm::cast<llvm::BinaryOperator>(inst).getOpcode(), operands[0], operands[1]),
            zero, zero, limits};
    }
    Instruction* copy = inst.clone();
    copy->dropPoisonGeneratingAnnotations();
    for (unsigned i = 0; i < operands.size(); ++i) {
        copy->setOperand(i, operands[i]);
    }
    before_.Insert(copy);
    return Recurrence{copy, zero, zero, limits};
}

}  // namespace fornax::kernel
