"""Operators in shapes and attributes that ONNX's node tests do not have, and small graphs, against onnxruntime.

Each case is one small model, run on the device through libfornax.so.
"""

import os
import unittest

import ml_dtypes
import numpy as np
from onnx import helper, parser

import libfornax
from fornax_command import make_model, onnxruntime_outputs, random_array


def node(operator, inputs, **attributes):
    return helper.make_node(operator, inputs, ["y"], "node", **attributes)


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = libfornax.Library(os.environ["FORNAX_LIBRARY"])

    def run_model(self, model, arrays):
        with libfornax.Model(self.library, model.SerializeToString(), cache="none") as loaded:
            return loaded.run(*arrays)

    def check(self, nodes, inputs, constants=None, opset=13, positive=False, tolerance=1e-5):
        """Compares the value y of a model with inputs of the given shapes."""
        rng = np.random.default_rng(7)
        arrays = {name: random_array(rng, shape, 0.1 if positive else -2.0, 2.0)
                  for name, shape in inputs.items()}
        nodes = nodes if isinstance(nodes, list) else [nodes]
        model = make_model(nodes, inputs, {"y": None}, constants, opset)
        expected = onnxruntime_outputs(model.SerializeToString(), arrays)[0]
        (actual,) = self.run_model(model, arrays.values())
        self.assertEqual(actual.shape, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)

    def weight(self, *shape):
        return random_array(np.random.default_rng(11), shape)

    # --- Windows ---------------------------------------------------------------------------------

    def test_conv_shapes(self):
        cases = [
            # x, weight, attributes
            ((2, 3, 9, 11), (8, 3, 3, 3), {}),
            ((1, 3, 9, 11), (5, 3, 3, 2), dict(strides=[2, 3], pads=[1, 0, 2, 1])),
            ((1, 2, 13, 10), (9, 2, 3, 3), dict(dilations=[2, 3], pads=[2, 3, 2, 3])),
            ((2, 6, 7, 7), (12, 2, 3, 3), dict(group=3, pads=[1, 1, 1, 1])),
            ((2, 6, 7, 7), (6, 1, 3, 3), dict(group=6, pads=[1, 1, 1, 1])),
            ((2, 4, 7, 5), (8, 1, 3, 3), dict(group=4)),
            ((1, 16, 5, 5), (17, 16, 1, 1), {}),
            ((1, 2, 8, 9), (4, 2, 4, 3), dict(auto_pad="SAME_UPPER", strides=[2, 2])),
            ((1, 2, 8, 9), (4, 2, 4, 3), dict(auto_pad="SAME_LOWER", strides=[3, 2])),
            ((1, 2, 8, 9), (4, 2, 3, 3), dict(auto_pad="VALID")),
        ]
        for x, weight, attributes in cases:
            for bias in (False, True):
                with self.subTest(x=x, weight=weight, bias=bias, **attributes):
                    constants = {"w": self.weight(*weight)}
                    if bias:
                        constants["b"] = self.weight(weight[0])
                    names = ["x", "w", "b"] if bias else ["x", "w"]
                    self.check(node("Conv", names, **attributes), {"x": x}, constants)

    def test_conv_one_axis(self):
        self.check(node("Conv", ["x", "w", "b"], strides=[2], pads=[2, 1]), {"x": (2, 3, 17)},
                   {"w": self.weight(4, 3, 5), "b": self.weight(4)})

    def test_conv_with_computed_weight(self):
        self.check(node("Conv", ["x", "w"]), {"x": (1, 2, 6, 6), "w": (4, 2, 3, 3)})

    def test_pools(self):
        for operator in ("MaxPool", "AveragePool"):
            for x, attributes in [
                ((2, 3, 8, 8), dict(kernel_shape=[2, 2], strides=[2, 2])),
                ((1, 3, 9, 7), dict(kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 2, 0])),
                ((1, 2, 10, 11), dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)),
                ((1, 2, 7, 7), dict(kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2])),
                ((2, 3, 12), dict(kernel_shape=[3], strides=[2])),
            ]:
                with self.subTest(operator=operator, x=x, **attributes):
                    self.check(node(operator, ["x"], **attributes), {"x": x})

    def test_max_pool_dilations(self):
        self.check(node("MaxPool", ["x"], kernel_shape=[2, 3], dilations=[3, 2]), {"x": (1, 2, 9, 9)})

    def test_average_pool_counts_padding(self):
        self.check(node("AveragePool", ["x"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                        count_include_pad=1), {"x": (1, 2, 6, 5)})

    def test_global_pools(self):
        for operator in ("GlobalAveragePool", "GlobalMaxPool"):
            for shape in ((2, 5, 7, 9), (2, 3, 11)):
                with self.subTest(operator=operator, shape=shape):
                    self.check(node(operator, ["x"]), {"x": shape})

    def test_resize_ratios(self):
        """Taps that are evenly spaced, at whole ratios, and others, along rows and across them."""
        modes = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        for mode in ("linear", "cubic"):
            for coordinates in modes:
                for shape, sizes in (((2, 3, 9, 10), (18, 20)), ((1, 2, 7, 5), (21, 15)), ((1, 2, 12, 16), (6, 4)), ((1, 3, 10, 24), (25, 17)),
                                     ((1, 1, 6, 34), (6, 68)), ((1, 2, 3, 2), (6, 4))):
                    if mode == "cubic" and (sizes[0] < shape[2] or shape[3] == 2):
                        continue
                    with self.subTest(mode=mode, coordinates=coordinates, shape=shape, sizes=sizes):
                        self.check(node("Resize", ["x", "", "", "s"], mode=mode, coordinate_transformation_mode=coordinates),
                                   {"x": shape}, {"s": np.array([*shape[:2], *sizes])}, opset=18)

    def test_nearest_ratios(self):
        """Places that are evenly spaced are slices, others come from a table."""
        for coordinates in ("half_pixel", "asymmetric", "align_corners"):
            for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
                for shape, sizes in (((2, 3, 8, 40), (4, 20)), ((1, 2, 9, 66), (3, 22)), ((1, 2, 7, 5), (21, 15)), ((1, 3, 6, 10), (9, 15)),
                                     ((1, 2, 12, 15), (8, 10)), ((1, 1, 3, 2), (1, 1)), ((1, 2, 5, 1), (5, 3))):
                    with self.subTest(coordinates=coordinates, mode=mode, shape=shape, sizes=sizes):
                        self.check(node("Resize", ["x", "", "", "s"], mode="nearest", nearest_mode=mode,
                                        coordinate_transformation_mode=coordinates),
                                   {"x": shape}, {"s": np.array([*shape[:2], *sizes])}, opset=18, tolerance=0)

    def test_resize_of_infinities(self):
        """An infinite element reaches only the places that interpolate it."""
        x = np.ones((1, 1, 3, 6), np.float32)
        x[0, 0, 1, 2] = np.inf
        model = make_model([node("Resize", ["x", "", "s"], mode="linear")], {"x": x.shape}, {"y": None},
                           {"s": np.float32([1, 1, 1, 2])}, 18)
        (y,) = self.run_model(model, [x])
        self.assertEqual(np.flatnonzero(~np.isfinite(y[0, 0, 1])).tolist(), [3, 4, 5, 6])
        self.assertTrue(np.all(y[0, 0, [0, 2]] == 1))

    def test_padding_of_rows(self):
        for mode in ("reflect", "edge", "wrap"):
            for pads in ((0, 3, 0, 2), (2, 4, 1, 0), (0, 0, 0, 4), (1, 0, 3, 0), (2, 4, 4, 4)):
                with self.subTest(mode=mode, pads=pads):
                    self.check(node("Pad", ["x", "p"], mode=mode), {"x": (6, 5)}, {"p": np.array(pads)}, opset=19)

    # --- Matrices and normalisations -------------------------------------------------------------

    def test_matmul_shapes(self):
        for a, b in [((5, 7), (7, 9)), ((1, 64), (64, 130)), ((33, 17), (17, 1)), ((9, 3), (3, 200)),
                     ((2, 3, 5, 7), (7, 4)), ((2, 3, 5, 7), (2, 3, 7, 4)), ((2, 1, 5, 7), (3, 7, 4)),
                     ((3, 5, 7), (2, 1, 7, 4)), ((7,), (7, 4)), ((5, 7), (7,)), ((7,), (7,)),
                     ((2, 3, 2, 3, 9, 5), (3, 5, 8))]:
            with self.subTest(a=a, b=b):
                self.check(node("MatMul", ["a", "b"]), {"a": a, "b": b})

    def test_products_of_weights_in_blocks(self):
        """DequantizeLinear in blocks in front of a product; onnxruntime may round the activations to bytes."""
        rng = np.random.default_rng(3)
        for dtype, block, (k, n) in ((ml_dtypes.int4, 32, (96, 40)), (ml_dtypes.uint4, 16, (64, 33)), (np.int8, 32, (64, 24)),
                                     (np.uint8, 64, (128, 16))):
            for transposed in (False, True):
                for zeros in (False, True):
                    with self.subTest(dtype=dtype, block=block, k=k, n=n, transposed=transposed, zeros=zeros):
                        low, high = (-8, 8) if dtype == ml_dtypes.int4 else (0, 16) if dtype == ml_dtypes.uint4 else \
                            (-128, 128) if dtype == np.int8 else (0, 256)
                        blocks = (k // block, n)
                        constants = {"q": rng.integers(low, high, (k, n)).astype(dtype),
                                     "s": rng.uniform(0.001, 0.01, blocks).astype(np.float32)}
                        if zeros:
                            constants["z"] = rng.integers(low // 2, high // 2, blocks).astype(dtype)
                        if transposed:
                            constants = {name: np.ascontiguousarray(array.T) for name, array in constants.items()}
                        dequantise = helper.make_node("DequantizeLinear", ["q", "s", *(["z"] if zeros else [])], ["w"],
                                                      axis=int(transposed), block_size=block)
                        product = node("Gemm", ["x", "w"], transB=1) if transposed else node("MatMul", ["x", "w"])
                        for rows in (1, 20):
                            self.check([dequantise, product], {"x": (rows, k)}, constants, opset=21, tolerance=0.1)

    def test_gemm(self):
        for transposed_a in (0, 1):
            for transposed_b in (0, 1):
                for c in (None, (6,), (4, 6), (4, 1), (1,), ()):
                    with self.subTest(transposed_a=transposed_a, transposed_b=transposed_b, c=c):
                        constants = {"b": self.weight(*((6, 5) if transposed_b else (5, 6)))}
                        if c is not None:
                            constants["c"] = np.asarray(self.weight(*c), np.float32)
                        self.check(
                            node("Gemm", ["a", "b", "c"][: 2 + (c is not None)], alpha=0.5, beta=2.0,
                                 transA=transposed_a, transB=transposed_b),
                            {"a": (5, 4) if transposed_a else (4, 5)}, constants)

    def test_batch_normalization(self):
        parameters = {name: self.weight(4) for name in ("s", "b", "m")}
        parameters["v"] = np.abs(self.weight(4)) + 0.1
        for shape in ((2, 4, 5, 6), (3, 4), (2, 4, 7)):
            with self.subTest(shape=shape):
                self.check(node("BatchNormalization", ["x", "s", "b", "m", "v"], epsilon=1e-3),
                           {"x": shape}, parameters)

    def test_conv_batch_normalization_relu(self):
        constants = {name: self.weight(6) for name in ("s", "t", "m", "b")}
        constants["v"] = np.abs(self.weight(6)) + 0.1
        constants["w"] = self.weight(6, 3, 3, 3)
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv"),
                 helper.make_node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"], "norm"),
                 helper.make_node("Relu", ["n"], ["y"], "relu")]
        self.check(nodes, {"x": (2, 3, 8, 8)}, constants)

    def test_layer_normalization(self):
        for axis in (-1, 1):
            shape = (3, 5, 8)
            tail = shape[axis:]
            with self.subTest(axis=axis):
                self.check(node("LayerNormalization", ["x", "s", "b"], axis=axis), {"x": shape},
                           {"s": self.weight(*tail), "b": self.weight(*tail)}, opset=17)

    def test_softmax(self):
        for shape, axis in [((3, 10), -1), ((2, 3, 4, 5), 1), ((2, 300), 1), ((5,), 0)]:
            with self.subTest(shape=shape, axis=axis):
                self.check(node("Softmax", ["x"], axis=axis), {"x": shape})
        self.check(node("Softmax", ["x"]), {"x": (2, 3, 4)}, opset=11)

    def test_softmax_of_large_numbers(self):
        nodes = [helper.make_node("Mul", ["x", "k"], ["z"]), node("Softmax", ["z"])]
        self.check(nodes, {"x": (4, 9)}, {"k": np.float32(500)}, tolerance=1e-4)

    def test_reductions(self):
        for operator in ("ReduceMean", "ReduceMax", "ReduceMin"):
            for axes in ([1], [-1], [0, 2], [1, 2], None):
                for keepdims in (0, 1):
                    with self.subTest(operator=operator, axes=axes, keepdims=keepdims):
                        attributes = dict(keepdims=keepdims, **({"axes": axes} if axes else {}))
                        self.check(node(operator, ["x"], **attributes), {"x": (3, 4, 5)})
        self.check(node("ReduceSum", ["x", "axes"]), {"x": (3, 4, 5)},
                   {"axes": np.array([0, 1], np.int64)})

    # --- Elementwise -----------------------------------------------------------------------------

    def test_functions_of_one_value(self):
        for operator in ("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Erf", "LeakyRelu",
                         "Identity", "Dropout"):
            with self.subTest(operator=operator):
                self.check(node(operator, ["x"]), {"x": (3, 5, 7)})
        for operator in ("Sqrt", "Log", "Reciprocal"):
            with self.subTest(operator=operator):
                self.check(node(operator, ["x"]), {"x": (3, 5, 7)}, positive=True)

    def test_functions_saturate(self):
        for operator in ("Sigmoid", "Tanh", "Erf"):
            with self.subTest(operator=operator):
                nodes = [helper.make_node("Mul", ["x", "k"], ["z"]), node(operator, ["z"])]
                self.check(nodes, {"x": (50,)}, {"k": np.float32(200)})

    def test_clip(self):
        self.check(node("Clip", ["x", "low", "high"]), {"x": (40,)},
                   {"low": np.float32(-0.5), "high": np.float32(1)})
        self.check(node("Clip", ["x", "", "high"]), {"x": (40,)}, {"high": np.float32(1)})
        self.check(node("Clip", ["x"], min=-0.25, max=0.5), {"x": (40,)}, opset=9)

    def test_functions_of_two_values(self):
        shapes = [((4, 5), (4, 5)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 1)), ((5, 1), (1, 6)),
                  ((1,), (2, 3)), ((2, 1, 3, 1, 2), (4, 1, 5, 1)), ((2, 3, 2, 1, 2, 3), (3, 1, 4, 1, 3))]
        for operator in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
            for a, b in shapes:
                with self.subTest(operator=operator, a=a, b=b):
                    self.check(node(operator, ["a", "b"]), {"a": a, "b": b}, positive=operator == "Div")

    def test_pow(self):
        self.check(node("Pow", ["a", "b"]), {"a": (4, 5), "b": (5,)}, positive=True)
        for exponent in (2, 3, 0, -1):
            self.check(node("Pow", ["a", "e"]), {"a": (4, 5)}, {"e": np.float32(exponent)})

    def test_sum_of_three(self):
        self.check(node("Sum", ["a", "b", "c"]), {"a": (4, 5), "b": (5,), "c": (4, 1)})

    def test_scalar_operand(self):
        self.check(node("Mul", ["x", "k"]), {"x": (3, 4)}, {"k": np.float32(1.5)})

    # --- Shapes ----------------------------------------------------------------------------------

    def test_reshape(self):
        for shape in ([6, -1], [0, 2, 4], [-1], [3, 2, 2, 2]):
            with self.subTest(shape=shape):
                nodes = [helper.make_node("Reshape", ["x", "s"], ["z"]), node("Relu", ["z"])]
                self.check(nodes, {"x": (3, 4, 2)}, {"s": np.array(shape, np.int64)})

    def test_reshape_alone(self):
        self.check(node("Reshape", ["x", "s"]), {"x": (3, 4, 2)}, {"s": np.array([8, 3], np.int64)})

    def test_flatten(self):
        for axis in (0, 1, 2, 3, -1):
            with self.subTest(axis=axis):
                self.check(node("Flatten", ["x"], axis=axis), {"x": (2, 3, 4)})

    def test_squeeze_and_unsqueeze(self):
        axes = {"axes": np.array([0, -1], np.int64)}
        self.check(node("Squeeze", ["x", "axes"]), {"x": (1, 3, 1, 4, 1)}, axes)
        self.check(node("Squeeze", ["x"]), {"x": (1, 3, 1, 4, 1)})
        self.check(node("Unsqueeze", ["x", "axes"]), {"x": (3, 4)}, axes)
        self.check(node("Unsqueeze", ["x"], axes=[1]), {"x": (3, 4)}, opset=11)

    def test_transpose(self):
        for shape, permutation in [((3, 4), None), ((2, 3, 4), [2, 0, 1]), ((2, 3, 4, 5), [0, 2, 3, 1]),
                                   ((2, 3, 2, 3, 2, 3), [5, 3, 1, 0, 2, 4]), ((3, 4), [0, 1])]:
            with self.subTest(shape=shape, permutation=permutation):
                attributes = {} if permutation is None else {"perm": permutation}
                self.check(node("Transpose", ["x"], **attributes), {"x": shape})

    def test_concat(self):
        for axis, shapes in [(0, [(2, 3), (1, 3)]), (1, [(2, 3), (2, 1), (2, 5)]),
                             (-2, [(2, 3, 4), (2, 2, 4)]), (2, [(1, 2, 3, 2), (1, 2, 1, 2)])]:
            with self.subTest(axis=axis, shapes=shapes):
                inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
                self.check(node("Concat", list(inputs), axis=axis), inputs)

    def test_shape_arithmetic(self):
        """What exporters write for x.view(x.size(0), -1)."""
        nodes = [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Gather", ["s", "zero"], ["first"], axis=0),
            helper.make_node("Unsqueeze", ["first", "zeros"], ["list"]),
            helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
            helper.make_node("Concat", ["list", "rest"], ["target"], axis=0),
            node("Reshape", ["x", "target"]),
        ]
        self.check(nodes, {"x": (3, 4, 2)},
                   {"zero": np.array(0, np.int64), "zeros": np.array([0], np.int64)})

    # --- Graphs ----------------------------------------------------------------------------------

    def test_residual_block(self):
        """An activation that two nodes use must not be fused away."""
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["a"], ["r"]),
            helper.make_node("Conv", ["r", "w"], ["b"], pads=[1, 1, 1, 1]),
            helper.make_node("Add", ["b", "a"], ["sum"]),
            node("Relu", ["sum"]),
        ]
        self.check(nodes, {"x": (1, 3, 6, 6)}, {"w": self.weight(3, 3, 3, 3)})

    def test_deep_chain_reuses_memory(self):
        """Thirty layers through the shared arena: a missing barrier or a wrong lifetime shows."""
        nodes, value = [], "x"
        for i in range(30):
            nodes.append(helper.make_node("Transpose", [value], [f"t{i}"], perm=[1, 0]))
            nodes.append(helper.make_node("MatMul", ["m", f"t{i}"], [f"p{i}"]))
            nodes.append(helper.make_node("Tanh", [f"p{i}"], [f"h{i}"]))
            nodes.append(helper.make_node("Add", [f"h{i}", value], [f"v{i}"]))
            value = f"v{i}"
        nodes.append(node("Relu", [value]))
        self.check(nodes, {"x": (32, 32)}, {"m": self.weight(32, 32) * 0.2}, tolerance=1e-4)

    def test_attention(self):
        nodes = [
            helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q", "kt"], ["scores"]),
            helper.make_node("Div", ["scores", "scale"], ["scaled"]),
            helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
            node("MatMul", ["weights", "v"]),
        ]
        shape = (2, 4, 9, 16)
        self.check(nodes, {"q": shape, "k": shape, "v": shape}, {"scale": np.float32(4)})

    def test_loops_whose_data_tell_sizes(self):
        # Each iteration finds other numbers of places, and adds places that are as many.
        text = """<ir_version: 10, opset_import: ["" : 22]>
            net (float[6] x, float[6] step, int64 trips) => (int64 total) <int64 start = {{0}}> {{
                total, last = Loop ({trips}, "", start, x) <body: graph = body
                    (int64 i, bool go, int64 sum, float[6] value) => (bool more, int64 next, float[6] less) {{
                        more = Identity (go)
                        places = NonZero (value)
                        negative = Neg (value)
                        others = NonZero (negative)
                        both = Add (places, others)
                        some = ReduceSum <keepdims: int = 0> (both)
                        next = Add (sum, some)
                        less = Sub (value, step)
                    }}>
            }}"""
        arrays = {"x": np.arange(1, 7, dtype=np.float32), "step": np.ones(6, np.float32)}
        for trips in (4, 20, 200, None):
            with self.subTest(trips=trips):
                named = text.format(trips="trips" if trips is None else "count")
                if trips is not None:
                    named = named.replace("start = {0}", f"start = {{0}}, int64 count = {{{trips}}}")
                model = parser.parse_model(named)
                arrays["trips"] = np.array(20, np.int64)
                expected = onnxruntime_outputs(model.SerializeToString(), arrays)[0]
                (actual,) = self.run_model(model, arrays.values())
                self.assertEqual(actual, expected)

    def test_several_outputs(self):
        rng = np.random.default_rng(3)
        x = random_array(rng, (4, 5))
        model = make_model([helper.make_node("Relu", ["x"], ["a"]),
                            helper.make_node("Reshape", ["a", "s"], ["b"]),
                            helper.make_node("Neg", ["a"], ["c"])],
                           {"x": (4, 5)}, {"a": (4, 5), "b": (20,), "c": (4, 5)},
                           {"s": np.array([20], np.int64)})
        expected = onnxruntime_outputs(model.SerializeToString(), {"x": x})
        for actual, wanted in zip(self.run_model(model, [x]), expected):
            np.testing.assert_array_equal(actual, wanted)


if __name__ == "__main__":
    unittest.main()
