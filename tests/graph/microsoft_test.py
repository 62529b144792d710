"""The operators of onnxruntime's domain com.microsoft that its quantisers write, beside onnxruntime.

FORNAX_LIBRARY is the library's path, VK_DRIVER_FILES the driver's manifest.
"""

import os
import unittest

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import libfornax

LIBRARY = libfornax.Library(os.environ["FORNAX_LIBRARY"])


class Microsoft(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(7)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def bytes(self, *shape):
        return self.random.integers(0, 256, shape).astype(np.uint8)

    def check(self, operator, inputs, outputs=1, tolerance=1e-5, given=1, **attributes):
        """`inputs` are arrays, or None for what is left out; `given` of them are the model's inputs, the others
        constants."""
        names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
        node = helper.make_node(operator, names, [f"y{i}" for i in range(outputs)], domain="com.microsoft", **attributes)
        arrays = {name: array for name, array in zip(names, inputs) if name}
        given = list(arrays)[:given]
        graph = helper.make_graph(
            [node], "test",
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape)
             for name in given],
            [helper.make_empty_tensor_value_info(name) for name in node.output],
            [numpy_helper.from_array(array, name) for name, array in arrays.items() if name not in given])
        model = helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]).SerializeToString()
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        expected = session.run(None, {name: arrays[name] for name in given})
        with libfornax.Model(LIBRARY, model, cache="none") as fornax:
            actual = fornax.run(*[arrays[name] for name in given])
        for a, e in zip(actual, expected, strict=True):
            self.assertEqual((a.dtype, a.shape), (e.dtype, e.shape))
            difference = np.abs(a.astype(np.float64) - e.astype(np.float64)).max()
            self.assertLessEqual(difference, tolerance * max(np.abs(e.astype(np.float64)).max(), 1))

    # One quantum, where the sum before it lies between two.
    QUANTUM = 1.01 / 255

    def scaled(self, scale, zero):
        return np.array(scale, np.float32), np.array(zero, np.uint8)

    def test_elementwise(self):
        for operator in ("QLinearAdd", "QLinearMul"):
            self.check(operator, [self.bytes(2, 3, 5), *self.scaled(0.02, 120), self.bytes(3, 1),
                                  *self.scaled(0.05, 3), *self.scaled(0.1, 90)], tolerance=self.QUANTUM)
        self.check("QLinearSigmoid", [self.bytes(7, 9), *self.scaled(0.04, 128), *self.scaled(1 / 256, 0)],
                   tolerance=self.QUANTUM)
        self.check("QLinearLeakyRelu", [self.bytes(7, 9), *self.scaled(0.04, 128), *self.scaled(0.03, 20)], alpha=0.2,
                   tolerance=self.QUANTUM)
        signed = self.random.integers(-128, 128, (4, 6)).astype(np.int8)
        self.check("QLinearAdd", [signed, np.float32(0.02), np.int8(3), signed[:1], np.float32(0.01), np.int8(0),
                                  np.float32(0.05), np.int8(-5)], tolerance=self.QUANTUM)

    def test_choices_and_softmax(self):
        self.check("QLinearWhere", [self.random.integers(0, 2, (4, 1, 6)).astype(bool), self.bytes(4, 5, 6),
                                    *self.scaled(0.02, 120), self.bytes(5, 1), *self.scaled(0.05, 3),
                                    *self.scaled(0.06, 90)], given=2, tolerance=self.QUANTUM)
        for opset, axis in ((11, 1), (11, 2), (13, 1), (13, -1)):
            with self.subTest(opset=opset, axis=axis):
                self.check("QLinearSoftmax", [self.bytes(3, 4, 5), *self.scaled(0.03, 100), *self.scaled(1 / 256, 0)],
                           axis=axis, opset=opset, tolerance=self.QUANTUM)

    def test_conversions(self):
        """What onnxruntime's quantisers write for types that ONNX's operators once lacked."""
        x = self.floats(3, 4, 5) * 3
        for dtype in (np.uint8, np.int8, np.uint16, np.int16):
            limits = np.iinfo(dtype)
            for count, axis in ((None, 1), (4, 1), (5, -1)):
                with self.subTest(dtype=dtype, axis=axis, count=count):
                    shape = () if count is None else (count,)
                    scale = np.full(shape, 12 / (limits.max - limits.min), np.float32) * \
                        self.random.uniform(0.8, 1.2, shape).astype(np.float32)
                    zero = self.random.integers(limits.min // 2 + limits.max // 2 - 9, limits.min // 2 + limits.max // 2 + 9,
                                                shape).astype(dtype)
                    self.check("QuantizeLinear", [x, scale, zero], axis=axis, tolerance=1e-9)
                    numbers = self.random.integers(limits.min, limits.max + 1, x.shape).astype(dtype)
                    self.check("DequantizeLinear", [numbers, scale, zero], axis=axis, tolerance=1e-6)

    def test_tables(self):
        """Rows of tables of 4 and 8 bits with a scale for each block."""
        indices = self.random.integers(-6, 6, (2, 3)).astype(np.int64)
        for bits, width in ((4, 32), (8, 64)):
            table = self.bytes(6, width)
            scales = np.abs(self.floats(6, 4)) * 0.1
            for zero in (None, self.bytes(6, 4 * bits // 8)):
                with self.subTest(bits=bits, zero=zero is not None):
                    self.check("GatherBlockQuantized", [table, indices, scales, zero], given=2, bits=bits, block_size=16,
                               gather_axis=0, quantize_axis=1)

    def test_average_pools(self):
        for last in (0, 1):
            shape = (2, 9, 10, 3) if last else (2, 3, 9, 10)
            for attributes in (dict(kernel_shape=[3, 2], strides=[2, 2]),
                               dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
                               dict(kernel_shape=[3, 3], pads=[1, 0, 1, 1], strides=[2, 3], ceil_mode=1)):
                with self.subTest(last=last, **attributes):
                    self.check("QLinearAveragePool", [self.bytes(*shape), *self.scaled(0.04, 100), *self.scaled(0.03, 90)],
                               channels_last=last, tolerance=self.QUANTUM, **attributes)

    def test_pooling_and_concatenation(self):
        for last in (0, 1):
            self.check("QLinearGlobalAveragePool", [self.bytes(2, 5, 6, 7), *self.scaled(0.04, 100),
                                                    *self.scaled(0.03, 90)], channels_last=last,
                       tolerance=self.QUANTUM)
        scale, zero = self.scaled(0.05, 77)
        self.check("QLinearConcat", [scale, zero, self.bytes(2, 3), *self.scaled(0.04, 100), self.bytes(2, 4),
                                     *self.scaled(0.02, 5)], axis=1, tolerance=self.QUANTUM)

    def test_products_of_weights_in_few_bits(self):
        for bits, k, n, block in ((4, 64, 24, 32), (4, 70, 5, 16), (8, 64, 24, 32)):
            blocks = -(-k // block)
            packed = self.bytes(n, blocks, block * bits // 8)
            scales = np.abs(self.floats(n * blocks)) * 0.1
            points = self.bytes(n * -(-blocks * bits // 8))
            for zero in (None, points):
                with self.subTest(bits=bits, k=k, zero=zero is not None):
                    self.check("MatMulNBits", [self.floats(2, 3, k), packed, scales, zero], K=k, N=n, bits=bits,
                               block_size=block, tolerance=1e-5)
        self.check("MatMulNBits", [self.floats(1, 64), self.bytes(8, 2, 16), np.abs(self.floats(16)), None, None,
                                   self.floats(8)], K=64, N=8, bits=4, block_size=32)

    def test_products_of_few_bits_in_other_forms(self):
        """Weights that are no constants, and rows that say which block's scale is their own."""
        k, n, block = 64, 24, 16
        packed, scales = self.bytes(n, k // block, block // 2), np.abs(self.floats(n * k // block)) * 0.1
        points = self.bytes(n * k // block // 2)
        self.check("MatMulNBits", [self.floats(3, k), packed, scales, points], given=4, K=k, N=n, bits=4,
                   block_size=block)
        groups = self.random.integers(0, k // block, k).astype(np.int32)
        # With zero points onnxruntime gives something else than the formula, which block_product_test.cpp checks.
        self.check("MatMulNBits", [self.floats(3, k), packed, scales, None, groups], K=k, N=n, bits=4,
                   block_size=block)

    def test_products_of_bytes(self):
        a, b = self.bytes(5, 16), self.bytes(16, 12)
        scale_a, zero_a = self.scaled(0.03, 90)
        for columns in (1, 12):
            scale_b, zero_b = np.abs(self.floats(columns)), self.bytes(columns)
            self.check("MatMulIntegerToFloat", [a, b, scale_a, scale_b, zero_a, zero_b, self.floats(12)])
            self.check("DynamicQuantizeMatMul", [self.floats(5, 16), b, scale_b, zero_b, self.floats(12)])
        bias = self.random.integers(-9000, 9000, 12).astype(np.int32)
        for transposed in (0, 1):
            for scale_b, zero_b in ((np.float32(0.02), np.uint8(30)), (np.abs(self.floats(12)), self.bytes(12))):
                inputs = [a, scale_a, zero_a, b.T.copy() if transposed else b, scale_b, zero_b, bias]
                self.check("QGemm", inputs, transB=transposed, alpha=0.5)
                self.check("QGemm", inputs + [np.float32(9), np.uint8(100)], transB=transposed, tolerance=self.QUANTUM)

    def test_lstm(self):
        """onnxruntime quantises activations, too: the difference is that of one step of their quantisation."""
        for gates in (1, 32):
            weights = [self.random.integers(-128, 128, (2, size, 32)).astype(np.int8) for size in (6, 8)]
            scales = [(np.abs(self.random.standard_normal((2, gates))) * 0.004 + 0.001).astype(np.float32)
                      for _ in range(2)]
            zeros = [np.zeros((2, gates), np.int8)] * 2
            if gates == 1:
                scales, zeros = [scale[:, 0] for scale in scales], [zero[:, 0] for zero in zeros]
            self.check("DynamicQuantizeLSTM",
                       [self.floats(5, 3, 6), *weights, self.floats(2, 64) * 0.1, None, self.floats(2, 3, 8) * 0.1,
                        self.floats(2, 3, 8) * 0.1, None, scales[0], zeros[0], scales[1], zeros[1]],
                       outputs=3, hidden_size=8, direction="bidirectional", tolerance=0.02)

    def test_lstm_in_other_forms(self):
        """Sequences of several lengths, peepholes, unsigned weights, zero points that leave no bytes, and weights that are
        no constants."""
        hidden, inputs = 33, 20
        peephole = self.floats(1, 3 * hidden) * 0.1
        for zero in (128, 40):
            weights = [self.bytes(1, size, 4 * hidden) for size in (inputs, hidden)]
            quantised = [np.float32([0.002]), np.uint8([zero]), np.float32([0.001]), np.uint8([zero])]
            for given in (1, 3):
                with self.subTest(zero=zero, given=given):
                    self.check("DynamicQuantizeLSTM",
                               [self.floats(6, 3, inputs), *weights, self.floats(1, 8 * hidden) * 0.1,
                                np.int32([6, 2, 4]), None, None, peephole, *quantised],
                               outputs=3, given=given, hidden_size=hidden, direction="reverse", tolerance=0.02)


if __name__ == "__main__":
    unittest.main()
