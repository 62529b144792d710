"""A graph on the device: called as the graph's module is."""

import threading

import torch

from . import capture, library, sizes


def _dense(tensor):
    """The tensor as the library reads it: its elements in row-major order."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor.contiguous()


class Compiled:
    """Runs an FX graph of core ATen that Fornax has as a whole.

    Symbols that the sizes of tensors do not tell, numbers that the program is called with, are constants of a file;
    other values of them get a file of their own.
    """

    def __init__(self, graph_module, weights=None, options=None, dynamic=True):
        self._module = graph_module
        self._weights = weights or {}
        self._options = dict(options or {})
        self._dynamic = dynamic
        self._lock = threading.Lock()
        self._sessions = {}
        self._placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        writer = capture.Writer(graph_module, self._weights)
        self._learn(writer)
        self._free = [node for node in self._placeholders
                      if isinstance(capture.value_of(node), torch.SymInt)
                      and not (sizes.expression_of(capture.value_of(node)).free_symbols <= self._open)]
        self.problems = self._problems(writer)
        self.file = None
        if not self.problems:
            # A first file, so that what cannot be compiled is told now.
            self.file = writer.program.to_bytes()
            if not self._free:
                self._sessions[()] = self._session(writer, self.file)

    def _learn(self, writer):
        """How arguments become inputs, and outputs results."""
        self._open = writer.open_symbols
        places = {node: i for i, node in enumerate(self._placeholders)}
        self._inputs = [places[node] for node in writer.inputs]
        self._mutated = [places[node] for node in writer.mutations]
        self._bindings = []  # (symbol, factor, argument, axis)
        bound = set()
        for node in writer.inputs:
            for axis, size in enumerate(capture.value_of(node).shape):
                if isinstance(size, torch.SymInt):
                    factor, symbol = size.node.expr.as_coeff_Mul()
                    if symbol.is_Symbol and symbol not in bound and symbol in self._open:
                        bound.add(symbol)
                        self._bindings.append((symbol, int(factor), places[node], axis))
        for node in self._placeholders:
            value = capture.value_of(node)
            if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol and value.node.expr not in bound:
                bound.add(value.node.expr)
                self._bindings.append((value.node.expr, 1, places[node], None))
        output = next(node for node in self._module.graph.nodes if node.op == "output")
        self._is_list = isinstance(output.args[0], (list, tuple))
        self._made = []  # dtype, sizes and strides of each output of the file
        self._results = []
        for output in writer.outputs:
            if isinstance(output, tuple):
                self._results.append(("output", len(self._made)))
                self._made.append(self._layout(capture.value_of(output[0])))
            elif isinstance(output, torch.fx.Node) and output in places:
                self._results.append(("argument", places[output]))
            elif isinstance(output, torch.fx.Node):
                value = capture.value_of(output)
                self._results.append(("size", sizes.expression_of(value)) if isinstance(value, torch.SymInt)
                                     else ("constant", value))
            else:
                self._results.append(("constant", output))
        for node in writer.mutations:
            self._made.append(self._layout(capture.value_of(node)))

    @staticmethod
    def _layout(value):
        # Overlapping elements cannot be written one by one.
        is_dense = value.is_contiguous() or any(
            isinstance(stride, int) and stride == 0 for stride in value.stride())
        return (value.dtype, [sizes.expression_of(size) for size in value.shape],
                None if is_dense else [sizes.expression_of(stride) for stride in value.stride()])

    def _problems(self, writer):
        problems = dict(writer.problems)
        for number, reason in library.check(writer.program.to_bytes()):
            problems.setdefault(writer.nodes[number], reason)
        return problems

    def _session(self, writer, file):
        options = dict(self._options)
        if self._dynamic and self._open:
            options.setdefault("dynamic", True)
        return library.Session(file, *writer.names(), options)

    def _session_for(self, arguments):
        key = tuple(int(arguments[self._placeholders.index(node)]) for node in self._free)
        session = self._sessions.get(key)
        if session is None:
            fixed = {capture.value_of(node).node.expr: value for node, value in zip(self._free, key)}
            writer = capture.Writer(self._module, self._weights, fixed)
            session = self._sessions[key] = self._session(writer, writer.program.to_bytes())
        return session

    def __call__(self, *arguments):
        bindings = {symbol: (arguments[place] if axis is None else arguments[place].shape[axis]) // factor
                    for symbol, factor, place, axis in self._bindings}

        def number(expression):
            return int(expression) if expression.is_Integer else sizes.evaluate(expression, bindings)

        inputs = [_dense(arguments[place]) for place in self._inputs]
        outputs = [torch.empty([number(size) for size in shape], dtype=dtype) for dtype, shape, _ in self._made]
        with self._lock:
            self._session_for(arguments).run(inputs, outputs)
        own = len(self._made) - len(self._mutated)
        for place, value in zip(self._mutated, outputs[own:]):
            arguments[place].copy_(value)
        for i, (_, _, strides) in enumerate(self._made[:own]):
            if strides is not None:
                like = torch.empty_strided(outputs[i].shape, [number(stride) for stride in strides],
                                           dtype=outputs[i].dtype)
                outputs[i] = like.copy_(outputs[i])
        results = []
        for kind, value in self._results:
            if kind == "output":
                results.append(outputs[value])
            elif kind == "argument":
                results.append(arguments[value])
            elif kind == "size":
                results.append(number(value))
            else:
                results.append(value)
        return results if self._is_list else results[0]
