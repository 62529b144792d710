// Complex numbers as two values, and the functions that let a loop over matrices serve real and
// complex numbers alike: a template's Number is a Val or a Complex.
#pragma once

#include <concepts>
#include <utility>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/index.h"

namespace fornax::graph {

struct Complex {
    Val real, imaginary;  // of one shape and type

    Builder& builder() const { return real.builder(); }
    ElementType element() const { return real.element(); }
    Shape shape() const { return real.shape(); }
    int64_t rank() const { return real.rank(); }
    Expr dim(int64_t axis) const { return real.dim(axis); }
};

template <class T>
concept RealOrComplex = std::same_as<T, Val> || std::same_as<T, Complex>;

// What a function makes of each part.
template <class Function>
Val Each(Val x, Function function) {
    return function(x);
}
template <class Function>
Complex Each(const Complex& x, Function function) {
    return {function(x.real), function(x.imaginary)};
}

// --- Parts ---------------------------------------------------------------------------------------

inline Val RealPart(Val x) {
    return x;
}
inline Val RealPart(const Complex& x) {
    return x.real;
}
inline Val Conjugate(Val x) {
    return x;
}
inline Complex Conjugate(const Complex& x) {
    return {x.real, -x.imaginary};
}
// The conjugate where a condition holds.
inline Val ConjugateWhere(Val /*condition*/, Val x) {
    return x;
}
inline Complex ConjugateWhere(Val condition, const Complex& x) {
    return {x.real, Where(condition, -x.imaginary, x.imaginary)};
}
template <RealOrComplex Number>
Number FromReal(Val x) {
    if constexpr (std::same_as<Number, Complex>) {
        return {x, BroadcastTo(Like(x, 0), x.shape())};
    } else {
        return x;
    }
}
inline Val IsZero(Val x) {
    return Equal(x, 0);
}
inline Val IsZero(const Complex& x) {
    return And(Equal(x.real, 0), Equal(x.imaginary, 0));
}
inline Val SquaredSize(Val x) {
    return x * x;
}
inline Val SquaredSize(const Complex& x) {
    return x.real * x.real + x.imaginary * x.imaginary;
}
// Without squares that overflow or vanish.
Val Size(const Complex& x);
// What LAPACK chooses pivots by.
inline Val PivotSize(Val x) {
    return map::Abs(x);
}
inline Val PivotSize(const Complex& x) {
    return map::Abs(x.real) + map::Abs(x.imaginary);
}

// --- Arithmetic ----------------------------------------------------------------------------------

inline Complex operator+(const Complex& a, const Complex& b) {
    return {a.real + b.real, a.imaginary + b.imaginary};
}
inline Complex operator-(const Complex& a, const Complex& b) {
    return {a.real - b.real, a.imaginary - b.imaginary};
}
inline Complex operator*(const Complex& a, const Complex& b) {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
}
inline Complex operator*(Val a, const Complex& b) {
    return {a * b.real, a * b.imaginary};
}
inline Complex operator/(const Complex& a, Val b) {
    return {a.real / b, a.imaginary / b};
}
// Without squares that overflow or vanish.
Complex operator/(const Complex& a, const Complex& b);
inline Complex Where(Val condition, const Complex& a, const Complex& b) {
    return {Where(condition, a.real, b.real), Where(condition, a.imaginary, b.imaginary)};
}
// The number, without dimensions.
inline Complex Like(const Complex& x, double number) {
    return {Like(x.real, number), Like(x.real, 0)};
}
template <RealOrComplex Number>
Number SumAlong(const Number& x, int64_t axis, bool keep) {
    return Each(x, [&](Val part) { return Reduce(Combine::kSum, part, {axis}, keep); });
}

// --- Views and elements --------------------------------------------------------------------------

inline Complex Reshape(const Complex& x, const Shape& shape) {
    return {Reshape(x.real, shape), Reshape(x.imaginary, shape)};
}
inline Complex Unsqueeze(const Complex& x, int64_t axis) {
    return {Unsqueeze(x.real, axis), Unsqueeze(x.imaginary, axis)};
}
inline Complex TransposeMatrix(const Complex& x) {
    return {TransposeMatrix(x.real), TransposeMatrix(x.imaginary)};
}
template <RealOrComplex Number>
Number Adjoint(const Number& x) {
    return Conjugate(TransposeMatrix(x));
}
inline Complex SliceAxis(const Complex& x, int64_t axis, const Expr& start, const Expr& count) {
    return {SliceAxis(x.real, axis, start, count), SliceAxis(x.imaginary, axis, start, count)};
}
inline Complex TakeOne(const Complex& x, Val index, int64_t axis) {
    return {TakeOne(x.real, index, axis), TakeOne(x.imaginary, index, axis)};
}
inline Complex Gather(const Complex& x,
                      const std::vector<int64_t>& sources,
                      const Vals& indices,
                      const Shape& shape) {
    return {Gather(x.real, sources, indices, shape), Gather(x.imaginary, sources, indices, shape)};
}

// --- What loops carry ----------------------------------------------------------------------------

inline void AppendParts(Vals& to, Val x) {
    to.push_back(x);
}
inline void AppendParts(Vals& to, const Complex& x) {
    to.push_back(x.real);
    to.push_back(x.imaginary);
}
template <RealOrComplex... Numbers>
Vals Pack(const Numbers&... values) {
    Vals packed;
    (AppendParts(packed, values), ...);
    return packed;
}

// Takes values out in the order in which they were packed.
class Unpacked {
  public:
    explicit Unpacked(Vals values) : values_(std::move(values)) {}

    template <RealOrComplex Number>
    Number Next() {
        if constexpr (std::same_as<Number, Complex>) {
            const Val real = values_[next_++];
            return {real, values_[next_++]};
        } else {
            return values_[next_++];
        }
    }

  private:
    Vals values_;
    size_t next_ = 0;
};

}  // namespace fornax::graph
