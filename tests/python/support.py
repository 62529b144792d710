"""What the tests of the Python package share: small ONNX models and processes of their own."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models" / "digits.onnx"
FLOAT = TensorProto.FLOAT


def model(nodes, inputs, outputs, weights=None):
    """An ONNX file's bytes. Inputs and outputs are {name: (type, dimensions)}, dimensions numbers or names."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def add(dims=("n", 4)):
    """y = a + b."""
    dims = list(dims)
    return model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": (FLOAT, dims), "b": (FLOAT, dims)},
                 {"y": (FLOAT, dims)})


def chain(length=60):
    """Many different kernels, so that compiling takes a while."""
    nodes, name = [], "x"
    for i in range(length):
        nodes += [helper.make_node("MatMul", [name, f"w{i}"], [f"m{i}"]),
                  helper.make_node("ReduceSum", [f"m{i}", "axis"], [f"s{i}"], keepdims=1),
                  helper.make_node("Mul", [f"m{i}", f"s{i}"], [f"x{i}"])]
        name = f"x{i}"
    weights = {f"w{i}": np.ones((16 + i, 17 + i), np.float32) for i in range(length)}
    weights["axis"] = np.array([1], np.int64)
    return model(nodes, {"x": (FLOAT, ["n", 16])}, {name: (FLOAT, ["n", 16 + length])}, weights)


def python(code, *arguments, check=True, timeout=300, **environment):
    """A process of this Python that runs the code: its result, with text."""
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True,
                            text=True, timeout=timeout, env={**os.environ, **environment})
    if check and result.returncode != 0:
        raise AssertionError(f"it ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result


class Exporter:
    """An array of somebody who speaks nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
