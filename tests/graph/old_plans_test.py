"""Plan files that were once written (plans/*.plan) are read, and compute what their models do in onnxruntime.

They are the promise of compiler/graph/plan/plan_file.h for every kind of kernel; the fields of a file are
plan_file_versions_test.cpp's. A file is never written anew: after a change of the format's version, or for a new kind of
kernel, `old_plans_test.py NAME...` writes files that are not there yet.
Environment: FORNAX_LIBRARY, VK_DRIVER_FILES; to write, FORNAX_COMMAND.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import libfornax

PLANS = pathlib.Path(__file__).parent / "plans"


class Numbers:
    """A stream of numbers that stays as it is in every version of numpy."""

    def __init__(self):
        self.random = np.random.RandomState(11)

    def floats(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(np.float32)

    def bytes(self, *shape):
        return self.random.randint(0, 256, shape).astype(np.uint8)


def node(operator, inputs, outputs=("y",), **attributes):
    return helper.make_node(operator, list(inputs), list(outputs), **attributes)


def convolution(n):
    """A product whose operand is computed into tiles, packed weights, an epilogue."""
    return [node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]), node("Relu", ["c"])], \
        {"x": n.floats(2, 16, 9, 9)}, {"w": n.floats(24, 16, 3, 3), "b": n.floats(24)}


def depthwise(n):
    return [node("Conv", ["x", "w"], group=12, pads=[1, 1, 1, 1])], {"x": n.floats(1, 12, 20, 20)}, \
        {"w": n.floats(12, 1, 3, 3)}


def few_rows(n):
    return [node("MatMul", ["x", "w"], ["m"]), node("Softmax", ["m"])], {"x": n.floats(1, 96)}, {"w": n.floats(96, 80)}


def matrices(n):
    """A product of two inputs, with a normalisation behind it."""
    return [node("MatMul", ["a", "b"], ["m"]), node("LayerNormalization", ["m", "s", "t"])], \
        {"a": n.floats(40, 70), "b": n.floats(70, 33)}, {"s": n.floats(33), "t": n.floats(33)}


def attention(n):
    """[batch, heads, positions, size] by the operators that exporters write."""
    return [node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "kt"], ["s"]),
            node("Mul", ["s", "scale"], ["t"]), node("Add", ["t", "mask"], ["u"]), node("Softmax", ["u"], ["p"]),
            node("MatMul", ["p", "v"])], \
        {"q": n.floats(1, 2, 48, 32), "k": n.floats(1, 2, 48, 32), "v": n.floats(1, 2, 48, 32), "mask": n.floats(48, 48)}, \
        {"scale": np.float32(0.2)}


def lstm(n):
    """Phases of a loop over time."""
    return [node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=8)], {"x": n.floats(6, 2, 5)}, \
        {"w": n.floats(1, 32, 5), "r": n.floats(1, 32, 8), "b": n.floats(1, 64)}


def sorting(n):
    """The templates that sort and select rows."""
    return [node("TopK", ["x", "all"], ["y", "places"]), node("TopK", ["x", "few"], ["z", "few_places"])], \
        {"x": n.floats(3, 300)}, {"all": np.array([300]), "few": np.array([5])}


def scanning(n):
    return [node("CumSum", ["x", "axis"])], {"x": n.floats(3, 300)}, {"axis": np.array(1)}


def transform(n):
    return [node("DFT", ["x", "", "axis"])], {"x": n.floats(4, 256, 1)}, {"axis": np.array(1)}


def byte_products(n):
    return [node("QuantizeLinear", ["x", "s", "z"], ["xq"]), node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
            node("DequantizeLinear", ["w", "ws"], ["wd"], axis=1), node("MatMul", ["xd", "wd"], ["m"]),
            node("QuantizeLinear", ["m", "ms", "z"], ["mq"]), node("DequantizeLinear", ["mq", "ms", "z"])], \
        {"x": n.floats(20, 64)}, \
        {"s": np.float32(1 / 128), "z": np.uint8(128), "w": n.bytes(64, 48).view(np.int8),
         "ws": np.abs(n.floats(48)) * 0.01 + 0.001, "ms": np.float32(0.125)}


def block_weights(n):
    return [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=64, N=32, bits=4,
                             block_size=32)], \
        {"x": n.floats(1, 64)}, {"w": n.bytes(32, 2, 16), "s": np.abs(n.floats(64)) * 0.1}


def image(n):
    """Windows of a pool, a resize, a transposition."""
    return [node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2]),
            node("Resize", ["p", "", "scales"], ["r"], mode="linear"), node("Transpose", ["r"], perm=[0, 2, 3, 1])], \
        {"x": n.floats(1, 5, 17, 19)}, {"scales": np.float32([1, 1, 2, 2])}


def reductions(n):
    return [node("ReduceSum", ["x", "first"], ["y"], keepdims=0), node("ReduceMax", ["x", "last"], ["z"], keepdims=0)], \
        {"x": n.floats(70, 40)}, {"first": np.array([0]), "last": np.array([1])}


def host(n):
    """A host step that gives a size."""
    return [node("Sub", ["x", "half"], ["d"]), node("Relu", ["d"], ["r"]), node("NonZero", ["r"], ["n"]),
            node("Cast", ["n"], to=TensorProto.FLOAT)], {"x": n.floats(50)}, {"half": np.float32(0.5)}


# One of which the quantised result may be a step off.
TOLERANCE = {"byte_products": 0.126}
MODELS = {function.__name__: function for function in (
    convolution, depthwise, few_rows, matrices, attention, lstm, sorting, scanning, transform,
    byte_products, block_weights, image, reductions, host)}


def build(name):
    """The model's bytes and its inputs."""
    nodes, inputs, constants = MODELS[name](Numbers())
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, array.shape) for key, array in inputs.items()],
        [helper.make_empty_tensor_value_info(output) for output in
         [output for n in nodes for output in n.output if not any(output in other.input for other in nodes)]],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
    return model.SerializeToString(), inputs


class OldPlans(unittest.TestCase):
    def test_every_model_has_a_plan(self):
        self.assertEqual({path.stem for path in PLANS.iterdir()}, set(MODELS))

    def test_they_compute_what_they_did(self):
        library = libfornax.Library(os.environ["FORNAX_LIBRARY"])
        for name in MODELS:
            model, inputs = build(name)
            expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, inputs)
            with self.subTest(name), libfornax.Model(library, PLANS / f"{name}.plan", cache="none") as loaded:
                actual = loaded.run(*inputs.values())
                for a, e in zip(actual, expected, strict=True):
                    self.assertEqual((a.dtype, a.shape), (e.dtype, e.shape))
                    np.testing.assert_allclose(a, e, rtol=1e-4, atol=TOLERANCE.get(name, 1e-4))


    def test_damaged_and_newer_files_are_told_apart(self):
        library = libfornax.Library(os.environ["FORNAX_LIBRARY"])
        good = (PLANS / "few_rows.plan").read_bytes()
        damaged, newer = bytearray(good), bytearray(good)
        damaged[len(good) // 2] ^= 1
        newer[8] += 1  # the version
        for file, status, words in ((damaged, 9, "model"), (newer, 2, "version 3")):
            with self.assertRaises(libfornax.FornaxError) as raised:
                libfornax.Model(library, bytes(file), cache="none")
            self.assertEqual(raised.exception.status, status, raised.exception)
            self.assertRegex(str(raised.exception), rf"{words}.*\.$")


def write(names):
    for name in names:
        path = PLANS / f"{name}.plan"
        if path.exists():
            sys.exit(f"{path} is there, and stays")
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, f"{name}.onnx")
            model.write_bytes(build(name)[0])
            subprocess.run([os.environ["FORNAX_COMMAND"], "compile", model, "-o", path], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        write(sys.argv[1:])
    else:
        unittest.main()
