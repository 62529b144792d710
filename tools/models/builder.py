"""Builds ONNX graphs as exporters write them: scopes name the nodes, weights come from a fixed seed.

A network is a function that drives a Builder and returns its Model. Values are handled by name: every method
that adds a node returns the name of its result, or a tuple of names if there are several.
"""

import contextlib
import dataclasses
import math
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tools.models.cases import Case, Input, fill_array
from tools.models.eager import Evaluator

# Second moment of act(z) for a standard normal z, inverted: a layer with this gain keeps the mean square at 1.
GAINS = {None: 1.0, "relu": 2.0, "relu6": 2.0, "silu": 2.81, "gelu": 2.35}


@dataclasses.dataclass(frozen=True)
class Model:
    """A network: the ONNX model and the inputs to try it with. The first case is the one that is measured."""
    proto: onnx.ModelProto
    cases: list[Case]


class Builder:
    def __init__(self, name, opset=17, seed=1):
        self.name = name
        self.opset = opset
        self.seed = seed
        self.nodes = []
        self.initializers = {}
        self.inputs = []  # (name, dtype, shape, fill)
        self.outputs = []
        self.path = []
        self.counts = {}
        self.exported_weights = 0
        self.domains = {"": opset}
        self.evaluator = None

    # --- Names -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def scope(self, path):
        """A module inside the present one; `path` may have several parts: "layer.0.attention"."""
        parts = path.split(".")
        self.path += parts
        yield
        del self.path[len(self.path) - len(parts):]

    def parameter_name(self, name):
        return ".".join([*self.path, name])

    def node_name(self, op_type):
        """As torch's exporter names nodes: /layer1.0/conv1/Conv, then /layer1.0/conv1/Conv_1."""
        pieces = []
        for part in self.path:
            if part.isdigit() and pieces:
                pieces[-1] += "." + part
            else:
                pieces.append(part)
        stem = "/" + "/".join([*pieces, op_type])
        count = self.counts.get(stem, 0)
        self.counts[stem] = count + 1
        return f"{stem}_{count}" if count else stem

    # --- Values ----------------------------------------------------------------------------------

    def input(self, name, dtype, shape, fill="normal", sample=None):
        """An input of the graph. `shape` holds numbers and names of dimensions; `fill` is one of cases.py.

        With a `sample`, the shape of an example, normalised convolutions are fitted to what they give for it, as
        training would. Without that a deep network's results hardly depend on its input.
        """
        self.inputs.append((name, np.dtype(dtype), tuple(shape), fill))
        if sample:
            self.evaluator = Evaluator(self.opset)
            self.evaluator.values[name] = fill_array(np.random.default_rng(self.seed),
                                                     Input(np.dtype(dtype).name, list(sample), fill))
        return name

    def end_fitting(self):
        """What follows has no convolution to fit, so it need not work for the sample's size."""
        self.evaluator = None

    def output(self, name, value, dtype, shape):
        """Makes a value an output of the graph, under this name."""
        for node in reversed(self.nodes):
            if value in node.output:
                break
        else:
            raise ValueError(f"{value} is no result of a node, so it cannot become the output {name}.")
        for other in self.nodes:
            for names in (other.input, other.output):
                for i, present in enumerate(names):
                    if present == value:
                        names[i] = name
        self.outputs.append((name, np.dtype(dtype), tuple(shape)))
        return name

    def random(self, name, shape):
        """Standard normal numbers that depend on the seed and the name alone, not on what was made before."""
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        return rng.standard_normal(shape, dtype=np.float32)

    def initializer(self, name, array):
        if name in self.initializers:
            raise ValueError(f"The initializer {name} exists already.")
        self.initializers[name] = np.ascontiguousarray(array)
        if self.evaluator:
            self.evaluator.values[name] = self.initializers[name]
        return name

    def parameter(self, name, array):
        """A weight under the name of its module."""
        return self.initializer(self.parameter_name(name), array)

    def exported(self, op_type, array):
        """A weight that the exporter changed (transposed, folded) and therefore renamed."""
        self.exported_weights += 1
        return self.initializer(f"onnx::{op_type}_{1000 + self.exported_weights}", array)

    def constant(self, array):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(array)))

    def value(self, operand):
        """The name of an operand; numbers, lists and arrays become Constant nodes as exporters write them."""
        if operand is None:
            return ""
        if isinstance(operand, str):
            return operand
        if isinstance(operand, float):
            return self.constant(np.float32(operand))
        if isinstance(operand, (int, list, tuple)):
            return self.constant(np.asarray(operand, np.int64))
        return self.constant(operand)

    # --- Nodes -----------------------------------------------------------------------------------

    def op(self, op_type, *operands, outputs=1, domain="", **attributes):
        operands = [self.value(operand) for operand in operands]
        name = self.node_name(op_type)
        results = [f"{name}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, operands, results, name, domain=domain, **attributes))
        if self.evaluator:
            self.evaluator.run(self.nodes[-1])
        return results[0] if outputs == 1 else tuple(results)

    def axes_op(self, op_type, x, axes, since, **attributes):
        """An operator whose axes are an attribute before the opset `since`, and an operand from then on."""
        if self.opset < since:
            return self.op(op_type, x, axes=axes, **attributes)
        return self.op(op_type, x, list(axes), **attributes)

    def unsqueeze(self, x, *axes):
        return self.axes_op("Unsqueeze", x, list(axes), 13)

    def squeeze(self, x, *axes):
        return self.axes_op("Squeeze", x, list(axes), 13)

    def reduce_mean(self, x, *axes):
        return self.axes_op("ReduceMean", x, list(axes), 18, keepdims=1)

    def split(self, x, sizes, axis):
        if self.opset < 13:
            return self.op("Split", x, outputs=len(sizes), axis=axis, split=sizes)
        return self.op("Split", x, list(sizes), outputs=len(sizes), axis=axis)

    def slice(self, x, start, end, axis, step=None):
        bounds = [value if isinstance(value, str) else [value] for value in (start, end)]
        return self.op("Slice", x, *bounds, [axis], *([] if step is None else [[step]]))

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=perm)

    def concat(self, values, axis):
        return self.op("Concat", *values, axis=axis)

    def cast(self, x, dtype):
        return self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def size_of(self, x, axis):
        """One dimension of a value, as a scalar."""
        return self.op("Gather", self.op("Shape", x), axis, axis=0)

    def shape_of(self, *dims):
        """A shape as an operand. Strings are scalars that the graph computes, numbers constants."""
        if all(isinstance(dim, int) for dim in dims):
            return self.constant(np.asarray(dims, np.int64))
        return self.concat([self.unsqueeze(dim, 0) if isinstance(dim, str) else self.constant(np.asarray([dim]))
                            for dim in dims], 0)

    def reshape(self, x, *dims):
        return self.op("Reshape", x, self.shape_of(*dims))

    # --- Layers ----------------------------------------------------------------------------------

    def activation(self, x, kind):
        if kind is None:
            return x
        if kind == "relu":
            return self.op("Relu", x)
        if kind == "relu6":
            return self.op("Clip", x, 0.0, 6.0)
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "gelu":
            # x * (1 + erf(x / sqrt 2)) / 2, which exporters write before opset 20.
            error = self.op("Erf", self.op("Div", x, math.sqrt(2.0)))
            return self.op("Mul", self.op("Mul", x, self.op("Add", error, 1.0)), 0.5)
        raise ValueError(f"There is no activation {kind}.")

    def conv(self, x, channels_in, channels, kernel, stride=1, padding=None, group=1, activation=None, gain=1.0,
             bias=True, norm=None, rank=2):
        """A convolution, its normalisation and activation.

        `norm` is None, "folded" (as exporters fold an inference-time batch normalisation into the convolution,
        whose weights they rename) or "kept". `gain` scales the standard deviation of the result.
        """
        padding = kernel // 2 if padding is None else padding
        shape = (channels, channels_in // group, *[kernel] * rank)
        fan_in = math.prod(shape[1:])
        deviation = np.float32(gain * math.sqrt(GAINS[activation] / fan_in))
        weight = deviation * self.random(self.parameter_name("weight"), shape)
        offset = 0.1 * self.random(self.parameter_name("bias"), channels)
        attributes = dict(dilations=[1] * rank, group=group, kernel_shape=[kernel] * rank, pads=[padding] * 2 * rank,
                          strides=[stride] * rank)
        if norm == "folded":
            mean, deviation = self.measured(x, weight, attributes)
            weight *= gain / deviation.reshape(-1, *[1] * (rank + 1))
            operands = [self.exported("Conv", weight), self.exported("Conv", offset - gain * mean / deviation)]
        else:
            operands = [self.parameter("weight", weight)]
            if bias and norm is None:
                operands.append(self.parameter("bias", offset))
        result = self.op("Conv", x, *operands, **attributes)
        if norm == "kept":
            result = self.batch_norm(result, *self.measured(x, weight, attributes), gain, offset)
        return self.activation(result, activation)

    def measured(self, x, weight, attributes):
        """Mean and standard deviation of each channel of a convolution's result for the sample."""
        evaluator = self.evaluator
        if not evaluator or x not in evaluator.values:
            raise ValueError(f"The normalised convolution {self.parameter_name('')} needs an input with a sample.")
        evaluator.values["weight"] = weight
        evaluator.run(helper.make_node("Conv", [x, "weight"], ["measured"], **attributes))
        result = evaluator.values["measured"]
        axes = (0, *range(2, result.ndim))
        variance = result.var(axes)
        # A channel that hardly varies stays weak, since for other inputs it might.
        return result.mean(axes), np.sqrt(variance + np.float32(0.05) * variance.mean() + np.float32(1e-6))

    def batch_norm(self, x, mean, deviation, gain, offset):
        with self.scope("bn"):
            weight = gain * (1 + 0.1 * self.random(self.parameter_name("weight"), len(mean)))
            operands = [self.parameter("weight", weight.astype(np.float32)), self.parameter("bias", offset),
                        self.parameter("running_mean", mean), self.parameter("running_var", deviation ** 2)]
            return self.op("BatchNormalization", x, *operands, epsilon=1e-5, momentum=0.9)

    def linear(self, x, size_in, size, bias=True, gain=1.0, name=None):
        """A product with a weight, then a sum: as exporters write a linear layer on more than two dimensions."""
        with self.scope(name) if name else contextlib.nullcontext():
            weight = self.random(self.parameter_name("weight"), (size_in, size)) * np.float32(gain / math.sqrt(size_in))
            x = self.op("MatMul", x, self.exported("MatMul", weight))
            if bias:
                x = self.op("Add", self.parameter("bias", 0.1 * self.random(self.parameter_name("bias"), size)), x)
        return x

    def gemm(self, x, size_in, size, gain=1.0, name=None):
        """A linear layer on a matrix: one Gemm with the weight transposed."""
        with self.scope(name) if name else contextlib.nullcontext():
            weight = self.random(self.parameter_name("weight"), (size, size_in)) * np.float32(gain / math.sqrt(size_in))
            bias = 0.1 * self.random(self.parameter_name("bias"), size)
            return self.op("Gemm", x, self.parameter("weight", weight), self.parameter("bias", bias),
                           alpha=1.0, beta=1.0, transB=1)

    def layer_norm(self, x, size, epsilon=1e-5, name=None):
        """One LayerNormalization, or before opset 17 what exporters wrote instead."""
        with self.scope(name) if name else contextlib.nullcontext():
            weight = self.parameter("weight", 1 + 0.1 * self.random(self.parameter_name("weight"), size))
            bias = self.parameter("bias", 0.1 * self.random(self.parameter_name("bias"), size))
            if self.opset >= 17:
                return self.op("LayerNormalization", x, weight, bias, axis=-1, epsilon=epsilon)
            centred = self.op("Sub", x, self.reduce_mean(x, -1))
            variance = self.reduce_mean(self.op("Pow", centred, 2.0), -1)
            normal = self.op("Div", centred, self.op("Sqrt", self.op("Add", variance, epsilon)))
            return self.op("Add", self.op("Mul", normal, weight), bias)

    def embedding(self, indices, count, size, scale=1.0, name=None):
        with self.scope(name) if name else contextlib.nullcontext():
            table = np.float32(scale) * self.random(self.parameter_name("weight"), (count, size))
            return self.op("Gather", self.parameter("weight", table), indices)

    # --- The whole -------------------------------------------------------------------------------

    def model(self, sizes):
        """The checked model with its cases. `sizes` maps labels to the values of the named dimensions."""
        def info(name, dtype, shape):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)

        graph = helper.make_graph(
            self.nodes, self.name, [info(*entry[:3]) for entry in self.inputs],
            [info(*entry) for entry in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self.initializers.items()])
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.domains.items()]
        proto = helper.make_model(graph, opset_imports=opsets, producer_name="fornax.models")
        proto.ir_version = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
        onnx.checker.check_model(proto)
        cases = [Case.from_dimensions(label, self.inputs, dimensions) for label, dimensions in sizes.items()]
        return Model(proto, cases)
