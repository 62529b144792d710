#include "compiler/kernel/codegen/turn_values.h"

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
constexpr uint32_t kMaxSteps = 64;

bool Handles(const llvm::Type* type) {
    return type->isIntegerTy() && type->getIntegerBitWidth() <= 64;
}

TurnValues::Limits Joined(const TurnValues::Limits& a, const TurnValues::Limits& b) {
    TurnValues::Limits all = a;
    for (const TurnValues::Limit& limit : b) {
        if (!llvm::is_contained(all, limit)) {
            all.push_back(limit);
        }
    }
    return all;
}

}  // namespace

TurnValues::TurnValues(const llvm::Loop& loop,
                       llvm::function_ref<Value*(llvm::PHINode&)> incoming_of)
    : loop_(loop),
      incoming_of_(incoming_of),
      before_(loop.getLoopPreheader(),
              loop.getLoopPreheader()->getTerminator()->getIterator(),
              llvm::InstSimplifyFolder(loop.getHeader()->getModule()->getDataLayout())) {}

const TurnValues::Linear* TurnValues::Of(Value* value) {
    if (!Handles(value->getType()) || depth_ == kMaxDepth) {
        return nullptr;
    }
    if (!known_.contains(value)) {
        known_[value] = std::nullopt;  // a cycle that is no counter's
        ++depth_;
        std::optional<Linear> found = Compute(value);
        --depth_;
        known_[value] = std::move(found);
    }
    const std::optional<Linear>& linear = known_[value];
    return linear ? &*linear : nullptr;
}

Value* TurnValues::Binary(Instruction::BinaryOps op, Value* a, Value* b) {
    Value*& result = computed_[{op, a, b}];
    if (!result) {
        result = before_.CreateBinOp(op, a, b);
    }
    return result;
}

Value* TurnValues::Sum(Value* root, const APInt& offset) {
    return Binary(Instruction::Add, root, llvm::ConstantInt::get(root->getType(), offset));
}

// The offset becomes a part of the root.
void TurnValues::Settle(Linear& linear) {
    linear.root = First(linear);
    linear.offset.clearAllBits();
}

// A sum that wraps before the loop would break the limit, too, so an offset is not negative.
std::optional<TurnValues::Limits> TurnValues::Within(const Linear& linear, const APInt& last) {
    if (linear.step.isNegative()) {
        return {};
    }
    Linear settled = linear;
    if (linear.offset.isNegative() || linear.offset.ugt(last)) {
        Settle(settled);
    }
    if (settled.same() && settled.offset.isZero() && last.isAllOnes()) {
        return settled.limits;
    }
    Value* most = llvm::ConstantInt::get(settled.root->getType(), last - settled.offset);
    return Joined(settled.limits, {{settled.root, settled.step, most}});
}

std::optional<TurnValues::Linear> TurnValues::Compute(Value* value) {
    const APInt zero = APInt::getZero(value->getType()->getIntegerBitWidth());
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
        return Linear{llvm::ConstantInt::get(value->getType(), 0), constant->getValue(), zero, {}};
    }
    auto* inst = llvm::dyn_cast<Instruction>(value);
    if (!inst || !loop_.contains(inst)) {
        return Linear{value, zero, zero, {}};
    }
    std::optional<Linear> found;
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(inst)) {
        if (phi->getParent() == loop_.getHeader()) {
            return OfHeaderPhi(*phi);
        }
        Value* incoming = incoming_of_(*phi);
        const Linear* linear = incoming ? Of(incoming) : nullptr;
        return linear ? std::optional(*linear) : std::nullopt;
    }
    if (auto* cast = llvm::dyn_cast<llvm::CastInst>(inst)) {
        found = OfCast(*cast);
    } else if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(inst)) {
        found = OfBinary(*binary);
    } else if (llvm::isa<llvm::FreezeInst>(inst)) {
        if (const Linear* linear = Of(inst->getOperand(0))) {
            return *linear;
        }
    }
    return found ? found : OfRepeated(*inst);
}

// How much more a phi of the header is in the next turn.
std::optional<APInt> TurnValues::StepOf(llvm::PHINode& phi) {
    APInt step = APInt::getZero(phi.getType()->getIntegerBitWidth());
    Value* next = phi.getIncomingValueForBlock(loop_.getLoopLatch());
    for (uint32_t steps = 0; next && next != &phi && steps < kMaxSteps; ++steps) {
        const APInt* more = nullptr;
        Value* rest = nullptr;
        if (auto* other = llvm::dyn_cast<llvm::PHINode>(next)) {
            const bool inside = loop_.contains(other) && other->getParent() != loop_.getHeader();
            next = inside ? incoming_of_(*other) : nullptr;
        } else if (match::match(next, match::m_Add(match::m_Value(rest), match::m_APInt(more)))) {
            step += *more;
            next = rest;
        } else if (auto* freeze = llvm::dyn_cast<llvm::FreezeInst>(next)) {
            next = freeze->getOperand(0);
        } else {
            next = nullptr;
        }
    }
    return next == &phi ? std::optional(step) : std::nullopt;
}

std::optional<TurnValues::Linear> TurnValues::OfHeaderPhi(llvm::PHINode& phi) {
    const std::optional<APInt> step = StepOf(phi);
    if (!step) {
        return {};
    }
    // A freeze inside of the loop has to mean what one before it means.
    Value* first = phi.getIncomingValueForBlock(loop_.getLoopPreheader());
    if (!llvm::isGuaranteedNotToBeUndefOrPoison(first)) {
        first = before_.CreateFreeze(first);
        phi.setIncomingValueForBlock(loop_.getLoopPreheader(), first);
    }
    const Linear* start = Of(first);
    if (!start) {
        return {};
    }
    return Linear{start->root, start->offset, *step, {}};
}

std::optional<TurnValues::Linear> TurnValues::OfCast(llvm::CastInst& cast) {
    if (!Handles(cast.getSrcTy())) {
        return {};
    }
    const Linear* found = Of(cast.getOperand(0));
    if (!found) {
        return {};
    }
    Linear a = *found;
    const unsigned from_bits = a.step.getBitWidth();
    const unsigned bits = cast.getType()->getIntegerBitWidth();
    llvm::Type* type = cast.getType();
    if (llvm::isa<llvm::TruncInst>(cast)) {
        return Linear{before_.CreateTrunc(a.root, type), a.offset.trunc(bits), a.step.trunc(bits),
                      a.limits};
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
        return Linear{wide, APInt::getZero(bits), APInt::getZero(bits), a.limits};
    }
    const auto limits =
        Within(a, is_signed ? APInt::getSignedMaxValue(from_bits) : APInt::getMaxValue(from_bits));
    if (!limits) {
        return {};
    }
    return Linear{before_.CreateZExt(a.root, type), a.offset.zext(bits), a.step.zext(bits),
                  *limits};
}

std::optional<TurnValues::Linear> TurnValues::OfBinary(llvm::BinaryOperator& inst) {
    const Linear* found = Of(inst.getOperand(0));
    if (!found) {
        return {};
    }
    const Linear a = *found;
    found = Of(inst.getOperand(1));
    if (!found) {
        return {};
    }
    const Linear b = *found;
    const Limits both = Joined(a.limits, b.limits);
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(inst.getOperand(1));
    const auto sum = [&] {
        return Linear{Binary(Instruction::Add, a.root, b.root), a.offset + b.offset,
                      a.step + b.step, both};
    };
    switch (inst.getOpcode()) {
        case Instruction::Add:
            return sum();
        case Instruction::Sub:
            return Linear{Binary(Instruction::Sub, a.root, b.root), a.offset - b.offset,
                          a.step - b.step, both};
        case Instruction::Mul:
        case Instruction::Shl: {
            const unsigned bits = a.step.getBitWidth();
            if (!constant || (inst.getOpcode() == Instruction::Shl && constant->uge(bits))) {
                return {};
            }
            const APInt by =
                inst.getOpcode() == Instruction::Mul
                    ? constant->getValue()
                    : APInt::getOneBitSet(bits, static_cast<unsigned>(constant->getZExtValue()));
            Value* root =
                Binary(Instruction::Mul, a.root, llvm::ConstantInt::get(a.root->getType(), by));
            return Linear{root, a.offset * by, a.step * by, both};
        }
        case Instruction::LShr:
            if (!constant || constant->uge(a.step.getBitWidth())) {
                return {};
            }
            return OfQuotient(inst, a,
                              APInt::getOneBitSet(a.step.getBitWidth(),
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
            if (!b.same() || known.countMaxActiveBits() > a.step.countr_zero()) {
                return {};
            }
            Linear either = a;
            Settle(either);
            either.root = Binary(Instruction::Or, either.root, First(b));
            either.limits = both;
            return either;
        }
        default:
            return {};
    }
}

std::optional<TurnValues::Linear> TurnValues::OfAnd(Linear value, const APInt& mask) {
    const unsigned steady_bits = value.step.countr_zero();  // the low ones, in all turns
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
        value.step.clearAllBits();
    }
    return value;
}

std::optional<TurnValues::Linear> TurnValues::OfQuotient(llvm::BinaryOperator& inst,
                                                         Linear value,
                                                         const APInt& by) {
    const bool rest = inst.getOpcode() == Instruction::URem;
    if (!value.step.urem(by).isZero()) {
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
    return Linear{root, rest ? none : value.offset.udiv(by), rest ? none : value.step.udiv(by),
                  *limits};
}

// A value whose operands are the same in each iteration.
std::optional<TurnValues::Linear> TurnValues::OfRepeated(Instruction& inst) {
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
        const Linear* linear = Of(operand);
        if (!linear || !linear->same()) {
            return {};
        }
        limits = Joined(limits, linear->limits);
        operands.push_back(First(*linear));
    }
    const APInt zero = APInt::getZero(inst.getType()->getIntegerBitWidth());
    if (inst.isBinaryOp()) {
        return Linear{
            Binary(llvm::cast<llvm::BinaryOperator>(inst).getOpcode(), operands[0], operands[1]),
            zero, zero, limits};
    }
    Instruction* copy = inst.clone();
    copy->dropPoisonGeneratingAnnotations();
    for (unsigned i = 0; i < operands.size(); ++i) {
        copy->setOperand(i, operands[i]);
    }
    before_.Insert(copy);
    return Linear{copy, zero, zero, limits};
}

}  // namespace fornax::kernel
