"""DFT and STFT of many lengths, by the template and as products, against numpy in f64.

Each case is a model of one node, run on the device through libfornax.so.
"""

import os
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import libfornax

# Rows of the template's with few and many passes, even and odd; rows in two steps; convolutions; products.
LENGTHS = (2, 17, 60, 64, 81, 96, 105, 128, 200, 243, 256, 343, 400, 512, 625, 735, 1000, 1024, 2048, 2187, 4096, 4100, 5000, 8192,
           263, 514, 1021)


def expected_transform(x, axis, length, inverse, onesided):
    axis %= x.ndim
    numbers = x[..., 0].astype(np.float64) + (1j * x[..., 1].astype(np.float64) if x.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(numbers, length, axis)[..., None]
    result = np.fft.ifft(numbers, length, axis) if inverse else np.fft.fft(numbers, length, axis)
    if onesided:
        result = np.take(result, range(length // 2 + 1), axis)
    return np.stack([result.real, result.imag], -1)


class Transforms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = libfornax.Library(os.environ["FORNAX_LIBRARY"])
        cls.rng = np.random.default_rng(3)

    def run_node(self, operator, inputs, constants, opset=20, dims=None, **attributes):
        names = list(inputs) + [name if value is not None else "" for name, value in constants.items()]
        initializers = [numpy_helper.from_array(np.asarray(value), name)
                        for name, value in constants.items() if value is not None]
        elements = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
                    np.dtype(np.float64): TensorProto.DOUBLE}
        values = [helper.make_tensor_value_info(name, elements[array.dtype], dims or array.shape)
                  for name, array in inputs.items()]
        graph = helper.make_graph([helper.make_node(operator, names, ["y"], "node", **attributes)], "graph", values,
                                  [helper.make_value_info("y", helper.TypeProto())], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        with libfornax.Model(self.library, model.SerializeToString(), cache="none") as loaded:
            return loaded.run(*inputs.values())[0]

    def check(self, actual, expected, tolerance=6e-7):
        self.assertEqual(actual.shape, expected.shape)
        error = np.linalg.norm(actual.astype(np.float64) - expected) / np.linalg.norm(expected)
        self.assertLess(error, tolerance)

    def check_dft(self, shape, axis, length, inverse, onesided, dtype=np.float32, tolerance=6e-7, opset=20, dims=None):
        x = self.rng.standard_normal(shape).astype(dtype)
        constants, attributes = {"n": np.int64(length)}, {"inverse": inverse, "onesided": onesided}
        if opset < 20:
            attributes["axis"] = axis
        else:
            constants["a"] = np.int64(axis)
        with self.subTest(shape=shape, length=length, dtype=dtype, opset=opset, inverse=inverse, onesided=onesided):
            y = self.run_node("DFT", {"x": x}, constants, opset=opset, dims=dims, **attributes)
            self.check(y, expected_transform(x, axis, length, inverse, onesided), tolerance)

    def test_lengths(self):
        for length in LENGTHS:
            half = length // 2 + 1
            self.check_dft((3, length, 1), 1, length, 0, 0)
            self.check_dft((length, 3, 1), 0, length, 0, 1)
            self.check_dft((2, length, 2), 1, length, 0, 0)
            self.check_dft((1, length, 2, 2), 1, length, 1, 0)
            self.check_dft((2, half, 2), -2, length, 1, 1)

    def test_random_lengths(self):
        for _ in range(40):
            length = int(self.rng.integers(2, 3000))
            inverse, onesided = self.rng.integers(0, 2, 2)
            parts = 2 if inverse and onesided else int(self.rng.integers(1, 3))
            # Cut, or extended with zeros.
            given = max(2, (length // 2 + 1 if inverse and onesided else length) + int(self.rng.integers(-9, 9)))
            self.check_dft((2, given, parts), 1, length, int(inverse), int(onesided))

    def test_real_inverse_and_complex_half(self):
        for length in (256, 135, 1021):
            self.check_dft((2, length, 1), 1, length, 1, 0)
            self.check_dft((2, length, 2), 1, length, 0, 1)

    def test_other_types_and_opsets(self):
        self.check_dft((2, 256, 1), 1, 256, 0, 1, np.float16, 1e-3)
        self.check_dft((2, 256, 2), 1, 256, 0, 0, opset=17)

    def test_dynamic_sizes(self):
        self.check_dft((5, 512, 1), 1, 512, 0, 1, dims=("batch", 512, 1))
        self.check_dft((2, 300, 2), 1, 300, 0, 0, dims=("batch", "length", 2))

    def test_imaginary_parts_that_do_not_count(self):
        """Inverse transforms of halves give real numbers, whatever the parts are that a real signal has not."""
        for length in (256, 225, 4374, 514):
            self.check_dft((1, length // 2 + 1, 2), 1, length, 1, 1)

    def test_short_time(self):
        for samples, length, step, windowed, onesided in ((4000, 400, 160, True, 1), (2048, 512, 128, False, 1),
                                                          (1000, 256, 100, True, 0), (700, 64, 16, True, 1)):
            with self.subTest(length=length, step=step, onesided=onesided):
                x = self.rng.standard_normal((2, samples, 1)).astype(np.float32)
                window = np.hanning(length).astype(np.float32) if windowed else None
                y = self.run_node("STFT", {"x": x}, {"step": np.int64(step), "window": window, "length": np.int64(length)},
                                  opset=17, onesided=onesided)
                frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], length, 1)[:, ::step].astype(np.float64)
                spectrum = np.fft.fft(frames * (window if windowed else 1))
                spectrum = spectrum[..., :length // 2 + 1] if onesided else spectrum
                self.check(y, np.stack([spectrum.real, spectrum.imag], -1))


if __name__ == "__main__":
    unittest.main()
