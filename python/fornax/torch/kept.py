"""Graphs that torch's cache of AOTAutograd keeps, which then neither traces them nor takes them apart again.

torch's key is of the graph that Dynamo made, of the types of its inputs, and of torch's version and settings. The tag that
`keeping()` adds is of what else decides: this package, the library, the backend's options, and which inputs are constants. What is
kept is the graph's file without the values of parameters: these are the ones of the process that finds it.
"""

import contextlib
import functools
import hashlib
import pathlib
import pickle
import threading

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _driver
from .._errors import Error, Status
from . import capture, frozen, library
from .compiled import Program, free_numbers
from .prepare import is_plain

try:
    from torch._functorch import config as _functorch_config
    from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
    from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
    from torch._inductor.output_code import OutputCode
    from torch.compiler import config as _compiler_config

    # The backward graph is kept with the forward one, so torch has to hand it over at once.
    _SETTINGS = {"bundled_autograd_cache": True, "force_non_lazy_backward_lowering": True}
    _IS_THERE = hasattr(_compiler_config, "cache_key_tag") and all(hasattr(_functorch_config, name) for name in _SETTINGS)
except ImportError:  # another version of torch: nothing is kept
    OutputCode, _IS_THERE = object, False

_now = threading.local()  # what keeping() is about


@functools.cache
def _digest():
    """Of this package's sources and of the library."""
    package = pathlib.Path(__file__).resolve().parents[1]
    hasher = hashlib.blake2b(digest_size=16)
    for file in [*sorted(package.rglob("*.py")), *sorted(_driver.FOLDER.glob("lib/libfornax.so"))]:
        contents = file.read_bytes()
        hasher.update(f"{file.relative_to(package)} {len(contents)} ".encode())
        hasher.update(contents)
    return hasher.hexdigest()


def can_keep(graph_module):
    """Whether torch's key tells a graph of Dynamo's from all others: tensors in it count as their types alone."""
    return _IS_THERE and not any(
        node.op in ("get_attr", "call_module") for node in graph_module.graph.nodes) and not any(
        True for _ in (*graph_module.parameters(), *graph_module.buffers()))


class Found:
    """How the graphs of a backend run: options of the library, whether one plan is for all sizes, tensors that are constants, by
    place, and a function that is told of each graph that was found."""

    def __init__(self, options, dynamic, constants, tell):
        self.options, self.dynamic, self.constants, self.tell = options, dynamic, constants, tell

    def tag(self):
        return repr((_digest(), sorted(self.options.items()), self.dynamic, sorted(self.constants)))


@contextlib.contextmanager
def keeping(found):
    """While AOTAutograd handles a graph: what it finds is run as `found` says."""
    tag = f"{_compiler_config.cache_key_tag} fornax {found.tag()}"
    before = getattr(_now, "found", None)
    _now.found = found
    try:
        with _functorch_config.patch(_SETTINGS), _compiler_config.patch(cache_key_tag=tag):
            yield
    finally:
        _now.found = before


def compiler(function):
    """A compiler of AOTAutograd that returns Graphs."""
    return SerializableAOTDispatchCompiler(Graph, function)


def bypass(reason):
    """Raises what torch passes over, and nothing is kept."""
    raise BypassAOTAutogradCache(f"Fornax does not keep the graph: {reason}.")


def program_of(graph_module, weights):
    """The Program of a graph of core ATen as torch hands it over."""
    if not is_plain(graph_module):
        bypass("a part of it runs in torch")
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    writer = capture.Writer(graph_module, weights, in_place=True)
    structure = writer.program.structure()
    if writer.problems or library.check(library.file_of(structure, writer.program.weights)):
        bypass("a part of it runs in torch")
    if free_numbers(writer, placeholders):
        bypass("numbers choose its file")
    return Program(writer, placeholders, structure)


class Graph(OutputCode):
    """A compiled graph, which is called with a list of arguments.

    programs: a function without arguments that gives its Program, and the one without constants if it has any.
    """

    def __init__(self, call, programs, found):
        self._boxed_call = True
        self.call, self._programs, self._found = call, programs, found
        self._bytes = self._made_by = None

    def __call__(self, arguments):
        return self.call(arguments)

    def prepare_for_serialization(self):
        with _disable_current_modes():
            programs = self._programs()
        try:
            self._made_by = _digest()
            self._bytes = pickle.dumps((programs, self._found.options, self._found.dynamic))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            bypass(str(error))
        self.call = self._programs = self._found = None

    def post_compile(self, example_inputs, constants, graph_kwargs):
        del example_inputs, constants
        if self.call is None:
            # The key of what torch keeps of Dynamo's work does not have the tag of keeping().
            if self._made_by != _digest():
                raise Error("torch has kept a graph that another version of Fornax made. It is compiled anew if the folder dynamo of "
                            "torch's cache (TORCHINDUCTOR_CACHE_DIR) is removed.", Status.DATA_LOSS)
            with _disable_current_modes():
                self.call = _call_of(*pickle.loads(self._bytes), graph_kwargs.get("is_backward", False))

    def set_triton_bundle(self, triton_bundle):
        pass


def _call_of(programs, options, dynamic, is_backward):
    """The function of a graph that was found."""
    program = programs[0]

    def start(made, arguments):
        return made.layout.function(made.session(made.file(arguments), options, dynamic).run, None)

    def start_frozen(arguments):
        weights = {place: arguments[place] for place in program.weight_places}
        if not all(map(frozen.can_be_constant, weights.values())):
            return start(programs[1], ())
        return frozen.with_constants(start(program, weights), weights, lambda: start(programs[1], ()))

    found = getattr(_now, "found", None)
    if found is not None:
        found.tell()
    if not program.weight_places:
        return frozen.at_first_call(lambda _: start(program, ())) if is_backward else start(program, ())
    if found is None or not found.constants.keys() >= set(program.weight_places):
        return frozen.at_first_call(start_frozen)
    return start_frozen(found.constants)
