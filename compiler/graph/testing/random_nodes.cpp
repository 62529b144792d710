// The pool of values, and nodes without axes.
#include "compiler/graph/testing/random_nodes.h"

#include <algorithm>
#include <cmath>

#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph::testing {
namespace {

constexpr int64_t kMaxVolume = 3000;
constexpr double kMaxExact = 1 << 20;  // integers up to here are exact in f32, sums of a few too
constexpr double kMaxSmooth = 1e4;
constexpr double kAnyInteger = 2e19;

// The integers that a float type holds and that sums of two of them stay exact for. A kernel may
// keep narrow floats wider between two nodes, so they are exact only as integers.
double ExactLimit(ElementType type) {
    switch (type) {
        case ElementType::kF16:
            return 2048;
        case ElementType::kBF16:
            return 256;
        case ElementType::kF8E4M3FN:
        case ElementType::kF8E4M3FNUZ:
            return 16;
        case ElementType::kF8E5M2:
        case ElementType::kF8E5M2FNUZ:
            return 8;
        case ElementType::kF4E2M1:
            return 4;
        default:
            return kMaxExact;
    }
}

// How far rounding goes, for numbers up to 1; 0 for types that only hold what is exact here.
double UnitOf(ElementType type) {
    switch (type) {
        case ElementType::kF16:
            return 1e-3;
        case ElementType::kBF16:
            return 8e-3;
        case ElementType::kF32:
        case ElementType::kF64:
            return 2e-6;
        default:
            return 0;
    }
}

}  // namespace

const Known& RandomNodes::Any() {
    return pool_[static_cast<size_t>(random_.Between(0, static_cast<int64_t>(pool_.size()) - 1))];
}

// Prefers what was made last, so that graphs get deep.
Known RandomNodes::Pick() {
    const auto size = static_cast<int64_t>(pool_.size());
    return random_.OneIn(3) ? Any()
                            : pool_[static_cast<size_t>(
                                  random_.Between(std::max<int64_t>(0, size - 4), size - 1))];
}

int64_t RandomNodes::RandomAxis(ValueId id) {
    return random_.Between(0, static_cast<int64_t>(RankOf(id)) - 1);
}

int64_t RandomNodes::Most(const Expr& size) const {
    int64_t most = Hint(size);
    for (const Bindings& sizes : random_.cases) {
        most = std::max(most, size.Evaluate(sizes).value_or(0));
    }
    return most;
}

ElementType RandomNodes::RandomType() {
    constexpr ElementType kCommon[] = {ElementType::kF32,  ElementType::kF32, ElementType::kF32,
                                       ElementType::kF16,  ElementType::kI32, ElementType::kI64,
                                       ElementType::kU8,   ElementType::kI8,  ElementType::kBool,
                                       ElementType::kBF16, ElementType::kF64};
    constexpr ElementType kRare[] = {
        ElementType::kI2,        ElementType::kI4,         ElementType::kI16,
        ElementType::kU2,        ElementType::kU4,         ElementType::kU16,
        ElementType::kU32,       ElementType::kU64,        ElementType::kF4E2M1,
        ElementType::kF8E4M3FN,  ElementType::kF8E4M3FNUZ, ElementType::kF8E5M2,
        ElementType::kF8E5M2FNUZ};
    return random_.OneIn(5) ? kRare[random_.Between(0, std::size(kRare) - 1)]
                            : kCommon[random_.Between(0, std::size(kCommon) - 1)];
}

Expr RandomNodes::RandomDim() {
    if (!random_.symbols.empty() && random_.OneIn(3)) {
        const Symbol& symbol = random_.symbols[static_cast<size_t>(
            random_.Between(0, static_cast<int64_t>(random_.symbols.size()) - 1))];
        return random_.OneIn(6)   ? Expr(symbol) + random_.Between(1, 3)
               : random_.OneIn(8) ? Expr(symbol) * 2
                                  : Expr(symbol);
    }
    return random_.OneIn(30)   ? 0
           : random_.OneIn(5)  ? 1
           : random_.OneIn(12) ? random_.Between(30, 70)
                               : random_.Between(2, 8);
}

Shape RandomNodes::RandomShape() {
    const int64_t rank = random_.OneIn(8) ? random_.Between(5, 8) : random_.Between(0, 4);
    Shape shape;
    for (int64_t i = 0; i < rank; ++i) {
        shape.mutable_dims().push_back(RandomDim());
        if (!FitsSize(shape)) {
            shape[static_cast<size_t>(i)] = 1;
        }
    }
    return shape;
}

bool RandomNodes::FitsSize(const Shape& shape) const {
    return Most(shape.Volume()) <= kMaxVolume;
}

bool RandomNodes::Fits(const Known& known, ElementType type) {
    return IsInteger(type) || (known.bound <= (known.exact ? kMaxExact : kMaxSmooth) &&
                               known.error <= 0.05 * std::max(1.0, known.bound));
}

Tensor RandomNodes::RandomTensor(ElementType type,
                                 const std::vector<int64_t>& dims,
                                 int64_t low,
                                 int64_t high) {
    return MakeRandomTensor(random_.engine, type, dims, low, high);
}

ValueId RandomNodes::Numbers(ElementType type, const Shape& given) {
    const Shape shape = given;  // may be of a value, and values move when one is added
    std::vector<int64_t> dims;
    for (const Expr& dim : shape.dims()) {
        dims.push_back(dim.constant().value_or(1));
    }
    const ValueId small =
        graph_.AddConstant("constant", RandomTensor(type, dims, LowOf(type), HighOf(type)));
    return shape.Constants()
               ? small
               : graph_[*graph_.AddNode("repeat", op::Broadcast{shape}, {small})].results[0];
}

ValueId RandomNodes::Number(ElementType type, const Shape& given, int64_t value) {
    const Shape shape = given;
    const ValueId small = graph_.AddConstant(
        "number", RandomTensor(type, std::vector<int64_t>(shape.rank(), 1), value, value));
    return graph_[*graph_.AddNode("repeat", op::Broadcast{shape}, {small})].results[0];
}

void RandomNodes::AddConstant() {
    const ElementType type = RandomType();
    const Shape shape = RandomShape();
    pool_.push_back({Numbers(type, shape), 4, true, 0});
}

bool RandomNodes::Add(Operation operation,
                      std::vector<ValueId> operands,
                      Known known,
                      std::vector<Body> bodies) {
    Result<NodeId> node = graph_.AddNode("n" + std::to_string(pool_.size()), std::move(operation),
                                         std::move(operands), std::move(bodies));
    if (!node.ok()) {
        return false;
    }
    known.id = graph()[*node].results[0];
    return Keep(known);
}

bool RandomNodes::Keep(Known known) {
    const ElementType type = ElementOf(known.id);
    if (IsInteger(type) && known.bound > std::ldexp(1, static_cast<int>(BitsOf(type)) - 1) - 1) {
        known.bound = std::ldexp(1, static_cast<int>(BitsOf(type)));  // it may wrap
    } else if (IsFloat(type)) {
        const double unit = UnitOf(type);
        if (known.exact && known.bound > ExactLimit(type)) {
            known.exact = false;
            known.error = known.bound * std::min(2 * unit, 1e-2);
        } else if (!known.exact) {
            known.error += unit * std::max(1.0, known.bound);
        }
        if (!known.exact && unit == 0) {
            return false;
        }
    }
    if (!FitsSize(ShapeOf(known.id))) {
        return false;
    }
    pool_.push_back(known);
    return true;
}

void RandomNodes::AddNodes(int64_t count) {
    int64_t added = 0;
    for (int attempt = 0; attempt < 200 && added < count; ++attempt) {
        added += AddRandomNode() ? 1 : 0;
    }
}

bool RandomNodes::AddRandomNode() {
    using Maker = bool (RandomNodes::*)();
    constexpr Maker kMakers[] = {
        &RandomNodes::AddUnary,     &RandomNodes::AddUnary,
        &RandomNodes::AddUnary,     &RandomNodes::AddBinary,
        &RandomNodes::AddBinary,    &RandomNodes::AddBinary,
        &RandomNodes::AddBinary,    &RandomNodes::AddCast,
        &RandomNodes::AddCast,      &RandomNodes::AddSelect,
        &RandomNodes::AddSelect,    &RandomNodes::AddReduce,
        &RandomNodes::AddReduce,    &RandomNodes::AddReduce,
        &RandomNodes::AddArgReduce, &RandomNodes::AddScan,
        &RandomNodes::AddSort,      &RandomNodes::AddReshape,
        &RandomNodes::AddReshape,   &RandomNodes::AddPermute,
        &RandomNodes::AddBroadcast, &RandomNodes::AddBroadcast,
        &RandomNodes::AddSlice,     &RandomNodes::AddSlice,
        &RandomNodes::AddPad,       &RandomNodes::AddWindow,
        &RandomNodes::AddConcat,    &RandomNodes::AddGather,
        &RandomNodes::AddScatter,   &RandomNodes::AddContract,
        &RandomNodes::AddContract,  &RandomNodes::AddContract,
        &RandomNodes::AddIota,      &RandomNodes::AddBitcast,
        &RandomNodes::AddSize,      &RandomNodes::AddRandomBits,
        &RandomNodes::AddComposite, &RandomNodes::AddIf,
        &RandomNodes::AddLoop,      &RandomNodes::AddNetworkFunction,
    };
    return (this->*kMakers[random_.Between(0, std::size(kMakers) - 1)])();
}

bool RandomNodes::AddUnary() {
    const Known a = Pick();
    const ElementType type = ElementOf(a.id);
    if (type == ElementType::kBool) {
        return Add(op::Map{ScalarFunction::kNot}, {a.id}, {{}, 1, true, 0});
    }
    if (!IsFloat(type) || random_.OneIn(3)) {
        constexpr ScalarFunction kExact[] = {ScalarFunction::kNeg, ScalarFunction::kAbs,
                                             ScalarFunction::kSign};
        const ScalarFunction function = kExact[random_.Between(0, 2)];
        if (!IsSigned(type) || (function == ScalarFunction::kSign && !a.exact)) {
            return false;
        }
        return Add(op::Map{function}, {a.id}, a);
    }
    // Bounded functions, whose slope is at most 1.
    constexpr ScalarFunction kSmooth[] = {ScalarFunction::kSin,     ScalarFunction::kCos,
                                          ScalarFunction::kTanh,    ScalarFunction::kErf,
                                          ScalarFunction::kSigmoid, ScalarFunction::kAtan};
    if (a.bound > 100) {
        return false;
    }
    return Add(op::Map{kSmooth[random_.Between(0, std::size(kSmooth) - 1)]}, {a.id},
               {{}, 2, false, a.error * 1.2 + 4e-6});
}

Known RandomNodes::Same(const Known& a) {
    for (int attempt = 0; attempt < 6; ++attempt) {
        const Known b = Pick();
        if (graph().TypeOf(b.id) == graph().TypeOf(a.id)) {
            return b;
        }
    }
    // Sizes that are equal for the hints alone.
    for (int attempt = 0; attempt < 2; ++attempt) {
        const Known b = Pick();
        const Shape& x = ShapeOf(a.id);
        const Shape& y = ShapeOf(b.id);
        if (ElementOf(b.id) == ElementOf(a.id) &&
            std::equal(x.dims().begin(), x.dims().end(), y.dims().begin(), y.dims().end(),
                       [&](const Expr& m, const Expr& n) { return Hint(m) == Hint(n); })) {
            return b;
        }
    }
    return random_.OneIn(2) ? a : Known{Numbers(ElementOf(a.id), ShapeOf(a.id)), 4, true, 0};
}

bool RandomNodes::AddBinary() {
    const Known a = Pick();
    const Known b = Same(a);
    const ElementType type = ElementOf(a.id);
    const auto add = [&](ScalarFunction function, const Known& known) {
        return Add(op::Map{function}, {a.id, b.id}, known);
    };
    if (type == ElementType::kBool) {
        constexpr ScalarFunction kLogic[] = {ScalarFunction::kAnd, ScalarFunction::kOr,
                                             ScalarFunction::kXor, ScalarFunction::kEqual};
        return add(kLogic[random_.Between(0, 3)], {{}, 1, true, 0});
    }
    const bool exact = a.exact && b.exact;
    const Known any = {{}, kAnyInteger, true, 0};
    Known known = {{}, a.bound + b.bound, exact, a.error + b.error};
    switch (random_.Between(0, IsInteger(type) ? 13 : 7)) {
        case 0:
            return Fits(known, type) && add(ScalarFunction::kAdd, known);
        case 1:
            return Fits(known, type) && IsSigned(type) && add(ScalarFunction::kSub, known);
        case 2:
            known.bound = a.bound * b.bound;
            known.error = a.error * b.bound + b.error * a.bound;
            return Fits(known, type) && add(ScalarFunction::kMul, known);
        case 3:
            known.bound = std::max(a.bound, b.bound);
            return add(ScalarFunction::kMin, known);
        case 4:
            known.bound = std::max(a.bound, b.bound);
            return add(ScalarFunction::kMax, known);
        case 5:
            return exact && add(ScalarFunction::kLess, {{}, 1, true, 0});
        case 6:
            return exact && add(ScalarFunction::kLessEqual, {{}, 1, true, 0});
        case 7:
            return exact && add(ScalarFunction::kEqual, {{}, 1, true, 0});
        case 8:
            return add(ScalarFunction::kDiv, any);
        case 9:
            return add(ScalarFunction::kMod, any);
        case 10:
            return add(ScalarFunction::kFloorDiv, any);
        case 11:
            return add(ScalarFunction::kRem, any);
        case 12:
            return add(ScalarFunction::kXor, any);
        default:
            return add(ScalarFunction::kShiftRight, any);
    }
}

bool RandomNodes::AddSelect() {
    const Known condition = Pick(), a = Any();
    if (ElementOf(condition.id) != ElementType::kBool || ShapeOf(a.id) != ShapeOf(condition.id)) {
        return false;
    }
    const Known b = Same(a);
    return Add(op::Map{ScalarFunction::kSelect}, {condition.id, a.id, b.id},
               {{}, std::max(a.bound, b.bound), a.exact && b.exact, std::max(a.error, b.error)});
}

bool RandomNodes::AddCast() {
    const Known a = Pick();
    const ElementType to = RandomType();
    // A float that is not exact may lie on either side of an integer.
    if (!a.exact && !IsFloat(to)) {
        return false;
    }
    Known known = a;
    if (to == ElementType::kBool) {
        known.bound = 1;
    } else if (IsInteger(to) && a.bound > 100) {
        if (IsFloat(ElementOf(a.id))) {
            return false;
        }
    } else if (IsInteger(to) && !IsSigned(to)) {
        known.bound = kAnyInteger;  // negative numbers wrap
    }
    return Add(op::Cast{to}, {a.id}, known);
}

bool RandomNodes::AddBitcast() {
    const Known a = Pick();
    const ElementType type = ElementOf(a.id);
    const ElementType to = RandomType();
    // Bits of floats may be those of NaN, and zeros have two signs.
    return a.exact && IsInteger(type) && IsInteger(to) && BitsOf(type) == BitsOf(to) &&
           BitsOf(to) >= 8 && Add(op::Bitcast{to}, {a.id}, {{}, kAnyInteger, true, 0});
}

bool RandomNodes::AddSize() {
    const Expr dim = RandomDim();
    return Add(op::SizeOf{dim}, {}, {{}, static_cast<double>(Most(dim)), true, 0});
}

bool RandomNodes::AddRandomBits() {
    const Shape shape = RandomShape();
    const ValueId key = graph_.AddConstant("key", RandomTensor(ElementType::kU32, {2}, 0, 1 << 20));
    return Add(op::RandomBits{shape}, {key}, {{}, kAnyInteger, true, 0});
}

bool RandomNodes::AddIota() {
    op::Iota iota;
    iota.shape = RandomShape();
    iota.element = random_.OneIn(2) ? ElementType::kF32 : ElementType::kI64;
    if (iota.shape.rank() == 0) {
        return false;
    }
    iota.axis = random_.Between(0, static_cast<int64_t>(iota.shape.rank()) - 1);
    return Add(
        iota, {},
        {{}, static_cast<double>(Most(iota.shape[static_cast<size_t>(iota.axis)])), true, 0});
}

}  // namespace fornax::graph::testing
