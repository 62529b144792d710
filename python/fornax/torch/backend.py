"""torch.compile(model, backend="fornax"): graphs of core ATen on the device, the rest in torch."""

import itertools
import json
import pathlib
import threading
import warnings

import torch
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils._python_dispatch import _disable_current_modes

from .._errors import Error
from . import capture, codegen, decompositions, frozen, kept, orders, reports
from .compiled import Compiled
from .prepare import prepare

_MODES = ("run", "trace", "compile", "codegen", "simulate", "eager")
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

    mode: what happens besides running the graphs on the device:
        "run": nothing.
        "trace": a table of each graph's nodes is printed, before it is compiled.
        "compile": files of each graph are written to `output_dir`: nodes, the compiler's graph with sizes and types,
            the plan, where memory lies, operations and bytes of each kernel, and why values lie in memory.
        "codegen": a folder of `output_dir` for each graph gets a program in C that computes it (docs/codegen.md): NAME.c,
            NAME.h, NAME_weights.c, NAME_weights.bin, NAME.ld, Makefile, the graph's file NAME.fnx, and NAME_inputs.bin, the
            inputs of its first run. Parameters are constants of it where there are no gradients. A graph without a program,
            because of open sizes for one, is a warning, and an error if `strict`.
        "simulate": operations and bytes of each kernel are printed after the first run with new sizes, and its modelled
            time on the machine that the environment variable FORNAX_NPU describes (docs/npu.md).
        "eager": torch runs everything.
    strict: raises UnsupportedGraph, naming nodes and source lines, where torch would run a part.
    precision: of products of f32: "highest", "high" or "medium"; by default what
        torch.get_float32_matmul_precision() says when a graph is compiled.
    dynamic: whether one plan serves all sizes that torch left open; else each size has a plan of its own, which is faster.
    freeze: whether parameters are constants of graphs without gradients. A graph is compiled anew without that if they
        change.
    options: keywords of fornax.load(): device, cache, ...
    verbose: prints what is compiled, and what runs in torch.
    output_dir: a folder, which is made, for the texts of "trace", "compile" and "simulate": NAME.nodes.txt, NAME.work.txt,
        ... with NAME graph_0, graph_1, ...; "compile" and "codegen" need it. Other sizes of a graph add .1, .2, ...
    observe: called with (name, graph module, report) after each run of a graph on the device, which then takes the time of
        each kernel; see fornax.Session.report().
    """

    def __init__(self, mode="run", *, strict=False, precision=None, dynamic=True, freeze=True, verbose=False,
                 output_dir=None, options=None, observe=None):
        if mode not in _MODES:
            raise ValueError(f"The mode is one of {', '.join(_MODES)}; it is {mode!r}.")
        if precision is not None and precision not in _PRECISIONS:
            raise ValueError(f"The precision is one of {', '.join(_PRECISIONS)}; it is {precision!r}.")
        if mode in ("compile", "codegen") and output_dir is None:
            raise ValueError(f"The mode {mode!r} writes files: output_dir says where.")
        self.mode = mode
        self.output_dir = None if output_dir is None else pathlib.Path(output_dir)
        self.observe = observe
        self.strict = strict
        self.precision = precision
        self.dynamic = dynamic
        self.freeze = freeze
        self.verbose = verbose
        self.options = dict(options or {})
        self.fallbacks = []  # (target, reason) of nodes that torch runs
        self.segments = 0  # graphs and parts of graphs on the device
        # (name, graph module, {node: reason} of what runs in torch). Graphs that torch's cache has kept have no module.
        self.graphs = []
        self.programs = []  # folders with programs in C
        self._numbers = itertools.count()
        self.__name__ = "fornax"

    def __call__(self, graph_module, example_inputs, **_):
        if self.mode == "eager":
            return graph_module.forward
        constants = self._constants(graph_module, example_inputs)
        options = self._library_options()
        arguments = {"partition_fn": min_cut_rematerialization_partition, "decompositions": decompositions.table(),
                     "keep_inference_input_mutations": True}
        if self._keeps() and kept.can_keep(graph_module):
            found = kept.Found(options, self.dynamic, constants, self._count_found)
            with kept.keeping(found):
                return aot_module_simplified(
                    graph_module, example_inputs, **arguments,
                    fw_compiler=kept.compiler(lambda graph, _: self._kept(self._forward(graph), found, {})),
                    bw_compiler=kept.compiler(
                        lambda graph, inputs: self._kept_backward(self._backward(graph, inputs), found)),
                    inference_compiler=kept.compiler(
                        lambda graph, _: self._kept(graph, found, self._weights(graph, constants, len(example_inputs)))))

        def compile_forward(graph, _):
            return self._boxed(self._forward(graph), {})

        def compile_backward(graph, inputs):
            return self._boxed(self._backward(graph, inputs), {})

        def compile_inference(graph, _):
            return self._boxed(graph, self._weights(graph, constants, len(example_inputs)))

        return aot_module_simplified(graph_module, example_inputs, **arguments, fw_compiler=compile_forward,
                                     bw_compiler=compile_backward, inference_compiler=compile_inference)

    def _forward(self, graph_module):
        # Programs in C have the sizes that the graph says.
        if self.mode != "codegen":
            orders.order_saved(graph_module)
        return graph_module

    def _backward(self, graph_module, inputs):
        if self.mode != "codegen":
            orders.order_placeholders(graph_module, inputs)
        return graph_module

    def _constants(self, graph_module, example_inputs):
        """Parameters and buffers by the place that they are passed in."""
        if not self.freeze or any(True for _ in graph_module.parameters()) or any(True for _ in graph_module.buffers()):
            return {}
        return {place: value for place, value in enumerate(example_inputs)
                if (isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None)
                and frozen.can_be_constant(value)}

    def _keeps(self):
        """Whether torch's cache keeps graphs: nothing but running them is asked for."""
        return self.mode == "run" and self.observe is None and self.options.get("cache") is not False

    def _library_options(self):
        precision = self.precision or torch.get_float32_matmul_precision()
        return {"precision": precision, **self.options}

    @staticmethod
    def _weights(graph_module, constants, count):
        """Tensors by the names of the placeholders that are constants, of a graph that is called with what Dynamo's is."""
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        if len(placeholders) != count:
            return {}
        changed = {node.args[0] for node in graph_module.graph.nodes
                   if capture.target_name(node) == "aten.copy_.default"}
        return {placeholders[place].name: value for place, value in constants.items() if placeholders[place] not in changed}

    def _boxed(self, graph_module, weights):
        """The function of a graph, which takes a list of arguments."""
        return self._callable(self.compile_graph(graph_module, weights), graph_module, weights)

    def _callable(self, run, graph_module, weights):
        call = _boxed(run)
        if weights:
            placeholders = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
            call = frozen.with_constants(call, {placeholders.index(name): value for name, value in weights.items()},
                                         lambda: _boxed(self.compile_graph(graph_module, {})))
        call._boxed_call = True
        return call

    def _kept(self, graph_module, found, weights):
        run = self.compile_graph(graph_module, weights)

        def programs():
            program = getattr(run, "program", None)
            if program is None:
                kept.bypass("a part of it runs in torch, or numbers choose its file")
            return [program] + ([kept.program_of(graph_module, {})] if weights else [])

        return kept.Graph(self._callable(run, graph_module, weights), programs, found)

    def _kept_backward(self, graph_module, found):
        """The same, compiled when it is first called: many forward graphs are called without it."""
        call = frozen.at_first_call(lambda _: self._boxed(graph_module, {}))
        return kept.Graph(call, lambda: [kept.program_of(graph_module, {})], found)

    def compile_graph(self, graph_module, weights=None):
        """A callable for an FX graph of core ATen with torch's meta data; it takes and gives what the graph does."""
        # torch compiles with tensors without data as a default; weights have theirs.
        with _disable_current_modes():
            graph_module, wrap = prepare(graph_module)
            weights = {name: value for name, value in (weights or {}).items() if not value.is_complex()}
            return wrap(self._compile_graph(graph_module, weights))

    def _compile_graph(self, graph_module, weights):
        name = f"graph_{next(self._numbers)}"
        if self.mode in ("trace", "compile"):
            self._write(name, {"nodes.txt": reports.graph_text(graph_module)}, is_printed=self.mode == "trace")
        options = self._library_options()
        compiled = self._try(name, graph_module, weights, options)
        problems = compiled.problems if isinstance(compiled, Compiled) else compiled
        self.graphs.append((name, graph_module, problems))
        if not problems:
            self._count(name, graph_module)
            return compiled
        if self.strict:
            raise UnsupportedGraph(f"Fornax does not run the graph as a whole: {sentence(problems)}.")
        return self._in_segments(name, graph_module, problems, options)

    def _write(self, name, texts, is_printed):
        """Texts by the endings of their files."""
        for ending, text in texts.items():
            if is_printed:
                print(f"{name}:\n{text}", end="")
            if self.output_dir is not None:
                self.output_dir.mkdir(parents=True, exist_ok=True)
                (self.output_dir / f"{name}.{ending}").write_text(text, encoding="utf-8")

    def _observer(self, name, graph_module):
        """What is called with the report of each run, or None if runs are not looked at."""
        if self.observe is None and self.mode not in ("compile", "simulate"):
            return None
        seen = {}  # the file's sizes: which they are, in the order that they come

        def observer(report):
            if self.observe is not None:
                self.observe(name, graph_module, report)
            sizes = json.dumps(report["sizes"]) + report["plan"]
            if sizes in seen or self.mode not in ("compile", "simulate"):
                return
            seen[sizes] = len(seen)
            which = f"{name}.{seen[sizes]}" if seen[sizes] else name
            if self.mode == "simulate":
                texts = {"work.txt": reports.work_text(report)}
                if modelled := reports.modelled_text(report):
                    texts["modelled.txt"] = modelled
                self._write(which, texts, is_printed=True)
                if not modelled:
                    print(reports.NO_MODEL)
            else:
                self._write(which, reports.files(report), is_printed=False)

        return observer

    def _try(self, name, graph_module, weights, options):
        """The compiled graph, which may have problems, or the problems of one that cannot be compiled."""
        try:
            compiled = Compiled(graph_module, weights, options, self.dynamic, self._observer(name, graph_module))
        except Error as error:
            nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
            return {node: f"its graph cannot be compiled: {error}" for node in nodes[-1:]}
        if self.mode == "codegen" and not compiled.problems:
            self._write_program(name, graph_module, weights, compiled)
        return compiled

    def _write_program(self, name, graph_module, weights, compiled):
        """Writes the graph's program in C; `compiled` then keeps the inputs of its first call beside it."""
        try:
            program = codegen.Program(name, graph_module, weights, self.output_dir)
        except codegen.NotWritten as reason:
            text = f"There is no program in C for {name}: {reason}."
            if self.strict:
                raise UnsupportedGraph(text) from None
            warnings.warn(text, stacklevel=2)
            return
        self.programs.append(program.folder)
        compiled.call = program.with_inputs(compiled.call)
        if self.verbose:
            print(f"fornax: {name} is a program in {program.folder}")

    def _count_found(self):
        name = f"graph_{next(self._numbers)}"
        self.segments += 1
        self.graphs.append((name, None, {}))
        if self.verbose:
            print(f"fornax: {name} is on the device, as torch's cache has it")

    def _count(self, name, graph_module):
        self.segments += 1
        if self.verbose:
            count = sum(node.op == "call_function" for node in graph_module.graph.nodes)
            print(f"fornax: {name}, {count} nodes, is on the device")

    def _in_segments(self, graph_name, graph_module, problems, options):
        if self.verbose:
            print(f"fornax: a part of {graph_name} runs in torch: {sentence(problems)}")
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
            part_name = f"{graph_name}.{name}"
            compiled = self._try(part_name, part, None, options)
            more = compiled.problems if isinstance(compiled, Compiled) else compiled
            self.graphs.append((part_name, part, more))
            if not more:
                self._count(part_name, part)
                setattr(fused, name, _AsModule(compiled))
                continue
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


def _boxed(run):
    """The function of a list of arguments."""
    return run.call if isinstance(run, Compiled) else lambda arguments: run(*arguments)


def fornax(graph_module, example_inputs, **keywords):
    """The backend with its defaults, which the entry point names."""
    return Backend()(graph_module, example_inputs, **keywords)
