"""Operators as the older versions of ONNX's operator set have them, from 7 on, beside onnxruntime.

ONNX's own node tests hold the newest version of each operator alone. FORNAX_LIBRARY is the library's path,
VK_DRIVER_FILES the driver's manifest.
"""

import os
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import libfornax

LIBRARY = libfornax.Library(os.environ["FORNAX_LIBRARY"])
I64 = np.int64


def model_of(nodes, opset, inputs, constants, outputs):
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
         for name, array in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()


class Versions(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(3)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def compare(self, model, inputs, tolerance=1e-5):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        expected = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, inputs)
        with libfornax.Model(LIBRARY, model, cache="none") as fornax:
            actual = fornax.run(*inputs.values())
        for a, e in zip(actual, expected, strict=True):
            self.assertEqual((a.dtype, a.shape), (e.dtype, e.shape))
            np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=tolerance, atol=tolerance)
        return expected

    def check(self, opsets, operator, given, constants=(), outputs=1, tolerance=1e-5, **attributes):
        """`given` are the inputs of the model, `constants` the node's further inputs; None is left out."""
        arrays = [*given, *constants]
        names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
        named = {name: array for name, array in zip(names, arrays) if name}
        inputs = {name: named[name] for name in names[:len(given)] if name}
        node = helper.make_node(operator, names, [f"y{i}" for i in range(outputs)], "node", **attributes)
        for opset in opsets if isinstance(opsets, (tuple, range)) else (opsets,):
            with self.subTest(operator=operator, opset=opset, **attributes):
                self.compare(model_of([node], opset, inputs, {n: a for n, a in named.items() if n not in inputs},
                                      node.output), inputs, tolerance)

    def test_operators_that_are_missing(self):
        """A model of all operators, whose error names those that Fornax does not have."""
        names = sorted(schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "")
        nodes = [helper.make_node(name, [], [f"y{i}"]) for i, name in enumerate(names)]
        with self.assertRaises(libfornax.FornaxError) as raised:
            libfornax.Model(LIBRARY, model_of(nodes, onnx.defs.onnx_opset_version(), {}, {}, ["y0"]), cache="none").outputs()
        self.assertIn("1 node uses an operator that Fornax does not have: ImageDecoder (1)", str(raised.exception))
        self.assertGreater(len(names), 190)

    # --- Elementwise -----------------------------------------------------------------------------

    def test_arithmetic(self):
        a, b = self.floats(2, 3, 4), self.floats(3, 1)
        for operator in ("Add", "Sub", "Mul", "Div", "Less", "Greater"):
            self.check((7, 9, 13), operator, [a, b])
        self.check((7, 12, 13), "Pow", [np.abs(a), b])
        self.check((12, 15), "Pow", [np.arange(6, dtype=np.int32), np.array([2], np.float32)])
        self.check((7, 11, 13), "Equal", [np.arange(6, dtype=I64), np.array([2], I64)])
        for operator in ("Sum", "Max", "Min", "Mean"):
            self.check(7, operator, [a, a * 2, a - 1])
            self.check((8, 13), operator, [a, b, self.floats(1)])
        self.check((12, 13), "Max", [np.arange(6, dtype=np.int32), np.array([2], np.int32)])
        self.check((7, 9, 16), "PRelu", [a, self.floats(3, 1)])
        self.check((10, 13), "Mod", [np.array([-7, 7, 5], I64), np.array([3, -3, 3], I64)])

    def test_clip(self):
        x = self.floats(40)
        for attributes in ({}, {"min": -0.5}, {"max": 0.25}, {"min": -0.5, "max": 0.25}):
            self.check((7, 10), "Clip", [x], **attributes)
        for bounds in ((), (np.float32(-0.5),), (None, np.float32(0.25)), (np.float32(-0.5), np.float32(0.25))):
            self.check((11, 12, 13), "Clip", [x], bounds)

    def test_dropout_does_nothing(self):
        x = self.floats(3, 4)
        self.check((7, 10, 12, 13), "Dropout", [x])
        self.check((7, 10), "Dropout", [x], ratio=0.75)
        self.check((12, 13), "Dropout", [x], [np.float32(0.75), np.array(False)], outputs=2)

    # --- Rows ------------------------------------------------------------------------------------

    def test_softmax(self):
        x = self.floats(2, 3, 4)
        for operator in ("Softmax", "LogSoftmax", "Hardmax"):
            self.check((7, 11, 12, 13), operator, [x])
            for axis in (0, 1, 2):
                self.check((7, 11, 12, 13), operator, [x], axis=axis)
            self.check((11, 13), operator, [x], axis=-2)

    def test_reductions(self):
        x = self.floats(2, 3, 4)
        for operator in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceProd",
                         "ReduceSumSquare"):
            self.check((7, 11), operator, [x])
            self.check((7, 11), operator, [x], axes=[0, 2], keepdims=0)
            self.check(11, operator, [x], axes=[-1])
            if operator != "ReduceSum":
                self.check((13, 17), operator, [x], axes=[-1, 0])
                self.check((18, 20), operator, [x], [np.array([-1, 0], I64)], keepdims=0)
        self.check((13, 18), "ReduceSum", [x], [np.array([-1, 0], I64)])
        self.check((13, 18), "ReduceSum", [x], [np.array([], I64)], noop_with_empty_axes=1)
        self.check((13, 18), "ReduceSum", [x], [np.array([], I64)])

    def test_positions(self):
        x = np.array([[3, 1, 3, 2], [0, 5, 5, 5]], np.float32)
        for operator in ("ArgMax", "ArgMin"):
            self.check((7, 11, 12, 13), operator, [x], axis=1)
            self.check((12, 13), operator, [x], axis=-1, keepdims=0, select_last_index=1)
        x = self.random.permutation(24).reshape(2, 3, 4).astype(np.float32)
        self.check((7, 9), "TopK", [x], outputs=2, k=2)
        self.check((7, 9), "TopK", [x], outputs=2, k=2, axis=1)
        self.check((10, 11), "TopK", [x], [np.array([2], I64)], outputs=2, axis=1)
        self.check((11, 23), "TopK", [x], [np.array([3], I64)], outputs=2, axis=-1, largest=0)
        self.check((11, 14), "CumSum", [x], [np.array(1, np.int32)], reverse=1)

    def test_normalisations(self):
        x, c = self.floats(2, 3, 4, 5), [self.floats(3) for _ in range(3)] + [np.abs(self.floats(3)) + 0.5]
        self.check((7, 9, 14, 15), "BatchNormalization", [x], c, epsilon=1e-3)
        self.check((7, 22), "InstanceNormalization", [x], c[:2])
        self.check((7, 13), "LRN", [x], size=3, alpha=0.1, beta=0.5, bias=2.0)
        self.check((9, 13), "MeanVarianceNormalization", [x], axes=[0, 2, 3])
        self.check((7, 22), "LpNormalization", [x], axis=1, p=1)

    # --- Shapes ----------------------------------------------------------------------------------

    def test_axes(self):
        x = self.floats(1, 3, 1, 4)
        self.check((7, 11, 12), "Squeeze", [x], axes=[0, 2])
        self.check((7, 11, 13), "Squeeze", [x])
        self.check((11, 12), "Squeeze", [x], axes=[-2])
        self.check((13, 21), "Squeeze", [x], [np.array([-2], I64)])
        self.check((7, 11, 12), "Unsqueeze", [x], axes=[0, 5])
        self.check((11, 12), "Unsqueeze", [x], axes=[-1])
        self.check((13, 21), "Unsqueeze", [x], [np.array([-1, 0], I64)])
        self.check((7, 9, 11, 13), "Flatten", [x], axis=2)
        self.check((11, 13), "Flatten", [x], axis=-1)
        self.check((7, 9), "Flatten", [x], axis=0)
        self.check((7, 13), "Reshape", [x], [np.array([0, -1, 2], I64)])
        self.check((15, 19), "Shape", [x], start=1, end=-1)
        self.check((7, 13), "Tile", [x], [np.array([2, 1, 3, 2], I64)])
        self.check((8, 13), "Expand", [x], [np.array([2, 3, 5, 1], I64)])

    def test_slices(self):
        x = self.floats(5, 6, 7)
        self.check((7, 9), "Slice", [x], starts=[1, 0], ends=[-1, 100])
        self.check((7, 9), "Slice", [x], starts=[-3, 2], ends=[100, 4], axes=[2, 0])
        for starts, ends, axes, steps in (([1, 0], [-1, 100], None, None), ([-1], [-100], [1], [-2]),
                                          ([5, -3], [0, 2**63 - 1], [1, -1], [-1, 2]), ([4], [-2**63], [0], [-3])):
            given = [np.array(v, I64) if v else None for v in (starts, ends, axes, steps)]
            self.check((10, 11, 13), "Slice", [x], given if axes else given[:2])

    def test_splits_and_joins(self):
        x = self.floats(3, 7)
        self.check((7, 11, 12), "Split", [x], outputs=2, axis=1, split=[2, 5])
        self.check((7, 11, 12), "Split", [x], outputs=3)
        self.check((13, 18), "Split", [x], [np.array([2, 5], I64)], outputs=2, axis=-1)
        self.check(18, "Split", [x], outputs=3, axis=1, num_outputs=3)
        self.check((7, 11, 13), "Concat", [x, x + 1], axis=1)
        y = self.floats(1, 8, 2, 3)
        self.check((7, 11, 13), "DepthToSpace", [y], blocksize=2)
        self.check((11, 13), "DepthToSpace", [y], blocksize=2, mode="CRD")
        self.check((7, 13), "SpaceToDepth", [self.floats(1, 2, 4, 6)], blocksize=2)

    def test_padding(self):
        x = self.floats(3, 4, 5)
        for mode in ("constant", "reflect", "edge"):
            self.check((7, 10), "Pad", [x], mode=mode, pads=[0, 1, 2, 1, 2, 0])
            self.check((11, 13, 18), "Pad", [x], [np.array([0, 1, 2, 1, 2, 0], I64)], mode=mode)
        self.check((7, 10), "Pad", [x], pads=[1, -1, 0, 0, 2, -2], value=1.5)
        self.check((11, 13), "Pad", [x], [np.array([1, -1, 0, 0, 2, -2], I64), np.float32(1.5)])
        self.check((18, 21), "Pad", [x], [np.array([1, 2], I64), np.float32(1.5), np.array([-1], I64)])

    # --- Indices ---------------------------------------------------------------------------------

    def test_indices(self):
        x, at = self.floats(4, 5), np.array([[0, 3], [2, 1]], I64)
        self.check((7, 11, 13), "Gather", [x, at], axis=1)
        self.check((11, 13), "Gather", [x, at - 4])
        self.check(9, "Scatter", [x, at, self.floats(2, 2)], axis=1)
        self.check((11, 13, 16, 18), "ScatterElements", [x, at - 4, self.floats(2, 2)], axis=1)
        self.check((16, 18), "ScatterElements", [x, at, self.floats(2, 2)], reduction="add")
        self.check(18, "ScatterElements", [x, at, self.floats(2, 2)], reduction="max")
        self.check((11, 13, 16), "ScatterND", [x, at, self.floats(2)])
        self.check((11, 13), "GatherElements", [x, at - 4], axis=1)
        self.check((9, 11), "OneHot", [np.array([0, 2, 7], I64)], [np.array([4], I64), np.array([2, 5], np.float32)])
        self.check(11, "OneHot", [np.array([-1, 2], I64)], [np.array(4, I64), np.array([2, 5], np.float32)], axis=0)
        self.check((9, 11), "Compress", [x], [np.array([False, True, True])], axis=0)
        self.check((9, 13), "NonZero", [(x > 0).astype(np.float32)])
        self.check(10, "ReverseSequence", [x], [np.array([4, 2, 1, 3, 3], I64)], time_axis=0, batch_axis=1)

    def test_boxes(self):
        boxes = self.random.uniform(0, 1, (1, 30, 4)).astype(np.float32)
        scores = self.random.uniform(0, 1, (1, 2, 30)).astype(np.float32)
        self.check((10, 11), "NonMaxSuppression", [boxes, scores], [np.array([5], I64), np.float32([0.3]), np.float32([0.2])])

    def test_regions(self):
        """A sampling_ratio of 0, which is the default, means as many samples as a box is large."""
        x = self.floats(2, 3, 12, 15)
        corner = self.random.uniform(-2, 18, (5, 2))
        boxes = np.concatenate([corner, corner + self.random.uniform(0.2, 16, (5, 2))], 1).astype(np.float32)
        images = np.array([0, 1, 1, 0, 1], I64)
        for ratio in (0, 2):
            for mode in ("avg", "max"):
                shape = dict(output_height=3, output_width=4, spatial_scale=0.7, sampling_ratio=ratio, mode=mode)
                self.check((10, 16), "RoiAlign", [x, boxes, images], **shape)
                self.check(16, "RoiAlign", [x, boxes, images], coordinate_transformation_mode="output_half_pixel", **shape)

    def test_greatest_of_regions(self):
        x = self.floats(2, 3, 9, 11)
        corner = self.random.uniform(-3, 12, (6, 2))
        boxes = np.concatenate([np.array([[0], [1], [1], [0], [1], [0]]), corner,
                                corner + self.random.uniform(-1, 9, (6, 2))], 1).astype(np.float32)
        for scale in (1.0, 0.6):
            self.check((7, 13), "MaxRoiPool", [x, boxes], pooled_shape=[3, 2], spatial_scale=scale)

    # --- Windows and images ----------------------------------------------------------------------

    def test_pools(self):
        x = self.floats(2, 3, 9, 10)
        window = dict(kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        self.check((7, 8, 10, 11, 12), "MaxPool", [x], **window)
        self.check((8, 10, 12), "MaxPool", [x], outputs=2, **window)
        self.check((10, 11, 12), "MaxPool", [x], kernel_shape=[2, 3], dilations=[2, 2], ceil_mode=1)
        self.check((7, 10, 11, 19), "AveragePool", [x], **window)
        self.check((7, 10, 11, 19), "AveragePool", [x], count_include_pad=1, **window)
        self.check((7, 11), "MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")
        self.check((7, 11, 18), "LpPool", [x], kernel_shape=[2, 2], p=1)

    def test_transposed_convolutions(self):
        x, w = self.floats(1, 3, 5, 6), [self.floats(3, 2, 3, 3)]
        self.check((7, 11), "ConvTranspose", [x], w, strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 1])
        self.check((7, 11), "ConvTranspose", [x], w, strides=[2, 2], output_shape=[11, 12], pads=[0, 0, 0, 0])

    def test_gemm(self):
        a, b, c = self.floats(4, 3), self.floats(3, 5), self.floats(5)
        self.check((7, 9, 11, 13), "Gemm", [a, b, c], alpha=0.5, beta=2.0)
        self.check((7, 11), "Gemm", [a, b.T.copy(), self.floats(4, 1)], transB=1)
        self.check((11, 13), "Gemm", [a, b])

    def test_resizing(self):
        x = self.floats(1, 2, 6, 10)
        for scales in ([1, 1, 2, 3], [1, 1, 1.5, 2.3]):
            for mode in ("nearest", "linear"):
                self.check(7, "Upsample", [x], mode=mode, scales=[float(scale) for scale in scales])
                self.check(9, "Upsample", [x], [np.float32(scales)], mode=mode)
        # Version 10 rounds places up where an axis shrinks, and down where it grows.
        for scales in ([1, 1, 2, 3], [1, 1, 0.6, 0.5], [1, 1, 1.5, 0.7], [1, 1, 0.4, 2.5], [1, 1, 1, 0.3]):
            for mode in ("nearest", "linear"):
                self.check(10, "Resize", [x], [np.float32(scales)], mode=mode)
                self.check((11, 13, 18, 19), "Resize", [x], [np.float32([]), np.float32(scales)], mode=mode)
        self.check((11, 12), "Resize", [x], [np.float32([]), np.float32([]), np.array([1, 2, 9, 4], I64)], mode="cubic")
        self.check((13, 18), "Resize", [x], [None, None, np.array([1, 2, 9, 4], I64)], mode="cubic")
        grid = self.random.uniform(-1.2, 1.2, (1, 4, 5, 2)).astype(np.float32)
        for old, new in (("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")):
            self.check(16, "GridSample", [x, grid], mode=old)
            self.check(20, "GridSample", [x, grid], mode=new)

    # --- Quantised -------------------------------------------------------------------------------

    def test_quantisation(self):
        x = self.floats(4, 6) * 3
        one, rows = (np.float32(0.05), np.uint8(120)), (np.float32([0.05, 0.1, 0.02, 0.03]), np.uint8([0, 9, 200, 128]))
        self.check((10, 13, 19, 21), "QuantizeLinear", [x], one, tolerance=1.01)
        self.check((13, 19, 21), "QuantizeLinear", [x], rows, axis=0, tolerance=1.01)
        codes = self.random.integers(0, 256, (4, 6)).astype(np.uint8)
        self.check((10, 13, 19, 21), "DequantizeLinear", [codes], one)
        self.check((13, 19, 21), "DequantizeLinear", [codes], rows, axis=0)

    # --- Recurrent, control flow -----------------------------------------------------------------

    def test_recurrent(self):
        x = self.floats(5, 2, 3)
        for operator, gates, outputs in (("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)):
            weights = [self.floats(2, gates * 4, 3), self.floats(2, gates * 4, 4), self.floats(2, gates * 8)]
            self.check((7, 14, 22), operator, [x], weights, outputs=outputs, hidden_size=4, direction="bidirectional")

    def test_numbers_of_activations(self):
        """The lists have entries for those activations that take one, in their order."""
        x = self.floats(5, 2, 3)
        lstm = [self.floats(1, 16, 3), self.floats(1, 16, 4), self.floats(1, 32)]
        gru = [self.floats(2, 12, 3), self.floats(2, 12, 4), self.floats(2, 24)]
        self.check((7, 14), "LSTM", [x], lstm, outputs=3, hidden_size=4, activations=["Sigmoid", "LeakyRelu", "Tanh"],
                   activation_alpha=[0.3])
        self.check((7, 14), "LSTM", [x], lstm, outputs=3, hidden_size=4, activations=["HardSigmoid", "Tanh", "ScaledTanh"],
                   activation_alpha=[0.3, 0.8], activation_beta=[0.4, 1.2])
        self.check((7, 14), "GRU", [x], gru, outputs=2, hidden_size=4, direction="bidirectional",
                   activations=["Sigmoid", "LeakyRelu", "HardSigmoid", "Tanh"], activation_alpha=[0.3, 0.25],
                   activation_beta=[0.4])

    def test_scan(self):
        for opset in (8, 9, 11):
            body = helper.make_graph(
                [helper.make_node("Add", ["state", "slice"], ["next"]), helper.make_node("Mul", ["next", "next"], ["square"])],
                "body", [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("state", "slice")],
                [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("next", "square")])
            leading = [3] if opset == 8 else []
            node = helper.make_node("Scan", ["", "x0", "x1"] if opset == 8 else ["x0", "x1"], ["y0", "y1"], body=body,
                                    num_scan_inputs=1)
            inputs = {"x0": self.floats(*leading, 2), "x1": self.floats(*leading, 5, 2)}
            with self.subTest(opset=opset):
                self.compare(model_of([node], opset, inputs, {}, ["y0", "y1"]), inputs)

    def test_loops_that_data_end(self):
        """The results have as many slices as there were iterations."""
        body = helper.make_graph(
            [helper.make_node("Add", ["v", "x"], ["next"]), helper.make_node("Mul", ["next", "next"], ["square"]),
             helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
             helper.make_node("Less", ["total", "bound"], ["more"])], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("v", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("more", TensorProto.BOOL, []),
             helper.make_tensor_value_info("next", TensorProto.FLOAT, [2]),
             helper.make_tensor_value_info("square", TensorProto.FLOAT, [2])])
        node = helper.make_node("Loop", ["most", "", "x"], ["y0", "y1"], body=body)
        counts = set()
        for opset in (7, 11, 13):
            for most in (5, 30):
                for bound in (0, 9, 1000):
                    inputs = {"x": np.float32([1, 0.5]), "bound": np.array(bound, np.float32)}
                    model = model_of([node], opset, inputs, {"most": np.array(most, I64)}, ["y0", "y1"])
                    with self.subTest(opset=opset, most=most, bound=bound):
                        counts.add(self.compare(model, inputs)[1].shape[0])
        self.assertEqual(counts, {1, 5, 30})


if __name__ == "__main__":
    unittest.main()
