"""The function of a compiled graph: Python code for that graph alone, so that a call does little else than run it."""

import torch

from . import sizes


def _row_major(shape, names, others):
    """The strides, as code, of a tensor whose elements lie in row-major order."""
    strides, source = [], "1"
    for size in reversed(shape):
        strides.append(source)
        if size.is_Integer and source.isdigit():
            source = str(int(source) * max(int(size), 1))
        else:
            source = f"{source} * {sizes.source_of(size, names, others)}"
    return strides[::-1]


def _tuple(sources):
    return f"({', '.join(sources)}{',' if len(sources) == 1 else ''})"


def _empty(size, stride, dtype):
    return torch.empty_strided(size, stride, dtype=dtype)


def _strided(tensor, size, stride):
    """The same elements in another order of memory."""
    return torch.empty_strided(size, stride, dtype=tensor.dtype).copy_(tensor)


def _number(value):
    return torch.scalar_tensor(value, dtype=torch.float64)


def _changed(tensors):
    """Tells autograd that tensors were written to."""
    for tensor in tensors:
        if not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)


class Layout:
    """How a call's arguments become the inputs of a file, and its outputs results.

    bindings: (symbol, factor, argument, axis) of each symbol; without an axis the argument is the number.
    inputs: places of arguments, each with the order of its axes that the file has, None, or "number" for one that is no tensor.
    states, copied: places of arguments: those that change in place, and those that hold the last outputs after a call.
    free: places of numbers that choose the session.
    outputs: (dtype, sizes, strides or None, order or None) of each output of the file. With strides the result is a copy, with
        an order a view in it.
    results: ("output", number), ("number", number of an output without dimensions, as a number of Python), ("argument", place),
        ("size", expression) or ("constant", value).
    is_list: whether results are a list, or the only one.
    """

    def __init__(self):
        self.bindings, self.inputs, self.states, self.copied, self.free = [], [], [], [], []
        self.outputs, self.results = [], []
        self.is_list = True

    def _lines(self, known):
        names = {}
        others = known["others"]
        for symbol, factor, place, axis in self.bindings:
            name = names[symbol] = f"s{len(names)}"
            value = f"arguments[{place}]" if axis is None else f"arguments[{place}].shape[{axis}]"
            yield f"{name} = {value}" + (f" // {factor}" if factor != 1 else "")
        known["symbols"] = list(names)
        for i, (dtype, shape, *_) in enumerate(self.outputs):
            known[f"d{i}"] = dtype
            size = [sizes.source_of(expression, names, others) for expression in shape]
            yield f"o{i} = empty({_tuple(size)}, {_tuple(_row_major(shape, names, others))}, d{i})"
        key = _tuple([f"int(arguments[{place}])" for place in self.free])
        run = f"session_for({key})" if self.free else "run"
        inputs = ", ".join(f"number(arguments[{place}])" if order == "number" else
                           f"arguments[{place}]" + ("" if order is None else f".permute({order})")
                           for place, order in self.inputs)
        states = ", ".join(f"arguments[{place}]" for place in self.states)
        outputs = ", ".join(f"o{i}" for i in range(len(self.outputs)))
        yield f"{run}([{inputs}], [{outputs}], [{states}], False)"
        if self.states:
            yield f"changed([{states}])"
        own = len(self.outputs) - len(self.copied)
        for i, place in enumerate(self.copied):
            yield f"arguments[{place}].copy_(o{own + i})"
        for i, (_, shape, strides, order) in enumerate(self.outputs[:own]):
            if order is not None:
                yield f"o{i} = o{i}.permute({order})"
            elif strides is not None:
                size = [sizes.source_of(expression, names, others) for expression in shape]
                stride = [sizes.source_of(expression, names, others) for expression in strides]
                yield f"o{i} = strided(o{i}, {_tuple(size)}, {_tuple(stride)})"
        results = []
        for i, (kind, value) in enumerate(self.results):
            if kind == "output":
                results.append(f"o{value}")
            elif kind == "number":
                results.append(f"o{value}.item()")
            elif kind == "argument":
                results.append(f"arguments[{value}]")
            elif kind == "size":
                results.append(sizes.source_of(value, names, others))
            else:
                known[f"c{i}"] = value
                results.append(f"c{i}")
        yield f"return [{', '.join(results)}]" if self.is_list else f"return {results[0]}"

    def function(self, run, session_for):
        """call(arguments): `run` is that of the only session, `session_for(numbers)` gives it where numbers choose."""
        known = {"run": run, "session_for": session_for, "empty": getattr(
            torch._C._dynamo.guards, "_empty_strided_cpu", _empty), "strided": _strided, "changed": _changed, "number": _number,
            "evaluate": sizes.evaluate, "others": []}
        source = "def call(arguments):\n" + "".join(f"    {line}\n" for line in self._lines(known))
        exec(compile(source, "<fornax.torch>", "exec"), known)
        return known["call"]
