"""Quantised networks of tools/models as TensorFlow Lite files, by the public schema, for programs that read no other format.

`convert(model)` takes an ONNX model whose operators stand between DequantizeLinear and QuantizeLinear, and makes the same
operators on int8 tensors in the order batch, height, width, channels. Shapes, weights and scales are the model's; padding that
is not what SAME gives is a PAD of its own. What it does not know is a ConvertError, a sentence.
"""

import flatbuffers
import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

# Numbers of the schema's enumerations TensorType, Padding, BuiltinOperator and BuiltinOptions.
INT32, INT8 = 2, 9
SAME, VALID = 0, 1
# With the version of the operator that takes int8.
OPERATORS = {"ADD": (0, 11, 2), "CONV_2D": (3, 1, 3), "DEPTHWISE_CONV_2D": (4, 2, 3), "FULLY_CONNECTED": (9, 8, 12),
             "MAX_POOL_2D": (17, 5, 2), "RESHAPE": (22, 17, 1), "PAD": (34, 22, 2), "MEAN": (40, 27, 2)}


class ConvertError(Exception):
    """The text is a sentence."""


class Writer:
    """Tensors and operators of one graph, written as a file by finish()."""

    def __init__(self):
        self.tensors, self.operators, self.names = [], [], {}

    def tensor(self, name, shape, kind, scales=(), zeros=(), axis=0, data=None):
        """The number of the tensor of this name, which is made if there is none."""
        if name not in self.names:
            self.names[name] = len(self.tensors)
            self.tensors.append((name, list(shape), kind, list(scales), list(zeros), axis, data))
        return self.names[name]

    def operator(self, kind, inputs, outputs, **fields):
        """`fields` are those of its options, slot_N=(type, value)."""
        self.operators.append((kind, inputs, outputs, {int(key[5:]): value for key, value in fields.items()}))

    # --- the file: children are written before who names them

    def scalar(self, slot, kind, value):
        getattr(self.b, f"Prepend{kind}Slot")(slot, value, None)

    def table(self, fields):
        """`fields`: by slot (type, value), where the type "Offset" is what another table or vector gave."""
        self.b.StartObject(max(fields, default=-1) + 1)
        for slot, (kind, value) in fields.items():
            if kind == "Offset":
                self.b.PrependUOffsetTRelativeSlot(slot, value, 0)
            else:
                self.scalar(slot, kind, value)
        return self.b.EndObject()

    def numbers(self, values, kind):
        return self.b.CreateNumpyVector(np.asarray(values, kind))

    def offsets(self, values):
        self.b.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.b.PrependUOffsetTRelative(value)
        return self.b.EndVector()

    def bytes_of(self, data):
        # The schema aligns what a buffer holds to 16 bytes, which vectors of the package do not.
        raw = data.tobytes()
        self.b.StartVector(1, len(raw), 16)
        self.b.head -= len(raw)
        self.b.Bytes[self.b.Head():self.b.Head() + len(raw)] = raw
        return self.b.EndVector()

    def finish(self, inputs, outputs):
        self.b = flatbuffers.Builder(1 << 20)
        buffers, tensors = [self.table({})], []
        for name, shape, kind, scales, zeros, axis, data in self.tensors:
            number = 0
            if data is not None:
                number = len(buffers)
                buffers.append(self.table({0: ("Offset", self.bytes_of(data))}))
            fields = {0: ("Offset", self.numbers(shape, np.int32)), 1: ("Int8", kind), 2: ("Uint32", number),
                      3: ("Offset", self.b.CreateString(name))}
            if scales:
                fields[4] = ("Offset", self.table({2: ("Offset", self.numbers(scales, np.float32)),
                                                   3: ("Offset", self.numbers(zeros, np.int64)), 6: ("Int32", axis)}))
            tensors.append(self.table(fields))
        kinds = sorted({operator[0] for operator in self.operators})
        codes = []
        for number, _, version in [OPERATORS[kind] for kind in kinds]:
            codes.append(self.table({0: ("Int8", number), 2: ("Int32", version), 3: ("Int32", number)}))
        operators = []
        for kind, of_inputs, of_outputs, options in self.operators:
            options = {slot: ("Offset", self.numbers(value, np.int32)) if of == "Vector" else (of, value)
                       for slot, (of, value) in options.items()}
            operators.append(self.table({
                0: ("Uint32", kinds.index(kind)), 1: ("Offset", self.numbers(of_inputs, np.int32)),
                2: ("Offset", self.numbers(of_outputs, np.int32)), 3: ("Uint8", OPERATORS[kind][1]),
                4: ("Offset", self.table(options))}))
        graph = self.table({0: ("Offset", self.offsets(tensors)), 1: ("Offset", self.numbers(inputs, np.int32)),
                            2: ("Offset", self.numbers(outputs, np.int32)), 3: ("Offset", self.offsets(operators))})
        self.b.Finish(self.table({0: ("Uint32", 3), 1: ("Offset", self.offsets(codes)), 2: ("Offset", self.offsets([graph])),
                                  4: ("Offset", self.offsets(buffers))}), b"TFL3")
        return bytes(self.b.Output())


def with_batch(model, batch):
    """The same with this number where a dimension has a name, and shapes of all values."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    for value in [*proto.graph.input, *proto.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = batch
    del proto.graph.value_info[:]
    return shape_inference.infer_shapes(proto)


class Converter:
    def __init__(self, model):
        self.graph = with_batch(model, 1).graph
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in self.graph.initializer}
        values = [*self.graph.value_info, *self.graph.input, *self.graph.output]
        self.shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values}
        self.made_by = {output: node for node in self.graph.node for output in node.output}
        self.read_by = {}
        for node in self.graph.node:
            for name in node.input:
                self.read_by.setdefault(name, []).append(node)
        self.writer = Writer()

    @staticmethod
    def attributes(node):
        return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}

    @staticmethod
    def input_of(node, number, what):
        """The name of an input that ONNX lets out."""
        name = node.input[number] if number < len(node.input) else ""
        if not name:
            raise ConvertError(f"{node.op_type} {node.name} has no {what}, which is not converted.")
        return name

    def constant(self, name, what):
        if name not in self.constants:
            raise ConvertError(f"{name} is a {what} that is not constant.")
        return self.constants[name]

    def windows(self, node):
        """What Conv and MaxPool say of their windows: all attributes, the size, the strides and the pads."""
        of = self.attributes(node)
        if of.get("auto_pad", b"NOTSET") not in (b"NOTSET", b""):
            raise ConvertError(f"{node.op_type} {node.name} has auto_pad {of['auto_pad'].decode()}; only pads are converted.")
        if of.get("ceil_mode", 0):
            raise ConvertError(f"{node.op_type} {node.name} has ceil_mode, which is not converted.")
        size = of.get("kernel_shape", [])
        if len(size) != 2:
            raise ConvertError(f"{node.op_type} {node.name} has a kernel_shape of {len(size)} numbers; only those of 2 are converted.")
        pads = list(of.get("pads", [0] * 4))
        if min(pads) < 0:
            raise ConvertError(f"{node.op_type} {node.name} has pads below 0, which are not converted.")
        return of, size, of.get("strides", [1, 1]), pads

    def quantisation(self, node):
        """Scale and zero point, of int8 if they were of uint8: all values are less by 128."""
        scale = self.constant(node.input[1], "scale")
        zero = self.constant(self.input_of(node, 2, "zero point"), "zero point")
        if zero.dtype not in (np.int8, np.uint8):
            raise ConvertError(f"{node.op_type} {node.name} is of {zero.dtype}; only int8 and uint8 are converted.")
        shift = 128 if zero.dtype == np.uint8 else 0
        return np.atleast_1d(scale), np.atleast_1d(zero.astype(np.int64) - shift)

    def activation(self, name):
        """The tensor of a value that DequantizeLinear gives or QuantizeLinear takes."""
        node = self.made_by.get(name)
        if node is None or node.op_type != "DequantizeLinear":
            readers = [reader for reader in self.read_by.get(name, []) if reader.op_type == "QuantizeLinear"]
            if not readers:
                raise ConvertError(f"{name} is not quantised.")
            if len(readers) > 1:
                raise ConvertError(f"{name} is quantised {len(readers)} times; only once is converted.")
            [node] = readers
            quantised = node.output[0]
        else:
            quantised = node.input[0]
        if quantised in self.constants:
            raise ConvertError(f"{name} is a constant where only activations are converted.")
        if name not in self.shapes:
            raise ConvertError(f"{name} has no shape.")
        shape = self.shapes[name]
        if len(shape) == 4:
            shape = [shape[0], shape[2], shape[3], shape[1]]
        scale, zero = self.quantisation(node)
        if len(scale) != 1:
            raise ConvertError(f"{name} has {len(scale)} scales; activations must have one.")
        return self.writer.tensor(quantised, shape, INT8, scale.tolist(), zero.tolist())

    def image(self, name):
        """The tensor of an activation of four dimensions."""
        tensor = self.activation(name)
        dimensions = len(self.writer.tensors[tensor][1])
        if dimensions != 4:
            raise ConvertError(f"{name} has {dimensions} dimensions where only 4 are converted.")
        return tensor

    def weights(self, name, arrange, axis, onnx_axis=0):
        """`axis`: the one of output channels after `arrange`; `onnx_axis`: before."""
        node = self.made_by.get(name)
        if node is None or node.op_type != "DequantizeLinear" or node.input[0] not in self.constants:
            raise ConvertError(f"{name} are no quantised weights.")
        data = np.ascontiguousarray(arrange(self.constants[node.input[0]]))
        if data.dtype != np.int8:
            raise ConvertError(f"{name} are of {data.dtype}; weights must be int8.")
        scale, zero = self.quantisation(node)
        if zero.any():
            raise ConvertError(f"{name} have a zero point that is not 0.")
        if len(scale) > 1 and self.attributes(node).get("axis", 1) != onnx_axis:
            raise ConvertError(f"{name} have scales that are not those of output channels.")
        return self.writer.tensor(node.input[0], data.shape, INT8, scale.tolist(), zero.tolist(), axis, data), scale

    def bias(self, node, scales):
        """In int32, by the scales of the operands."""
        name = self.input_of(node, 2, "bias")
        made = self.made_by.get(name)
        if made is None:
            data = np.rint(self.constant(name, "bias") / scales)
        elif made.op_type == "DequantizeLinear":
            data = self.constant(made.input[0], "bias")
        else:
            raise ConvertError(f"{name} is a bias that {made.op_type} makes; only constants are converted.")
        data = data.astype(np.int32)
        return self.writer.tensor(f"{name}_int32", data.shape, INT32, scales.tolist(), [0] * len(scales), 0, data)

    def padded(self, source, pads, size, stride, dilation=(1, 1), what=None):
        """The input, padded where SAME would not do it, and the Padding. `what` pads with the lowest value, and not with 0."""
        _, height, width, channels = self.writer.tensors[source][1]
        if not any(pads):
            return source, VALID
        wanted = []
        for extent, kernel, step, apart in zip((height, width), size, stride, dilation):
            total = max((-(-extent // step) - 1) * step + (kernel - 1) * apart + 1 - extent, 0)
            wanted.append((total // 2, total - total // 2))
        if pads == [wanted[0][0], wanted[1][0], wanted[0][1], wanted[1][1]]:
            return source, SAME
        name, _, kind, scales, zeros, _, _ = self.writer.tensors[source]
        # PAD writes the zero point.
        if what and zeros != [-128]:
            raise ConvertError(f"{what} has pads {pads}, which are not those of SAME, and a zero point of {zeros[0]}; only -128 "
                               "is converted.")
        amounts = np.array([[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]], np.int32)
        table = self.writer.tensor(f"{name}_{pads}_amounts", amounts.shape, INT32, data=amounts)
        shape = [1, height + pads[0] + pads[2], width + pads[1] + pads[3], channels]
        made = self.writer.tensor(f"{name}_{pads}", shape, kind, scales, zeros)
        self.writer.operator("PAD", [source, table], [made])
        return made, VALID

    def conv(self, node):
        of, size, stride, pads = self.windows(node)
        dilation, group = of.get("dilations", [1, 1]), of.get("group", 1)
        source = self.image(node.input[0])
        channels = self.writer.tensors[source][1][3]
        is_depthwise = group > 1
        if is_depthwise and group != channels:
            raise ConvertError(f"{node.name} has {group} groups of {channels} channels.")
        if is_depthwise:
            weights, scale = self.weights(node.input[1], lambda w: w.transpose(1, 2, 3, 0), 3)
        else:
            weights, scale = self.weights(node.input[1], lambda w: w.transpose(0, 2, 3, 1), 0)
        bias = self.bias(node, scale * self.writer.tensors[source][3][0])
        source, padding = self.padded(source, pads, size, stride, dilation)
        inputs, outputs = [source, weights, bias], [self.activation(node.output[0])]
        strides = {"slot_0": ("Int8", padding), "slot_1": ("Int32", stride[1]), "slot_2": ("Int32", stride[0])}
        if is_depthwise:
            made = self.writer.tensors[outputs[0]][1][3]
            self.writer.operator("DEPTHWISE_CONV_2D", inputs, outputs, **strides, slot_3=("Int32", made // channels),
                                 slot_5=("Int32", dilation[1]), slot_6=("Int32", dilation[0]))
        else:
            self.writer.operator("CONV_2D", inputs, outputs, **strides, slot_4=("Int32", dilation[1]), slot_5=("Int32", dilation[0]))

    def max_pool(self, node):
        of, size, stride, pads = self.windows(node)
        if any(apart != 1 for apart in of.get("dilations", [])) or len(node.output) > 1:
            raise ConvertError(f"MaxPool {node.name} has dilations or gives indices, which are not converted.")
        source, padding = self.padded(self.image(node.input[0]), pads, size, stride, what=f"MaxPool {node.name}")
        self.writer.operator("MAX_POOL_2D", [source], [self.activation(node.output[0])], slot_0=("Int8", padding),
                             slot_1=("Int32", stride[1]), slot_2=("Int32", stride[0]), slot_3=("Int32", size[1]),
                             slot_4=("Int32", size[0]))

    def mean(self, node):
        axes = self.writer.tensor("height_and_width", [2], INT32, data=np.array([1, 2], np.int32))
        self.writer.operator("MEAN", [self.image(node.input[0]), axes], [self.activation(node.output[0])], slot_0=("Bool", True))

    def gemm(self, node):
        of = self.attributes(node)
        if of.get("transA", 0) or of.get("alpha", 1) != 1 or of.get("beta", 1) != 1:
            raise ConvertError(f"{node.name} is more than a product with a bias.")
        is_transposed = of.get("transB", 0)
        weights, scale = self.weights(node.input[1], (lambda w: w) if is_transposed else (lambda w: w.T), 0,
                                      0 if is_transposed else 1)
        source = self.activation(node.input[0])
        bias = self.bias(node, scale * self.writer.tensors[source][3][0])
        self.writer.operator("FULLY_CONNECTED", [source, weights, bias], [self.activation(node.output[0])])

    def add(self, node):
        inputs = [self.activation(name) for name in node.input]
        first, second = (self.writer.tensors[source][1] for source in inputs)
        if first != second:
            raise ConvertError(f"Add {node.name} has operands of the shapes {first} and {second}; only one shape is converted.")
        self.writer.operator("ADD", inputs, [self.activation(node.output[0])])

    def flatten(self, node):
        source, made = self.activation(node.input[0]), self.activation(node.output[0])
        shape = self.writer.tensors[source][1]
        # Channels come last here, so that other images would change their order.
        if len(shape) == 4 and shape[1] * shape[2] != 1:
            raise ConvertError(f"Flatten {node.name} takes {shape[1]} x {shape[2]} elements a channel; only one is converted.")
        self.writer.operator("RESHAPE", [source], [made], slot_0=("Vector", self.writer.tensors[made][1]))

    def node(self, node):
        if node.op_type == "Conv":
            self.conv(node)
        elif node.op_type == "Gemm":
            self.gemm(node)
        elif node.op_type == "Add":
            self.add(node)
        elif node.op_type == "MaxPool":
            self.max_pool(node)
        elif node.op_type == "GlobalAveragePool":
            self.mean(node)
        elif node.op_type == "Flatten":
            self.flatten(node)
        elif node.op_type not in ("QuantizeLinear", "DequantizeLinear", "Constant"):
            raise ConvertError(f"{node.name} is {node.op_type}, which is not converted; the operators are Conv, Gemm, Add, MaxPool, "
                               "GlobalAveragePool and Flatten.")

    def convert(self):
        for node in self.graph.node:
            self.node(node)
        inputs = [self.activation(value.name) for value in self.graph.input]
        outputs = [self.activation(value.name) for value in self.graph.output]
        return self.writer.finish(inputs, outputs)


def convert(model):
    """The bytes of a TensorFlow Lite file."""
    return Converter(model).convert()
