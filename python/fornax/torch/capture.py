"""FX graphs of core ATen as files that the library reads."""

import operator
import re

import torch

from . import floats, graph_file, orders, sizes
from .graph_file import argument
from .sizes import Unsupported

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def source_line(node):
    """Where the model's source has a node: "model.py:12", or ""."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""


def value_of(node):
    value = node.meta.get("val")
    return value if value is not None else node.meta.get("example_value")


def is_size(node):
    """Whether a node is a number of the program that no kernel computes."""
    return isinstance(value_of(node), (int, float, bool, torch.SymInt, torch.SymBool, torch.SymFloat))


def target_name(node):
    """"aten.add.Tensor"."""
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(
        node.target, "__name__", str(node.target))


def bytes_of(tensor):
    """The elements of a tensor in row-major order: bytes-like, without a copy where they lie so already."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else b""


# Conditions that tracing has checked already, and hints.
_IGNORED = {"aten._assert_async.msg", "aten._assert_scalar.default", "aten._assert_tensor_metadata.default",
            "aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default"}


class Writer:
    """Writes a graph.

    weights: tensors by the names of placeholders whose values never change; others are inputs.
    fixed: values of symbols that the sizes of inputs do not tell.
    names: what symbols are called in the file.
    in_place: whether inputs that change do so in their own memory, where their sizes are numbers.
    """

    def __init__(self, graph_module, weights=None, fixed=None, with_guards=False, in_place=False, names=None):
        self._module = graph_module
        self._weights = weights or {}
        self.program = graph_file.Program(f"torch {torch.__version__}")
        self.inputs = []  # the placeholders that are inputs of the file
        self.is_list = True  # whether the graph gives a list, or a value
        self.outputs = []  # for each output of the graph: the number of the file's, or what it is
        self.mutations = []  # placeholders that change, in order of the file's outputs behind its own
        self.states = []  # placeholders that change in place; they are among the inputs
        self._in_place = in_place
        self.nodes = []  # the nodes of the file, by number
        self.weight_nodes = []  # the placeholder or constant that each weight of the file is
        self.problems = {}  # nodes that the file cannot say: why
        self._values = {}  # tensors by node
        self._floats = floats.Floats(self)
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        tensors = [value_of(node) for node in placeholders
                   if isinstance(value_of(node), torch.Tensor) and node.name not in self._weights]
        every = [value for node in graph_module.graph.nodes for value in _flat(value_of(node))
                 if isinstance(value, (torch.Tensor, torch.SymInt))]
        self._shape_env = sizes.shape_env_of(every)
        self.open_symbols = sizes.own_symbols(tensors)
        numbers = [value_of(node) for node in placeholders if isinstance(value_of(node), torch.SymInt)]
        fixed = fixed or {number.node.expr: number.node.hint for number in numbers if not number.node.expr.is_Symbol}
        self._told = self.open_symbols.union(
            (number.node.expr for number in numbers if number.node.expr.is_Symbol),
            (expression for expression in fixed if expression.is_Symbol))
        self._sizes = sizes.Sizes(self.program, self._shape_env, self.open_symbols, self._told, fixed, names or {})
        for node in graph_module.graph.nodes:
            getattr(self, "_" + node.op)(node)
        if with_guards and self._shape_env is not None:
            for guard in self._shape_env.guards:
                self._sizes.guard(guard.expr)

    # --- Values ---

    def _declare(self, name, tensor):
        if tensor.layout != torch.strided:
            raise Unsupported(f"it is a tensor of the layout {tensor.layout}")
        if tensor.device.type not in ("cpu", "meta"):
            raise Unsupported(f"it is a tensor on the device {tensor.device}")
        element = str(tensor.dtype).removeprefix("torch.")
        if element not in graph_file.ELEMENTS:
            raise Unsupported(f"it has elements of type {element}")
        return self.program.value(name, element, [self._sizes.number(size) for size in tensor.shape])

    def _add_weight(self, node, tensor):
        tensor = tensor.detach()
        if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_quantized:
            raise Unsupported(f"it is a weight of the kind {tensor.device}, {tensor.layout}")
        value = self._declare(node.name, tensor)
        self.program.weight(value, bytes_of(tensor))
        self.weight_nodes.append(node)
        self._values[node] = value

    # --- Nodes, by their kind ---

    def _placeholder(self, node):
        value = value_of(node)
        if isinstance(value, torch.SymFloat) and node.users:
            self._floats.add_input(node)
            self.inputs.append(node)
        if not isinstance(value, torch.Tensor):
            return
        try:
            if node.name in self._weights:
                self._add_weight(node, self._weights[node.name])
                return
            self._check_sizes(value)
            order = orders.of(node)
            given = self._declare(node.name, value if order is None else value.permute(order))
            number = given if order is None else self._permuted(node, given, value, orders.inverse(order))
        except Unsupported as reason:
            self.problems[node] = str(reason)
            return
        self._values[node] = number
        self.program.input(node.name, given)
        self.inputs.append(node)

    def _check_sizes(self, tensor):
        """A part of a graph may have an input of n - 2 elements and none that tells n."""
        for size in tensor.shape:
            untold = sizes.expression_of(size).free_symbols - self._told
            if untold:
                raise Unsupported(f"no input tells {min(map(str, untold))} of its size {sizes.expression_of(size)}")

    def _permuted(self, node, number, tensor, axes):
        """A value in another order of its axes; `tensor` has the shape of that."""
        result = self._declare(node.name, tensor)
        arguments = [argument("self", graph_file.ARG_VALUE, number), self.argument_of("dims", list(axes))]
        self.add_node(node, "aten.permute.default", node.name, arguments, [result])
        return result

    def _get_attr(self, node):
        value = self._module
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return  # a graph of a branch: whoever uses it is not supported
        try:
            self._add_weight(node, value)
        except Unsupported as reason:
            self.problems[node] = str(reason)

    def _call_module(self, node):
        self.problems[node] = "it calls a module"

    def _call_method(self, node):
        self.problems[node] = "it calls a method"

    def _call_function(self, node):
        if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
            if node not in self._values and node.args[0] not in self.problems and not is_size(node):
                self.problems[node] = "it takes a part of a value that is no list of tensors"
            return
        if is_size(node) or target_name(node) in _IGNORED:
            if isinstance(value_of(node), torch.SymFloat) and not all(is_size(user) for user in node.users):
                try:
                    self._floats.value(node, "float64")
                except Unsupported as reason:
                    self.problems[node] = str(reason)
            return
        if target_name(node) == "aten.copy_.default" and node.args[0].op == "placeholder":
            if node.args[0] in self.inputs and node.args[1] in self._values:
                self._mutate(node.args[0], node.args[1])
                self._values[node] = self._values[node.args[1]]
                return
        try:
            self._write(node)
        except Unsupported as reason:
            self.problems[node] = str(reason)

    def _mutate(self, placeholder, node):
        number = self.inputs.index(placeholder)
        if self._in_place and placeholder not in self.states and _may_be_state(value_of(placeholder)):
            self.program.mutation(number, self._values[node], in_place=True)
            self.states.append(placeholder)
            return
        self.program.mutation(number, self._values[node])
        self.mutations.append(placeholder)

    def _write(self, node):
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Unsupported("it is no operator of ATen")
        name = target_name(node)
        if name.startswith("aten.as_strided"):
            source = value_of(node.args[0])
            if not source.is_contiguous() or source.storage_offset() != 0:
                raise Unsupported("it views a tensor by strides that is not contiguous")
        arguments = self._arguments(node)
        value = value_of(node)
        results = []
        made = {}
        if isinstance(value, torch.Tensor):
            results.append(self._declare(node.name, value))
            made[node] = results[0]
        elif isinstance(value, (list, tuple)):
            users = {}
            for user in node.users:
                if user.target is operator.getitem:
                    users.setdefault(user.args[1], []).append(user)
            for i, part in enumerate(value):
                if i not in users or part is None:
                    results.append(graph_file.NO_VALUE)
                    continue
                results.append(self._declare(users[i][0].name, part))
                made.update((user, results[-1]) for user in users[i])
        elif value is not None:
            raise Unsupported("its result is no tensor")
        if not results:
            return
        self._values.update(made)
        self.add_node(node, name, node.name, arguments, results)

    def add_node(self, node, target, name, arguments, results):
        """Adds a node of the file, which is of a node of the graph."""
        number = self.program.node(target, name, source_line(node), arguments, results)
        assert number == len(self.nodes)
        self.nodes.append(node)

    def _arguments(self, node):
        element = floats.element_for([*map(value_of, node.all_input_nodes), *_flat(value_of(node))])
        schema = node.target._schema.arguments
        given = list(node.args)
        written = []
        for i, formal in enumerate(schema):
            if i < len(given):
                value = given[i]
            elif formal.name in node.kwargs:
                value = node.kwargs[formal.name]
            else:
                value = formal.default_value
            written.append(self.argument_of(formal.name, value, element))
        return written

    def argument_of(self, name, value, element="float32"):
        """An argument of a node of the file. Numbers with a fraction that depend on sizes are of the type `element`."""
        if isinstance(value, torch.fx.Node):
            if value in self._values:
                return argument(name, graph_file.ARG_VALUE, self._values[value])
            if isinstance(value_of(value), torch.SymFloat):
                if value in self.problems:
                    self._floats.add_input(value)  # as it is of a part of the graph
                return argument(name, graph_file.ARG_VALUE, self._floats.value(value, element))
            if isinstance(value_of(value), torch.SymInt) and not self._sizes.can_say(value_of(value)):
                return argument(name, graph_file.ARG_VALUE, self._floats.value(value, "int64"))
            if is_size(value) and value not in self.problems:
                return self.argument_of(name, value_of(value))
            raise Unsupported(f"its argument {name} is of a node that is not supported")
        if value is None or isinstance(value, (torch.layout, torch.memory_format, torch.Generator)):
            return argument(name, graph_file.ARG_NONE)
        if isinstance(value, torch.device):
            if value.type != "cpu":
                raise Unsupported(f"its argument {name} is the device {value}")
            return argument(name, graph_file.ARG_NONE)
        if isinstance(value, bool):
            return argument(name, graph_file.ARG_BOOL, int(value))
        if isinstance(value, (int, torch.SymInt)):
            if not -2**63 <= (value if isinstance(value, int) else 0) < 2**63:
                raise Unsupported(f"its argument {name} is {value}")
            return argument(name, graph_file.ARG_SIZE, self._sizes.number(value))
        if isinstance(value, float):
            return argument(name, graph_file.ARG_FLOAT, number=value)
        if isinstance(value, str):
            return argument(name, graph_file.ARG_TEXT, text=value)
        if isinstance(value, torch.dtype):
            element = str(value).removeprefix("torch.")
            if element not in graph_file.ELEMENTS:
                raise Unsupported(f"its argument {name} is the type {element}")
            return argument(name, graph_file.ARG_TYPE, graph_file.ELEMENTS[element])
        if isinstance(value, (list, tuple)):
            return argument(name, graph_file.ARG_LIST, items=[self.argument_of(None, item, element) for item in value])
        raise Unsupported(f"its argument {name} is a {type(value).__name__}")

    def _output(self, node):
        names = set()
        self.is_list = isinstance(node.args[0], (list, tuple))
        by_place = orders.of_outputs(node)
        for place, item in enumerate(node.args[0] if self.is_list else [node.args[0]]):
            if not isinstance(item, torch.fx.Node):
                self.outputs.append(item)
            elif item in self._values and item not in self.inputs:
                name = item.name
                while name in names:
                    name += "_"
                names.add(name)
                order, number = by_place.get(place), self._values[item]
                if order is not None:
                    number = self._permuted(item, number, value_of(item).permute(order), order)
                self.outputs.append((item, len(self.program.fields["outputs"]), order))
                self.program.output(name, number)
            elif isinstance(value_of(item), torch.SymFloat) and item not in self.inputs and item not in self.problems:
                self.outputs.append((item, len(self.program.fields["outputs"]), None))
                self.program.output(item.name, self._floats.value(item, "float64"))
            else:
                self.outputs.append(item)

    def names(self):
        """The names of the model's inputs, and those of its outputs in the order of its graph."""
        fields = self.program.fields
        return ([node.name for node in self.inputs if node not in self.states],
                [port["name"] for port in fields["outputs"]] + [f"mutated.{node.name}" for node in self.mutations])

    def mark_mutation(self, placeholder_name, node):
        """At the end the input holds the value of a node: for graphs that give it back as an output."""
        by_name = {placeholder.name: placeholder for placeholder in self.inputs}
        self._mutate(by_name[placeholder_name], node)


def _may_be_state(value):
    """Whether all of a tensor's memory is its elements in row-major order, of sizes that are numbers."""
    return value.is_contiguous() and value.numel() > 0 and all(
        isinstance(size, int) and not isinstance(size, torch.SymInt) for size in value.shape)


def _flat(value):
    return value if isinstance(value, (list, tuple)) else [value]
