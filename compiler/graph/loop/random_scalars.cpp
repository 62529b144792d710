// Random scalars whose values and errors stay known.
#include "compiler/graph/loop/random_scalars.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace fornax::graph::loop {
namespace {

// Results whose error is greater than this are not used.
constexpr double kGreatestError = 0.05;

}  // namespace

double Known::magnitude() const {
    return std::max(std::abs(low), std::abs(high));
}

Known BoundsOf(ElementType type) {
    if (IsFloat(type)) {
        const double greatest = std::min(RoundToType(INFINITY, type, Overflow::kSaturate), 0x1p20);
        return {type == ElementType::kF8E8M0 ? 0x1p-126 : -greatest, greatest};
    }
    if (type == ElementType::kBool) {
        return {0, 1};
    }
    const Scalar least = NeutralElement(Combine::kMax, type);
    const Scalar greatest = NeutralElement(Combine::kMin, type);
    return {least.ToDouble(type), greatest.ToDouble(type)};
}

ElementType RandomScalars::RandomType() {
    // The everyday ones more often.
    constexpr ElementType kEveryday[] = {ElementType::kF32, ElementType::kF32, ElementType::kF16,
                                         ElementType::kI64, ElementType::kI32, ElementType::kBool};
    return Chance(60) ? kEveryday[Below(std::size(kEveryday))]
                      : static_cast<ElementType>(Below(static_cast<size_t>(ElementType::kString)));
}

VariableSet RandomScalars::FreeIn(const Expr& expr) const {
    VariableSet set = 0;
    for (const Symbol& symbol : expr.Symbols()) {
        if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
            set |= known_[scalar->value()].free;
        }
        for (size_t i = 0; i < variables_.size(); ++i) {
            set |= variables_[i].symbol == symbol ? VariableSet{1} << i : 0;
        }
    }
    return set;
}

ScalarId RandomScalars::Add(ElementType type, decltype(ScalarNode::value) value, Known known) {
    ScalarNode node{type, std::move(value)};
    known.free = 0;
    for (const ScalarId operand : OperandsOf(node)) {
        known.free |= known_[operand.value()].free;
    }
    for (const Expr& expr : ExpressionsOf(node)) {
        known.free |= FreeIn(expr);
    }
    if (const auto* load = std::get_if<Load>(&node.value);
        load != nullptr && kernel_[load->buffer].written) {
        known.free |= outer_;
    }
    for (const Loop& loop : LoopsOf(node)) {
        known.free &= ~FreeIn(loop.variable);
    }
    kernel_.scalars.push_back(std::move(node));
    known_.push_back(known);
    return ScalarId(kernel_.scalars.size() - 1);
}

ScalarId RandomScalars::MakeConstant(ElementType type, double value) {
    if (IsFloat(type)) {
        if (type == ElementType::kF8E8M0) {
            value = std::max(value, 0.5);
        }
        const double rounded = RoundToType(value, type, Overflow::kSaturate);
        return Add(type, Constant{Scalar::Float(rounded)},
                   {rounded, rounded, 0, rounded == std::trunc(rounded)});
    }
    const Scalar integer = ConvertScalar(Scalar::Float(value), ElementType::kF64, type);
    return Add(type, Constant{integer}, {integer.ToDouble(type), integer.ToDouble(type)});
}

ScalarId RandomScalars::MapOf(ScalarFunction function,
                              std::vector<ScalarId> arguments,
                              Known known) {
    const ElementType type = kernel_[arguments.back()].type;
    return Add(ResultType(function, type), Map{function, std::move(arguments)}, known);
}

bool RandomScalars::IsIn(ScalarId id, double low, double high) const {
    const Known& known = known_[id.value()];
    return known.low >= low && known.high <= high;
}

// Between the type's nearest numbers to `low` and `high`; IsIn() says whether that was enough.
ScalarId RandomScalars::Clamp(ScalarId id, double low, double high) {
    const ElementType type = kernel_[id].type;
    if (type == ElementType::kBool) {
        return id;
    }
    if (known_[id.value()].low < low) {
        const ScalarId bound = MakeConstant(type, low);
        Known known = known_[id.value()];
        known.low = std::max(known.low, known_[bound.value()].low);
        known.high = std::max(known.high, known.low);
        known.integral &= known_[bound.value()].integral;
        id = MapOf(ScalarFunction::kMax, {id, bound}, known);
    }
    if (known_[id.value()].high > high) {
        const ScalarId bound = MakeConstant(type, high);
        Known known = known_[id.value()];
        known.high = std::min(known.high, known_[bound.value()].high);
        known.low = std::min(known.low, known.high);
        known.integral &= known_[bound.value()].integral;
        id = MapOf(ScalarFunction::kMin, {id, bound}, known);
    }
    return id;
}

Known RandomScalars::Hull(const Known& a, const Known& b) const {
    return {std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.error, b.error),
            a.integral && b.integral};
}

std::optional<ScalarId> RandomScalars::Existing(ElementType type, bool exact) {
    std::vector<ScalarId> fitting;
    for (size_t i = 0; i < known_.size(); ++i) {
        const Known& known = known_[i];
        if (kernel_.scalars[i].type == type && known.readable && (known.free & ~scope_) == 0 &&
            (!exact || known.error == 0)) {
            fitting.emplace_back(i);
        }
    }
    return fitting.empty() ? std::nullopt : std::optional(OneOf(fitting));
}

Expr RandomScalars::RandomAtom() {
    std::vector<Expr> atoms = {Between(0, 3)};
    for (size_t i = 0; i < variables_.size(); ++i) {
        if ((scope_ >> i & 1) != 0) {
            atoms.insert(atoms.end(), 3, Expr(variables_[i].symbol));
        }
    }
    for (const auto& [symbol, value] : sizes_) {
        atoms.emplace_back(symbol);
    }
    for (size_t i = 0; i < known_.size(); ++i) {
        // Small ones, so that no sum or product leaves 64 bits.
        if (IsInteger(kernel_.scalars[i].type) && (known_[i].free & ~scope_) == 0 &&
            known_[i].readable && known_[i].magnitude() < 1e6) {
            atoms.emplace_back(SymbolOfScalar(ScalarId(i)));
        }
    }
    return OneOf(atoms);
}

Expr RandomScalars::RandomIndex(const Expr& dim) {
    Expr a = RandomAtom();
    switch (Below(14)) {
        case 0:
            return a + Between(-2, 2);
        case 1:
            return dim - 1 - a;
        case 2:
            return 2 * a + RandomAtom() - 1;
        case 3:
            return FloorDiv(a + Between(-1, 3), Between(2, 4));
        case 4:
            return Mod(a - Between(0, 2), Between(2, 5));
        case 5:
            return FloorDiv(a * 4 + Mod(RandomAtom(), 4), 4);
        case 6:
            return Mod(a, Max(dim, 1));
        case 7:
            return Min(Max(a - 1, 0), dim - 1);
        case 8:
            return a * RandomAtom();
        case 9:
            return Between(-1, 3);
        default:
            return a;
    }
}

ScalarId RandomScalars::LoadValue(const Source& source) {
    const Buffer& buffer = kernel_[source.buffer];
    Load load{source.buffer, source.prefix, {}};
    for (size_t axis = load.index.size(); axis < buffer.type.shape.rank(); ++axis) {
        load.index.push_back(RandomIndex(buffer.type.shape[axis]));
    }
    Known known = Hull(source.content, {0, 0, 0, true});
    if (Chance(40)) {
        load.otherwise = MakeConstant(buffer.type.element, static_cast<double>(Between(-3, 3)));
        known = Hull(known, known_[load.otherwise.value()]);
    }
    return Add(buffer.type.element, std::move(load), known);
}

ScalarId RandomScalars::Leaf(ElementType type) {
    std::vector<Source> fitting;
    for (const Source& source : sources_) {
        if (kernel_[source.buffer].type.element == type) {
            fitting.push_back(source);
        }
    }
    if (!fitting.empty() && Chance(85)) {
        return LoadValue(OneOf(fitting));
    }
    if (type == ElementType::kI64 && Chance(60)) {
        return Add(type, Index{RandomIndex(Between(1, 9))}, BoundsOf(type));
    }
    if (type == ElementType::kBool && Chance(60)) {
        const Expr extent = RandomAtom();
        return Add(type, InRange{RandomIndex(extent), extent}, {0, 1});
    }
    const Known bounds = BoundsOf(type);
    return MakeConstant(type, Uniform(std::max(-4.0, bounds.low), std::min(8.0, bounds.high)));
}

// Not from a buffer that the kernel writes: its zeros may have either sign.
ScalarId RandomScalars::PureLeaf(ElementType type) {
    const ScalarId leaf = Leaf(type);
    const auto* load = std::get_if<Load>(&kernel_[leaf].value);
    return load != nullptr && kernel_[load->buffer].written ? MakeConstant(type, 1.5) : leaf;
}

ScalarId RandomScalars::Value(ElementType type, int depth) {
    if (Chance(25)) {
        if (const std::optional<ScalarId> existing = Existing(type, false)) {
            return *existing;
        }
    }
    if (depth <= 0 || kernel_.scalars.size() > 150) {
        return Leaf(type);
    }
    const uint64_t choice = Below(100);
    ScalarId value;
    if (choice < 12) {
        value = CastValue(type, depth - 1);
    } else if (choice < 30) {
        value = ReduceValue(type, depth - 1);
    } else if (choice < 36) {
        value = SelectValue(type, depth - 1);
    } else if (choice < 41) {
        value = BitcastValue(type, depth - 1);
    } else if (type == ElementType::kI64 && choice < 55) {
        value = PositionValue(depth - 1);
    } else if (type == ElementType::kBool) {
        value = BoolValue(depth - 1);
    } else if (IsFloat(type)) {
        value = FloatMap(type, depth - 1);
    } else {
        value = IntegerMap(type, depth - 1);
    }
    const Known& known = known_[value.value()];
    return known.readable && known.error <= kGreatestError ? value : Leaf(type);
}

ScalarId RandomScalars::ExactValue(ElementType type, int depth, double limit) {
    ScalarId value = Value(type, depth);
    if (!IsFloat(type)) {
        return value;
    }
    if (known_[value.value()].error != 0 || !known_[value.value()].integral) {
        const ScalarId integer = Value(ElementType::kI32, depth - 1);
        const double least = type == ElementType::kF8E8M0 ? 1 : -limit;
        value = Clamp(integer, std::max(least, BoundsOf(type).low), limit);
        Known known = known_[value.value()];
        known.integral = true;
        known.low = RoundToType(known.low, type, Overflow::kSaturate);
        known.high = RoundToType(known.high, type, Overflow::kSaturate);
        value = Add(type, Cast{value, Overflow::kSaturate}, known);
    }
    return Clamp(value, -limit, limit);
}

ScalarId RandomScalars::SelectValue(ElementType type, int depth) {
    const ScalarId condition = Value(ElementType::kBool, depth);
    const ScalarId a = Value(type, depth), b = Value(type, depth);
    return MapOf(ScalarFunction::kSelect, {condition, a, b},
                 Hull(known_[a.value()], known_[b.value()]));
}

ScalarId RandomScalars::BoolValue(int depth) {
    if (Chance(30)) {
        constexpr ScalarFunction kLogic[] = {ScalarFunction::kAnd, ScalarFunction::kOr,
                                             ScalarFunction::kXor, ScalarFunction::kEqual};
        const ScalarId a = Value(ElementType::kBool, depth), b = Value(ElementType::kBool, depth);
        return Chance(20) ? MapOf(ScalarFunction::kNot, {a}, {0, 1})
                          : MapOf(kLogic[Below(4)], {a, b}, {0, 1});
    }
    ElementType type = RandomType();
    while (type == ElementType::kBool) {
        type = RandomType();
    }
    if (IsFloat(type) && Chance(20)) {
        const bool nan = Chance(50);
        return MapOf(nan ? ScalarFunction::kIsNan : ScalarFunction::kIsInf, {Value(type, depth)},
                     {0, 1});
    }
    constexpr ScalarFunction kCompare[] = {ScalarFunction::kEqual, ScalarFunction::kLess,
                                           ScalarFunction::kLessEqual};
    const ScalarId a = ExactValue(type, depth, 64), b = ExactValue(type, depth, 64);
    return MapOf(kCompare[Below(3)], {a, b}, {0, 1});
}

ScalarId RandomScalars::IntegerMap(ElementType type, int depth) {
    std::vector<ScalarFunction> functions;
    for (size_t i = 0; i <= static_cast<size_t>(kLastScalarFunction); ++i) {
        const auto function = static_cast<ScalarFunction>(i);
        if (Accepts(function, type) && ResultType(function, type) == type &&
            function != ScalarFunction::kSelect) {
            functions.push_back(function);
        }
    }
    const ScalarFunction function = OneOf(functions);
    std::vector<ScalarId> arguments;
    for (size_t i = 0; i < ArgumentCount(function); ++i) {
        arguments.push_back(Value(type, depth));
    }
    Known known = BoundsOf(type);
    if (function == ScalarFunction::kMod || function == ScalarFunction::kRem) {
        const double divisor = known_[arguments[1].value()].magnitude();
        known = {IsSigned(type) ? -divisor : 0, divisor};
    }
    const ScalarId value = MapOf(function, std::move(arguments), known);
    return Chance(25) ? Clamp(value, 0, static_cast<double>(Between(1, 9))) : value;
}

ScalarId RandomScalars::BitcastValue(ElementType type, int depth) {
    if (IsFloat(type)) {
        // Bits that came from a number of the type.
        const ElementType integer = BytesOf(type) == 1   ? ElementType::kU8
                                    : BytesOf(type) == 2 ? ElementType::kI16
                                    : BytesOf(type) == 4 ? ElementType::kU32
                                                         : ElementType::kI64;
        const ScalarId leaf = PureLeaf(type);
        const ScalarId bits = Add(integer, Bitcast{leaf}, BoundsOf(integer));
        return Add(type, Bitcast{bits}, known_[leaf.value()]);
    }
    std::vector<ElementType> types;
    for (size_t i = 0; i < static_cast<size_t>(ElementType::kString); ++i) {
        const auto from = static_cast<ElementType>(i);
        if (BytesOf(from) == BytesOf(type)) {
            types.push_back(from);
        }
    }
    const ElementType from = OneOf(types);
    // Only of loads and constants the sign of 0 is sure.
    const ScalarId argument = IsFloat(from) ? PureLeaf(from) : Value(from, depth);
    return Add(type, Bitcast{argument}, BoundsOf(type));
}

std::vector<Loop> RandomScalars::OpenLoops(size_t count, double& points) {
    std::vector<Loop> loops;
    points = 1;
    for (size_t i = 0; i < count; ++i) {
        std::vector<size_t> known;
        for (size_t v = 0; v < variables_.size(); ++v) {
            const VariableSet bit = VariableSet{1} << v;
            // An extent may need what is bound outside, not what this reduction binds.
            if (((scope_ | outer_) & bit) == 0 && variables_[v].extent.is_constant()) {
                known.push_back(v);
            }
        }
        size_t chosen = variables_.size();
        if (!known.empty() && Chance(50)) {
            chosen = OneOf(known);
        } else if (variables_.size() < 24) {
            Expr extent = Between(0, 6);
            int64_t bound = *extent.constant();
            if (Chance(8)) {
                extent = bound = Between(60, 300);
            } else if (i == 0 && Chance(30)) {
                bound = Between(1, 6);
                extent = Min(RandomAtom() + 1, bound);
            }
            variables_.push_back({Symbol(fmt::format("$r{}", chosen)), extent, bound});
        } else {
            break;
        }
        loops.push_back({variables_[chosen].symbol, variables_[chosen].extent});
        points *= static_cast<double>(std::max<int64_t>(variables_[chosen].bound, 0));
        scope_ |= VariableSet{1} << chosen;
        if (points > 400) {
            break;
        }
    }
    return loops;
}

ScalarId RandomScalars::ReduceValue(ElementType type, int depth) {
    const VariableSet scope = scope_;
    if (std::popcount(scope & ~outer_) >= 3 || type == ElementType::kF8E8M0) {
        return Leaf(type);
    }
    double points = 1;
    const std::vector<Loop> loops = OpenLoops(Chance(25) ? 2 : 1, points);
    if (loops.empty()) {
        return Leaf(type);
    }
    std::vector<Combine> combines;
    for (const Combine combine : {Combine::kSum, Combine::kProduct, Combine::kMin, Combine::kMax,
                                  Combine::kAnd, Combine::kOr, Combine::kXor}) {
        if (Accepts(combine, type)) {
            combines.push_back(combine);
        }
    }
    const Combine combine = OneOf(combines);
    ScalarId body = Value(type, depth);
    if (IsFloat(type) && combine == Combine::kProduct) {
        body = Clamp(body, -1, 1);
    }
    scope_ = scope;
    if (!IsFloat(type)) {
        return Add(type, Reduce{combine, loops, body}, BoundsOf(type));
    }
    const Known of = known_[body.value()];
    Known known = of;
    if (combine == Combine::kSum) {
        known.low = std::min(0.0, points * of.low);
        known.high = std::max(0.0, points * of.high);
        const bool exact = of.integral && of.error == 0 && known.magnitude() < kExact;
        known.integral = exact;
        known.error = exact ? 0 : points * (of.error + 4 * Ulp(points * of.magnitude()));
    } else if (combine == Combine::kProduct) {
        known = Hull({-1, 1, of.error, of.integral}, {});
        known.integral = of.integral;
        known.error = of.integral && of.error == 0 ? 0 : points * (of.error + 4 * Ulp(1));
    } else {
        // A loop without iterations gives the greatest or least number there is.
        const ScalarId raw = Add(type, Reduce{combine, loops, body}, known);
        known_[raw.value()].readable = false;
        const ScalarId bound = MakeConstant(type, combine == Combine::kMax ? -8 : 8);
        const ScalarFunction function =
            combine == Combine::kMax ? ScalarFunction::kMax : ScalarFunction::kMin;
        return MapOf(function, {raw, bound}, Hull(known, known_[bound.value()]));
    }
    return Add(type, Reduce{combine, loops, body}, known);
}

ScalarId RandomScalars::PositionValue(int depth) {
    const VariableSet scope = scope_;
    double points = 1;
    const std::vector<Loop> loops = OpenLoops(1, points);
    ElementType type = RandomType();
    if (type == ElementType::kBool) {
        type = ElementType::kI32;
    }
    const ScalarId body = loops.empty() ? ScalarId() : ExactValue(type, depth, 64);
    scope_ = scope;
    if (loops.empty()) {
        return Leaf(ElementType::kI64);
    }
    return Add(ElementType::kI64,
               ArgReduce{Chance(50) ? Combine::kMax : Combine::kMin, Chance(50), loops[0], body},
               {0, std::max(points, 1.0)});
}

}  // namespace fornax::graph::loop
