"""Networks that choose by comparing numbers, cut in front of the choice.

Where scores nearly tie, NonMaxSuppression keeps other boxes for rounding errors alone, and everything behind it
differs. So what it reads is compared within tolerances, and what follows with what onnxruntime makes of the very numbers
that it was given: equal scores count as equal, and nothing else does.
"""
import onnx

CHOOSING = {"NonMaxSuppression"}


def cut_values(graph):
    """The names of what is computed in front of the first choice and read by it or behind it; empty without one."""
    makers = {name: node for node in graph.node for name in node.output}
    pending = [name for node in graph.node if node.op_type in CHOOSING for name in node.input]
    if not pending:
        return []
    before = set()
    while pending:
        node = makers.get(pending.pop())
        if node is not None and node.output[0] not in before:
            before.add(node.output[0])
            pending.extend(node.input)
    given = {name for node in graph.node if node.output[0] in before for name in node.output}
    read = {name for node in graph.node if node.output[0] not in before for name in node.input}
    constants = {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    return sorted((given & read) - constants)


def cut(path, folder):
    """(the model with the cut's values as further outputs, what is behind the cut, their names); None without a choice."""
    model = onnx.load(path)
    names = cut_values(model.graph)
    if not names:
        return None
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {value.name: value for value in inferred.graph.value_info}
    outputs = [output.name for output in model.graph.output]
    whole, rest = folder / f"{path.stem}_whole.onnx", folder / f"{path.stem}_rest.onnx"
    model.graph.output.extend(types[name] for name in names if name not in outputs)
    onnx.save(model, whole)
    given = [value.name for value in model.graph.input]
    onnx.utils.extract_model(str(whole), str(rest), names + given, outputs, check_model=False)
    return whole, rest, names
