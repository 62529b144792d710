"""Quantised forms of networks: with onnxruntime's tools where they serve, products of 4-bit weights packed here.

A quantised Model has the cases of the Model that it was made from.
"""

import dataclasses
import functools
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

TYPES = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
BLOCK = 32


class Reader(CalibrationDataReader):
    """The first case's inputs with several seeds."""

    def __init__(self, case, count):
        self.batches = iter([case.arrays(seed) for seed in range(100, 100 + count)])

    def get_next(self):
        return next(self.batches, None)


def through_files(model, convert):
    """What `convert(source path, target path)` makes of a model."""
    with tempfile.TemporaryDirectory(prefix="fornax_models_") as folder:
        source, target = (pathlib.Path(folder, name) for name in ("source.onnx", "target.onnx"))
        # The quantisers ask for the shapes of all values.
        onnx.save(onnx.shape_inference.infer_shapes(model.proto), source)
        convert(str(source), str(target))
        return dataclasses.replace(model, proto=onnx.load(target))


def static_qdq(model, activations, operators=None, samples=2):
    """QuantizeLinear and DequantizeLinear around operators, weights as int8 with a scale for each channel."""
    def convert(source, target):
        quantize_static(source, target, Reader(model.cases[0], samples), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=TYPES[activations], weight_type=QuantType.QInt8,
                        op_types_to_quantize=operators)

    return through_files(model, convert)


def dynamic(model):
    """Weights as int8; activations are quantised while the model runs."""
    return through_files(model, lambda source, target: quantize_dynamic(source, target, weight_type=QuantType.QInt8))


# The forms that trained models are given, by name.
FORMS = {
    "qdq": functools.partial(static_qdq, activations="uint8"),
    "products_qdq": functools.partial(static_qdq, activations="uint8", operators=["MatMul", "Gemm"]),
    "dynamic": dynamic,
}


def pack_four_bits(weight):
    """A [K, N] matrix as MatMulNBits takes it: B [N, blocks, BLOCK / 2] of two numbers a byte, the lower one first,
    and scales [N * blocks]. A number n stands for (n - 8) * scale."""
    columns = weight.T.reshape(weight.shape[1], -1, BLOCK)
    # The value of the greatest magnitude becomes -8, so the whole range is used.
    extreme = np.take_along_axis(columns, np.abs(columns).argmax(-1, keepdims=True), -1)
    scales = extreme / np.float32(-8)
    inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)
    numbers = np.clip(np.rint(columns * inverse) + 8, 0, 15).astype(np.uint8)
    return numbers[..., 0::2] | numbers[..., 1::2] << 4, scales.reshape(-1).astype(np.float32)


def four_bits(model):
    """Every product with a constant matrix whose rows fill whole blocks becomes MatMulNBits."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        weight = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or len(weight.dims) != 2 or weight.dims[0] % BLOCK:
            continue
        packed, scales = pack_four_bits(numpy_helper.to_array(weight))
        names = [f"{weight.name}_Q4", f"{weight.name}_scales"]
        proto.graph.initializer.extend(map(numpy_helper.from_array, (packed, scales), names))
        proto.graph.initializer.remove(weight)
        node.CopyFrom(helper.make_node(
            "MatMulNBits", [node.input[0], *names], list(node.output), f"{node.name}_Q4", domain="com.microsoft",
            K=weight.dims[0], N=weight.dims[1], bits=4, block_size=BLOCK, accuracy_level=4))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return dataclasses.replace(model, proto=proto)
