"""A graph on the device: called as the graph's module is."""

import threading

import torch

from . import call, capture, library, sizes


class Compiled:
    """Runs an FX graph of core ATen that Fornax has as a whole.

    Symbols that the sizes of tensors do not tell, numbers that the program is called with, are constants of a file;
    other values of them get a file of their own. `call(arguments)` takes a list, the object itself arguments in order.
    `observe` is given the report of the session after each run, which then takes the time of each step.
    """

    def __init__(self, graph_module, weights=None, options=None, dynamic=True, observe=None):
        self._module = graph_module
        self._weights = weights or {}
        self._options = dict(options or {})
        self._dynamic = dynamic
        self._observe = observe
        self._lock = threading.Lock()
        self._sessions = {}
        self._placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        writer = capture.Writer(graph_module, self._weights, in_place=True)
        self._open = writer.open_symbols
        self._free = [node for node in self._placeholders
                      if isinstance(capture.value_of(node), torch.SymInt)
                      and not (sizes.expression_of(capture.value_of(node)).free_symbols <= self._open)]
        self.problems = self._problems(writer)
        self.call = None
        if not self.problems:
            # A first file, so that what cannot be compiled is told now.
            file = writer.program.to_bytes()
            run = None if self._free else self._run_of(writer, file)
            self.call = self._layout(writer).function(run, self._session_for)

    def _layout(self, writer):
        """How arguments become inputs, and outputs results."""
        layout = call.Layout()
        places = {node: i for i, node in enumerate(self._placeholders)}
        layout.inputs = [places[node] for node in writer.inputs if node not in writer.states]
        layout.states = [places[node] for node in writer.states]
        layout.copied = [places[node] for node in writer.mutations]
        layout.free = [places[node] for node in self._free]
        bound = set()
        for node in writer.inputs:
            for axis, size in enumerate(capture.value_of(node).shape):
                if isinstance(size, torch.SymInt):
                    factor, symbol = size.node.expr.as_coeff_Mul()
                    if symbol.is_Symbol and symbol not in bound and symbol in self._open:
                        bound.add(symbol)
                        layout.bindings.append((symbol, int(factor), places[node], axis))
        for node in self._placeholders:
            value = capture.value_of(node)
            if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol and value.node.expr not in bound:
                bound.add(value.node.expr)
                layout.bindings.append((value.node.expr, 1, places[node], None))
        output = next(node for node in self._module.graph.nodes if node.op == "output")
        layout.is_list = isinstance(output.args[0], (list, tuple))
        for output in writer.outputs:
            if isinstance(output, tuple):
                layout.results.append(("output", len(layout.outputs)))
                layout.outputs.append(self._output(capture.value_of(output[0])))
            elif isinstance(output, torch.fx.Node) and output in places:
                layout.results.append(("argument", places[output]))
            elif isinstance(output, torch.fx.Node):
                value = capture.value_of(output)
                layout.results.append(("size", sizes.expression_of(value)) if isinstance(value, torch.SymInt)
                                      else ("constant", value))
            else:
                layout.results.append(("constant", output))
        for node in writer.mutations:
            layout.outputs.append(self._output(capture.value_of(node)))
        return layout

    @staticmethod
    def _output(value):
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

    def _run_of(self, writer, file):
        """The function that runs a file."""
        options = dict(self._options)
        if self._dynamic and self._open:
            options.setdefault("dynamic", True)
        if self._observe is not None:
            options["report"] = True
        session = library.Session(file, options,
                                  [(node.name, capture.value_of(node).dtype) for node in writer.states])
        if self._observe is None:
            return session.run

        def run(inputs, outputs, states, profile):
            del profile
            session.run(inputs, outputs, states, True)
            self._observe(session.report())

        return run

    def _session_for(self, numbers):
        with self._lock:
            run = self._sessions.get(numbers)
            if run is None:
                fixed = {capture.value_of(node).node.expr: value for node, value in zip(self._free, numbers)}
                writer = capture.Writer(self._module, self._weights, fixed, in_place=True)
                run = self._sessions[numbers] = self._run_of(writer, writer.program.to_bytes())
            return run

    def __call__(self, *arguments):
        return self.call(arguments)
