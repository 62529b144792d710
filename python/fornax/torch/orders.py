"""In which order of its axes the memory of a tensor lies that a forward graph saves for its backward graph.

Kernels of convolutions compute with channels last. What a forward graph saves is seen by its backward graph alone, so it lies so
too: neither of them puts it into another order. torch is told the strides, and hands the backward graph tensors that have them.
"""

import torch

from . import capture

_KEY = "fornax_order"  # in the meta data of nodes
_CHANNELS_LAST = (0, 2, 3, 1)

# Operators whose result lies as their first tensor of four dimensions does: each element or channel on its own.
_ALONG = ("aten._native_batch_norm_legit", "aten.native_batch_norm", "aten.max_pool2d_with_indices", "aten.avg_pool2d")


def of(node):
    """The axes of a placeholder's value in the order of its memory, outermost first; None if that is row-major."""
    return node.meta.get(_KEY)


def of_outputs(node):
    """The same of the values that an output node gives, by their places."""
    return node.meta.get(_KEY, {})


def order_saved(graph_module):
    """Chooses the orders of what a forward graph saves, and tells torch. It is called where torch compiles the graph."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    output = next(node for node in graph_module.graph.nodes if node.op == "output")
    reported = getattr(context, "output_strides", None)
    # Tokens of effects, such as checks of errors, are outputs that torch's places do not count.
    if metadata is None or metadata.tokens or reported != [] or not isinstance(output.args[0], (list, tuple)):
        return
    values = output.args[0]
    saved = range(len(values))[metadata.tensors_saved_for_backwards_slice]
    given = {value for place, value in enumerate(values) if place not in saved and isinstance(value, torch.fx.Node)}
    last = _channels_last(graph_module.graph)
    orders = {place: _CHANNELS_LAST for place in saved if values[place] in last and values[place] not in given}
    if orders:
        output.meta[_KEY] = orders
    for place, value in enumerate(values):
        tensor = capture.value_of(value) if isinstance(value, torch.fx.Node) else None
        if not isinstance(tensor, torch.Tensor) or not _has_numbers(tensor):
            reported.append(None)
        elif place in orders:
            reported.append(strides_of(tensor.shape, orders[place]))
        else:
            reported.append(tuple(tensor.stride()))


def order_placeholders(graph_module, inputs):
    """Notes the orders of a backward graph's placeholders, from tensors that have the strides of what comes."""
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    changed = {node.args[0] for node in graph_module.graph.nodes if capture.target_name(node) == "aten.copy_.default"}
    for node, value in zip(placeholders, inputs):
        if node in changed:
            continue
        if isinstance(value, torch.Tensor) and value.dim() == 4 and _has_numbers(value) and not value.is_contiguous() and (
                tuple(value.stride()) == strides_of(value.shape, _CHANNELS_LAST)):
            node.meta[_KEY] = _CHANNELS_LAST


def inverse(order):
    """The order that puts axes back."""
    return tuple(order.index(axis) for axis in range(len(order)))


def strides_of(shape, order):
    """The strides of a tensor of this shape whose axes lie in this order."""
    strides, size = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = size
        size *= max(int(shape[axis]), 1)
    return tuple(strides)


def _has_numbers(tensor):
    """Whether sizes and strides are numbers."""
    return all(type(size) is int for size in (*tensor.shape, *tensor.stride()))


def _channels_last(graph):
    """The nodes that are computed with channels last: results of convolutions and what is computed of these element by element."""
    last = set()
    for node in graph.nodes:
        value = capture.value_of(node)
        if node.op != "call_function" or not isinstance(value, (torch.Tensor, tuple, list)):
            continue
        name = capture.target_name(node)
        operands = [operand for operand in node.all_input_nodes if _is_image(capture.value_of(operand))]
        if name == "getitem":
            if node.args[0] in last and _is_image(value):
                last.add(node)
        elif name == "aten.convolution.default":
            if _is_image(value) and not node.args[6]:
                last.add(node)
        elif operands and operands[0] in last and (name.startswith(_ALONG) or (
                _is_image(value) and all(capture.value_of(operand).shape == value.shape for operand in operands))):
            last.add(node)
    return {node for node in last if _is_image(capture.value_of(node))}


def _is_image(value):
    """Whether a value is a row-major batch of images of several channels and places."""
    return (isinstance(value, torch.Tensor) and value.dim() == 4 and _has_numbers(value) and value.is_contiguous()
            and value.shape[1] > 1 and value.shape[2] * value.shape[3] > 1)
