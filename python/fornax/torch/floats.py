"""Numbers with a fraction that depend on open sizes, torch's SymFloats: in files they are 0-d tensors of f64, computed as Python
computes them."""

import builtins
import math
import operator

import torch

from . import graph_file
from .graph_file import argument
from .sizes import Unsupported

aten = torch.ops.aten

# What computes a number of one or two others, and the operator that does so with tensors of f64.
_OPERATORS = {
    operator.add: aten.add.Tensor, operator.sub: aten.sub.Tensor, operator.mul: aten.mul.Tensor,
    operator.truediv: aten.div.Tensor, operator.pow: aten.pow.Tensor_Tensor, operator.neg: aten.neg.default,
    operator.abs: aten.abs.default, torch.sym_max: aten.maximum.default, torch.sym_min: aten.minimum.default,
}
_OPERATORS.update({getattr(torch, f"_sym_{name}"): getattr(aten, name).default for name in (
    "acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "sqrt", "tan", "tanh") if hasattr(torch, f"_sym_{name}")})
# What makes a whole number of one with a fraction.
_WHOLE = {math.floor: aten.floor.default, math.ceil: aten.ceil.default, math.trunc: aten.trunc.default,
          torch.sym_int: aten.trunc.default}


class Floats:
    """The 0-d values of a file that nodes of numbers are. `writer` is the capture.Writer of the file."""

    def __init__(self, writer):
        self._writer = writer
        self._known = {}

    def add_input(self, node):
        """Makes a node of a number an input of the file, if it is none yet."""
        if (node, "float64") in self._known:
            return
        number = self._known[node, "float64"] = self._writer.program.value(node.name, "float64", [])
        self._writer.program.input(node.name, number)

    def value(self, node, element):
        """The number of the value of this type that is what a node gives: a SymFloat, or a SymInt that no size is."""
        key = (node, element)
        if key not in self._known:
            if element == "float64":
                self._known[key] = self._computed(node)
            else:
                self._known[key] = self._write(node, aten._to_copy.default, [self.value(node, "float64")], element)
        return self._known[key]

    def _computed(self, node):
        value = node.meta.get("val")
        if not isinstance(value, torch.SymFloat):
            try:
                return self._write(node, aten.scalar_tensor.default, [
                    value if isinstance(value, torch.SymInt) else float(value)])
            except Unsupported:
                if node.target not in _WHOLE and not _is_round(node):
                    raise
        if node.op == "call_function":
            if node.target is torch.sym_float:
                return self._operand(node.args[0])
            if _is_round(node):
                return self._write(node, aten.round.default, [self._operand(node.args[0])])
            overload = _OPERATORS.get(node.target) or _WHOLE.get(node.target)
            if overload is not None:
                return self._write(node, overload, [self._operand(operand) for operand in node.args])
        raise Unsupported(f"its number depends on sizes by {getattr(node.target, '__name__', node.target)}")

    def _operand(self, operand):
        if isinstance(operand, torch.fx.Node):
            return self.value(operand, "float64")
        return float(operand)

    def _write(self, node, overload, operands, element="float64"):
        """Adds a node of operands, which are numbers of values (int) or numbers of the program (float, SymInt)."""
        writer = self._writer
        arguments = []
        for place, formal in enumerate(overload._schema.arguments):
            if place >= len(operands):
                value = getattr(torch, element) if formal.name == "dtype" else formal.default_value
                arguments.append(writer.argument_of(formal.name, value))
            elif isinstance(operands[place], int):
                arguments.append(argument(formal.name, graph_file.ARG_VALUE, operands[place]))
            else:
                arguments.append(writer.argument_of(formal.name, operands[place]))
        name = node.name if element == "float64" else f"{node.name}_{element}"
        result = writer.program.value(name, element, [])
        writer.add_node(node, str(overload), name, arguments, [result])
        return result


def _is_round(node):
    return node.target is builtins.round and (len(node.args) == 1 or node.args[1] is None)


def element_for(values):
    """The type in which numbers meet these values: f64 where one of them has it, as torch's numbers are of the type that they
    meet, else f32."""
    wide = (torch.float64, torch.complex128)
    return "float64" if any(isinstance(value, torch.Tensor) and value.dtype in wide for value in values) else "float32"
