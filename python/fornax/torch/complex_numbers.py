"""Graphs of complex numbers as graphs of their real and imaginary parts, which are what files have.

A complex value is a Pair while a graph is rewritten. Inputs and outputs are what torch.view_as_real() gives: one more
dimension of 2. `split()` refuses operators that have no rule here; a graph that has one stays as it is.
"""

import math

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

from . import capture, complex_functions, complex_matrices, decompositions
from .complex_parts import Pair, pair, rule, view_as_complex
from .sizes import Unsupported

assert complex_matrices  # It registers rules.

_library = torch.library.Library("fornax", "DEF")
# Along `dim` of a tensor whose last dimension is a number's real and imaginary part, or the real one alone; kinds are
# those of graph::Transform: forward, to half of the frequencies, inverse, from half of the frequencies to real numbers.
_library.define("dft(Tensor x, int dim, SymInt length, int kind) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
_FORWARD, _FORWARD_HALF, _INVERSE, _INVERSE_HALF = range(4)


@torch.library.impl(_library, "dft", "Meta")
def _dft_meta(x, dim, length, kind):
    shape = list(x.shape)
    shape[dim] = length // 2 + 1 if kind == _FORWARD_HALF else length
    shape[-1] = 1 if kind == _INVERSE_HALF else 2
    return x.new_empty(shape)


@torch.library.impl(_library, "dft", "CPU")
def _dft_in_torch(x, dim, length, kind):
    x = torch.complex(x[..., 0], x[..., 1] if x.shape[-1] == 2 else torch.zeros_like(x[..., 0]))
    if kind == _FORWARD_HALF:
        result = torch.fft.rfft(x.real, length, dim)
    elif kind == _INVERSE_HALF:
        return torch.fft.irfft(x, length, dim).unsqueeze(-1)
    else:
        result = (torch.fft.fft if kind == _FORWARD else torch.fft.ifft)(x, length, dim)
    return torch.view_as_real(result)


def is_complex(value):
    return isinstance(value, torch.Tensor) and value.dtype.is_complex


def has_complex(graph_module):
    for node in graph_module.graph.nodes:
        value = capture.value_of(node)
        for part in value if isinstance(value, (list, tuple)) else (value,):
            if is_complex(part):
                return True
    return False


# Operators that only move elements, or add them up: the same for either part.
_EACH = {f"aten.{name}" for name in (
    "view.default", "_unsafe_view.default", "reshape.default", "permute.default", "transpose.int", "t.default",
    "expand.default", "unsqueeze.default", "squeeze.dim", "squeeze.dims", "squeeze.default", "clone.default",
    "alias.default", "detach.default", "slice.Tensor", "select.int", "flip.default", "roll.default", "repeat.default",
    "diagonal.default", "as_strided.default", "index.Tensor", "index_select.default", "gather.default",
    "unfold.default", "sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "cumsum.default",
    "lift_fresh_copy.default", "contiguous.default", "resolve_conj.default", "resolve_neg.default",
    "embedding.default", "col2im.default", "im2col.default", "view_copy.default", "slice_scatter.default",
    "select_scatter.default", "index_put.default", "diagonal_scatter.default", "tril.default", "triu.default",
    "expand_copy.default", "permute_copy.default", "unsqueeze_copy.default", "diagonal_copy.default",
    "slice_copy.Tensor", "select_copy.int", "as_strided_copy.default", "transpose_copy.int", "t_copy.default",
    "unfold_copy.default", "alias_copy.default", "detach_copy.default", "squeeze_copy.default", "squeeze_copy.dim",
    "squeeze_copy.dims", "scatter.src", "scatter_add.default", "index_copy.default", "index_add.default",
    "unfold_backward.default", "new_empty_strided.default", "masked_scatter.default", "as_strided_scatter.default",
    "_unsafe_index.Tensor", "reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default",
    "replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default",
)}
# These see how a tensor lies in memory, which is not how its parts do.
_BY_STRIDES = {"aten.as_strided.default", "aten.as_strided_copy.default", "aten.as_strided_scatter.default"}
# The same for either part of all operands of a list, and of results that are lists.
_LISTS = {"aten.cat.default", "aten.stack.default"}
_PARTS = {f"aten.{name}" for name in (
    "split.Tensor", "split_with_sizes.default", "unbind.int", "split_copy.Tensor", "split_with_sizes_copy.default",
    "unbind_copy.int")}


# --- Fourier transforms ---


def _normalised(x, count, mode, is_inverse):
    """torch's modes are 0: none, 1: by the root, 2: by the number; an inverse has been divided by it already."""
    power = {0: 0.0, 1: -0.5, 2: -1.0}[mode] + (1.0 if is_inverse else 0.0)
    if power == 0:
        return x
    factor = count ** power
    return x * factor


def _count(shape, dims):
    return math.prod(shape[dim] for dim in dims)


def _dft(x, dim, length, kind):
    return torch.ops.fornax.dft(x, dim, length, kind)


@rule("_fft_c2c.default")
def _fft_c2c(x, dims, mode, forward):
    dims = [dim % len(x.shape) for dim in dims]
    if not dims:
        return x
    value = torch.stack([x.real, x.imaginary], -1)
    for dim in dims:
        value = _dft(value, dim, x.shape[dim], _FORWARD if forward else _INVERSE)
    return view_as_complex(_normalised(value, _count(x.shape, dims), mode, not forward))


@rule("_fft_r2c.default")
def _fft_r2c(x, dims, mode, onesided):
    dims = [dim % x.dim() for dim in dims]
    value = _dft(x.unsqueeze(-1), dims[-1], x.shape[dims[-1]], _FORWARD_HALF if onesided else _FORWARD)
    for dim in reversed(dims[:-1]):
        value = _dft(value, dim, x.shape[dim], _FORWARD)
    return view_as_complex(_normalised(value, _count(x.shape, dims), mode, False))


@rule("_fft_c2r.default")
def _fft_c2r(x, dims, mode, last_dim_size):
    dims = [dim % len(x.shape) for dim in dims]
    value = torch.stack([x.real, x.imaginary], -1)
    for dim in dims[:-1]:
        value = _dft(value, dim, x.shape[dim], _INVERSE)
    value = _dft(value, dims[-1], last_dim_size, _INVERSE_HALF).squeeze(-1)
    count = _count(x.shape, dims[:-1]) * last_dim_size
    return _normalised(value, count, mode, True)


# --- Graphs ---


def _leaves(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _part(value, imaginary):
    if isinstance(value, Pair):
        return value.imaginary if imaginary else value.real
    if isinstance(value, (list, tuple)):
        return type(value)(_part(item, imaginary) for item in value)
    if isinstance(value, torch.dtype) and value.is_complex:
        return value.to_real()
    return value


class _Splitter(torch.fx.Interpreter):
    def run_node(self, n):
        self._node = n  # pylint: disable=attribute-defined-outside-init
        return super().run_node(n)

    def call_function(self, target, args, kwargs):
        value = capture.value_of(self._node)
        made = any(is_complex(part) for part in (value if isinstance(value, (list, tuple)) else (value,)))
        if not made and not any(isinstance(leaf, Pair) for leaf in (*_leaves(args), *_leaves(kwargs))):
            return super().call_function(target, args, kwargs)
        name = str(target)
        if getattr(target, "__name__", "") == "getitem":
            return args[0][args[1]]
        function = complex_functions.RULES.get(name)
        if function is not None:
            return function(*args, **kwargs)
        if name in _BY_STRIDES:
            whole = capture.value_of(self._node.args[0])
            if not whole.is_contiguous() or whole.storage_offset() != 0:
                raise Unsupported(f"{name} of complex numbers that do not lie in row-major order")
            # The parts of an argument lie beside each other.
            args = (pair(args[0]).each(lambda part: part.clone(memory_format=torch.contiguous_format)), *args[1:])
        if name in _EACH or name in _LISTS:
            if name in _LISTS:
                args = ([pair(item) for item in args[0]], *args[1:])
            elif not isinstance(args[0], Pair):
                args = (pair(args[0]), *args[1:])
            return Pair(target(*_part(args, False), **_part_of(kwargs, False)),
                        target(*_part(args, True), **_part_of(kwargs, True)))
        if name in _PARTS:
            return [Pair(real, imaginary) for real, imaginary in
                    zip(target(*_part(args, False), **kwargs), target(*_part(args, True), **kwargs))]
        raise Unsupported(f"{name} of complex numbers")


def _part_of(kwargs, imaginary):
    return {key: _part(value, imaginary) for key, value in kwargs.items()}


class Split:
    """Calls a graph of parts as the graph of complex numbers is called. `run` runs the graph of parts."""

    def __init__(self, module, inputs, outputs, is_list):
        self.module, self._inputs, self._outputs, self._is_list = module, inputs, outputs, is_list
        self.run = module
        self.has_complex_ports = any(inputs) or any(strides is not None for strides in outputs)

    def __call__(self, *arguments):
        arguments = [torch.view_as_real(value.resolve_conj().contiguous()) if is_pair else value
                     for value, is_pair in zip(arguments, self._inputs)]
        results = list(self.run(*arguments))
        for i, strides in enumerate(self._outputs):
            if strides is not None:
                value = torch.view_as_complex(results[i].contiguous())
                # Overlapping elements cannot be written one by one.
                if value.stride() != strides and all(isinstance(stride, int) and stride != 0 for stride in strides):
                    value = torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)
                results[i] = value
        return results if self._is_list else results[0]


def split(graph_module):
    """A Split of the graph; raises Unsupported."""
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    values = [capture.value_of(node) for node in placeholders]
    inputs = [is_complex(value) for value in values]
    output = next(node for node in graph_module.graph.nodes if node.op == "output")
    is_list = isinstance(output.args[0], (list, tuple))
    outputs = []
    for item in output.args[0] if is_list else [output.args[0]]:
        value = capture.value_of(item) if isinstance(item, torch.fx.Node) else None
        outputs.append(value.stride() if is_complex(value) else None)
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            raise Unsupported("a constant beside complex numbers")
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            raise Unsupported("a value that changes beside complex numbers")
    mode = next((value.fake_mode for node in graph_module.graph.nodes for value in _leaves(capture.value_of(node))
                 if isinstance(value, FakeTensor)), None)
    if mode is None:
        raise Unsupported("no sizes of values")

    def function(*arguments):
        given = [Pair(value.select(-1, 0), value.select(-1, 1)) if is_pair else value
                 for value, is_pair in zip(arguments, inputs)]
        results = _Splitter(graph_module).run(*given)
        return [torch.stack([value.real, value.imaginary], -1) if isinstance(value, Pair) else value
                for value in (results if is_list else [results])]

    with mode, torch.fx.traceback.preserve_node_meta():
        parts = [torch.view_as_real(torch.empty_like(value, memory_format=torch.contiguous_format)) if is_pair
                 else value for value, is_pair in zip(values, inputs)]
        module = make_fx(function, decomposition_table=decompositions.table())(*parts)
    module.graph.eliminate_dead_code()  # parts of results that nobody takes
    module.recompile()
    for node, old in zip((node for node in module.graph.nodes if node.op == "placeholder"), placeholders):
        node.target = old.target
        node._rename(old.name)  # pylint: disable=protected-access
    return Split(module, inputs, outputs, is_list)
