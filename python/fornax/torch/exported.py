"""torch.export ahead of time: a file that libfornax runs without torch."""

import torch

from . import capture, decompositions, library
from .backend import UnsupportedGraph, sentence


def to_program(exported):
    """A capture.Writer of an ExportedProgram, which is taken apart to core ATen first."""
    exported = exported.run_decompositions(decompositions.without_kept(torch.export.default_decompositions()))
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
    output = next(node for node in module.graph.nodes if node.op == "output")
    own, mutations = [], []
    by_buffer = {spec.target: spec.arg.name for spec in signature.input_specs if spec.kind == kinds.BUFFER}
    outputs = torch.export.graph_signature.OutputKind
    for spec, value in zip(signature.output_specs, output.args[0]):
        if spec.kind == outputs.BUFFER_MUTATION:
            mutations.append((by_buffer[spec.target], value))
        elif spec.kind == outputs.USER_INPUT_MUTATION:
            mutations.append((spec.target, value))
        else:
            own.append(value)
    output.args = (tuple(own),)
    writer = capture.Writer(module, weights, with_guards=True)
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
    """Exports a module (or takes a torch.export.ExportedProgram) and writes it as the file `path`.

    Inputs of the file are the tensors of `args` and `kwargs` under torch.export's names, then buffers that the model
    changes; what these hold after a run is the output "mutated.NAME". Raises UnsupportedGraph, with nodes and source
    lines, for a program that Fornax does not run.
    """
    exported = model
    if not isinstance(model, torch.export.ExportedProgram):
        exported = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
    writer = to_program(exported)
    with open(path, "wb") as file:
        for part in writer.program.parts():
            file.write(part)
    return writer
