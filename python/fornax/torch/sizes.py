"""Sizes of a graph: torch's symbolic expressions as entries of the file."""

import fractions

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from . import graph_file

INT32_MAX = 2**31 - 1


class Unsupported(Exception):
    """What a graph has that the file cannot say: a clause."""


def expression_of(value):
    """The sympy expression of an int or a SymInt."""
    if isinstance(value, torch.SymInt):
        return value.node.expr
    return sympy.Integer(int(value))


def own_symbols(tensors):
    """The symbols that sizes of these tensors tell the value of: alone, or times a number."""
    found = set()
    for tensor in tensors:
        for size in tensor.shape:
            if not isinstance(size, torch.SymInt):
                continue
            expression = size.node.expr
            factor, rest = expression.as_coeff_Mul()
            if rest.is_Symbol and factor.is_Integer and factor > 0:
                found.add(rest)
    return found


def shape_env_of(values):
    for value in values:
        for size in value.shape if isinstance(value, torch.Tensor) else [value]:
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def _bound(value, otherwise):
    return min(max(int(value), 0), INT32_MAX) if getattr(value, "is_Integer", False) else otherwise


_EXACT = 2**52  # f64 has all whole numbers up to here
_FEW_BITS = 2**20


def _whole_and_factor(value):
    """A number of f64 as a whole number times a fraction of few bits; None where it is made of more."""
    factor = fractions.Fraction(1)
    if value.is_Float:
        value, factor = sympy.Integer(1), fractions.Fraction(float(value))
    elif value.is_Mul and len(value.args) == 2 and value.args[0].is_Float:
        value, factor = value.args[1], fractions.Fraction(float(value.args[0]))
    if type(value).__name__ == "ToFloat":
        value = value.args[0]
    is_known = value.is_integer and max(abs(factor.numerator), factor.denominator) <= _FEW_BITS
    return (value, factor) if is_known else (None, factor)


def _rounded_quotient(expression, ranges):
    """A number with a fraction, rounded to a size, as a quotient of whole numbers; None where f64 might give another.

    What is less than 2**52 and is divided by a whole number is further from whole numbers, where it is none, than f64 rounds it.
    """
    kind = type(expression).__name__
    if kind not in ("FloorToInt", "CeilToInt", "TruncToInt"):
        return None
    value, divisor = expression.args[0], sympy.Integer(1)
    if type(value).__name__ in ("IntTrueDiv", "FloatTrueDiv"):
        value, divisor = value.args
    dividend, factor = _whole_and_factor(value)
    divisor, of_divisor = _whole_and_factor(divisor)
    if dividend is None or divisor is None or not of_divisor:
        return None
    factor /= of_divisor
    dividend, divisor = dividend * factor.numerator, divisor * factor.denominator
    of_dividend, of_divisor = bound_sympy(dividend, ranges), bound_sympy(divisor, ranges)
    if not (0 <= of_dividend.lower and of_dividend.upper <= _EXACT and 0 < of_divisor.lower and of_divisor.upper <= _EXACT):
        return None
    return FloorDiv(dividend + divisor - 1 if kind == "CeilToInt" else dividend, divisor)


class Sizes:
    """Writes the sizes of one graph.

    told: symbols whose values inputs tell. `fixed` gives these, and expressions that are inputs, the value that they have in the
        file, where they are not open; without it they have the one that torch traced the graph with.
    names: other names of symbols.
    """

    def __init__(self, program, shape_env, open_symbols, told, fixed, names):
        self._program = program
        self._shape_env = shape_env
        self._open = open_symbols
        self._told = told
        self._fixed = fixed
        self._of_expressions = {expression: value for expression, value in fixed.items() if not expression.is_Symbol}
        self._names = names
        self._known = {}

    def number(self, value):
        """The entry of an int or a SymInt."""
        if isinstance(value, int) and not isinstance(value, torch.SymInt):
            return self._program.constant(int(value))
        return self.entry(expression_of(value))

    def hint(self, symbol):
        if symbol in self._fixed:
            return int(self._fixed[symbol])
        values = getattr(self._shape_env, "backed_var_to_val", None) or self._shape_env.var_to_val
        if symbol not in values:
            raise Unsupported(f"the size {symbol} depends on data")
        if symbol not in self._told:
            raise Unsupported(f"no input tells {symbol}")
        return int(values[symbol])

    def can_say(self, value):
        """Whether the file has an entry for a SymInt."""
        try:
            self.entry(expression_of(value))
        except Unsupported:
            return False
        return True

    def entry(self, expression):
        known = self._known.get(expression)
        if known is None:
            known = self._known[expression] = self._write(self._with_fixed(expression))
        return known

    def _with_fixed(self, expression):
        """The expression with the values of others that are inputs, where it has symbols that nothing else tells."""
        if self._of_expressions and expression.free_symbols - self._told:
            return expression.subs(self._of_expressions)
        return expression

    def _write(self, expression):
        program = self._program
        if expression.is_Integer:
            return program.constant(int(expression))
        if expression.is_Symbol:
            if expression not in self._open:
                return program.constant(self.hint(expression))
            hint = self.hint(expression)
            bounds = self._shape_env.var_to_range.get(expression)
            low = _bound(bounds.lower, 0) if bounds is not None else 0
            high = _bound(bounds.upper, INT32_MAX) if bounds is not None else INT32_MAX
            return program.symbol(self._names.get(expression, str(expression)), hint, min(low, hint), max(high, hint))
        if expression.is_Add:
            return self._fold(graph_file.SIZE_ADD, expression.args)
        if expression.is_Mul and all(not argument.is_Rational or argument.is_Integer for argument in expression.args):
            return self._fold(graph_file.SIZE_MUL, expression.args)
        if expression.is_Pow and expression.exp.is_Integer and 0 < expression.exp <= 8:
            return self._fold(graph_file.SIZE_MUL, [expression.base] * int(expression.exp))
        rounded = _rounded_quotient(expression, self._ranges(expression.free_symbols))
        if rounded is not None:
            return self.entry(rounded)
        names = {
            "FloorDiv": graph_file.SIZE_FLOORDIV, "CleanDiv": graph_file.SIZE_FLOORDIV, "Mod": graph_file.SIZE_MOD,
            "PythonMod": graph_file.SIZE_MOD, "Max": graph_file.SIZE_MAX, "Min": graph_file.SIZE_MIN,
        }
        kind = names.get(type(expression).__name__)
        if kind is None:
            raise Unsupported(f"the size {expression} is not made of sums, products and quotients")
        return self._fold(kind, expression.args)

    def _ranges(self, symbols):
        """What values symbols have in the file."""
        known = self._shape_env.var_to_range if self._shape_env is not None else {}
        ranges = {}
        for symbol in symbols:
            bounds = known.get(symbol)
            ranges[symbol] = ValueRanges(_bound(bounds.lower, 0), _bound(bounds.upper, INT32_MAX)) if bounds is not None \
                else ValueRanges(0, INT32_MAX)
        return ranges

    def _fold(self, kind, arguments):
        entries = [self.entry(argument) for argument in arguments]
        result = entries[0]
        for entry in entries[1:]:
            result = self._program.operation(kind, result, entry)
        return result

    def guard(self, expression):
        """A condition of the graph; one that cannot be said fixes the sizes that are in it."""
        relations = {sympy.Eq: (graph_file.RELATION_EQ, False), sympy.Ne: (graph_file.RELATION_NE, False),
                     sympy.StrictLessThan: (graph_file.RELATION_LT, False),
                     sympy.LessThan: (graph_file.RELATION_LE, False),
                     sympy.StrictGreaterThan: (graph_file.RELATION_LT, True),
                     sympy.GreaterThan: (graph_file.RELATION_LE, True)}
        # Guards may name symbols that others have replaced since.
        expression = self._shape_env.replace(expression)
        known = relations.get(type(expression))
        try:
            if known is None:
                raise Unsupported("another condition")
            relation, swapped = known
            a, b = self.entry(expression.lhs), self.entry(expression.rhs)
            self._program.guard(relation, *((b, a) if swapped else (a, b)))
        except Unsupported:
            for symbol in sorted(expression.free_symbols & set(self._open), key=str):
                self._program.guard(graph_file.RELATION_EQ, self.entry(symbol),
                                    self._program.constant(self.hint(symbol)))


_SOURCES = {"FloorDiv": "({} // {})", "CleanDiv": "({} // {})", "Mod": "({} % {})", "PythonMod": "({} % {})",
            "IntTrueDiv": "({} / {})", "FloatTrueDiv": "({} / {})", "ToFloat": "float({})", "FloorToInt": "int({} // 1)",
            "CeilToInt": "(-int(-{} // 1))", "TruncToInt": "int({})"}


def source_of(expression, names, others):
    """Python code that computes a size from symbols by these names. What it cannot say it evaluates by sympy, and adds the
    expression to `others`, which the code knows under that name."""
    if expression.is_Integer:
        return str(int(expression))
    if expression.is_Symbol:
        return names[expression]
    if expression.is_Float:
        return repr(float(expression))
    kind = type(expression).__name__
    arguments = expression.args
    if all(not argument.is_Rational or argument.is_Integer for argument in arguments):
        if expression.is_Add or expression.is_Mul:
            sign = " + " if expression.is_Add else " * "
            return f"({sign.join(source_of(argument, names, others) for argument in arguments)})"
        if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
            return f"({source_of(expression.base, names, others)} ** {int(expression.exp)})"
        if kind in ("Max", "Min"):
            return f"{kind.lower()}({', '.join(source_of(argument, names, others) for argument in arguments)})"
        if kind in _SOURCES:
            return _SOURCES[kind].format(*(source_of(argument, names, others) for argument in arguments))
    others.append(expression)
    values = ", ".join(f"symbols[{i}]: {name}" for i, name in enumerate(names.values()))
    return f"evaluate(others[{len(others) - 1}], {{{values}}})"


def evaluate(expression, bindings):
    """The value of a size for given symbols."""
    return int(expression.xreplace({symbol: sympy.Integer(value) for symbol, value in bindings.items()}))


__all__ = ["Sizes", "Unsupported", "evaluate", "expression_of", "own_symbols", "shape_env_of", "source_of"]
