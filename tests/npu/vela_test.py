"""Quantised networks as TensorFlow Lite files, and the model beside Vela's estimates.

FORNAX_COMMAND is the command; FORNAX_VELA, or what is found in the path, that of Vela (PyPI ethos-u-vela), without which only the
files are looked at. With the package ai-edge-litert installed they are also run.
"""

import importlib.util
import json
import logging
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.models.catalogue import NETWORKS  # noqa: E402
from tools.replay import reality, tflite, vela  # noqa: E402

logging.disable(logging.WARNING)


def small(name):
    return NETWORKS[name].build(**NETWORKS[name].small)


class Table:
    """A table of a flatbuffer, by the format's own rules."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]

    def place(self, slot):
        size = struct.unpack_from("<H", self.data, self.fields)[0]
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return self.at + offset if offset else None

    def number(self, slot, kind, default=0):
        place = self.place(slot)
        return default if place is None else struct.unpack_from("<" + kind, self.data, place)[0]

    def numbers(self, slot, kind):
        place = self.place(slot)
        if place is None:
            return []
        begin = place + struct.unpack_from("<I", self.data, place)[0]
        count = struct.unpack_from("<I", self.data, begin)[0]
        return list(struct.unpack_from(f"<{count}{kind}", self.data, begin + 4))

    def tables(self, slot):
        begin = self.place(slot)
        begin += struct.unpack_from("<I", self.data, begin)[0]
        places = [begin + 4 + 4 * i for i in range(struct.unpack_from("<I", self.data, begin)[0])]
        return [Table(self.data, place + struct.unpack_from("<I", self.data, place)[0]) for place in places]


def operators(data):
    """How often each operator is in a file; and the tables of its tensors and buffers."""
    root = Table(data, struct.unpack_from("<I", data, 0)[0])
    [graph] = root.tables(2)
    names = {number: name for name, (number, _, _) in tflite.OPERATORS.items()}
    codes = [names[code.number(3, "i")] for code in root.tables(1)]
    counts = {}
    for operator in graph.tables(3):
        name = codes[operator.number(0, "I")]
        counts[name] = counts.get(name, 0) + 1
    return counts, graph.tables(0), root.tables(4)


class FileCase(unittest.TestCase):
    def test_operators_and_weights(self):
        model = small("mobilenet_v2_qdq")
        data = tflite.convert(model.proto)
        self.assertEqual(data[4:8], b"TFL3")
        counts, tensors, buffers = operators(data)
        kinds = {}
        for node in model.proto.graph.node:
            kinds[node.op_type] = kinds.get(node.op_type, 0) + 1
        self.assertEqual(counts["CONV_2D"] + counts["DEPTHWISE_CONV_2D"], kinds["Conv"])
        self.assertEqual(counts["ADD"], kinds["Add"])
        self.assertEqual((counts["FULLY_CONNECTED"], counts["MEAN"], counts["RESHAPE"]), (1, 1, 1))
        for tensor in tensors:
            size = buffers[tensor.number(2, "I")].numbers(0, "B")
            if size:
                elements = np.prod(tensor.numbers(0, "i"), dtype=np.int64)
                self.assertEqual(len(size), elements * (4 if tensor.number(1, "b") == tflite.INT32 else 1))

    def test_unsigned_activations_become_signed(self):
        _, tensors, _ = operators(tflite.convert(small("resnet50_qdq").proto))
        for tensor in tensors:
            self.assertIn(tensor.number(1, "b"), (tflite.INT8, tflite.INT32))

    def test_what_is_not_converted_is_a_sentence(self):
        with self.assertRaisesRegex(tflite.ConvertError, "which is not converted; the operators are Conv"):
            tflite.convert(small("bert_base_qdq").proto)
        with self.assertRaisesRegex(tflite.ConvertError, "is not quantised|are no quantised weights"):
            tflite.convert(small("resnet50").proto)

    def test_results_are_those_of_the_model(self):
        if importlib.util.find_spec("ai_edge_litert") is None:
            self.skipTest("the package ai-edge-litert is not installed")
        from ai_edge_litert.interpreter import Interpreter

        for name in ("mobilenet_v2_qdq", "resnet50_qdq"):
            model = small(name)
            image = np.random.default_rng(1).uniform(-2, 2, (1, 3, 64, 64)).astype(np.float32)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options)
            [expected] = session.run(None, {"input": image})
            interpreter = Interpreter(model_content=tflite.convert(model.proto))
            interpreter.allocate_tensors()
            [source], [result] = interpreter.get_input_details(), interpreter.get_output_details()
            scale, zero = source["quantization"]
            quantised = np.clip(np.rint(image.transpose(0, 2, 3, 1) / scale) + zero, -128, 127).astype(np.int8)
            interpreter.set_tensor(source["index"], quantised)
            interpreter.invoke()
            scale, zero = result["quantization"]
            found = (interpreter.get_tensor(result["index"]).astype(np.float32) - zero) * scale
            np.testing.assert_allclose(found, expected, atol=1.01 * scale, err_msg=name)


def one_operator(kind, zero=0, bias=True, zero_points=True, readers=1, **attributes):
    """A quantised model of one operator on an image of two channels, 6 x 6; the weights are ones."""
    image = [1, 2, 6, 6]
    constants = {"scale": np.float32(0.5), "zero": np.int8(zero), "weights_zero": np.int8(0), "bias": np.ones(2, np.float32),
                 "weights": np.ones((2, 2, 3, 3), np.int8)}
    quantised = ["scale", "zero"] if zero_points else ["scale"]
    inputs = {"Conv": ["x_float", "weights_float", "bias"][:3 if bias else 2], "Add": ["x_float", "one_float"]}.get(kind, ["x_float"])
    nodes = [onnx.helper.make_node("QuantizeLinear", ["x", *quantised], ["x_int8"]),
             onnx.helper.make_node("DequantizeLinear", ["x_int8", *quantised], ["x_float"])]
    if kind == "Conv":
        nodes.append(onnx.helper.make_node("DequantizeLinear", ["weights", "scale", "weights_zero"], ["weights_float"]))
    if kind == "Add":
        constants["one"] = np.ones(image, np.int8)
        nodes.append(onnx.helper.make_node("DequantizeLinear", ["one", "scale", "zero"], ["one_float"]))
    nodes.append(onnx.helper.make_node(kind, inputs, ["y"], "it", **attributes))
    for i in range(readers):
        nodes += [onnx.helper.make_node("QuantizeLinear", ["y", *quantised], [f"y{i}_int8"]),
                  onnx.helper.make_node("DequantizeLinear", [f"y{i}_int8", *quantised], [f"y{i}_float"])]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
              for name, shape in [("x", image), *((f"y{i}_float", None) for i in range(readers))]]
    graph = onnx.helper.make_graph(nodes, "one", values[:1], values[1:],
                                   [onnx.numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


class RefusedCase(unittest.TestCase):
    def refused(self, text, *arguments, **named):
        with self.assertRaisesRegex(tflite.ConvertError, text):
            tflite.convert(one_operator(*arguments, **named))

    def test_what_is_converted(self):
        counts, tensors, _ = operators(tflite.convert(one_operator("Conv", kernel_shape=[3, 3])))
        self.assertEqual(counts, {"CONV_2D": 1})
        self.assertEqual(len(tensors), 4)

    def test_inputs_that_are_let_out(self):
        self.refused("Conv it has no bias", "Conv", bias=False, kernel_shape=[3, 3])
        self.refused("has no zero point", "Conv", zero_points=False, kernel_shape=[3, 3])

    def test_values_that_are_quantised_twice_or_constant(self):
        self.refused("y is quantised 2 times", "Conv", readers=2, kernel_shape=[3, 3])
        self.refused("one_float is a constant", "Add")

    def test_attributes(self):
        self.refused("Conv it has auto_pad SAME_UPPER", "Conv", kernel_shape=[3, 3], auto_pad="SAME_UPPER")
        self.refused("MaxPool it has auto_pad VALID", "MaxPool", kernel_shape=[3, 3], auto_pad="VALID")
        self.refused("MaxPool it has ceil_mode", "MaxPool", kernel_shape=[3, 3], ceil_mode=1)
        self.refused("MaxPool it has dilations", "MaxPool", kernel_shape=[3, 3], dilations=[2, 2])
        self.refused("a kernel_shape of 0 numbers", "Conv")

    def test_pads_of_a_max_pool(self):
        uneven = {"kernel_shape": [3, 3], "pads": [2, 2, 2, 2]}
        self.refused("zero point of 3; only -128", "MaxPool", zero=3, **uneven)
        self.assertEqual(operators(tflite.convert(one_operator("MaxPool", zero=-128, **uneven)))[0], {"PAD": 1, "MAX_POOL_2D": 1})
        same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        self.assertEqual(operators(tflite.convert(one_operator("MaxPool", zero=3, **same)))[0], {"MAX_POOL_2D": 1})
        # Convolutions pad with 0, which PAD writes at any zero point.
        self.assertEqual(operators(tflite.convert(one_operator("Conv", zero=3, **uneven)))[0], {"PAD": 1, "CONV_2D": 1})

    def test_an_order_of_elements(self):
        self.refused("Flatten it takes 6 x 6 elements a channel", "Flatten")


class VelaCase(unittest.TestCase):
    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, "-m", "tools.replay.vela", "--fornax", os.environ["FORNAX_COMMAND"], *arguments],
                              cwd=ROOT, capture_output=True, text=True, timeout=280)

    def test_a_table(self):
        command = os.environ.get("FORNAX_VELA") or shutil.which("vela")
        if not command:
            self.skipTest("there is no Vela")
        with tempfile.TemporaryDirectory(prefix="fornax_vela_test_") as folder:
            report = pathlib.Path(folder, "report.json")
            ran = self.run_tool("--vela", command, "--quick", "--json", str(report), "mobilenet_v2, 224 x 224", "resnet50, 224 x 224")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            rows = json.loads(report.read_text())
        self.assertEqual(len(re.findall(r"^\| (?:mobilenet|resnet)", ran.stdout, re.M)), 2)
        self.assertIn("modelled, uncalibrated (like-u85-2048", ran.stdout)
        for row in rows:
            self.assertGreater(row["million_macs"], 0)
            # Neither was measured, so this only says that both are of one order.
            self.assertGreater(row["ratio"], 0.05)
            self.assertLess(row["ratio"], 20)

    def test_a_program_that_is_no_vela(self):
        ran = self.run_tool("--vela", "false", "--quick", "resnet50, 224 x 224")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("tools.replay.vela: Vela failed: It said nothing.", ran.stderr)
        ran = self.run_tool("--vela", "/nowhere/vela", "--quick", "resnet50, 224 x 224")
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, "tools.replay.vela: .*/nowhere/vela")
        self.assertEqual(self.run_tool("--vela", "false", "none").returncode, 2)

    def test_two_summaries(self):
        with tempfile.TemporaryDirectory(prefix="fornax_vela_test_") as folder:
            for machine in ("a", "b"):
                pathlib.Path(folder, f"net_summary_{machine}.csv").write_text("inference_time\n1\n")
            with self.assertRaisesRegex(reality.RealityError, "Vela wrote 2 summaries: net_summary_a.csv, net_summary_b.csv"):
                vela.estimate("true", pathlib.Path("net.tflite"), pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main()
