"""torch.compile(model, backend="fornax"): graphs of core ATen on the device, the rest in torch."""

import functools
import threading
import warnings

import torch
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils._python_dispatch import _disable_current_modes

from .._errors import Error
from . import capture, decompositions
from .compiled import Compiled

_MODES = ("run", "trace", "eager")
_PLANNED = ("compile", "codegen", "simulate")
_PRECISIONS = {"highest": "highest", "high": "high", "medium": "medium"}

_told = set()
_told_lock = threading.Lock()


class UnsupportedGraph(RuntimeError):
    """Nodes that Fornax does not run, in strict mode."""


def sentence(problems):
    """All nodes that are not supported, with their lines."""
    kinds = {}
    for node, reason in problems.items():
        kinds.setdefault((capture.target_name(node), reason), []).append(node)
    parts = []
    for (target, reason), nodes in kinds.items():
        line = capture.source_line(nodes[0])
        where = f" at {line}" if line else ""
        what = f"the node {nodes[0].name}" if len(nodes) == 1 else f"{len(nodes)} nodes as {nodes[0].name}"
        parts.append(f"{what} ({target}){where}: {reason}")
    return "; ".join(parts)


def _tell(problems):
    """Warns of each operator and reason once a process."""
    new = {}
    with _told_lock:
        for node, reason in problems.items():
            key = (capture.target_name(node), reason)
            if key not in _told:
                _told.add(key)
                new[node] = reason
    if new:
        warnings.warn(f"Fornax leaves a part of the graph to torch: {sentence(new)}.", stacklevel=2)


class _Support(OperatorSupportBase):
    def __init__(self, problems):
        self._problems = problems

    def is_node_supported(self, submodules, node):
        del submodules
        if node in self._problems:
            return False
        if node.op != "call_function":
            return False
        # A part of a list goes where the list is made.
        source = node.args[0] if node.args and capture.target_name(node) == "getitem" else None
        return not (isinstance(source, torch.fx.Node) and source in self._problems)


def _without_copies(module):
    """The module without the copies to inputs at its end, which are outputs instead: (module, places of these inputs)."""
    graph = module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    output = next(node for node in graph.nodes if node.op == "output")
    places, values = [], []
    for node in list(graph.nodes):
        if capture.target_name(node) == "aten.copy_.default" and node.args[0] in placeholders:
            places.append(placeholders.index(node.args[0]))
            values.append(node.args[1])
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
    if places:
        output.args = (tuple(output.args[0]) + tuple(values),)
        graph.lint()
        module.recompile()
    return module, places


class Backend:
    """A backend of torch.compile.

    mode: "run"; "trace", which prints the graph first; "eager", which leaves it to torch.
    strict: raises UnsupportedGraph, naming nodes and source lines, where torch would run a part.
    precision: of products of f32: "highest", "high" or "medium"; by default what
        torch.get_float32_matmul_precision() says when a graph is compiled.
    dynamic: whether one plan serves all sizes that torch left open; else each size has a plan of its own, which is faster.
    freeze: whether parameters are constants of graphs without gradients. A graph is compiled anew without that if they
        change.
    options: keywords of fornax.load(): device, cache, ...
    verbose: prints what is compiled.
    """

    def __init__(self, mode="run", *, strict=False, precision=None, dynamic=True, freeze=True, verbose=False,
                 options=None):
        if mode in _PLANNED:
            raise NotImplementedError(f"The mode {mode!r} is not there yet; the modes are {', '.join(_MODES)}.")
        if mode not in _MODES:
            raise ValueError(f"The mode is one of {', '.join(_MODES)}; it is {mode!r}.")
        if precision is not None and precision not in _PRECISIONS:
            raise ValueError(f"The precision is one of {', '.join(_PRECISIONS)}; it is {precision!r}.")
        self.mode = mode
        self.strict = strict
        self.precision = precision
        self.dynamic = dynamic
        self.freeze = freeze
        self.verbose = verbose
        self.options = dict(options or {})
        self.fallbacks = []  # (target, reason) of nodes that torch runs
        self.segments = 0  # graphs and parts of graphs on the device
        self.__name__ = "fornax"

    def __call__(self, graph_module, example_inputs, **_):
        if self.mode == "eager":
            return graph_module.forward
        frozen = self._frozen(graph_module, example_inputs)
        training = torch.is_grad_enabled() and any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs)
        compile_any = functools.partial(self._compile, frozen={})
        return aot_module_simplified(
            graph_module, example_inputs, fw_compiler=compile_any, bw_compiler=compile_any,
            inference_compiler=functools.partial(self._compile, frozen=frozen),
            partition_fn=min_cut_rematerialization_partition, decompositions=decompositions.table(training),
            keep_inference_input_mutations=True)

    def _frozen(self, graph_module, example_inputs):
        """Parameters and buffers by the place that they are passed in."""
        if not self.freeze or any(True for _ in graph_module.parameters()) or any(True for _ in graph_module.buffers()):
            return {}
        frozen = {}
        for place, value in enumerate(example_inputs):
            if isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None:
                if type(value) in (torch.Tensor, torch.nn.Parameter) and not value.is_inference():
                    frozen[place] = value
        frozen["count"] = len(example_inputs)
        return frozen

    def _library_options(self):
        precision = self.precision or torch.get_float32_matmul_precision()
        return {"precision": precision, **self.options}

    def _compile(self, graph_module, example_inputs, frozen):
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        weights = {}
        if frozen and len(placeholders) == frozen["count"]:
            changed = {node.args[0] for node in graph_module.graph.nodes
                       if capture.target_name(node) == "aten.copy_.default"}
            for place, value in frozen.items():
                if place != "count" and placeholders[place] not in changed:
                    weights[placeholders[place].name] = value
        run = self.compile_graph(graph_module, weights)
        if weights:
            run = _Frozen(run, {i: weights[node.name] for i, node in enumerate(placeholders) if node.name in weights},
                          functools.partial(self.compile_graph, graph_module, {}))

        def boxed(arguments):
            arguments = list(arguments)
            result = run(*arguments)
            return result

        boxed._boxed_call = True
        return boxed

    def compile_graph(self, graph_module, weights=None):
        """A callable for an FX graph of core ATen with torch's meta data; it takes and gives what the graph does."""
        # torch compiles with tensors without data as a default; weights have theirs.
        with _disable_current_modes():
            return self._compile_graph(graph_module, weights)

    def _compile_graph(self, graph_module, weights):
        if self.mode == "trace":
            print(graph_module.graph)
        options = self._library_options()
        compiled = self._try(graph_module, weights, options)
        if isinstance(compiled, Compiled) and not compiled.problems:
            self._count(graph_module)
            return compiled
        problems = compiled.problems if isinstance(compiled, Compiled) else compiled
        if self.strict:
            raise UnsupportedGraph(f"Fornax does not run the graph as a whole: {sentence(problems)}.")
        return self._in_segments(graph_module, problems, options)

    def _try(self, graph_module, weights, options):
        """The compiled graph, which may have problems, or the problems of one that cannot be compiled."""
        try:
            return Compiled(graph_module, weights, options, self.dynamic)
        except Error as error:
            nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
            return {node: f"its graph cannot be compiled: {error}" for node in nodes[-1:]}

    def _count(self, graph_module):
        self.segments += 1
        if self.verbose:
            count = sum(node.op == "call_function" for node in graph_module.graph.nodes)
            print(f"fornax: a graph of {count} nodes is on the device")

    def _in_segments(self, graph_module, problems, options):
        _tell(problems)
        self.fallbacks += [(capture.target_name(node), reason) for node, reason in problems.items()]
        module, places = _without_copies(graph_module)
        if any(getattr(node.target, "_schema", None) is not None and node.target._schema.is_mutable
               for node in module.graph.nodes):
            return module  # parts of it might see values before or after a change
        partitioner = CapabilityBasedPartitioner(module, _Support(problems), allows_single_node_partition=True)
        fused = partitioner.fuse_partitions(partitioner.propose_partitions())
        for name, part in list(fused.named_children()):
            if not name.startswith("fused_"):
                continue
            compiled = self._try(part, None, options)
            if isinstance(compiled, Compiled) and not compiled.problems:
                self._count(part)
                setattr(fused, name, _AsModule(compiled))
                continue
            more = compiled.problems if isinstance(compiled, Compiled) else compiled
            _tell(more)
            self.fallbacks += [(capture.target_name(node), reason) for node, reason in more.items()]
        if not places:
            return fused

        def run(*arguments):
            results = fused(*arguments)
            own = len(results) - len(places)
            for place, value in zip(places, results[own:]):
                arguments[place].copy_(value)
            return results[:own]

        return run


class _AsModule(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, *arguments):
        return self._function(*arguments)


class _Frozen:
    """Runs a graph whose weights are constants as long as these are the same."""

    def __init__(self, run, weights, compile_without):
        self._run = run
        self._weights = {place: (value.data_ptr(), value._version) for place, value in weights.items()}
        self._keep = list(weights.values())
        self._compile_without = compile_without
        self._general = None

    def __call__(self, *arguments):
        if self._general is None:
            for place, (address, version) in self._weights.items():
                value = arguments[place]
                if value.data_ptr() != address or value._version != version:
                    self._general = self._compile_without()
                    break
            else:
                return self._run(*arguments)
        return self._general(*arguments)


def fornax(graph_module, example_inputs, **keywords):
    """The backend with its defaults, which the entry point names."""
    return Backend()(graph_module, example_inputs, **keywords)
