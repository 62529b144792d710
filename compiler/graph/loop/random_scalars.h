// The scalars of random kernels. Not for others than random_kernel.cpp.
#pragma once

#include <random>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

// What is known of a scalar, or of what a buffer holds.
struct Known {
    double low = 0, high = 0;
    double error = 0;       // absolute, of f32 arithmetic in any order
    bool integral = false;  // a float without a fraction
    bool readable = true;   // as an operand; else only to be stored
    VariableSet free = 0;   // of a scalar
    double magnitude() const;
};

class RandomScalars {
  public:
    explicit RandomScalars(uint64_t seed) : random_(seed) {}

    struct Variable {
        Symbol symbol;
        Expr extent;
        int64_t bound;  // the extent is at most this
    };
    // Buffers that scalars may load from.
    struct Source {
        BufferId buffer;
        Known content;
        std::vector<Expr> prefix;  // of written buffers: the indices that belong to the point
    };

    uint64_t Below(uint64_t n) { return random_() % n; }
    bool Chance(uint32_t percent) { return Below(100) < percent; }
    int64_t Between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
    }
    double Uniform(double low, double high) {
        return low + (high - low) * (static_cast<double>(random_() >> 11) * 0x1p-53);
    }
    template <typename T>
    const T& OneOf(const std::vector<T>& list) {
        return list[Below(list.size())];
    }

    ElementType RandomType();
    // A scalar that the variables in scope_ suffice for; computes new ones as deep as `depth`.
    ScalarId Value(ElementType type, int depth);
    // The same, exact and without a fraction where the type is a float, within +-limit.
    ScalarId ExactValue(ElementType type, int depth, double limit);
    Expr RandomIndex(const Expr& dim);
    const Known& operator[](ScalarId id) const { return known_[id.value()]; }

    Kernel kernel_;
    Bindings sizes_;
    std::vector<Variable> variables_;
    VariableSet scope_ = 0;
    VariableSet outer_ = 0;  // parallel and sequential ones
    std::vector<Source> sources_;

  private:
    ScalarId Add(ElementType type, decltype(ScalarNode::value) value, Known known);
    ScalarId MakeConstant(ElementType type, double value);
    ScalarId Clamp(ScalarId id, double low, double high);
    bool IsIn(ScalarId id, double low, double high) const;
    std::optional<ScalarId> Existing(ElementType type, bool exact);
    ScalarId Leaf(ElementType type);
    ScalarId PureLeaf(ElementType type);
    ScalarId LoadValue(const Source& source);
    ScalarId FloatMap(ElementType type, int depth);
    ScalarId FloatUnary(ElementType type, int depth);
    ScalarId FloatBinary(ElementType type, int depth);
    ScalarId ExactMap(ElementType type, int depth);
    ScalarId IntegerMap(ElementType type, int depth);
    ScalarId BoolValue(int depth);
    ScalarId SelectValue(ElementType type, int depth);
    ScalarId CastValue(ElementType type, int depth);
    ScalarId BitcastValue(ElementType type, int depth);
    ScalarId ReduceValue(ElementType type, int depth);
    ScalarId PositionValue(int depth);
    ScalarId MapOf(ScalarFunction function, std::vector<ScalarId> arguments, Known known);
    Known Hull(const Known& a, const Known& b) const;
    Expr RandomAtom();
    // Opens loops of a reduction; the product of their greatest extents.
    std::vector<Loop> OpenLoops(size_t count, double& points);
    VariableSet FreeIn(const Expr& expr) const;

    std::mt19937_64 random_;
    std::vector<Known> known_;
};

// Integers up to this are exact in f32, sums of few products of them included.
inline constexpr double kExact = 1 << 22;
// One unit in the last place of f32 for f64 too: both may be computed by the same approximations.
inline double Ulp(double magnitude) {
    return magnitude * 0x1p-23;
}

// How far apart the numbers of a type are, at most, up to `magnitude`; 0 of f32 and wider.
double Spacing(ElementType type, double magnitude);
// The bounds of a type's numbers.
Known BoundsOf(ElementType type);

}  // namespace fornax::graph::loop
