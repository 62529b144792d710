"""What a model consists of: operators with counts, attributes, element types, inputs and outputs."""

import collections
import dataclasses
import pathlib

import onnx
from onnx import AttributeProto, TensorProto, helper


def graphs_of(proto):
    """The main graph, the bodies of control flow and those of functions."""
    waiting = [proto.graph, *proto.functions]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs


def nodes_of(proto):
    for graph in graphs_of(proto):
        yield from graph.node


def operator_name(node):
    """With the domain, if it is not ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def type_text(value):
    """For example: float[batch,3,?,?]."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return kind or "unknown"
    tensor = value.type.tensor_type
    name = TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return f"{name}[...]"
    dims = [dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in tensor.shape.dim]
    return f"{name}[{','.join(dims)}]"


def attribute_text(attribute):
    """A value as far as it fits: tensors by type and shape, graphs by name."""
    if attribute.type == AttributeProto.TENSOR:
        tensor = attribute.t
        return f"{TensorProto.DataType.Name(tensor.data_type).lower()}{list(tensor.dims)}"
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return "graph"
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:g}" if isinstance(value, float) else str(list(value) if isinstance(value, (list, tuple)) else value)


@dataclasses.dataclass
class Description:
    path: pathlib.Path
    size_bytes: int
    opsets: dict[str, int]
    inputs: dict[str, str]
    outputs: dict[str, str]
    initializer_types: dict[str, int]  # element type -> bytes
    operators: collections.Counter
    attributes: dict[str, collections.Counter]  # operator -> "name=value" -> nodes


def describe(path):
    proto = onnx.load(path)
    constants = {tensor.name for tensor in proto.graph.initializer}
    types = collections.Counter()
    for graph in graphs_of(proto):
        for tensor in getattr(graph, "initializer", []):
            types[TensorProto.DataType.Name(tensor.data_type).lower()] += tensor.ByteSize()
    operators, attributes = collections.Counter(), collections.defaultdict(collections.Counter)
    for node in nodes_of(proto):
        operators[operator_name(node)] += 1
        for attribute in node.attribute:
            attributes[operator_name(node)][f"{attribute.name}={attribute_text(attribute)}"] += 1
    return Description(
        pathlib.Path(path), pathlib.Path(path).stat().st_size,
        {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import},
        {value.name: type_text(value) for value in proto.graph.input if value.name not in constants},
        {value.name: type_text(value) for value in proto.graph.output}, dict(types), operators, dict(attributes))


def models_in(paths):
    """Model files: those named, and those in the folders named, by name."""
    found = []
    for path in map(pathlib.Path, paths):
        found += sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if not found:
        raise FileNotFoundError(f"There is no .onnx file in {', '.join(map(str, paths))}.")
    return found


def operator_table(descriptions):
    """Rows (operator, models that use it, nodes, names of models), the most used first."""
    users, nodes = collections.defaultdict(list), collections.Counter()
    for description in descriptions:
        for operator, count in description.operators.items():
            users[operator].append(description.path.stem)
            nodes[operator] += count
    return [(operator, len(users[operator]), nodes[operator], users[operator])
            for operator in sorted(users, key=lambda operator: (-len(users[operator]), -nodes[operator], operator))]
