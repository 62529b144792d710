"""Functions of mathematics that torch has no decomposition of, by series and approximations.

Each is exact to the precision of its dtype, or leaves wider dtypes to torch.
"""

import math

import torch

from .own_decompositions import own

# Bernoulli numbers B2, B4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _real(function):
    """The function in f32 where the dtype is an integer's or narrower, and rounded at the end."""
    def wrapper(*args, **kwargs):
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        dtype = tensors[0].dtype
        for tensor in tensors[1:]:
            dtype = torch.promote_types(dtype, tensor.dtype)
        result = dtype if dtype.is_floating_point else torch.get_default_dtype()
        compute = torch.promote_types(result, torch.float32)
        wide = [value.to(compute) if isinstance(value, torch.Tensor) else value for value in args]
        value = function(*wide, **kwargs)
        return value if value is NotImplemented else value.to(result)

    return wrapper


def _narrow(function):
    """The same for approximations that are good to f32 alone."""
    def wrapper(*args, **kwargs):
        if any(isinstance(value, torch.Tensor) and value.dtype == torch.float64 for value in args):
            return NotImplemented
        return _real(function)(*args, **kwargs)

    return wrapper


def _polynomial(x, coefficients):
    """From the constant term on."""
    result = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


_SHIFT = 8  # from here on the asymptotic series are exact


def _lgamma_positive(x):
    small = x < _SHIFT
    product = torch.ones_like(x)
    for i in range(_SHIFT):
        product = product * (x + i)
    y = torch.where(small, x + _SHIFT, x)
    inverse = 1 / y
    series = _polynomial(inverse * inverse, [value / (2 * k * (2 * k - 1)) for k, value in enumerate(_BERNOULLI, 1)])
    whole = (y - 0.5) * y.log() - y + 0.5 * math.log(2 * math.pi) + series * inverse
    whole = torch.where(torch.isinf(x), math.inf, whole)
    return torch.where(small, whole - product.abs().log(), whole)


@own("lgamma")
@_real
def lgamma(x):
    reflected = x < 0.5
    value = _lgamma_positive(torch.where(reflected, 1 - x, x))
    # sin(pi x) is that of what is left of the nearest integer.
    sine = torch.sin(math.pi * (x - x.round())).abs()
    value = torch.where(reflected, math.log(math.pi) - sine.log() - value, value)
    return torch.where(torch.isinf(x), math.inf, value)


@own("digamma")
@_real
def digamma(x):
    reflected = x < 0
    positive = torch.where(reflected, 1 - x, x)
    value = torch.zeros_like(x)
    small = positive < _SHIFT
    for i in range(_SHIFT):
        value = value - torch.where(small, 1 / (positive + i), 0)
    y = torch.where(small, positive + _SHIFT, positive)
    inverse = 1 / (y * y)
    series = _polynomial(inverse, [number / (2 * k) for k, number in enumerate(_BERNOULLI, 1)])
    value = value + y.log() - 0.5 / y - series * inverse
    value = torch.where(reflected, value - math.pi / torch.tan(math.pi * (x - x.round())), value)
    value = torch.where(x == 0, torch.copysign(x.new_full((), math.inf), -x), value)
    return torch.where(reflected & (x == x.round()), math.nan, value)


def _zeta_positive(s, q):
    """Hurwitz' zeta by Euler and Maclaurin, for s > 1 and q > 0."""
    count = 12
    value = torch.zeros_like(q)
    for i in range(count):
        value = value + (q + i) ** -s
    y = q + count
    power = y ** -s
    value = value + power * y / (s - 1) + 0.5 * power
    factor, power = s, power / y
    for k, number in enumerate(_BERNOULLI, 1):
        value = value + number / math.factorial(2 * k) * factor * power
        factor = factor * (s + 2 * k - 1) * (s + 2 * k)
        power = power / (y * y)
    return value


def _zeta(s, q):
    s, q = torch.broadcast_tensors(s, q)
    positive = torch.where(q > 0, q, 1.0)
    value = _zeta_positive(s, positive)
    # Below zero: the terms up to zero are those of two other values, with a sign.
    whole = torch.floor(-q) + 1
    rest = torch.where(q <= 0, q + whole, 1.0)
    nearest = torch.where(q <= 0, 1 - rest, 1.0)
    nearest = torch.where(nearest > 0, nearest, 1.0)
    odd = s % 2 != 0
    terms = _zeta_positive(s, nearest) - _zeta_positive(s, torch.where(q <= 0, 1 - q, 1.0))
    below = torch.where(odd, -terms, terms) + _zeta_positive(s, torch.where(rest > 0, rest, 1.0))
    value = torch.where(q <= 0, torch.where(s == s.floor(), below, math.nan), value)
    value = torch.where((q <= 0) & (q == q.floor()), math.inf, value)
    value = torch.where(s == 1, math.inf, value)
    return torch.where((s < 1) | torch.isnan(s) | torch.isnan(q), math.nan, value)


@own("special_zeta")
@_real
def special_zeta(s, q):
    return _zeta(s, q)


@own("special_zeta.self_scalar")
def special_zeta_self(self, other):
    return _real(_zeta)(torch.full_like(other, self, dtype=torch.result_type(other, 1.0)), other)


@own("special_zeta.other_scalar")
def special_zeta_other(self, other):
    return _real(_zeta)(self, torch.full_like(self, other, dtype=torch.result_type(self, 1.0)))


@own("polygamma")
def polygamma(n, self):
    if n == 0:
        return torch.digamma(self)
    if n > 20:
        return NotImplemented
    factor = math.factorial(n) * (1 if n % 2 else -1)
    return _real(lambda x: factor * _zeta(torch.full_like(x, n + 1), x))(self)


@own("erfinv")
@_real
def erfinv(y):
    size = y.abs()
    central = _polynomial(y * y, (0.886226899, -1.645349621, 0.914624893, -0.140543331)) / _polynomial(
        y * y, (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801))
    tail = torch.sqrt(-torch.log((1 - torch.where(size < 1, size, 0.0)) / 2))
    outer = _polynomial(tail, (-1.970840454, -1.62490649, 3.429567803, 1.641345311)) / _polynomial(
        tail, (1.0, 3.543889200, 1.637067800))
    x = torch.where(size <= 0.7, central * y, torch.where(y < 0, -outer, outer))
    for _ in range(2):
        x = x - (torch.erf(x) - y) / (2 / math.sqrt(math.pi) * torch.exp(-x * x))
    x = torch.where(size == 1, torch.where(y < 0, -math.inf, math.inf), x)
    return torch.where(size > 1, math.nan, x)


# --- Bessel's functions, as Abramowitz and Stegun approximate them (9.4 and 9.8), good to f32 ---

_I0 = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_I0_FAR = (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633,
           0.00392377)
_I1 = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
_I1_FAR = (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654,
           -0.00420059)
_K0 = (-0.57721566, 0.42278420, 0.23069756, 0.03488590, 0.00262698, 0.00010750, 0.00000740)
_K0_FAR = (1.25331414, -0.07832358, 0.02189568, -0.01062446, 0.00587872, -0.00251540, 0.00053208)
_K1 = (1.0, 0.15443144, -0.67278579, -0.18156897, -0.01919402, -0.00110404, -0.00004686)
_K1_FAR = (1.25331414, 0.23498619, -0.03655620, 0.01504268, -0.00780353, 0.00325614, -0.00068245)
_J0 = (1.0, -2.2499997, 1.2656208, -0.3163866, 0.0444479, -0.0039444, 0.0002100)
_J1 = (0.5, -0.56249985, 0.21093573, -0.03954289, 0.00443319, -0.00031761, 0.00001109)
_Y0 = (0.36746691, 0.60559366, -0.74350384, 0.25300117, -0.04261214, 0.00427916, -0.00024846)
_Y1 = (-0.6366198, 0.2212091, 2.1682709, -1.3164827, 0.3123951, -0.0400976, 0.0027873)
_SIZE_0 = (0.79788456, -0.00000077, -0.00552740, -0.00009512, 0.00137237, -0.00072805, 0.00014476)
_PHASE_0 = (-0.78539816, -0.04166397, -0.00003954, 0.00262573, -0.00054125, -0.00029333, 0.00013558)
_SIZE_1 = (0.79788456, 0.00000156, 0.01659667, 0.00017105, -0.00249511, 0.00113653, -0.00020033)
_PHASE_1 = (-2.35619449, 0.12499612, 0.00005650, -0.00637879, 0.00074348, 0.00079824, -0.00029166)


def _i_scaled(x, near, far, odd):
    """exp(-|x|) I(x)."""
    size = x.abs()
    t = torch.where(size < 3.75, size / 3.75, 0.0)
    small = _polynomial(t * t, near) * torch.exp(-size)
    y = torch.where(size < 3.75, 3.75, size)
    large = _polynomial(3.75 / y, far) / y.sqrt()
    if odd:
        small = small * x
        large = torch.where(x < 0, -large, large)
    return torch.where(torch.isnan(x), math.nan, torch.where(size < 3.75, small, large))


@own("special_i0e")
@_narrow
def i0e(x):
    return _i_scaled(x, _I0, _I0_FAR, False)


@own("special_i1e")
@_narrow
def i1e(x):
    return _i_scaled(x, _I1, _I1_FAR, True)


@own("i0", "special_modified_bessel_i0")
@_narrow
def i0(x):
    return _i_scaled(x, _I0, _I0_FAR, False) * torch.exp(x.abs())


@own("special_i1", "special_modified_bessel_i1")
@_narrow
def i1(x):
    return _i_scaled(x, _I1, _I1_FAR, True) * torch.exp(x.abs())


def _k(x, order, scaled):
    near = torch.where((x > 0) & (x <= 2), x, 1.0)
    half = near / 2
    if order == 0:
        bessel = _i_scaled(near, _I0, _I0_FAR, False) * torch.exp(near)
        small = _polynomial(half * half, _K0) - half.log() * bessel
    else:
        bessel = _i_scaled(near, _I1, _I1_FAR, True) * torch.exp(near)
        small = (_polynomial(half * half, _K1) + near * half.log() * bessel) / near
    far = torch.where(x > 2, x, 2.0)
    large = _polynomial(2 / far, _K0_FAR if order == 0 else _K1_FAR) / far.sqrt()
    value = torch.where(x <= 2, small * torch.exp(near), large)
    value = value if scaled else value * torch.exp(-torch.where(x > 0, x, 1.0))
    value = torch.where(x == 0, math.inf, value)
    return torch.where((x < 0) | torch.isnan(x), math.nan, value)


@own("special_modified_bessel_k0")
@_narrow
def k0(x):
    return _k(x, 0, False)


@own("special_modified_bessel_k1")
@_narrow
def k1(x):
    return _k(x, 1, False)


@own("special_scaled_modified_bessel_k0")
@_narrow
def k0_scaled(x):
    return _k(x, 0, True)


@own("special_scaled_modified_bessel_k1")
@_narrow
def k1_scaled(x):
    return _k(x, 1, True)


def _wave(size, amplitude, phase, function):
    y = torch.where(size > 3, size, 3.0)
    return _polynomial(3 / y, amplitude) / y.sqrt() * function(y + _polynomial(3 / y, phase))


def _j(x, order):
    size = x.abs()
    t = torch.where(size <= 3, size / 3, 0.0)
    small = _polynomial(t * t, _J0 if order == 0 else _J1)
    large = _wave(size, *((_SIZE_0, _PHASE_0) if order == 0 else (_SIZE_1, _PHASE_1)), torch.cos)
    if order == 1:
        small = small * x
        large = torch.where(x < 0, -large, large)
    value = torch.where(size <= 3, small, large)
    return torch.where(torch.isinf(x) | torch.isnan(x), math.nan, value)  # as torch has it of infinity


@own("special_bessel_j0")
@_narrow
def j0(x):
    return _j(x, 0)


@own("special_bessel_j1")
@_narrow
def j1(x):
    return _j(x, 1)


def _y(x, order):
    near = torch.where((x > 0) & (x <= 3), x, 1.0)
    t = near / 3
    log = 2 / math.pi * (near / 2).log()
    if order == 0:
        small = _polynomial(t * t, _Y0) + log * _j(near, 0)
        large = _wave(x, _SIZE_0, _PHASE_0, torch.sin)
    else:
        small = _polynomial(t * t, _Y1) / near + log * _j(near, 1)
        large = _wave(x, _SIZE_1, _PHASE_1, torch.sin)
    value = torch.where(x <= 3, small, large)
    value = torch.where(x == 0, -math.inf, value)
    return torch.where((x < 0) | torch.isinf(x) | torch.isnan(x), math.nan, value)


@own("special_bessel_y0")
@_narrow
def y0(x):
    return _y(x, 0)


@own("special_bessel_y1")
@_narrow
def y1(x):
    return _y(x, 1)


@own("special_spherical_bessel_j0")
@_real
def spherical_j0(x):
    small = x.abs() < 0.5
    square = torch.where(small, x * x, 0.0)
    series = _polynomial(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(8)])
    y = torch.where(small, 1.0, x)
    return torch.where(torch.isinf(x), 0.0, torch.where(small, series, torch.sin(y) / y))


# --- The error function's relatives ---


def _erfcx_positive(x):
    """exp(x^2) erfc(x) of x >= 0."""
    near = torch.where(x < 2, x, 0.0)
    small = torch.exp(near * near) * torch.erfc(near)
    far = torch.where(x < 2, 2.0, x)
    fraction = far
    for i in range(40, 0, -1):
        fraction = far + i / 2 / fraction
    return torch.where(x < 2, small, 1 / (math.sqrt(math.pi) * fraction))


def _erfcx(x):
    value = _erfcx_positive(x.abs())
    return torch.where(torch.isnan(x), math.nan, torch.where(x < 0, 2 * torch.exp(x * x) - value, value))


@own("special_erfcx")
@_real
def erfcx(x):
    return _erfcx(x)


@own("special_log_ndtr")
@_real
def log_ndtr(x):
    t = x * math.sqrt(0.5)
    low = torch.log(_erfcx_positive(torch.where(x < 1, -t, 0.0).clamp(min=0)) / 2) - t * t
    # From -1 on the complement is not small.
    middle = torch.log(torch.erfc(torch.where(x < -1, 0.0, -t)) / 2)
    return torch.where(x < -1, low, torch.where(x < 1, middle, torch.log1p(-torch.erfc(t) / 2)))


_LOW = 0.02425


@own("special_ndtri")
@_real
def ndtri(p):
    # Acklam's approximation, and one step of Halley's method in the tail that is the smaller one.
    upper = p > 0.5
    q = torch.where(upper, 1 - p, p)
    safe = torch.where((q > 0) & (q <= 0.5), q, 0.25)
    r = torch.sqrt(-2 * safe.log())
    tail = _polynomial(r, (2.938163982698783, 4.374664141464968, -2.549732539343734, -2.400758277161838,
                           -0.3223964580411365, -0.007784894002430293)) / _polynomial(
        r, (1.0, 3.754408661907416, 2.445134137142996, 0.3224671290700398, 0.007784695709041462))
    centred = safe - 0.5
    square = centred * centred
    central = centred * _polynomial(square, (2.506628277459239, -30.66479806614716, 138.3577518672690,
                                             -275.9285104469687, 220.9460984245205, -39.69683028665376)) / _polynomial(
        square, (1.0, -13.28068155288572, 66.80131188771972, -155.6989798598866, 161.5858368580409,
                 -54.47609879822406))
    x = torch.where(safe < _LOW, tail, central)
    error = (torch.erfc(-x * math.sqrt(0.5)) / 2 - safe) * math.sqrt(2 * math.pi) * torch.exp(x * x / 2)
    x = x - error / (1 + x * error / 2)
    x = torch.where(q == 0, -math.inf, x)
    x = torch.where(upper, -x, x)
    return torch.where((p < 0) | (p > 1) | torch.isnan(p), math.nan, x)


# --- Orthogonal polynomials ---


def _with_numbers(function):
    """A function of x and a whole number n, for tensors and numbers."""
    def tensors(x, n):
        if not isinstance(x, torch.Tensor):
            x = torch.full_like(n, x, dtype=torch.result_type(n, 1.0))
        if not isinstance(n, torch.Tensor):
            n = torch.full_like(x, n, dtype=torch.result_type(x, 1.0))
        return _real(lambda x, n: function(x, n.trunc()))(x, n)

    return tensors


def _register_polynomial(name, function):
    own(name, f"{name}.x_scalar", f"{name}.n_scalar")(_with_numbers(function))


def _chebyshev(kind, x, n):
    """Kinds t, u, v and w in closed form: by circular functions inside of -1..1, by hyperbolic ones outside."""
    size = x.abs()
    odd = n % 2 != 0
    sign = torch.where((x < 0) & odd, -1.0, 1.0)
    angle, beyond = torch.acos(x.clamp(-1, 1)), torch.acosh(size.clamp(min=1))
    if kind == "t":
        value = torch.where(size <= 1, torch.cos(n * angle), sign * torch.cosh(n * beyond))
        return torch.where(n < 0, 0.0, value)
    if kind == "u":
        at_one = sign * (n + 1)
        inside = torch.sin((n + 1) * angle) / torch.sin(angle)
        outside = sign * torch.sinh((n + 1) * beyond) / torch.sinh(beyond)
    else:
        # Those of w are those of v from the other end.
        mirrored = kind == "w"
        y = -x if mirrored else x
        half = (n + 0.5) * torch.acos(y.clamp(-1, 1))
        turned = torch.where(odd, -1.0, 1.0) if mirrored else torch.ones_like(x)
        inside = turned * torch.cos(half) / torch.cos(torch.acos(y.clamp(-1, 1)) / 2)
        even = torch.cosh((n + 0.5) * beyond) / torch.cosh(beyond / 2)
        other = torch.sinh((n + 0.5) * beyond) / torch.sinh(beyond / 2)
        flipped = torch.where(odd, -1.0, 1.0)
        outside = turned * torch.where(y > 0, even, flipped * other)
        at_one = turned * torch.where(y > 0, 1.0, flipped * (2 * n + 1))
    value = torch.where(size < 1, inside, torch.where(size == 1, at_one, outside))
    return torch.where(n < 0, 0.0, value)


def _hermite(twice):
    """The recurrence of Hermite's polynomials; torch gives no number for more than 128."""
    most, factor = 128, 2 if twice else 1

    def function(x, n):
        before, now = torch.ones_like(x), factor * x
        value = torch.where(n == 0, before, now)
        for i in range(2, most + 1):
            before, now = now, factor * (x * now - (i - 1) * before)
            value = torch.where(n == i, now, value)
        return torch.where(n < 0, 0.0, torch.where(n > most, math.nan, value))

    return function


for _kind in "tuvw":
    _register_polynomial(f"special_chebyshev_polynomial_{_kind}",
                         lambda x, n, kind=_kind: _chebyshev(kind, x, n))
    _register_polynomial(f"special_shifted_chebyshev_polynomial_{_kind}",
                         lambda x, n, kind=_kind: _chebyshev(kind, 2 * x - 1, n))

_register_polynomial("special_hermite_polynomial_h", _hermite(True))
_register_polynomial("special_hermite_polynomial_he", _hermite(False))

__all__ = ["digamma", "erfinv", "lgamma", "polygamma"]
