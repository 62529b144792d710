"""Fits the polynomials of math_*.cpp. Needs mpmath; run by hand when a formula changes, not by the build.

Usage: fit_polynomials.py [NAME ...]

Each line of FITS gives a function, the form in which the code evaluates it (a fixed part, and a factor
times the polynomial to be fitted) and an interval. The fit minimises the largest
relative error of the whole expression; coefficients are rounded to the format of the code
one by one from the lowest on, refitting the rest, and the error that remains is printed.
"""

import struct
import sys

from mpmath import mp, mpf

mp.prec = 160


def to_f32(value):
    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def to_f64(value):
    return mpf(float(value))


ONE = mpf(1)


# name: (function, fixed part, factor of the polynomial, the polynomial's variable, degree, low, high, format)
FITS = {
    "exp2": (lambda x: mpf(2) ** x, lambda x: ONE, lambda x: x, lambda x: x, 5, -0.5, 0.5, to_f32),
    "exp2_floor": (lambda x: mpf(2) ** x, lambda x: ONE, lambda x: x, lambda x: x, 5, 0, 1, to_f32),
    "exp": (mp.exp, lambda x: ONE, lambda x: x, lambda x: x, 4, -0.34658, 0.34658, to_f32),
    "log": (mp.log1p, lambda x: x - x * x / 2, lambda x: x**3, lambda x: x, 7, -0.29290, 0.41422, to_f32),
    "log2_f64": (lambda x: mp.log1p(x) / mp.ln2, lambda x: mpf(0), lambda x: x, lambda x: x, 12,
                 -0.29290, 0.41422, to_f64),
    "sin": (mp.sin, lambda x: x, lambda x: x**3, lambda x: x * x, 4, 0, 1.65, to_f32),
    "sin_quarter": (mp.sin, lambda x: x, lambda x: x**3, lambda x: x * x, 3, 0, 0.83, to_f32),
    "cos_quarter": (mp.cos, lambda x: 1 - x * x / 2, lambda x: x**4, lambda x: x * x, 2, 0, 0.83, to_f32),
    "asin": (mp.asin, lambda x: x, lambda x: x**3, lambda x: x * x, 4, 0, 0.5, to_f32),
    "atan": (mp.atan, lambda x: x, lambda x: x**3, lambda x: x * x, 7, 0, 1, to_f32),
    "sinh": (mp.sinh, lambda x: x, lambda x: x**3, lambda x: x * x, 2, 0, 1, to_f32),
}

# name: (function, degree of numerator and denominator, high): an odd function as x * p(x^2) / q(x^2), p(0) = q(0) = 1,
# on [0, high].
QUOTIENTS = {"tanh": (mp.tanh, 4, 8.7)}


def evaluate(coefficients, x):
    result = mpf(0)
    for c in reversed(coefficients):
        result = result * x + c
    return result


def fit_minimax(target, weight, variable, degree, low, high):
    """The polynomial p that (nearly) minimises the largest |weight(x) * (p(variable(x)) - target(x))|.

    Lawson's method: weighted least squares on Chebyshev nodes whose weights grow where the error is large.
    """
    low, high = mpf(low), mpf(high)
    count = 8 * (degree + 2)
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + 0.5) / count) for i in range(count)]
    powers = [[variable(x) ** k for k in range(degree + 1)] for x in nodes]
    targets = [target(x) for x in nodes]
    weights = [weight(x) for x in nodes]
    lawson = [ONE] * count
    coefficients = []
    for _ in range(30):
        matrix, right = mp.matrix(degree + 1, degree + 1), mp.matrix(degree + 1, 1)
        for row, t, w, lam in zip(powers, targets, weights, lawson):
            factor = lam * w * w
            for i in range(degree + 1):
                right[i] += factor * row[i] * t
                for j in range(degree + 1):
                    matrix[i, j] += factor * row[i] * row[j]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[k] for k in range(degree + 1)]
        errors = [abs(w * (evaluate(coefficients, variable(x)) - t))
                  for x, w, t in zip(nodes, weights, targets)]
        total = sum(lam * e for lam, e in zip(lawson, errors))
        lawson = [lam * e / total * count for lam, e in zip(lawson, errors)]
    return coefficients


def fit(name):
    function, fixed, factor, variable, degree, low, high, rounding = FITS[name]

    def target(x):
        x = x if x != 0 else mpf(high) / 10**6
        return (function(x) - fixed(x)) / factor(x)

    def weight(x):
        x = x if x != 0 else mpf(high) / 10**6
        return factor(x) / function(x)

    done = []
    for k in range(degree + 1):
        def rest_target(x, done=tuple(done), k=k):
            u = variable(x if x != 0 else mpf(high) / 10**6)
            return (target(x) - evaluate(done, u)) / u**k

        def rest_weight(x, k=k):
            return weight(x) * variable(x if x != 0 else mpf(high) / 10**6) ** k

        done.append(rounding(fit_minimax(rest_target, rest_weight, variable, degree - k, low, high)[0]))
    worst = max(
        abs((fixed(x) + factor(x) * evaluate(done, variable(x))) / function(x) - 1)
        for x in (mpf(low) + (mpf(high) - mpf(low)) * (mpf(i) + 0.37) / 3000 for i in range(3000)))
    print(f"{name}: relative error 2^{float(mp.log(worst, 2)):.2f}")
    digits = 9 if rounding is to_f32 else 17
    for c in done:
        print(f"    {float(c):.{digits - 1}e},")


def fit_odd_quotient(function, degree, high, over, under):
    """All coefficients, given some of each, by Lawson's method on the equation multiplied by the last denominator."""
    count = 10 * (2 * degree + 2)
    nodes = [max(mpf(high) * (1 - mp.cos(mp.pi * (i + 0.5) / count)) / 2, mpf(10) ** -3) for i in range(count)]
    open_over = [k for k in range(degree + 1) if k not in over]
    open_under = [k for k in range(1, degree + 1) if k not in under]
    size = len(open_over) + len(open_under)
    denominators, lawson = [ONE] * count, [ONE] * count
    for _ in range(30):
        matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
        for x, denominator, lam in zip(nodes, denominators, lawson):
            y, square = function(x), x * x
            w = 1 / (y * denominator)
            row = [w * x * square**k for k in open_over] + [-w * y * square**k for k in open_under]
            rest = w * (y * sum(c * square**k for k, c in under.items()) - x * sum(c * square**k for k, c in over.items()))
            for i in range(size):
                right[i] += lam * row[i] * rest
                for j in range(size):
                    matrix[i, j] += lam * row[i] * row[j]
        solution = mp.lu_solve(matrix, right)
        all_over = {**over, **{k: solution[i] for i, k in enumerate(open_over)}}
        all_under = {**under, **{k: solution[len(open_over) + i] for i, k in enumerate(open_under)}}
        denominators = [sum(c * (x * x) ** k for k, c in all_under.items()) for x in nodes]
        errors = [abs(x * sum(c * (x * x) ** k for k, c in all_over.items()) / (d * function(x)) - 1)
                  for x, d in zip(nodes, denominators)]
        total = sum(lam * e for lam, e in zip(lawson, errors))
        lawson = [lam * e / total * count for lam, e in zip(lawson, errors)]
    return all_over, all_under


def fit_quotient(name):
    function, degree, high = QUOTIENTS[name]
    over, under = {0: ONE}, {0: ONE}
    for k in range(1, degree + 1):
        over[k] = to_f32(fit_odd_quotient(function, degree, high, over, under)[0][k])
        under[k] = to_f32(fit_odd_quotient(function, degree, high, over, under)[1][k])
    worst = max(
        abs(x * sum(c * (x * x) ** k for k, c in over.items())
            / (sum(c * (x * x) ** k for k, c in under.items()) * function(x)) - 1)
        for x in (mpf(high) * (mpf(i) + 0.37) / 3000 for i in range(3000)))
    print(f"{name}: relative error 2^{float(mp.log(worst, 2)):.2f}")
    for coefficients in over, under:
        print("    " + ", ".join(f"{float(coefficients[k]):.8e}" for k in sorted(coefficients)) + ",")


for wanted in sys.argv[1:] or [*FITS, *QUOTIENTS]:
    if wanted in QUOTIENTS:
        fit_quotient(wanted)
    else:
        fit(wanted)
