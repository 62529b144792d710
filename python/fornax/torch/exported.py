"""torch.export ahead of time: a file that libfornax runs without torch."""

import inspect

import torch

from . import capture, complex_numbers, decompositions, library, prepare
from .backend import UnsupportedGraph, sentence
from .sizes import Unsupported


def _without_complex(module):
    if complex_numbers.has_complex(module):
        try:
            split = complex_numbers.split(module)
        except Unsupported:
            return module  # The numbers are named among the problems.
        if not split.has_complex_ports:
            return split.module
    return module


def _leaves(value, spec):
    """(leaf, what dynamic_shapes says of it) of arguments, in torch's order of them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, spec.get(key) if isinstance(spec, dict) else None)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _leaves(item, spec[i] if isinstance(spec, (list, tuple)) and i < len(spec) else None)
    else:
        yield value, spec


def _size_names(exported, model, args, kwargs, dynamic_shapes):
    """{symbol: name} of the Dims that sizes are made of. Other symbols have torch's names."""
    if not dynamic_shapes:
        return {}
    given = inspect.signature(model.forward).bind(*args, **(kwargs or {})).arguments
    spec = dynamic_shapes if isinstance(dynamic_shapes, dict) else dict(zip(given, dynamic_shapes))
    inputs = {spec.arg.name for spec in exported.graph_signature.input_specs
              if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT}
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in inputs]
    names = {}
    for node, (value, dims) in zip(placeholders, _leaves(dict(given), spec)):
        if isinstance(value, torch.Tensor) and dims:
            for axis, dim in dims.items() if isinstance(dims, dict) else enumerate(dims):
                size = capture.value_of(node).shape[axis]
                name = getattr(dim, "__name__", "")
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and name.isidentifier():
                    names.setdefault(size.node.expr, name)
    return names if len(set(names.values())) == len(names) else {}


def to_program(exported, names=None):
    """A capture.Writer of an ExportedProgram, which is taken apart to core ATen first. `names` are those of symbols."""
    exported = exported.run_decompositions(decompositions.without_kept(
        decompositions.with_own(torch.export.default_decompositions())))
    signature = exported.graph_signature
    kinds = torch.export.graph_signature.InputKind
    changed = set(signature.buffers_to_mutate.values())
    weights = {}
    for spec in signature.input_specs:
        if spec.kind == kinds.PARAMETER or (spec.kind == kinds.BUFFER and spec.target not in changed):
            weights[spec.arg.name] = exported.state_dict.get(spec.target, exported.constants.get(spec.target))
        elif spec.kind == kinds.CONSTANT_TENSOR:
            weights[spec.arg.name] = exported.constants[spec.target]
    # Outputs that are new values of inputs and buffers are those of the file behind the others.
    module = exported.graph_module
    # A file does not say whether a matrix was singular: it gives what the factors give.
    prepare.without_checks(module)
    module = _without_complex(module)
    output = next(node for node in module.graph.nodes if node.op == "output")
    own, mutations = [], []
    by_buffer = {spec.target: spec.arg.name for spec in signature.input_specs if spec.kind == kinds.BUFFER}
    outputs = torch.export.graph_signature.OutputKind
    for spec, value in zip(signature.output_specs, output.args[0]):
        if spec.kind == outputs.BUFFER_MUTATION:
            mutations.append((by_buffer[spec.target], value))
        elif spec.kind == outputs.USER_INPUT_MUTATION:
            mutations.append((spec.target, value))
        elif spec.kind != outputs.TOKEN:
            own.append(value)
    output.args = (tuple(own),)
    writer = capture.Writer(module, weights, with_guards=True, names=names)
    for name, value in mutations:
        writer.mark_mutation(name, value)
    problems = dict(writer.problems)
    for number, reason in library.check(writer.program.to_bytes()):
        problems.setdefault(writer.nodes[number], reason)
    if problems:
        raise UnsupportedGraph(f"Fornax does not run the program: {sentence(problems)}.")
    for item in writer.outputs:
        if not isinstance(item, tuple):
            raise UnsupportedGraph(f"An output of the program is {item}, which is not computed from its inputs.")
    return writer


def export(model, args, path, *, kwargs=None, dynamic_shapes=None):
    """Exports a module (or takes a torch.export.ExportedProgram) and writes it as the file `path`, whose name
    ends in .fnx by convention. Open sizes have the names of the Dims in dynamic_shapes.

    Inputs of the file are the tensors of `args` and `kwargs` under torch.export's names, then buffers that the model
    changes; what these hold after a run is the output "mutated.NAME". Raises UnsupportedGraph, with nodes and source
    lines, for a program that Fornax does not run.
    """
    exported, names = model, None
    if not isinstance(model, torch.export.ExportedProgram):
        exported = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
        names = _size_names(exported, model, args, kwargs, dynamic_shapes)
    writer = to_program(exported, names)
    with open(path, "wb") as file:
        for part in writer.program.parts():
            file.write(part)
    return writer
