#include "compiler/kernel/codegen/cheap_floats.h"

#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

namespace {

using V = llvm::Value*;

// --- Quotients -----------------------------------------------------------------------------------

// y = 1 / b, q = a * y, r = a - q * b and q + r * y, each rounded once, give a / b rounded to
// nearest for all significands of a and b (which the hardest of them for each b show: 93 million),
// as long as r is exact and nothing overflows or is denormal. That r is a multiple of 2^-46 * a.
// Within these exponents all of it holds; a power of two where two ranges meet.
constexpr int kLeastDivisor = -20;
constexpr int kEndOfDivisors = 40;
constexpr int kLeastDividend = -80;
constexpr int kEndOfDividends = 80;

constexpr uint32_t kMagnitude = 0x7fffffff;
// A quotient of fewer lanes costs about as much as the multiply-adds and the test.
constexpr unsigned kLeastLanes = 8;
// Each quotient is a branch of its own.
constexpr size_t kMostQuotients = 256;

constexpr uint32_t BitsOfPower(int exponent) {
    return static_cast<uint32_t>(127 + exponent) << 23;
}

V BitsOf(llvm::IRBuilder<>& b, V value) {
    llvm::Type* type = b.getInt32Ty();
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType())) {
        type = llvm::FixedVectorType::get(type, vector->getNumElements());
    }
    return b.CreateBitCast(value, type);
}

V MagnitudeOf(llvm::IRBuilder<>& b, V value) {
    V bits = BitsOf(b, value);
    return b.CreateAnd(bits, llvm::ConstantInt::get(bits->getType(), kMagnitude));
}

// Whether 2^least <= |value| < 2^end, of its magnitude's bits.
V IsBetween(llvm::IRBuilder<>& b, V magnitude, int least, int end) {
    const auto constant = [&](uint32_t bits) {
        return llvm::ConstantInt::get(magnitude->getType(), bits);
    };
    return b.CreateICmpULT(b.CreateSub(magnitude, constant(BitsOfPower(least))),
                           constant(BitsOfPower(end) - BitsOfPower(least)));
}

V AllOf(llvm::IRBuilder<>& b, V lanes) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(lanes->getType());
    if (!vector) {
        return lanes;
    }
    V bits = b.CreateBitCast(lanes, b.getIntNTy(vector->getNumElements()));
    return b.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

float MostOfDividends() {
    return std::ldexp(1.0F, kEndOfDividends);
}

// Whether a value is at least (at most) a number of an ordinary magnitude, or NaN: a clamp's
// selections, the outer one or the one inside of it.
bool IsBounded(V value, bool below, int depth = 2) {
    namespace m = llvm::PatternMatch;
    using P = llvm::FCmpInst::Predicate;
    V left = nullptr, right = nullptr, yes = nullptr, no = nullptr;
    P predicate = {};
    if (depth == 0 ||
        !m::match(value, m::m_Select(m::m_FCmp(predicate, m::m_Value(left), m::m_Value(right)),
                                     m::m_Value(yes), m::m_Value(no)))) {
        return false;
    }
    const llvm::APFloat* limit = nullptr;
    if (!m::match(right, m::m_APFloat(limit))) {
        std::swap(left, right);
        predicate = llvm::FCmpInst::getSwappedPredicate(predicate);
        if (!m::match(right, m::m_APFloat(limit))) {
            return false;
        }
    }
    if (yes == right && no == left) {
        std::swap(yes, no);
        predicate = llvm::FCmpInst::getInversePredicate(predicate);
    }
    if (yes != left || no != right || limit->isNaN() ||
        std::fabs(limit->convertToFloat()) >= MostOfDividends()) {
        return false;
    }
    const bool greatest = predicate == P::FCMP_OGT || predicate == P::FCMP_OGE ||
                          predicate == P::FCMP_UGT || predicate == P::FCMP_UGE;
    const bool least = predicate == P::FCMP_OLT || predicate == P::FCMP_OLE ||
                       predicate == P::FCMP_ULT || predicate == P::FCMP_ULE;
    return (below ? greatest : least) || ((greatest || least) && IsBounded(left, below, depth - 1));
}

// Whether 0 and -0 give the same.
bool LosesSignOfZero(const llvm::User& user) {
    const llvm::APFloat* other = nullptr;
    return llvm::isa<llvm::FPToSIInst>(user) ||
           (llvm::PatternMatch::match(
                &user, llvm::PatternMatch::m_c_FAdd(llvm::PatternMatch::m_Value(),
                                                    llvm::PatternMatch::m_APFloat(other))) &&
            !other->isNegZero());
}

// Whether only the whole number is asked for that is nearest to the quotient.
bool IsRoundedOnly(const llvm::Instruction& division) {
    return !division.use_empty() && llvm::all_of(division.users(), [](const llvm::User* user) {
        const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(user);
        return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::roundeven &&
               llvm::all_of(call->users(),
                            [](const llvm::User* next) { return LosesSignOfZero(*next); });
    });
}

// A dividend of a small magnitude gives a quotient that rounds to 0, whatever its last bits are.
// This holds as long as the divisor is not so small that quotients of the small are large.
bool NeedsNoTest(const llvm::Instruction& division) {
    const llvm::APFloat* divisor = nullptr;
    if (!llvm::PatternMatch::match(division.getOperand(1),
                                   llvm::PatternMatch::m_APFloat(divisor))) {
        return false;
    }
    const float magnitude = std::fabs(divisor->convertToFloat());
    return magnitude >= std::ldexp(1.0F, kLeastDivisor) &&
           magnitude < std::ldexp(1.0F, kEndOfDivisors) && IsRoundedOnly(division) &&
           IsBounded(division.getOperand(0), true) && IsBounded(division.getOperand(0), false);
}

class Quotients {
  public:
    Quotients(llvm::Function& function, llvm::LoopInfo& loops)
        : function_(function), loops_(loops) {}

    bool Run() {
        llvm::SmallVector<llvm::Instruction*, 16> found, plain;
        for (llvm::Instruction& instruction : llvm::instructions(function_)) {
            if (!IsCandidate(instruction)) {
                continue;
            }
            if (NeedsNoTest(instruction)) {
                plain.push_back(&instruction);
            } else if (found.size() < kMostQuotients) {
                found.push_back(&instruction);
            }
        }
        for (llvm::Instruction* division : plain) {
            llvm::IRBuilder<> b(division);
            V divisor = division->getOperand(1);
            V reciprocal = b.CreateFDiv(llvm::ConstantFP::get(divisor->getType(), 1.0), divisor);
            division->replaceAllUsesWith(Product(b, *division, reciprocal));
            division->eraseFromParent();
        }
        // Where reciprocals are computed is decided before loops change.
        llvm::SmallVector<Divisor, 16> divisors;
        for (llvm::Instruction* division : found) {
            divisors.push_back(ReciprocalOf(*division));
        }
        for (size_t i = 0; i < found.size(); ++i) {
            Replace(*found[i], divisors[i]);
        }
        return !found.empty() || !plain.empty();
    }

  private:
    struct Divisor {
        V reciprocal = nullptr;
        V ordinary = nullptr;  // i1: its quotients may be products
    };

    // The outermost loop in each iteration of which the value is the same; null if there is none.
    llvm::Loop* LoopOf(const llvm::Instruction& user, V value) const {
        llvm::Loop* outermost = nullptr;
        for (llvm::Loop* loop = loops_.getLoopFor(user.getParent());
             loop != nullptr && loop->isLoopInvariant(value) && loop->getLoopPreheader() != nullptr;
             loop = loop->getParentLoop()) {
            outermost = loop;
        }
        return outermost;
    }

    bool IsCandidate(const llvm::Instruction& instruction) const {
        if (instruction.getOpcode() != llvm::Instruction::FDiv) {
            return false;
        }
        const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
        if (vector == nullptr || !vector->getElementType()->isFloatTy() ||
            vector->getNumElements() < kLeastLanes ||
            llvm::isa<llvm::Constant>(instruction.getOperand(0))) {
            return false;
        }
        V divisor = instruction.getOperand(1);
        return llvm::getSplatValue(divisor) != nullptr || LoopOf(instruction, divisor) != nullptr;
    }

    // A splat is divided as a scalar. What is computed at one place several times is
    // removed by EarlyCSE.
    Divisor ReciprocalOf(llvm::Instruction& division) {
        V divisor = division.getOperand(1);
        V scalar = llvm::getSplatValue(divisor);
        V value = scalar != nullptr ? scalar : divisor;
        llvm::Loop* loop = LoopOf(division, value);
        llvm::IRBuilder<> b(loop != nullptr ? loop->getLoopPreheader()->getTerminator()
                                            : &division);
        V reciprocal = b.CreateFDiv(llvm::ConstantFP::get(value->getType(), 1.0), value);
        V lanes = IsBetween(b, MagnitudeOf(b, value), kLeastDivisor, kEndOfDivisors);
        V ordinary = b.CreateFreeze(AllOf(b, lanes));
        if (scalar != nullptr) {
            auto* vector = llvm::cast<llvm::FixedVectorType>(division.getType());
            reciprocal = b.CreateVectorSplat(vector->getNumElements(), reciprocal);
        }
        return {reciprocal, ordinary};
    }

    static V Product(llvm::IRBuilder<>& b, llvm::Instruction& division, V reciprocal) {
        V a = division.getOperand(0), minus_b = b.CreateFNeg(division.getOperand(1));
        const auto fma = [&](V x, V y, V z) {
            return b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {x, y, z});
        };
        V product = b.CreateFMul(a, reciprocal);
        V rest = fma(product, minus_b, a);
        return fma(rest, reciprocal, product);
    }

    // Where a lane's dividend is out of the range, all are divided.
    void Replace(llvm::Instruction& division, const Divisor& divisor) {
        llvm::IRBuilder<> b(&division);
        V a = division.getOperand(0);
        V quotient = Product(b, division, divisor.reciprocal);
        V between = IsBetween(b, MagnitudeOf(b, a), kLeastDividend, kEndOfDividends);
        // A dividend of 0 gives 0 with the divisor's sign in each step; a dividend of -0 would lose
        // its sign. Quantised activations have many zeros, and one would divide the whole vector.
        V bits = BitsOf(b, a);
        V zero = b.CreateICmpEQ(bits, llvm::Constant::getNullValue(bits->getType()));
        V fits = b.CreateAnd(divisor.ordinary, b.CreateFreeze(AllOf(b, b.CreateOr(between, zero))));

        llvm::MDNode* rarely = llvm::MDBuilder(b.getContext()).createBranchWeights(1, 1000);
        llvm::Instruction* end = llvm::SplitBlockAndInsertIfThen(
            b.CreateNot(fits), &division, /*Unreachable=*/false, rarely, /*DTU=*/nullptr, &loops_);
        llvm::BasicBlock* before = end->getParent()->getSinglePredecessor();
        llvm::BasicBlock* after = division.getParent();
        llvm::Instruction* exact = division.clone();
        exact->insertBefore(end);
        b.SetInsertPoint(after, after->begin());
        llvm::PHINode* either = b.CreatePHI(division.getType(), 2);
        either->addIncoming(quotient, before);
        either->addIncoming(exact, end->getParent());
        division.replaceAllUsesWith(either);
        division.eraseFromParent();
    }

    llvm::Function& function_;
    llvm::LoopInfo& loops_;
};

// --- Minima and maxima ---------------------------------------------------------------------------

// select(x is NaN or x beyond y, x, y) becomes select(x is NaN, x, select(x beyond y, x, y)).
bool Part(llvm::SelectInst& select) {
    namespace m = llvm::PatternMatch;
    V x = select.getTrueValue(), y = select.getFalseValue();
    V first = nullptr, second = nullptr;
    if (!select.getType()->isVectorTy() || !select.getType()->isFPOrFPVectorTy() ||
        !m::match(select.getCondition(),
                  m::m_OneUse(m::m_LogicalOr(m::m_Value(first), m::m_Value(second))))) {
        return false;
    }
    const auto is_nan = [&](V condition) {
        llvm::FCmpInst::Predicate predicate = {};
        return m::match(condition, m::m_FCmp(predicate, m::m_Specific(x),
                                             m::m_CombineOr(m::m_Specific(x), m::m_AnyZeroFP()))) &&
               predicate == llvm::FCmpInst::FCMP_UNO;
    };
    const auto is_beyond = [&](V condition) {
        auto* compare = llvm::dyn_cast<llvm::FCmpInst>(condition);
        if (compare == nullptr) {
            return false;
        }
        const bool same = compare->getOperand(0) == x && compare->getOperand(1) == y;
        const bool swapped = compare->getOperand(0) == y && compare->getOperand(1) == x;
        const llvm::FCmpInst::Predicate predicate = compare->getPredicate();
        return (same || swapped) &&
               (predicate == llvm::FCmpInst::FCMP_OGT || predicate == llvm::FCmpInst::FCMP_OLT);
    };
    if (!is_nan(first)) {
        std::swap(first, second);
    }
    if (!is_nan(first) || !is_beyond(second)) {
        return false;
    }
    llvm::IRBuilder<> b(&select);
    V result = b.CreateSelect(first, x, b.CreateSelect(second, x, y));
    select.replaceAllUsesWith(result);
    return true;
}

// --- Numbers of few bits -------------------------------------------------------------------------

// f32 of (word >> place & mask) + plus.
struct Field {
    V word = nullptr;
    unsigned place = 0;
    uint32_t mask = 0;
    int plus = 0;

    // A mask and a conversion alone are as many instructions.
    bool Pays() const { return place != 0 || plus != 0; }
};

constexpr unsigned kMantissaBits = 23;
constexpr unsigned kMostFieldBits = 16;

unsigned BitsOfField(const Field& field) {
    return static_cast<unsigned>(std::bit_width(field.mask));
}

bool IsVectorOfFloats(const llvm::Type* type) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector != nullptr && vector->getElementType()->isFloatTy();
}

// The field that an integer is, after the sum in `field`.
std::optional<Field> FieldOf(V value, Field field = {}) {
    namespace m = llvm::PatternMatch;
    V inner = nullptr;
    const llvm::APInt *mask = nullptr, *place = nullptr;
    field.mask = ~0U;
    if (m::match(value, m::m_And(m::m_Value(inner), m::m_APInt(mask)))) {
        field.mask = static_cast<uint32_t>(mask->getZExtValue());
        value = inner;
    }
    if (m::match(value, m::m_LShr(m::m_Value(inner), m::m_APInt(place))) && place->ult(32)) {
        field.place = static_cast<unsigned>(place->getZExtValue());
        field.mask &= ~0U >> field.place;
        value = inner;
    }
    field.word = value;
    return field.mask != 0 && BitsOfField(field) <= kMostFieldBits ? std::optional(field)
                                                                   : std::nullopt;
}

std::optional<Field> FindField(const llvm::Instruction& instruction) {
    namespace m = llvm::PatternMatch;
    const bool is_signed = llvm::isa<llvm::SIToFPInst>(instruction);
    if ((!is_signed && !llvm::isa<llvm::UIToFPInst>(instruction)) ||
        !IsVectorOfFloats(instruction.getType()) ||
        !instruction.getOperand(0)->getType()->getScalarType()->isIntegerTy(32)) {
        return std::nullopt;
    }
    Field field;
    const llvm::APInt* plus = nullptr;
    V value = instruction.getOperand(0), inner = nullptr;
    if (m::match(value, m::m_OneUse(m::m_Add(m::m_Value(inner), m::m_APInt(plus))))) {
        // A sum below 0 would be a large unsigned number.
        if (plus->abs().getActiveBits() > kMostFieldBits || (!is_signed && plus->isNegative())) {
            return std::nullopt;
        }
        field.plus = static_cast<int>(plus->getSExtValue());
        value = inner;
    }
    return value->hasOneUse() ? FieldOf(value, field) : std::nullopt;
}

// The difference of the same field of two words, as numbers or before it becomes one.
std::optional<std::pair<Field, Field>> FindDifference(const llvm::Instruction& instruction) {
    namespace m = llvm::PatternMatch;
    V first = nullptr, second = nullptr;
    if (!IsVectorOfFloats(instruction.getType()) ||
        (!m::match(&instruction, m::m_SIToFP(m::m_Sub(m::m_Value(first), m::m_Value(second)))) &&
         !m::match(&instruction,
                   m::m_FSub(m::m_UIToFP(m::m_Value(first)), m::m_UIToFP(m::m_Value(second)))) &&
         !m::match(&instruction,
                   m::m_FSub(m::m_SIToFP(m::m_Value(first)), m::m_SIToFP(m::m_Value(second))))) ||
        !first->getType()->getScalarType()->isIntegerTy(32) ||
        first->getType() != second->getType()) {
        return std::nullopt;
    }
    const std::optional<Field> a = FieldOf(first);
    const std::optional<Field> b = FieldOf(second);
    return a && b && a->place == b->place && a->mask == b->mask ? std::optional(std::pair(*a, *b))
                                                                : std::nullopt;
}

// A byte or a half of a word that was narrowed first, as unpacked vectors of bytes are. Numbers
// with a sign are taken if they are not negative before the sum.
std::optional<Field> FindNarrowField(const llvm::Instruction& instruction) {
    namespace m = llvm::PatternMatch;
    const bool is_signed = llvm::isa<llvm::SIToFPInst>(instruction);
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    if ((!is_signed && !llvm::isa<llvm::UIToFPInst>(instruction)) || vector == nullptr ||
        !vector->getElementType()->isFloatTy()) {
        return std::nullopt;
    }
    V value = instruction.getOperand(0), inner = nullptr;
    const unsigned width = value->getType()->getScalarSizeInBits();
    if (width != 8 && width != 16) {
        return std::nullopt;
    }
    Field field;
    const llvm::APInt *plus = nullptr, *place = nullptr;
    if (m::match(value, m::m_OneUse(m::m_Add(m::m_Value(inner), m::m_APInt(plus))))) {
        field.plus = static_cast<int>(is_signed ? plus->getSExtValue()
                                                : static_cast<int64_t>(plus->getZExtValue()));
        value = inner;
    }
    if (!m::match(value, m::m_OneUse(m::m_Trunc(m::m_Value(inner)))) ||
        !inner->getType()->getScalarType()->isIntegerTy(32)) {
        return std::nullopt;
    }
    const llvm::KnownBits known =
        llvm::computeKnownBits(value, instruction.getModule()->getDataLayout());
    field.mask = static_cast<uint32_t>(known.getMaxValue().getZExtValue());
    const int64_t most = is_signed ? (int64_t{1} << (width - 1)) - 1 : (int64_t{1} << width) - 1;
    if (field.mask == 0 || field.mask > most || field.mask + int64_t{field.plus} > most) {
        return std::nullopt;
    }
    if (m::match(inner, m::m_LShr(m::m_Value(field.word), m::m_APInt(place))) && place->ult(32)) {
        field.place = static_cast<unsigned>(place->getZExtValue());
    } else {
        field.word = inner;
    }
    return field.Pays() ? std::optional(field) : std::nullopt;
}

// Below the exponent of 2^(23 - place), a bit at `place` counts 1: a field's number, and what it is
// more than the field.
std::pair<V, float> NumberAbove(llvm::IRBuilder<>& b, const Field& field, llvm::Type* type) {
    constexpr unsigned kHalf = 16;
    const unsigned bits = BitsOfField(field);
    unsigned shift = 0;
    if (field.place + bits > kMantissaBits) {
        // Several fields share the shift by half a word.
        shift = field.place >= kHalf && field.place - kHalf + bits <= kMantissaBits ? kHalf
                                                                                    : field.place;
    }
    const unsigned place = field.place - shift;
    V word = field.word;
    const auto constant = [&](uint32_t value) {
        return llvm::ConstantInt::get(word->getType(), value);
    };
    const float one = std::ldexp(1.0F, static_cast<int>(kMantissaBits - place));
    V shifted = shift == 0 ? word : b.CreateLShr(word, constant(shift));
    V masked = b.CreateAnd(shifted, constant(field.mask << place));
    return {b.CreateBitCast(b.CreateOr(masked, constant(std::bit_cast<uint32_t>(one))), type), one};
}

// Both are whole numbers of at most 24 bits, and so is the difference.
V NumberOf(llvm::IRBuilder<>& b, const Field& field, llvm::Type* type) {
    const auto [number, above] = NumberAbove(b, field, type);
    return b.CreateFSub(number,
                        llvm::ConstantFP::get(type, above - static_cast<float>(field.plus)));
}

// What numbers are more than their fields takes itself out of differences. Returns whether there
// are any; `words`: those whose fields are numbers anyway.
bool ReplaceDifferences(llvm::Function& function, llvm::SmallPtrSetImpl<V>& words) {
    llvm::SmallVector<std::pair<llvm::Instruction*, std::pair<Field, Field>>, 16> found;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        if (const auto fields = FindDifference(instruction)) {
            found.emplace_back(&instruction, *fields);
        }
    }
    for (const auto& [difference, fields] : found) {
        llvm::IRBuilder<> b(difference);
        llvm::Type* type = difference->getType();
        difference->replaceAllUsesWith(b.CreateFSub(NumberAbove(b, fields.first, type).first,
                                                    NumberAbove(b, fields.second, type).first));
        words.insert(fields.first.word);
        words.insert(fields.second.word);
    }
    for (const auto& [difference, fields] : found) {
        llvm::RecursivelyDeleteTriviallyDeadInstructions(difference);
    }
    return !found.empty();
}

}  // namespace

llvm::PreservedAnalyses FieldsPass::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    llvm::SmallPtrSet<V, 16> words;
    const bool any = ReplaceDifferences(function, words);
    llvm::SmallVector<std::pair<llvm::Instruction*, Field>, 16> found;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        std::optional<Field> field = FindField(instruction);
        if (field && !field->Pays() && !words.contains(field->word)) {
            field.reset();
        }
        if (!field) {
            field = FindNarrowField(instruction);
        }
        if (field) {
            found.emplace_back(&instruction, *field);
        }
    }
    for (const auto& [cast, field] : found) {
        llvm::IRBuilder<> b(cast);
        cast->replaceAllUsesWith(NumberOf(b, field, cast->getType()));
        llvm::RecursivelyDeleteTriviallyDeadInstructions(cast);
    }
    return any || !found.empty() ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

llvm::PreservedAnalyses ReciprocalsPass::run(llvm::Function& function,
                                             llvm::FunctionAnalysisManager& analyses) {
    // Multiply-adds are instructions there.
    if (FlagOf(*function.getParent(), kVectorBitsFlag) < 256) {
        return llvm::PreservedAnalyses::all();
    }
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    return Quotients(function, loops).Run() ? llvm::PreservedAnalyses::none()
                                            : llvm::PreservedAnalyses::all();
}

// A conversion of what is rounded already rounds itself: to nearest, ties to even, as the processor
// is set.
llvm::PreservedAnalyses RoundingCastsPass::run(llvm::Function& function,
                                               llvm::FunctionAnalysisManager&) {
    namespace m = llvm::PatternMatch;
    llvm::SmallVector<llvm::FPToSIInst*, 16> found;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        auto* cast = llvm::dyn_cast<llvm::FPToSIInst>(&instruction);
        if (cast != nullptr && cast->getType()->isVectorTy() &&
            cast->getType()->getScalarType()->isIntegerTy(32) &&
            cast->getSrcTy()->getScalarType()->isFloatTy() &&
            m::match(cast->getOperand(0),
                     m::m_OneUse(m::m_Intrinsic<llvm::Intrinsic::roundeven>(m::m_Value())))) {
            found.push_back(cast);
        }
    }
    for (llvm::FPToSIInst* cast : found) {
        llvm::IRBuilder<> b(cast);
        auto* rounding = llvm::cast<llvm::IntrinsicInst>(cast->getOperand(0));
        V value = rounding->getArgOperand(0);
        cast->replaceAllUsesWith(b.CreateIntrinsic(llvm::Intrinsic::lrint,
                                                   {cast->getType(), value->getType()}, {value}));
        cast->eraseFromParent();
        rounding->eraseFromParent();
    }
    return found.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

llvm::PreservedAnalyses KeepNanPass::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    llvm::SmallVector<llvm::SelectInst*, 16> parted;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) {
            if (Part(*select)) {
                parted.push_back(select);
            }
        }
    }
    for (llvm::SelectInst* select : parted) {
        select->eraseFromParent();
    }
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
}

}  // namespace fornax::kernel
