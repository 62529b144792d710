"""Complex values as their real and imaginary parts, and the rules of operators that calculate with them.

A rule takes an operator's arguments, in which complex tensors are Pairs, and gives its results. complex_functions.py has
more of them; complex_numbers.py rewrites graphs by them.
"""

import math

import torch


class Pair:
    def __init__(self, real, imaginary):
        self.real, self.imaginary = real, imaginary

    @property
    def shape(self):
        return self.real.shape

    def each(self, function):
        return Pair(function(self.real), function(self.imaginary))


def pair(value):
    """Numbers and real tensors have no imaginary part."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, complex):
        return Pair(value.real, value.imag)
    return Pair(value, torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0.0)


def is_real(value):
    return not isinstance(value, (Pair, complex))


RULES = {}


def rule(*targets):
    """Registers a function as the rule of operators of aten."""
    def register(function):
        for target in targets:
            RULES[f"aten.{target}"] = function
        return function

    return register


# --- Conversions ---


@rule("_to_copy.default")
def _to_copy(x, dtype=None, **_):
    if dtype is None:
        return x
    if dtype.is_complex:
        part = dtype.to_real()
        return pair(x if isinstance(x, Pair) else x.to(part)).each(lambda value: value.to(part))
    return x.real.to(dtype) if isinstance(x, Pair) else x.to(dtype)


@rule("complex.default")
def _complex(real, imaginary):
    real, imaginary = torch.broadcast_tensors(real, imaginary)
    return Pair(real, imaginary)


@rule("view_as_real.default", "view_as_real_copy.default")
def _view_as_real(x):
    return torch.stack([x.real, x.imaginary], -1)


@rule("view_as_complex.default", "view_as_complex_copy.default")
def view_as_complex(x):
    return Pair(x.select(-1, 0), x.select(-1, 1))


@rule("real.default")
def _real(x):
    return x.real


@rule("imag.default")
def _imaginary(x):
    return x.imaginary


@rule("_conj.default", "_conj_physical.default", "conj_physical.default", "_conj_copy.default")
def conjugate(x):
    return Pair(x.real, -x.imaginary)


@rule("polar.default")
def _polar(size, angle):
    return Pair(size * angle.cos(), size * angle.sin())


@rule("full.default")
def full(size, value, dtype=None, **_):
    part = dtype.to_real() if dtype is not None else torch.get_default_dtype()
    value = complex(value)
    return Pair(torch.full(size, value.real, dtype=part), torch.full(size, value.imag, dtype=part))


@rule("scalar_tensor.default")
def _scalar_tensor(value, dtype=None, **_):
    return full((), value, dtype=dtype)


def like_of(value):
    def rule(x, *_, dtype=None, **__):
        part = (dtype or x.real.dtype if isinstance(x, Pair) else dtype)
        part = part.to_real() if part.is_complex else part
        base = x.real if isinstance(x, Pair) else x
        made = torch.full_like(base, value, dtype=part)
        return made if dtype is not None and not dtype.is_complex else Pair(made, torch.zeros_like(made))

    return rule


rule("zeros_like.default", "empty_like.default")(like_of(0))
rule("ones_like.default")(like_of(1))


# --- Arithmetic ---


@rule("add.Tensor", "add.Scalar")
def add(a, b, alpha=1):
    a, b = pair(a), pair(b)
    if isinstance(alpha, complex):
        b = multiply(b, alpha)
        alpha = 1
    return Pair(torch.add(a.real, b.real, alpha=alpha) if isinstance(a.real, torch.Tensor) else a.real + b.real * alpha,
                torch.add(a.imaginary, b.imaginary, alpha=alpha) if isinstance(a.imaginary, torch.Tensor)
                else a.imaginary + b.imaginary * alpha)


@rule("sub.Tensor", "sub.Scalar")
def subtract(a, b, alpha=1):
    return add(a, multiply(b, -alpha) if isinstance(alpha, complex) else negate(_scaled(b, alpha)))


def _scaled(x, factor):
    if factor == 1:
        return x
    return x.each(lambda value: value * factor) if isinstance(x, Pair) else x * factor


@rule("neg.default")
def negate(x):
    return Pair(-x.real, -x.imaginary) if isinstance(x, Pair) else -x


@rule("mul.Tensor", "mul.Scalar")
def multiply(a, b):
    if is_real(b):
        return a.each(lambda value: value * b)
    if is_real(a):
        return pair(b).each(lambda value: value * a)
    a, b = pair(a), pair(b)
    return Pair(a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real)


@rule("reciprocal.default")
def reciprocal(x):
    # Scaled by the greater part, so that squares neither overflow nor vanish.
    scale = torch.maximum(x.real.abs(), x.imaginary.abs())
    real, imaginary = x.real / scale, x.imaginary / scale
    size = (real * real + imaginary * imaginary) * scale
    return Pair(real / size, -imaginary / size)


@rule("div.Tensor", "div.Scalar")
def divide(a, b):
    if is_real(b):
        return a.each(lambda value: value / b)
    if isinstance(b, complex):
        return multiply(a, 1 / b)
    if is_real(a):
        return reciprocal(b).each(lambda value: value * a)
    scale = torch.maximum(b.real.abs(), b.imaginary.abs())
    real, imaginary = b.real / scale, b.imaginary / scale
    size = (real * real + imaginary * imaginary) * scale
    a = pair(a)
    return Pair((a.real * real + a.imaginary * imaginary) / size, (a.imaginary * real - a.real * imaginary) / size)


@rule("abs.default")
def size_of(x):
    greater = torch.maximum(x.real.abs(), x.imaginary.abs())
    safe = torch.where((greater == 0) | torch.isinf(greater), 1.0, greater)
    real, imaginary = x.real / safe, x.imaginary / safe
    size = safe * torch.sqrt(real * real + imaginary * imaginary)
    return torch.where(torch.isinf(greater), math.inf, size)


@rule("angle.default")
def angle(x):
    return torch.atan2(x.imaginary, x.real)


@rule("exp.default")
def exp(x):
    size = x.real.exp()
    return Pair(size * x.imaginary.cos(), size * x.imaginary.sin())


@rule("sgn.default")
def _sgn(x):
    size = size_of(x)
    return x.each(lambda value: torch.where(size == 0, 0.0, value / size))


@rule("eq.Tensor", "eq.Scalar")
def _equal(a, b):
    a, b = pair(a), pair(b)
    return (a.real == b.real) & (a.imaginary == b.imaginary)


@rule("ne.Tensor", "ne.Scalar")
def _not_equal(a, b):
    return ~_equal(a, b)


@rule("isnan.default")
def _is_nan(x):
    return torch.isnan(x.real) | torch.isnan(x.imaginary)


@rule("isinf.default")
def _is_infinite(x):
    return torch.isinf(x.real) | torch.isinf(x.imaginary)


@rule("where.self")
def where(condition, a, b):
    a, b = pair(a), pair(b)
    return Pair(torch.where(condition, a.real, b.real), torch.where(condition, a.imaginary, b.imaginary))


@rule("mm.default", "bmm.default")
def product(a, b):
    a, b = pair(a), pair(b)
    return Pair(a.real @ b.real - a.imaginary @ b.imaginary, a.real @ b.imaginary + a.imaginary @ b.real)


@rule("constant_pad_nd.default")
def _pad(x, pad, value=0):
    value = complex(value)
    pad_each = torch.ops.aten.constant_pad_nd
    return Pair(pad_each(x.real, pad, value.real), pad_each(x.imaginary, pad, value.imag))
