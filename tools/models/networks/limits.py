"""Small models that are bound by one limit of the machine each: products, attention, and chains bound by memory."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tools.models.builder import Builder


def product(size=1024):
    """One square product of two inputs, neither of them packed beforehand."""
    b = Builder("product")
    a, w = b.input("a", "float32", (size, size)), b.input("b", "float32", (size, size))
    b.output("y", b.op("MatMul", a, w), "float32", (size, size))
    return b.model({"only": {}})


def weighted_product(size=1024):
    """The same with a constant, as the layers of networks have it."""
    b = Builder("weighted_product")
    x = b.input("x", "float32", (size, size))
    weight = b.parameter("weight", np.random.default_rng(1).standard_normal((size, size)).astype(np.float32))
    b.output("y", b.op("MatMul", x, weight), "float32", (size, size))
    return b.model({"only": {}})


def attention(heads=12, keys=1024, width=64):
    """Scaled products of queries and keys, softmax, products with values."""
    b = Builder("attention")
    shape = (1, heads, keys, width)
    query, key, value = (b.input(name, "float32", shape) for name in ("query", "key", "value"))
    scores = b.op("MatMul", query, b.op("Transpose", key, perm=[0, 1, 3, 2]))
    scale = b.parameter("scale", np.float32(width ** -0.5))
    b.output("y", b.op("MatMul", b.op("Softmax", b.op("Mul", scores, scale), axis=-1), value), "float32", shape)
    return b.model({"only": {}})


def elementwise(rows=4096, width=4096):
    """A chain of functions of single elements."""
    b = Builder("elementwise")
    x = b.input("x", "float32", (rows, width))
    y = b.op("Mul", b.op("Sigmoid", x), x)
    b.output("y", b.op("Add", b.op("Relu", y), x), "float32", (rows, width))
    return b.model({"only": {}})


def softmax(rows=4096, width=4096):
    b = Builder("softmax")
    x = b.input("x", "float32", (rows, width))
    b.output("y", b.op("Softmax", x, axis=-1), "float32", (rows, width))
    return b.model({"only": {}})


def layer_norm(rows=4096, width=4096):
    """A sum and its normalisation, as between the layers of a transformer."""
    b = Builder("layer_norm")
    x, r = b.input("x", "float32", (rows, width)), b.input("r", "float32", (rows, width))
    scale = b.parameter("scale", np.ones(width, np.float32))
    bias = b.parameter("bias", np.zeros(width, np.float32))
    b.output("y", b.op("LayerNormalization", b.op("Add", x, r), scale, bias, axis=-1), "float32", (rows, width))
    return b.model({"only": {}})
