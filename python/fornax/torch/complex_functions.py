"""Rules of functions of complex numbers, of their sums, products and norms, and of logic."""

import math

import torch

from .complex_parts import (RULES, Pair, add, conjugate, divide, exp, full, is_real, multiply, pair, product, reciprocal,
                            rule, size_of, subtract, where)
from .sizes import Unsupported

__all__ = ["RULES"]

# --- Powers and logarithms ---


@rule("log.default")
def _log(x):
    return Pair(size_of(x).log(), torch.atan2(x.imaginary, x.real))


@rule("log2.default")
def _log2(x):
    return _log(x).each(lambda value: value / math.log(2))


@rule("log10.default")
def _log10(x):
    return _log(x).each(lambda value: value / math.log(10))


@rule("sqrt.default")
def _sqrt(x):
    greater = (size_of(x) / 2 + x.real.abs() / 2).sqrt()  # halves of large numbers do not overflow
    lesser = torch.where(greater == 0, 0.0, x.imaginary / (2 * greater))
    is_right = x.real >= 0
    return Pair(torch.where(is_right, greater, lesser.abs()),
                torch.where(is_right, lesser, torch.copysign(greater, x.imaginary)))


@rule("rsqrt.default")
def _rsqrt(x):
    return reciprocal(_sqrt(x))


@rule("expm1.default")
def _expm1(x):
    half = (x.imaginary / 2).sin()
    return Pair(x.real.expm1() * x.imaginary.cos() - 2 * half * half, x.real.exp() * x.imaginary.sin())


@rule("exp2.default")
def _exp2(x):
    return exp(x.each(lambda value: value * math.log(2)))


@rule("log1p.default")
def _log1p(x):
    is_small = size_of(x) < 0.5
    near = x.each(lambda value: torch.where(is_small, value, 0.0))
    small = (near.real * (near.real + 2) + near.imaginary * near.imaginary).log1p() / 2
    whole = _log(Pair(x.real + 1, x.imaginary))
    return Pair(torch.where(is_small, small, whole.real), whole.imaginary)


@rule("sigmoid.default")
def sigmoid(x):
    is_left = x.real < 0
    power = exp(x.each(lambda value: torch.where(is_left, value, -value)))  # at most 1 in size
    return divide(where(is_left, power, 1.0), Pair(power.real + 1, power.imaginary))


@rule("silu.default")
def _silu(x):
    return multiply(x, sigmoid(x))


@rule("square.default")
def _square(x):
    return multiply(x, x)


def _parts_of(value, like):
    """A number or tensor as a Pair of tensors."""
    value = pair(value)
    return value.each(lambda part: part if isinstance(part, torch.Tensor) else torch.full((), part, dtype=like.dtype))


@rule("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _power(x, exponent):
    if isinstance(exponent, (int, float, complex)):
        if exponent == 0:
            return Pair(torch.ones_like(x.real), torch.zeros_like(x.real))
        simple = {1: lambda: x, 2: lambda: multiply(x, x), 3: lambda: multiply(multiply(x, x), x), 0.5: lambda: _sqrt(x),
                  -0.5: lambda: _rsqrt(x), -1: lambda: reciprocal(x), -2: lambda: reciprocal(multiply(x, x))}
        if exponent in simple:
            return simple[exponent]()
    like = x.real if isinstance(x, Pair) else exponent.real
    x, exponent = _parts_of(x, like), _parts_of(exponent, like)
    power = multiply(exponent, _log(x))
    result = exp(power)
    # As C's cexp() at infinities, whatever the angle: torch's powers of 0.
    real = torch.where(power.real == math.inf, torch.where(power.imaginary.isnan(), math.inf, result.real), result.real)
    return where(power.real == -math.inf, 0.0, Pair(real, result.imaginary))


# --- Trigonometry ---


@rule("cos.default")
def _cos(x):
    return Pair(x.real.cos() * x.imaginary.cosh(), -x.real.sin() * x.imaginary.sinh())


@rule("sin.default")
def _sin(x):
    return Pair(x.real.sin() * x.imaginary.cosh(), x.real.cos() * x.imaginary.sinh())


@rule("cosh.default")
def _cosh(x):
    return Pair(x.real.cosh() * x.imaginary.cos(), x.real.sinh() * x.imaginary.sin())


@rule("sinh.default")
def _sinh(x):
    return Pair(x.real.sinh() * x.imaginary.cos(), x.real.cosh() * x.imaginary.sin())


@rule("tanh.default")
def _tanh(x):
    # sinh and cosh divided by cosh of the real part, which overflows in neither.
    real, rest = x.real.tanh(), x.real.cosh().reciprocal().square()
    sine, cosine = x.imaginary.sin(), x.imaginary.cos()
    size = real * real + cosine * cosine * rest
    return Pair(real / size, sine * cosine * rest / size)


def _times_i(x):
    return Pair(-x.imaginary, x.real)


def _over_i(x):
    return Pair(x.imaginary, -x.real)


@rule("tan.default")
def _tan(x):
    return _over_i(_tanh(_times_i(x)))


# Inverse functions as Kahan has them ("Branch cuts for complex elementary functions").


def _roots(x):
    """Roots of 1 - x and 1 + x, on the sides of cuts that signs of zeros tell."""
    return _sqrt(Pair(1 - x.real, -x.imaginary)), _sqrt(Pair(1 + x.real, x.imaginary))


@rule("acos.default")
def _acos(x):
    below, above = _roots(x)
    return Pair(2 * torch.atan2(below.real, above.real), multiply(conjugate(above), below).imaginary.asinh())


@rule("asin.default")
def _asin(x):
    below, above = _roots(x)
    return Pair(torch.atan2(x.real, multiply(below, above).real), multiply(conjugate(below), above).imaginary.asinh())


@rule("asinh.default")
def _asinh(x):
    return _over_i(_asin(_times_i(x)))


@rule("acosh.default")
def _acosh(x):
    below, above = _sqrt(Pair(x.real - 1, x.imaginary)), _sqrt(Pair(x.real + 1, x.imaginary))
    return Pair(multiply(conjugate(below), above).real.asinh(), 2 * torch.atan2(below.imaginary, above.real))


@rule("atanh.default")
def _atanh(x):
    size, square = x.real.abs(), x.imaginary * x.imaginary
    below = 1 - size
    return Pair(torch.copysign((4 * size / (below * below + square)).log1p() / 4, x.real),
                torch.atan2(2 * x.imaginary, below * (1 + size) - square) / 2)


@rule("atan.default")
def _atan(x):
    return _over_i(_atanh(_times_i(x)))


# --- Sums and products ---


@rule("addcmul.default")
def _addcmul(x, a, b, value=1):
    return add(x, multiply(multiply(pair(a), b), value))


@rule("addcdiv.default")
def _addcdiv(x, a, b, value=1):
    return add(x, multiply(divide(pair(a), b), value))


@rule("lerp.Scalar", "lerp.Tensor")
def _lerp(x, end, weight):
    return add(x, multiply(pair(subtract(end, x)), weight))


@rule("addmm.default", "addmv.default", "baddbmm.default")
def _add_product(x, a, b, beta=1, alpha=1):
    multiplied = multiply(product(a, b), alpha)
    return multiplied if beta == 0 else add(multiply(pair(x), beta), multiplied)


@rule("mv.default", "dot.default")
def _vector_product(a, b):
    return product(a, b)


@rule("vdot.default")
def _conjugate_product(a, b):
    return product(conjugate(pair(a)), b)


def _cut(x, dim, begin, length):
    return x.each(lambda part: part.narrow(dim, begin, length))


def _joined(values, dim):
    return Pair(torch.cat([value.real for value in values], dim), torch.cat([value.imaginary for value in values], dim))


def _converted(x, dtype):
    x = pair(x)
    return x if dtype is None else x.each(lambda part: part.to(dtype.to_real()))


def _length(x, dim):
    length = x.shape[dim]
    if not isinstance(length, int):
        raise Unsupported("products of complex numbers along an open size")
    return length


@rule("prod.dim_int")
def _prod_along(x, dim, keepdim=False, dtype=None):
    x = _converted(x, dtype)
    if x.real.dim() == 0:
        return x
    length = _length(x, dim)
    if length == 0:
        x = Pair(torch.ones_like(x.real.sum(dim, keepdim=True)), torch.zeros_like(x.real.sum(dim, keepdim=True)))
    while length > 1:
        half = length // 2
        halves = multiply(_cut(x, dim, 0, half), _cut(x, dim, half, half))
        x = _joined([halves, _cut(x, dim, length - 1, 1)], dim) if length % 2 else halves
        length -= half
    return x if keepdim else x.each(lambda part: part.squeeze(dim))


@rule("prod.default")
def _prod(x, dtype=None):
    return _prod_along(pair(x).each(lambda part: part.reshape(-1)), 0, dtype=dtype)


@rule("cumprod.default")
def _cumprod(x, dim, dtype=None):
    x = _converted(x, dtype)
    length = _length(x, dim) if x.real.dim() > 0 else 1
    reach = 1
    while reach < length:  # each has the product of the `reach` values up to it
        rest = length - reach
        x = _joined([_cut(x, dim, 0, reach), multiply(_cut(x, dim, reach, rest), _cut(x, dim, 0, rest))], dim)
        reach *= 2
    return x


@rule("linalg_vector_norm.default")
def _vector_norm(x, order=2, dim=None, keepdim=False, dtype=None):
    return torch.linalg.vector_norm(size_of(x), order, dim, keepdim,
                                    dtype=dtype.to_real() if dtype is not None and dtype.is_complex else dtype)


def _variance(x, dim, correction, keepdim):
    dim = dim or None
    real, imaginary = (torch.var(part, dim, correction=1 if correction is None else correction, keepdim=keepdim)
                       for part in (x.real, x.imaginary))
    return real + imaginary


def _mean(x, dim, keepdim):
    return x.each(lambda part: torch.mean(part, dim or list(range(part.dim())), keepdim))


@rule("var.correction")
def _var(x, dim=None, correction=None, keepdim=False):
    return _variance(x, dim, correction, keepdim)


@rule("std.correction")
def _std(x, dim=None, correction=None, keepdim=False):
    return _variance(x, dim, correction, keepdim).sqrt()


@rule("var_mean.correction")
def _var_mean(x, dim=None, correction=None, keepdim=False):
    return [_variance(x, dim, correction, keepdim), _mean(x, dim, keepdim)]


@rule("std_mean.correction")
def _std_mean(x, dim=None, correction=None, keepdim=False):
    return [_variance(x, dim, correction, keepdim).sqrt(), _mean(x, dim, keepdim)]


# --- Logic, and values that are set ---


def _is_set(x):
    return x != 0 if is_real(x) else (x.real != 0) | (x.imaginary != 0)


@rule("logical_not.default")
def _logical_not(x):
    return ~_is_set(x)


@rule("logical_and.default")
def _logical_and(a, b):
    return _is_set(a) & _is_set(b)


@rule("logical_or.default")
def _logical_or(a, b):
    return _is_set(a) | _is_set(b)


@rule("logical_xor.default")
def _logical_xor(a, b):
    return _is_set(a) ^ _is_set(b)


@rule("any.default", "any.dim", "any.dims")
def _any(x, *args, **kwargs):
    return torch.any(_is_set(x), *args, **kwargs)


@rule("all.default", "all.dim", "all.dims")
def _all(x, *args, **kwargs):
    return torch.all(_is_set(x), *args, **kwargs)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(x, mask, value):
    return where(mask, value, x)


@rule("full_like.default", "fill.Scalar", "fill.Tensor")
def _full_like(x, value, dtype=None, **_):
    base = x.real if isinstance(x, Pair) else x
    if dtype is not None and not dtype.is_complex:
        return torch.full_like(base, value, dtype=dtype)
    part = base.dtype if dtype is None else dtype.to_real()
    return _parts_of(value, base).each(lambda number: number.to(part).expand(base.shape).clone())


@rule("empty.memory_format")
def _empty(size, dtype=None, **_):
    return full(size, 0, dtype=dtype)


@rule("copy.default")
def _copy(x, source, non_blocking=False):
    """The values of `source`, with the sizes and the type of `x`."""
    if not isinstance(x, Pair):
        return torch.ops.aten.copy.default(x, source.real)
    source = pair(source)
    return Pair(torch.ops.aten.copy.default(x.real, source.real), torch.ops.aten.copy.default(x.imaginary, source.imaginary))
