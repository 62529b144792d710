"""A graph on the device: called as the graph's module is."""

import threading

import torch

from . import call, capture, library, orders, sizes


class Program:
    """What sessions of a graph are made from, less the values of its parameters. It can be pickled.

    structure: the file of the graph without header and weights.
    weights: for each weight of the file what it holds, which is bytes-like, or the place of the argument that it is.
    layout: a call.Layout.
    states: (name, dtype) of inputs that change in place.
    is_open: whether sizes are open.
    """

    def __init__(self, writer, placeholders, structure):
        places = {node: place for place, node in enumerate(placeholders)}
        self.structure = structure
        self.weights = [places.get(node, data) for node, data in zip(writer.weight_nodes, writer.program.weights)]
        self.layout = _layout(writer, placeholders)
        self.states = [(node.name, capture.value_of(node).dtype) for node in writer.states]
        self.is_open = bool(writer.open_symbols)

    def __getstate__(self):
        weights = [weight if isinstance(weight, int) else bytes(weight) for weight in self.weights]
        return {**self.__dict__, "weights": weights}

    @property
    def weight_places(self):
        return [weight for weight in self.weights if isinstance(weight, int)]

    def file(self, arguments):
        """The whole file, as library.file_of() makes it. `arguments[place]` is the tensor of a weight."""
        return library.file_of(self.structure, [
            capture.bytes_of(arguments[weight]) if isinstance(weight, int) else weight for weight in self.weights])

    def session(self, file, options, dynamic):
        """A library.Session of the file."""
        if dynamic and self.is_open:
            options = {"dynamic": True, **options}
        return library.Session(file, options, self.states)


def _layout(writer, placeholders):
    """How arguments become inputs, and outputs results."""
    layout = call.Layout()
    places = {node: i for i, node in enumerate(placeholders)}
    layout.inputs = [(places[node], "number" if capture.is_size(node) else orders.of(node))
                     for node in writer.inputs if node not in writer.states]
    layout.states = [places[node] for node in writer.states]
    layout.copied = [places[node] for node in writer.mutations]
    layout.free = [places[node] for node in free_numbers(writer, placeholders)]
    bound = set()
    for node in writer.inputs:
        for axis, size in enumerate(getattr(capture.value_of(node), "shape", ())):
            if isinstance(size, torch.SymInt):
                factor, symbol = size.node.expr.as_coeff_Mul()
                if symbol.is_Symbol and symbol not in bound and symbol in writer.open_symbols:
                    bound.add(symbol)
                    layout.bindings.append((symbol, int(factor), places[node], axis))
    for node in placeholders:
        value = capture.value_of(node)
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol and value.node.expr not in bound:
            bound.add(value.node.expr)
            layout.bindings.append((value.node.expr, 1, places[node], None))
    layout.is_list = writer.is_list
    for output in writer.outputs:
        if isinstance(output, tuple):
            layout.results.append(("number" if capture.is_size(output[0]) else "output", len(layout.outputs)))
            layout.outputs.append(_output(capture.value_of(output[0]), output[2]))
        elif isinstance(output, torch.fx.Node) and output in places:
            layout.results.append(("argument", places[output]))
        elif isinstance(output, torch.fx.Node):
            value = capture.value_of(output)
            layout.results.append(("size", sizes.expression_of(value)) if isinstance(value, torch.SymInt)
                                  else ("constant", value))
        else:
            layout.results.append(("constant", output))
    for node in writer.mutations:
        layout.outputs.append(_output(capture.value_of(node)))
    return layout


def _output(value, order=None):
    if isinstance(value, torch.SymFloat):
        return (torch.float64, [], None, None)
    if order is not None:
        return (value.dtype, [sizes.expression_of(value.shape[axis]) for axis in order], None, orders.inverse(order))
    # Overlapping elements cannot be written one by one.
    is_dense = value.is_contiguous() or any(
        isinstance(stride, int) and stride == 0 for stride in value.stride())
    return (value.dtype, [sizes.expression_of(size) for size in value.shape],
            None if is_dense else [sizes.expression_of(stride) for stride in value.stride()], None)


def free_numbers(writer, placeholders):
    """Placeholders of numbers that the sizes of tensors do not tell."""
    return [node for node in placeholders if isinstance(capture.value_of(node), torch.SymInt)
            and not sizes.expression_of(capture.value_of(node)).free_symbols <= writer.open_symbols]


class Compiled:
    """Runs an FX graph of core ATen that Fornax has as a whole.

    Symbols that the sizes of tensors do not tell, numbers that the program is called with, are constants of a file;
    other values of them get a file of their own. `call(arguments)` takes a list, the object itself arguments in order.
    `observe` is given the report of the session after each run, which then takes the time of each step.
    `program` is a Program; None if such numbers choose the file, or if there are problems.
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
        self._free = free_numbers(writer, self._placeholders)
        structure = writer.program.structure()
        file = library.file_of(structure, writer.program.weights)
        self.problems = dict(writer.problems)
        for number, reason in library.check(file):
            self.problems.setdefault(writer.nodes[number], reason)
        self.call = self.program = None
        if not self.problems:
            program = Program(writer, self._placeholders, structure)
            self.program = None if self._free else program
            # What cannot be compiled is told now.
            run = None if self._free else self._run_of(program, file)
            self.call = program.layout.function(run, self._session_for)

    def _run_of(self, program, file):
        """The function that runs a file."""
        options = self._options if self._observe is None else {**self._options, "report": True}
        session = program.session(file, options, self._dynamic)
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
                structure = writer.program.structure()
                run = self._sessions[numbers] = self._run_of(
                    Program(writer, self._placeholders, structure),
                    library.file_of(structure, writer.program.weights))
            return run

    def __call__(self, *arguments):
        return self.call(arguments)
