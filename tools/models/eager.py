"""Evaluates the nodes of a graph while it is built, on a sample input, so that weights can be fitted to activations."""

import onnxruntime
from onnx import helper

QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level = 3
QUIET.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


class Evaluator:
    """Knows the values that follow from the samples and constants it was given; others it leaves out."""

    def __init__(self, opset):
        self.opset = helper.make_opsetid("", opset)
        self.values = {}

    def run(self, node):
        """Computes the results of a node if all its operands are known."""
        names = [name for name in node.input if name]
        if not all(name in self.values for name in names):
            return
        feeds = {name: self.values[name] for name in names}
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                  for name, array in feeds.items()]
        graph = helper.make_graph([node], "node", inputs, [helper.ValueInfoProto(name=name) for name in node.output])
        model = helper.make_model(graph, opset_imports=[self.opset])
        model.ir_version = helper.find_min_ir_version_for([self.opset])
        session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET, providers=["CPUExecutionProvider"])
        self.values.update(zip(node.output, session.run(None, feeds)))
